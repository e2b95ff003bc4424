//! Items of a conversation: what the model was sent and what it answered, as parts. What a
//! part does not hold stays in the item, so that both together are the item again.

use std::borrow::Cow;

use stepwell::model::{Image, Part, Role, Text, ToolCall, ToolResult};

use crate::json::fields::{Fields, elements, push_field, quoted, text_of, with_fields as with};
use crate::write::unanswered::stands_in;

/// What a taken-out text leaves behind.
const EMPTY: &str = "\"\"";

/// An item as parts of a message.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part>,
    /// The item without what the parts hold.
    pub(crate) rest: String,
}

/// Takes what parts hold out of an item. An item of a kind that has no word here is none.
pub(crate) fn hollow(item: &Fields<'_>) -> Option<Item> {
    let one = |role, part, rest| Some(Item { role, parts: vec![part], rest });
    match item.text("type")?.as_ref() {
        "message" => message(item),
        "reasoning" => {
            let raw = item.raw("summary").unwrap_or("[]");
            let (texts, rest) = hollow_texts(raw);
            let part = Part::Thinking(Text { text: texts, opaque: None });
            one(Role::Assistant, part, item.rewritten(&[("summary", Some(&rest))]))
        }
        kind @ ("function_call" | "custom_tool_call") => {
            let field = if kind == "function_call" { "arguments" } else { "input" };
            let text = item.text(field)?;
            let arguments = match kind {
                "function_call" => text.into_owned(),
                _ => input_object(&text),
            };
            let (id, name) = (item.text("call_id")?.into_owned(), item.text("name")?.into_owned());
            let call = ToolCall { id, name, arguments, opaque: None };
            let rest = item.rewritten(&[("call_id", None), ("name", None), (field, Some(EMPTY))]);
            one(Role::Assistant, Part::ToolCall(call), rest)
        }
        "local_shell_call" => {
            let id = item.text("call_id").or_else(|| item.text("id"))?.into_owned();
            let arguments = item.raw("action")?.to_owned();
            let name = "local_shell".to_owned();
            let call = ToolCall { id, name, arguments, opaque: None };
            one(Role::Assistant, Part::ToolCall(call), item.rewritten(&[("action", Some("null"))]))
        }
        "function_call_output" | "custom_tool_call_output" => {
            let mut result =
                ToolResult { call_id: item.text("call_id")?.into_owned(), ..ToolResult::default() };
            let raw = item.raw("output")?;
            let rest = match text_of(raw) {
                Some(text) => {
                    result.is_error = failed(&text);
                    result.text = text.into_owned();
                    Cow::Borrowed(EMPTY)
                }
                None => Cow::Owned(hollow_output(raw, &mut result)),
            };
            let rest = item.rewritten(&[("call_id", None), ("output", Some(&rest))]);
            one(Role::Tool, Part::ToolResult(result), rest)
        }
        _ => None,
    }
}

fn message(item: &Fields<'_>) -> Option<Item> {
    let role = match item.text("role")?.as_ref() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "developer" | "system" => Role::System,
        _ => return None,
    };
    let (mut parts, mut blocks) = (Vec::new(), String::from("["));
    for raw in elements(item.raw("content")?).ok()? {
        if blocks.len() > 1 {
            blocks.push(',');
        }
        let block = Fields::parse(raw).unwrap_or_default();
        match (block.text("text"), block.text("image_url")) {
            (Some(text), _) => {
                parts.push(Part::text(text));
                blocks.push_str(&block.rewritten(&[("text", None)]));
            }
            (None, Some(url)) => {
                parts.push(Part::Image(image(&url)));
                blocks.push_str(&block.rewritten(&[("image_url", None)]));
            }
            (None, None) => blocks.push_str(raw),
        }
    }
    blocks.push(']');
    let rest = item.rewritten(&[("content", Some(&blocks))]);
    Some(Item { role, parts, rest })
}

