//! Turns of an external agent's conversation, read from lines of JSON.

use std::io::BufRead;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{Message, Part, Role, ToolCall, ToolResult};

/// Who speaks in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The user.
    User,
    /// The agent.
    Assistant,
    /// The program that instructs the agent.
    System,
}

impl Speaker {
    /// A text as this speaker's message.
    #[must_use]
    pub fn says(self, text: &str) -> Message {
        Message::new(self.role(), vec![Part::text(text)])
    }

    const fn role(self) -> Role {
        match self {
            Self::User => Role::User,
            Self::Assistant => Role::Assistant,
            Self::System => Role::System,
        }
    }
}

/// Why lines could not be read as turns.
#[derive(Debug, thiserror::Error)]
pub enum NoTurns {
    /// A line is not a turn.
    #[error("line {line} is not a turn: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// There are no lines.
    #[error("no turns found")]
    None,
}

/// Reads turns from lines of JSON: `{"role": …, "text": …}`. A text is a string, or a list of
/// blocks as in Anthropic's messages: `text`, `tool_use` and `tool_result`. `content` is another
/// name for `text`. A line without a role gets the `usual` one.
///
/// # Errors
/// If a line is not a turn, or there are none.
pub fn read_turns(lines: impl BufRead, usual: Option<Speaker>) -> Result<Vec<Message>, NoTurns> {
    let mut turns = Vec::new();
    for (line, n) in lines.lines().zip(1..) {
        let wrong = |why: String| NoTurns::Line { line: n, why };
        let line = line.map_err(|error| wrong(error.to_string()))?;
        if !line.trim().is_empty() {
            turns.extend(read_turn(&line, usual).map_err(wrong)?);
        }
    }
    if turns.is_empty() { Err(NoTurns::None) } else { Ok(turns) }
}

/// A line before its text is parsed.
#[derive(Deserialize)]
struct Told {
    role: Option<Speaker>,
    #[serde(alias = "content")]
    text: Box<RawValue>,
}

/// A block of a turn, with the fields of all kinds.
#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
    tool_use_id: Option<String>,
    content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
}

/// The messages of one line. Tool results become a message of their own, before the rest.
fn read_turn(line: &str, usual: Option<Speaker>) -> Result<Vec<Message>, String> {
    let told: Told = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let speaker = told.role.or(usual).ok_or("it has no role")?;
    let blocks = match content(&told.text)? {
        Content::Text(text) => return Ok(vec![speaker.says(&text)]),
        Content::Blocks(blocks) => blocks,
    };
    let (mut results, mut rest) = (Vec::new(), Vec::new());
    for block in blocks {
        match part(block, speaker)? {
            result @ Part::ToolResult(_) => results.push(result),
            part => rest.push(part),
        }
    }
    if results.is_empty() && rest.is_empty() {
        return Err("it has no blocks".to_owned());
    }
    let messages = [(Role::Tool, results), (speaker.role(), rest)].into_iter();
    let said = messages.filter(|(_, parts)| !parts.is_empty());
    Ok(said.map(|(role, parts)| Message::new(role, parts)).collect())
}

/// A turn's text.
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

fn content(raw: &RawValue) -> Result<Content, String> {
    match raw.get().chars().next() {
        Some('"') => serde_json::from_str(raw.get()).map(Content::Text),
        Some('[') => serde_json::from_str(raw.get()).map(Content::Blocks),
        _ => return Err("its text is neither a string nor a list of blocks".to_owned()),
    }
    .map_err(|error| format!("its text: {error}"))
}

fn part(block: Block, speaker: Speaker) -> Result<Part, String> {
    let kind = block.kind.as_str();
    let lacks = |name: &str| format!("a {kind} block lacks {name}");
    let mistaken = |who: &str| format!("a {kind} block belongs to a turn of the {who}");
    match (kind, speaker) {
        ("text", _) => Ok(Part::text(block.text.ok_or_else(|| lacks("text"))?)),
        ("tool_use", Speaker::Assistant) => {
            let id = block.id.ok_or_else(|| lacks("id"))?;
            let name = block.name.ok_or_else(|| lacks("name"))?;
            let input = block.input.ok_or_else(|| lacks("input"))?;
            let arguments = input.get().to_owned();
            Ok(Part::ToolCall(ToolCall { id, name, arguments, opaque: None }))
        }
        ("tool_use", _) => Err(mistaken("assistant")),
        ("tool_result", Speaker::User) => {
            let call_id = block.tool_use_id.ok_or_else(|| lacks("tool_use_id"))?;
            let text = match block.content {
                Some(raw) => result_text(&raw)?,
                None => String::new(),
            };
            let is_error = block.is_error;
            Ok(Part::ToolResult(ToolResult { call_id, text, is_error, ..ToolResult::default() }))
        }
        ("tool_result", _) => Err(mistaken("user")),
        _ => Err(format!("unknown block {kind:?}; expected one of: text, tool_use, tool_result")),
    }
}

