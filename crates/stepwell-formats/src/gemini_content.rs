//! What is said in the form of the Gemini API: a content of parts, which programs that began as
//! Gemini CLI keep as it is.

use serde_json::{Value, json};
use stepwell::Message;
use stepwell::model::{Image, Opaque, Part, Role, Text, ToolCall, ToolResult, Usage};

use crate::journal::call_names::{Calls, object_of};
use crate::journal::form::LeftOver;
use crate::json::fields::{Fields, sound_elements};
use crate::write::leftover_parts::Spare;

/// Whose signatures its thoughts bear.
const PROVIDER: &str = "google";

/// The parts of a content. What has no word here stays in the line that it came on.
pub(crate) fn parts(content: &Fields<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    let elements = content.raw("parts").and_then(sound_elements).unwrap_or_default();
    for part in elements.into_iter().filter_map(|(_, fields)| fields) {
        match read(&part) {
            // Pictures behind a result are the tool's.
            Some(Part::Image(image)) => match parts.last_mut() {
                Some(Part::ToolResult(result)) => result.images.push(image),
                _ => parts.push(Part::Image(image)),
            },
            Some(part) => parts.push(part),
            None => {}
        }
    }
    parts
}

fn read(part: &Fields<'_>) -> Option<Part> {
    if let Some(text) = part.text("text") {
        let text = text.into_owned();
        if !part.is_true("thought") {
            return Some(Part::text(text));
        }
        let signature = part.text("thoughtSignature").filter(|it| !it.is_empty());
        let opaque =
            signature.map(|data| Opaque { provider: PROVIDER.to_owned(), data: data.into_owned() });
        return Some(Part::Thinking(Text { text, opaque }));
    }
    if let Some(call) = part.object("functionCall") {
        let name = call.text("name")?.into_owned();
        let id = call.text("id").map_or_else(|| name.clone(), std::borrow::Cow::into_owned);
        let arguments = call.raw("args").unwrap_or("{}").to_owned();
        return Some(Part::ToolCall(ToolCall { id, name, arguments, opaque: None }));
    }
    if let Some(answer) = part.object("functionResponse") {
        return Some(Part::ToolResult(result(&answer)));
    }
    image(part).map(Part::Image)
}

fn image(part: &Fields<'_>) -> Option<Image> {
    let (source, data) = match part.object("inlineData") {
        Some(inline) => (inline.clone(), inline.text("data")?.into_owned()),
        None => {
            let file = part.object("fileData")?;
            (file.clone(), file.text("fileUri")?.into_owned())
        }
    };
    let media_type = source.text("mimeType").unwrap_or_default().into_owned();
    media_type.starts_with("image/").then_some(Image { media_type, data, opaque: None })
}

fn result(answer: &Fields<'_>) -> ToolResult {
    let name = answer.text("name").unwrap_or_default();
    let call_id = answer.text("id").unwrap_or(name).into_owned();
    let response = answer.object("response").unwrap_or_default();
    let (output, error) = (response.text("output"), response.text("error"));
    let is_error = output.is_none() && error.is_some();
    let text = match output.or(error) {
        Some(text) => text.into_owned(),
        None => answer.raw("response").unwrap_or_default().to_owned(),
    };
    let images = answer.raw("parts").and_then(sound_elements).unwrap_or_default();
    let images = images.iter().filter_map(|(_, part)| image(part.as_ref()?)).collect();
    ToolResult { call_id, text, is_error, images, opaque: None }
}

/// The code that a command ended with, as the tool that runs commands tells its model.
pub(crate) fn exit_code(text: &str) -> Option<i64> {
    text.lines().find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
}

/// Tokens, as the API counts them.
pub(crate) fn usage(line: &Fields<'_>) -> Option<Usage> {
    let usage = line.object("usageMetadata")?;
    let count = |name: &str| usage.get::<u64>(name).unwrap_or(0);
    let (input, said, thought) =
        (count("promptTokenCount"), count("candidatesTokenCount"), count("thoughtsTokenCount"));
    // Google counts thoughts apart, others within the answer.
    let apart = count("totalTokenCount") == input.saturating_add(said).saturating_add(thought);
    let usage = Usage {
        input,
        output: if apart { said.saturating_add(thought) } else { said },
        cached: count("cachedContentTokenCount"),
        cache_written: 0,
        reasoning: thought,
    };
    (usage != Usage::default()).then_some(usage)
}

