//! Changes of a session that do not run it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use stepwell::model::{Answer, Change, Choice, Edited, Undone, WorkAsked, WorkChange};
use stepwell::{Event, Lane, Recorded, Seq};
use stepwell_runtime::command::{Reply, SessionCommand};
use stepwell_runtime::{FlowOptions, Given, SayRequest};
use stepwell_wire::{
    CheckpointMade, CompactionUndone, Forked, GateAnswered, List, SaidTo, Session, StopAsked,
};

use crate::problem::{Problem, Result};
use crate::route::Nothing;
use crate::site::Act;

/// The changes. Absent fields stay; null removes a label or a goal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// The session's name.
    #[serde(default, deserialize_with = "given")]
    label: Option<Option<String>>,
    /// The new set of tags.
    tags: Option<BTreeSet<String>>,
    /// Exempt from cleanup?
    pinned: Option<bool>,
    /// The goal of the work.
    #[serde(default, deserialize_with = "given")]
    goal: Option<Option<String>>,
}

/// Distinguishes null from an absent field.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(from).map(Some)
}

pub(super) fn edit(act: &Act<'_>, edit: Edit) -> Result<Session> {
    let (well, id) = (act.look.well(), act.look.session()?);
    if let Some(Some(label)) = &edit.label {
        well.refuse_taken_label(label, Some(&id))?;
    }
    let change = |it: Option<Option<String>>| match it {
        None => Change::Keep,
        Some(None) => Change::Clear,
        Some(Some(text)) => Change::Set(text),
    };
    let had = well.info(&id)?.head.tags;
    let tags = edit.tags;
    let (tag, untag) = match &tags {
        None => Default::default(),
        Some(tags) => (tags - &had, &had - tags),
    };
    let edited = Edited {
        label: change(edit.label),
        goal: change(edit.goal),
        tag,
        untag,
        pinned: edit.pinned,
        ..Edited::default()
    };
    // A repeated request finds its tags set already: the recorded change must match this one.
    let is_same = |event: &Event| match event {
        Event::Edited(done) => {
            let tags = match &tags {
                Some(tags) => done.tag.is_subset(tags) && done.untag.is_disjoint(tags),
                None => done.tag.is_empty() && done.untag.is_empty(),
            };
            tags && done.pinned == edited.pinned
                && is_same_change(act, &edited.label, &done.label)
                && is_same_change(act, &edited.goal, &done.goal)
        }
        _ => false,
    };
    let is_done = act.done_before(&id, is_same)?.is_some();
    if edited != Edited::default() && !is_done {
        act.acting_well().edit(&id, edited)?;
    }
    Ok(well.info(&id)?.into())
}

fn is_same_change(act: &Act<'_>, wanted: &Change<String>, done: &Change<String>) -> bool {
    match (wanted, done) {
        (Change::Set(wanted), Change::Set(done)) => act.as_recorded(wanted) == *done,
        (wanted, done) => wanted == done,
    }
}

pub(super) fn trash(act: &Act<'_>, _: Nothing) -> Result<List<stepwell::SessionId>> {
    let (well, id) = (act.look.well(), act.look.session()?);
    // Asked for again, it is there already.
    if well.info(&id)?.trashed_at.is_some() {
        return Ok(List { items: Vec::new(), next: None });
    }
    let Reply::Deleted { removal, .. } = act.acting().delete_in(&act.look.store.well, vec![id])?
    else {
        return Err(unexpected());
    };
    match removal.left.into_iter().next() {
        Some((_, error)) => Err(error.into()),
        None => Ok(List { items: removal.taken, next: None }),
    }
}

pub(super) fn restore(act: &Act<'_>, _: Nothing) -> Result<List<stepwell::SessionId>> {
    let (well, id) = (act.look.well(), act.look.session()?);
    if well.info(&id)?.trashed_at.is_none() {
        return Ok(List { items: Vec::new(), next: None });
    }
    Ok(List { items: act.acting_well().restore(&id)?, next: None })
}

/// A message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Say {
    /// The text.
    text: String,
    /// The lane; required for a flow.
    lane: Option<String>,
    /// Interrupt the model's current call for it?
    #[serde(default)]
    now: bool,
}

pub(super) fn say(act: &Act<'_>, say: Say) -> Result<SaidTo> {
    if say.text.trim().is_empty() {
        return Err(Problem::invalid("the text is empty").at("text"));
    }
    let wrong =
        |error: stepwell::model::InvalidName| Problem::invalid(error.to_string()).at("lane");
    let lane = say.lane.map(|lane| lane.parse::<Lane>().map_err(wrong)).transpose()?;
    let id = act.look.session()?;
    let is_same = |event: &Event| match event {
        Event::Said(said) => {
            said.text == act.as_recorded(&say.text)
                && said.now == say.now
                && lane.as_ref().is_none_or(|lane| *lane == said.lane)
        }
        _ => false,
    };
    if act.done_before(&id, is_same)?.is_some() {
        let running = act.look.well().info(&id)?.held.is_some();
        return Ok(SaidTo { id, running });
    }
    let hears = act.acting().say(&id, SayRequest { text: say.text, lane, now: say.now })?;
    Ok(SaidTo { id, running: hears.is_running() })
}

/// A stop request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stop {
    /// The reason, for later readers of the session.
    reason: Option<String>,
}

pub(super) fn stop(act: &Act<'_>, stop: Stop) -> Result<StopAsked> {
    let id = act.look.session()?;
    let asked = act.acting().stop(&id, stop.reason)?.holder.to_string();
    Ok(StopAsked { id, asked })
}

/// A checkpoint for the current point.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Name {
    /// The checkpoint's name.
    name: String,
}

