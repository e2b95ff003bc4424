//! Specs: which are valid, and how problems are reported.

use std::collections::BTreeMap;

use stepwell_flow::spec::{EdgeTarget, Folder, Pattern, Reading, Spec, Step};

/// A spec with one agent and a pattern.
fn with(pattern: &str) -> String {
    format!("version: 0\nname: t\nagents:\n  a: {{prompt: You help.}}\n{pattern}")
}

fn read(text: &str) -> Result<Reading, String> {
    Spec::parse(text, "f.yaml", &BTreeMap::new()).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(text: &str, message: &str) {
    assert_eq!(read(text).expect_err("it must be refused"), message);
}

const CHAIN: &str = "pattern: {type: chain, config: {steps: [{agent: a, input: hi}]}}\n";

#[test]
fn every_pattern_is_read() {
    let patterns = [
        ("chain", "{steps: [{agent: a}, {type: hitl, prompt: ok?, default: yes}]}"),
        (
            "workflow",
            "{tasks: [{id: x, agent: a, description: d}, {id: y, type: hitl, prompt: p, deps: [x]}]}",
        ),
        (
            "routing",
            "{router: {agent: a, review_router: {type: hitl, prompt: 'ok?'}}, \
             routes: {one: {then: [{agent: a}]}, two: {}}}",
        ),
        (
            "parallel",
            "{branches: [{id: l, steps: [{agent: a}]}, {id: r, steps: [{agent: a}]}], \
             reduce: {type: hitl, prompt: '{{ branches.l.response }}?'}}",
        ),
        (
            "evaluator_optimizer",
            "{producer: a, evaluator: {agent: a, input: '{{ draft }}'}, accept: {min_score: 80}, \
             revise_prompt: '{{ evaluation.score }} {{ iteration }}'}",
        ),
        (
            "orchestrator_workers",
            "{orchestrator: {agent: a, limits: {max_workers: 2}}, worker_template: {agent: a}, \
             reduce: {agent: a, input: '{{ workers | tojson }}'}, writeup: {agent: a}}",
        ),
        (
            "graph",
            "{nodes: {s: {agent: a}, e: {agent: a}}, edges: [{from: s, to: e}, {from: e, choose: \
             [{when: 'nodes.e.iteration < 2', to: s}]}]}",
        ),
    ];
    for (name, config) in patterns {
        let text = with(&format!("pattern: {{type: {name}, config: {config}}}\n"));
        let reading = read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(reading.spec.pattern.name(), name);
        assert!(reading.warnings.is_empty(), "{name}: {:?}", reading.warnings);
    }
}

#[test]
fn json_is_read_like_yaml() {
    let json = r#"{"version": "0", "name": "t", "agents": {"a": {"prompt": "\u00e9 \ud83d\ude00"}},
	"pattern": {"config": {"steps": [{"agent": "a"}]}, "type": "chain"}}"#;
    let spec = read(json).unwrap().spec;
    assert_eq!(spec.agents["a"].prompt.template.source(), "é 😀");
}

#[test]
fn a_graph_starts_at_its_first_node_and_yes_is_a_string() {
    let text = with(
        "pattern:\n  type: graph\n  config:\n    nodes:\n      yes: {agent: a}\n      no: {agent: a}\n    \
         edges: [{from: yes, to: [no]}]\n",
    );
    let Pattern::Graph(graph) = read(&text).unwrap().spec.pattern else { panic!() };
    assert_eq!(graph.nodes.keys().next().unwrap().as_str(), "yes");
    assert!(matches!(&graph.edges[0].target, EdgeTarget::To(to) if to[0].as_str() == "no"));
}

#[test]
fn an_edge_to_several_nodes_uses_the_first_and_warns_about_the_others() {
    let text = with(
        "pattern: {type: graph, config: {nodes: {s: {agent: a}, l: {agent: a}, r: {agent: a}}, \
         edges: [{from: s, to: [l, r]}]}}\n",
    );
    let warnings: Vec<_> = read(&text).unwrap().warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "5:74: pattern.config.nodes.r: no edge leads to the node `r`",
            "5:109: pattern.config.edges[0].to: only the first node of the list is used, `l`",
        ]
    );
}

