//! One agent's conversation on its way out: what came from the system goes back as it was,
//! and what was said here follows in the system's form.

use std::collections::{BTreeSet, HashMap};

use stepwell::log::{Head, MessageOrigin, Timeline, ViewMessage};
use stepwell::model::{About, Compacted, Foreign, Role, Time, Undone};
use stepwell::{Event, Lane, Message, Recorded, Seq, View};

use super::agent::shown_field;
use super::content::{self, refill};
use super::kept::Kept;
use super::sidecar::put;
use crate::Result;
use crate::json::fields::{Fields, push_field, quoted};
use crate::json::json_text::{Letters, laid_out};
use crate::snapshot::TimeForm;
use crate::write::unanswered::Unanswered;
use crate::write::writer::{Losses, Outlet, Purpose};

/// A session's events, those that were rewound left out.
pub(crate) struct Live {
    /// The events that count, in order.
    pub(crate) events: Vec<Recorded>,
    /// What a system keeps beside an event.
    kept: HashMap<Seq, String>,
    /// How many messages were rewound.
    pub(crate) rewound: u64,
    undone: BTreeSet<Seq>,
}

impl Live {
    /// What counts of all events, and what `system` keeps beside them.
    pub(crate) fn of(all: Vec<Recorded>, system: &str) -> Self {
        let last = all.last().map_or(Seq::ZERO, |event| event.seq);
        let timeline = Timeline::at(last, all.iter());
        let (mut kept, mut rewound, mut undone) = (HashMap::new(), 0, BTreeSet::new());
        let mut events: Vec<Recorded> = Vec::with_capacity(all.len());
        for event in all {
            if !timeline.contains(event.seq) {
                rewound += u64::from(matches!(event.event, Event::Message(_)));
                continue;
            }
            match &event.event {
                Event::Foreign(Foreign { system: of, about: About::Event, data })
                    if of == system =>
                {
                    if let Some(before) = events.last() {
                        kept.insert(before.seq, data.clone());
                    }
                }
                Event::Undone(Undone::Compaction { of }) => drop(undone.insert(*of)),
                _ => {}
            }
            events.push(event);
        }
        Self { events, kept, rewound, undone }
    }

    /// What is kept beside an event.
    pub(crate) fn beside(&self, seq: Seq) -> Option<&str> {
        self.kept.get(&seq).map(String::as_str)
    }

    /// The files that are kept whole, by where they lie; the last word on each counts.
    pub(crate) fn files(&self, system: &str) -> Vec<Kept> {
        let mut files: Vec<Kept> = Vec::new();
        for event in &self.events {
            if let Event::Foreign(Foreign { system: of, about: About::Session, data }) =
                &event.event
                && of == system
                && let Some(kept) = Kept::parse(data)
            {
                files.retain(|known| known.file != kept.file);
                files.push(kept);
            }
        }
        files
    }

    /// The messages of a lane.
    pub(crate) fn messages<'a>(&'a self, lane: &Lane) -> Vec<(&'a Recorded, &'a Message)> {
        let of_lane = |event: &'a Recorded| match &event.event {
            Event::Message(message) if message.lane == *lane => Some((event, message)),
            _ => None,
        };
        self.events.iter().filter_map(of_lane).collect()
    }

    /// The lanes in which something was said, in the order of their first words.
    pub(crate) fn lanes(&self) -> Vec<Lane> {
        let mut lanes: Vec<Lane> = Vec::new();
        for event in &self.events {
            if let Event::Message(message) = &event.event
                && !lanes.contains(&message.lane)
            {
                lanes.push(message.lane.clone());
            }
        }
        lanes
    }

    /// The events that make a lane's view, without instructions.
    fn shown(&self, lane: &Lane) -> Vec<Recorded> {
        let makes_view = |event: &&Recorded| match &event.event {
            Event::Message(message) => message.lane == *lane && message.role != Role::System,
            Event::Compacted(compacted) => compacted.lane == *lane,
            Event::Undone(_) => true,
            _ => false,
        };
        self.events.iter().filter(makes_view).cloned().collect()
    }

    /// The last compaction of a lane that was made here.
    fn own_compaction(&self, lane: &Lane) -> Option<(Seq, &Compacted)> {
        self.compaction(lane).filter(|(seq, _)| self.beside(*seq).is_none())
    }

    /// The compaction that a lane's view begins with.
    fn compaction(&self, lane: &Lane) -> Option<(Seq, &Compacted)> {
        let of_lane = self.events.iter().filter_map(|event| match &event.event {
            Event::Compacted(it) if it.lane == *lane => Some((event.seq, it)),
            _ => None,
        });
        of_lane.filter(|(seq, _)| !self.undone.contains(seq)).max_by_key(|(seq, it)| (it.to, *seq))
    }
}

