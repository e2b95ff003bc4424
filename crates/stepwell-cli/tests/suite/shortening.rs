//! compact, pin-message, show --view, and runs whose conversation grows.

use insta::assert_snapshot;

use crate::running::{one, with_provider};
use crate::test_env::{AUTH, TESTS, TestEnv};

/// So many steps that read a file, in a context with room for a few.
fn script(steps: usize, summaries: &str) -> String {
    let mut script = "context: 8000\nanswers:\n".to_owned();
    for n in 1..=steps {
        script.push_str(&format!(
            "  - {{text: Step {n}., calls: [{{tool: read_file, arguments: {{path: notes.txt}}}}]}}\n"
        ));
    }
    format!("{script}  - {{text: Done.}}\nsummaries: [{summaries}]\n")
}

const SUMMARY: &str = "{text: \"## Goal\\n- read\\n## Files\\n- notes.txt: read\"}";

const SETTINGS: &str = "[compaction]\nbuffer = 5000\nkeep_tokens = 700\n";

fn env(script: &str) -> TestEnv {
    let env = TestEnv::new();
    env.file("notes.txt", &"a line of notes\n".repeat(100));
    env.file("stepwell.toml", SETTINGS);
    env.file("script.yaml", script);
    env
}

const RUN: [&str; 6] = ["run", "read the notes", "--model", "script:script.yaml", "--mode", "yolo"];

/// The compactions that a session's log holds.
fn compactions(env: &TestEnv) -> Vec<serde_json::Value> {
    let log = env.quietly(&["log", "@last"]).json();
    log.into_iter().filter(|event| event["kind"] == "compacted").collect()
}