/// A picture, whose address may hold its bytes.
fn image(url: &str) -> Image {
    let bytes = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let (media_type, data) = bytes.unwrap_or(("", url));
    Image { media_type: media_type.to_owned(), data: data.to_owned(), opaque: None }
}

/// The address of a picture.
pub(super) fn url(image: &Image) -> String {
    let Image { media_type, data, .. } = image;
    match media_type.is_empty() || data.starts_with("http") || data.starts_with("data:") {
        true => data.clone(),
        false => format!("data:{media_type};base64,{data}"),
    }
}

/// What a tool returned as blocks: its texts and its pictures. The answer is the blocks
/// without the pictures' bytes; their texts stay, since one text could not be taken apart
/// again.
fn hollow_output(raw: &str, result: &mut ToolResult) -> String {
    result.text = hollow_texts(raw).0;
    result.is_error = failed(&result.text);
    let Ok(blocks) = elements(raw) else { return raw.to_owned() };
    let mut rest: Vec<String> = Vec::new();
    for raw in blocks {
        let block = Fields::parse(raw).unwrap_or_default();
        rest.push(match block.text("image_url") {
            Some(url) => {
                result.images.push(image(&url));
                block.rewritten(&[("image_url", None)])
            }
            None => raw.to_owned(),
        });
    }
    format!("[{}]", rest.join(","))
}

/// The blocks of an output with their pictures in them again.
fn refill_output(raw: &str, images: &[Image]) -> String {
    let Ok(blocks) = elements(raw) else { return raw.to_owned() };
    let mut images = images.iter();
    let mut whole: Vec<String> = Vec::new();
    for raw in blocks {
        let block = Fields::parse(raw).unwrap_or_default();
        let is_picture = block.text("type").as_deref() == Some("input_image");
        let hollow = is_picture && !block.has("image_url");
        whole.push(match hollow.then(|| images.next()).flatten() {
            Some(image) => with(raw, &[("image_url", &quoted(&url(image)))]),
            None => raw.to_owned(),
        });
    }
    format!("[{}]", whole.join(","))
}

/// The texts of blocks, and the blocks without them. Only one text can be put back, so
/// several stay where they are as well.
fn hollow_texts(raw: &str) -> (String, String) {
    let Ok(blocks) = elements(raw) else { return (String::new(), raw.to_owned()) };
    let fields: Vec<Fields<'_>> =
        blocks.iter().map(|raw| Fields::parse(raw).unwrap_or_default()).collect();
    let texts: Vec<_> = fields.iter().filter_map(|block| block.text("text")).collect();
    let rest = match (&fields[..], &texts[..]) {
        ([block], [_]) => format!("[{}]", block.rewritten(&[("text", None)])),
        _ => raw.to_owned(),
    };
    (texts.join("\n"), rest)
}

/// Did a call fail, by the words of its result?
pub(super) fn failed(text: &str) -> bool {
    stands_in(text) || exit_code(text).is_some_and(|code| code != 0)
}

/// What a command ended with. Its output is an object that says so, or says so in lines above it.
fn exit_code(text: &str) -> Option<i64> {
    /// What the lines above an output begin with, in the versions that write them.
    const ABOVE: [&str; 4] = ["Exit code: ", "Chunk ID: ", "Wall time: ", CODE];
    const CODE: &str = "Process exited with code ";
    if text.starts_with('{') {
        return Fields::parse(text).ok()?.object("metadata")?.get("exit_code");
    }
    let above = text.lines().take_while(|line| ABOVE.iter().any(|front| line.starts_with(front)));
    let codes = above.filter_map(|line| {
        line.strip_prefix("Exit code: ").or_else(|| line.strip_prefix(CODE))?.trim().parse().ok()
    });
    codes.last()
}

/// Free text as the object that arguments must be.
fn input_object(text: &str) -> String {
    let mut object = String::from("{");
    push_field(&mut object, "input", &quoted(text));
    object.push('}');
    object
}

