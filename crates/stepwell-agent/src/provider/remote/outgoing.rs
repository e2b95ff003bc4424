//! Preparations of an outgoing conversation that every protocol shares.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use stepwell::Message;
use stepwell::model::{Opaque, Part, Text, ToolResult};

/// The longest call id that every vendor accepts; OpenAI's limit.
const LONGEST_ID: usize = 40;

/// Call ids for the request. A conversation may contain ids of another provider that this one would
/// reject.
pub(super) struct Ids<'a>(HashMap<&'a str, String>);

impl<'a> Ids<'a> {
    pub(super) fn of(messages: &'a [Message]) -> Self {
        let ids: Vec<&str> =
            messages.iter().flat_map(Message::calls).map(|call| call.id.as_str()).collect();
        let mut taken: HashSet<String> =
            ids.iter().filter(|id| is_legal(id)).map(|&id| id.to_owned()).collect();
        let mut names = HashMap::new();
        for id in ids {
            if !is_legal(id) && !names.contains_key(id) {
                names.insert(id, fresh(id, &mut taken));
            }
        }
        Self(names)
    }

    pub(super) fn get(&self, id: &str) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }
}

/// Makes a legal, unused id similar to `id`, and marks it as used.
pub(super) fn fresh(id: &str, taken: &mut HashSet<String>) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let stem: String = id.chars().map(legal).take(LONGEST_ID - 8).collect();
    let stem = if stem.is_empty() { "call".to_owned() } else { stem };
    let mut name = if id.len() > LONGEST_ID { format!("{stem}_1") } else { stem.clone() };
    let mut n = 1;
    while !taken.insert(name.clone()) {
        n += 1;
        name = format!("{stem}_{n}");
    }
    name
}

/// A tool name that every vendor accepts. The model may have called a tool with an illegal name,
/// and the conversation repeats it in every request.
pub(super) fn tool_name(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().map(legal).take(64).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

pub(super) fn is_legal(id: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(legal)
}

/// A call's arguments as the object that vendors require. Invalid arguments are quoted as text.
pub(super) fn arguments(text: &str) -> Map<String, Value> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => map,
        _ if text.trim().is_empty() => Map::new(),
        _ => [("invalid_json".to_owned(), json!(text))].into_iter().collect(),
    }
}

/// The text of a result. Never empty; if the protocol has no error flag, the text says that the
/// call failed.
pub(super) fn result_text(result: &ToolResult) -> String {
    match (result.text.trim().is_empty(), result.is_error) {
        (true, true) => "error: the tool failed without a message".to_owned(),
        (true, false) => "(no output)".to_owned(),
        (false, true) => format!("error: {}", result.text),
        (false, false) => result.text.clone(),
    }
}

/// The text of a part, unless it is blank: no vendor accepts empty texts.
pub(super) fn spoken(text: &Text) -> Option<&str> {
    (!text.text.trim().is_empty()).then_some(text.text.as_str())
}

/// The opaque data of this provider; another provider's is never sent.
pub(super) fn own<'a>(opaque: Option<&'a Opaque>, provider: &str) -> Option<&'a str> {
    opaque.filter(|opaque| opaque.provider == provider).map(|opaque| opaque.data.as_str())
}

/// Standing instructions: the request's, then those in the conversation.
pub(super) fn systems<'a>(
    system: &'a str,
    messages: impl Iterator<Item = &'a Message>,
) -> Option<String> {
    let said = messages.map(Message::text);
    let all: Vec<String> =
        std::iter::once(system.to_owned()).chain(said).filter(|s| !s.trim().is_empty()).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

/// The conversation without thinking. Anthropic ties thinking to its conversation and may reject it
/// after a compaction or rewind.
pub(super) fn without_thinking(messages: &[Message]) -> Vec<Message> {
    let mut messages = messages.to_vec();
    for message in &mut messages {
        message.parts.retain(|part| !matches!(part, Part::Thinking(_)));
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_ids_become_legal_and_stay_apart() {
        let long = "x".repeat(64);
        let longer = "x".repeat(65);
        let message = Message::assistant("go")
            .calling("call#read#0", "read", "{}")
            .calling("call_read_0", "read", "{}")
            .calling(&long, "read", "{}")
            .calling(&longer, "read", "{}");
        let messages = [message];
        let ids = Ids::of(&messages);
        let sent: Vec<String> = messages[0].calls().map(|call| ids.get(&call.id)).collect();
        assert_eq!(sent[1], "call_read_0");
        assert!(sent.iter().all(|id| is_legal(id)), "{sent:?}");
        assert_eq!(sent.iter().collect::<HashSet<_>>().len(), 4, "{sent:?}");
    }

    #[test]
    fn names_that_no_vendor_takes_become_legal() {
        let long = "x".repeat(80);
        for (name, sent) in [
            ("read_file", "read_file"),
            ("nope tool!", "nope_tool_"),
            ("", "unnamed"),
            ("ünïcode", "_n_code"),
            (long.as_str(), &long[..64]),
        ] {
            assert_eq!(tool_name(name), sent);
        }
    }

    #[test]
    fn arguments_that_are_no_object_are_shown_as_text() {
        assert_eq!(Value::Object(arguments(r#"{"a":1}"#)), json!({"a": 1}));
        assert_eq!(Value::Object(arguments("")), json!({}));
        for text in ["{\"a\":", "[1]", "\"a\""] {
            assert_eq!(Value::Object(arguments(text)), json!({"invalid_json": text}));
        }
    }
}
