//! Lines of a transcript that the Claude Agent SDK keeps here itself, through the Python package's
//! `StepwellSessionStore`: an event for each line, which the line's own name gives its id.

use stepwell::model::{About, EventId, Foreign, Part, Role};
use stepwell::{Message, NewEvent};

use super::content::Said;
use super::said::{is_conversation, usage};
use crate::json::fields::Fields;
use crate::read::neutral::KeptLine;
use crate::read::reader::Keeper;

/// The system's name in the source of a session that the SDK keeps.
const SYSTEM: &str = "claude";

/// The SDK.
pub(super) const SDK: Keeper =
    Keeper { system: SYSTEM, subagent: |agent| format!("subagents/agent-{agent}") };

/// A line as the SDK's store keeps it, if it has a name of its own: one without cannot be told from
/// another.
pub(super) fn kept_line(text: &str, fields: &Fields<'_>) -> Option<KeptLine> {
    let name = fields.text("uuid").filter(|name| !name.is_empty())?;
    let id = EventId::derived(format!("{SYSTEM}/{name}").as_bytes());
    let at = fields.time("timestamp");
    let foreign =
        Foreign { system: SYSTEM.to_owned(), about: About::Itself, data: text.trim().to_owned() };
    let said = message(fields).map(NewEvent::from);
    let mut events: Vec<NewEvent> =
        said.into_iter().chain([NewEvent::from(foreign).with_id(id)]).collect();
    events.iter_mut().for_each(|event| event.at = at);
    Some(KeptLine { id, events })
}

/// What a line says, if it is a part of the conversation.
fn message(fields: &Fields<'_>) -> Option<Message> {
    if !is_conversation(fields) || fields.is_true("isMeta") {
        return None;
    }
    let (parts, _) = Said::of(fields)?.hollow();
    if parts.is_empty() {
        return None;
    }
    let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
    let role = match fields.text("type").as_deref() {
        Some("assistant") => Role::Assistant,
        _ if parts.iter().any(is_result) => Role::Tool,
        _ => Role::User,
    };
    let mut message = Message::new(role, parts);
    let said = fields.object("message").unwrap_or_default();
    message.model = said.text("model").map(std::borrow::Cow::into_owned);
    message.usage = usage(&said);
    Some(message)
}
