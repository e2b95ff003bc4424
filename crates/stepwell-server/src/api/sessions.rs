//! Sessions, in lists and in detail.

use schemars::JsonSchema;
use serde::Deserialize;
use stepwell::Status;
use stepwell::model::Time;
use stepwell::store::query::{Cursor, Family, Filter, InScope, Query, Sort, TrashScope};
use stepwell_flow::History;
use stepwell_runtime::inspect::{self, Depth};
use stepwell_wire::{
    CheckpointInfo, Child, Costs, LaneInfo, List, Plan, SessionDetails, SessionItem, TaskInfo,
    Verified, WorkState,
};
use stepwell_workspace::{Estimates, hooks};

use crate::problem::{Problem, Result};
use crate::route::Nothing;
use crate::site::{Act, Look};

/// The most sessions on a page.
const MOST: usize = 200;

/// The default number of sessions on a page.
const USUAL: usize = 50;

/// Selects sessions.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Which {
    /// The status: `running`, `paused` and so on; several with commas.
    status: Option<String>,
    /// The agent.
    agent: Option<String>,
    /// The model.
    model: Option<String>,
    /// All of these tags, with commas.
    tag: Option<String>,
    /// The label.
    label: Option<String>,
    /// A text in the task.
    task: Option<String>,
    /// The workspace.
    workspace: Option<String>,
    /// Updated at this time or later.
    since: Option<Time>,
    /// Updated before this time.
    until: Option<Time>,
    /// The system that it was imported from.
    source: Option<String>,
    /// The scope in that system.
    scope: Option<String>,
    /// `roots` (the default) leaves out subagents; `any` includes them; a session's id selects its
    /// subagents and forks.
    family: Option<String>,
    /// Only sessions that can be resumed now.
    #[serde(default)]
    ready: bool,
    /// Only sessions in the trash.
    #[serde(default)]
    trash: bool,
    /// `updated`, `created`, `cost` or `steps`.
    sort: Option<String>,
    /// The `next` cursor of the last page.
    cursor: Option<String>,
    /// The most sessions, at most 200.
    limit: Option<usize>,
}

impl Which {
    pub(crate) fn filter(&self) -> Result<Filter> {
        let status = match &self.status {
            None => Vec::new(),
            Some(words) => words.split(',').map(status).collect::<Result<_>>()?,
        };
        let family = match self.family.as_deref() {
            None | Some("roots") => Family::Roots,
            Some("any") => Family::Any,
            Some(id) => {
                Family::ChildrenOf(id.parse().map_err(|error: stepwell::model::InvalidName| {
                    Problem::invalid(error.to_string()).at("family")
                })?)
            }
        };
        let tags = self.tag.as_deref().unwrap_or_default();
        let tags = tags.split(',').filter(|tag| !tag.is_empty()).map(ToOwned::to_owned);
        Ok(Filter {
            status,
            family,
            agent: self.agent.clone(),
            model: self.model.clone(),
            tags: tags.collect(),
            label: self.label.clone(),
            task: self.task.clone(),
            workspace: self.workspace.clone(),
            since: self.since,
            until: self.until,
            system: self.source.clone(),
            scope: self.scope.as_deref().map(InScope::read),
            place: if self.trash { TrashScope::Trash } else { TrashScope::Kept },
            ..Filter::default()
        })
    }
}

fn status(word: &str) -> Result<Status> {
    let known = Status::ALL;
    let found = known.iter().find(|status| status.as_str() == word.trim()).copied();
    let names: Vec<&str> = known.iter().map(|status| status.as_str()).collect();
    found.ok_or_else(|| unknown("status", word, &names.join(", ")))
}

pub(super) fn unknown(place: &str, word: &str, known: &str) -> Problem {
    Problem::invalid(format!("unknown {place} {word:?}"))
        .at(place)
        .hint(format!("expected one of: {known}"))
}

pub(super) fn list(look: &Look<'_>, which: Which) -> Result<List<SessionItem>> {
    let sort = match which.sort.as_deref() {
        None | Some("updated") => Sort::Updated,
        Some("created") => Sort::Created,
        Some("cost") => Sort::Cost,
        Some("steps") => Sort::Steps,
        Some(other) => return Err(unknown("sort", other, "updated, created, cost, steps")),
    };
    let after = which.cursor.as_deref().map(read_cursor).transpose()?;
    let limit = which.limit.unwrap_or(USUAL).clamp(1, MOST);
    let query = Query { filter: which.filter()?, sort, after, limit, ..Query::default() };
    let page = match which.ready {
        true => look.well().list_ready(
            &query,
            hooks::resume_limits(&look.runtime().workspace().config.settings),
        )?,
        false => look.well().list(&query)?,
    };
    let items =
        inspect::items(look.well(), page.sessions, &Estimates::new(look.runtime().workspace()))?;
    Ok(List { items, next: page.next.map(write_cursor) })
}

