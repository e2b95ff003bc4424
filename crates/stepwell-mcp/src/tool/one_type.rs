//! Rewrites schemas so that each value has one type. `"type": ["string", "null"]` is valid, but
//! some clients cannot read it. Pure.

use schemars::Schema;
use schemars::transform::transform_subschemas;
use serde_json::{Map, Value, json};

/// Keywords that apply to every type.
const ABOUT: [&str; 4] = ["default", "description", "examples", "title"];

/// For answers: a value of several types becomes `anyOf`.
pub(super) fn of_output(schema: &mut Schema) {
    if let Some(fields) = schema.as_object_mut() {
        split_types(fields);
    }
    transform_subschemas(&mut of_output, schema);
}

/// For arguments: a nullable value becomes optional, which is the only documented form.
pub(super) fn of_input(schema: &mut Schema) {
    if let Some(fields) = schema.as_object_mut() {
        forget_null(fields);
        split_types(fields);
    }
    transform_subschemas(&mut of_input, schema);
}

fn split_types(fields: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = fields.get("type").cloned() else { return };
    fields.remove("type");
    let mut named: Vec<&Value> = types.iter().filter(|it| *it != "null").collect();
    let is_nullable = named.len() < types.len();
    let mut branches: Vec<Value> = Vec::new();
    if let [only] = named.as_slice() {
        // All other keywords concern that type.
        let about: Vec<String> =
            fields.keys().filter(|key| !ABOUT.contains(&key.as_str())).cloned().collect();
        let mut branch: Map<String, Value> =
            about.into_iter().filter_map(|key| fields.remove_entry(&key)).collect();
        if let Some(Value::Array(values)) = branch.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        branch.insert("type".to_owned(), (*only).clone());
        branches.push(Value::Object(branch));
    } else {
        branches.extend(named.drain(..).map(|name| json!({"type": name})));
    }
    if is_nullable {
        branches.push(json!({"type": "null"}));
    }
    fields.insert("anyOf".to_owned(), Value::Array(branches));
}

fn forget_null(fields: &mut Map<String, Value>) {
    let is_null = |schema: &Value| *schema == json!({"type": "null"});
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|it| it != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(any)) = fields.get_mut("anyOf") {
        any.retain(|schema| !is_null(schema));
        if let [Value::Object(only)] = any.as_slice() {
            let only = only.clone();
            fields.remove("anyOf");
            for (key, value) in only {
                fields.entry(key).or_insert(value);
            }
        }
    }
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(change: fn(&mut Schema), schema: Value) -> Value {
        let mut schema = Schema::try_from(schema).unwrap();
        change(&mut schema);
        schema.to_value()
    }

    #[test]
    fn an_answers_value_of_several_types_is_any_of_as_many_schemas() {
        let given = json!({"type": "object", "properties": {
            "label": {"type": ["string", "null"], "description": "Its label.", "maxLength": 9},
            "level": {"type": ["string", "null"], "enum": ["low", null]},
            "either": {"type": ["integer", "string"]},
            "plain": {"type": "string"},
        }});
        let expected = json!({"type": "object", "properties": {
            "label": {"description": "Its label.",
                "anyOf": [{"type": "string", "maxLength": 9}, {"type": "null"}]},
            "level": {"anyOf": [{"type": "string", "enum": ["low"]}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "plain": {"type": "string"},
        }});
        assert_eq!(changed(of_output, given), expected);
    }

    #[test]
    fn an_argument_that_may_be_null_is_one_that_may_be_left_out() {
        let given = json!({"type": "object", "properties": {
            "label": {"type": ["string", "null"], "default": null},
            "which": {"description": "Which.", "anyOf": [{"type": "object"}, {"type": "null"}]},
            "level": {"type": ["string", "null"], "enum": ["low", null]},
            "either": {"type": ["integer", "string", "null"]},
        }});
        let expected = json!({"type": "object", "properties": {
            "label": {"type": "string"},
            "which": {"description": "Which.", "type": "object"},
            "level": {"type": "string", "enum": ["low"]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        }});
        assert_eq!(changed(of_input, given), expected);
    }
}
