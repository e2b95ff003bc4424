//! The content of a message: blocks there, parts here. What a part does not hold stays in
//! the block, with an empty value where something was taken out, so that both together are the
//! block again, byte for byte.

use stepwell::model::{Image, Opaque, Part, Text, ToolCall, ToolResult};

use super::PROVIDER;
use crate::journal::call_names::object_of;
use crate::json::fields::{Elements, Fields, elements, quoted, sound_elements, text_of};

/// What stands where a text was taken out.
const EMPTY: Option<&str> = Some("\"\"");

/// A message as a line has it.
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) fields: Fields<'a>,
    /// The blocks of its content, if it has any.
    blocks: Elements<'a>,
}

impl<'a> Said<'a> {
    /// The message of a line.
    pub(super) fn of(line: &Fields<'a>) -> Option<Self> {
        Self::parse(line.raw("message")?)
    }

    fn parse(raw: &'a str) -> Option<Self> {
        let (fields, blocks) = Fields::sound_with(raw, "content")?;
        Some(Self { fields, blocks })
    }

    /// Takes what parts hold out of it. The answer is the parts, and the message without
    /// them.
    pub(super) fn hollow(&self) -> (Vec<Part>, String) {
        let mut parts = Vec::new();
        let raw = self.fields.raw("content").unwrap_or("null");
        let content = match (text_of(raw), &self.blocks) {
            (Some(text), _) => {
                parts.push(Part::text(text));
                "\"\"".to_owned()
            }
            (None, Some(blocks)) => hollow_blocks(blocks, &mut parts),
            (None, None) => raw.to_owned(),
        };
        (parts, self.fields.rewritten(&[("content", Some(&content))]))
    }
}

