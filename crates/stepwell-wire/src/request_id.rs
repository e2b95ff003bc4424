//! Finds the id of a JSON-RPC request in a line that is not valid JSON: too long, or damaged. The
//! sender waits for an answer with that id.

use serde_json::Value;

/// The longest id that is kept.
const LONGEST: usize = 256;

/// The id of the request in a line; `None` without a method and an id.
#[must_use]
pub fn request_id(line: &[u8]) -> Option<Value> {
    let mut scan = RequestScan::default();
    scan.feed(line);
    scan.id()
}

/// Searches for the id in a line that arrives in pieces, and keeps nothing else.
#[derive(Debug, Default)]
pub(crate) struct RequestScan {
    /// The nesting depth of objects and lists.
    depth: usize,
    string: Within,
    /// Is the next text at the top level a key?
    at_key: bool,
    /// The key and value at the top level, as far as they are read.
    key: Vec<u8>,
    value: Vec<u8>,
    id: Option<Vec<u8>>,
    has_method: bool,
}

/// The position within a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Outside,
    Text,
    /// After a backslash.
    Escape,
}

impl RequestScan {
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        piece.iter().for_each(|byte| self.take(*byte));
    }

    pub(crate) fn id(mut self) -> Option<Value> {
        self.end_value();
        let id = self.id.filter(|_| self.has_method)?;
        let id: Value = serde_json::from_slice(&id).ok()?;
        (id.is_string() || id.is_i64() || id.is_u64()).then_some(id)
    }

    fn take(&mut self, byte: u8) {
        let within = self.string;
        self.string = match (within, byte) {
            (Within::Text, b'\\') => Within::Escape,
            (Within::Text, b'"') => Within::Outside,
            (Within::Text | Within::Escape, _) | (Within::Outside, b'"') => Within::Text,
            (Within::Outside, _) => Within::Outside,
        };
        if within != Within::Outside || self.string != Within::Outside {
            return self.keep(byte);
        }
        match byte {
            b'{' | b'[' => {
                self.keep(byte);
                self.depth += 1;
                self.at_key = self.depth == 1 && byte == b'{';
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.depth == 1 => {
                self.end_value();
                self.at_key = true;
            }
            b':' if self.depth == 1 => self.at_key = false,
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        let kept = if self.at_key { &mut self.key } else { &mut self.value };
        // One extra byte shows that the value is too long.
        if self.depth == 1 && kept.len() <= LONGEST {
            kept.push(byte);
        }
    }

    fn end_value(&mut self) {
        let (key, value) = (std::mem::take(&mut self.key), std::mem::take(&mut self.value));
        match key.trim_ascii() {
            b"\"id\"" if value.len() <= LONGEST => self.id = Some(value),
            b"\"method\"" => self.has_method = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_id_is_found_wherever_it_stands_and_whatever_else_is_damaged() {
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"text":"\ud800"}}"#, json!(7)),
            (r#"{"method":"a","params":{"id":1,"t":"\"id\":2,"},"id":"x"}"#, json!("x")),
            (r#" { "id" : -3 , "method" : "a", "params": [{"id": 9}"#, json!(-3)),
            (r#"{"params":["\ud800"],"method":"a","id":4"#, json!(4)),
        ] {
            assert_eq!(request_id(line.as_bytes()), Some(id), "{line}");
        }
    }

    #[test]
    fn what_is_no_request_has_no_id() {
        let long = format!(r#"{{"id":"{}","method":"a"}}"#, "x".repeat(LONGEST));
        for line in [r#"{"id":7,"result":"\ud800"}"#, r#"{"method":"\ud800"}"#, "[1", "", &long] {
            assert_eq!(request_id(line.as_bytes()), None, "{line}");
        }
        assert_eq!(request_id(br#"{"id":{"a":1},"method":"a","params":"\ud800"}"#), None);
        assert_eq!(request_id(br#"{"id":1.5,"method":"a"}"#), None);
    }
}
