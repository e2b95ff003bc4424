//! Templates and conditions render, and slow ones are stopped.

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
fn a_template_sees_earlier_answers() {
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

#[test]
fn templates_that_read_too_much_are_stopped_by_that() {
    // However slow the machine is.
    let limit = Duration::from_secs(300);
    let items: Vec<_> = (0..1000).map(|n| json!({"response": "x".repeat(n)})).collect();
    let scope = Scope::new().with("text", "ab".repeat(50_000)).with("items", items).with("n", 3);
    for source in [
        "{% for a in range(10000) %}{{ items|tojson|length }}{% endfor %}",
        "{% for a in range(10000) %}{{ text|length }}{% endfor %}",
        "{% for a in range(10000) %}{% if text.startswith('b') %}x{% endif %}{% endfor %}",
        "{{ items * 100000 }}",
        "{{ (items * 100000)|join }}",
        "{% for a in range(10000) %}{{ text|upper|lower|replace('a', 'b')|length }}{% endfor %}",
        "{% for a in range(10000) %}{% if items|tojson == n %}x{% endif %}{% endfor %}",
        "{% for a in items %}{% set b = items|map(attribute='response')|list %}{% endfor %}",
    ] {
        let ended = Template::parse(source).unwrap().render_within(limit, &scope);
        let why = ended.unwrap_err().to_string();
        assert!(why.contains("it reads more than 32 MiB"), "{source}: {why}");
    }
    let condition = Condition::parse("(items * 100000)|list|length > 1").unwrap();
    let why = condition.evaluate_within(limit, &scope).unwrap_err().to_string();
    assert!(why.contains("it reads more than 32 MiB"), "{why}");
}

#[test]
fn a_template_that_takes_too_long_is_stopped() {
    // The engine compares values without any charge.
    let all: Vec<String> = (0..1000).map(|n| "x".repeat(n)).collect();
    let scope = scope().with("all", &all).with("same", &all);
    let source = "{% for a in range(500) %}{% if all == same %}{% endif %}{% endfor %}";
    let template = Template::parse(source).unwrap();
    assert!(work::may_run_slowly(template.source()));
    let ended = template.render_within(Duration::from_micros(1), &scope);
    assert_eq!(ended.unwrap_err().what, "the template was stopped: it takes longer than 1µs");
    assert_eq!(template.render(&scope).unwrap(), "");
}

#[test]
fn a_condition_that_takes_too_long_is_stopped_while_parsed_and_while_evaluated() {
    let timeout = Duration::from_millis(1);
    let slow = "2 in ([1]) * 5000000";
    let ended = Condition::parse_within(timeout, slow.to_owned());
    assert_eq!(ended.unwrap_err().what, "the template was stopped: it takes longer than 1ms");
    let condition = Condition::parse("'no' in steps * 5000000").unwrap();
    assert!(work::may_run_slowly(condition.source()));
    let ended = condition.evaluate_within(timeout, &scope());
    assert_eq!(ended.unwrap_err().what, "the template was stopped: it takes longer than 1ms");
}
