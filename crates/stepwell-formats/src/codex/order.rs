//! The order in which Codex writes the fields of its objects.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// Fields, as they follow each other in whatever object has them. Others come last.
const ORDER: [&str; 36] = [
    "session_id",
    "id",
    "timestamp",
    "ordinal",
    "type",
    "payload",
    "role",
    "name",
    "arguments",
    "call_id",
    "output",
    "message",
    "images",
    "replacement_history",
    "content",
    "text",
    "image_url",
    "info",
    "rate_limits",
    "total_token_usage",
    "last_token_usage",
    "model_context_window",
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
    "cwd",
    "originator",
    "cli_version",
    "source",
    "agent_role",
    "model_provider",
    "history_mode",
    "parent_thread_id",
];

/// An object of Codex's as text, with its fields in Codex's order.
pub(super) fn in_order(value: &Value) -> String {
    serde_json::to_string(&Ordered(value)).unwrap_or_default()
}

struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(object) => {
                let mut fields: Vec<_> = object.iter().collect();
                fields.sort_by_key(|(name, _)| place(name));
                let mut map = to.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, &Ordered(value))?;
                }
                map.end()
            }
            Value::Array(all) => to.collect_seq(all.iter().map(Ordered)),
            plain => plain.serialize(to),
        }
    }
}

fn place(name: &str) -> usize {
    ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_as_codex_writes_them() {
        let lines = [
            r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}}"#,
            r#"{"timestamp":"t","ordinal":3,"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"ok"}}"#,
            r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hm"}]}}"#,
            r#"{"timestamp":"t","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":2,"reasoning_output_tokens":0,"total_tokens":3},"last_token_usage":null,"model_context_window":9},"rate_limits":null}}"#,
            r#"{"timestamp":"t","type":"session_meta","payload":{"session_id":"s","id":"s","timestamp":"t","cwd":"/w","originator":"codex_cli_rs","cli_version":"1","source":"cli","model_provider":"openai","history_mode":"legacy","else":1}}"#,
        ];
        for line in lines {
            assert_eq!(in_order(&serde_json::from_str(line).unwrap()), line);
        }
    }
}
