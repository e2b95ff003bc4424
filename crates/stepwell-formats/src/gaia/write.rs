//! Writing an agent's state, as Python does.

use std::io::Write;

use stepwell::model::{Driver, Phase, PhaseChanged, PhaseSet, Time};
use stepwell::{Event, Lane, SessionId, Status, Stepwell};

use super::history::PhaseHistory;
use super::read::{entries, last_error};
use super::{FIELDS, FINAL, SYSTEM};
use crate::json::fields::{Fields, quoted, text_of};
use crate::snapshot::{
    Aside, Escapes, Holds, LAYOUT, Layout, Live, Object, Style, TimeForm, list, moment, name,
    number, still, styled, users_metadata,
};
use crate::write::facts::{Says, count_facts};
use crate::write::writer::{Exported, Losses, SUBAGENTS};
use crate::{Error, Result};

/// How GAIA-OPS lays out a state; one that came otherwise goes back as it came.
const USUAL: Layout = Layout::Lines(2);

/// Writes a state.
pub(super) fn write(well: &Stepwell, id: &SessionId, to: &mut dyn Write) -> Result<Exported> {
    let mut live = Live::read(well, id, SYSTEM, &[Lane::main()])?;
    let mut exported = std::mem::take(&mut live.exported);
    live.said.iter().for_each(|_| exported.losses.count("messages"));
    let head = &live.head;
    // The status, the cost and the agent are named where they are put aside.
    let says = Says {
        status: Some((head.status, head.stop_reason)),
        error: true,
        task: &live.created.task,
        agent: &head.agent,
        cost: true,
        updated: true,
        ..Says::default()
    };
    count_facts(&mut exported.losses, head, &says);
    // It keeps the last one, and how many there were.
    let errors = live.others.iter().filter(|it| matches!(it.event, Event::Error(_)));
    errors.skip(1).for_each(|_| exported.losses.count("errors before the last"));
    let text = whole(&live, &mut exported.losses);
    let layout = live.kept.as_deref().and_then(Layout::kept_in).unwrap_or(USUAL);
    let style = Style { layout, escapes: Escapes::Ascii };
    to.write_all(styled(&text, style).as_bytes()).map_err(Error::Write)?;
    if !well.subagents(id)?.is_empty() {
        exported.losses.count(SUBAGENTS);
    }
    Ok(exported)
}

fn whole(live: &Live, losses: &mut Losses) -> String {
    let head = &live.head;
    let kept = live.kept.as_deref().and_then(|raw| Fields::parse(raw).ok()).unwrap_or_default();
    let source = head.source.as_ref().filter(|source| source.system == SYSTEM);
    let id = source.map_or_else(|| head.id.to_string(), |source| source.id.clone());
    let phase = phase(live);
    let trail = Trail::of(live, &kept);
    let form = TimeForm::of(kept.raw("created_at"));
    let mut object = Object::new();
    object.put_text("agent_id", &id);
    let agent = if head.agent.is_empty() { "unknown" } else { &head.agent };
    let same = |_: &str| name(&kept, "agent_name") == agent;
    object.put("agent_name", still(kept.raw("agent_name"), same, &quoted(agent)));
    let purpose = if live.created.task.is_empty() { "general" } else { &live.created.task };
    object.put_text("purpose", purpose);
    for (field, at) in [("created_at", head.created_at), ("last_updated", head.updated_at)] {
        let same = |raw: &str| moment(raw).is_none_or(|it| it == at);
        object.put(field, still(kept.raw(field), same, &quoted(&form.text(at))));
    }
    let same = |_: &str| trail.is_as_told();
    object.put("phase", still(kept.raw("phase"), same, &quoted(phase.as_str())));
    let is_final = PhaseSet::Lifecycle.is_final(phase);
    let aside = Aside::write(live, &id, &holds(live), losses);
    object.put("metadata", &users_metadata(&head.metadata, kept.raw("metadata"), &[], aside));
    object.put("resume_ready", if head.ready { "true" } else { "false" });
    let told = trail.told.iter().cloned();
    object.put("history", &list(told.chain(trail.new.iter().map(|it| passage(it, form)))));
    let errors = head.errors.to_string();
    let same = |_: &str| number(&kept, "error_count") == Some(head.errors);
    object.put("error_count", still(kept.raw("error_count"), same, &errors));
    object.put("last_error", &failure(live, &kept));
    let mut known = [&FIELDS[..], &[LAYOUT]].concat();
    if is_final {
        known.extend(FINAL);
        finish(&mut object, live, &kept, &trail);
    }
    object.put_others(&kept, &known);
    object.end()
}

