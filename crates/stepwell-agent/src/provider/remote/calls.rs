//! Streamed tool calls in OpenAI's format, from all servers that use it.
//!
//! OpenAI numbers each piece with the `index` of its call. Other servers omit the index (Gemini's
//! OpenAI endpoint, mistral.rs), give every call the same one (older Ollama), or repeat the call's
//! id in each piece. So the index is only one sign among several. Older servers send a single
//! `function_call`, and some local ones leave calls in the text as the model wrote them.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use stepwell::model::{Part, ToolCall};

use crate::provider::ToolSpec;

/// The calls of one answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Piece>);

/// A call so far.
#[derive(Debug)]
struct Piece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    /// Adds the pieces in one event of the stream. Returns whether there were any.
    pub(super) fn delta(&mut self, delta: &Value) -> bool {
        let legacy = delta.get("function_call").filter(|call| call.is_object());
        if let Some(function) = legacy {
            self.entry(&serde_json::json!({"index": 0, "function": function}), None);
        }
        let entries = delta["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        let alone = entries.len() == 1;
        for (position, entry) in entries.iter().enumerate() {
            self.entry(entry, (!alone).then_some(position));
        }
        legacy.is_some() || !entries.is_empty()
    }

    fn entry(&mut self, entry: &Value, position: Option<usize>) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let function = &entry["function"];
        let piece = Piece {
            index: entry["index"].as_u64(),
            id: text(&entry["id"]),
            name: text(&function["name"]),
            arguments: match &function["arguments"] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                // Older Ollama sends the object itself.
                whole => whole.to_string(),
            },
        };
        // Two calls never share both id and contents, so the server repeated one.
        if self.0.iter().any(|call| call.is_repeated_by(&piece)) {
            return;
        }
        match self.goes_on(&piece, position) {
            Some(call) => {
                if call.name.is_empty() {
                    call.name = piece.name;
                }
                if call.id.is_empty() {
                    call.id = piece.id;
                }
                call.arguments.push_str(&piece.arguments);
            }
            None => self.0.push(piece),
        }
    }

    /// The call that a piece continues; `None` if the piece begins a new one.
    fn goes_on(&mut self, piece: &Piece, position: Option<usize>) -> Option<&mut Piece> {
        let place = match (piece.index, piece.id.is_empty()) {
            (Some(index), _) => self.0.iter().rposition(|call| call.index == Some(index)),
            (None, false) => self.0.iter().rposition(|call| call.id == piece.id),
            // Several pieces in one event are in the order of their calls.
            (None, true) if piece.name.is_empty() => {
                position.filter(|place| *place < self.0.len()).or(self.0.len().checked_sub(1))
            }
            (None, true) => None,
        };
        self.0.get_mut(place?).filter(|call| !call.is_followed_by(piece))
    }

    /// The calls. Their arguments are the model's own text.
    pub(super) fn finish(self) -> Vec<ToolCall> {
        let calls = self.0.into_iter().map(|Piece { id, name, arguments, .. }| ToolCall {
            id,
            name,
            arguments,
            opaque: None,
        });
        calls.collect()
    }
}

impl Piece {
    /// Is this call complete, and the piece a repetition of all of it?
    fn is_repeated_by(&self, piece: &Self) -> bool {
        let same = self.id == piece.id && self.name == piece.name && self.index == piece.index;
        let named = !self.id.is_empty() && !self.name.is_empty();
        named && same && self.arguments == piece.arguments && self.is_complete()
    }

    fn is_complete(&self) -> bool {
        matches!(serde_json::from_str(&self.arguments), Ok(Value::Object(_)))
    }

    /// Does this piece begin another call, although it has the same index or id?
    fn is_followed_by(&self, piece: &Self) -> bool {
        if piece.name.is_empty() || self.name.is_empty() {
            return false;
        }
        let other_id = !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id;
        let more = !piece.arguments.trim().is_empty();
        other_id || piece.name != self.name || (self.is_complete() && more)
    }
}

/// Moves calls out of the text, where models of the Hermes family write them: `<tool_call>{"name":
/// …, "arguments": {…}}</tool_call>`. The text stays unchanged unless every call in it is complete
/// and names an offered tool. Text before the calls, such as thinking, calls nothing.
pub(super) fn take_written(parts: &mut Vec<Part>, tools: &[ToolSpec]) {
    let Some(Part::Text(text)) = parts.iter_mut().rfind(|part| matches!(part, Part::Text(_)))
    else {
        return;
    };
    if let Some((rest, calls)) = written(&text.text, tools) {
        text.text = rest;
        parts.extend(calls.into_iter().map(Part::ToolCall));
    }
}

fn written(text: &str, tools: &[ToolSpec]) -> Option<(String, Vec<ToolCall>)> {
    let (thought, spoken) = text.split_at(text.rfind("</think>").unwrap_or(0));
    let (mut rest, mut calls, mut left) = (thought.to_owned(), Vec::new(), spoken);
    while let Some((before, after)) = left.split_once("<tool_call>") {
        let (call, behind) = after.split_once("</tool_call>").unwrap_or((after, ""));
        calls.push(written_call(call, tools)?);
        rest.push_str(before);
        left = behind;
    }
    rest.push_str(left);
    (!calls.is_empty()).then(|| (rest.trim().to_owned(), calls))
}

