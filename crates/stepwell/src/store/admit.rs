//! Which events a session accepts in its current state. Pure, but for reading the few keyed events
//! that some rare kinds need.

use super::rows::Facts;
use crate::error::{Error, Result};
use crate::log::{Head, Timeline};
use crate::model::{
    Change, Edited, Erased, Event, Gate, GateAnswered, Kind, MAX_NAME_BYTES, Message, Move, Origin,
    PhaseSet, Recorded, Restored, Rewound, Role, Seq, Undone,
};

/// The most tags of a session, so that its head stays small.
const MAX_TAGS: usize = 64;

/// The most bytes of metadata, and of a goal, so that the head stays small.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// The most bytes of an event's key: as long as a path can be.
const MAX_KEY_BYTES: usize = 4 << 10;

/// Reads a session's keyed events, in order.
pub(crate) type Past<'a> = dyn FnMut(Facts<'_>) -> Result<Vec<Recorded>> + 'a;

/// Who appends an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The runner that holds the session's lease.
    Owner,
    /// Anyone.
    Anyone,
}

/// Checks that the session accepts this event next, and fills in what only the store can know.
pub(crate) fn admit(
    event: Event,
    head: &Head,
    writer: Writer,
    past: &mut Past<'_>,
) -> Result<Event> {
    let refuse = |why: String| Error::Illegal {
        session: head.id.clone(),
        kind: event.kind().to_owned(),
        why,
    };
    if event.kind().len() > MAX_NAME_BYTES {
        return Err(refuse(format!("a kind has at most {MAX_NAME_BYTES} bytes")));
    }
    if event.key().is_some_and(|key| key.len() > MAX_KEY_BYTES) {
        return Err(refuse(format!("its name or path has more than {MAX_KEY_BYTES} bytes")));
    }
    match &event {
        Event::Created(_) => Err(refuse("the session has begun already".to_owned())),
        // A scrub records its own event. An imported log brings the events of earlier scrubs:
        // without them, replaced bodies would pass for the original ones.
        Event::Scrubbed(scrubbed) => {
            let earlier = Seq::FIRST..=head.seq;
            let erased = scrubbed.erased.iter().map(|Erased { seq, .. }| *seq);
            let ranges = scrubbed.pruned.iter().chain(scrubbed.hidden.iter());
            let named = erased.chain(ranges.flat_map(|(first, last)| [first, last]));
            let stray = named.into_iter().find(|seq| !earlier.contains(seq));
            match stray {
                None => Ok(event),
                Some(seq) => {
                    Err(refuse(format!("it has no event {seq}; its events are 1..{}", head.seq)))
                }
            }
        }
        Event::Phase(change) => {
            let (Some(set), Some(phase)) = (head.phases, head.phase) else {
                return Err(refuse("the session has no phases".to_owned()));
            };
            if change.from != phase {
                return Err(refuse(format!("it is in phase {phase}, not {}", change.from)));
            }
            match set.judge(phase, change.to, head.discuss_returns) {
                Move::Legal | Move::Stay => Ok(event),
                Move::Illegal(legal) => Err(refuse(format!(
                    "from {phase} it cannot move to {}; {}",
                    change.to,
                    choices(&legal)
                ))),
            }
        }
        Event::Edited(edited) => check_edit(edited, head).map_err(refuse).map(|()| event),
        Event::Compacted(compacted) => {
            if compacted.from == Seq::ZERO
                || compacted.from > compacted.to
                || compacted.to > head.seq
            {
                let (from, to) = (compacted.from, compacted.to);
                return Err(refuse(format!(
                    "{from}..{to} is not a range of its events 1..{}",
                    head.seq
                )));
            }
            Ok(event)
        }
        Event::Gate(gate) => check_gate(gate, head, past)?.map_err(refuse).map(|()| event),
        Event::GateAnswered(answer) => {
            check_answer(answer, head, writer, past)?.map_err(refuse).map(|()| event)
        }
        Event::Rewinding(crate::model::Rewinding::Begun { to, .. })
            if *to == Seq::ZERO || *to > head.seq =>
        {
            Err(refuse(format!("it has no event {to}; its events are 1..{}", head.seq)))
        }
        Event::Rewound(rewound) => {
            if rewound.to == Seq::ZERO || rewound.to > head.seq {
                return Err(refuse(format!(
                    "it has no event {}; its events are 1..{}",
                    rewound.to, head.seq
                )));
            }
            let mut rewound = rewound.clone();
            rewound.restored = restored(rewound.to, head.phases, past)?;
            Ok(rewound.into())
        }
        Event::Undone(undone) => {
            complete_undo(undone, head, past)?.map_err(refuse).map(Event::from)
        }
        Event::Record(record) => record.check().map_err(refuse).map(|()| event),
        Event::Message(message) => {
            let Some(said) = message.said else { return Ok(event) };
            check_taken(message, said, head, past)?.map_err(refuse).map(|()| event)
        }
        Event::Unknown(unknown) => {
            let known = Kind::ALL.iter().any(|kind| kind.as_str() == unknown.kind);
            let json: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&unknown.body);
            if json.is_err()
                || (known && unknown.version <= Event::newest_version(&unknown.kind))
                || unknown.kind.is_empty()
            {
                return Err(refuse("it is not a well-formed event of a newer kind".to_owned()));
            }
            Ok(event)
        }
        _ => Ok(event),
    }
}

