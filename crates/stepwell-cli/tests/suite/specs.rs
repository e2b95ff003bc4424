//! flow validate, plan, explain and schema; and the examples.

use crate::test_env::TestEnv;

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
fn a_spec_is_checked_and_what_does_nothing_is_warned_of() {
    let env = TestEnv::new();
    env.file("brief.yaml", SPEC);
    let ran = env.quietly(&["flow", "validate", "brief.yaml"]);
    assert_eq!(
        (ran.code, &*ran.stdout),
        (Some(0), "brief.yaml is valid: brief (graph, 2 agents)\n")
    );
    assert_eq!(
        ran.stderr,
        "warning: brief.yaml:7:56: runtime.region: this has no effect: no provider has regions\n"
    );
    let answer = &env.quietly(&["flow", "validate", "brief.yaml", "--json"]).json()[0];
    assert_eq!((&answer["valid"], &answer["pattern"]), (&true.into(), &"graph".into()));
    assert_eq!(answer["warnings"][0]["column"], 56);
}

#[test]
fn a_misspelt_tool_is_found_before_anything_runs() {
    let env = TestEnv::new();
    let told = |tool: &str| {
        env.file("f.yaml", &SPEC.replace("[read_file]", &format!("[{tool}]")));
        let ran = env.quietly(&["flow", "validate", "f.yaml"]);
        (ran.code, ran.stderr.lines().next().unwrap_or_default().to_owned())
    };
    let (code, line) = told("read_fiel");
    assert_eq!(code, Some(3));
    assert!(line.starts_with("error: f.yaml:9:45: agents.finder.tools[0]: unknown tool"), "{line}");
    assert!(line.ends_with("did you mean `read_file`?"), "{line}");
    // A server of the configuration, and one that is nobody's.
    crate::mcp::configure(&env, "[mcp.git]\ncommand = \"git-tools\"\n");
    assert_eq!(told("git__log").0, Some(0));
    let (code, line) = told("gut__log");
    assert_eq!(code, Some(3));
    assert!(line.contains("9:45: agents.finder.tools[0]: unknown server `gut`"), "{line}");
}

#[test]
fn a_spec_is_shown_in_every_form() {
    let env = TestEnv::new();
    env.file("brief.yaml", SPEC);
    let shown = |form: &str| {
        let ran = env.quietly(&["flow", "plan", "brief.yaml", "--format", form]);
        assert_eq!(ran.code, Some(0), "{form}: {}", ran.stderr);
        ran.stdout
    };
    let text = shown("text");
    assert!(text.starts_with("brief (graph)\nA short brief on a topic.\n"), "{text}");
    assert!(text.contains("variables: topic (must be set), tone = \"dry\"\n"), "{text}");
    assert!(text.contains("node/check  human   node/find"), "{text}");
    assert!(shown("mermaid").contains("n1 -->|\"else\"| n0"));
    assert!(shown("dot").starts_with("digraph \"brief\" {\n"));
    assert!(shown("markdown").contains("```mermaid\nflowchart TD\n"));
    let plan: serde_json::Value = serde_json::from_str(&shown("json")).unwrap();
    assert_eq!(plan["edges"][1]["when"], "nodes.check.response == 'yes'");
    assert_eq!(env.quietly(&["flow", "plan", "brief.yaml", "--json"]).json(), [plan]);
    let told = env.quietly(&["flow", "explain", "brief.yaml"]).stdout;
    assert!(told.contains("node/check: Enough? (after 60 s the answer is \"yes\")\n"), "{told}");
    assert!(told.ends_with("It needs --var topic=….\n"), "{told}");
}

