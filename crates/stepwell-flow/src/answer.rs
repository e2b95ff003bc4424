//! What becomes of an agent's answer. Pure.

use serde_json::{Map, Value, json};

/// An answer that is taken as it stands.
pub(crate) fn words(text: &str) -> Map<String, Value> {
    Map::from_iter([("response".to_owned(), text.into())])
}

/// What an answer must be, if its agent says so.
#[derive(Debug)]
pub(crate) struct Shape(Option<jsonschema::Validator>);

impl Shape {
    /// What a JSON Schema describes; without one, anything.
    pub(crate) fn new(schema: Option<&Value>) -> Result<Self, String> {
        let compiled = schema.map(jsonschema::validator_for).transpose();
        compiled.map(Self).map_err(|error| format!("output_schema: {error}"))
    }

    /// Is there something that an answer must be?
    pub(crate) const fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// An answer, as the value that it must be.
    pub(crate) fn read(&self, text: &str) -> Result<Map<String, Value>, String> {
        let Some(schema) = &self.0 else { return Ok(words(text)) };
        let value = value(text).ok_or("it is no JSON, and the schema wants some")?;
        self.check(schema, &value)?;
        Ok(Map::from_iter([("response".to_owned(), value)]))
    }

    fn check(&self, schema: &jsonschema::Validator, value: &Value) -> Result<(), String> {
        let wrong = schema.iter_errors(value).take(3).map(|error| {
            let place = error.instance_path().to_string();
            if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
        });
        let wrong: Vec<String> = wrong.collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }

    /// Checks an answer that is read in another way.
    pub(crate) fn holds(&self, text: &str) -> Result<(), String> {
        self.read(text).map(drop)
    }
}

/// The route that a router chose.
pub(crate) fn route<'a>(
    text: &str,
    routes: impl Iterator<Item = &'a str> + Clone,
) -> Result<Map<String, Value>, String> {
    let said = value(text).and_then(|value| {
        let named = value.get("route").or_else(|| value.get("chosen_route"))?;
        Some(named.as_str()?.trim().to_owned())
    });
    let said = said.unwrap_or_else(|| text.trim().trim_matches(['"', '`', '.']).to_owned());
    if let Some(known) = routes.clone().find(|known| *known == said) {
        let mut output = words(text);
        output.insert("chosen_route".to_owned(), known.into());
        return Ok(output);
    }
    let known: Vec<&str> = routes.collect();
    let said: String = said.chars().take(60).collect();
    Err(format!(
        "{said:?} is no route. Answer with JSON, {}, where the route is one of: {}",
        json!({"route": "…"}),
        known.join(", ")
    ))
}

/// The score of a draft, with all that an evaluator said of it.
pub(crate) fn score(text: &str) -> Result<Map<String, Value>, String> {
    let wanted = "answer with JSON that has a score from 0 to 100, such as \
                  {\"score\": 70, \"issues\": [], \"fixes\": []}";
    let Some(Value::Object(said)) = value(text) else {
        return Err(format!("it is no JSON object; {wanted}"));
    };
    let score = said.get("score").and_then(Value::as_f64);
    let Some(score) = score.filter(|score| (0.0..=100.0).contains(score)) else {
        return Err(format!("it has no score; {wanted}"));
    };
    let mut output = words(text);
    let list = |name: &str| said.get(name).cloned().unwrap_or_else(|| json!([]));
    let (issues, fixes) = (list("issues"), list("fixes"));
    let texts = |list: &Value| -> Vec<String> {
        let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    output.insert("feedback".to_owned(), texts(&issues).join("; ").into());
    output.extend([("issues".to_owned(), issues), ("fixes".to_owned(), fixes)]);
    let own = said.into_iter().filter(|(name, _)| name != "response");
    output.extend(own);
    output.insert("score".to_owned(), whole(score));
    Ok(output)
}

/// A number without a fraction that it does not have.
#[expect(clippy::cast_possible_truncation, reason = "it is between 0 and 100")]
pub(crate) fn whole(number: f64) -> Value {
    if number.fract() == 0.0 { Value::from(number as i64) } else { Value::from(number) }
}

/// What workers are to do.
pub(crate) fn subtasks(text: &str, most: Option<u32>) -> Result<Map<String, Value>, String> {
    let wanted = "answer with a JSON list of subtasks, such as [{\"task\": \"…\"}]";
    let said = value(text).ok_or_else(|| format!("it is no JSON; {wanted}"))?;
    let list = match said {
        Value::Array(list) => list,
        Value::Object(mut said) => match said.remove("tasks").or_else(|| said.remove("subtasks")) {
            Some(Value::Array(list)) => list,
            _ => return Err(format!("it is no list; {wanted}")),
        },
        _ => return Err(format!("it is no list; {wanted}")),
    };
    if let Some(most) = most.filter(|most| list.len() > *most as usize) {
        return Err(format!("these are {} subtasks, and at most {most} can be done", list.len()));
    }
    let task = |item: Value| match item {
        Value::String(text) => Ok(json!({ "task": text })),
        Value::Object(said) if said.get("task").is_some_and(Value::is_string) => {
            Ok(Value::Object(said))
        }
        other => Err(format!("{other} is no subtask; {wanted}")),
    };
    let tasks: Vec<Value> = list.into_iter().map(task).collect::<Result<_, _>>()?;
    let mut output = words(text);
    output.insert("tasks".to_owned(), tasks.into());
    Ok(output)
}

/// The JSON of an answer: all of it, what it fences, or what it holds between braces.
fn value(text: &str) -> Option<Value> {
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
    fn a_route_is_found_however_a_model_says_it() {
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
    fn an_answer_fits_its_schema_or_says_where_it_does_not() {
        let schema = json!({"type": "object", "required": ["n"],
            "properties": {"n": {"type": "integer"}}});
        let shape = Shape::new(Some(&schema)).unwrap();
        assert_eq!(shape.read("```\n{\"n\": 1}\n```").unwrap()["response"], json!({"n": 1}));
        assert!(shape.read("{\"n\": \"x\"}").unwrap_err().contains("/n"));
        assert!(shape.read("no").is_err());
        assert_eq!(Shape::new(None).unwrap().read("no").unwrap()["response"], "no");
    }
}
