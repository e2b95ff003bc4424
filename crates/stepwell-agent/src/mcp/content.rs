//! A server's answer as text: everything that is not text is described.

use std::fmt::Write as _;

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use stepwell::model::counted;

use crate::tool::output::Output;

const UNKNOWN: &str = "[content of an unknown kind]";

/// The answer as a model receives it; a long one keeps its beginning and end.
pub(super) fn told(result: &CallToolResult, limit: usize) -> String {
    let mut output = Output::new(limit);
    for (n, block) in result.content.iter().enumerate() {
        if n > 0 {
            output.push(b"\n");
        }
        match block {
            ContentBlock::Text(text) => output.push(text.text.as_bytes()),
            other => output.push(described(other).as_bytes()),
        }
    }
    // If both are present, the text repeats the structured content.
    if let Some(structured) =
        result.structured_content.as_ref().filter(|_| result.content.is_empty())
    {
        output.push(structured.to_string().as_bytes());
    }
    output.text()
}

fn described(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Image(image) => picture("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => picture("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("unknown");
                picture(&format!("resource {uri}"), kind, blob)
            }
            _ => UNKNOWN.to_owned(),
        },
        ContentBlock::ResourceLink(link) => {
            let mut text = format!("[resource {}: {}", link.name, link.uri);
            for more in [&link.mime_type, &link.description].into_iter().flatten() {
                let _ = write!(text, ", {more}");
            }
            text.push(']');
            text
        }
        _ => UNKNOWN.to_owned(),
    }
}

/// Describes bytes that are not shown. `data` is Base64.
fn picture(what: &str, kind: &str, data: &str) -> String {
    let bytes = counted(data.trim_end_matches('=').len() * 3 / 4, "byte");
    format!("[{what}: {kind}, {bytes}, not shown]")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(result: Value) -> String {
        told(&serde_json::from_value(result).unwrap(), 1_000)
    }

    #[test]
    fn text_is_told_and_all_else_described() {
        let result = json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGVsbG8="}},
            {"type": "resource_link", "uri": "file:///c", "name": "c", "mimeType": "text/csv"},
            {"type": "audio", "mimeType": "audio/wav", "data": ""},
        ]});
        let expected = "one\n[image: image/png, 5 bytes, not shown]\n[resource file:///a]\ninside\n\
                        [resource file:///b: unknown, 5 bytes, not shown]\n\
                        [resource c: file:///c, text/csv]\n[audio: audio/wav, 0 bytes, not shown]";
        assert_eq!(shown(result), expected);
    }

    #[test]
    fn an_answer_in_json_is_told_once() {
        let both = json!({"content": [{"type": "text", "text": "{}"}], "structuredContent": {}});
        assert_eq!(shown(both), "{}");
        assert_eq!(shown(json!({"content": [], "structuredContent": {"a": 1}})), "{\"a\":1}");
        assert_eq!(shown(json!({"content": []})), "");
    }

    #[test]
    fn a_long_answer_keeps_its_first_and_its_last_part() {
        let text = format!("first\n{}last", "middle\n".repeat(9_999));
        let shown = shown(json!({"content": [{"type": "text", "text": text}]}));
        assert!(shown.len() < 1_100 && shown.starts_with("first\n"), "{shown}");
        assert!(shown.ends_with("last") && shown.contains("bytes left out"), "{shown}");
    }
}