/// Puts an item together again: the next parts go where they were taken out.
pub(super) fn refill(item: &Fields<'_>, parts: &mut dyn Iterator<Item = &Part>) -> String {
    let kind = item.text("type").unwrap_or_default();
    match kind.as_ref() {
        "message" => {
            let content = refill_blocks(item.raw("content").unwrap_or("[]"), parts);
            item.rewritten(&[("content", Some(&content))])
        }
        "reasoning" => match parts.next() {
            Some(Part::Thinking(text)) => {
                let summary = refill_text(item.raw("summary").unwrap_or("[]"), &text.text);
                item.rewritten(&[("summary", Some(&summary))])
            }
            _ => item.rewritten(&[]),
        },
        "function_call" | "custom_tool_call" => match parts.next() {
            Some(Part::ToolCall(call)) => {
                let custom = || Fields::parse(&call.arguments).ok()?.raw("input");
                let (field, raw) = match kind.as_ref() {
                    "function_call" => ("arguments", quoted(&call.arguments)),
                    _ => ("input", custom().unwrap_or(EMPTY).to_owned()),
                };
                let rest = item.rewritten(&[(field, Some(&raw))]);
                with(&rest, &[("call_id", &quoted(&call.id)), ("name", &quoted(&call.name))])
            }
            _ => item.rewritten(&[]),
        },
        "local_shell_call" => match parts.next() {
            Some(Part::ToolCall(call)) => item.rewritten(&[("action", Some(&call.arguments))]),
            _ => item.rewritten(&[]),
        },
        "function_call_output" | "custom_tool_call_output" => match parts.next() {
            Some(Part::ToolResult(result)) => {
                let text = quoted(&result.text);
                let output = match item.raw("output").unwrap_or("null") {
                    EMPTY => text,
                    raw => refill_output(raw, &result.images),
                };
                let rest = item.rewritten(&[("output", Some(&output))]);
                with(&rest, &[("call_id", &quoted(&result.call_id))])
            }
            _ => item.rewritten(&[]),
        },
        _ => item.rewritten(&[]),
    }
}

fn refill_blocks(raw: &str, parts: &mut dyn Iterator<Item = &Part>) -> String {
    let mut content = String::from("[");
    for raw in elements(raw).unwrap_or_default() {
        if content.len() > 1 {
            content.push(',');
        }
        let block = Fields::parse(raw).unwrap_or_default();
        let hollow = block.has("type") && !block.has("text") && !block.has("image_url");
        let known = matches!(
            block.text("type").as_deref(),
            Some("input_text" | "output_text" | "input_image" | "text")
        );
        match (hollow && known).then(|| parts.next()).flatten() {
            Some(Part::Text(text)) => {
                content.push_str(&with(raw, &[("text", &quoted(&text.text))]));
            }
            Some(Part::Image(image)) => {
                content.push_str(&with(raw, &[("image_url", &quoted(&url(image)))]));
            }
            _ => content.push_str(raw),
        }
    }
    content.push(']');
    content
}