/// Tokens as a line has them.
pub(crate) fn usage_metadata(usage: Usage) -> Value {
    let Usage { input, output, cached, reasoning, .. } = usage;
    json!({
        "promptTokenCount": input,
        "candidatesTokenCount": output,
        "thoughtsTokenCount": reasoning,
        "totalTokenCount": input.saturating_add(output),
        "cachedContentTokenCount": cached,
    })
}

/// The parts of a content for what is no result.
pub(crate) fn written(message: &Message, calls: &mut Calls, left: &mut LeftOver) -> Vec<Value> {
    let mut parts = Vec::new();
    for (at, part) in message.parts.iter().enumerate() {
        let mut spare = |what| left.spares.push(Spare::new(what, at, part));
        match part {
            // An empty text is refused by providers.
            Part::Text(text) if text.text.trim().is_empty() => {}
            Part::Text(text) => parts.push(json!({ "text": text.text })),
            Part::Thinking(thought) => match &thought.opaque {
                None => parts.push(json!({ "text": thought.text, "thought": true })),
                Some(it) if it.provider == PROVIDER => parts.push(json!({
                    "text": thought.text, "thought": true, "thoughtSignature": it.data,
                })),
                Some(_) => spare("thinking of other agents"),
            },
            Part::Image(image) => parts.push(picture(image)),
            Part::ToolCall(call) => {
                let arguments = object_of(&call.arguments);
                if arguments != call.arguments {
                    spare("arguments that are no JSON object");
                }
                let args: Value = serde_json::from_str(&arguments).unwrap_or_default();
                let id = calls.call(&call.id, &call.name);
                let call = json!({ "id": id, "name": call.name, "args": args });
                parts.push(json!({ "functionCall": call }));
            }
            Part::ToolResult(_) => {}
        }
    }
    // Thoughts alone are no answer.
    let is_said = |part: &Value| part.get("thought").is_none();
    if message.role == Role::Assistant || parts.iter().any(is_said) { parts } else { Vec::new() }
}

fn picture(image: &Image) -> Value {
    if image.data.starts_with("http") {
        return json!({ "fileData": { "mimeType": image.media_type, "fileUri": image.data } });
    }
    let front = format!("data:{};base64,", image.media_type);
    let data = image.data.strip_prefix(&front).unwrap_or(&image.data);
    json!({ "inlineData": { "mimeType": image.media_type, "data": data } })
}

/// A result, and the parts of its content. Nothing, if nobody called for it.
pub(crate) fn answer(result: &ToolResult, calls: &Calls) -> Option<(String, Vec<Value>)> {
    let call = calls.result(&result.call_id)?;
    let field = if result.is_error { "error" } else { "output" };
    let response = json!({ field: result.text });
    let answer = json!({ "id": call.id, "name": call.tool, "response": response });
    let pictures = result.images.iter().map(picture);
    let parts = std::iter::once(json!({ "functionResponse": answer })).chain(pictures);
    Some((call.id.clone(), parts.collect()))
}

/// The contents that a message is.
pub(crate) fn contents(message: &Message, calls: &mut Calls, left: &mut LeftOver) -> Vec<Value> {
    let answers = message.results().filter_map(|result| Some(answer(result, calls)?.1));
    let answers: Vec<Value> = answers.flatten().collect();
    let said = written(message, calls, left);
    let role = if message.role == Role::Assistant { "model" } else { "user" };
    let content = |role: &str, parts: Vec<Value>| json!({ "role": role, "parts": parts });
    let both = [content("user", answers), content(role, said)];
    both.into_iter().filter(|it| it["parts"].as_array().is_some_and(|it| !it.is_empty())).collect()
}