#[test]
fn an_unknown_key_is_reported_with_its_position_and_the_nearest_key() {
    refused(
        &with(
            "pattern:\n  type: chain\n  config:\n    steps:\n      - agent: a\n        inptu: hi\n",
        ),
        "f.yaml:10:9: pattern.config.steps[0]: unknown key `inptu`; expected one of: `agent`, \
         `input`, `vars`, `tool_overrides`; did you mean `input`?",
    );
    refused(
        &format!("{}runtim: {{}}\n", with(CHAIN)),
        "f.yaml:6:1: unknown key `runtim`; expected one of: `version`, `name`, `description`, \
         `tags`, `runtime`, `agents`, `inputs`, `pattern`, `outputs`, `context_policy`, `env`, \
         `tools`, `telemetry`, `skills`, `security`; did you mean `runtime`?",
    );
    refused(
        &with("pattern: {type: chian, config: {}}\n"),
        "f.yaml:5:17: pattern.type: unknown value `chian`; expected one of: `chain`, `workflow`, \
         `routing`, `parallel`, `evaluator_optimizer`, `orchestrator_workers`, `graph`, \
         `guided`; did you mean `chain`?",
    );
    refused(
        &with("pattern: {typ: chain, config: {}}\n"),
        "f.yaml:5:11: pattern: unknown key `typ`; expected one of: `type`, `config`; did you mean \
         `type`?",
    );
}

#[test]
fn an_invalid_value_is_reported_with_its_position_and_what_was_expected() {
    refused(
        &format!("{}runtime: {{budgets: {{max_steps: 0}}}}\n", with(CHAIN)),
        "f.yaml:6:32: runtime.budgets.max_steps: 0 is not a positive integer",
    );
    refused(
        &format!("{}runtime: {{budgets: {{max_cost_usd: -1}}}}\n", with(CHAIN)),
        "f.yaml:6:35: runtime.budgets.max_cost_usd: expected an amount of dollars above 0, such as 0.50",
    );
    refused(
        &format!("{}runtime: {{temperature: warm}}\n", with(CHAIN)),
        "f.yaml:6:24: runtime.temperature: this is a string; expected a number",
    );
    refused(
        &with("pattern: {type: chain, config: {steps: [a]}}\n"),
        "f.yaml:5:41: pattern.config.steps[0]: this is a string; expected a mapping",
    );
    refused(
        &with(
            "pattern: {type: chain, config: {steps: [{type: hitl, prompt: 'a', timeout_seconds: soon}]}}\n",
        ),
        "f.yaml:5:84: pattern.config.steps[0].timeout_seconds: this is a string; expected a \
         non-negative integer",
    );
    refused("version: 3\n", "f.yaml:1:10: version: unknown version 3; expected 0");
    refused("version: 0\nname: t\n", "f.yaml:1:1: missing key `agents`");
    refused(
        &with("pattern: {type: graph, config: {nodes: {s: {agent: a}}, edges: [{from: s}]}}\n"),
        "f.yaml:5:65: pattern.config.edges[0]: missing key `to` or `choose`",
    );
}

