//! Blocks of a message: what they say is taken out of them and put back again.
//!
//! A message is kept with its words taken out, so that they are recorded once. Which block
//! gives a part and which does not is told by its shape alone, and a block keeps its shape
//! when it is emptied: so the same parts go back where they came from.

use stepwell::Message;
use stepwell::model::{Image, Opaque, Part, Role, Text, ToolCall, ToolResult};

use super::SYSTEM;
use crate::json::fields::{Fields, elements, push_field, quoted, text_of};
use crate::json::json_text::compact;
use crate::write::writer::Losses;

/// Takes the words out of a message. The answer is the parts, and what is left.
pub(crate) fn hollow(message: &Fields<'_>) -> (Vec<Part>, String) {
    let mut parts = Vec::new();
    let raw = message.raw("content").unwrap_or("null");
    let content = match elements(raw) {
        Ok(blocks) => list(blocks.iter().map(|raw| match hollow_block(raw) {
            Some((part, rest)) => {
                parts.push(part);
                rest
            }
            None => (*raw).to_owned(),
        })),
        Err(_) => raw.to_owned(),
    };
    (parts, message.rewritten(&[("content", Some(&content))]))
}

/// Puts the words back.
pub(crate) fn refill(message: &Fields<'_>, parts: &[Part]) -> String {
    let mut parts = parts.iter();
    let raw = message.raw("content").unwrap_or("null");
    let content = match elements(raw) {
        Ok(blocks) => list(blocks.iter().map(|raw| {
            let is_shaped = hollow_block(raw).is_some();
            match is_shaped.then(|| parts.next()).flatten() {
                Some(part) => refill_block(raw, part).unwrap_or_else(|| (*raw).to_owned()),
                None => (*raw).to_owned(),
            }
        })),
        Err(_) => raw.to_owned(),
    };
    message.rewritten(&[("content", Some(&content))])
}

