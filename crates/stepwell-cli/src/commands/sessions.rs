use std::ops::Range;
use std::path::{Path, PathBuf};

use stepwell::{
    Access, Family, Filter, FlowState, Head, InScope, Query, Seq, SessionId, SessionInfo, Sort,
    Spent, Stepwell, Subagents, Time,
};
use stepwell_wire::SessionItem;
use stepwell_workspace::{Estimates, NamedWell};

use crate::app::{App, Go, each_session};
use crate::failure::{Exit, Result};
use crate::files::tell_of_half;
use crate::output::{Paint, Style, note};
use crate::selection::{Selection, Shown};
use crate::table::{Align, Cell, Column, Table};
use crate::text;
use crate::text::{ago, one_line};

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
    #[arg(long, value_enum, default_value = "updated")]
    sort: By,
}

/// What lists can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Updated,
    Created,
    Cost,
    Steps,
}

impl From<By> for Sort {
    fn from(by: By) -> Self {
        match by {
            By::Updated => Self::Updated,
            By::Created => Self::Created,
            By::Cost => Self::Cost,
            By::Steps => Self::Steps,
        }
    }
}

const COLUMNS: &[Column] = &[
    Column { name: "ID", align: Align::Left },
    Column { name: "STATUS", align: Align::Left },
    Column { name: "STEPS", align: Align::Right },
    Column { name: "COST", align: Align::Right },
    Column { name: "UPDATED", align: Align::Left },
    Column { name: "TASK", align: Align::Left },
];

const COLUMNS_EVERYWHERE: &[Column] = &[
    Column { name: "ID", align: Align::Left },
    Column { name: "STATUS", align: Align::Left },
    Column { name: "STEPS", align: Align::Right },
    Column { name: "COST", align: Align::Right },
    Column { name: "UPDATED", align: Align::Left },
    Column { name: "WORKSPACE", align: Align::Left },
    Column { name: "TASK", align: Align::Left },
];

/// A session in the list: how deep it stands, and in which store.
struct Row {
    standing: SessionInfo,
    /// What it spent with its subagents.
    spent: Spent,
    has_subagents: bool,
    depth: usize,
    store: Option<PathBuf>,
    /// Now, by the store's clock.
    now: Time,
    /// The part of its id that suffices to name it, where that is pointed out.
    part: Option<Range<usize>>,
    /// What its flow is, and how its nodes stand, for programs.
    flow: Option<FlowState>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let limit = if args.all { usize::MAX } else { args.limit };
    // What a session cost with its subagents, only their sum says.
    let few = if args.sort == By::Cost { usize::MAX } else { limit };
    let mut found = Found { rows: Vec::new(), more: false };
    if args.everywhere {
        for NamedWell { name, well } in app.everywhere(|it, path| it.open(path, Access::Read)) {
            let before = found.rows.len();
            found.collect(args, &well, few, Some(&name))?;
            found.complete(before, &well, app)?;
        }
        found.merge(args.sort, limit);
    } else if let Some(well) = app.look()? {
        found.collect(args, &well, few, None)?;
        if args.sort == By::Cost {
            found.merge(args.sort, limit);
        }
        found.complete(0, &well, app)?;
    }
    answer(&found, args, app)?;
    found.rows.iter().for_each(|row| tell_of_half(&row.standing));
    if found.more {
        note("There are more: --all shows them, --limit N so many.");
    }
    Ok(Exit::Done)
}

/// What was found, and whether there is more.
struct Found {
    rows: Vec<Row>,
    more: bool,
}

/// What is known of all sessions that are listed from one store.
struct List<'a> {
    store: Option<&'a Path>,
    now: Time,
    below: Subagents,
}

impl Row {
    fn new(standing: SessionInfo, list: &List<'_>, depth: usize) -> Self {
        let (id, below) = (&standing.head.id, &list.below);
        let mut spent = standing.head.spent;
        spent += below.spent(id);
        let (has_subagents, store) = (!below.children(id).is_empty(), list.store);
        let (store, now) = (store.map(Path::to_owned), list.now);
        Self { standing, spent, has_subagents, depth, store, now, part: None, flow: None }
    }
}

impl Found {
    fn collect(
        &mut self,
        args: &Args,
        well: &Stepwell,
        limit: usize,
        store: Option<&Path>,
    ) -> Result<()> {
        let now = well.now();
        let filter = Filter {
            family: Family::Roots,
            system: args.system.clone(),
            scope: args.scope.as_deref().map(InScope::read),
            ..args.selection.filter(now)
        };
        // One more than asked for tells whether there is more.
        let limits = limit.saturating_add(1);
        let query = Query { filter, sort: args.sort.into(), limit: limits, ..Query::default() };
        let mut roots = Vec::new();
        each_session(well, query, |standing| {
            if !args.selection.takes(&standing) {
                return Ok(Go::On);
            }
            if roots.len() == limit {
                self.more = true;
                return Ok(Go::Stop);
            }
            roots.push(standing);
            Ok(Go::On)
        })?;
        let ids: Vec<SessionId> = roots.iter().map(|standing| standing.head.id.clone()).collect();
        let list = List { store, now, below: well.subagents_of(&ids)? };
        for root in roots {
            let row = Row::new(root, &list, 0);
            if args.tree { self.descend(row, &list) } else { self.rows.push(row) }
        }
        Ok(())
    }

