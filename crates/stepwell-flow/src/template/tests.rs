//! Templates do what they say, and no more.

use serde_json::json;

use super::*;

fn scope() -> Scope {
    Scope::new()
        .with("topic", "wells")
        .with("steps", json!([{"response": "dig", "agent": "a"}]))
        .with("tasks", json!({"fetch": {"response": "water", "status": "success"}}))
}

fn render(source: &str) -> Result<String, String> {
    let template = Template::parse(source).map_err(|error| error.to_string())?;
    template.render(&scope()).map_err(|error| error.to_string())
}

#[test]
fn a_template_sees_what_was_said() {
    let text = "{{ topic }}: {{ steps[0].response }}, {{ tasks.fetch.response | upper }}\n";
    assert_eq!(render(text).unwrap(), "wells: dig, WATER");
}

#[test]
fn a_condition_is_an_expression_with_or_without_braces() {
    for (source, holds) in [
        ("tasks.fetch.response == 'water'", true),
        ("{{ 'dig' in steps[0].response.lower() }}", true),
        ("tasks.fetch.status == 'failed'", false),
        ("else", true),
    ] {
        assert_eq!(Condition::parse(source).unwrap().holds(&scope()).unwrap(), holds, "{source}");
    }
}
