//! flow validate, plan, explain and schema; and the examples.

use insta::assert_snapshot;

use crate::desk::Desk;

const SPEC: &str = "version: 0
name: brief
description: A short brief on a topic.
inputs:
  required: {topic: string}
  optional: {tone: {type: string, default: dry}}
runtime: {provider: openai, model_id: gpt-4.1, region: eu-west-1, budgets: {max_steps: 9}}
agents:
  finder: {prompt: You find facts., tools: [read_file]}
  writer: {prompt: 'You write in a {{ tone }} tone.'}
pattern:
  type: graph
  config:
    nodes:
      find: {agent: finder, input: 'Find facts on {{ topic }}.'}
      check: {type: hitl, prompt: 'Enough?', context_display: '{{ nodes.find.response }}', default: 'yes', timeout_seconds: 60}
      write: {agent: writer, input: 'Write from {{ nodes.find.response }}'}
    edges:
      - {from: find, to: check}
      - from: check
        choose:
          - {when: \"nodes.check.response == 'yes'\", to: write}
          - {when: else, to: find}
outputs: {artifacts: [{path: brief.md, from: '{{ last_response }}'}]}
";

#[test]
fn a_spec_is_shown_as_asked() {
    let mut desk = Desk::new();
    desk.file("brief.yaml", SPEC);
    desk.say("flow validate brief.yaml");
    desk.say("flow validate brief.yaml --json");
    desk.say("flow plan brief.yaml");
    desk.say("flow plan brief.yaml --format markdown");
    desk.say("flow plan brief.yaml --format mermaid");
    desk.say("flow plan brief.yaml --format dot");
    desk.say("flow plan brief.yaml --json");
    desk.say("flow explain brief.yaml");
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_wrong_spec_is_told_with_its_place() {
    let mut desk = Desk::new();
    desk.file("key.yaml", &SPEC.replace("description:", "descripton:"));
    desk.say("flow validate key.yaml");
    desk.file(
        "name.yaml",
        &SPEC.replace("{{ topic }}", "{{ topc }}").replace("to: check}", "to: chek}"),
    );
    desk.say("flow validate name.yaml");
    desk.say("flow validate name.yaml --json");
    desk.file(
        "two.yaml",
        &SPEC.replace("{{ topic }}", "{{ topc }}").replace("{{ tone }}", "{{ tome }}"),
    );
    desk.say("flow validate two.yaml");
    desk.file("broken.yaml", "version: 0\nname: [x\nagents: 1\n");
    desk.say("flow plan broken.yaml");
    desk.say("flow explain nowhere.yaml");
    desk.say("flow validate");
    assert_snapshot!(desk.transcript());
}

#[test]
fn the_schema_is_printed_for_editors() {
    let schema = Desk::new().quietly(&["flow", "schema"]);
    assert_eq!(schema.code, Some(0));
    assert_eq!(schema.stdout, stepwell_flow::schema_text());
}

#[test]
fn the_examples_are_valid_and_do_nothing_in_vain() {
    for file in examples() {
        let ran = Desk::new().quietly(&["flow", "validate", &file]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{file}");
    }
}

/// The specs of the examples.
fn examples() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/flows");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let specs = files.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.ends_with(".yaml") && !name.ends_with(".script.yaml")
    });
    let mut specs: Vec<_> = specs.map(|path| path.display().to_string()).collect();
    specs.sort();
    assert_eq!(specs.len(), 5);
    specs
}