/// The kinds of blocks that give no part, and so are not shown to a model here.
pub(crate) fn unshown(message: &Fields<'_>) -> Vec<String> {
    let blocks = elements(message.raw("content").unwrap_or("[]")).unwrap_or_default();
    let blocks = blocks.into_iter().filter(|raw| hollow_block(raw).is_none());
    let kind = |raw: &str| Fields::parse(raw).ok()?.names().next().map(str::to_owned);
    let kinds = blocks.map(|raw| kind(raw).unwrap_or_else(|| "unknown".to_owned()));
    // Where a cache begins is nothing that was said.
    kinds.filter(|kind| kind != "cachePoint").collect()
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn hollow_block(raw: &str) -> Option<(Part, String)> {
    let block = Fields::parse(raw).ok()?;
    if let Some(text) = block.text("text") {
        return Some((Part::text(text), block.rewritten(&[("text", Some("\"\""))])));
    }
    let (name, (part, inner)) = if let Some(inner) = block.object("toolUse") {
        ("toolUse", hollow_call(&inner)?)
    } else if let Some(inner) = block.object("toolResult") {
        ("toolResult", hollow_result(&inner)?)
    } else if let Some(inner) = block.object("image") {
        let (image, inner) = hollow_image(&inner)?;
        ("image", (Part::Image(image), inner))
    } else {
        ("reasoningContent", hollow_thinking(&block.object("reasoningContent")?)?)
    };
    Some((part, block.rewritten(&[(name, Some(&inner))])))
}

fn hollow_call(call: &Fields<'_>) -> Option<(Part, String)> {
    let part = ToolCall {
        id: call.text("toolUseId")?.into_owned(),
        name: call.text("name")?.into_owned(),
        arguments: compact(call.raw("input")?),
        opaque: None,
    };
    let empty = Some("\"\"");
    let rest = [("toolUseId", empty), ("name", empty), ("input", Some("null"))];
    Some((Part::ToolCall(part), call.rewritten(&rest)))
}

fn hollow_thinking(thinking: &Fields<'_>) -> Option<(Part, String)> {
    let inner = thinking.object("reasoningText")?;
    let text = inner.text("text")?.into_owned();
    let signature = inner.text("signature").map(std::borrow::Cow::into_owned);
    let opaque = signature.map(|data| Opaque { provider: SYSTEM.to_owned(), data });
    let mut changes = vec![("text", Some("\"\""))];
    if opaque.is_some() {
        changes.push(("signature", Some("\"\"")));
    }
    let inner = inner.rewritten(&changes);
    let part = Part::Thinking(Text { text, opaque });
    Some((part, thinking.rewritten(&[("reasoningText", Some(&inner))])))
}

/// A picture whose bytes are in the file.
fn hollow_image(image: &Fields<'_>) -> Option<(Image, String)> {
    let source = image.object("source")?;
    let bytes = source.object("bytes").filter(|bytes| bytes.is_true("__bytes_encoded__"))?;
    let data = bytes.text("data")?.into_owned();
    let media_type = format!("image/{}", image.text("format")?);
    let bytes = bytes.rewritten(&[("data", Some("\"\""))]);
    let source = source.rewritten(&[("bytes", Some(&bytes))]);
    let rest = image.rewritten(&[("source", Some(&source))]);
    Some((Image { media_type, data, opaque: None }, rest))
}

fn hollow_result(result: &Fields<'_>) -> Option<(Part, String)> {
    let mut part = ToolResult {
        call_id: result.text("toolUseId")?.into_owned(),
        is_error: result.text("status").as_deref() == Some("error"),
        ..ToolResult::default()
    };
    let mut texts = Vec::new();
    let raw = result.raw("content").unwrap_or("[]");
    let blocks = elements(raw).unwrap_or_default();
    let only = only_text(&blocks);
    let content = list(blocks.iter().enumerate().map(|(n, raw)| {
        let block = Fields::parse(raw).unwrap_or_default();
        let image = block.object("image").and_then(|it| hollow_image(&it));
        if let Some(text) = block.text("text") {
            texts.push(text.into_owned());
            if only == Some(n) {
                return block.rewritten(&[("text", Some("\"\""))]);
            }
        } else if let Some(json) = block.raw("json") {
            texts.push(compact(json));
        } else if let Some((image, rest)) = image {
            part.images.push(image);
            return block.rewritten(&[("image", Some(&rest))]);
        }
        (*raw).to_owned()
    }));
    part.text = texts.join("\n");
    let content = result.raw("content").filter(|raw| elements(raw).is_ok()).map(|_| content);
    let mut changes = vec![("toolUseId", Some("\"\""))];
    if let Some(content) = &content {
        changes.push(("content", Some(content)));
    }
    Some((Part::ToolResult(part), result.rewritten(&changes)))
}

/// The one text of a result, if it says nothing else in words: several could not be told
/// apart again.
fn only_text(blocks: &[&str]) -> Option<usize> {
    let says = |raw: &&str| {
        let block = Fields::parse(raw).unwrap_or_default();
        block.text("text").is_some() || block.raw("json").is_some()
    };
    let mut speaking = blocks.iter().enumerate().filter(|(_, raw)| says(raw));
    let (n, raw) = speaking.next()?;
    let is_text = Fields::parse(raw).is_ok_and(|block| block.text("text").is_some());
    (is_text && speaking.next().is_none()).then_some(n)
}

fn refill_block(raw: &str, part: &Part) -> Option<String> {
    let block = Fields::parse(raw).ok()?;
    let (name, inner) = match part {
        Part::Text(text) => return Some(block.rewritten(&[("text", Some(&quoted(&text.text)))])),
        Part::ToolCall(call) => {
            let (id, name) = (quoted(&call.id), quoted(&call.name));
            let changes = [
                ("toolUseId", Some(&*id)),
                ("name", Some(&*name)),
                ("input", Some(&*call.arguments)),
            ];
            ("toolUse", block.object("toolUse")?.rewritten(&changes))
        }
        Part::Image(image) => ("image", refill_image(&block.object("image")?, image)?),
        Part::ToolResult(result) => {
            ("toolResult", refill_result(&block.object("toolResult")?, result))
        }
        Part::Thinking(text) => {
            let thinking = block.object("reasoningContent")?;
            let said = quoted(&text.text);
            let signature = text.opaque.as_ref().map(|opaque| quoted(&opaque.data));
            let mut changes = vec![("text", Some(&*said))];
            changes.extend(signature.as_deref().map(|it| ("signature", Some(it))));
            let inner = thinking.object("reasoningText")?.rewritten(&changes);
            ("reasoningContent", thinking.rewritten(&[("reasoningText", Some(&inner))]))
        }
    };
    Some(block.rewritten(&[(name, Some(&inner))]))
}

fn refill_image(image: &Fields<'_>, part: &Image) -> Option<String> {
    let source = image.object("source")?;
    let bytes = source.object("bytes")?.rewritten(&[("data", Some(&quoted(&part.data)))]);
    let source = source.rewritten(&[("bytes", Some(&bytes))]);
    Some(image.rewritten(&[("source", Some(&source))]))
}

fn refill_result(result: &Fields<'_>, part: &ToolResult) -> String {
    let id = quoted(&part.call_id);
    let mut changes = vec![("toolUseId", Some(&*id))];
    let blocks = result.raw("content").and_then(|raw| elements(raw).ok());
    let content = blocks.map(|blocks| {
        let (only, mut images) = (only_text(&blocks), part.images.iter());
        list(blocks.iter().enumerate().map(|(n, raw)| {
            let block = Fields::parse(raw).unwrap_or_default();
            if only == Some(n) {
                return block.rewritten(&[("text", Some(&quoted(&part.text)))]);
            }
            let image = block.object("image").filter(|it| hollow_image(it).is_some());
            let filled = image.and_then(|image| refill_image(&image, images.next()?));
            match filled {
                Some(image) => block.rewritten(&[("image", Some(&image))]),
                None => (*raw).to_owned(),
            }
        }))
    });
    if let Some(content) = &content {
        changes.push(("content", Some(content)));
    }
    result.rewritten(&changes)
}

/// A message as the system would have written it. `None` if nothing of it can be said there.
pub(crate) fn message(message: &Message, losses: &mut Losses) -> Option<String> {
    let role = match message.role {
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
        Role::System => return None,
    };
    let blocks: Vec<String> = message.parts.iter().filter_map(|part| block(part, losses)).collect();
    if blocks.is_empty() {
        return None;
    }
    let mut raw = String::from("{");
    push_field(&mut raw, "role", &quoted(role));
    push_field(&mut raw, "content", &format!("[{}]", blocks.join(",")));
    if let Some(usage) = &message.usage {
        let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
        let mut counts = format!(
            "{{\"inputTokens\":{fresh},\"outputTokens\":{},\"totalTokens\":{}",
            usage.output,
            usage.total()
        );
        let cached = [
            ("cacheReadInputTokens", usage.cached),
            ("cacheWriteInputTokens", usage.cache_written),
        ];
        for (name, n) in cached.into_iter().filter(|(_, n)| *n > 0) {
            push_field(&mut counts, name, &n.to_string());
        }
        counts.push('}');
        push_field(&mut raw, "metadata", &format!("{{\"usage\":{counts}}}"));
    }
    raw.push('}');
    Some(raw)
}

fn block(part: &Part, losses: &mut Losses) -> Option<String> {
    let named = |name: &str, inner: &str| format!("{{{}:{inner}}}", quoted(name));
    match part {
        Part::Text(text) if text.text.trim().is_empty() => None,
        Part::Text(text) => Some(named("text", &quoted(&text.text))),
        Part::Image(image) => Some(named_image(image, losses)),
        Part::ToolCall(call) => {
            let input = match Fields::parse(&call.arguments) {
                Ok(_) => call.arguments.clone(),
                Err(_) => format!("{{\"malformed_arguments\":{}}}", quoted(&call.arguments)),
            };
            let (id, name) = (quoted(&call.id), quoted(&call.name));
            let inner = format!("{{\"toolUseId\":{id},\"name\":{name},\"input\":{input}}}");
            Some(named("toolUse", &inner))
        }
        Part::ToolResult(result) => {
            let mut content = Vec::new();
            if !result.text.is_empty() {
                content.push(named("text", &quoted(&result.text)));
            }
            content.extend(result.images.iter().map(|image| named_image(image, losses)));
            let status = if result.is_error { "error" } else { "success" };
            let inner = format!(
                "{{\"toolUseId\":{},\"status\":\"{status}\",\"content\":[{}]}}",
                quoted(&result.call_id),
                content.join(",")
            );
            Some(named("toolResult", &inner))
        }
        Part::Thinking(text) => {
            // A provider takes back only what it has signed.
            let signed = text.opaque.as_ref().filter(|opaque| !opaque.data.starts_with('{'));
            let Some(opaque) = signed else {
                losses.count("thinking that bears no signature");
                return None;
            };
            let inner = format!(
                "{{\"text\":{},\"signature\":{}}}",
                quoted(&text.text),
                quoted(&opaque.data)
            );
            Some(named("reasoningContent", &named("reasoningText", &inner)))
        }
    }
}

/// A picture, or a word in its place where its bytes are not here or are of no known kind.
fn named_image(image: &Image, losses: &mut Losses) -> String {
    let format = image.media_type.strip_prefix("image/").unwrap_or_default();
    let known = ["png", "jpeg", "gif", "webp"].contains(&format);
    let is_base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
    if known && !image.data.is_empty() && image.data.bytes().all(is_base64) {
        let bytes = format!("{{\"__bytes_encoded__\":true,\"data\":{}}}", quoted(&image.data));
        let inner = format!("{{\"format\":\"{format}\",\"source\":{{\"bytes\":{bytes}}}}}");
        return format!("{{\"image\":{inner}}}");
    }
    losses.count("pictures of other kinds, or by their address");
    let address = if image.data.len() < 2_000 { image.data.as_str() } else { "" };
    let word = format!("[picture {} {address}]", image.media_type);
    format!("{{\"text\":{}}}", quoted(word.trim_end_matches(" ]").trim_end()))
}

/// The text of a message that says something, in any of its blocks.
pub(crate) fn words(message: &Fields<'_>) -> String {
    let blocks = elements(message.raw("content").unwrap_or("[]")).unwrap_or_default();
    let texts = blocks.into_iter().filter_map(|raw| text_of(Fields::parse(raw).ok()?.raw("text")?));
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_comes_back_as_it_was() {
        for content in [
            r#"[{"text":"a"},{"text":""},{"cachePoint":{"type":"default"}}]"#,
            r#"[{"toolUse":{"toolUseId":"t1","name":"add","input":{"a":[1,2.50]},"reasoningSignature":"s"}}]"#,
            r#"[{"toolUse":{"toolUseId":"","name":"","input":null}},{"toolUse":{"name":"x"}}]"#,
            r#"[{"toolResult":{"toolUseId":"t1","status":"error","content":[{"text":"3"}]}},{"text":"b"}]"#,
            r#"[{"toolResult":{"toolUseId":"t1","status":"success","content":[{"json":{"a":1}},{"text":"x"}]}}]"#,
            r#"[{"toolResult":{"toolUseId":"t1","content":[{"text":"x"},{"text":"y"},{"document":{}}]}}]"#,
            r#"[{"toolResult":{"toolUseId":"t1","content":[{"image":{"format":"png","source":{"bytes":{"__bytes_encoded__":true,"data":"AA=="}}}},{"text":"x"}]}}]"#,
            r#"[{"toolResult":{"toolUseId":"t1"}},{"toolResult":{"toolUseId":"t2","content":"odd"}}]"#,
            r#"[{"image":{"format":"png","source":{"bytes":{"__bytes_encoded__":true,"data":"AAEC"}},"x":1}}]"#,
            r#"[{"image":{"format":"png","source":{"location":{"type":"s3"}}}},{"document":{"name":"d","source":{"bytes":{"__bytes_encoded__":true,"data":"AA=="}}}}]"#,
            r#"[{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},{"reasoningContent":{"reasoningText":{"text":"t"}}}]"#,
            r#"[{"reasoningContent":{"redactedContent":{"__bytes_encoded__":true,"data":"AA=="}}},{"text":5},7,null,"s"]"#,
            r#""plain""#,
            r"null",
            r#"{"odd":true}"#,
        ] {
            let message = format!(r#"{{"role":"user","content":{content},"tracking_id":"x"}}"#);
            let (parts, rest) = hollow(&Fields::parse(&message).unwrap());
            assert_eq!(refill(&Fields::parse(&rest).unwrap(), &parts), message, "through {rest}");
        }
    }

    #[test]
    fn the_bytes_of_a_picture_are_taken_out_of_their_envelope() {
        let raw = r#"{"content":[{"image":{"format":"png","source":{"bytes":{"__bytes_encoded__":true,"data":"AAEC"}}}}]}"#;
        let (parts, rest) = hollow(&Fields::parse(raw).unwrap());
        assert!(
            matches!(&parts[..], [Part::Image(image)] if image.data == "AAEC" && image.media_type == "image/png")
        );
        assert!(!rest.contains("AAEC"));
    }
}
