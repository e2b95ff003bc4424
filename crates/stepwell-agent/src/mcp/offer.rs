//! A server's tools as a model sees them: of limited size, and in a form that every provider
//! accepts.

use serde_json::{Map, Value};
use stepwell::model::Effect;
use stepwell_catalog::server::ServerName;

use crate::provider::ToolSpec;
use crate::tool::cut;

/// The longest description. Every request repeats all descriptions.
const LONGEST_DESCRIPTION: usize = 4 << 10;

/// The largest schema.
const LARGEST_SCHEMA: usize = 32 << 10;

/// The longest tool name of a server.
const LONGEST_NAME: usize = 256;

/// Keywords that providers reject at the top of a schema (`$schema`: some of them). The server
/// still checks the arguments.
const NOT_TAKEN: [&str; 6] = ["$schema", "oneOf", "anyOf", "allOf", "not", "enum"];

/// A tool that a server offers.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    /// The tool's description for the model.
    pub(super) spec: ToolSpec,
    /// The tool's name at the server.
    pub(super) own: String,
    pub(super) effect: Effect,
}

/// One page of a tool list, and why some entries are not used.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) tools: Vec<Result<rmcp::model::Tool, String>>,
    pub(super) next: Option<String>,
}

impl Page {
    /// Parses a list entry by entry. A tool without a schema takes any arguments.
    pub(super) fn of(list: &Value) -> Option<Self> {
        let tool = |listed: &Value| {
            let mut tool = listed.clone();
            if !tool["inputSchema"].is_object() && tool.is_object() {
                tool["inputSchema"] = Map::new().into();
            }
            let name = cut(listed["name"].as_str().unwrap_or("one without a name"), LONGEST_NAME);
            serde_json::from_value(tool).map_err(|_| format!("{name} is not a valid MCP tool"))
        };
        let tools = list["tools"].as_array()?.iter().map(tool).collect();
        Some(Self { tools, next: list["nextCursor"].as_str().map(str::to_owned) })
    }
}

/// Converts a tool, or says why it is not used.
pub(super) fn take(server: &ServerName, tool: &rmcp::model::Tool) -> Result<Offered, String> {
    let own = tool.name.as_ref();
    if own.is_empty() || own.len() > LONGEST_NAME {
        return Err(format!("a tool's name has {} bytes", own.len()));
    }
    let parameters = parameters(tool.input_schema.as_ref().clone());
    let bytes = parameters.to_string().len();
    if bytes > LARGEST_SCHEMA {
        return Err(format!("the schema of {own} has {bytes} bytes"));
    }
    let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let shown = cut(description, LONGEST_DESCRIPTION);
    let more = if shown.len() < description.len() { " …" } else { "" };
    let only_reads = tool.annotations.as_ref().and_then(|it| it.read_only_hint).unwrap_or_default();
    Ok(Offered {
        spec: ToolSpec {
            name: server.tool(own),
            description: format!("{shown}{more}"),
            parameters,
        },
        own: own.to_owned(),
        effect: if only_reads { Effect::Pure } else { Effect::Unsafe },
    })
}

fn parameters(mut schema: Map<String, Value>) -> Value {
    for key in NOT_TAKEN {
        schema.remove(key);
    }
    schema.insert("type".to_owned(), "object".into());
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), Map::new().into());
    }
    schema.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(tool: Value) -> Result<Offered, String> {
        take(&"s".parse().unwrap(), &serde_json::from_value(tool).unwrap())
    }

    #[test]
    fn only_what_says_that_it_only_reads_is_pure() {
        let with = |annotations: Value| {
            let tool = json!({"name": "t", "inputSchema": {}, "annotations": annotations});
            taken(tool).unwrap().effect
        };
        assert_eq!(with(json!({"readOnlyHint": true})), Effect::Pure);
        for annotations in [json!(null), json!({}), json!({"readOnlyHint": false})] {
            assert_eq!(with(annotations), Effect::Unsafe);
        }
        assert_eq!(with(json!({"idempotentHint": true})), Effect::Unsafe);
    }

    #[test]
    fn a_schema_is_one_that_providers_take() {
        let schema = json!({
            "$schema": "x", "anyOf": [{"required": ["a"]}], "properties": {"a": {"anyOf": []}}
        });
        let offered = taken(json!({"name": "t", "inputSchema": schema})).unwrap();
        let expected = json!({"type": "object", "properties": {"a": {"anyOf": []}}});
        assert_eq!(offered.spec.parameters, expected);
        let empty = taken(json!({"name": "t", "inputSchema": {}})).unwrap();
        assert_eq!(empty.spec.parameters, json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn a_tool_that_is_not_as_mcp_wants_it_costs_no_other() {
        let list = json!({"nextCursor": "2", "tools": [
            {"name": "bare"}, {"name": "null", "inputSchema": null}, {"inputSchema": {}}, 7,
            {"name": "whole", "inputSchema": {"type": "object"}},
        ]});
        let page = Page::of(&list).unwrap();
        let names: Vec<_> =
            page.tools.iter().map(|tool| tool.as_ref().map(|it| &*it.name)).collect();
        assert_eq!((names[0], names[1], names[4]), (Ok("bare"), Ok("null"), Ok("whole")));
        assert!(page.tools[2].is_err() && page.tools[3].is_err());
        assert_eq!(page.next.as_deref(), Some("2"));
        assert!(Page::of(&json!({"tools": 3})).is_none());
    }

    #[test]
    fn what_is_too_large_is_cut_or_left() {
        let long = json!({"name": "t", "description": "é".repeat(9_999), "inputSchema": {}});
        let told = taken(long).unwrap().spec.description;
        assert!(told.len() < LONGEST_DESCRIPTION + 9 && told.ends_with("é …"), "{}", told.len());
        let large = json!({"properties": {"a": {"description": "x".repeat(LARGEST_SCHEMA)}}});
        let why = taken(json!({"name": "big", "inputSchema": large})).unwrap_err();
        assert!(why.contains("schema of big"), "{why}");
        assert!(taken(json!({"name": "", "inputSchema": {}})).is_err());
        assert!(taken(json!({"name": "n".repeat(999), "inputSchema": {}})).is_err());
    }
}
