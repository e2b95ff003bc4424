//! Malicious and random specs and templates: a bounded, clear error, and never a panic.
//!
//! `PROPTEST_CASES` sets how many cases the fuzzing tests try. The default is 256.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stepwell_flow::plan::Plan;
use stepwell_flow::spec::{Folder, MAX_SPEC_BYTES, Spec};
use stepwell_flow::template::{Condition, MAX_RENDERED_BYTES, Scope, Template};

fn refusal(text: &str) -> String {
    let error = Spec::parse(text, "f.yaml", &BTreeMap::new()).expect_err("it must be refused");
    let message = error.to_string();
    assert!(message.len() < 20_000, "the error itself is bounded: {} bytes", message.len());
    message
}

const HEAD: &str = "version: 0\nname: t\nagents: {a: {prompt: p}}\n";

#[test]
fn deep_nesting_is_refused() {
    for text in [
        "[".repeat(200_000),
        "{a: ".repeat(100_000),
        format!("{HEAD}pattern: {}", "[".repeat(10_000) + &"]".repeat(10_000)),
        (0..5_000).map(|n| format!("{}k:\n", " ".repeat(n % 150))).collect(),
        format!("{HEAD}inputs: {{values: {{x: {}1{}}}}}\n", "[".repeat(200), "]".repeat(200)),
        "- ".repeat(100_000),
    ] {
        refusal(&text);
    }
}

#[test]
fn alias_bombs_and_alias_cycles_are_refused() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (this, last) in "bcdefghij".chars().zip("abcdefghi".chars()) {
        let refs = vec![format!("*{last}"); 9].join(", ");
        bomb.push_str(&format!("{this}: &{this} [{refs}]\n"));
    }
    refusal(&bomb);
    let texts = bomb.replace("[x,", &format!("[{},", "y".repeat(50_000)));
    refusal(&texts);
    let mut merges = "a: &a {x: 1}\n".to_owned();
    for n in 0..40 {
        merges.push_str(&format!("m{n}: &m{n}\n  <<: [*a, *a]\n  k{n}: {{<<: *a}}\n"));
    }
    refusal(&merges);
    refusal("a: &a [*a]\n");
    refusal(&format!("{HEAD}pattern: &p {{type: chain, config: *p}}\n"));
}

#[test]
fn a_spec_that_is_too_large_is_refused_before_it_is_parsed() {
    let large = format!("{HEAD}description: {}\n", "x".repeat(10 << 20));
    assert!(refusal(&large).contains(&format!("the limit is {MAX_SPEC_BYTES}")));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.yaml");
    std::fs::write(&file, &large).unwrap();
    let error = Spec::load(&file, "large.yaml").unwrap_err().to_string();
    assert_eq!(error, "large.yaml: the file is too large: the limit is 1048576 bytes");
    std::fs::write(&file, [b'a', 0xff, b'b']).unwrap();
    let error = Spec::load(&file, "large.yaml").unwrap_err().to_string();
    assert_eq!(error, "large.yaml: the file is not UTF-8: invalid byte at offset 1");
    assert!(Spec::load(folder.path(), "folder").is_err());
    let nothing = Spec::load(&folder.path().join("none"), "none").unwrap_err().to_string();
    assert_eq!(nothing, "none: no such file");
    let link = format!("{HEAD}pattern: {{type: chain, config: {{steps: [{{agent: a}}]}}}}\n")
        .replace("{prompt: p}", "{$ref: large}");
    std::fs::write(folder.path().join("large"), vec![b'x'; 2 << 20]).unwrap();
    let error = Spec::parse(&link, "f", &Folder(folder.path().to_owned())).unwrap_err();
    assert!(error.to_string().contains("the file is too large"), "{error}");
}

#[test]
fn the_largest_spec_is_read_and_its_errors_are_bounded() {
    // As many tasks as fit, each depending on the one before; and then in a cycle.
    let mut tasks = String::new();
    let mut count = 0;
    while tasks.len() < MAX_SPEC_BYTES - 1000 {
        let deps = if count == 0 { String::new() } else { format!("t{}", count - 1) };
        tasks.push_str(&format!("  - {{id: t{count}, agent: a, deps: [{deps}]}}\n"));
        count += 1;
    }
    let text = format!("{HEAD}pattern:\n type: workflow\n config:\n  tasks:\n{tasks}");
    let spec = Spec::parse(&text, "f", &BTreeMap::new()).unwrap().spec;
    let plan = Plan::of(&spec);
    assert_eq!((plan.nodes.len(), plan.edges.len()), (count, count - 1));
    let cycle = text.replacen("deps: []", &format!("deps: [t{}]", count - 1), 1);
    assert!(refusal(&cycle).contains("tasks depend on each other: t0 → t"));
    // Each of them depends on a task that does not exist.
    let absent = text.replace("deps: [t", "deps: [u");
    assert!(refusal(&absent).lines().count() < 30);
    let keys: String = (0..50_000).map(|n| format!("key{n}: 1\n")).collect();
    assert!(refusal(&format!("{HEAD}{keys}")).contains("unknown key `key0`"));
    refusal(&format!("{HEAD}{}: 1\n", "k".repeat(1000)));
}

