//! OpenAI's chat completions, also of compatible servers: requests and their streamed answers.

use serde_json::{Value, json};
use stepwell::Message;
use stepwell::model::{Image, Part, Role, ToolCall, Usage};

use super::calls::{self, Calls};
use super::draft::Draft;
use super::outgoing::{Ids, arguments, own, result_text, spoken, systems, tool_name};
use super::picture::Picture;
use super::{Progress, Sampling};
use crate::provider::{Request, ToolSpec};

/// Marks thinking from the field `reasoning_content`. Some vendors want it back beside the calls
/// that it led to; OpenAI never sends it.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";

/// The request body.
pub(super) fn body(provider: &str, request: Request<'_>, sampling: Sampling) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if let Some(system) = systems(request.system, std::iter::empty()) {
        messages.push(json!({"role": "system", "content": system}));
    }
    let ids = Ids::of(request.messages);
    for message in request.messages {
        push(&mut messages, message, &ids, provider);
    }
    let mut body = json!({"model": request.model, "stream": true});
    body["stream_options"] = json!({"include_usage": true});
    body[limit_field(provider, request.model)] = json!(request.max_output);
    sampling.write(&mut body, "temperature", "top_p");
    if let Some(effort) = sampling.effort {
        body["reasoning_effort"] = json!(effort.as_str());
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body["messages"] = Value::Array(messages);
    body
}

fn tool(spec: &ToolSpec) -> Value {
    json!({"type": "function", "function": {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }})
}

/// OpenAI's newer models reject `max_tokens`; many compatible servers know nothing else.
fn limit_field(provider: &str, model: &str) -> &'static str {
    let base = model.rsplit('/').next().unwrap_or(model);
    let newer = ["gpt-5", "gpt-6", "o1", "o3", "o4"].iter().any(|new| base.starts_with(new));
    if provider == "openai" || newer { "max_completion_tokens" } else { "max_tokens" }
}

fn push(messages: &mut Vec<Value>, message: &Message, ids: &Ids<'_>, provider: &str) {
    match message.role {
        Role::System => {
            let text = message.text();
            if !text.trim().is_empty() {
                messages.push(json!({"role": "system", "content": text}));
            }
        }
        Role::User => messages.extend(user(&message.parts)),
        Role::Assistant => messages.extend(assistant(message, ids, provider)),
        Role::Tool => {
            for result in message.results() {
                messages.push(json!({
                    "role": "tool",
                    "tool_call_id": ids.get(&result.call_id),
                    "content": result_text(result),
                }));
            }
            // A tool message contains only text, so pictures go into a user message.
            let images: Vec<Value> =
                message.results().flat_map(|result| &result.images).map(image).collect();
            if !images.is_empty() {
                let mut content = vec![json!({"type": "text", "text": "The tools' pictures:"})];
                content.extend(images);
                messages.push(json!({"role": "user", "content": content}));
            }
        }
    }
}

fn user(parts: &[Part]) -> Option<Value> {
    let mut content: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => spoken(text).map(|text| json!({"type": "text", "text": text})),
            Part::Image(picture) => Some(image(picture)),
            Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        })
        .collect();
    // Plain text as a plain string, which every server accepts.
    let content = match content.as_mut_slice() {
        [] => return None,
        [only] if only["type"] == "text" => only["text"].take(),
        _ => Value::Array(content),
    };
    Some(json!({"role": "user", "content": content}))
}

fn assistant(message: &Message, ids: &Ids<'_>, provider: &str) -> Option<Value> {
    let texts: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { spoken(text) } else { None })
        .collect();
    let calls: Vec<Value> = message.calls().map(|call| tool_call(call, ids)).collect();
    if texts.is_empty() && calls.is_empty() {
        return None;
    }
    let mut sent = json!({"role": "assistant"});
    if !texts.is_empty() {
        sent["content"] = json!(texts.join("\n"));
    }
    if calls.is_empty() {
        return Some(sent);
    }
    sent["tool_calls"] = Value::Array(calls);
    let thoughts: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Thinking(text) => own(text.opaque.as_ref(), provider)
                .is_some_and(|field| field == REASONING_CONTENT)
                .then_some(text.text.as_str()),
            _ => None,
        })
        .collect();
    if !thoughts.is_empty() {
        sent[REASONING_CONTENT] = json!(thoughts.join("\n"));
    }
    Some(sent)
}

