//! All sessions: questions, searches, costs, and the available agents and flows.

use schemars::JsonSchema;
use serde::Deserialize;
use stepwell::report::Statistics;
use stepwell::store::query::{Family, Filter, Query, Rank, Search, SystemPrompts, TrashScope};
use stepwell_flow::plan::Plan;
use stepwell_flow::spec::Spec;
use stepwell_runtime::flow::{SpecFile, specs_in};
use stepwell_runtime::inspect;
use stepwell_wire::{
    AgentSummary, CheckFinding, DiskUseTotal, FlowSummary, List, Models, OpenGate, SearchHit,
    ServedStore, ServerInfo,
};
use stepwell_workspace::doctor::{Check, Finding, Repair, examine};
use stepwell_workspace::{Estimates, RecentModelsFile};

use super::sessions::Which;
use crate::problem::{Problem, Result};
use crate::route::Nothing;
use crate::security::Role;
use crate::site::Look;

/// The most hits of a search.
const MOST_HITS: usize = 100;

pub(super) fn gates(look: &Look<'_>, _: Nothing) -> Result<List<OpenGate>> {
    Ok(List { items: inspect::open_gates(look.well(), None)?, next: None })
}

/// A search.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SearchQuery {
    /// Words that must all occur; the last one may be a prefix.
    q: String,
    /// The most relevant first, instead of the newest.
    #[serde(default)]
    rank: bool,
    /// The most hits, at most 100.
    limit: Option<usize>,
    /// Only in these sessions.
    #[serde(flatten)]
    which: Option<InSession>,
}

/// Selects sessions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct InSession {
    /// The agent.
    agent: Option<String>,
    /// The source: imported from this system, or kept by it here.
    source: Option<String>,
}

pub(super) fn search(look: &Look<'_>, words: SearchQuery) -> Result<List<SearchHit>> {
    if !words.q.chars().any(char::is_alphanumeric) {
        return Err(Problem::invalid("the query contains no word").at("q"));
    }
    let InSession { agent, source } = words.which.unwrap_or_default();
    let search = Search {
        text: words.q,
        filter: Filter { family: Family::Any, agent, system: source, ..Filter::default() },
        rank: if words.rank { Rank::Relevance } else { Rank::Newest },
        limit: words.limit.unwrap_or(20).clamp(1, MOST_HITS),
        system: SystemPrompts::Skipped,
    };
    let hits = look.well().search(&search)?.hits.into_iter().map(SearchHit::from);
    Ok(List { items: hits.collect(), next: None })
}

pub(super) fn stats(look: &Look<'_>, which: Which) -> Result<stepwell_wire::Statistics> {
    let mut stats = Statistics::default();
    let filter = Filter { family: Family::Any, ..which.filter()? };
    let estimates = Estimates::new(look.runtime().workspace());
    for info in look.well().sessions(Query { filter, ..Query::default() }) {
        let info = info?;
        let estimate = estimates.of(&info.head, &info.head.spent);
        // Days are in UTC, because readers may be anywhere.
        let day = info.head.created_at.to_string().chars().take(10).collect();
        stats.count(&info, day, estimate);
    }
    Ok((&stats).into())
}

pub(super) fn models(look: &Look<'_>, _: Nothing) -> Result<Models> {
    // What the user ran elsewhere is the user's own matter.
    let Some(shelf) =
        RecentModelsFile::of(&look.runtime().workspace().host).filter(|_| look.caller.is_user)
    else {
        return Ok(Models { recent: Vec::new(), favourites: Vec::new() });
    };
    let models = shelf.read()?;
    let favourites = models.favourites().into_iter().map(ToOwned::to_owned).collect();
    Ok(Models { recent: models.recent.clone(), favourites })
}

pub(super) fn agents(look: &Look<'_>, _: Nothing) -> Result<List<AgentSummary>> {
    let items = look.runtime().agents().into_iter();
    let items = items.map(|(name, agent)| AgentSummary {
        name,
        model: agent.model,
        read_only: agent.read_only,
    });
    Ok(List { items: items.collect(), next: None })
}

pub(super) fn flows(look: &Look<'_>, _: Nothing) -> Result<List<FlowSummary>> {
    let summary = |SpecFile { shown: path, path: file }: SpecFile| {
        // Files that are not valid specs are left out.
        let (_, reading) = Spec::load(&file, &path).ok()?;
        let plan = stepwell_wire::Plan::from(&Plan::of(&reading.spec));
        Some(FlowSummary {
            path,
            name: plan.name,
            pattern: plan.pattern,
            variables: plan.variables,
        })
    };
    let specs = specs_in(&look.runtime().workspace().place.root);
    Ok(List { items: specs.into_iter().filter_map(summary).collect(), next: None })
}

pub(super) fn stores(look: &Look<'_>, _: Nothing) -> Result<List<ServedStore>> {
    Ok(List { items: look.site.stores.list(look.caller), next: None })
}

pub(super) fn disk(look: &Look<'_>, _: Nothing) -> Result<DiskUseTotal> {
    let used = look.well().store().maintain().disk_use()?;
    let filter = Filter { family: Family::Any, place: TrashScope::Anywhere, ..Filter::default() };
    let sessions = look.well().store().count(&filter)?.total();
    let sessions = usize::try_from(sessions).unwrap_or(usize::MAX);
    Ok(DiskUseTotal::new(&used, sessions))
}

pub(super) fn doctor(look: &Look<'_>, _: Nothing) -> Result<List<CheckFinding>> {
    let findings = examine(look.runtime().workspace(), None, Repair::No)?;
    // Where the user's other stores are is the user's own matter.
    let is_shown = |it: &&Finding| look.caller.is_user || it.check != Check::KnownStores;
    let items = findings.iter().filter(is_shown).map(CheckFinding::from).collect();
    Ok(List { items, next: None })
}

pub(super) fn server(look: &Look<'_>, _: Nothing) -> Result<ServerInfo> {
    let limits = look.site.limits;
    let may_change = look.caller.role == Role::Operator && !limits.read_only;
    Ok(ServerInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        caller: look.caller.name.clone(),
        may_change,
        may_yolo: may_change && limits.may_yolo,
        may_import: may_change && look.caller.is_user,
        may_start: may_change && look.site.stores.launcher(&look.store).is_some(),
        now: look.well().now(),
    })
}