#[test]
fn a_name_must_refer_to_something() {
    refused(
        &with("pattern: {type: chain, config: {steps: [{agent: b}]}}\n"),
        "f.yaml:5:49: pattern.config.steps[0].agent: unknown agent `b`; expected one of: `a`",
    );
    refused(
        &with(
            "pattern: {type: workflow, config: {tasks: [{id: fetch, agent: a}, {id: y, agent: a, deps: [fecth]}]}}\n",
        ),
        "f.yaml:5:92: pattern.config.tasks[1].deps[0]: unknown task `fecth`; expected one of: \
         `fetch`, `y`; did you mean `fetch`?",
    );
    refused(
        &with(
            "pattern: {type: graph, config: {nodes: {s: {agent: a}}, edges: [{from: s, to: t}]}}\n",
        ),
        "f.yaml:5:79: pattern.config.edges[0].to[0]: unknown node `t`; expected one of: `s`",
    );
    refused(
        &with(
            "pattern: {type: parallel, config: {branches: [{id: l, steps: [{agent: a}]}, {id: l, steps: []}]}}\n",
        ),
        "f.yaml:5:82: pattern.config.branches[1].id: duplicate branch `l`\n\
         f.yaml:5:92: pattern.config.branches[1].steps: expected at least one step",
    );
}

#[test]
fn a_cycle_of_tasks_is_reported_by_name() {
    refused(
        &with(
            "pattern:\n  type: workflow\n  config:\n    tasks:\n    - {id: w, agent: a}\n    \
             - {id: x, agent: a, deps: [w, z]}\n    - {id: y, agent: a, deps: [x]}\n    \
             - {id: z, agent: a, deps: [y]}\n",
        ),
        "f.yaml:10:31: pattern.config.tasks[1].deps: tasks depend on each other: x → z → y → x",
    );
}

#[test]
fn templates_are_checked_before_anything_is_paid_for() {
    refused(
        &with(
            "inputs: {required: {topic: string}}\npattern: {type: chain, config: {steps: [{agent: a, input: 'on {{ topc }}'}]}}\n",
        ),
        "f.yaml:6:59: pattern.config.steps[0].input: unknown name `topc`; expected one of: \
         `hitl_response`, `last_response`, `name`, `steps`, `topic`; did you mean `topic`?",
    );
    refused(
        &with(
            "pattern: {type: chain, config: {steps: [{agent: a}, {agent: a, input: '{{ steps[1].response }}'}]}}\n",
        ),
        "f.yaml:5:71: pattern.config.steps[1].input: `steps[1]` does not exist yet: only `steps[0]` \
         is done by then",
    );
    refused(
        &with(
            "pattern: {type: workflow, config: {tasks: [{id: x, agent: a}, {id: y, agent: a, input: '{{ tasks.x.response }}'}]}}\n",
        ),
        "f.yaml:5:88: pattern.config.tasks[1].input: task `x` may not be done before task `y` \
         starts; add `x` to its `deps`",
    );
    refused(
        &with(
            "pattern: {type: chain, config: {steps: [{agent: a, input: '{{ hitl_response }}'}]}}\n",
        ),
        "f.yaml:5:59: pattern.config.steps[0].input: `hitl_response` is the answer of a person, but \
         no step asks one",
    );
    refused(
        "version: 0\nname: t\nagents: {a: {prompt: '{{ draft }}'}}\npattern: {type: evaluator_optimizer, \
         config: {producer: a, evaluator: {agent: a}, accept: {min_score: 1}}}\n",
        "f.yaml:3:22: agents.a.prompt: a prompt can only use variables, and `draft` is not one; use \
         it in the step's `input`",
    );
    // A template may handle a missing name itself.
    read(&with("pattern: {type: chain, config: {steps: [{agent: a, input: '{{ tone | default(\"dry\") }}'}]}}\n"))
        .unwrap();
}

