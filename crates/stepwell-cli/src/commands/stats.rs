use std::collections::BTreeMap;

use stepwell::report::{SpentGroup, Statistics};
use stepwell::store::query::{Family, Filter, Query};
use stepwell_terminal::Style;
use stepwell_terminal::text::{count, cut, day, grouped, one_line, width};
use stepwell_workspace::Estimates;

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::selection::Selection;

/// Shows how sessions went, and what they cost by day, model, agent and source.
///
/// A session counts on the day it began, for the model that it used last. Subagents'
/// sessions count as well.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let mut stats = Statistics::default();
    if let Some(well) = app.workspace.open_if_present()? {
        let estimates = Estimates::new(&app.workspace);
        let filter = Filter { family: Family::Any, ..args.selection.filter(well.now()) };
        for info in well.sessions(Query { filter, ..Query::default() }) {
            let info = info?;
            if args.selection.takes(&info) {
                let estimate = estimates.of(&info.head, &info.head.spent);
                stats.count(&info, day(info.head.created_at), estimate);
            }
        }
    }
    if app.out.is_json() {
        app.out.object(&stepwell_wire::Statistics::from(&stats))?;
    } else if stats.all.sessions == 0 {
        app.out.line("No sessions yet.")?;
    } else {
        show(&stats, app)?;
    }
    Ok(Exit::Done)
}

fn show(stats: &Statistics, app: &mut App) -> Result<()> {
    let percent = |rate: Option<f64>| {
        rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.0}%", rate * 100.0))
    };
    let statuses = stats.by_status.iter().map(|(status, n)| format!("{} {status}", grouped(*n)));
    let mut statuses: Vec<String> = statuses.collect();
    if stats.damaged > 0 {
        statuses.push(format!("{} damaged", grouped(stats.damaged)));
    }
    let usage = stats.all.spent.usage;
    let mut say = |name: &str, value: String| app.out.line(format_args!("{name:<13} {value}"));
    say("Sessions", format!("{} ({})", grouped(stats.all.sessions), statuses.join(", ")))?;
    say("Success rate", format!("{} of those that ended", percent(stats.success_rate())))?;
    let done = percent(stats.resumed_success_rate());
    let resumed = match stats.resumed {
        0 => "no session was resumed".to_owned(),
        n => format!("{} ({}), {done} of them done", percent(stats.resume_rate()), grouped(n)),
    };
    say("Resume rate", resumed)?;
    say("Cost", format!("{}{}", stats.all.price(), unrecorded(&stats.all)))?;
    say("Tokens", format!("{} in, {} out", grouped(usage.input), grouped(usage.output)))?;
    chart("By day", &stats.by_day, Rows::Last, app)?;
    chart("By model", &stats.by_model, Rows::Largest, app)?;
    chart("By agent", &stats.by_agent, Rows::Largest, app)?;
    // Where all were begun here there is nothing to tell.
    match stats.by_source.keys().any(|name| name != "-") {
        true => chart("By source", &stats.by_source, Rows::Largest, app),
        false => Ok(()),
    }
}

/// What the sum of what was recorded leaves out, in words.
fn unrecorded(all: &SpentGroup) -> String {
    let sessions = |n: u64| count(usize::try_from(n).unwrap_or(usize::MAX), "session");
    let mut notes = Vec::new();
    if all.estimated > 0 {
        notes.push(format!("~: estimated for {} by tokens", sessions(all.estimated)));
    }
    if all.unpriced > 0 {
        notes.push(format!("?: {} without a known price", sessions(all.unpriced)));
    }
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// How many rows a chart has.
const ROWS: usize = 14;

/// How many columns its longest bar has.
const BAR: u64 = 20;

/// In which order a chart's rows stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// By name, the last ones: days.
    Last,
    /// The largest first.
    Largest,
}

/// One bar for each group: its cost, or where nothing has a price, its tokens.
fn chart(
    title: &str,
    groups: &BTreeMap<String, SpentGroup>,
    rows: Rows,
    app: &mut App,
) -> Result<()> {
    let known = |group: &SpentGroup| group.spent.cost + group.estimate;
    let priced = groups.values().any(|group| !known(group).is_zero());
    let weight = |group: &SpentGroup| match priced {
        true => u128::try_from(known(group).as_picos()).unwrap_or(0),
        false => u128::from(group.spent.usage.total()),
    };
    let most = groups.values().map(weight).max().unwrap_or(0).max(1);
    let mut shown: Vec<_> = groups.iter().collect();
    match rows {
        Rows::Last => shown.drain(..shown.len().saturating_sub(ROWS)).for_each(drop),
        Rows::Largest => {
            shown.sort_by_key(|(_, group)| std::cmp::Reverse((weight(group), group.sessions)));
            shown.truncate(ROWS);
        }
    }
    let left_out = groups.len() - shown.len();
    let names = shown.iter().map(|(name, _)| width(&one_line(name))).max().unwrap_or(0);
    let costs = shown.iter().map(|(_, group)| group.price().len()).max().unwrap_or(0);
    let columns = app.terminal.width.unwrap_or(usize::MAX);
    app.out.line("")?;
    app.out.line(app.out.paint.paint(Style::Bold, title))?;
    for (name, group) in shown {
        let length = (weight(group) * u128::from(BAR)).div_ceil(most);
        let bar = "█".repeat(usize::try_from(length).unwrap_or(0));
        let name = one_line(name);
        let room = " ".repeat(names.saturating_sub(width(&name)));
        let (cost, tokens) = (group.price(), grouped(group.spent.usage.total()));
        let sessions = count(usize::try_from(group.sessions).unwrap_or(0), "session");
        let line =
            format!("  {name}{room}  {bar:<20}  {cost:>costs$}  {tokens} tokens  {sessions}");
        app.out.line(cut(&line, columns))?;
    }
    match (left_out, rows) {
        (0, _) => Ok(()),
        (n, Rows::Last) => app.out.line(format_args!("  and {n} before")),
        (n, Rows::Largest) => app.out.line(format_args!("  and {n} more")),
    }
}
