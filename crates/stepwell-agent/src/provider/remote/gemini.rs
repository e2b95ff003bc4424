//! Gemini's generateContent API: requests and their streamed answers.

use std::collections::HashMap;

use serde_json::{Value, json};
use stepwell::Message;
use stepwell::model::{Image, Part, Role, ToolCall, ToolResult, Usage};

use super::draft::Draft;
use super::outgoing::{Ids, arguments, own, result_text, spoken, systems, tool_name};
use super::picture::Picture;
use super::{Progress, Sampling};
use crate::provider::{Request, ToolSpec};

/// Gemini 3 requires a signature on the first call of a message, and accepts this one for calls of
/// other models.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// The request body.
pub(super) fn body(provider: &str, request: Request<'_>, sampling: Sampling) -> Value {
    let mut body = json!({"generationConfig": config(request, sampling)});
    let said = request.messages.iter().filter(|message| message.role == Role::System);
    if let Some(system) = systems(request.system, said) {
        body["systemInstruction"] = json!({"parts": [{"text": system}]});
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
    }
    body["contents"] = Value::Array(contents(provider, request));
    body
}

fn config(request: Request<'_>, sampling: Sampling) -> Value {
    let mut config = json!({"maxOutputTokens": request.max_output});
    sampling.write(&mut config, "temperature", "topP");
    if let Some(effort) = sampling.effort {
        config["thinkingConfig"] = match request.model.contains("gemini-3") {
            true => json!({"thinkingLevel": effort.as_str()}),
            false => json!({"thinkingBudget": effort.tokens()}),
        };
    }
    config
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        "parametersJsonSchema": spec.parameters,
    })
}

fn contents(provider: &str, request: Request<'_>) -> Vec<Value> {
    let ids = Ids::of(request.messages);
    let calls = request.messages.iter().flat_map(Message::calls);
    let names: HashMap<&str, String> =
        calls.map(|call| (call.id.as_str(), tool_name(&call.name))).collect();
    let mut contents: Vec<Value> = Vec::with_capacity(request.messages.len());
    let mut say = |role: &str, parts: Vec<Value>| match contents.last_mut() {
        _ if parts.is_empty() => {}
        // All responses go into one message.
        Some(last) if answers(&last["parts"][0]) && answers(&parts[0]) => {
            let earlier = last["parts"].as_array_mut();
            earlier.into_iter().for_each(|earlier| earlier.extend_from_slice(&parts));
        }
        _ => contents.push(json!({"role": role, "parts": parts})),
    };
    for message in request.messages {
        match message.role {
            Role::System => {}
            Role::User => say("user", user(message)),
            Role::Assistant => say("model", model(message, &ids, provider, request.model)),
            Role::Tool => {
                say("user", message.results().map(|it| response(it, &ids, &names)).collect());
                // A function response contains only text, so pictures go into the user's message.
                let images = message.results().flat_map(|result| &result.images).map(image);
                say("user", images.collect());
            }
        }
    }
    contents
}

fn answers(part: &Value) -> bool {
    part.get("functionResponse").is_some()
}

fn user(message: &Message) -> Vec<Value> {
    let part = |part: &Part| match part {
        Part::Text(text) => spoken(text).map(|text| json!({"text": text})),
        Part::Image(picture) => Some(image(picture)),
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    };
    message.parts.iter().filter_map(part).collect()
}

fn model(message: &Message, ids: &Ids<'_>, provider: &str, model: &str) -> Vec<Value> {
    let mut first = true;
    let mut parts = Vec::new();
    for part in &message.parts {
        let (mut sent, signature) = match part {
            Part::Text(text) => {
                let Some(spoken) = spoken(text) else { continue };
                (json!({"text": spoken}), own(text.opaque.as_ref(), provider))
            }
            Part::ToolCall(call) => {
                let unsigned = std::mem::take(&mut first) && model.contains("gemini-3");
                let signature = own(call.opaque.as_ref(), provider);
                (function_call(call, ids), signature.or(unsigned.then_some(UNSIGNED)))
            }
            Part::Thinking(_) | Part::Image(_) | Part::ToolResult(_) => continue,
        };
        if let Some(signature) = signature {
            sent["thoughtSignature"] = json!(signature);
        }
        parts.push(sent);
    }
    parts
}

