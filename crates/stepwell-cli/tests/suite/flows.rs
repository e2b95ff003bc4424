//! Flows, as their users run them: each failure that is named in the docs, through the binary.

use std::process::Stdio;

use serde_json::Value;

use crate::test_env::{Ran, TestEnv};

/// A chain with a gate in its middle, and an artifact.
pub(crate) const SPEC: &str = "
version: 0
name: letters
description: Writes a letter
inputs: {required: {topic: string}}
agents:
  writer: {prompt: 'You write about {{ topic }}.'}
pattern:
  type: chain
  config:
    steps:
      - {agent: writer, input: 'Draft {{ topic }}'}
      - {type: hitl, prompt: 'Is it good?', context_display: '{{ steps[0].response }}'}
      - {agent: writer, input: 'Final: {{ hitl_response }}'}
outputs: {artifacts: [{path: letter.md, from: '{{ last_response }}'}]}
";

pub(crate) const SCRIPT: &str = "
prices: {input: '3', output: '15'}
lanes:
  writer: [{text: a draft, usage: {input: 10, output: 2}}, {text: the letter, usage: {input: 20, output: 2}}]
";

pub(crate) fn env(spec: &str, script: &str) -> TestEnv {
    let env = TestEnv::new();
    env.file("flow.yaml", spec);
    env.file("script.yaml", script);
    env
}

/// Runs a flow.
pub(crate) fn run(env: &TestEnv, more: &[&str]) -> Ran {
    let mut args =
        vec!["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=wells"];
    args.extend(more);
    env.quietly(&args)
}

pub(crate) fn resume(env: &TestEnv, more: &[&str]) -> Ran {
    let mut args = vec!["resume", "@last"];
    args.extend(more);
    env.quietly(&args)
}

pub(crate) fn ends(ran: &Ran, code: i32) {
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
}