fn refill_text(raw: &str, text: &str) -> String {
    match elements(raw).as_deref() {
        Ok([block]) if Fields::parse(block).is_ok_and(|block| !block.has("text")) => {
            format!("[{}]", with(block, &[("text", &quoted(text))]))
        }
        _ => raw.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_failed_is_an_error_in_every_form_of_its_output() {
        for (text, fails) in [
            (r#"{"output":"no","metadata":{"exit_code":101,"duration_seconds":5.4}}"#, true),
            (r#"{"output":"yes","metadata":{"exit_code":0}}"#, false),
            ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno such file", true),
            ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 1", false),
            ("Wall time: 0.2 seconds\nProcess exited with code 2\nOutput:\n", true),
            (
                "Chunk ID: a1b2\nWall time: 0.2 seconds\nProcess exited with code 0\nOutput:\n",
                false,
            ),
            (
                "Chunk ID: a1b2\nWall time: 9 seconds\nProcess running with session ID 7\nOutput:\n",
                false,
            ),
            ("The log says\nExit code: 1", false),
            ("", false),
        ] {
            assert_eq!(failed(text), fails, "{text}");
            let blocks = format!(r#"[{{"type":"input_text","text":{}}}]"#, quoted(text));
            for output in [quoted(text), blocks] {
                let raw =
                    format!(r#"{{"type":"function_call_output","call_id":"c","output":{output}}}"#);
                let item = hollow(&Fields::parse(&raw).unwrap()).unwrap();
                let Part::ToolResult(result) = &item.parts[0] else { panic!("{item:?}") };
                assert_eq!(result.is_error, fails, "{raw}");
                let rest = Fields::parse(&item.rest).unwrap();
                assert_eq!(refill(&rest, &mut item.parts.iter()).len(), raw.len(), "{raw}");
            }
        }
    }

    #[test]
    fn every_item_comes_back_as_it_was() {
        for item in [
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":""},{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"high"}]}"#,
            r#"{"type":"message","role":"assistant","id":"m","phase":null,"content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]}"#,
            r#"{"type":"message","role":"developer","content":[]}"#,
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"**Look**"}],"content":null,"encrypted_content":"gAAA"}"#,
            r#"{"type":"reasoning","summary":[],"encrypted_content":null}"#,
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}"#,
            r#"{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1","namespace":null}"#,
            r#"{"type":"function_call","name":"shell","arguments":"not json","call_id":"c1"}"#,
            r#"{"type":"custom_tool_call","status":"completed","call_id":"c2","name":"apply_patch","input":"*** Begin\n"}"#,
            r#"{"type":"local_shell_call","call_id":"c3","status":"completed","action":{"type":"exec","command":["ls"]}}"#,
            r#"{"type":"function_call_output","call_id":"c1","output":"text"}"#,
            r#"{"type":"function_call_output","call_id":"c1","output":""}"#,
            r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"}]}"#,
            r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"low"},{"type":"input_image","image_url":"https://e.org/a.png"}]}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://e.org/a.png"},{"type":"input_image","image_url":"data:,plain"}]}"#,
            r#"{"type":"function_call_output","call_id":"c1","output":{"content":"a","success":true}}"#,
            r#"{"type":"custom_tool_call_output","call_id":"c2","output":"{\"output\":\"x\",\"metadata\":{\"exit_code\":1}}"}"#,
        ] {
            let hollow = hollow(&Fields::parse(item).unwrap()).unwrap();
            let whole = refill(&Fields::parse(&hollow.rest).unwrap(), &mut hollow.parts.iter());
            let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(value(&whole), value(item), "through {}", hollow.rest);
        }
    }

    #[test]
    fn a_picture_is_its_bytes_wherever_it_stands() {
        let message = r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}"#;
        let output = r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}"#;
        for item in [message, output] {
            let hollow = hollow(&Fields::parse(item).unwrap()).unwrap();
            let image = match &hollow.parts[..] {
                [Part::Image(image)] => image,
                [Part::ToolResult(result)] => &result.images[0],
                other => panic!("{other:?}"),
            };
            assert_eq!((image.media_type.as_str(), image.data.as_str()), ("image/png", "AA=="));
            assert!(!hollow.rest.contains("AA=="), "{}", hollow.rest);
        }
    }

    #[test]
    fn a_command_that_failed_is_an_error() {
        let item = r#"{"type":"function_call_output","call_id":"c","output":"{\"output\":\"1 failed\",\"metadata\":{\"exit_code\":101}}"}"#;
        let hollow = hollow(&Fields::parse(item).unwrap()).unwrap();
        assert!(matches!(&hollow.parts[..], [Part::ToolResult(result)] if result.is_error));
    }
}