fn function_call(call: &ToolCall, ids: &Ids<'_>) -> Value {
    json!({"functionCall": {
        "id": ids.get(&call.id),
        "name": tool_name(&call.name),
        "args": arguments(&call.arguments),
    }})
}

fn response(result: &ToolResult, ids: &Ids<'_>, names: &HashMap<&str, String>) -> Value {
    let name = names.get(result.call_id.as_str()).map_or("unnamed", String::as_str);
    json!({"functionResponse": {
        "id": ids.get(&result.call_id),
        "name": name,
        "response": {"name": name, "content": result_text(result)},
    }})
}

fn image(image: &Image) -> Value {
    match Picture::of(image) {
        Picture::Told(text) => json!({"text": text}),
        Picture::Url(url) => json!({"file_data": {"mime_type": image.media_type, "file_uri": url}}),
        Picture::Base64 { media_type, data } => {
            json!({"inline_data": {"mime_type": media_type, "data": data}})
        }
    }
}

/// Reads an event stream.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// A signature without text: it belongs to the last text.
    signature: Option<String>,
}

impl Reader {
    pub(super) fn event(&mut self, chunk: &Value, draft: &mut Draft) -> Progress {
        draft.name(&chunk["responseId"]);
        if let Some(usage) = usage(&chunk["usageMetadata"]) {
            draft.usage = Some(usage);
        }
        // The prompt itself was blocked.
        let blocked = &chunk["promptFeedback"];
        if let Some(word) = blocked["blockReason"].as_str() {
            draft.refused = true;
            draft.finish = Some(word.to_owned());
            draft.explain(&blocked["blockReasonMessage"]);
            return Progress::Done;
        }
        if chunk.get("candidates").is_none() {
            draft.stray(chunk);
        }
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.part(part, draft);
        }
        let Some(word) = candidate["finishReason"].as_str() else { return Progress::More };
        draft.finish = Some(word.to_owned());
        draft.explain(&candidate["finishMessage"]);
        if let Some(signature) = self.signature.take() {
            sign_text(draft, &signature);
        }
        Progress::Done
    }

    fn part(&mut self, part: &Value, draft: &mut Draft) {
        let signature = part["thoughtSignature"].as_str();
        if let Some(call) = part.get("functionCall") {
            let text = |field: &str| call[field].as_str().unwrap_or_default().to_owned();
            let arguments = call.get("args").filter(|args| !args.is_null());
            draft.part(Part::ToolCall(ToolCall {
                id: call["id"]
                    .as_str()
                    .map_or_else(|| format!("call_{}", text("name")), str::to_owned),
                name: text("name"),
                arguments: arguments.map(Value::to_string).unwrap_or_default(),
                opaque: signature.map(|it| draft.opaque(it)),
            }));
            return;
        }
        let text = part["text"].as_str().unwrap_or_default();
        if part["thought"] == true {
            draft.thinking(text, None);
        } else {
            draft.text(text);
        }
        match signature {
            Some(signature) if !text.is_empty() && part["thought"] != true => {
                sign_text(draft, signature);
            }
            Some(signature) => self.signature = Some(signature.to_owned()),
            None => {}
        }
    }
}

/// Signs the last text, unless it is signed already.
fn sign_text(draft: &mut Draft, signature: &str) {
    let opaque = draft.opaque(signature);
    let text = draft.parts.iter_mut().rev().find_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    if let Some(text) = text.filter(|text| text.opaque.is_none()) {
        text.opaque = Some(opaque);
    }
}

/// Gemini counts thinking separately from the output, and omits the output if there was only
/// thinking.
fn usage(said: &Value) -> Option<Usage> {
    let count = |field: &str| said[field].as_u64();
    let (input, of_tools) = (count("promptTokenCount"), count("toolUsePromptTokenCount"));
    let (output, reasoning) = (count("candidatesTokenCount"), count("thoughtsTokenCount"));
    input.or(of_tools).or(output)?;
    let sum =
        |one: Option<u64>, two: Option<u64>| one.unwrap_or(0).saturating_add(two.unwrap_or(0));
    let input = sum(input, of_tools);
    Some(Usage {
        input,
        output: sum(output, reasoning),
        cached: count("cachedContentTokenCount").unwrap_or(0).min(input),
        cache_written: 0,
        reasoning: reasoning.unwrap_or(0),
    })
}