/// If the arguments are an object, they go back byte for byte as the model wrote them.
fn tool_call(call: &ToolCall, ids: &Ids<'_>) -> Value {
    let well_formed = matches!(serde_json::from_str(&call.arguments), Ok(Value::Object(_)));
    let text = if well_formed {
        call.arguments.clone()
    } else {
        Value::Object(arguments(&call.arguments)).to_string()
    };
    json!({
        "id": ids.get(&call.id),
        "type": "function",
        "function": {"name": tool_name(&call.name), "arguments": text},
    })
}

fn image(image: &Image) -> Value {
    let url = match Picture::of(image) {
        Picture::Told(text) => return json!({"type": "text", "text": text}),
        Picture::Url(url) => url.to_owned(),
        Picture::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    };
    json!({"type": "image_url", "image_url": {"url": url}})
}

/// Reads an event stream.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    calls: Calls,
    /// The tools of the request.
    tools: &'a [ToolSpec],
}

impl<'a> Reader<'a> {
    pub(super) fn new(tools: &'a [ToolSpec]) -> Self {
        Self { calls: Calls::default(), tools }
    }

    pub(super) fn event(&mut self, chunk: &Value, draft: &mut Draft) -> Progress {
        draft.name(&chunk["id"]);
        if let Some(usage) = usage(&chunk["usage"]) {
            draft.usage = Some(usage);
        }
        if chunk.get("choices").is_none() {
            draft.stray(chunk);
        }
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        for field in [REASONING_CONTENT, "reasoning"] {
            if let Some(text) = delta[field].as_str().filter(|text| !text.is_empty()) {
                draft.thinking(text, Some(REASONING_CONTENT));
                break;
            }
        }
        content(&delta["content"], draft);
        if let Some(text) = delta["refusal"].as_str().filter(|text| !text.is_empty()) {
            draft.refused = true;
            draft.text(text);
        }
        if self.calls.delta(delta) {
            draft.more();
        }
        if let Some(word) = choice["finish_reason"].as_str().filter(|word| !word.is_empty()) {
            draft.finish = Some(word.to_owned());
        }
        Progress::More
    }

    /// The stream ended. Only now are the calls complete, so they follow the other parts.
    pub(super) fn end(&mut self, draft: &mut Draft) -> Progress {
        let calls = std::mem::take(&mut self.calls).finish();
        if calls.is_empty() {
            calls::take_written(&mut draft.parts, self.tools);
        }
        draft.parts.extend(calls.into_iter().map(Part::ToolCall));
        Progress::Done
    }
}

/// Text, or (from Mistral's reasoning models) a list of texts and thoughts.
fn content(content: &Value, draft: &mut Draft) {
    match content {
        Value::String(text) => draft.text(text),
        Value::Array(pieces) => {
            for piece in pieces {
                draft.text(piece["text"].as_str().unwrap_or_default());
                for thought in piece["thinking"].as_array().into_iter().flatten() {
                    let text = thought["text"].as_str().unwrap_or_default();
                    draft.thinking(text, Some(REASONING_CONTENT));
                }
            }
        }
        _ => {}
    }
}

fn usage(said: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64();
    let (input, output) = (count(&said["prompt_tokens"]), count(&said["completion_tokens"]));
    input.or(output)?;
    let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    let details = &said["prompt_tokens_details"];
    let part = |value: &Value, of: u64| count(value).unwrap_or(0).min(of);
    Some(Usage {
        input,
        output,
        cached: part(&details["cached_tokens"], input),
        cache_written: part(&details["cache_creation_tokens"], input),
        reasoning: part(&said["completion_tokens_details"]["reasoning_tokens"], output),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named_as_the_model_wants_it() {
        assert_eq!(limit_field("openai", "gpt-4o"), "max_completion_tokens");
        assert_eq!(limit_field("mine", "llama3"), "max_tokens");
        assert_eq!(limit_field("openrouter", "openai/o3-mini"), "max_completion_tokens");
    }
}