pub(super) fn checkpoint(act: &Act<'_>, named: Name) -> Result<CheckpointMade> {
    let id = act.look.session()?;
    let name = act.as_recorded(&named.name);
    let is_same = |event: &Event| match event {
        Event::Checkpoint(made) => made.name == name,
        // The session's runner received the request.
        Event::WorkAsked(WorkAsked {
            change: WorkChange::Checkpoint { name: asked, .. }, ..
        }) => *asked == name,
        _ => false,
    };
    if let Some(Recorded { seq, .. }) = act.done_before(&id, is_same)? {
        return Ok(CheckpointMade { id, checkpoint: named.name, seq });
    }
    let metadata = Default::default();
    match act.run(SessionCommand::Checkpoint { name: named.name, metadata })? {
        Reply::CheckpointMade(made) => Ok(made),
        _ => Err(unexpected()),
    }
}

/// The point of a fork.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkAt {
    /// The last shared event; all are shared, if absent.
    at: Option<u64>,
    /// The fork's name.
    label: Option<String>,
}

pub(super) fn fork(act: &Act<'_>, fork: ForkAt) -> Result<Forked> {
    let at = fork.at.map(|at| at.to_string());
    match act.run(SessionCommand::Fork { at, label: fork.label })? {
        Reply::Forked(forked) => Ok(forked),
        _ => Err(unexpected()),
    }
}

/// An answer: `choice` for a tool's question, `text` for a flow's.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GiveAnswer {
    /// One of the question's `offers`.
    choice: Option<Choice>,
    /// The reason for the model. Only a denial has one.
    reason: Option<String>,
    /// The answer as text.
    text: Option<String>,
    /// The seq of the question that the person saw. If the session was rewound since, the answer is
    /// refused.
    seen: Option<u64>,
}

impl GiveAnswer {
    fn answer(self) -> Result<Answer> {
        match (self.choice, self.text, self.reason) {
            (Some(choice), None, reason) => choice
                .answer(reason.filter(|reason| !reason.trim().is_empty()))
                .ok_or_else(|| Problem::invalid("only a denial has a `reason`")),
            (None, Some(text), None) => Ok(Answer::Text(text)),
            _ => Err(Problem::invalid(
                "an answer is a `choice`, which a `reason` may follow, or a `text`",
            )),
        }
    }
}

/// Is the recorded answer the same as this one?
fn is_same_answer(recorded: &Answer, given: &Answer) -> bool {
    match (recorded, given) {
        // In a flow an empty answer means the default.
        (Answer::Text(text), given) => *text == *given.text() || given.text().trim().is_empty(),
        (recorded, Answer::Text(text)) => *recorded == Answer::read(text),
        (recorded, given) => recorded == given,
    }
}

pub(super) fn answer(act: &Act<'_>, given: GiveAnswer) -> Result<GateAnswered> {
    let (id, gate) = (act.look.session()?, act.look.parameter("gate").to_owned());
    let seen = given.seen.map(Seq::new);
    let answer = given.answer()?;
    let as_recorded = match answer.clone() {
        Answer::Text(text) => Answer::Text(act.as_recorded(&text)),
        Answer::Deny { reason, never } => {
            Answer::Deny { reason: reason.map(|reason| act.as_recorded(&reason)), never }
        }
        allow @ Answer::Allow { .. } => allow,
    };
    let is_same = |event: &Event| matches!(event, Event::GateAnswered(done) if is_same_answer(&done.answer, &as_recorded));
    if let Some(Recorded { seq, .. }) = act.done_before(&id, is_same)? {
        let info = act.look.well().info(&id)?;
        let (goes_on, counts) = (info.held.is_some(), counts(act, &id, seq)?);
        let resume = act.look.well().top_of(&id)?;
        let stopped = !goes_on && act.look.well().info(&resume)?.head.was_stopped();
        return Ok(GateAnswered { session_id: id, gate, seq, goes_on, counts, stopped, resume });
    }
    let given = Given { gate: Some(gate), answer };
    let done = act.acting().answer_having_seen(&id, &given, &FlowOptions::default(), seen)?;
    let counts = counts(act, &done.session, done.seq)?;
    Ok(GateAnswered {
        session_id: done.session,
        gate: done.gate,
        seq: done.seq,
        goes_on: done.goes_on,
        counts,
        stopped: done.stopped,
        resume: done.resume,
    })
}

/// Does an answer count for the user who runs the server?
fn counts(act: &Act<'_>, id: &stepwell::SessionId, answer: Seq) -> Result<bool> {
    Ok(!act.look.well().weigh(id)?.ignored.contains(&answer))
}

pub(super) fn undo_compaction(act: &Act<'_>, _: Nothing) -> Result<CompactionUndone> {
    let (well, id) = (act.look.well(), act.look.session()?);
    let is_same = |event: &Event| matches!(event, Event::Undone(Undone::Compaction { .. }));
    if let Some(Recorded { event: Event::Undone(Undone::Compaction { of: undone }), .. }) =
        act.done_before(&id, is_same)?
    {
        let tokens = stepwell_runtime::inspect::tokens(act.look.runtime(), well, &id)?;
        return Ok(CompactionUndone { id, undone, tokens_before: tokens, tokens_after: tokens });
    }
    match act.run(SessionCommand::UndoCompaction)? {
        Reply::CompactionUndone(undone) => Ok(undone),
        Reply::NoCompaction(id) => {
            Err(Problem::conflict(format!("{id} has no compaction to take back")))
        }
        _ => Err(unexpected()),
    }
}

/// A command answered another one's reply: a defect of ours.
fn unexpected() -> Problem {
    Problem::failed("the command gave another answer")
}
