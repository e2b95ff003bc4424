use std::path::Path;

use stepwell::{
    Access, Family, Filter, InScope, Query, Seq, SessionInfo, Sort, Stepwell, TrashScope,
};
use stepwell_runtime::inspect::{ListWanted, ListedSession, SessionList};
use stepwell_terminal::table::{Cell, Column, Table, left, right};
use stepwell_terminal::text::{ago, one_line};
use stepwell_terminal::wording::tell_of_half;
use stepwell_terminal::{Paint, Style, note, text};
use stepwell_wire::SessionStatus;
use stepwell_workspace::{Estimates, NamedWell};

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::selection::Selection;
use crate::typed::one_of;

/// Lists sessions, newest first.
///
/// Subagents' sessions are left out, but for what they cost; --tree shows them below their
/// parents.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Only those of this program: langgraph, claude-code.
    #[arg(long, value_name = "NAME", help_heading = "Which sessions")]
    system: Option<String>,
    /// Only those that belong to this there: adk/my-app/ann; `adk/*`, to any that begins so.
    #[arg(long, help_heading = "Which sessions")]
    scope: Option<String>,
    /// Lists at most this many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Lists all of them.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Shows subagents' sessions below their parents.
    #[arg(long)]
    tree: bool,
    /// Lists the sessions of all your known stores.
    #[arg(long)]
    everywhere: bool,
    /// Sorts by this.
    #[arg(long, value_parser = one_of(SORTS), default_value = "updated")]
    sort: Sort,
}

/// What lists can be sorted by.
const SORTS: &[(&str, Sort)] = &[
    ("updated", Sort::Updated),
    ("created", Sort::Created),
    ("cost", Sort::Cost),
    ("steps", Sort::Steps),
];

const COLUMNS: &[Column] =
    &[left("ID"), left("STATUS"), right("STEPS"), right("COST"), left("UPDATED"), left("TASK")];

const COLUMNS_EVERYWHERE: &[Column] = &[
    left("ID"),
    left("STATUS"),
    right("STEPS"),
    right("COST"),
    left("UPDATED"),
    left("WORKSPACE"),
    left("TASK"),
];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let limit = if args.all { usize::MAX } else { args.limit };
    // What a session cost with its subagents, only their sum says.
    let few = if args.sort == Sort::Cost { usize::MAX } else { limit };
    let mut list = SessionList::default();
    if args.everywhere {
        for NamedWell { name, well } in app.everywhere(|it, path| it.open(path, Access::Read)) {
            let before = list.sessions.len();
            args.collect(&mut list, &well, few, Some(&name))?;
            complete(&mut list, before, &well, app)?;
        }
        list.merge(args.sort, limit);
    } else if let Some(well) = app.look()? {
        args.collect(&mut list, &well, few, None)?;
        if args.sort == Sort::Cost {
            list.merge(args.sort, limit);
        }
        complete(&mut list, 0, &well, app)?;
    }
    answer(&list, args, app)?;
    list.sessions.iter().for_each(|it| tell_of_half(&it.info));
    if list.more {
        note("There are more: --all shows them, --limit N so many.");
    }
    Ok(Exit::Done)
}

impl Args {
    fn collect(
        &self,
        list: &mut SessionList,
        well: &Stepwell,
        limit: usize,
        store: Option<&Path>,
    ) -> Result<()> {
        let filter = Filter {
            family: Family::Roots,
            system: self.system.clone(),
            scope: self.scope.as_deref().map(InScope::read),
            ..self.selection.filter(well.now())
        };
        let query = Query { filter, sort: self.sort, ..Query::default() };
        let takes = |info: &SessionInfo| self.selection.takes(info);
        let wanted = ListWanted { query, takes: &takes, limit, tree: self.tree };
        Ok(list.collect(well, store, &wanted)?)
    }
}