/// What finalizing adds.
fn finish(object: &mut Object, live: &Live, kept: &Fields<'_>, trail: &Trail) {
    let head = &live.head;
    let same = |_: &str| trail.is_as_told();
    let now = quoted(&TimeForm::of(kept.raw("created_at")).text(trail.ended));
    object.put("finalized_at", still(kept.raw("finalized_at"), same, &now));
    if let Some(summary) = &head.summary {
        let same = |raw: &str| text_of(raw).is_some_and(|it| it == *summary);
        object.put("summary", still(kept.raw("summary"), same, &quoted(summary)));
    }
    let seconds = trail.ended.since(head.created_at).as_secs_f64();
    let now = serde_json::to_string(&seconds).unwrap_or_default();
    object.put("duration_seconds", still(kept.raw("duration_seconds"), same, &now));
}

/// An agent's way: what was told there, and what came to it here.
struct Trail {
    /// The entries of the history there, if it still is the front of the way.
    told: Vec<String>,
    /// The moves since.
    new: Vec<(Time, PhaseChanged)>,
    /// When the last of them all was made.
    ended: Time,
    goes_on: bool,
}

impl Trail {
    fn of(live: &Live, kept: &Fields<'_>) -> Self {
        let source = live.head.source.as_ref();
        let came_from = source.is_some_and(|source| source.system == SYSTEM);
        let (mut moves, known) = (moves(live), PhaseHistory::of(kept).moves);
        let goes_on = came_from
            && known.len() <= moves.len()
            && moves.iter().zip(&known).all(|((_, one), (_, other))| one == other);
        let ended = moves.last().map_or(live.head.updated_at, |(at, _)| *at);
        let told = match goes_on {
            true => entries(kept).into_iter().map(str::to_owned).collect(),
            false => Vec::new(),
        };
        let new = if goes_on { moves.split_off(known.len()) } else { moves };
        Self { told, new, ended, goes_on }
    }

    /// Is it just what was told there?
    fn is_as_told(&self) -> bool {
        self.goes_on && self.new.is_empty()
    }
}

/// Where the agent is. A session without such phases is where its status says.
fn phase(live: &Live) -> Phase {
    let head = &live.head;
    match (head.phase, head.status) {
        (Some(phase), _) if PhaseSet::Lifecycle.has(phase) => phase,
        (_, Status::Success) => Phase::Completed,
        (_, Status::Failed) => Phase::Failed,
        (_, Status::Abandoned) => Phase::Abandoned,
        (_, Status::Paused) => Phase::Approval,
        (Some(Phase::Idle | Phase::Initialize), _) => Phase::Initializing,
        (Some(Phase::Discuss), _) => Phase::Investigating,
        (Some(Phase::Plan), _) => Phase::Planning,
        (Some(Phase::Verify | Phase::Runtime), _) => Phase::Validating,
        _ => Phase::Executing,
    }
}

/// How it came to be there.
fn moves(live: &Live) -> Vec<(Time, PhaseChanged)> {
    if live.head.phases == Some(PhaseSet::Lifecycle) {
        let moves = live.others.iter().filter_map(|it| match &it.event {
            Event::Phase(change) => Some((it.at, change.clone())),
            _ => None,
        });
        return moves.collect();
    }
    let (from, to) = (PhaseSet::Lifecycle.initial(), phase(live));
    let at = live.head.updated_at;
    if from == to { Vec::new() } else { vec![(at, PhaseChanged { from, to })] }
}

fn passage((at, change): &(Time, PhaseChanged), form: TimeForm) -> String {
    let mut entry = Object::new();
    entry.put_text("from_phase", change.from.as_str());
    entry.put_text("to_phase", change.to.as_str());
    entry.put_text("timestamp", &form.text(*at));
    entry.end()
}

fn failure(live: &Live, kept: &Fields<'_>) -> String {
    let Some(last) = &live.head.last_error else {
        return "null".to_owned();
    };
    let (known, at) = last_error(kept);
    let updated = kept.raw("last_updated").and_then(moment);
    let at = at.map(|at| updated.map_or(at, |updated| at.min(updated)));
    // The head repeats the front of a long message.
    let same = known.is_some_and(|known| known.starts_with(&last.message))
        && at.is_none_or(|at| at == last.at);
    let mut error = Object::new();
    error.put_text("message", &last.message);
    let form = TimeForm::of(kept.raw("created_at"));
    error.put_text("timestamp", &form.text(last.at));
    let now = error.end();
    still(kept.raw("last_error"), |_| same, &now).to_owned()
}

fn holds(live: &Live) -> Vec<Holds> {
    let mut holds = vec![Holds::Errors, Holds::Agent];
    if live.head.phases == Some(PhaseSet::Lifecycle) {
        holds.push(Holds::Phases);
        if live.head.driver == Driver::External {
            holds.push(Holds::Status);
        }
    }
    holds
}
