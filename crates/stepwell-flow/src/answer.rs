//! Turns an agent's answer into a node's output. Pure.

use serde_json::{Map, Value, json};

/// The output for an answer that is used unchanged.
pub(crate) fn text_output(text: &str) -> Map<String, Value> {
    Map::from_iter([("response".to_owned(), text.into())])
}

/// The JSON Schema that an agent's answers must match, if it has one.
#[derive(Debug)]
pub(crate) struct OutputSchema(Option<jsonschema::Validator>);

impl OutputSchema {
    /// Compiles a schema. Without one, every answer is valid.
    pub(crate) fn new(schema: Option<&Value>) -> Result<Self, String> {
        let compiled = schema.map(jsonschema::validator_for).transpose();
        compiled.map(Self).map_err(|error| format!("output_schema: {error}"))
    }

    /// Whether the agent has a schema at all.
    pub(crate) const fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// Parses and validates an answer. Without a schema the answer stays text.
    pub(crate) fn read(&self, text: &str) -> Result<Map<String, Value>, String> {
        let Some(schema) = &self.0 else { return Ok(text_output(text)) };
        let value = parse_json(text).ok_or("not JSON, but the schema requires JSON")?;
        check(schema, &value)?;
        Ok(Map::from_iter([("response".to_owned(), value)]))
    }

    /// Validates an answer whose output is read by other means.
    pub(crate) fn validate(&self, text: &str) -> Result<(), String> {
        self.read(text).map(drop)
    }
}

/// Reports at most the first three errors.
fn check(schema: &jsonschema::Validator, value: &Value) -> Result<(), String> {
    let errors = schema.iter_errors(value).take(3).map(|error| {
        let path = error.instance_path().to_string();
        if path.is_empty() { error.to_string() } else { format!("{path}: {error}") }
    });
    let errors: Vec<String> = errors.collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// Reads which route a router chose.
pub(crate) fn route<'a>(
    text: &str,
    routes: impl Iterator<Item = &'a str> + Clone,
) -> Result<Map<String, Value>, String> {
    let named = parse_json(text).and_then(|value| {
        let route = value.get("route").or_else(|| value.get("chosen_route"))?;
        Some(route.as_str()?.trim().to_owned())
    });
    let named = named.unwrap_or_else(|| text.trim().trim_matches(['"', '`', '.']).to_owned());
    if let Some(route) = routes.clone().find(|route| *route == named) {
        let mut output = text_output(text);
        output.insert("chosen_route".to_owned(), route.into());
        return Ok(output);
    }
    let routes: Vec<&str> = routes.collect();
    let named: String = named.chars().take(60).collect();
    Err(format!(
        "{named:?} is not a route. Answer with JSON, {}, where the route is one of: {}",
        json!({"route": "…"}),
        routes.join(", ")
    ))
}

