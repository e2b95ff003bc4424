//! What counts of a session, as a writer needs it.

use std::collections::{HashMap, HashSet};

use stepwell::log::{Head, MessageOrigin, Timeline, ViewMessage};
use stepwell::model::{About, Foreign, Part, Role, Time, Undone};
use stepwell::{Created, Event, Lane, Message, Recorded, Seq, SessionId, Stepwell, View};

use crate::write::unanswered::Unanswered;
use crate::write::writer::{Exported, FOREIGN, each_event};
use crate::{Error, Result};

/// What counts of a session.
#[derive(Debug)]
pub(crate) struct Live {
    /// How it stands.
    pub(crate) head: Head,
    /// How it began.
    pub(crate) created: Created,
    /// The conversation. Of a session that came from the system that it is written for, as it
    /// was recorded; of another, or of one that was compacted, as a model would be shown it.
    pub(crate) said: Vec<Said>,
    /// What the system itself kept about the session.
    pub(crate) kept: Option<String>,
    /// Everything else that was recorded and not taken back, in order.
    pub(crate) others: Vec<Recorded>,
    /// The last step.
    pub(crate) last_step: Option<Recorded>,
    /// What is known of the export so far.
    pub(crate) exported: Exported,
}

/// One thing that was said.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are messages")]
pub(crate) enum Said {
    /// A message, and what its system kept beside it. It holds one result at the most.
    Message { seq: Seq, at: Time, message: Message, kept: Option<String> },
    /// What its system had in the place of a message.
    Raw(String),
}

/// How a conversation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// As it was recorded.
    Recorded,
    /// As a model would be shown it.
    Shown,
}

impl Live {
    /// Reads a session for a system. `lanes` are those whose messages are one conversation
    /// there; the first is the one that is shown to a model.
    pub(crate) fn read(
        well: &Stepwell,
        id: &SessionId,
        system: &str,
        lanes: &[Lane],
    ) -> Result<Self> {
        let mut events = Vec::new();
        let damage = each_event(well, id, &mut |event| {
            events.push(event);
            Ok(())
        })?;
        let head = well.info(id)?.head;
        let exported = Exported {
            sessions: 1,
            events: events.len() as u64,
            damaged: damage.into_iter().map(|damage| (id.clone(), damage)).collect(),
            ..Exported::default()
        };
        let begun = events.iter().rev().find_map(|event| match &event.event {
            Event::Created(created) => Some((**created).clone()),
            _ => None,
        });
        let Some(created) = begun else {
            return Err(Error::Store(stepwell::Error::NoSession(id.clone())));
        };
        let at = events.last().map_or(Seq::ZERO, |last| last.seq);
        let timeline = Timeline::at(at, events.iter());
        let came_from = created.source.as_ref().is_some_and(|source| source.system == system);
        let how = match came_from && !is_compacted(&events, &timeline, &lanes[0]) {
            true => How::Recorded,
            false => How::Shown,
        };
        let mut shown = match how {
            How::Recorded => Vec::new(),
            How::Shown => View::of(&lanes[0], moves(&events)).messages,
        };
        Unanswered::of(&events, &timeline, &lanes[0]).explain(&mut shown);
        let mut live = Self {
            head,
            created,
            said: Vec::new(),
            kept: None,
            others: Vec::new(),
            last_step: None,
            exported,
        };
        events.retain(|event| timeline.contains(event.seq));
        let beside = beside(&events, system);
        for recorded in events {
            live.add(recorded, system, lanes, how);
        }
        for ViewMessage { seq, made, answers, message, .. } in shown {
            match made {
                MessageOrigin::Results => {
                    for (part, from) in message.parts.into_iter().zip(answers) {
                        live.hear(from.unwrap_or(seq), Message::new(Role::Tool, vec![part]));
                    }
                }
                _ => live.hear(seq, message),
            }
        }
        live.complete(&beside);
        Ok(live)
    }