/// The state at an earlier point, which a rewind or its undoing restores.
fn restored(at: Seq, phases: Option<PhaseSet>, past: &mut Past<'_>) -> Result<Restored> {
    let kinds =
        [Kind::Phase, Kind::Edited, Kind::Gate, Kind::GateAnswered, Kind::Rewound, Kind::Undone];
    let facts = past(Facts::of(&kinds))?;
    let timeline = Timeline::at(at, facts.iter());
    let mut restored = Restored { phase: phases.map(PhaseSet::initial), ..Restored::default() };
    for fact in facts.iter().filter(|fact| timeline.contains(fact.seq)) {
        match &fact.event {
            // A fork may have other phases than its parent.
            Event::Phase(change) if phases.is_some_and(|set| set.has(change.to)) => {
                match (change.from, change.to) {
                    (crate::model::Phase::Plan, crate::model::Phase::Discuss) => {
                        restored.discuss_returns += 1;
                    }
                    (_, crate::model::Phase::Idle) => restored.discuss_returns = 0,
                    _ => {}
                }
                restored.phase = Some(change.to);
            }
            Event::Edited(edited) => edited.goal.apply(&mut restored.goal),
            Event::Gate(_) => restored.open_gates += 1,
            Event::GateAnswered(_) => {
                restored.open_gates = restored.open_gates.saturating_sub(1);
            }
            _ => {}
        }
    }
    Ok(restored)
}

/// A message delivers queued messages of its lane in order, each once. A fork delivers only its
/// own, not its parent's.
fn check_taken(message: &Message, said: Seq, head: &Head, past: &mut Past<'_>) -> Check<()> {
    let own = match head.origin {
        Origin::Fork { at, .. } => at.next(),
        _ => Seq::FIRST,
    };
    if message.role != Role::User {
        return Ok(Err("only a user's message can deliver a queued message".to_owned()));
    }
    let facts = Facts { from: own.max(said), ..Facts::under(&[Kind::Said], message.lane.as_str()) };
    let there = past(facts)?.first().is_some_and(|fact| fact.seq == said);
    Ok(if there { Ok(()) } else { Err(format!("its lane has no queued message at {said}")) })
}

type Check<T> = Result<std::result::Result<T, String>>;

/// The events of one gate on the live branch, found by its id, so that the number of gates does not
/// matter.
fn live_gate(id: &str, head: &Head, past: &mut Past<'_>) -> Result<Vec<Recorded>> {
    let facts = past(Facts::under(&[Kind::Gate, Kind::GateAnswered], id))?;
    if facts.is_empty() {
        return Ok(facts);
    }
    let moves = past(Facts::of(&[Kind::Rewound, Kind::Undone]))?;
    let timeline = Timeline::at(head.seq, moves.iter());
    Ok(facts.into_iter().filter(|fact| timeline.contains(fact.seq)).collect())
}

fn check_gate(gate: &Gate, head: &Head, past: &mut Past<'_>) -> Check<()> {
    // A runner that does not accept a gate's answer asks it again.
    let last = live_gate(&gate.id, head, past)?.pop();
    let open = last.is_some_and(|fact| matches!(fact.event, Event::Gate(_)));
    Ok(if open { Err(format!("gate {:?} is already open", gate.id)) } else { Ok(()) })
}