/// Adds what only some readers want: the parts of ids that suffice, where they can be told
/// from the rest by colour, and flows' states, for programs.
fn complete(list: &mut SessionList, from: usize, well: &Stepwell, app: &App) -> Result<()> {
    if app.out.is_json() {
        list.add_flows(from, well)?;
    } else if app.out.paint == Paint::Colour {
        list.add_parts(from, well)?;
    }
    Ok(())
}

fn answer(list: &SessionList, args: &Args, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        let estimates = Estimates::new(app);
        let item = |it: &ListedSession| it.item(estimates.of(&it.info.head, &it.info.head.spent));
        let items: Vec<_> = list.sessions.iter().map(item).collect();
        return items.iter().try_for_each(|item| app.out.object(item));
    }
    if list.sessions.is_empty() {
        return empty(app);
    }
    let columns = if args.everywhere { COLUMNS_EVERYWHERE } else { COLUMNS };
    let mut table = Table::new(columns);
    let estimates = Estimates::new(app);
    list.sessions.iter().for_each(|it| table.push(cells(it, &estimates)));
    app.print(&table)
}

fn cells(row: &ListedSession, estimates: &Estimates<'_>) -> Vec<Cell> {
    let head = &row.info.head;
    let indent = match row.depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth - 1)),
    };
    let bright = row.part.clone().map(|part| part.start + indent.len()..part.end + indent.len());
    let id = Cell { text: format!("{indent}{}", head.id), style: Style::Plain, bright };
    let estimate = estimates.of_all(std::iter::once(head).chain(&row.unpriced_below));
    let mut cells: Vec<Cell> = vec![
        id,
        status_cell(&row.info),
        head.steps.to_string().into(),
        text::cost_or(estimate, &row.spent).into(),
        ago(head.updated_at, row.now).into(),
    ];
    if let Some(store) = &row.store {
        let workspace = store.parent().unwrap_or(store);
        cells.push(one_line(&workspace.display().to_string()).into());
    }
    cells.push(task(&row.info).into());
    cells
}

/// A session's label, if it has one, and its task.
pub(crate) fn task(info: &SessionInfo) -> String {
    let head = &info.head;
    if let Some(damage) = info.damage.as_ref().filter(|damage| damage.seq == Seq::ZERO) {
        return format!("({})", one_line(&damage.what));
    }
    let label = head.label.as_ref().map(|label| format!("[{}] ", text::visible(label)));
    format!("{}{}", label.unwrap_or_default(), one_line(&head.task))
}

/// How a session stands, in its colour.
pub(crate) fn status_cell(info: &SessionInfo) -> Cell {
    use SessionStatus::{
        Abandoned, Damaged, Failed, Idle, Interrupted, Partial, Paused, Running, Success,
    };
    let shown = SessionStatus::from(info);
    let style = match shown {
        Damaged | Failed => Style::Red,
        Running => Style::Cyan,
        Success => Style::Green,
        Paused | Interrupted | Partial => Style::Yellow,
        Abandoned | Idle => Style::Dim,
    };
    Cell::styled(shown.as_str(), style)
}

fn empty(app: &mut App) -> Result<()> {
    let any = match app.look()? {
        Some(well) => !well.list(&Query { limit: 1, ..Query::default() })?.sessions.is_empty(),
        None => false,
    };
    if any {
        app.out.line("No sessions match.")?;
        note("hint: stepwell sessions --all lists every one");
    } else if has_trash(app)? {
        app.out.line("No sessions.")?;
        note("hint: stepwell trash list shows what was deleted");
    } else {
        app.out.line("No sessions yet.")?;
        note(
            "hint: stepwell run \"TASK\" begins one; stepwell import reads in those of other agents",
        );
    }
    Ok(())
}

fn has_trash(app: &App) -> Result<bool> {
    let filter = Filter { place: TrashScope::Trash, ..Filter::default() };
    let Some(well) = app.look()? else { return Ok(false) };
    Ok(!well.list(&Query { filter, limit: 1, ..Query::default() })?.sessions.is_empty())
}