/// A cursor for clients: `VALUE.KEY`.
fn write_cursor(cursor: Cursor) -> String {
    format!("{}.{}", cursor.value, cursor.key)
}

fn read_cursor(text: &str) -> Result<Cursor> {
    let read = || {
        let (value, key) = text.split_once('.')?;
        Some(Cursor { value: value.parse().ok()?, key: key.parse().ok()? })
    };
    read().ok_or_else(|| Problem::invalid("invalid cursor").at("cursor"))
}

pub(super) fn show(look: &Look<'_>, _: Nothing) -> Result<SessionDetails> {
    let found = inspect::details(look.well(), &look.session()?, Depth::Alone)?;
    let head = &found.info.head;
    let estimate = Estimates::new(look.runtime().workspace()).of(head, &head.spent);
    Ok(SessionDetails { estimate: estimate.map(|it| it.cost.into()), ..found.answer })
}

pub(super) fn tree(look: &Look<'_>, _: Nothing) -> Result<List<Child>> {
    let found = inspect::details(look.well(), &look.session()?, Depth::Family)?;
    Ok(List { items: found.answer.children.unwrap_or_default(), next: None })
}

pub(super) fn lanes(look: &Look<'_>, _: Nothing) -> Result<List<LaneInfo>> {
    let found = inspect::details(look.well(), &look.session()?, Depth::Alone)?;
    Ok(List { items: found.answer.lanes, next: None })
}

pub(super) fn cost(look: &Look<'_>, _: Nothing) -> Result<Costs> {
    let id = look.session()?;
    let own = look.well().info(&id)?.head;
    let mut spent = own.spent;
    let mut sources = vec![(own.agent.clone(), own.spent)];
    let below = look.well().subagents(&id)?;
    for below in &below {
        spent += below.head.spent;
        sources.push((below.head.id.to_string(), below.head.spent));
    }
    let all = std::iter::once(&own).chain(below.iter().map(|it| &it.head));
    let estimate = Estimates::new(look.runtime().workspace()).of_all(all).map(|it| it.cost.into());
    Ok(Costs { estimate, ..Costs::new(&spent, sources) })
}

pub(super) fn flow(look: &Look<'_>, _: Nothing) -> Result<Plan> {
    let id = look.session()?;
    let none = || Problem::absent(format!("{id} has no flow")).at("id");
    if look.well().info(&id)?.head.flow.is_none() {
        return Err(none());
    }
    let failed = |error: stepwell_flow::Error| Problem::from(stepwell_runtime::Error::from(error));
    let history = History::judged(look.well(), &id).map_err(failed)?;
    let reading = history.stored.ok_or_else(none)?.read().map_err(failed)?;
    Ok(Plan::from(&stepwell_flow::plan::Plan::of(&reading.spec)))
}

pub(super) fn state(look: &Look<'_>, _: Nothing) -> Result<WorkState> {
    Ok(inspect::work_state(look.well(), &look.session()?)?)
}

pub(super) fn tasks(look: &Look<'_>, _: Nothing) -> Result<List<TaskInfo>> {
    let tasks = look.well().work(&look.session()?)?.tasks;
    Ok(List { items: tasks.iter().map(|task| TaskInfo::new(task, &tasks)).collect(), next: None })
}

pub(super) fn checkpoints(look: &Look<'_>, _: Nothing) -> Result<List<CheckpointInfo>> {
    let found = look.well().checkpoints(&look.session()?)?;
    Ok(List { items: found.into_iter().map(Into::into).collect(), next: None })
}

/// The same as a change, for clients that send one. It changes nothing.
pub(super) fn verify_now(act: &Act<'_>, none: Nothing) -> Result<Verified> {
    verify(&act.look, none)
}

pub(super) fn verify(look: &Look<'_>, _: Nothing) -> Result<Verified> {
    let id = look.session()?;
    let verdict = look.well().store().maintain().verify(&id)?;
    Ok(Verified::new(id, &verdict))
}
