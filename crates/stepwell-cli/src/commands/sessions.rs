use std::path::Path;

use stepwell::sessions::ResumeLimits;
use stepwell::store::query::{Family, Filter, InScope, Query, Sort, TrashScope};
use stepwell::{Seq, SessionInfo, Stepwell};
use stepwell_runtime::inspect::{ListWanted, ListedSession, SessionList};
use stepwell_terminal::reply::status_cell;
use stepwell_terminal::table::{Cell, Column, Table, left, right};
use stepwell_terminal::text::{ago, one_line};
use stepwell_terminal::wording::half_rewound;
use stepwell_terminal::{Paint, Style, note, text};
use stepwell_workspace::{Estimates, NamedWell, Opening, hooks, known_stores};

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
    /// Only those that belong to this there: adk/my-app/ann; `adk/*`, to any that begins so.
    #[arg(long, help_heading = "Which sessions")]
    scope: Option<String>,
    /// Only those that can be resumed now.
    #[arg(long, help_heading = "Which sessions")]
    ready: bool,
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

/// The columns of a table of sessions; some are there only where they say something.
fn columns(list: &SessionList, everywhere: Option<Column>) -> Vec<Column> {
    let source = has_sources(list).then(|| left("SOURCE"));
    let front = [left("ID"), left("STATUS"), right("STEPS"), right("COST"), left("UPDATED")];
    front.into_iter().chain(source).chain(everywhere).chain([left("TASK")]).collect()
}

/// Did any of these sessions come from another system?
fn has_sources(list: &SessionList) -> bool {
    list.sessions.iter().any(|it| it.info.head.system().is_some())
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let limit = if args.all { usize::MAX } else { args.limit };
    // What a session cost with its subagents, only their sum says.
    let few = if args.sort == Sort::Cost { usize::MAX } else { limit };
    let wanted = Wanted {
        limit: few,
        limits: hooks::resume_limits(&app.workspace.config.settings),
        store: None,
    };
    let mut list = SessionList::default();
    if args.everywhere {
        for NamedWell { name, well } in known_stores::open_all(&app.workspace, Opening::Read) {
            let before = list.sessions.len();
            args.collect(&mut list, &well, Wanted { store: Some(&name), ..wanted })?;
            complete(&mut list, before, &well, app)?;
        }
        list.merge(args.sort, limit);
    } else if let Some(well) = app.workspace.open_if_present()? {
        args.collect(&mut list, &well, wanted)?;
        if args.sort == Sort::Cost {
            list.merge(args.sort, limit);
        }
        complete(&mut list, 0, &well, app)?;
    }
    answer(&list, args, app)?;
    list.sessions.iter().flat_map(|it| half_rewound(&it.info)).for_each(note);
    if list.more {
        note("There are more: --all shows them, --limit N so many.");
    }
    Ok(Exit::Done)
}

/// What is asked of each store.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    /// How many sessions at the most.
    limit: usize,
    /// When an agent that Stepwell does not run counts as gone.
    limits: ResumeLimits,
    /// The store's name, where several are listed.
    store: Option<&'a Path>,
}

impl Args {
    fn collect(
        &self,
        list: &mut SessionList,
        well: &Stepwell,
        Wanted { limit, limits, store }: Wanted<'_>,
    ) -> Result<()> {
        let filter = Filter {
            family: Family::Roots,
            scope: self.scope.as_deref().map(InScope::read),
            ..self.selection.filter(well.now())
        };
        let query = Query { filter, sort: self.sort, ..Query::default() };
        let is_ready = |info: &SessionInfo| {
            well.decide_resume(Some(info), limits).is_ok_and(|decided| decided.should_resume)
        };
        let takes =
            |info: &SessionInfo| self.selection.takes(info) && (!self.ready || is_ready(info));
        let wanted = ListWanted { query, takes: &takes, limit, tree: self.tree };
        Ok(list.collect(well, store, &wanted)?)
    }
}

/// Adds the parts of ids that suffice, where they can be told from the rest by colour.
fn complete(list: &mut SessionList, from: usize, well: &Stepwell, app: &App) -> Result<()> {
    if !app.out.is_json() && app.out.paint == Paint::Colour {
        list.add_parts(from, well)?;
    }
    Ok(())
}

fn answer(list: &SessionList, args: &Args, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        let estimates = Estimates::new(&app.workspace);
        let item = |it: &ListedSession| it.item(estimates.of(&it.info.head, &it.info.head.spent));
        let items: Vec<_> = list.sessions.iter().map(item).collect();
        return items.iter().try_for_each(|item| app.out.object(item));
    }
    if list.sessions.is_empty() {
        return empty(app);
    }
    let columns = columns(list, args.everywhere.then(|| left("WORKSPACE")));
    let mut table = Table::new(columns);
    let (estimates, with_source) = (Estimates::new(&app.workspace), has_sources(list));
    for session in &list.sessions {
        let mut cells = cells(session, &estimates);
        if with_source {
            let source = session.info.head.system().map_or("", String::as_str);
            cells.insert(SOURCE_PLACE, one_line(source).into());
        }
        table.push(cells);
    }
    app.print(&table)
}

/// Where the source stands among the cells.
const SOURCE_PLACE: usize = 5;

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

fn empty(app: &mut App) -> Result<()> {
    let any = match app.workspace.open_if_present()? {
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
    let Some(well) = app.workspace.open_if_present()? else { return Ok(false) };
    Ok(!well.list(&Query { filter, limit: 1, ..Query::default() })?.sessions.is_empty())
}
