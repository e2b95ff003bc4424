//! What is said in an entry: a text, or blocks.

use std::borrow::Cow;

use stepwell::Message;
use stepwell::model::{Image, Money, Opaque, Part, Role, Text, ToolCall, ToolResult, Usage};

use crate::json::fields::{Fields, sound_elements, text_of};

/// What Pi puts around the summary of a compaction when it shows it to the model.
pub(super) const SUMMARY: (&str, &str) = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
    "\n</summary>",
);

/// The same, of a branch that was left.
pub(super) const BRANCH: (&str, &str) = (
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n",
    "</summary>",
);

/// A text between two others.
pub(super) fn between((before, after): (&str, &str), text: &str) -> String {
    format!("{before}{text}{after}")
}

/// What the message of an entry says. Nothing, if the model is not shown it.
pub(super) fn message(said: &Fields<'_>) -> Option<Message> {
    let role = said.text("role")?;
    let parts = || parts(said.raw("content")?, &said.text("provider").unwrap_or_default());
    let message = match role.as_ref() {
        "user" => Message::new(Role::User, parts()?),
        "system" => Message::new(Role::System, parts()?),
        // What an extension put there, in words of two versions.
        "custom" | "hookMessage" => Message::new(Role::User, parts()?).injected(),
        "assistant" => answer(said, parts()?),
        "toolResult" => Message::new(Role::Tool, vec![Part::ToolResult(result(said)?)]),
        "bashExecution" if said.is_true("excludeFromContext") => return None,
        "bashExecution" => Message::user(ran(said)).injected(),
        _ => return None,
    };
    (!message.parts.is_empty()).then_some(message)
}

fn answer(said: &Fields<'_>, parts: Vec<Part>) -> Message {
    let mut message = Message::new(Role::Assistant, parts);
    let model = said.text("model").filter(|model| !model.is_empty());
    message.model = model.map(Cow::into_owned);
    let Some(counted) = said.object("usage") else { return message };
    let count = |name: &str| counted.get::<u64>(name).unwrap_or(0);
    let (cached, cache_written) = (count("cacheRead"), count("cacheWrite"));
    let usage = Usage {
        input: count("input").saturating_add(cached).saturating_add(cache_written),
        output: count("output"),
        cached,
        cache_written,
        reasoning: 0,
    };
    // Nothing was counted: no call takes no token.
    if usage != Usage::default() {
        let cost = counted.object("cost").and_then(|cost| cost.get::<f64>("total"));
        message.usage = Some(usage);
        message.cost = cost.and_then(Money::from_f64).filter(|cost| !cost.is_zero());
    }
    message
}

fn result(said: &Fields<'_>) -> Option<ToolResult> {
    let mut result = ToolResult {
        call_id: said.text("toolCallId")?.into_owned(),
        is_error: said.is_true("isError"),
        ..ToolResult::default()
    };
    let mut texts = Vec::new();
    for part in parts(said.raw("content").unwrap_or("[]"), "").unwrap_or_default() {
        match part {
            Part::Text(text) => texts.push(text.text),
            Part::Image(image) => result.images.push(image),
            _ => {}
        }
    }
    result.text = texts.join("\n");
    Some(result)
}

/// The text that shows the model a command that the user ran.
fn ran(said: &Fields<'_>) -> String {
    let mut text = format!("Ran `{}`\n", said.text("command").unwrap_or_default());
    match said.text("output").filter(|output| !output.is_empty()) {
        Some(output) => text.push_str(&format!("```\n{output}\n```")),
        None => text.push_str("(no output)"),
    }
    let code = said.get::<i64>("exitCode").filter(|code| *code != 0);
    match (said.is_true("cancelled"), code) {
        (true, _) => text.push_str("\n\n(command cancelled)"),
        (false, Some(code)) => text.push_str(&format!("\n\nCommand exited with code {code}")),
        (false, None) => {}
    }
    match said.text("fullOutputPath").filter(|_| said.is_true("truncated")) {
        Some(path) => text + &format!("\n\n[Output truncated. Full output: {path}]"),
        None => text,
    }
}

/// The parts of a content. What has no word here stays in the line that it came on.
pub(super) fn parts(raw: &str, provider: &str) -> Option<Vec<Part>> {
    if let Some(text) = text_of(raw) {
        return Some(vec![Part::text(text)]);
    }
    let blocks = sound_elements(raw)?;
    Some(blocks.into_iter().filter_map(|(_, block)| part(&block?, provider)).collect())
}

fn part(block: &Fields<'_>, provider: &str) -> Option<Part> {
    Some(match block.text("type")?.as_ref() {
        "text" => Part::text(block.text("text")?),
        "thinking" => {
            let text = block.text("thinking")?.into_owned();
            let signature = block.text("thinkingSignature").filter(|it| !it.is_empty());
            let is_hidden = block.is_true("redacted");
            let opaque = signature.map(|data| Opaque {
                provider: provider.to_owned(),
                data: if is_hidden { hidden(&data) } else { data.into_owned() },
            });
            let text = if is_hidden { String::new() } else { text };
            Part::Thinking(Text { text, opaque })
        }
        "toolCall" => Part::ToolCall(ToolCall {
            id: block.text("id")?.into_owned(),
            name: block.text("name")?.into_owned(),
            arguments: block.raw("arguments").unwrap_or("{}").to_owned(),
            opaque: None,
        }),
        "image" => Part::Image(Image {
            media_type: block.text("mimeType").unwrap_or_default().into_owned(),
            data: block.text("data")?.into_owned(),
            opaque: None,
        }),
        _ => return None,
    })
}

/// Hidden thinking, in the one form that the store uses for every agent.
fn hidden(data: &str) -> String {
    serde_json::json!({ "type": "redacted_thinking", "data": data }).to_string()
}