    /// Adds what only some readers want: the parts of ids that suffice, where they can be told
    /// from the rest by colour, and flows' states, for programs.
    fn complete(&mut self, from: usize, well: &Stepwell, app: &App) -> Result<()> {
        let rows = &mut self.rows[from..];
        if app.out.is_json() {
            let intact = rows.iter().filter(|row| row.standing.damage.is_none());
            let heads: Vec<&Head> = intact.map(|row| &row.standing.head).collect();
            let mut flows = well.flow_states(&heads)?;
            for row in rows.iter_mut() {
                row.flow = flows.remove(&row.standing.head.id).and_then(Result::ok);
            }
        } else if app.out.paint == Paint::Colour {
            let ids: Vec<SessionId> = rows.iter().map(|row| row.standing.head.id.clone()).collect();
            for (row, part) in rows.iter_mut().zip(well.sufficient_parts(&ids)?) {
                row.part = Some(part);
            }
        }
        Ok(())
    }

    /// Adds a session and the kept sessions of its subagents, oldest first.
    fn descend(&mut self, row: Row, list: &List<'_>) {
        let mut waiting = vec![row];
        while let Some(row) = waiting.pop() {
            let depth = row.depth + 1;
            let children = list.below.children(&row.standing.head.id).iter().rev();
            let kept = children.filter(|child| child.trashed_at.is_none()).cloned();
            waiting.extend(kept.map(|child| Row::new(child, list, depth)));
            self.rows.push(row);
        }
    }

    /// Brings what several stores hold into one order.
    fn merge(&mut self, sort: By, limit: usize) {
        let mut families: Vec<Vec<Row>> = Vec::new();
        for row in self.rows.drain(..) {
            match families.last_mut() {
                Some(family) if row.depth > 0 => family.push(row),
                _ => families.push(vec![row]),
            }
        }
        families.sort_by_key(|family| {
            let (head, spent) = (&family[0].standing.head, &family[0].spent);
            std::cmp::Reverse(match sort {
                By::Updated => i128::from(head.updated_at.as_micros()),
                By::Created => i128::from(head.created_at.as_micros()),
                By::Cost => spent.cost.as_picos(),
                By::Steps => i128::from(head.steps),
            })
        });
        self.more |= families.len() > limit;
        families.truncate(limit);
        self.rows = families.into_iter().flatten().collect();
    }
}

fn answer(found: &Found, args: &Args, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        let estimates = Estimates::new(app);
        let guessed = |row: &Row| estimates.of(&row.standing.head, &row.standing.head.spent);
        let guessed: Vec<_> = found.rows.iter().map(guessed).collect();
        for (row, estimate) in found.rows.iter().zip(guessed) {
            app.out.object(&SessionItem {
                session: (&row.standing).into(),
                with_subagents: row.has_subagents.then(|| (&row.spent).into()),
                flow: row.flow.clone(),
                estimate: estimate.map(Into::into),
                store: row.store.as_deref().map(|store| store.display().to_string()),
            })?;
        }
        return Ok(());
    }
    if found.rows.is_empty() {
        return empty(app);
    }
    let columns = if args.everywhere { COLUMNS_EVERYWHERE } else { COLUMNS };
    let mut table = Table::new(columns);
    let estimates = Estimates::new(app);
    for row in &found.rows {
        table.push(cells(row, &estimates));
    }
    app.print(&table)?;
    Ok(())
}

fn cells(row: &Row, estimates: &Estimates<'_>) -> Vec<Cell> {
    let head = &row.standing.head;
    let indent = match row.depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth - 1)),
    };
    let bright = row.part.clone().map(|part| part.start + indent.len()..part.end + indent.len());
    let id = Cell { text: format!("{indent}{}", head.id), style: Style::Plain, bright };
    let mut cells: Vec<Cell> = vec![
        id,
        status_cell(&row.standing),
        head.steps.to_string().into(),
        text::cost_or(estimates.of(head, &row.spent), &row.spent).into(),
        ago(head.updated_at, row.now).into(),
    ];
    if let Some(store) = &row.store {
        let workspace = store.parent().unwrap_or(store);
        cells.push(one_line(&workspace.display().to_string()).into());
    }
    cells.push(task(&row.standing).into());
    cells
}

/// A session's label, if it has one, and its task.
pub(crate) fn task(standing: &SessionInfo) -> String {
    let head = &standing.head;
    if let Some(damage) = standing.damage.as_ref().filter(|damage| damage.seq == Seq::ZERO) {
        return format!("({})", one_line(&damage.what));
    }
    let label = head.label.as_ref().map(|label| format!("[{}] ", text::visible(label)));
    format!("{}{}", label.unwrap_or_default(), one_line(&head.task))
}

/// How a session stands, in its colour.
pub(crate) fn status_cell(standing: &SessionInfo) -> Cell {
    use stepwell::Status::{
        Abandoned, Failed, Idle, Interrupted, Partial, Paused, Running, Success,
    };
    let shown = Shown::of(standing);
    let style = match shown {
        Shown::Damaged | Shown::Status(Failed) => Style::Red,
        Shown::Status(Running) => Style::Cyan,
        Shown::Status(Success) => Style::Green,
        Shown::Status(Paused | Interrupted | Partial) => Style::Yellow,
        Shown::Status(Abandoned | Idle) => Style::Dim,
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
    let filter = Filter { place: stepwell::TrashScope::Trash, ..Filter::default() };
    let Some(well) = app.look()? else { return Ok(false) };
    Ok(!well.list(&Query { filter, limit: 1, ..Query::default() })?.sessions.is_empty())
}
