//! The shipped schema is current, and agrees with the parser.

use std::path::Path;

use stepwell_flow::{schema, schema_text};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/flow.schema.json");

#[test]
fn the_shipped_schema_is_current() {
    let shipped = std::fs::read_to_string(Path::new(FILE)).unwrap_or_default();
    // To regenerate it: stepwell flow schema > docs/flow.schema.json
    assert!(shipped == schema_text(), "docs/flow.schema.json is out of date");
}

#[test]
fn the_schema_accepts_and_refuses_what_the_parser_does() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let spec = |steps: &str| -> serde_json::Value {
        let text = format!(
            r#"{{"version": 0, "name": "t", "agents": {{"a": {{"prompt": "p"}}, "b": {{"$ref": "b.md"}}}},
               "inputs": {{"required": {{"x": "string", "y": {{"type": "integer", "enum": [1]}}}}}},
               "pattern": {{"type": "chain", "config": {{"steps": [{steps}]}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    for valid in [
        r#"{"agent": "a", "input": "hi", "vars": {"v": 1}}"#,
        r#"{"type": "hitl", "prompt": "ok?", "default": "yes", "timeout_seconds": 3}"#,
    ] {
        let errors: Vec<_> = validator.iter_errors(&spec(valid)).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{valid}: {errors:?}");
    }
    for refused in [
        r#"{"agent": "a", "inptu": "hi"}"#,
        r#"{"type": "hitl"}"#,
        r#"{"type": "human", "prompt": "x"}"#,
        r#"{"prompt": "x"}"#,
        "3",
    ] {
        assert!(!validator.is_valid(&spec(refused)), "{refused}");
    }
}