/// The values for the templates below.
fn scope() -> Scope {
    let items: Vec<_> = (0..1000).map(|n| serde_json::json!({"response": "x".repeat(n)})).collect();
    Scope::new().with("text", "ab".repeat(50_000)).with("items", items).with("n", 3)
}

#[test]
fn templates_that_loop_or_grow_end() {
    let shared_map = "{% set text = text|replace('a', 'aa') %}".repeat(40) + "{{ text|length }}";
    let doubling = "{% set text = text ~ text %}".repeat(40);
    let with = "{% with text = text ~ text %}".repeat(40);
    let nested = "{% for b in [[text, text]] %}".repeat(10);
    let joined = format!("{{{{ {} }}}}", vec!["text"; 5000].join(" ~ "));
    for source in [
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{{ text }}{% endfor %}",
        "{% for a in items recursive %}{{ loop(items) }}{% endfor %}",
        "{{ text * 1000000 }}",
        "{{ 'x' * 100000000 }}",
        "{{ (text * 900) ~ (text * 900) * 900 * 900 }}",
        "{{ range(1000000000) }}",
        "{{ items|map('replace', 'x', text)|list|tojson }}",
        "{{ text|indent(1000000000) }}",
        "{{ items|join(text) }}",
        "{{ 9999999999 ** 9999999999 }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% include 'x' %}",
        "{% set x %}{{ text }}{% endset %}",
        "{% filter upper %}{{ text }}{% endfilter %}",
        "{{ namespace(x=1) }}",
        "{{ text.__class__ }}",
        "{{ undefined_name }}",
        "{{ items[99999].response }}",
        "{{ {'a': {}}.a }}",
        &shared_map,
        &doubling,
        &with,
        &nested,
        &joined,
        &"(".repeat(10_000),
        &format!("{{{{ {} }}}}", "(".repeat(10_000)),
        &format!("{{{{ {}n }}}}", "not ".repeat(100_000)),
        &"{% if n %}".repeat(10_000),
        &("{% if n %}".to_owned() + &"{% elif n %}".repeat(10_000)),
        &format!("{{{{ {}n }}}}", "-".repeat(100_000)),
        &format!("{{{{ n{} }}}}", ".a".repeat(100_000)),
        &format!("{{{{ n{} }}}}", "|int".repeat(100_000)),
        &format!("{{{{ n{} }}}}", " or n".repeat(100_000)),
        &format!("{{{{ n{} }}}}", " if n else n".repeat(100_000)),
    ] {
        let shown: String = source.chars().take(60).collect();
        if let Ok(template) = Template::parse(source) {
            let ended = template.render(&scope());
            assert!(ended.is_err() || shown.starts_with('('), "{shown}");
        }
    }
    assert!(Template::parse("x".repeat(2 << 20)).is_err());
}

#[test]
fn a_constant_that_the_engine_would_compute_for_long_is_refused() {
    for source in [
        "2 in [1]*100000000",
        "[1] * 30000000 == [1] * 30000000",
        "nodes.w.response in [ 1 ]*50000000",
        "'ab' * 100000000 == n",
        "n == 100000000 * 'ab'",
        "n in 100000000 * [1]",
    ] {
        let why = Condition::parse(source).unwrap_err().to_string();
        assert!(why.starts_with("`*` is for numbers"), "{source}: {why}");
        let why = Template::parse(format!("{{{{ {source} }}}}")).unwrap_err().to_string();
        assert!(why.starts_with("`*` is for numbers"), "{source}: {why}");
    }
    for source in
        ["n * 2 == 6", "[4, 6][1] == n * 2", "items[0].response|length * n == 0", "n in [n * 1]"]
    {
        assert!(Condition::parse(source).unwrap().holds(&scope()).unwrap(), "{source}");
    }
}