/// How many answers of models are recorded.
pub(crate) fn answers(env: &TestEnv) -> usize {
    let log = env.quietly(&["log", "@last", "--json"]);
    log.stdout.lines().filter(|line| line.contains(r#""role":"assistant""#)).count()
}

pub(crate) fn show(env: &TestEnv) -> Value {
    env.quietly(&["show", "@last", "--json"]).json().remove(0)
}

#[test]
fn a_flow_asks_pauses_and_goes_on_with_the_answer() {
    let mut env = env(SPEC, SCRIPT);
    let line = "flow run flow.yaml --model script:script.yaml --var topic=wells";
    ends(&env.say(line), 8);
    env.say("gates");
    ends(&env.say("resume @last"), 8);
    ends(&env.run(&["resume", "@last", "--respond", "very good"]), 0);
    ends(&env.say("resume @last"), 3);
    env.say("gates");
    assert_eq!(env.read("letter.md"), "the letter");
    insta::assert_snapshot!(env.transcript());
    let log = env.quietly(&["log", "@last"]).stdout;
    assert!(log.contains(r#""answer":"very good","who":"#) && log.contains("@"), "{log}");
    assert_eq!(answers(&env), 2);
    let nodes = show(&env)["flow"]["nodes"].clone();
    assert_eq!(nodes[2]["key"], "step/2");
    assert_eq!(nodes[2]["state"], "done");
}

#[test]
fn a_result_is_one_object_and_events_are_lines() {
    let env = env(SPEC, SCRIPT);
    let ran = run(&env, &["--json"]);
    ends(&ran, 8);
    let answer = ran.json().remove(0);
    assert_eq!(answer["status"], "paused");
    assert_eq!(answer["gates"][0]["id"], "step/1");
    let ran = resume(&env, &["--respond", "ok", "--json"]);
    ends(&ran, 0);
    let answer = ran.json().remove(0);
    assert_eq!(answer["output"], "the letter");
    assert_eq!(answer["artifacts"][0], "letter.md");
    assert_eq!(answer["tokens_by_agent"]["writer"]["input"], 30, "all invocations count");
    assert_eq!(answer["costs"]["total_cost_usd"], 0.00015);
    let other = self::env(SPEC, SCRIPT);
    let ran = run(&other, &["--events"]);
    let kinds: Vec<Value> = ran.json().iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds[0], "created");
    assert_eq!(kinds[kinds.len() - 1], "status");
    assert!(kinds.contains(&"node".into()) && kinds.contains(&"gate".into()), "{kinds:?}");
}

#[test]
fn a_flow_that_another_model_went_on_with_reads_as_that_ones() {
    let env = env(SPEC, SCRIPT);
    env.file("other.yaml", SCRIPT);
    ends(&run(&env, &[]), 8);
    assert!(show(&env)["model"].as_str().unwrap().ends_with("/script.yaml"));
    ends(&resume(&env, &["--respond", "ok", "--model", "script:other.yaml"]), 0);
    let shown = show(&env);
    assert!(shown["model"].as_str().unwrap().ends_with("/other.yaml"), "{shown}");
    assert_eq!(shown["provider"], "script");
    let listed = env.quietly(&["sessions", "--json"]).json().remove(0);
    assert_eq!(listed["model"], shown["model"]);
    assert!(env.quietly(&["stats"]).stdout.contains("/other.yaml"));
    ends(&env.quietly(&["verify", "@last"]), 0);
}

#[test]
fn of_two_resumes_at_once_the_second_is_refused_and_makes_no_call() {
    let slow = SCRIPT.replace("{text: the letter,", "{delay_ms: 4000, text: the letter,");
    let env = env(SPEC, &slow);
    let real = |args: &[&str]| {
        let mut command = env.command(args);
        command.env_remove("STEPWELL_NOW");
        command
    };
    let begin = ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=x"];
    assert_eq!(real(&begin).output().unwrap().status.code(), Some(8));
    let mut first = real(&["resume", "@last", "--respond", "ok"]);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The first one is at work when its node is recorded.
    while !env.quietly(&["log", "@last"]).stdout.contains(r#""key":"step/2","state":"started""#) {}
    let second = real(&["resume", "@last"]).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(6), "{said}");
    assert!(said.contains("--attach"), "{said}");
    assert_eq!(answers(&env), 1, "it made no call");
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert_eq!(answers(&env), 2);
}

#[test]
fn a_store_that_cannot_be_written_is_exit_7_and_never_0() {
    let spec = SPEC.replace("about {{ topic }}.'}", "about {{ topic }}.', tools: [run_command]}");
    let script = "lanes: {writer: [{calls: [{tool: run_command, arguments: {command: 'mv .stepwell gone'}}]}, {text: done}]}";
    let env = env(&spec, script);
    let ran = run(&env, &["--mode", "yolo", "--json"]);
    ends(&ran, 7);
    assert_eq!(ran.json()[0]["tools_used"], serde_json::json!(["run_command"]), "{}", ran.stdout);
    assert!(ran.stderr.contains("could not be saved"), "{}", ran.stderr);
    assert!(ran.stderr.contains("stepwell resume"), "{}", ran.stderr);
}

#[test]
fn an_existing_artifact_stays_and_only_it_is_written_when_it_may_be() {
    let env = env(SPEC, SCRIPT);
    env.file("letter.md", "mine");
    ends(&run(&env, &[]), 8);
    let ran = resume(&env, &["--respond", "ok"]);
    ends(&ran, 1);
    assert!(ran.stderr.contains("--force"), "{}", ran.stderr);
    assert_eq!(env.read("letter.md"), "mine");
    let again = resume(&env, &["--output", "elsewhere"]);
    ends(&again, 0);
    assert_eq!(answers(&env), 2, "no agent ran again");
    assert_eq!(
        (env.read("letter.md"), env.read("elsewhere/letter.md")),
        ("mine".into(), "the letter".into())
    );
}

#[test]
fn prompts_that_stand_in_files_are_those_that_were_read_when_the_flow_began() {
    let spec = SPEC.replace(
        "writer: {prompt: 'You write about {{ topic }}.'}",
        "writer: {$ref: prompts/writer.md}",
    );
    let env = env(&spec, SCRIPT);
    env.file("prompts/writer.md", "You are kind, and write about {{ topic }}.");
    ends(&run(&env, &[]), 8);
    env.file("prompts/writer.md", "You are rude.");
    let ran = resume(&env, &["--respond", "ok"]);
    ends(&ran, 0);
    assert!(ran.stderr.contains("changed since this flow began"), "{}", ran.stderr);
    let log = env.quietly(&["log", "@last"]).stdout;
    assert!(log.contains("You are kind, and write about wells.") && !log.contains("rude"), "{log}");
    let outside = self::env(
        &SPEC.replace("{prompt: 'You write about {{ topic }}.'}", "{$ref: ../home/x}"),
        SCRIPT,
    );
    ends(&run(&outside, &[]), 3);
}

/// A flow that waits for its first answer.
fn at_its_first_call() -> (TestEnv, std::process::Child) {
    let slow = SCRIPT.replace("{text: a draft,", "{delay_ms: 60000, text: a draft,");
    let env = env(SPEC, &slow);
    let args =
        ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=wells"];
    let mut command = env.command(&args);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !env.quietly(&["log", "@last"]).stdout.contains(r#""state":"started""#) {}
    (env, child)
}

#[test]
fn a_flow_that_was_killed_is_found_by_its_spec_and_variables() {
    let (env, mut child) = at_its_first_call();
    child.kill().unwrap();
    child.wait().unwrap();
    env.file("script.yaml", SCRIPT);
    let other = env.quietly(&[
        "flow",
        "run",
        "flow.yaml",
        "--model",
        "script:script.yaml",
        "--var",
        "topic=other",
        "--auto-resume",
        "--json",
    ]);
    let ran = run(&env, &["--auto-resume", "--json"]);
    ends(&ran, 8);
    let (other, ran) = (other.json().remove(0), ran.json().remove(0));
    assert_ne!(other["session_id"], ran["session_id"], "other variables are another flow");
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 2);
}

#[test]
fn a_changed_spec_is_told_of_and_taken_only_if_what_is_done_still_stands() {
    let env = env(SPEC, SCRIPT);
    ends(&run(&env, &[]), 8);
    env.file("flow.yaml", &SPEC.replace("'Final:", "'The very last:"));
    let ran = resume(&env, &[]);
    ends(&ran, 8);
    assert!(ran.stderr.contains("--use-current-spec"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("+      - {agent: writer, input: 'The very last:"),
        "{}",
        ran.stderr
    );
    env.file("flow.yaml", &SPEC.replace("'Draft", "'Scribble"));
    let refused = resume(&env, &["--use-current-spec", "--respond", "ok"]);
    ends(&refused, 3);
    assert!(refused.stderr.contains("step/0"), "{}", refused.stderr);
    env.file("flow.yaml", &SPEC.replace("'Final:", "'The very last:"));
    ends(&resume(&env, &["--use-current-spec", "--respond", "ok"]), 0);
    let log = env.quietly(&["log", "@last"]).stdout;
    assert!(log.contains("The very last: ok"), "{log}");
}

#[test]
fn passing_faults_are_asked_again_and_others_never() {
    let spec = SPEC.replace(
        "pattern:\n",
        "runtime: {failure_policy: {retries: 2, wait_min: 0, wait_max: 0}}\npattern:\n",
    );
    let flaky =
        SCRIPT.replace("{text: a draft,", "{fail: [unavailable, rate_limited], text: a draft,");
    ends(&run(&env(&spec, &flaky), &[]), 8);
    let down =
        SCRIPT.replace("{text: a draft,", "{fail: [unavailable], forever: true, text: a draft,");
    let ran = run(&env(&spec, &down), &[]);
    ends(&ran, 1);
    assert_eq!(ran.stderr.matches("asking again").count(), 2, "{}", ran.stderr);
    let refused = SCRIPT.replace("{text: a draft,", "{fail: [refused], text: a draft,");
    let ran = run(&env(&spec, &refused), &[]);
    ends(&ran, 1);
    assert_eq!(ran.stderr.matches("asking again").count(), 0, "{}", ran.stderr);
    let key = SCRIPT.replace("{text: a draft,", "{fail: [auth], text: a draft,");
    ends(&run(&env(&spec, &key), &[]), 4);
}

#[test]
fn a_budget_of_the_spec_counts_all_invocations_and_a_typed_one_gives_more() {
    let spec = SPEC.replace("pattern:\n", "runtime: {budgets: {max_steps: 1}}\npattern:\n");
    let env = env(&spec, SCRIPT);
    ends(&run(&env, &[]), 8);
    let ran = resume(&env, &["--respond", "ok"]);
    ends(&ran, 5);
    assert!(ran.stderr.contains("--max-steps"), "{}", ran.stderr);
    ends(&resume(&env, &[]), 5);
    ends(&resume(&env, &["--max-steps", "1"]), 0);
    let dear =
        SPEC.replace("pattern:\n", "runtime: {budgets: {max_cost_usd: 0.000001}}\npattern:\n");
    let ran = run(&self::env(&dear, SCRIPT), &[]);
    ends(&ran, 5);
    assert_eq!(ran.stderr.matches("done (writer)").count(), 0, "{}", ran.stderr);
}

#[test]
fn a_rewind_takes_back_nodes_and_gates_and_a_fork_goes_its_own_way() {
    let env = env(SPEC, SCRIPT);
    ends(&run(&env, &[]), 8);
    ends(&resume(&env, &["--respond", "ok"]), 0);
    ends(&env.quietly(&["fork", "@last"]), 0);
    let log = env.quietly(&["sessions", "--json"]).json();
    let first =
        log.iter().find(|it| it["status"] == "success").unwrap()["id"].as_str().unwrap().to_owned();
    let events = env.quietly(&["log", &first, "--json"]).json();
    let done = events
        .iter()
        .find(|event| event["body"]["key"] == "step/0" && event["body"]["state"] == "done")
        .unwrap();
    let seq = done["seq"].to_string();
    ends(&env.quietly(&["rewind", &first, "--to", &seq, "--chat"]), 0);
    let again = env.quietly(&["resume", &first, "--json"]);
    ends(&again, 8);
    assert_eq!(again.json()[0]["gates"][0]["id"], "step/1", "its question is asked again");
    std::fs::remove_file(env.work().join("letter.md")).unwrap();
    ends(&env.quietly(&["resume", &first, "--respond", "other"]), 0);
    let log = env.quietly(&["log", &first]).stdout;
    assert!(log.contains("Final: other"), "{log}");
    assert_eq!(log.matches("Draft wells").count(), 1, "what was kept is not asked again");
    for command in
        [vec!["search", "letter"], vec!["stats"], vec!["export", &first], vec!["show", &first]]
    {
        ends(&env.quietly(&command), 0);
    }
}

#[test]
fn what_is_for_flows_only_is_refused_elsewhere() {
    let env = TestEnv::furnished();
    let ran = env.quietly(&["resume", "@last", "--respond", "x", "--model", "script:x"]);
    ends(&ran, 2);
    assert!(ran.stderr.contains("--respond is for flows"), "{}", ran.stderr);
    let ran = self::env(SPEC, SCRIPT).quietly(&["flow", "run", "flow.yaml", "--var", "topic"]);
    ends(&ran, 2);
}

/// A key by its looks; nothing takes it.
const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

#[test]
fn a_variables_secret_reaches_the_model_and_is_not_kept() {
    use stepwell_strict::Say;
    let (env, strict, _runtime) = crate::running::with_provider("openai");
    env.file("flow.yaml", SPEC);
    let topic = format!("topic={SECRET}");
    let begin = ["flow", "run", "flow.yaml", "--model", "local/large", "--var", &topic];
    strict.push(Say::text("a draft"));
    ends(&env.quietly(&begin), 8);
    assert!(strict.asked()[0].text.contains(&format!("Draft {SECRET}")), "as it was typed");
    let log = env.quietly(&["log", "@last"]).stdout;
    assert!(!log.contains(SECRET) && log.contains("[redacted:"), "{log}");
    // Without it the flow would go on with what stands in its place.
    let ran = env.quietly(&["resume", "@last", "--respond", "ok"]);
    ends(&ran, 3);
    assert!(ran.stderr.contains("--var topic="), "{}", ran.stderr);
    let other = env.quietly(&["resume", "@last", "--respond", "ok", "--var", "topic=wells"]);
    ends(&other, 2);
    assert_eq!(strict.asked().len(), 1);
    // It is found by what is kept of it, and goes on with what was typed.
    let args: Vec<&str> = begin.iter().copied().chain(["--auto-resume"]).collect();
    let again = env.quietly(&args);
    ends(&again, 8);
    assert!(again.stderr.contains("Resuming"), "{}", again.stderr);
    strict.push(Say::text("the letter"));
    ends(&env.quietly(&["resume", "@last", "--respond", "ok", "--var", &topic]), 0);
    let asked = strict.asked();
    let system = asked[1].body["messages"][0]["content"].to_string();
    assert!(system.contains(SECRET), "{system}");
    assert_eq!((asked.len(), env.quietly(&["sessions", "--json"]).json().len()), (2, 1));
}

#[test]
fn a_variables_secret_reaches_the_model_each_time_that_it_is_asked() {
    use stepwell_strict::{Reply, Say};
    let (env, strict, _runtime) = crate::running::with_provider("openai");
    let spec = SPEC
        .replace("about {{ topic }}.'}", "letters.', output_schema: {type: object, required: [a]}}")
        .replace("      - {type: hitl, prompt: 'Is it good?', context_display: '{{ steps[0].response }}'}\n", "")
        .replace("hitl_response", "topic");
    env.file("flow.yaml", &spec);
    let topic = format!("topic={SECRET}");
    strict.push(Say::text("no object"));
    strict.push(Say::text(r#"{"a": 1}"#));
    strict.push(Reply::error(400, "not today"));
    let begin = ["flow", "run", "flow.yaml", "--model", "local/large", "--var", &topic];
    ends(&env.quietly(&begin), 1);
    let shown = |n: usize| strict.asked()[n].body["messages"].to_string();
    // Asked; asked again, since the answer is no good; the next step, which goes on from there.
    for n in 0..3 {
        assert!(shown(n).contains(&format!("Draft {SECRET}")), "{n}: {}", shown(n));
        assert!(!shown(n).contains("[redacted:"), "{n}: {}", shown(n));
    }
    // Taken up by another process, in the words of before.
    strict.push(Say::text(r#"{"a": 2}"#));
    ends(&env.quietly(&["resume", "@last", "--var", &topic]), 0);
    assert!(shown(3).contains(&format!("Final: {SECRET}")), "{}", shown(3));
    let log = env.quietly(&["log", "@last"]).stdout;
    assert!(!log.contains(SECRET) && log.contains("[redacted:"), "{log}");
}

#[test]
fn a_run_beside_one_that_runs_is_refused_and_not_paid_twice() {
    let (env, mut child) = at_its_first_call();
    let ran = run(&env, &["--auto-resume"]);
    child.kill().unwrap();
    child.wait().unwrap();
    ends(&ran, 6);
    assert!(ran.stderr.contains("--attach"), "{}", ran.stderr);
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 1);
}

#[test]
fn hints_name_what_helps() {
    let elsewhere = SPEC.replace("path: letter.md", "path: '{{ topic }}'");
    let env = env(&elsewhere, SCRIPT);
    let begin =
        ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=../letter"];
    ends(&env.quietly(&begin), 8);
    let ran = resume(&env, &["--respond", "ok"]);
    ends(&ran, 1);
    assert!(ran.stderr.contains("--use-current-spec"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("--force"), "{}", ran.stderr);
    let slow = SCRIPT.replace("{text: a draft,", "{delay_ms: 60000, text: a draft,");
    let timed = self::env(SPEC, &slow);
    let ran = run(&timed, &["--timeout", "1"]);
    ends(&ran, 5);
    assert!(ran.stderr.contains("--timeout TIME"), "{}", ran.stderr);
    let server =
        "tools: {mcp: [{id: far, command: /nowhere/server}]}\nagents:\n  writer: {tools: [far], ";
    let absent = self::env(&SPEC.replace("agents:\n  writer: {", server), SCRIPT);
    let ran = run(&absent, &[]);
    ends(&ran, 3);
    assert!(ran.stderr.contains("correct tools.mcp in the spec"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("agents.letters"), "{}", ran.stderr);
}

#[test]
fn two_artifacts_that_come_to_one_path_are_refused_by_name() {
    let twice = SPEC.replace(
        "[{path: letter.md, from: '{{ last_response }}'}]",
        "[{path: '{{ topic }}.md', from: one}, {path: 'wells.md', from: two}]",
    );
    let env = env(&twice, SCRIPT);
    ends(&run(&env, &[]), 8);
    let ran = resume(&env, &["--respond", "ok", "--force"]);
    ends(&ran, 1);
    assert!(
        ran.stderr.contains("artifact wells.md: another artifact has this path"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("--use-current-spec") && !ran.stderr.contains("--force"),
        "{}",
        ran.stderr
    );
    assert_eq!(env.read("wells.md"), "one");
}

#[test]
fn a_dry_run_of_a_flow_shows_the_plan_and_leaves_nothing() {
    let env = env(SPEC, SCRIPT);
    let ran = run(&env, &["--dry-run"]);
    ends(&ran, 0);
    assert!(ran.stdout.contains("Draft wells"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Final: {{ hitl_response }}"), "{}", ran.stdout);
    assert!(!env.work().join(".stepwell").exists() && !env.work().join("letter.md").exists());
    let plan = run(&env, &["--dry-run", "--json"]).json().remove(0);
    assert_eq!(plan["variables"][0]["value"], "wells");
    let unset = env.quietly(&["flow", "run", "flow.yaml", "--dry-run"]);
    assert!(unset.stderr.contains("--var topic=TEXT"), "{}", unset.stderr);
}

#[test]
fn a_dry_resume_of_a_flow_says_what_is_next_and_changes_nothing() {
    let env = env(SPEC, SCRIPT);
    ends(&run(&env, &[]), 8);
    let before = show(&env)["seq"].clone();
    let next = resume(&env, &["--dry-run", "--json"]).json().remove(0);
    assert_eq!(next["next"][0]["key"], "step/1", "{next}");
    assert_eq!(show(&env)["seq"], before);
    assert!(!env.work().join("letter.md").exists());
}

#[test]
fn programs_see_what_a_flow_is_and_how_its_nodes_stand() {
    let env = env(SPEC, SCRIPT);
    ends(&run(&env, &[]), 8);
    let listed = env.quietly(&["sessions", "--json"]).json().remove(0);
    let flow = &show(&env)["flow"];
    for flow in [flow, &listed["flow"]] {
        assert_eq!((&flow["name"], &flow["pattern"]), (&"letters".into(), &"chain".into()));
        let spec = stepwell::model::SpecHash::of(SPEC.as_bytes()).to_string();
        assert_eq!(flow["spec_hash"], spec);
    }
    assert_eq!(flow["variables"]["topic"], "wells");
    let node = &flow["nodes"][0];
    assert_eq!((&node["key"], &node["state"]), (&"step/0".into(), &"done".into()));
    assert_eq!(flow["nodes"][1]["state"], "started");
}