/// A tool's result: a string, or blocks of text.
fn result_text(raw: &RawValue) -> Result<String, String> {
    let blocks = match content(raw)? {
        Content::Text(text) => return Ok(text),
        Content::Blocks(blocks) => blocks,
    };
    let text = |block: Block| match (block.kind.as_str(), block.text) {
        ("text", Some(text)) => Ok(text),
        (kind, _) => Err(format!("a tool result contains a block {kind:?}, which is not text")),
    };
    let texts: Result<Vec<String>, String> = blocks.into_iter().map(text).collect();
    Ok(texts?.join("\n"))
}

/// A turn's text for people, with its tool calls and results.
pub(super) fn shown(message: &Message) -> String {
    let shown = |part: &Part| match part {
        Part::Text(text) => Some(text.text.clone()),
        Part::ToolCall(call) => Some(format!("[{} {}]", call.name, call.arguments)),
        Part::ToolResult(result) if result.is_error => Some(format!("[failed] {}", result.text)),
        Part::ToolResult(result) => Some(result.text.clone()),
        Part::Thinking(_) | Part::Image(_) => None,
    };
    let parts: Vec<String> = message.parts.iter().filter_map(shown).collect();
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Result<Vec<Message>, String> {
        read_turns(lines.as_bytes(), None).map_err(|error| error.to_string())
    }

    #[test]
    fn texts_and_blocks_are_turns() {
        let lines = r#"{"role":"user","text":"look"}

{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"read","input":{ "path":"a" }}]}
{"role":"user","content":[{"type":"text","text":"and?"},{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"is_error":true}]}"#;
        let mut failed = Message::tool_result("c1", "one\ntwo");
        let Part::ToolResult(result) = &mut failed.parts[0] else { unreachable!() };
        result.is_error = true;
        let expected = [
            Message::user("look"),
            Message::assistant("I look.").calling("c1", "read", r#"{ "path":"a" }"#),
            failed.clone(),
            Message::user("and?"),
        ];
        assert_eq!(read(lines).unwrap(), expected);
        assert_eq!(shown(&expected[1]), "I look.\n[read { \"path\":\"a\" }]");
        assert_eq!(shown(&failed), "[failed] one\ntwo");
    }

    #[test]
    fn a_line_without_a_role_has_the_usual_one() {
        let turns = read_turns(r#"{"text":"hi"}"#.as_bytes(), Some(Speaker::User));
        assert_eq!(turns.unwrap(), [Message::user("hi")]);
        assert_eq!(read(r#"{"text":"hi"}"#).unwrap_err(), "line 1 is not a turn: it has no role");
    }

    #[test]
    fn an_error_names_the_line_that_is_not_a_turn() {
        for (wrong, why) in [
            ("{", "EOF"),
            (r#"{"role":"user","text":7}"#, "neither a string nor a list of blocks"),
            (r#"{"role":"user","text":[]}"#, "it has no blocks"),
            (r#"{"role":"user","text":[{"type":"image"}]}"#, "unknown block \"image\""),
            (r#"{"role":"user","text":[{"type":"text"}]}"#, "a text block lacks text"),
            (
                r#"{"role":"user","text":[{"type":"tool_use"}]}"#,
                "belongs to a turn of the assistant",
            ),
            (
                r#"{"role":"system","text":[{"type":"tool_result"}]}"#,
                "belongs to a turn of the user",
            ),
            (r#"{"role":"assistant","text":[{"type":"tool_use","id":"a"}]}"#, "lacks name"),
            (
                r#"{"role":"user","text":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image"}]}]}"#,
                "which is not text",
            ),
        ] {
            let error =
                read(&format!("{{\"role\":\"user\",\"text\":\"x\"}}\n\n{wrong}")).unwrap_err();
            assert!(error.starts_with("line 3 is not a turn: ") && error.contains(why), "{error}");
        }
        assert_eq!(read("\n \n").unwrap_err(), "no turns found");
    }
}