#[test]
fn a_conversation_is_shown_shortened_compared_and_restored() {
    let mut env = env(&script(4, SUMMARY));
    // Nothing is due yet by itself.
    env.file("stepwell.toml", "[compaction]\nkeep_tokens = 700\nauto = false\n");
    env.quietly(&RUN);
    env.say("show @last --view");
    env.say("compact @last --diff");
    env.say("compact @last --undo");
    env.say("pin-message @last 8");
    env.say("compact @last");
    env.say("compact @last");
    env.say("compact @last --diff");
    env.say("show @last --view");
    env.say("compact @last --undo");
    env.say("unpin-message @last 8");
    env.say("compact @last --truncate --json");
    env.say("compact @last --diff --json");
    env.say("compact @last --undo --json");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_compaction_is_undone_to_what_the_view_says_now() {
    let env = env(&script(4, SUMMARY));
    env.file("stepwell.toml", "[compaction]\nkeep_tokens = 700\nauto = false\n");
    env.quietly(&RUN);
    let tokens = || env.quietly(&["show", "@last", "--view", "--json"]).json()[0]["tokens"].clone();
    assert_eq!(env.quietly(&["compact", "@last"]).code, Some(0));
    // More is said after it.
    env.quietly(&["state", "@last", "goal", &"a goal of many words ".repeat(50)]);
    let before = tokens();
    let undone = env.quietly(&["compact", "@last", "--undo", "--json"]).json();
    assert_eq!(undone[0]["tokens_before"], before);
    assert_eq!(undone[0]["tokens_after"], tokens());
    assert_ne!(tokens(), before);
}

#[test]
fn a_message_is_pinned_by_its_seq_and_nothing_else_is() {
    let mut env = TestEnv::furnished();
    env.run(&["pin-message", AUTH, "2"]);
    env.run(&["pin-message", AUTH, "2", "--json"]);
    env.run(&["unpin-message", AUTH, "2", "--json"]);
    env.run(&["unpin-message", AUTH, "2"]);
    env.run(&["pin-message", AUTH, "1"]);
    env.run(&["pin-message", AUTH, "0"]);
    env.run(&["pin-message", AUTH, "999"]);
    env.run(&["pin-message", AUTH, "two"]);
    env.run(&["compact", TESTS, "--undo"]);
    env.run(&["compact", TESTS, "--diff"]);
    env.run(&["compact", TESTS, "--truncate"]);
    env.run(&["compact", TESTS, "--undo", "--diff"]);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_run_that_grows_is_compacted_and_goes_on() {
    let env = env(&script(12, SUMMARY));
    let done = one(&env, &RUN, 0);
    assert_eq!(done["output"], "Done.");
    let made = compactions(&env);
    assert!(made.len() >= 3, "{}", made.len());
    for event in &made {
        assert!(event["body"]["summary"].as_str().unwrap().contains("notes.txt: read"));
        assert!(event["body"]["fault"].is_null());
    }
    // The record of it replays it, with its compactions.
    let record: Vec<&str> = RUN.iter().copied().chain(["--record", "again.json"]).collect();
    let first = one(&env, &record, 0);
    let replay = ["run", "read the notes", "--model", "script:again.json", "--mode", "yolo"];
    let again = one(&env, &replay, 0);
    assert_eq!((&again["output"], &again["steps"]), (&first["output"], &first["steps"]));
    assert_eq!(compactions(&env).len(), made.len());
}

#[test]
fn a_summary_that_cannot_be_had_is_said_and_the_run_goes_on() {
    let env = env(&script(12, "{text: '', fail: unavailable}"));
    let ran = env.quietly(&RUN);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = "truncated, not compacted (script: summary 1 fails: unavailable)";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let shown = env.quietly(&["show", "@last"]).stdout;
    assert!(shown.contains("Truncated"), "{shown}");
    // A program is told the same, beside its answer.
    let json: Vec<&str> = RUN.iter().copied().chain(["--json"]).collect();
    let ran = env.quietly(&json);
    assert_eq!(ran.json()[0]["status"], "success");
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn truncation_is_asked_for_in_the_configuration() {
    let env = env(&script(12, ""));
    let settings = "[sessions]\ntruncation = true\ntruncation_above = 10\ntruncation_keep = 4\n";
    env.file("stepwell.toml", settings);
    assert_eq!(one(&env, &RUN, 0)["output"], "Done.");
    let made = compactions(&env);
    assert!(!made.is_empty() && made.iter().all(|event| event["body"]["model"].is_null()));
    let view = one(&env, &["show", "@last", "--view"], 0);
    assert!(view["messages"].as_array().unwrap().len() <= 11);
    assert_eq!(view["messages"][0]["parts"][0]["text"]["text"], "read the notes");
}

#[test]
fn a_model_of_its_own_writes_the_summaries_if_it_can_be_had() {
    let env = env(&script(12, SUMMARY));
    let other = "{text: \"## Goal\\n- by the cheap one\", usage: {input: 10, output: 1}}";
    env.file("cheap.yaml", &script(0, other));
    let with = |model: &str| {
        env.file("stepwell.toml", &format!("{SETTINGS}model = \"{model}\"\n"));
        let ran = env.quietly(&RUN);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        (compactions(&env).remove(0), ran.stderr)
    };
    let (made, _) = with("script:cheap.yaml");
    assert!(made["body"]["summary"].as_str().unwrap().contains("by the cheap one"));
    assert!(made["body"]["model"].as_str().unwrap().ends_with("cheap.yaml"));
    let (made, said) = with("script:gone.yaml");
    assert!(made["body"]["summary"].as_str().unwrap().contains("notes.txt: read"));
    assert!(said.contains("warning: compaction.model script:gone.yaml"), "{said}");
}

#[test]
fn a_session_without_a_model_that_can_be_asked_is_truncated() {
    let env = env(&script(4, SUMMARY));
    env.file("stepwell.toml", "[compaction]\nkeep_tokens = 700\nauto = false\n");
    env.quietly(&RUN);
    std::fs::remove_file(env.work().join("script.yaml")).unwrap();
    let ran = env.quietly(&["compact", "@last"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("was truncated"), "{}", ran.stdout);
    assert!(ran.stderr.contains("cannot be asked"), "{}", ran.stderr);
    let truncated = || one(&env, &["show", "@last"], 0)["facts"]["truncated"].clone();
    assert_eq!(truncated(), true);
    env.quietly(&["compact", "@last", "--undo"]).line();
    assert!(truncated().is_null());
}

#[test]
fn a_session_that_runs_elsewhere_is_not_compacted() {
    let env = TestEnv::furnished();
    let well = env.well();
    let held = well.lock(&AUTH.parse().unwrap()).unwrap();
    assert_eq!(env.quietly(&["compact", AUTH]).code, Some(6));
    // A pin reaches it all the same.
    assert_eq!(env.quietly(&["pin-message", AUTH, "2"]).code, Some(0));
    drop(held);
}

#[test]
fn what_a_provider_counts_is_remembered_for_the_next_run() {
    use stepwell_strict::{Say, Tokens};
    let (env, strict, _runtime) = with_provider("openai");
    let tokens = || Tokens { input: 50_000, output: 10, ..Tokens::default() };
    let run = ["run", "hi", "--model", "local/large"];
    strict.push(Say::text("Hello.").using(tokens()));
    one(&env, &run, 0);
    let folder = env.path("home/.local/state/stepwell/tokens");
    let factor = || -> f64 {
        let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(Result::unwrap).collect();
        assert_eq!(files.len(), 1);
        let text = std::fs::read_to_string(files[0].path()).unwrap();
        let learned: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(learned["model"], "local/large");
        learned["factor"].as_f64().unwrap()
    };
    // 0.3 of at most 10, and 0.7 of 1.
    let first = factor();
    assert!((first - 3.7).abs() < 0.01, "{first}");
    let before = one(&env, &["show", "@last", "--view"], 0)["tokens"].as_u64().unwrap();
    strict.push(Say::text("Hello.").using(tokens()));
    one(&env, &run, 0);
    assert!(factor() > first);
    let after = one(&env, &["show", "@last", "--view"], 0)["tokens"].as_u64().unwrap();
    assert!(after > before, "{before} {after}");
}

#[test]
fn how_much_fits_a_model_is_known_or_told() {
    use stepwell_strict::Say;
    let (env, strict, _runtime) = with_provider("openai");
    let context = |model: &str| {
        strict.push(Say::text("Hello."));
        one(&env, &["run", "hi", "--model", model], 0);
        let view = one(&env, &["show", "@last", "--view"], 0);
        (view["context"].as_u64().unwrap(), view["limit"].as_u64().unwrap())
    };
    assert_eq!(context("local/large"), (128_000, 108_000));
    let path = env.path("home/.config/stepwell/config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{config}context = 32000\n")).unwrap();
    assert_eq!(context("local/large"), (32_000, 16_000));
}

#[test]
fn whether_a_session_is_truncated_goes_back_and_forth_with_its_view() {
    let env = env(&script(4, SUMMARY));
    env.file("stepwell.toml", "[compaction]\nkeep_tokens = 700\nauto = false\n");
    env.quietly(&RUN);
    let truncated = |id: &str| one(&env, &["show", id], 0)["facts"]["truncated"].clone();
    let does = |typed: &[&str]| assert_eq!(env.quietly(typed).code, Some(0), "{typed:?}");
    does(&["checkpoint", "@last", "whole"]);
    does(&["compact", "@last", "--truncate"]);
    does(&["checkpoint", "@last", "cut"]);
    assert_eq!(truncated("@last"), true);
    does(&["rewind", "@last", "--to", "whole"]);
    assert!(truncated("@last").is_null());
    does(&["rewind", "@last", "--undo"]);
    assert_eq!(truncated("@last"), true);
    // Files alone move no view.
    does(&["rewind", "@last", "--to", "whole", "--files"]);
    assert_eq!(truncated("@last"), true);
    does(&["compact", "@last", "--undo"]);
    assert!(truncated("@last").is_null());
    let seq = compactions(&env)[0]["seq"].to_string();
    let id = env.well().find("@last").unwrap().to_string();
    does(&["rewind", &id, "--to", "cut"]);
    assert_eq!(truncated(&id), true);
    for (at, expected) in [("whole", false), ("cut", true), (&seq, true)] {
        let fork = env.quietly(&["fork", &id, "--at", at]).line();
        assert_eq!(truncated(&fork) == true, expected, "{at}");
    }
}

#[test]
fn the_view_tells_calls_that_were_not_run_from_those_that_were_cut_off() {
    let env = TestEnv::new();
    env.file(
        "script.yaml",
        "- {text: I write., calls: [{tool: write_file, arguments: {path: a, content: a}}]}\n- {text: Done.}\n",
    );
    let run = ["run", "write it", "--model", "script:script.yaml"];
    let view = |id: &str| one(&env, &["show", id, "--view"], 0)["messages"].clone();
    let result = |id: &str| view(id)[2]["parts"][0]["tool_result"]["text"].clone();
    // It waits for leave to.
    assert_eq!(env.quietly(&run).code, Some(8));
    assert_eq!(result("@last"), "not run yet");
    assert_eq!(env.quietly(&["resume", "@last", "--approve"]).code, Some(0));
    assert_ne!(result("@last"), "not run yet");
    let log = env.quietly(&["log", "@last"]).json();
    let seq = |kind: &str| {
        let of_kind = log.iter().find(|it| it["kind"] == kind || it["body"]["role"] == kind);
        of_kind.unwrap()["seq"].to_string()
    };
    let id = env.well().find("@last").unwrap().to_string();
    let fork = env.quietly(&["fork", &id, "--at", &seq("assistant")]).line();
    assert_eq!(result(&fork), "not run yet");
    // Whether it was done when its run died, nobody knows.
    let fork = env.quietly(&["fork", &id, "--at", &seq("tool_started")]).line();
    assert_eq!(result(&fork), "interrupted, outcome unknown");
    // Where nothing is left, the task is said again.
    assert_eq!(env.quietly(&["rewind", &id, "--to", "1"]).code, Some(0));
    assert_eq!(view(&id)[0]["parts"][0]["text"]["text"], "write it");
    assert_eq!(view(&id).as_array().unwrap().len(), 1);
}

#[test]
fn a_result_that_tells_of_a_failure_is_marked_in_the_view() {
    let env = TestEnv::new();
    env.file(
        "script.yaml",
        "- {text: I look., calls: [{tool: read_file, arguments: {path: gone.txt}}]}\n\
         - {text: I list., calls: [{tool: list_files, arguments: {}}]}\n- {text: Done.}\n",
    );
    let ran = env.quietly(&["run", "look", "--model", "script:script.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let view = env.quietly(&["show", "@last", "--view"]).stdout;
    let results: Vec<&str> = view.lines().filter(|line| line.starts_with("  <- ")).collect();
    assert!(results[0].starts_with("  <- (failed) "), "{view}");
    assert!(!results[1..].iter().any(|line| line.contains("(failed)")), "{view}");
}