fn written_call(text: &str, tools: &[ToolSpec]) -> Option<ToolCall> {
    #[derive(Deserialize)]
    struct Written<'a> {
        name: String,
        #[serde(borrow, alias = "parameters")]
        arguments: Option<&'a RawValue>,
    }
    let Written { name, arguments } = serde_json::from_str(text.trim()).ok()?;
    let offered = tools.iter().any(|tool| tool.name == name);
    let raw = arguments.map_or("", RawValue::get);
    // Some models write the arguments as a JSON string, as in OpenAI's format.
    let arguments = serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned());
    offered.then_some(ToolCall { id: String::new(), name, arguments, opaque: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The calls of these events, each as `id name arguments`.
    fn read(events: &[Value]) -> Vec<String> {
        let mut calls = Calls::default();
        for entries in events {
            calls.delta(&json!({"tool_calls": entries}));
        }
        let shown = |call: ToolCall| format!("{} {} {}", call.id, call.name, call.arguments);
        calls.finish().into_iter().map(shown).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> Value {
        json!({"id": id, "function": {"name": name, "arguments": arguments}})
    }

    fn more(arguments: &str) -> Value {
        json!({"function": {"arguments": arguments}})
    }

    #[test]
    fn whole_calls_without_numbers_are_told_apart() {
        let both = json!([call("a", "read", "{\"p\":1}"), call("b", "read", "{\"p\":2}")]);
        assert_eq!(read(&[both]), ["a read {\"p\":1}", "b read {\"p\":2}"]);
        // The same without ids, in one event and in two.
        let (one, two) = (call("", "read", "{\"p\":1}"), call("", "read", "{\"p\":2}"));
        let expected = [" read {\"p\":1}", " read {\"p\":2}"];
        assert_eq!(read(&[json!([one.clone(), two.clone()])]), expected);
        assert_eq!(read(&[json!([one]), json!([two])]), expected);
    }

    #[test]
    fn a_call_that_is_sent_again_whole_is_one_call() {
        let whole = json!([{"index": 0, "id": "a",
            "function": {"name": "run", "arguments": "{\"c\":1}"}}]);
        assert_eq!(read(&[whole.clone(), whole.clone()]), ["a run {\"c\":1}"]);
        // Different arguments under the same id are another call.
        let other = json!([{"index": 0, "id": "a",
            "function": {"name": "run", "arguments": "{\"c\":2}"}}]);
        assert_eq!(read(&[whole, other]), ["a run {\"c\":1}", "a run {\"c\":2}"]);
        // Equal calls without ids are separate calls too.
        let unnamed = json!([call("", "read", "{\"p\":1}")]);
        assert_eq!(read(&[unnamed.clone(), unnamed]).len(), 2);
    }

    #[test]
    fn pieces_without_numbers_go_on_with_their_call() {
        let pieces = [
            json!([call("a", "read", "")]),
            json!([more("{\"p\"")]),
            json!([more(":1}")]),
            json!([call("b", "run", "{")]),
            json!([more("}")]),
        ];
        assert_eq!(read(&pieces), ["a read {\"p\":1}", "b run {}"]);
        let side_by_side = [
            json!([call("a", "read", "{"), call("b", "run", "{")]),
            json!([more("\"p\":1}"), more("\"q\":2}")]),
        ];
        assert_eq!(read(&side_by_side), ["a read {\"p\":1}", "b run {\"q\":2}"]);
    }

    #[test]
    fn a_number_that_every_call_bears_is_no_sign() {
        let at_zero = |mut entry: Value| {
            entry["index"] = json!(0);
            json!([entry])
        };
        let events = [at_zero(call("a", "read", "{\"p\":1}")), at_zero(call("b", "run", "{}"))];
        assert_eq!(read(&events), ["a read {\"p\":1}", "b run {}"]);
        let same = [at_zero(call("x", "read", "{}")), at_zero(call("x", "read", "{\"p\":2}"))];
        assert_eq!(read(&same), ["x read {}", "x read {\"p\":2}"]);
    }

    #[test]
    fn numbers_tell_pieces_apart_that_come_by_turns() {
        let at = |index: u64, mut entry: Value| {
            entry["index"] = json!(index);
            json!([entry])
        };
        let events = [
            at(0, call("a", "read", "")),
            at(1, call("b", "run", "")),
            at(0, more("{\"p\":")),
            at(1, more("{}")),
            at(0, more("1}")),
        ];
        assert_eq!(read(&events), ["a read {\"p\":1}", "b run {}"]);
        // Some servers repeat id and name in every piece.
        let repeated = [at(0, call("a", "read", "{\"p\"")), at(0, call("a", "read", ":1}"))];
        assert_eq!(read(&repeated), ["a read {\"p\":1}"]);
    }

    #[test]
    fn arguments_may_come_as_an_object() {
        let entry = json!([{"function": {"name": "read", "arguments": {"p": 1}}}]);
        assert_eq!(read(&[entry]), [" read {\"p\":1}"]);
    }
}