/// Reads an evaluator's score, with every other field of its answer.
pub(crate) fn score(text: &str) -> Result<Map<String, Value>, String> {
    let expected = "answer with JSON that has a score from 0 to 100, such as \
                    {\"score\": 70, \"issues\": [], \"fixes\": []}";
    let Some(Value::Object(fields)) = parse_json(text) else {
        return Err(format!("it is not a JSON object; {expected}"));
    };
    let score = fields.get("score").and_then(Value::as_f64);
    let Some(score) = score.filter(|score| (0.0..=100.0).contains(score)) else {
        return Err(format!("it has no score; {expected}"));
    };
    let mut output = text_output(text);
    let list = |name: &str| fields.get(name).cloned().unwrap_or_else(|| json!([]));
    let (issues, fixes) = (list("issues"), list("fixes"));
    let texts = |list: &Value| -> Vec<String> {
        let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    output.insert("feedback".to_owned(), texts(&issues).join("; ").into());
    output.extend([("issues".to_owned(), issues), ("fixes".to_owned(), fixes)]);
    output.extend(fields.into_iter().filter(|(name, _)| name != "response"));
    output.insert("score".to_owned(), json_number(score));
    Ok(output)
}

/// A number as JSON: an integer if it has no fraction, so that templates print `70`, not `70.0`.
#[expect(clippy::cast_possible_truncation, reason = "it is between 0 and 100")]
pub(crate) fn json_number(number: f64) -> Value {
    if number.fract() == 0.0 { Value::from(number as i64) } else { Value::from(number) }
}

/// Reads the subtasks that an orchestrator hands out.
pub(crate) fn subtasks(text: &str, max: Option<u32>) -> Result<Map<String, Value>, String> {
    let expected = "answer with a JSON list of subtasks, such as [{\"task\": \"…\"}]";
    let parsed = parse_json(text).ok_or_else(|| format!("it is not JSON; {expected}"))?;
    let list = match parsed {
        Value::Array(list) => list,
        Value::Object(mut fields) => {
            match fields.remove("tasks").or_else(|| fields.remove("subtasks")) {
                Some(Value::Array(list)) => list,
                _ => return Err(format!("it is not a list; {expected}")),
            }
        }
        _ => return Err(format!("it is not a list; {expected}")),
    };
    if let Some(max) = max.filter(|max| list.len() > *max as usize) {
        return Err(format!("{} subtasks are too many: the limit is {max}", list.len()));
    }
    let task = |item: Value| match item {
        Value::String(text) => Ok(json!({ "task": text })),
        Value::Object(fields) if fields.get("task").is_some_and(Value::is_string) => {
            Ok(Value::Object(fields))
        }
        other => Err(format!("{other} is not a subtask; {expected}")),
    };
    let tasks: Vec<Value> = list.into_iter().map(task).collect::<Result<_, _>>()?;
    let mut output = text_output(text);
    output.insert("tasks".to_owned(), tasks.into());
    Ok(output)
}

/// The JSON in an answer: the whole text, a fenced block, or the part between braces or brackets.
pub(crate) fn parse_json(text: &str) -> Option<Value> {
    let text = text.trim();
    let whole = serde_json::from_str(text).ok();
    let fenced = || {
        let (_, rest) = text.split_once("```")?;
        let (inside, _) = rest.split_once("```")?;
        let inside = inside.strip_prefix("json").unwrap_or(inside);
        serde_json::from_str(inside.trim()).ok()
    };
    let between = |open: char, close: char| {
        let (from, to) = (text.find(open)?, text.rfind(close)?);
        serde_json::from_str(text.get(from..=to)?).ok()
    };
    let list_first = text.find('[') < text.find('{') && text.contains('[');
    let (first, second) =
        if list_first { (('[', ']'), ('{', '}')) } else { (('{', '}'), ('[', ']')) };
    whole
        .or_else(fenced)
        .or_else(|| between(first.0, first.1))
        .or_else(|| between(second.0, second.1))
        .filter(|value: &Value| value.is_object() || value.is_array())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str) -> Result<String, String> {
        let output = route(text, ["billing", "tech"].into_iter())?;
        Ok(output["chosen_route"].as_str().unwrap().to_owned())
    }

    #[test]
    fn a_route_is_found_however_the_model_formats_it() {
        for said in [
            "billing",
            " \"billing\".\n",
            r#"{"route": "billing"}"#,
            "```json\n{\"route\": \"billing\"}\n```",
            r#"I think {"route": "billing", "rationale": "money"} fits."#,
        ] {
            assert_eq!(chosen(said).unwrap(), "billing", "{said}");
        }
        for said in ["", "sales", r#"{"route": "sales"}"#, r#"{"route": 3}"#, "billing or tech"] {
            assert!(chosen(said).unwrap_err().contains("billing, tech"), "{said}");
        }
    }

    #[test]
    fn a_score_is_a_number_between_0_and_100() {
        let said = score(r#"{"score": 70.0, "issues": ["short", "dull"], "mood": 1}"#).unwrap();
        assert_eq!(said["score"], 70);
        assert_eq!((&said["feedback"], &said["mood"]), (&"short; dull".into(), &1.into()));
        assert_eq!(said["fixes"], json!([]));
        for wrong in ["good", "{}", r#"{"score": 101}"#, r#"{"score": "high"}"#, "[1]"] {
            assert!(score(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn subtasks_are_a_list_of_texts_or_objects() {
        let tasks = |text: &str| subtasks(text, Some(2)).map(|output| output["tasks"].clone());
        assert_eq!(tasks(r#"["a"]"#).unwrap(), json!([{"task": "a"}]));
        assert_eq!(
            tasks(r#"{"tasks": [{"task": "a", "n": 1}]}"#).unwrap(),
            json!([{"task": "a", "n": 1}])
        );
        assert_eq!(tasks("[]").unwrap(), json!([]));
        for wrong in ["do it", "{}", "[1]", r#"["a", "b", "c"]"#] {
            assert!(tasks(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_matches_its_schema_or_the_error_says_where_not() {
        let schema = json!({"type": "object", "required": ["n"],
            "properties": {"n": {"type": "integer"}}});
        let schema = OutputSchema::new(Some(&schema)).unwrap();
        assert_eq!(schema.read("```\n{\"n\": 1}\n```").unwrap()["response"], json!({"n": 1}));
        assert!(schema.read("{\"n\": \"x\"}").unwrap_err().contains("/n"));
        assert!(schema.read("no").is_err());
        assert_eq!(OutputSchema::new(None).unwrap().read("no").unwrap()["response"], "no");
    }
}