#[test]
fn keys_of_strands_cli_without_an_effect_are_warned_about() {
    let text = "version: 0\nname: t\nagents: {a: {prompt: p}, b: {prompt: p}}\n\
        runtime: {provider: bedrock, region: eu-west-1}\n\
        telemetry: {otel: {endpoint: 'http://localhost'}}\n\
        tools: {python: [strands_tools.calculator, {callable: x.y}]}\n\
        security: {guardrails: {deny_network: true}}\n\
        outputs: {artifacts: [{path: trace.json, from: $TRACE}]}\n"
        .to_owned()
        + CHAIN;
    let warnings: Vec<_> = read(&text).unwrap().warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "3:29: agents.b: no step uses the agent `b`",
            "4:21: runtime.provider: provider `bedrock` is not built in: run with `--model`, or \
             configure it",
            "4:38: runtime.region: this has no effect: no provider has regions",
            "5:12: telemetry: this has no effect: Stepwell sends no telemetry; the session's log \
             records everything",
            "6:17: tools.python: this has no effect: Stepwell does not run Python; agents work \
             without these tools",
            "7:39: security.guardrails.deny_network: this has no effect: Stepwell does not restrict \
             the network",
            "8:48: outputs.artifacts[0].from: this has no effect: Stepwell has no trace; `stepwell \
             export` writes everything that happened",
        ]
    );
}

#[test]
fn an_unknown_tool_is_reported_with_its_position_and_the_nearest_tool() {
    let known = "expected one of: `delete_file`, `dispatch_subagent`, `edit_file`, `list_files`, \
                 `read_file`, `run_command`, `search`, `tasks`, `write_file`";
    let with = |tools: &str, steps: &str| {
        format!(
            "version: 0\nname: t\nagents: {{a: {{prompt: p, tools: {tools}}}}}\n\
             tools: {{mcp: [{{id: git, command: g}}], http_executors: [{{id: api, base_url: u}}]}}\n\
             pattern: {{type: chain, config: {{steps: [{{agent: a{steps}}}]}}}}\n"
        )
    };
    refused(
        &with("[search, raed_file]", ""),
        &format!(
            "f.yaml:3:41: agents.a.tools[1]: unknown tool `raed_file`; {known}, `git`; did you \
             mean `read_file`?"
        ),
    );
    refused(
        &with("[]", ", tool_overrides: [gitt]"),
        &format!(
            "f.yaml:5:69: pattern.config.steps[0].tool_overrides[0]: unknown tool `gitt`; \
             {known}, `git`; did you mean `git`?"
        ),
    );
    let reading =
        read(&with("[git, api, http_executors, x.y, mcp__git__log, git__*]", "")).unwrap();
    assert!(reading.servers.is_empty(), "{:?}", reading.servers);
    // A server that the spec does not define may be configured.
    let (server, problem) = &read(&with("[gitt__log]", "")).unwrap().servers[0];
    assert_eq!(server, "gitt");
    assert_eq!(
        problem.to_string(),
        "3:33: agents.a.tools[0]: unknown server `gitt` of the tool `gitt__log`; did you mean \
         `git__log`?"
    );
}

#[test]
fn an_unknown_tool_in_guardrails_is_reported_with_its_position() {
    let with = |allowed: &str| {
        format!(
            "version: 0\nname: t\nsecurity: {{guardrails: {{allow_tools: {allowed}}}}}\n\
             agents: {{a: {{prompt: p}}}}\ntools: {{mcp: [{{id: git, command: g}}]}}\n\
             pattern: {{type: chain, config: {{steps: [{{agent: a}}]}}}}\n"
        )
    };
    let why = read(&with("[search, raed_file]")).unwrap_err();
    let start = "f.yaml:3:47: security.guardrails.allow_tools[1]: unknown tool `raed_file`";
    assert!(why.starts_with(start) && why.ends_with("did you mean `read_file`?"), "{why}");
    read(&with("[read_file, git, git__log, grep, head]")).unwrap();
    assert_eq!(read(&with("[gitt__log]")).unwrap().servers[0].0, "gitt");
}

#[test]
fn a_secret_in_a_spec_is_warned_about() {
    let spec = "version: 0\nname: t\nagents: {a: {prompt: p}}\n\
                inputs: {values: {plain: word, token: ghp_0123456789abcdefghijABCDEFGHIJ012345}}\n\
                pattern: {type: chain, config: {steps: [{agent: a, input: '{{ token }}{{ plain }}'}]}}\n";
    let warnings = read(spec).unwrap().warnings;
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["4:39: inputs.values.token: this looks like a secret, and sessions store the spec \
             unredacted: remove it, and use --var token=…"]
    );
}

