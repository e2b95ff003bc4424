//! A small flow of each pattern, with gates, an artifact, and a script with answers for each lane.

/// A flow and its script.
pub(crate) struct Sample {
    pub(crate) spec: String,
    pub(crate) script: String,
}

const FRONT: &str = "
version: 0
inputs: {required: {topic: string}}
name: sample
runtime: {provider: ollama, model_id: fake, max_parallel: 2}
";

const ARTIFACT: &str = "
outputs: {artifacts: [{path: report.md, from: '{{ last_response }} on {{ topic }}'}]}
";

fn sample(agents: &[&str], pattern: &str, lanes: &str) -> Sample {
    let agents: Vec<String> =
        agents.iter().map(|name| format!("{name}: {{prompt: 'You are {name}.'}}")).collect();
    Sample {
        spec: format!("{FRONT}agents: {{{}}}\npattern:{pattern}{ARTIFACT}", agents.join(", ")),
        script: format!("prices: {{input: '3', output: '15'}}\nlanes:{lanes}"),
    }
}

/// The usage of each answer.
const USED: &str = "usage: {input: 10, output: 2}";

pub(crate) fn chain() -> Sample {
    sample(
        &["writer", "critic"],
        "
  type: chain
  config:
    steps:
      - {agent: writer, input: 'Draft {{ topic }}'}
      - {type: hitl, prompt: 'Good?', context_display: '{{ steps[0].response }}'}
      - {agent: critic, input: '{{ steps[0].response }} / {{ hitl_response }}'}
      - {agent: writer, input: 'Final, given {{ steps[2].response }}'}
",
        &format!(
            "
  writer: [{{text: a draft, {USED}}}, {{text: the end, {USED}}}]
  critic: [{{calls: [{{tool: list_files, arguments: {{}}}}], {USED}}}, {{text: meh, {USED}}}]
"
        ),
    )
}

pub(crate) fn workflow() -> Sample {
    sample(
        &["a", "b"],
        "
  type: workflow
  config:
    tasks:
      - {id: fetch, agent: a, input: 'Fetch'}
      - {id: left, agent: a, deps: [fetch], input: 'L {{ tasks.fetch.response }}'}
      - {id: right, agent: b, deps: [fetch], input: 'R {{ tasks.fetch.response }}'}
      - {id: ask, type: hitl, deps: [left], prompt: 'Go on?'}
      - {id: join, agent: b, deps: [right, ask], input: '{{ tasks.left.response }} {{ tasks.right.status }} {{ hitl_response }}'}
",
        &format!(
            "
  fetch: [{{text: F, {USED}}}]
  left: [{{text: L, {USED}}}]
  right: [{{text: R, {USED}}}]
  join: [{{text: J, {USED}}}]
"
        ),
    )
}

pub(crate) fn routing() -> Sample {
    sample(
        &["router", "handler"],
        "
  type: routing
  config:
    router:
      agent: router
      input: 'Which way?'
      max_retries: 1
      review_router: {type: hitl, prompt: 'Take {{ router.chosen_route }}?'}
    routes:
      billing:
        then:
          - {agent: handler, input: 'R0 for {{ router.chosen_route }}'}
          - {agent: handler, input: 'R1 after {{ steps[0].response }}'}
      tech: {then: [{agent: handler, input: TECH}]}
",
        &format!(
            "
  router: [{{text: 'no idea', {USED}}}, {{text: '{{\"route\": \"billing\"}}', {USED}}}]
  billing/handler: [{{text: first, {USED}}}, {{text: second, {USED}}}]
"
        ),
    )
}

pub(crate) fn parallel() -> Sample {
    sample(
        &["w", "x", "r"],
        "
  type: parallel
  config:
    branches:
      - {id: web, steps: [{agent: w, input: W0}, {type: hitl, prompt: 'Web?'}, {agent: w, input: 'W1 {{ hitl_response }}'}]}
      - {id: docs, steps: [{agent: x, input: D0}, {agent: x, input: 'D1 {{ steps[0].response }}'}]}
    reduce: {agent: r, input: '{{ branches.web.response }} + {{ branches.docs.response }}'}
",
        &format!(
            "
  web/w: [{{text: w0, {USED}}}, {{text: w1, {USED}}}]
  docs/x: [{{text: d0, {USED}}}, {{text: d1, {USED}}}]
  reduce: [{{text: both, {USED}}}]
"
        ),
    )
}

pub(crate) fn evaluator() -> Sample {
    sample(
        &["prod", "judge"],
        "
  type: evaluator_optimizer
  config:
    producer: prod
    evaluator: {agent: judge, input: 'Score {{ draft }}'}
    accept: {min_score: 90, max_iters: 3}
    revise_prompt: 'Revise {{ draft }}, {{ evaluation.score }}, {{ iteration }}'
    review_gate: {type: hitl, prompt: 'Go on?'}
",
        &format!(
            "
  producer: [{{text: d1, {USED}}}, {{text: d2, {USED}}}, {{text: d3, {USED}}}]
  evaluator: [{{text: '{{\"score\": 40}}', {USED}}}, {{text: '{{\"score\": 60}}', {USED}}}, {{text: '{{\"score\": 95}}', {USED}}}]
"
        ),
    )
}

pub(crate) fn orchestrator() -> Sample {
    sample(
        &["boss", "wk", "red"],
        "
  type: orchestrator_workers
  config:
    orchestrator: {agent: boss, limits: {max_workers: 2, max_rounds: 2}}
    decomposition_review: {type: hitl, prompt: 'This plan?'}
    worker_template: {agent: wk}
    reduce: {agent: red, input: 'Reduce {{ workers | length }}: {{ workers[0].response }}'}
    writeup: {agent: red, input: 'Write up {{ reduce_response }}'}
",
        &format!(
            "
  orchestrator: [{{text: '[{{\"task\": \"alpha\"}}, {{\"task\": \"beta\"}}]', {USED}}}, {{text: '[]', {USED}}}]
  worker-1-0: [{{text: A, {USED}}}]
  worker-1-1: [{{text: B, {USED}}}]
  reduce: [{{text: reduced, {USED}}}]
  writeup: [{{text: written, {USED}}}]
"
        ),
    )
}

pub(crate) fn graph() -> Sample {
    sample(
        &["n"],
        "
  type: graph
  config:
    nodes:
      write: {agent: n, input: 'Write {{ iteration }}'}
      check: {agent: n, input: 'Check {{ nodes.write.response }}'}
      gate: {type: hitl, prompt: 'Send?', context_display: '{{ nodes.write.response }}'}
      send: {agent: n, input: 'Send {{ hitl_response }}'}
    edges:
      - {from: write, to: check}
      - {from: check, choose: [{when: \"'bad' in nodes.check.response\", to: write}, {when: else, to: gate}]}
      - {from: gate, to: send}
",
        &format!(
            "
  write: [{{text: one, {USED}}}, {{text: two, {USED}}}]
  check: [{{text: bad, {USED}}}, {{text: good, {USED}}}]
  send: [{{text: sent, {USED}}}]
"
        ),
    )
}

/// All samples, by their patterns.
pub(crate) fn all() -> Vec<(&'static str, Sample)> {
    vec![
        ("chain", chain()),
        ("workflow", workflow()),
        ("routing", routing()),
        ("parallel", parallel()),
        ("evaluator", evaluator()),
        ("orchestrator", orchestrator()),
        ("graph", graph()),
    ]
}