fn hollow_blocks(list: &[(&str, Option<Fields<'_>>)], parts: &mut Vec<Part>) -> String {
    let mut blocks = String::from("[");
    for (raw, block) in list {
        if blocks.len() > 1 {
            blocks.push(',');
        }
        match block.as_ref().and_then(hollow_block) {
            Some((part, rest)) => {
                parts.push(part);
                blocks.push_str(&rest);
            }
            // A kind of block that has no word here stays as it is.
            None => blocks.push_str(raw),
        }
    }
    blocks.push(']');
    blocks
}

fn hollow_block(block: &Fields<'_>) -> Option<(Part, String)> {
    let opaque = |data: String| Some(Opaque { provider: PROVIDER.to_owned(), data });
    Some(match block.text("type")?.as_ref() {
        "text" => (Part::text(block.text("text")?), block.rewritten(&[("text", EMPTY)])),
        "thinking" => {
            let text = block.text("thinking")?.into_owned();
            let signature = block.text("signature").filter(|it| !it.is_empty());
            let opaque = signature.and_then(|signature| opaque(signature.into_owned()));
            let rest = match opaque.is_some() {
                true => block.rewritten(&[("thinking", EMPTY), ("signature", EMPTY)]),
                false => block.rewritten(&[("thinking", EMPTY)]),
            };
            (Part::Thinking(Text { text, opaque }), rest)
        }
        "redacted_thinking" => {
            let whole = block.rewritten(&[]);
            let part = Part::Thinking(Text { text: String::new(), opaque: opaque(whole) });
            (part, r#"{"type":"redacted_thinking"}"#.to_owned())
        }
        "tool_use" => {
            let call = ToolCall {
                id: block.text("id")?.into_owned(),
                name: block.text("name")?.into_owned(),
                arguments: block.raw("input")?.to_owned(),
                opaque: None,
            };
            let rest = block.rewritten(&[("id", EMPTY), ("name", EMPTY), ("input", Some("{}"))]);
            (Part::ToolCall(call), rest)
        }
        "tool_result" => hollow_result(block)?,
        "image" => {
            let (image, source) = hollow_source(&block.object("source")?)?;
            (Part::Image(image), block.rewritten(&[("source", Some(&source))]))
        }
        _ => return None,
    })
}

/// A picture's bytes, or its address.
fn hollow_source(source: &Fields<'_>) -> Option<(Image, String)> {
    let media_type = source.text("media_type").unwrap_or_default().into_owned();
    let field = if source.has("data") { "data" } else { "url" };
    let data = source.text(field)?.into_owned();
    let rest = source.rewritten(&[(field, Some("\"\""))]);
    Some((Image { media_type, data, opaque: None }, rest))
}

fn hollow_result(block: &Fields<'_>) -> Option<(Part, String)> {
    let mut result = ToolResult {
        call_id: block.text("tool_use_id")?.into_owned(),
        is_error: block.is_true("is_error"),
        ..ToolResult::default()
    };
    let raw = block.raw("content").unwrap_or("null");
    let content = match text_of(raw) {
        Some(text) => {
            result.text = text.into_owned();
            "\"\"".to_owned()
        }
        None => hollow_answer(raw, &mut result).unwrap_or_else(|| raw.to_owned()),
    };
    let content = block.raw("content").map(|_| content.as_str());
    let rest = block.rewritten(&[("tool_use_id", EMPTY), ("content", content)]);
    Some((Part::ToolResult(result), rest))
}

/// What a tool returned as blocks. Where it is more than one text and pictures, the blocks
/// keep their texts, since one text could not be taken apart again.
fn hollow_answer(raw: &str, result: &mut ToolResult) -> Option<String> {
    let blocks = sound_elements(raw)?.into_iter();
    let blocks: Vec<_> = blocks.map(|(raw, it)| (it.unwrap_or_default(), raw)).collect();
    let is = |block: &Fields<'_>, kind: &str| block.text("type").as_deref() == Some(kind);
    let texts: Vec<_> = blocks
        .iter()
        .filter(|(block, _)| is(block, "text"))
        .filter_map(|(block, _)| block.text("text"))
        .collect();
    result.text = texts.join("\n");
    let mut rest = String::from("[");
    for (block, raw) in &blocks {
        if rest.len() > 1 {
            rest.push(',');
        }
        let picture = || {
            let (image, source) = hollow_source(&block.object("source")?)?;
            Some((image, block.rewritten(&[("source", Some(&source))])))
        };
        if is(block, "text") && texts.len() == 1 {
            rest.push_str(&block.rewritten(&[("text", EMPTY)]));
        } else if is(block, "image")
            && let Some((image, hollow)) = picture()
        {
            result.images.push(image);
            rest.push_str(&hollow);
        } else {
            rest.push_str(raw);
        }
    }
    rest.push(']');
    Some(rest)
}

/// A line without what the parts of its message hold. Where that could not be put together again
/// byte for byte, it is the whole line behind a space.
pub(super) fn hollow_line(text: &str, line: &Fields<'_>, said: &Said<'_>) -> (Vec<Part>, String) {
    let (parts, message) = said.hollow();
    let hollow = line.rewritten(&[("message", Some(&message))]);
    let whole = Fields::sound(&message).map(|it| refill(&it, &mut parts.iter()));
    let whole = whole.map(|message| line.rewritten(&[("message", Some(&message))]));
    match whole.is_some_and(|whole| whole == text) {
        true => (parts, hollow),
        false => (parts, format!(" {text}")),
    }
}

/// How many parts a line that was kept whole has; nothing, if it was not.
pub(super) fn whole_parts(text: &str, line: &Fields<'_>) -> Option<usize> {
    text.starts_with(' ').then(|| Said::of(line).map_or(0, |said| said.hollow().0.len()))
}

/// Puts a message together again: the next parts go where they were taken out.
pub(super) fn refill(message: &Fields<'_>, parts: &mut dyn Iterator<Item = &Part>) -> String {
    let raw = message.raw("content").unwrap_or("null");
    let content = match raw {
        "\"\"" => match parts.next() {
            Some(Part::Text(text)) => quoted(&text.text),
            _ => raw.to_owned(),
        },
        _ => refill_blocks(raw, parts),
    };
    message.rewritten(&[("content", Some(&content))])
}

fn refill_blocks(raw: &str, parts: &mut dyn Iterator<Item = &Part>) -> String {
    let Ok(blocks) = elements(raw) else { return raw.to_owned() };
    let mut content = String::from("[");
    for raw in blocks {
        if content.len() > 1 {
            content.push(',');
        }
        let block = Fields::parse(raw).unwrap_or_default();
        // A block that was kept whole has no part.
        match is_hollow(&block).then(|| parts.next()).flatten() {
            Some(part) => content.push_str(&refill_block(&block, part)),
            None => content.push_str(raw),
        }
    }
    content.push(']');
    content
}

/// Was something taken out of this block? That is so wherever something could be.
fn is_hollow(block: &Fields<'_>) -> bool {
    let is_text = |name: &str| block.text(name).is_some();
    match block.text("type").as_deref() {
        Some("text") => is_text("text"),
        Some("thinking") => is_text("thinking"),
        Some("redacted_thinking") => block.raw("data").is_none(),
        Some("tool_use") => is_text("id") && is_text("name") && block.raw("input").is_some(),
        Some("tool_result") => is_text("tool_use_id"),
        Some("image") => block.object("source").is_some_and(|it| is_empty_source(&it)),
        _ => false,
    }
}

fn is_empty_source(source: &Fields<'_>) -> bool {
    ["data", "url"].iter().any(|field| source.raw(field) == Some("\"\""))
}

fn refill_block(block: &Fields<'_>, part: &Part) -> String {
    match part {
        Part::Text(text) => block.rewritten(&[("text", Some(&quoted(&text.text)))]),
        Part::Thinking(Text { text, opaque }) => match opaque.as_ref().map(|it| it.data.as_str()) {
            // Hidden thinking is kept as its whole block.
            Some(data) if data.starts_with('{') => data.to_owned(),
            Some(signature) => {
                let (text, signature) = (quoted(text), quoted(signature));
                block.rewritten(&[("thinking", Some(&text)), ("signature", Some(&signature))])
            }
            None => block.rewritten(&[("thinking", Some(&quoted(text)))]),
        },
        Part::ToolCall(call) => {
            let (id, name) = (quoted(&call.id), quoted(&call.name));
            let input = object_of(&call.arguments);
            block.rewritten(&[("id", Some(&id)), ("name", Some(&name)), ("input", Some(&input))])
        }
        Part::Image(image) => {
            let source = refill_source(&block.object("source").unwrap_or_default(), image);
            block.rewritten(&[("source", Some(&source))])
        }
        Part::ToolResult(result) => refill_result(block, result),
    }
}

fn refill_result(block: &Fields<'_>, result: &ToolResult) -> String {
    let id = quoted(&result.call_id);
    let content = match block.raw("content") {
        None => None,
        Some("\"\"") => Some(quoted(&result.text)),
        Some(raw) => Some(refill_answer(raw, result)),
    };
    match &content {
        Some(content) => block.rewritten(&[("tool_use_id", Some(&id)), ("content", Some(content))]),
        None => block.rewritten(&[("tool_use_id", Some(&id))]),
    }
}

/// Several texts of an answer were left in their blocks.
fn refill_answer(raw: &str, result: &ToolResult) -> String {
    let Ok(blocks) = elements(raw) else { return raw.to_owned() };
    let blocks: Vec<_> =
        blocks.into_iter().map(|raw| (raw, Fields::parse(raw).unwrap_or_default())).collect();
    let is = |block: &Fields<'_>, kind: &str| block.text("type").as_deref() == Some(kind);
    let is_text = |block: &Fields<'_>| is(block, "text") && is_hollow(block);
    let is_one = blocks.iter().filter(|(_, block)| is_text(block)).count() == 1;
    let mut images = result.images.iter();
    let mut content = String::from("[");
    for (raw, block) in &blocks {
        if content.len() > 1 {
            content.push(',');
        }
        let image = is(block, "image") && is_hollow(block);
        match image.then(|| images.next()).flatten() {
            Some(image) => content.push_str(&refill_block(block, &Part::Image(image.clone()))),
            None if is_one && is_text(block) => {
                content.push_str(&refill_block(block, &Part::text(result.text.as_str())));
            }
            None => content.push_str(raw),
        }
    }
    content.push(']');
    content
}

fn refill_source(source: &Fields<'_>, image: &Image) -> String {
    let field = if source.raw("data") == Some("\"\"") { "data" } else { "url" };
    source.rewritten(&[(field, Some(&quoted(&image.data)))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(message: &str) {
        let (parts, hollow) = Said::parse(message).unwrap().hollow();
        let whole = refill(&Fields::parse(&hollow).unwrap(), &mut parts.iter());
        assert_eq!(whole, message, "through {hollow}");
    }

    #[test]
    fn every_block_comes_back_as_it_was() {
        for message in [
            r#"{"role":"user","content":"plain"}"#,
            r#"{"role":"user","content":""}"#,
            r#"{"role":"user","content":[]}"#,
            r#"{"role":"user"}"#,
            r#"{"content":[{"type":"text","text":"a","citations":null},{"type":"text","text":""}]}"#,
            r#"{"content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"thinking","thinking":"t","signature":""}]}"#,
            r#"{"content":[{"type":"redacted_thinking","data":"xyz","more":1}]}"#,
            r#"{"content":[{"type":"tool_use","id":"t1","name":"Read","input":{"a":[1,2.50]},"caller":{"type":"direct"}}]}"#,
            r#"{"content":[{"type":"tool_result","tool_use_id":"t1","content":"out","is_error":true}]}"#,
            r#"{"content":[{"type":"tool_result","tool_use_id":"t1"}]}"#,
            r#"{"content":[{"type":"tool_result","tool_use_id":"t1","content":[]}]}"#,
            r#"{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}]}"#,
            r#"{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}"#,
            r#"{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"tool_reference","tool_name":"x"}]}]}"#,
            r#"{"content":[{"type":"image","source":{"type":"url","url":"https://e.org/a.png"}},{"type":"document","source":{"type":"text","data":"d"}}]}"#,
            r#"{"content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"text","text":5},7,null]}"#,
            r#"{"content":{"odd":true}}"#,
        ] {
            round_trip(message);
        }
    }
}
