use std::collections::BTreeMap;

use stepwell::{Family, Filter, Query, Spent, Standing, Status};
use stepwell_wire::{SessionStatus, Statistics, StatisticsGroup};
use stepwell_workspace::has_ended;

use crate::app::{App, Go, each_session};
use crate::failure::{Exit, Result};
use crate::output::Style;
use crate::selection::Selection;
use crate::text::{cost, cut, day, grouped, one_line, width};

/// Shows how sessions went, and what they cost by day, model and agent.
///
/// A session counts on the day it began, for the model that it used last. Subagents'
/// sessions count as well.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
}

/// What is counted.
#[derive(Debug, Default)]
struct Stats {
    by_status: BTreeMap<SessionStatus, u64>,
    resumed: u64,
    resumed_and_done: u64,
    all: Group,
    by_day: BTreeMap<String, Group>,
    by_model: BTreeMap<String, Group>,
    by_agent: BTreeMap<String, Group>,
}

/// Some sessions and what they spent.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    sessions: u64,
    spent: Spent,
}

impl Group {
    fn count(&mut self, spent: &Spent) {
        self.sessions += 1;
        self.spent += *spent;
    }
}

impl Stats {
    fn count(&mut self, standing: &Standing) {
        let head = &standing.head;
        let status = SessionStatus::from(standing);
        *self.by_status.entry(status).or_default() += 1;
        if head.resumes > 0 {
            self.resumed += 1;
            self.resumed_and_done += u64::from(head.status == Status::Success);
        }
        let named = |name: &str| if name.is_empty() { "-".to_owned() } else { one_line(name) };
        self.all.count(&head.spent);
        self.by_day.entry(day(head.created_at)).or_default().count(&head.spent);
        self.by_model.entry(named(&head.model)).or_default().count(&head.spent);
        self.by_agent.entry(named(&head.agent)).or_default().count(&head.spent);
    }

    /// Sessions that came to an end of their own.
    fn ended(&self) -> u64 {
        let over = |status: &&SessionStatus| status.as_str().parse().is_ok_and(has_ended);
        self.by_status.iter().filter(|(status, _)| over(status)).map(|(_, n)| n).sum()
    }

    fn success_rate(&self) -> Option<f64> {
        let done = self.by_status.get(&SessionStatus::Success).copied().unwrap_or(0);
        rate(done, self.ended())
    }

    fn resume_rate(&self) -> Option<f64> {
        rate(self.resumed, self.all.sessions)
    }
}

fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn parts(groups: &BTreeMap<String, Group>) -> Vec<StatisticsGroup> {
    let part = |(name, group): (&String, &Group)| StatisticsGroup {
        name: name.clone(),
        sessions: group.sessions,
        spending: (&group.spent).into(),
    };
    groups.iter().map(part).collect()
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let mut stats = Stats::default();
    if let Some(well) = app.look()? {
        let filter = Filter { family: Family::Any, ..args.selection.filter(app.now()) };
        each_session(&well, Query { filter, ..Query::default() }, |standing| {
            if args.selection.takes(&standing) {
                stats.count(&standing);
            }
            Ok(Go::On)
        })?;
    }
    if app.out.is_json() {
        app.out.object(&Statistics {
            sessions: stats.all.sessions,
            success_rate: stats.success_rate(),
            resumed: stats.resumed,
            resume_rate: stats.resume_rate(),
            resumed_success_rate: rate(stats.resumed_and_done, stats.resumed),
            spending: (&stats.all.spent).into(),
            by_day: parts(&stats.by_day),
            by_model: parts(&stats.by_model),
            by_agent: parts(&stats.by_agent),
            by_status: stats.by_status,
        })?;
    } else if stats.all.sessions == 0 {
        app.out.line("No sessions yet.")?;
    } else {
        show(&stats, app)?;
    }
    Ok(Exit::Done)
}

fn show(stats: &Stats, app: &mut App) -> Result<()> {
    let percent = |rate: Option<f64>| {
        rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.0}%", rate * 100.0))
    };
    let statuses: Vec<_> = stats
        .by_status
        .iter()
        .map(|(status, n)| format!("{} {}", grouped(*n), status.as_str()))
        .collect();
    let usage = stats.all.spent.usage;
    let mut say = |name: &str, value: String| app.out.line(format_args!("{name:<13} {value}"));
    say("Sessions", format!("{} ({})", grouped(stats.all.sessions), statuses.join(", ")))?;
    say("Success rate", format!("{} of those that ended", percent(stats.success_rate())))?;
    let done = percent(rate(stats.resumed_and_done, stats.resumed));
    let resumed = match stats.resumed {
        0 => "no session was taken up again".to_owned(),
        n => format!("{} ({}), {done} of them done", percent(stats.resume_rate()), grouped(n)),
    };
    say("Resume rate", resumed)?;
    say("Cost", cost(&stats.all.spent))?;
    say("Tokens", format!("{} in, {} out", grouped(usage.input), grouped(usage.output)))?;
    chart("By day", &stats.by_day, Rows::Last, app)?;
    chart("By model", &stats.by_model, Rows::Largest, app)?;
    chart("By agent", &stats.by_agent, Rows::Largest, app)
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
fn chart(title: &str, groups: &BTreeMap<String, Group>, rows: Rows, app: &mut App) -> Result<()> {
    let priced = groups.values().any(|group| !group.spent.cost.is_zero());
    let weight = |group: &Group| match priced {
        true => u128::try_from(group.spent.cost.as_picos()).unwrap_or(0),
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
    let names = shown.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let costs = shown.iter().map(|(_, group)| cost(&group.spent).len()).max().unwrap_or(0);
    let columns = app.terminal.width.unwrap_or(usize::MAX);
    app.out.line("")?;
    app.out.line(app.out.paint.paint(Style::Bold, title))?;
    for (name, group) in shown {
        let length = (weight(group) * u128::from(BAR)).div_ceil(most);
        let bar = "█".repeat(usize::try_from(length).unwrap_or(0));
        let room = " ".repeat(names - width(name));
        let (cost, tokens) = (cost(&group.spent), grouped(group.spent.usage.total()));
        let sessions = crate::text::count(usize::try_from(group.sessions).unwrap_or(0), "session");
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