#[test]
fn ordinary_templates_render() {
    let text = "{% set n2 = n + 1 %}{% for item in items[:3] %}{{ loop.index }}{{ item.response }}\
                {% if not loop.last %}, {% endif %}{% endfor %} {{ n2 }} {{ text[:4] | upper }} \
                {{ missing | default('none') }} {{ items | length }}";
    let text = Template::parse(text).unwrap().render(&scope()).unwrap();
    assert_eq!(text, "1, 2x, 3xx 4 ABAB none 1000");
    let json = Template::parse("{{ items[:2] | tojson }}").unwrap().render(&scope()).unwrap();
    assert_eq!(json, r#"[{"response":""},{"response":"x"}]"#);
    let raw = Template::parse("{% raw %}{{ not }} {% filled %}{% endraw %}").unwrap();
    assert_eq!(raw.render(&scope()).unwrap(), "{{ not }} {% filled %}");
}

#[test]
fn counting_items_costs_no_more_for_long_answers() {
    let workers: Vec<_> =
        (0..70).map(|_| serde_json::json!({"response": "x".repeat(10_000)})).collect();
    let scope = Scope::new().with("workers", workers);
    let text = "{% for w in workers %}{{ loop.index }}/{{ workers|length }} of {{ workers|count }}: \
                {{ (workers|first).response[:1] }}{{ w.response }}{{ (workers|last).response|d('')|length }}\n\
                {% endfor %}";
    let text = Template::parse(text).unwrap().render(&scope).unwrap();
    assert!(text.contains("\n70/70 of 70: xxx"), "{}", &text[..80]);
}

#[test]
fn an_undefined_name_is_reported_with_the_nearest_one() {
    let error = |source: &str| {
        let scope = Scope::new()
            .with("topic", "t")
            .with("tasks", serde_json::json!({"fetch": {"response": "r"}}));
        Template::parse(source).unwrap().render(&scope).unwrap_err().to_string()
    };
    assert_eq!(error("{{ topc }}"), "`topc` is undefined; did you mean `topic`?");
    assert_eq!(
        error("a\n{{ tasks.fetch.respnse }}"),
        "in line 2 of the template: `tasks.fetch` has no `respnse`; did you mean `response`?"
    );
}

fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Parts of specs, and text that breaks them.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "version: 0\n",
            "name: t\n",
            "agents:\n",
            "  a: {prompt: p}\n",
            "pattern:\n",
            "  type: chain\n",
            "  type: graph\n",
            "  type: workflow\n",
            "  config:\n",
            "    steps:\n",
            "      - {agent: a}\n",
            "      - {type: hitl, prompt: '{{ x }}'}\n",
            "    tasks:\n",
            "      - {id: x, agent: a, deps: [x]}\n",
            "    nodes: {s: {agent: a}}\n",
            "    edges: [{from: s, to: s}]\n",
            "runtime: {budgets: {max_steps: 1}}\n",
            "&a ",
            "*a",
            "<<: ",
            "!!str ",
            "? ",
            ": ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            "'",
            "\"",
            "|\n",
            ">-\n",
            "---\n",
            "...\n",
            "%YAML 1.2\n",
            "\t",
            "\u{0}",
            "\u{feff}",
            "{{ ",
            " }}",
            "{% if x %}",
            "#",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,12}",
        "\\PC{0,6}",
    ]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn no_text_makes_the_parser_panic(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        if let Ok(reading) = Spec::parse(&text, "f", &BTreeMap::new()) {
            let plan = Plan::of(&reading.spec);
            prop_assert!(!plan.text().is_empty() && !plan.explain(&reading.spec).is_empty());
        }
    }

    #[test]
    fn a_spec_with_one_random_edit_is_read_or_refused_with_a_position(
        at in 0_usize..400,
        cut in 0_usize..6,
        put in piece(),
    ) {
        let spec = "version: 0\nname: t\ninputs: {required: {topic: string}}\nagents:\n  a: {prompt: 'On {{ topic }}'}\n\
            pattern:\n  type: chain\n  config:\n    steps:\n      - {agent: a, input: '{{ topic }}'}\n      \
            - {type: hitl, prompt: go?, default: yes, timeout_seconds: 60}\n      \
            - {agent: a, input: '{{ hitl_response }} {{ steps[0].response }}'}\noutputs: {artifacts: \
            [{path: o.md, from: '{{ last_response }}'}]}\n";
        let at = at.min(spec.len());
        let text = format!("{}{put}{}", &spec[..at], &spec[(at + cut).min(spec.len())..]);
        if let Err(error) = Spec::parse(&text, "f", &BTreeMap::new()) {
            prop_assert!(error.to_string().starts_with("f:"), "{}", error);
        }
    }

    #[test]
    fn no_template_makes_the_engine_panic(
        pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "{{", "}}", "{%", "%}", " for x in items ", " endfor ", " if n ", " endif ", " set n = ",
                "text", "items", "n", "[0]", "[:", ".response", "|upper", "|tojson", "|join(", ")",
                "|map(attribute='response')", "|list", "|replace('a', 'bb')", " ~ ", " + ", " * ", "1",
                "999999", "'", "\"", "(", "[", ",", "-%}", "{%- raw %}", "{% endraw %}", "{#", "#}", "==",
                " in ", " not ", " is defined ", "range(", "loop.index", "\n",
            ]).prop_map(str::to_owned),
            "\\PC{0,4}",
        ], 0..24),
    ) {
        let source = pieces.concat();
        if let Ok(template) = Template::parse(source.clone())
            && let Ok(text) = template.render(&scope())
        {
            prop_assert!(text.len() <= MAX_RENDERED_BYTES);
        }
        if let Ok(condition) = Condition::parse(source) {
            let _ = condition.holds(&scope());
        }
    }
}
