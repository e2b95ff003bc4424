//! The content of goose's messages: tagged blocks, as parts.

use stepwell::model::{Image, Opaque, Part, Text, ToolCall, ToolResult};

use crate::json::fields::{Fields, elements, push_field, text_of};

/// What a message says.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) parts: Vec<Part>,
    /// The blocks that have no word here, as a JSON array; empty without any.
    pub(super) rest: String,
}

/// Reads the blocks of a message. Nothing, if they are no list.
pub(super) fn read(raw: &str, provider: &str) -> Option<Content> {
    let mut content = Content::default();
    for raw in elements(raw).ok()? {
        let block = Fields::parse(raw).unwrap_or_default();
        match part(&block, provider) {
            Some(part) => content.parts.push(part),
            None => {
                content.rest.push(if content.rest.is_empty() { '[' } else { ',' });
                content.rest.push_str(raw);
            }
        }
    }
    if !content.rest.is_empty() {
        content.rest.push(']');
    }
    Some(content)
}

fn part(block: &Fields<'_>, provider: &str) -> Option<Part> {
    let opaque = |data: String| Some(Opaque { provider: provider.to_owned(), data });
    Some(match block.text("type")?.as_ref() {
        "text" => Part::text(block.text("text")?),
        "thinking" => {
            let text = block.text("thinking")?.into_owned();
            let signature = block.text("signature").filter(|it| !it.is_empty());
            Part::Thinking(Text { text, opaque: signature.and_then(|it| opaque(it.into_owned())) })
        }
        "redactedThinking" => {
            let mut whole = String::from(r#"{"type":"redacted_thinking""#);
            push_field(&mut whole, "data", block.raw("data")?);
            whole.push('}');
            Part::Thinking(Text { text: String::new(), opaque: opaque(whole) })
        }
        "image" => Part::Image(image(block)?),
        "toolRequest" | "frontendToolRequest" => Part::ToolCall(call(block)?),
        "toolResponse" => Part::ToolResult(result(block)?),
        _ => return None,
    })
}

fn image(block: &Fields<'_>) -> Option<Image> {
    let media_type = block.text("mimeType").or_else(|| block.text("mime_type"));
    let media_type = media_type.unwrap_or_default().into_owned();
    Some(Image { media_type, data: block.text("data")?.into_owned(), opaque: None })
}

/// A call; one that goose could not read has what was wrong with it as its arguments.
fn call(block: &Fields<'_>) -> Option<ToolCall> {
    let id = block.text("id")?.into_owned();
    let call = block.object("toolCall")?;
    let read = call.object("value");
    let name = read.as_ref().and_then(|value| value.text("name"));
    let (name, arguments) = match (read.as_ref(), name) {
        (Some(value), Some(name)) => (name.into_owned(), value.raw("arguments").unwrap_or("{}")),
        _ => ("invalid_call".to_owned(), ""),
    };
    let arguments = match arguments {
        "" => {
            let mut object = String::from("{");
            push_field(&mut object, "error", call.raw("error").unwrap_or("null"));
            object.push('}');
            object
        }
        raw => raw.to_owned(),
    };
    Some(ToolCall { id, name, arguments, opaque: None })
}

fn result(block: &Fields<'_>) -> Option<ToolResult> {
    let mut result =
        ToolResult { call_id: block.text("id")?.into_owned(), ..ToolResult::default() };
    let answer = block.object("toolResult")?;
    if answer.text("status").as_deref() == Some("error") {
        result.is_error = true;
        result.text = answer.text("error").unwrap_or_default().into_owned();
        return Some(result);
    }
    // A list of blocks, or an object that holds it.
    let value = answer.raw("value").unwrap_or("[]");
    let object = Fields::parse(value).ok();
    result.is_error = object.as_ref().is_some_and(|value| value.is_true("isError"));
    let content = object.as_ref().and_then(|value| value.raw("content")).unwrap_or(value);
    let mut texts = Vec::new();
    for raw in elements(content).unwrap_or_default() {
        let block = Fields::parse(raw).unwrap_or_default();
        match (block.text("text"), image(&block)) {
            (Some(text), _) => texts.push(text.into_owned()),
            (None, Some(image)) => result.images.push(image),
            (None, None) => texts.push(raw.to_owned()),
        }
    }
    if let Some(text) = text_of(content) {
        texts.push(text.into_owned());
    }
    result.text = texts.join("\n");
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(raw: &str) -> Part {
        let content = read(&format!("[{raw}]"), "anthropic").unwrap();
        content.parts.into_iter().next().unwrap()
    }

    #[test]
    fn a_result_is_read_in_each_of_its_forms() {
        for (value, text) in [
            (
                r#"{"status":"success","value":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
                "a\nb",
            ),
            (
                r#"{"status":"success","value":{"content":[{"type":"text","text":"a"}],"isError":false}}"#,
                "a",
            ),
            (r#"{"status":"error","error":"-32602: no"}"#, "-32602: no"),
            (r#"{"status":"success","value":[]}"#, ""),
        ] {
            let part = one(&format!(r#"{{"type":"toolResponse","id":"t","toolResult":{value}}}"#));
            let Part::ToolResult(result) = part else { panic!("{part:?}") };
            assert_eq!(result.text, text);
            assert_eq!(result.is_error, value.contains("error\":\""));
        }
    }

    #[test]
    fn a_call_that_could_not_be_read_says_why() {
        let part = one(
            r#"{"type":"toolRequest","id":"t","toolCall":{"status":"error","error":"bad args"}}"#,
        );
        let Part::ToolCall(call) = part else { panic!("{part:?}") };
        assert_eq!(
            (call.name.as_str(), call.arguments.as_str()),
            ("invalid_call", r#"{"error":"bad args"}"#)
        );
    }

    #[test]
    fn what_has_no_word_is_kept() {
        let raw = r#"[{"type":"systemNotification","msg":"x"},{"type":"text","text":"a"},7]"#;
        let content = read(raw, "").unwrap();
        assert_eq!(content.parts, [Part::text("a")]);
        assert_eq!(content.rest, r#"[{"type":"systemNotification","msg":"x"},7]"#);
    }
}
