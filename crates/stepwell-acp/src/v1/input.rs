//! What clients send, as types. Fields that we have no use for are not read.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::rpc::{Id, Result, RpcError};

/// Reads a request's parameters. They are named: a list has no meaning here.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T> {
    let params = match params {
        Value::Null => Value::Object(Map::new()),
        Value::Object(_) => params,
        _ => return Err(RpcError::invalid_params("`params` is no object")),
    };
    let read = serde_json::from_value(params);
    read.map_err(|error| RpcError::invalid_params(plain(&error.to_string())))
}

/// What is wrong with parameters, in words that a client's author knows.
fn plain(why: &str) -> String {
    const WORDS: [(&str, &str); 8] = [
        ("missing field", "missing:"),
        ("invalid type:", "wrong type:"),
        ("unknown variant", "unknown:"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected an object"),
        ("expected path string", "expected a path"),
        ("expected u64", "expected a whole number"),
        ("expected usize", "expected a whole number"),
    ];
    WORDS.iter().fold(why.to_owned(), |why, (theirs, ours)| why.replace(theirs, ours))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct Initialize {
    pub(super) protocol_version: Value,
    #[serde(default)]
    pub(super) client_capabilities: Capabilities,
}

/// What the client can do. What is not there, or has another form, it cannot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct Capabilities {
    session: Value,
    elicitation: Value,
}

impl Capabilities {
    pub(super) fn notices(&self) -> bool {
        self.session.get("notices").is_some_and(Value::is_object)
    }

    pub(super) fn compactions(&self) -> bool {
        self.session.get("compaction").is_some_and(Value::is_object)
    }

    pub(super) fn forms(&self) -> bool {
        self.elicitation.get("form").is_some_and(Value::is_object)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct NewSession {
    pub(super) cwd: PathBuf,
    #[serde(default)]
    pub(super) additional_directories: Vec<PathBuf>,
    pub(super) mcp_servers: Vec<McpServer>,
}

/// Asks for a session that was there before.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct OldSession {
    pub(super) session_id: String,
    pub(super) cwd: PathBuf,
    #[serde(default)]
    pub(super) additional_directories: Vec<PathBuf>,
    #[serde(default)]
    pub(super) mcp_servers: Vec<McpServer>,
}

/// Names a session and nothing else.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct OneSession {
    pub(super) session_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct ListSessions {
    pub(super) cwd: Option<PathBuf>,
    pub(super) cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct SetMode {
    pub(super) session_id: String,
    pub(super) mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct SetOption {
    pub(super) session_id: String,
    pub(super) config_id: String,
    pub(super) value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct SetTitle {
    pub(super) session_id: String,
    pub(super) title: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct Prompt {
    pub(super) session_id: String,
    pub(super) prompt: Vec<Content>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(expecting = "an object")]
pub(super) struct CancelRequest {
    pub(super) request_id: Id,
}

/// A piece of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[serde(expecting = "an object with a type")]
pub(super) enum Content {
    Text { text: String },
    ResourceLink { name: String, uri: String },
    Resource { resource: Resource },
    Image {},
    Audio {},
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Resource {
    uri: String,
    text: Option<String>,
}

/// A prompt as text. Files that the client sends along are quoted.
pub(super) fn text(prompt: &[Content]) -> Result<String> {
    let mut parts = Vec::new();
    for content in prompt {
        parts.push(match content {
            Content::Text { text } => text.clone(),
            Content::ResourceLink { name, uri } => format!("[{name}]({uri})"),
            Content::Resource { resource: Resource { uri, text: Some(text) } } => {
                format!("\n<context ref=\"{uri}\">\n{text}\n</context>\n")
            }
            Content::Resource { .. } | Content::Image {} | Content::Audio {} => {
                let why = "pictures, sounds and other bytes are not taken in prompts";
                return Err(RpcError::invalid_params(why));
            }
        });
    }
    let text = parts.concat();
    match text.trim().is_empty() {
        true => Err(RpcError::invalid_params("the prompt is empty")),
        false => Ok(text),
    }
}

/// An MCP server of the client's.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[serde(expecting = "an MCP server has a name and a command, or a type, a name and a url")]
pub(super) enum McpServer {
    Remote {
        #[serde(rename = "type")]
        kind: RemoteKind,
        name: String,
        url: String,
        #[serde(default)]
        headers: Vec<Pair>,
    },
    Program {
        name: String,
        command: PathBuf,
        #[serde(default)]
        args: Vec<String>,
        #[serde(default)]
        env: Vec<Pair>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RemoteKind {
    Http,
    Sse,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_prompt_is_its_texts_and_what_they_refer_to() {
        let prompt: Prompt = read(json!({"sessionId": "s", "prompt": [
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///a.rs"},
            {"type": "resource", "resource": {"uri": "file:///b.rs", "text": "fn b() {}"}},
        ]}))
        .unwrap();
        let said = text(&prompt.prompt).unwrap();
        assert!(said.starts_with("Look at [a.rs](file:///a.rs)"), "{said}");
        assert!(said.contains("<context ref=\"file:///b.rs\">\nfn b() {}\n</context>"), "{said}");
    }

    #[test]
    fn what_was_not_offered_is_refused() {
        let image = json!([{"type": "image", "data": "", "mimeType": "image/png"}]);
        let prompt: Prompt = read(json!({"sessionId": "s", "prompt": image})).unwrap();
        assert_eq!(text(&prompt.prompt).unwrap_err().code, RpcError::INVALID_PARAMS);
        let empty: Prompt = read(json!({"sessionId": "s", "prompt": []})).unwrap();
        assert_eq!(text(&empty.prompt).unwrap_err().code, RpcError::INVALID_PARAMS);
        assert_eq!(read::<Prompt>(json!({})).unwrap_err().code, RpcError::INVALID_PARAMS);
    }

    #[test]
    fn what_is_wrong_with_parameters_is_said_in_plain_words() {
        let servers = json!([{"name": 1}]);
        for (params, says) in [
            (json!(["s"]), "`params` is no object"),
            (json!({"mcpServers": []}), "missing: `cwd`"),
            (json!({"cwd": "/", "mcpServers": "no"}), "wrong type: string \"no\", expected a list"),
            (
                json!({"cwd": "/", "mcpServers": servers}),
                "an MCP server has a name and a command, or a type, a name and a url",
            ),
        ] {
            let said = read::<NewSession>(params).unwrap_err();
            assert_eq!((said.code, said.message.as_str()), (RpcError::INVALID_PARAMS, says));
        }
        let able = json!({"protocolVersion": 1, "clientCapabilities": "no"});
        let said = read::<Initialize>(able).unwrap_err().message;
        assert_eq!(said, "wrong type: string \"no\", expected an object");
        let prompt = json!({"sessionId": "s", "prompt": [{"type": "video"}]});
        let said = read::<Prompt>(prompt).unwrap_err().message;
        assert!(said.starts_with("unknown: `video`, expected one of `text`"), "{said}");
    }

    #[test]
    fn capabilities_of_another_form_count_for_none() {
        let strange: Initialize =
            read(json!({"protocolVersion": 1, "clientCapabilities": {"session": 3, "elicitation": {"form": true}}}))
                .unwrap();
        let able = strange.client_capabilities;
        assert!(!able.notices() && !able.compactions() && !able.forms());
        let able: Initialize = read(json!({"protocolVersion": 1, "clientCapabilities":
            {"session": {"notices": {}, "compaction": {}}, "elicitation": {"form": {}}}}))
        .unwrap();
        let able = able.client_capabilities;
        assert!(able.notices() && able.compactions() && able.forms());
    }
}
