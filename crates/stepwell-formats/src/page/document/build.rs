//! What a document says of a session as a whole.

use stepwell::log::{Head, State, Timeline};
use stepwell::model::Estimate;
use stepwell::store::{Damage, Slice};
use stepwell::{Seq, SessionInfo};

use super::arguments::one_line;
use super::conversation::{conversations, grouped};
use super::lists::{about, lists, results};
use super::{Document, clock};

impl Document {
    /// A session as people read it, given all of its events that can be read.
    pub(crate) fn of(info: &SessionInfo, slice: Slice, estimate: Option<Estimate>) -> Self {
        let Slice { events, scrubbed, damage, .. } = slice;
        let head = match State::fold(&events) {
            // A head may be what is damaged; one that counts what cannot be read misleads.
            Some(state) if damage.is_some() || info.damage.is_some() => state.head.without_runner(),
            _ => info.head.clone(),
        };
        let last = events.last().map_or(Seq::ZERO, |event| event.seq);
        let timeline = Timeline::at(last, events.iter());
        let mut notes = Vec::new();
        if scrubbed > 0 {
            notes.push(format!("{} erased by a scrub.", events_were(scrubbed)));
        }
        if info.trashed_at.is_some() {
            notes.push("The session is in the trash.".to_owned());
        }
        let broken = damage.as_ref().map(broken);
        notes.extend(broken.clone());
        let title = head.task.lines().map(one_line).find(|line| !line.is_empty());
        Self {
            title: title.unwrap_or_else(|| head.id.to_string()),
            attributes: attributes(&head, estimate),
            notes,
            conversations: conversations(&events, &timeline),
            results: results(&events, &timeline),
            broken,
            lists: about(&events, &head).into_iter().chain(lists(&events, &timeline)).collect(),
        }
    }
}

fn attributes(head: &Head, estimate: Option<Estimate>) -> Vec<(&'static str, String)> {
    let status = match head.stop_reason {
        Some(reason) => format!("{} ({reason})", head.status),
        None => head.status.to_string(),
    };
    let tags: Vec<&str> = head.tags.iter().map(String::as_str).collect();
    let flow = head.flow.as_ref().map(|flow| match flow.name.is_empty() {
        true => flow.pattern.clone(),
        false => format!("{} ({})", flow.name, flow.pattern),
    });
    let usage = head.spent.usage;
    let tokens = match usage.is_nothing() {
        true => String::new(),
        false => format!("{} in, {} out", grouped(usage.input), grouped(usage.output)),
    };
    let all = [
        ("id", head.id.to_string()),
        ("label", head.label.clone().unwrap_or_default()),
        ("tags", tags.join(", ")),
        ("goal", head.goal.clone().unwrap_or_default()),
        ("status", status),
        ("error", head.error.clone().unwrap_or_default()),
        ("phase", head.phase.map(|phase| phase.to_string()).unwrap_or_default()),
        ("flow", flow.unwrap_or_default()),
        ("agent", head.agent.clone()),
        ("model", head.model.clone()),
        ("steps", head.steps.to_string()),
        ("tokens", tokens),
        ("cost", head.spent.price_or(estimate)),
        ("began", clock(head.created_at)),
        ("updated", clock(head.updated_at)),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn events_were(n: u64) -> String {
    if n == 1 { "1 event was".to_owned() } else { format!("{n} events were") }
}

fn broken(Damage { seq, what }: &Damage) -> String {
    format!("The session is damaged at event {seq} ({what}). What follows could not be read.")
}
