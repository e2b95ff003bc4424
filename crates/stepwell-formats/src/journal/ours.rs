//! Lines that Stepwell writes into a journal for what the form has no word for. The system passes
//! over them; a reader of the same form does not.

use serde_json::{Value, json};
use stepwell::model::Mark;
use stepwell::{Created, Event, Recorded};

use crate::json::fields::Fields;
use crate::read::mark::CONTINUES;
use crate::read::neutral::Opening;
use crate::write::leftover_parts::Spare;

/// What says which session this one goes on from.
pub(crate) fn marked(mark: &Mark) -> Value {
    json!({ CONTINUES: mark })
}

/// What keeps an event, by the event's own JSON.
pub(crate) fn kept(event: &str) -> Value {
    json!({ "event": serde_json::from_str::<Value>(event).unwrap_or_default() })
}

/// What keeps a part that the message of the next line has no place for.
pub(crate) fn spare(of: &str, spare: &Spare) -> Value {
    let mut line = json!({ "of": of });
    if let (Value::Object(line), Value::Object(more)) = (&mut line, spare.line()) {
        line.extend(more);
    }
    line
}

/// Is it the line of such a part?
pub(crate) fn is_spare(ours: &Fields<'_>) -> bool {
    ours.has("of") && ours.has("part")
}

/// How a session began, if the line keeps that.
pub(crate) fn created(ours: &Fields<'_>) -> Option<Created> {
    match serde_json::from_str::<Recorded>(ours.raw("event")?).ok()?.event {
        Event::Created(created) => Some(*created),
        _ => None,
    }
}

/// Gives a session what its form has no place for.
pub(crate) fn complete(opening: &mut Opening, was: Created) {
    let created = &mut opening.created;
    let fields = [
        (&mut created.task, was.task),
        (&mut created.provider, was.provider),
        (&mut created.model, was.model),
        (&mut created.agent, was.agent),
    ];
    for (field, was) in fields {
        if field.is_empty() {
            *field = was;
        }
    }
}