/// What became of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// What was moved out of the window here: how many messages, and the summary in their place.
    pub(crate) removed: Option<(usize, Option<String>)>,
    /// When the last message was said, if it was said here.
    pub(crate) grew_at: Option<Time>,
}

/// The folder of an agent.
#[derive(Debug)]
pub(crate) struct AgentFolder<'a, 'b> {
    /// Its path.
    pub(crate) path: &'a str,
    /// What it is in.
    pub(crate) to: &'a mut Outlet<'b>,
}

/// Writes the messages of a lane into an agent's folder.
pub(crate) fn write(
    live: &Live,
    lane: &Lane,
    AgentFolder { path: folder, to }: AgentFolder<'_, '_>,
    losses: &mut Losses,
) -> Result<Written> {
    to.folder(&format!("{folder}/messages"))?;
    let recorded = live.messages(lane);
    // An agent that goes on is shown what the model is shown here.
    let as_shown = to.wishes().purpose == Purpose::Continue && live.own_compaction(lane).is_some();
    let returning = match as_shown {
        true => 0,
        false => recorded.iter().take_while(|(event, _)| live.beside(event.seq).is_some()).count(),
    };
    let (returning, own) = recorded.split_at(returning);
    let mut written = Written::default();
    let (mut places, mut next) = (Vec::new(), 0);
    for (event, message) in returning {
        let Some(kept) = live.beside(event.seq).and_then(Kept::parse) else { continue };
        let name = kept.file.rsplit('/').next().unwrap_or_default();
        let number = super::agent::number_of(std::path::Path::new(name)).unwrap_or(next);
        next = next.max(number.saturating_add(1));
        put(
            to,
            &format!("{folder}/messages/{name}"),
            &laid_out(&filled(&kept.data, message), Letters::All),
        )?;
        places.push(event.seq);
    }
    let last = returning.last().map_or(Seq::ZERO, |(event, _)| event.seq);
    if !own.is_empty() {
        let said = if as_shown { live.shown(lane) } else { uncompacted(&recorded) };
        for shown in shown_after(live, said, lane, last) {
            let source = recorded.iter().find(|(event, _)| event.seq == shown.seq);
            // A summary bears the time of its compaction.
            let at = live.events.iter().find(|event| event.seq == shown.seq).map(|event| event.at);
            let mut message = shown.message;
            if shown.made == MessageOrigin::Recorded {
                message.usage = source.and_then(|(_, said)| said.usage);
            }
            let Some(raw) = content::message(&message, losses) else { continue };
            let file = format!("{folder}/messages/message_{next}.json");
            put(to, &file, &laid_out(&envelope(&raw, next, at), Letters::All))?;
            next += 1;
            places.push(shown.place);
            written.grew_at = at.max(written.grew_at);
        }
    }
    written.removed = match as_shown {
        true => Some((0, None)),
        false => removed(live, lane, &places, losses),
    };
    Ok(written)
}

/// A message's file, with the words in it again.
fn filled(data: &str, message: &Message) -> String {
    let fields = Fields::parse(data).unwrap_or_default();
    let shown = shown_field(&fields);
    let inner = fields.object(shown).unwrap_or_default();
    fields.rewritten(&[(shown, Some(&refill(&inner, &message.parts)))])
}

/// The messages of a lane as they were recorded, without instructions.
fn uncompacted(recorded: &[(&Recorded, &Message)]) -> Vec<Recorded> {
    let said = recorded.iter().filter(|(_, message)| message.role != Role::System);
    said.map(|(event, _)| (*event).clone()).collect()
}