#[test]
fn a_prompt_is_read_only_from_a_file_in_the_spec_folder() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("prompts")).unwrap();
    std::fs::write(folder.path().join("prompts/a.md"), "You are {{ who | default(1) }}.").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("link")).unwrap();
    let parse = |agent: &str| {
        let text = format!("version: 0\nname: t\nagents: {{a: {agent}}}\n{CHAIN}");
        let files = Folder(folder.path().to_owned());
        Spec::parse(&text, "f.yaml", &files).map_err(|error| error.to_string())
    };
    for agent in ["{$ref: prompts/a.md}", "{prompt: {$ref: ./prompts/a.md}}"] {
        let spec = parse(agent).unwrap().spec;
        assert_eq!(spec.agents["a"].prompt.template.source(), "You are {{ who | default(1) }}.");
        // The texts that were read replace the folder from now on.
        assert_eq!(spec.files().values().collect::<Vec<_>>(), ["You are {{ who | default(1) }}."]);
    }
    for (file, why) in [
        ("link", "it is a link that leads out of the spec's folder"),
        ("../x", "expected a relative path in the spec's folder, without `..`"),
        ("/etc/hostname", "expected a relative path in the spec's folder, without `..`"),
        ("prompts", "not a regular file"),
        ("none.md", "no such file in the spec's folder"),
        (
            "agent.YAML",
            "a YAML or JSON file is not a prompt: write the agent's `prompt`, `tools` and `model_id` \
             in this spec, or refer to a text file, such as prompt.md",
        ),
    ] {
        assert_eq!(
            parse(&format!("{{$ref: {file}}}")).unwrap_err(),
            format!("f.yaml:3:13: agents.a: prompt file {file:?}: {why}")
        );
    }
}

#[test]
fn a_step_is_for_an_agent_or_for_a_person_not_both() {
    let text =
        with("pattern: {type: chain, config: {steps: [{type: hitl, prompt: p, agent: a}]}}\n");
    assert!(read(&text).unwrap_err().contains("unknown key `agent`"));
    let text = with("pattern: {type: chain, config: {steps: [{type: agent, agent: a}]}}\n");
    let Pattern::Chain(chain) = read(&text).unwrap().spec.pattern else { panic!() };
    assert!(matches!(chain.steps[0], Step::Agent(_)));
    let text = with(
        "pattern: {type: routing, config: {router: {agent: a, review_router: {agent: a}}, routes: {x: {}}}}\n",
    );
    assert!(read(&text).unwrap_err().contains("expected `type: hitl`"));
}

#[test]
fn artifacts_have_distinct_paths_inside_the_output_folder() {
    let artifacts = |paths: &[&str]| {
        let list: Vec<String> =
            paths.iter().map(|path| format!("{{path: '{path}', from: x}}")).collect();
        with(&format!("{CHAIN}outputs: {{artifacts: [{}]}}\n", list.join(", ")))
    };
    for (paths, message) in [
        (&["a.md", "./a.md"][..], r#"another artifact already has the path "./a.md""#),
        (&["sub", "sub/x.md"], r#""sub/x.md" and "sub" cannot both be files"#),
        (&["sub/x.md", "b", "sub"], r#""sub" and "sub/x.md" cannot both be files"#),
        (&["../a"], "it leaves the folder"),
        (&["/a"], "it is absolute"),
        (&[".git/hooks/pre-commit"], "`.git` is reserved"),
        (&["stepwell.toml"], "`stepwell.toml` is reserved"),
    ] {
        let why = read(&artifacts(paths)).expect_err("it must be refused");
        assert!(why.contains(message), "{why}");
    }
    assert!(read(&artifacts(&["sub/x.md", "sub/y.md", "sub2", "{{ last_response }}.md"])).is_ok());
}