fn check_answer(
    answer: &GateAnswered,
    head: &Head,
    writer: Writer,
    past: &mut Past<'_>,
) -> Check<()> {
    if let Some(seen) = answer.seen {
        let moves = past(Facts::of(&[Kind::Rewound, Kind::Undone]))?;
        if !Timeline::at(head.seq, moves.iter()).contains(seen) {
            return Ok(Err(format!(
                "event {seen}, after which it was given, has been rewound since"
            )));
        }
    }
    let last = live_gate(&answer.id, head, past)?.pop();
    let asked_at = last.as_ref().map_or(Seq::ZERO, |fact| fact.seq);
    Ok(match last.map(|fact| fact.event) {
        Some(Event::Gate(_)) if answer.seen.is_some_and(|seen| seen < asked_at) => {
            Err(format!("gate {:?} was asked again since, at {asked_at}", answer.id))
        }
        Some(Event::Gate(gate)) => {
            let secret = gate.call.is_some_and(|call| call.holds_secret);
            match secret && writer == Writer::Anyone && answer.answer.allows() {
                true => Err("the call holds a secret that is not stored, so only its runner can \
                             allow it"
                    .to_owned()),
                false => Ok(()),
            }
        }
        Some(Event::GateAnswered(GateAnswered { who, .. })) => {
            Err(format!("gate {:?} was answered by {who}", answer.id))
        }
        _ => Err(format!("unknown gate {:?}", answer.id)),
    })
}

fn complete_undo(undone: &Undone, head: &Head, past: &mut Past<'_>) -> Check<Undone> {
    let facts = past(Facts::of(&[Kind::Compacted, Kind::Rewound, Kind::Undone]))?;
    let timeline = Timeline::at(head.seq, facts.iter());
    let (Undone::Compaction { of } | Undone::Rewind { of, .. }) = undone;
    let again = facts.iter().filter(|fact| timeline.contains(fact.seq)).any(|fact| {
        matches!(&fact.event,
            Event::Undone(Undone::Compaction { of: other } | Undone::Rewind { of: other, .. })
            if other == of)
    });
    if again {
        return Ok(Err(format!("event {of} was already undone")));
    }
    let target = facts.iter().find(|fact| fact.seq == *of).map(|fact| &fact.event);
    Ok(match (undone, target) {
        (Undone::Compaction { .. }, Some(Event::Compacted(_))) => Ok(undone.clone()),
        (
            Undone::Rewind { of, .. },
            Some(
                Event::Rewound(Rewound { scope, .. }) | Event::Undone(Undone::Rewind { scope, .. }),
            ),
        ) => {
            let (of, scope) = (*of, *scope);
            Ok(Undone::Rewind { of, scope, restored: restored(of.prev(), head.phases, past)? })
        }
        _ => Err(format!("event {of} is not a compaction or rewind that can be undone")),
    })
}

pub(crate) fn check_edit(edited: &Edited, head: &Head) -> std::result::Result<(), String> {
    let name = |what: &str, text: &str| {
        if text.is_empty() || text.len() > MAX_NAME_BYTES || text.chars().any(char::is_control) {
            Err(format!("a {what} has 1 to {MAX_NAME_BYTES} bytes and no control characters"))
        } else {
            Ok(())
        }
    };
    if let Change::Set(label) = &edited.label {
        name("label", label)?;
        if label.starts_with('@') {
            return Err("a label cannot start with @, because @last does".to_owned());
        }
    }
    edited.tag.iter().try_for_each(|tag| name("tag", tag))?;
    let kept = head.tags.union(&edited.tag).filter(|tag| !edited.untag.contains(*tag));
    if kept.count() > MAX_TAGS {
        return Err(format!("a session has at most {MAX_TAGS} tags"));
    }
    if matches!(&edited.goal, Change::Set(goal) if goal.len() > MAX_ATTRIBUTE_BYTES) {
        return Err(format!("a goal has at most {MAX_ATTRIBUTE_BYTES} bytes"));
    }
    let mut named = edited.pin_messages.union(&edited.unpin_messages);
    if let Some(seq) = named.find(|seq| !(Seq::FIRST..=head.seq).contains(*seq)) {
        return Err(format!("it has no event {seq}; its events are 1..{}", head.seq));
    }
    if !edited.metadata.is_empty() {
        let mut merged = head.metadata.clone();
        merged.extend(edited.metadata.clone());
        let size = serde_json::to_vec(&merged).map_or(usize::MAX, |bytes| bytes.len());
        if size > MAX_ATTRIBUTE_BYTES {
            return Err(format!(
                "its metadata would have {size} bytes; at most {MAX_ATTRIBUTE_BYTES} fit"
            ));
        }
    }
    Ok(())
}

fn choices(legal: &[crate::model::Phase]) -> String {
    if legal.is_empty() {
        return "this phase is final".to_owned();
    }
    let names: Vec<_> = legal.iter().map(|phase| phase.as_str()).collect();
    format!("expected one of: {}", names.join(", "))
}
