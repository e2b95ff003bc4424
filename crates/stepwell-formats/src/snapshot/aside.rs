//! What a form has no word for, in one object that is put where the form has room.

use std::collections::BTreeMap;

use stepwell::Event;
use stepwell::model::{Change, CheckpointReason, Edited, FileState, Money, StatusChanged};

use super::{Live, Object, is_name, list, name, texts};
use crate::json::fields::{Fields, elements, quoted};
use crate::read::neutral::{Item, kept_event, line_of};
use crate::write::writer::{Losses, word_for};

/// What a form has words of its own for, beside the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// The name for people, and tags.
    Label,
    /// The goal.
    Goal,
    /// What is planned, and what was asked about it.
    Tasks,
    /// Checkpoints.
    Checkpoints,
    /// Errors, as a sum.
    Errors,
    /// Phases.
    Phases,
    /// Statuses and reasons to stop.
    Status,
    /// What it cost.
    Cost,
    /// The agent's name.
    Agent,
    /// Which files were changed, by their names alone.
    Paths,
}

/// What a form has no word for.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    edited: Edited,
    status: Option<StatusChanged>,
    /// What it cost.
    pub(crate) cost: Money,
    /// The agent's name.
    pub(crate) agent: String,
    events: Vec<Item>,
}

impl Aside {
    /// The object for a session; `None` if there is nothing to keep. What it cannot hold
    /// either is counted.
    pub(crate) fn write(
        live: &Live,
        there: &str,
        holds: &[Holds],
        losses: &mut Losses,
    ) -> Option<String> {
        let head = &live.head;
        let mut object = Object::new();
        let mut some = false;
        let mut put = |object: &mut Object, field: &str, raw: &str| {
            some = true;
            object.put(field, raw);
        };
        if head.id.as_str() != there && live.created.source.is_none() {
            put(&mut object, "id", &quoted(head.id.as_str()));
        }
        if !holds.contains(&Holds::Label) {
            if let Some(label) = &head.label {
                losses.count("a label");
                put(&mut object, "label", &quoted(label));
            }
            if !head.tags.is_empty() {
                losses.count("tags");
                put(&mut object, "tags", &list(head.tags.iter().map(|tag| quoted(tag))));
            }
        }
        if let Some(goal) = head.goal.as_ref().filter(|_| !holds.contains(&Holds::Goal)) {
            losses.count("a goal");
            put(&mut object, "goal", &quoted(goal));
        }
        if let Some(budget) = head.budget {
            losses.name("a budget", format!("${budget}"));
            put(&mut object, "budget", &quoted(&budget.to_string()));
        }
        if live.created.source.is_none() && !live.created.workspace.is_empty() {
            losses.count("the workspace");
        }
        if !holds.contains(&Holds::Status) {
            let status = StatusChanged {
                status: head.status,
                reason: head.stop_reason,
                error: head.error.clone(),
            };
            let reason = head.stop_reason.map(|it| format!(", {it}")).unwrap_or_default();
            losses.name("a status", format!("{}{reason}", head.status));
            put(&mut object, "status", &serde_json::to_string(&status).unwrap_or_default());
        }
        if !holds.contains(&Holds::Cost) && !head.spent.cost.is_zero() {
            losses.name("what it cost", head.spent.price());
            put(&mut object, "cost", &quoted(&head.spent.cost.to_string()));
        }
        if !holds.contains(&Holds::Agent) && !head.agent.is_empty() {
            losses.name("the agent's name", &*head.agent);
            put(&mut object, "agent", &quoted(&head.agent));
        }
        let kept = live.others.iter().filter(|it| !is_held(&it.event, holds));
        let mut events = Vec::new();
        for recorded in kept {
            match recorded.event {
                // Said above.
                Event::Edited(_) => {}
                Event::Message(_) => losses.count("messages of other lanes"),
                _ => losses.count(word_for(&recorded.event)),
            }
            let raw = line_of(recorded, 6).unwrap_or_default();
            if !matches!(recorded.event, Event::ToolStarted(_) | Event::ToolFinished(_))
                && kept_event(&raw).is_some()
            {
                events.push(raw);
            }
        }
        if !events.is_empty() {
            put(&mut object, "events", &list(events));
        }
        some.then(|| object.end())
    }

    /// Reads what was put aside.
    pub(crate) fn read(raw: &str) -> Self {
        let fields = Fields::parse(raw).unwrap_or_default();
        let mut edited = Edited::default();
        if let Some(label) = fields.text("label").filter(|label| is_name(label)) {
            edited.label = Change::Set(label.into_owned());
        }
        edited.tag =
            texts(fields.raw("tags")).into_iter().filter(|tag| is_name(tag)).take(32).collect();
        if let Some(goal) = fields.text("goal").filter(|goal| goal.len() < 32 << 10) {
            edited.goal = Change::Set(goal.into_owned());
        }
        if let Some(budget) = fields.get("budget") {
            edited.budget = Change::Set(budget);
        }
        let events = fields.raw("events").and_then(|raw| elements(raw).ok()).unwrap_or_default();
        Self {
            edited,
            status: fields.get("status"),
            cost: fields.get("cost").unwrap_or_default(),
            agent: name(&fields, "agent"),
            events: events.into_iter().filter_map(kept_event).collect(),
        }
    }

    /// The session's attributes in it, with these.
    pub(crate) fn attributes(&self, metadata: BTreeMap<String, serde_json::Value>) -> Edited {
        Edited { metadata, ..self.edited.clone() }
    }

    /// Is such an event in it?
    pub(crate) fn has(&self, is_such: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(|item| is_such(&item.event))
    }

    /// How the session stood.
    pub(crate) fn status(&self) -> Option<StatusChanged> {
        self.status.clone()
    }

    /// What was recorded.
    pub(crate) fn into_events(self) -> Vec<Item> {
        self.events
    }
}

/// Does the form have a word for it?
fn is_held(event: &Event, holds: &[Holds]) -> bool {
    let word = match event {
        Event::Task(_) | Event::Question(_) => Holds::Tasks,
        // The phase says the same.
        Event::Checkpoint(it) if it.reason == CheckpointReason::Phase => Holds::Phases,
        Event::Checkpoint(_) => Holds::Checkpoints,
        Event::Error(_) => Holds::Errors,
        Event::Phase(_) => Holds::Phases,
        Event::File(file) if is_named(&file.before) && is_named(&file.after) => Holds::Paths,
        _ => return false,
    };
    holds.contains(&word)
}

/// Is nothing known of a file but its name?
const fn is_named(state: &FileState) -> bool {
    matches!(state, FileState::NotCaptured { digest: None, .. })
}