/// What a model would be shown of these events that came after `last`.
fn shown_after(live: &Live, said: Vec<Recorded>, lane: &Lane, last: Seq) -> Vec<ViewMessage> {
    let mut view = View::of(lane, said);
    let end = live.events.last().map_or(Seq::ZERO, |event| event.seq);
    let timeline = Timeline::at(end, live.events.iter());
    Unanswered::of(&live.events, &timeline, lane).explain(&mut view.messages);
    let mut shown = Vec::new();
    for mut it in view.messages {
        if it.seq <= last {
            // Only answers of later times to calls of earlier ones are new.
            if it.made != MessageOrigin::Results
                || it.answers.iter().all(|seq| seq.is_some_and(|s| s <= last))
            {
                continue;
            }
            let answers = it.answers.iter();
            let fresh: Vec<bool> = answers.map(|seq| seq.is_none_or(|seq| seq > last)).collect();
            let mut fresh = fresh.into_iter();
            it.message.parts.retain(|_| fresh.next().unwrap_or(true));
        }
        shown.push(it);
    }
    shown
}

/// A message's file, as the system would have written it.
fn envelope(message: &str, number: u64, at: Option<Time>) -> String {
    let mut raw = String::from("{");
    push_field(&mut raw, "message", message);
    push_field(&mut raw, "message_id", &number.to_string());
    push_field(&mut raw, "redact_message", "null");
    let at = quoted(&TimeForm::Offset.text(at.unwrap_or(Time::EPOCH)));
    push_field(&mut raw, "created_at", &at);
    push_field(&mut raw, "updated_at", &at);
    raw.push('}');
    raw
}

/// What a compaction that was made here moves out of an agent's window.
fn removed(
    live: &Live,
    lane: &Lane,
    places: &[Seq],
    losses: &mut Losses,
) -> Option<(usize, Option<String>)> {
    // The system's own comes back with its agent.
    let (_, compacted) = live.own_compaction(lane)?;
    let count = places.iter().take_while(|place| **place <= compacted.to).count();
    if places.first().is_some_and(|first| *first < compacted.from) {
        losses.count("compactions of the middle of a conversation");
        return None;
    }
    for _ in &compacted.pinned {
        losses.count("messages that a compaction was to leave");
    }
    Some((count, compacted.summary.clone()))
}

/// When a session began and was last changed.
#[derive(Clone, Copy)]
pub(crate) struct Lifetime {
    pub(crate) created: Time,
    pub(crate) updated: Time,
}

impl Lifetime {
    pub(crate) const fn of(head: &Head) -> Self {
        Self { created: head.created_at, updated: head.updated_at }
    }
}

/// An agent's state as the system would have written it.
pub(crate) fn agent_json(
    id: &str,
    kept: Option<&str>,
    written: &Written,
    lifetime: Lifetime,
) -> String {
    let Lifetime { created, updated } = lifetime;
    let from = quoted(&TimeForm::Offset.text(created));
    let to = quoted(&TimeForm::Offset.text(written.grew_at.unwrap_or(updated)));
    let mut raw = String::from("{");
    push_field(&mut raw, "agent_id", &quoted(id));
    push_field(&mut raw, "state", "{}");
    push_field(&mut raw, "conversation_manager_state", &window(written.removed.as_ref()));
    let interrupts =
        r#"{"interrupt_state":{"interrupts":{},"context":{},"activated":false},"model_state":{}}"#;
    push_field(&mut raw, "_internal_state", interrupts);
    push_field(&mut raw, "created_at", &from);
    push_field(&mut raw, "updated_at", &to);
    raw.push('}');
    let Some(kept) = kept.and_then(|kept| Fields::parse(kept).ok()) else { return raw };
    let window = written.removed.as_ref().map(|removed| window(Some(removed)));
    let mut changes = Vec::new();
    changes.extend(window.as_deref().map(|it| ("conversation_manager_state", Some(it))));
    changes.extend(written.grew_at.map(|_| ("updated_at", Some(&*to))));
    kept.rewritten(&changes)
}

fn window(removed: Option<&(usize, Option<String>)>) -> String {
    match removed {
        Some((count, Some(summary))) => format!(
            "{{\"summary_message\":{{\"role\":\"user\",\"content\":[{{\"text\":{}}}]}},\
             \"__name__\":\"SummarizingConversationManager\",\"removed_message_count\":{count}}}",
            quoted(summary)
        ),
        other => format!(
            "{{\"__name__\":\"SlidingWindowConversationManager\",\"removed_message_count\":{},\
             \"model_call_count\":0}}",
            other.map_or(0, |(count, _)| *count)
        ),
    }
}

/// A name as the system takes it: one that cannot lead into another folder.
pub(crate) fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(100).collect();
    match name.trim_start_matches('.') {
        "" => "default".to_owned(),
        name => name.to_owned(),
    }
}