#[test]
fn a_wrong_spec_is_told_with_its_place_and_ends_with_3() {
    let env = TestEnv::new();
    let told = |text: &str| {
        env.file("f.yaml", text);
        let ran = env.quietly(&["flow", "validate", "f.yaml"]);
        assert_eq!((ran.code, &*ran.stdout), (Some(3), ""));
        ran.stderr
    };
    let key = told(&SPEC.replace("description:", "descripton:"));
    assert!(key.starts_with("error: f.yaml:3:1: unknown key `descripton`;"), "{key}");
    assert!(key.contains("; did you mean `description`?\nhint: "), "{key}");
    // All that is wrong is told, in the order of the file.
    let two = told(&SPEC.replace("{{ topic }}", "{{ topc }}").replace("{{ tone }}", "{{ tome }}"));
    let lines: Vec<_> = two.lines().collect();
    assert!(
        lines[0].starts_with("error: f.yaml:10:20: agents.writer.prompt: unknown name `tome`"),
        "{two}"
    );
    assert!(
        lines[1].starts_with("f.yaml:15:36: pattern.config.nodes.find.input: unknown name `topc`"),
        "{two}"
    );
    let broken = told("version: 0\nname: [x\nagents: 1\n");
    assert!(broken.starts_with("error: f.yaml:3:7: invalid YAML:"), "{broken}");
    env.file("f.yaml", &SPEC.replace("to: check}", "to: chek}"));
    let answer = env.quietly(&["flow", "validate", "f.yaml", "--json"]);
    assert_eq!(answer.code, Some(3));
    assert_eq!(answer.json()[0]["problems"][0]["hint"], "did you mean `check`?");
    let absent = env.quietly(&["flow", "plan", "nowhere.yaml"]);
    assert_eq!(absent.code, Some(3));
    assert_eq!(absent.stderr, "error: nowhere.yaml: no such file\n");
}

#[test]
fn the_schema_is_printed_for_editors() {
    let schema = TestEnv::new().quietly(&["flow", "schema"]);
    assert_eq!(schema.code, Some(0));
    assert_eq!(schema.stdout, stepwell_flow::schema_text());
}

#[test]
fn the_examples_are_valid_and_do_nothing_in_vain() {
    for file in examples() {
        let ran = TestEnv::new().quietly(&["flow", "validate", &file]);
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

/// How an example is run.
struct Example {
    name: &'static str,
    variables: &'static [&'static str],
    /// What answers its question.
    answer: Option<&'static str>,
    /// What it writes.
    files: &'static [&'static str],
}

const RUNS: &[Example] = &[
    Example {
        name: "announcement",
        variables: &["--var", "product=Stepwell"],
        answer: Some("name the version"),
        files: &["announcement.md"],
    },
    Example { name: "haiku", variables: &[], answer: None, files: &["haiku.txt"] },
    Example {
        name: "release",
        variables: &["--var", "changes=search by label"],
        answer: None,
        files: &["release-notes.md", "support.txt"],
    },
    Example {
        name: "review",
        variables: &["--var", "proposal=a bot"],
        answer: None,
        files: &["verdict.md"],
    },
    Example {
        name: "support",
        variables: &["--var", "question=why?"],
        answer: None,
        files: &["answer-technical.md"],
    },
];

#[test]
fn every_example_runs_offline_to_its_end() {
    let specs = examples();
    assert_eq!(specs.len(), RUNS.len());
    for (spec, Example { name, variables, answer, files }) in specs.iter().zip(RUNS) {
        assert!(spec.ends_with(&format!("{name}.yaml")), "{spec}");
        let env = TestEnv::new();
        let model = format!("script:{}", spec.replace(".yaml", ".script.yaml"));
        let mut args = vec!["flow", "run", spec, "--model", &model];
        args.extend(*variables);
        let mut ran = env.quietly(&args);
        if let Some(answer) = answer {
            assert_eq!(ran.code, Some(8), "{name}: {}", ran.stderr);
            ran = env.quietly(&["resume", "@last", "--respond", answer]);
        }
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        for file in *files {
            assert!(!env.read(file).trim().is_empty(), "{name}: {file}");
        }
    }
}