    /// Takes in what was recorded; the conversation only if it is written as it was recorded.
    fn add(&mut self, recorded: Recorded, system: &str, lanes: &[Lane], how: How) {
        match recorded.event {
            Event::Message(message) if lanes.contains(&message.lane) => match how {
                How::Recorded => self.hear(recorded.seq, message),
                How::Shown if message.lane == lanes[0] => {}
                How::Shown => self.exported.losses.count("messages of other lanes"),
            },
            Event::Foreign(foreign) if foreign.system == system => match foreign.about {
                About::Event => {}
                About::Session => self.kept = Some(foreign.data),
                About::Itself if how == How::Recorded => self.said.push(Said::Raw(foreign.data)),
                About::Itself => self.exported.losses.count("messages of an unknown kind"),
            },
            Event::Foreign(foreign) => self.exported.losses.name(FOREIGN, foreign.system),
            Event::Compacted(compacted) if compacted.lane == lanes[0] => {
                self.exported.losses.count("messages behind a summary");
            }
            Event::Step(_) => self.last_step = Some(recorded),
            Event::Created(_)
            | Event::Status(_)
            | Event::Rewound(_)
            | Event::Undone(_)
            | Event::Scrubbed(_) => {}
            _ => self.others.push(recorded),
        }
    }

    /// Takes a message in; what belongs to it is put to it later.
    fn hear(&mut self, seq: Seq, message: Message) {
        let at = self.head.created_at;
        let several = message.role == Role::Tool && message.parts.len() > 1;
        if !several {
            return self.said.push(Said::Message { seq, at, message, kept: None });
        }
        for part in message.parts {
            let role = if matches!(part, Part::ToolResult(_)) { Role::Tool } else { Role::User };
            let message = Message::new(role, vec![part]).in_lane(message.lane.clone());
            self.said.push(Said::Message { seq, at, message, kept: None });
        }
    }

    /// Puts to each message what belongs to it.
    fn complete(&mut self, beside: &HashMap<Seq, Beside>) {
        let mut used = HashSet::new();
        for said in &mut self.said {
            if let Said::Message { seq, at, message, kept } = said
                && let Some(of) = beside.get(seq)
            {
                *at = of.at;
                // Of a message that was taken apart the first part has it.
                if used.insert(*seq) {
                    message.usage = of.usage;
                    kept.clone_from(&of.kept);
                }
            }
        }
    }
}

/// What belongs to a message and is not shown to a model.
struct Beside {
    at: Time,
    usage: Option<stepwell::model::Usage>,
    kept: Option<String>,
}

/// What belongs to each message that counts.
fn beside(events: &[Recorded], system: &str) -> HashMap<Seq, Beside> {
    let mut beside = HashMap::new();
    let mut last = None;
    for Recorded { seq, at, event, .. } in events {
        match event {
            Event::Message(message) => {
                let (at, usage) = (*at, message.usage);
                beside.insert(*seq, Beside { at, usage, kept: None });
                last = Some(*seq);
            }
            Event::Foreign(Foreign { system: whose, about: About::Event, data })
                if whose == system =>
            {
                let of: Option<&mut Beside> = last.take().and_then(|seq| beside.get_mut(&seq));
                if let Some(of) = of {
                    of.kept = Some(data.clone());
                }
            }
            _ => last = None,
        }
    }
    beside
}

fn is_compacted(events: &[Recorded], timeline: &Timeline, lane: &Lane) -> bool {
    let live = || events.iter().filter(|event| timeline.contains(event.seq));
    let undone: Vec<Seq> = live()
        .filter_map(|event| match &event.event {
            Event::Undone(Undone::Compaction { of }) => Some(*of),
            _ => None,
        })
        .collect();
    live().any(|event| {
        matches!(&event.event, Event::Compacted(it) if it.lane == *lane)
            && !undone.contains(&event.seq)
    })
}

/// What a view is made of.
fn moves(events: &[Recorded]) -> Vec<Recorded> {
    let is_move = |event: &&Recorded| {
        matches!(
            event.event,
            Event::Message(_) | Event::Compacted(_) | Event::Rewound(_) | Event::Undone(_)
        )
    };
    let mut moves: Vec<Recorded> = events.iter().filter(is_move).cloned().collect();
    // A view is of the last event that is there.
    if let (Some(last), Some(moved)) = (events.last(), moves.last())
        && moved.seq != last.seq
    {
        moves.push(last.clone());
    }
    moves
}
