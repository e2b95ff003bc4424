//! A conversation as Gemini takes it, in the client library's words.

use genai::chat::Binary;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatRole, ContentPart, MessageContent, ReasoningEffort,
    ToolCall, ToolResponse,
};
use serde_json::{Value, json};
use stepwell::{Image, Message, Part, Role};

use super::WireRequest;
use super::outgoing::{Ids, arguments, own, result_text, spoken, systems, tool_name, tools};
use super::picture::Picture;
use crate::provider::Request;

pub(super) fn encode(provider: &str, request: Request<'_>) -> WireRequest {
    let ids = Ids::of(request.messages);
    let mut messages = Vec::with_capacity(request.messages.len());
    for message in request.messages {
        match message.role {
            Role::System => {}
            Role::User => messages.extend(said(ChatRole::User, user(message))),
            Role::Assistant => {
                messages.extend(said(ChatRole::Assistant, assistant(message, &ids, provider)));
            }
            Role::Tool => {
                let results = message.results().map(|result| {
                    let id = ids.get(&result.call_id);
                    ContentPart::ToolResponse(ToolResponse::new(id, result_text(result)))
                });
                messages.extend(said(ChatRole::Tool, results.collect()));
                // A function's response holds text only: the user shows the pictures.
                let images = message.results().flat_map(|result| &result.images).map(image);
                messages.extend(said(ChatRole::User, images.collect()));
            }
        }
    }
    let mut chat = ChatRequest::new(messages);
    let info = request.messages.iter().filter(|message| message.role == Role::System);
    chat.system = systems(request.system, info);
    chat.tools = tools(request.tools);
    // With an effort of its own the library leaves the name alone, which is part of the URL
    // here; what it makes of the effort is replaced with the whole configuration.
    let body = json!({"generationConfig": {"maxOutputTokens": request.max_output}});
    WireRequest {
        model: request.model.to_owned(),
        chat,
        options: ChatOptions::default()
            .with_reasoning_effort(ReasoningEffort::Budget(0))
            .with_extra_body(body),
    }
}

fn said(role: ChatRole, parts: Vec<ContentPart>) -> Option<ChatMessage> {
    (!parts.is_empty()).then(|| ChatMessage::new(role, MessageContent::from_parts(parts)))
}

fn user(message: &Message) -> Vec<ContentPart> {
    message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => spoken(text).map(|text| ContentPart::Text(text.to_owned())),
            Part::Image(picture) => Some(image(picture)),
            Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        })
        .collect()
}

fn assistant(message: &Message, ids: &Ids<'_>, provider: &str) -> Vec<ContentPart> {
    let mut parts = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text(text) => {
                let Some(spoken) = spoken(text) else { continue };
                if let Some(signature) = own(text.opaque.as_ref(), provider) {
                    parts.push(ContentPart::ThoughtSignature(signature.to_owned()));
                }
                parts.push(ContentPart::Text(spoken.to_owned()));
            }
            Part::ToolCall(call) => parts.push(ContentPart::ToolCall(ToolCall {
                call_id: ids.get(&call.id),
                fn_name: tool_name(&call.name),
                fn_arguments: Value::Object(arguments(&call.arguments)),
                thought_signatures: own(call.opaque.as_ref(), provider)
                    .map(|signature| vec![signature.to_owned()]),
            })),
            Part::Thinking(_) | Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
    parts
}

fn image(image: &Image) -> ContentPart {
    ContentPart::Binary(match Picture::of(image) {
        Picture::Told(text) => return ContentPart::Text(text),
        Picture::Url(url) => Binary::from_url(image.media_type.as_str(), url, None),
        Picture::Base64 { media_type, data } => Binary::from_base64(media_type, &*data, None),
    })
}
