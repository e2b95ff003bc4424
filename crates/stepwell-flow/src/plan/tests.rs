//! Plans in every format, and their counts.

use std::collections::BTreeMap;

use super::*;

fn plan(pattern: &str) -> Plan {
    let text = format!(
        "version: 0\nname: 'a \"b\" | c'\nagents: {{a: {{prompt: p}}, b: {{prompt: p}}}}\n{pattern}"
    );
    Plan::of(&Spec::parse(&text, "f", &BTreeMap::new()).unwrap().spec)
}

#[test]
fn a_graph_is_rendered_with_its_conditions() {
    let plan = plan(
        "pattern: {type: graph, config: {nodes: {s: {agent: a}, g: {type: hitl, prompt: 'go on?'}, \
         e: {agent: b}}, edges: [{from: s, to: g}, {from: g, choose: \
         [{when: 'nodes.g.response == \"yes\"', to: e}, {when: else, to: s}]}]}}\n",
    );
    assert_eq!(
        plan.text(),
        "a \"b\" | c (graph)\nagents are asked 1 to 20 times\n\n\
         NODE    WHO    AFTER                               ASKED\n\
         node/s  a      node/g [else]                       -\n\
         node/g  human  node/s                              go on?\n\
         node/e  b      node/g [nodes.g.response == \"yes\"]  -\n"
    );
    assert_eq!(
        plan.mermaid(),
        "flowchart TD\n  n0[\"node/s<br/>a\"]\n  n1{{\"node/g<br/>human\"}}\n  n2[\"node/e<br/>b\"]\n  \
         n0 --> n1\n  n1 -->|\"nodes.g.response == #quot;yes#quot;\"| n2\n  n1 -->|\"else\"| n0\n"
    );
    assert!(plan.dot().contains(
        r#"  "node/g" -> "node/e" [label="nodes.g.response == \"yes\"", style=dashed];"#
    ));
    assert!(plan.markdown().starts_with("# a \"b\" \\| c\n"));
}

#[test]
fn how_often_agents_are_asked_is_counted_for_each_pattern() {
    for (pattern, asked) in [
        ("chain, config: {steps: [{agent: a}, {type: hitl, prompt: p}, {agent: b}]}", "2 times"),
        (
            "routing, config: {router: {agent: a}, routes: {x: {}, y: {then: [{agent: b}]}}}",
            "1 to 2 times",
        ),
        (
            "evaluator_optimizer, config: {producer: a, evaluator: {agent: b}, \
             accept: {min_score: 1, max_iters: 4}}",
            "2 to 8 times",
        ),
        (
            "orchestrator_workers, config: {orchestrator: {agent: a}, worker_template: {agent: b}}",
            "at least once",
        ),
        (
            "parallel, config: {branches: [{id: x, steps: [{agent: a}]}], reduce: {agent: b}}",
            "2 times",
        ),
    ] {
        assert_eq!(
            plan(&format!("pattern: {{type: {pattern}}}\n")).asks.words(),
            asked,
            "{pattern}"
        );
    }
}

#[test]
fn a_filled_plan_shows_variables_and_keeps_placeholders_for_answers() {
    let plan = plan(
        "inputs: {required: {topic: string}}\npattern: {type: chain, config: {steps: \
         [{agent: a, input: 'Write on {{ topic | upper }}'}, \
         {agent: b, input: 'Check {{ steps[0].response }} on {{ topic }}'}]}}\n\
         outputs: {artifacts: [{path: '{{ topic }}.md', from: '{{ last_response }}'}]}\n",
    );
    let filled = plan.filled(&BTreeMap::from([("topic".to_owned(), "wells".into())]));
    let asked: Vec<_> = filled.nodes.iter().map(|node| node.asks.as_str()).collect();
    assert_eq!(asked, ["Write on WELLS", "Check {{ steps[0].response }} on wells"]);
    assert_eq!(filled.artifacts, ["wells.md"]);
    assert!(filled.text().contains("variables: topic = \"wells\"\n"), "{}", filled.text());
}
