//! How runs stop, and what the next one makes of it.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command};

use serde_json::Value;
use stepwell::store::{Processes as _, SystemProcesses};

use crate::running::{SCRIPT, env, one, run, running, with_provider};
use crate::terminal::watched;
use crate::test_env::{STEPWELL, TestEnv};

/// What the log says of some kinds of events.
fn log(env: &TestEnv, kinds: &str) -> Vec<Value> {
    env.quietly(&["log", "@last", "--json", "--kind", kinds]).json()
}

fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

/// A command that keeps the real time: a lease must not look as if it had run out.
fn real(env: &TestEnv, args: &[&str]) -> Command {
    let mut command = env.command(args);
    command.env_remove("STEPWELL_NOW");
    command
}

#[test]
fn a_store_that_is_gone_under_a_run_is_loud() {
    let env = env(
        "- {text: a, calls: [{tool: run_command, arguments: {command: 'mv .stepwell gone'}}]}\n\
         - {text: done}\n",
    );
    let ran = env.quietly(&run(&["--mode", "yolo"]));
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert!(ran.stderr.contains("could not be saved"), "{}", ran.stderr);
    assert!(ran.stderr.contains("removed or replaced"), "{}", ran.stderr);
}

#[test]
fn a_full_disk_is_loud_and_the_run_goes_on_after_it() {
    let big = "- {text: a, calls: [{tool: run_command, arguments: {command: 'seq 9999'}}]}\n";
    let env = env(&format!("{}- {{text: done}}\n", big.repeat(8)));
    env.quietly(&["init"]);
    // No file may grow beyond this many blocks of 512 bytes: the log does not fit.
    let line = "trap '' XFSZ; ulimit -f 320; exec \"$@\"";
    let mut command = Command::new("sh");
    let args: Vec<String> = run(&["--mode", "yolo"]).iter().map(|&arg| arg.to_owned()).collect();
    command.args(["-c", line, "sh", STEPWELL]).args(args);
    let as_usual = env.command(&[]);
    command.env_clear().current_dir(env.work());
    command.envs(as_usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = command.arg("--json").output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(7), "{said}");
    let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(answer["status"], "interrupted");
    assert!(answer["error"].as_str().unwrap().contains("could not be saved"), "{answer}");
    assert!(said.contains("could not be saved") && said.contains("stepwell resume"), "{said}");
    // It says how far it came, which is how far the session is.
    let kept = &env.quietly(&["sessions", "--all", "--json"]).json()[0];
    assert!(answer["steps"].as_u64().unwrap() > 0, "{answer}");
    assert_eq!(answer["steps"], kept["steps"], "{answer}");
    assert_eq!(answer["tools_used"], serde_json::json!(["run_command"]));
    assert_eq!(answer["output"], "a");
    let done = one(&env, &["resume"], 0);
    assert_eq!((&done["output"], &done["steps"]), (&"done".into(), &9.into()));
    assert!(env.quietly(&["verify"]).code == Some(0));
}

#[test]
fn a_question_shows_what_would_change_and_its_answer_closes_it() {
    let mut env = env(SCRIPT);
    env.set("NO_COLOR", "1");
    env.file("hello.txt", "good bye\n");
    one(&env, &run(&[]), 8);
    let mut answers = vec!["maybe\r", "y\r", "n not now\r"].into_iter();
    let mut asked = 0;
    let (seen, code) = watched(env.command(&["resume"]), &env, 200, |seen, _| {
        let questions = seen.matches("Answer: ").count();
        let is_new = questions > asked && seen.ends_with("Answer: ");
        asked = questions;
        if is_new { answers.next().unwrap_or_default().to_owned() } else { String::new() }
    });
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("-good bye\n+hello\n"), "{seen}");
    assert_eq!(env.read("hello.txt"), "hello");
    assert!(!env.work().join("log.txt").exists());
    // Both questions are on record with their answers, the one that had been asked without a
    // terminal too, and each was asked once.
    let answered = log(&env, "gate_answered");
    assert_eq!((answered.len(), log(&env, "gate").len()), (2, 2));
    assert_eq!(answered[1]["body"]["answer"]["deny"]["reason"], "not now");
    let who = SystemProcesses.this().who();
    assert_eq!(answered[0]["body"]["who"], who.name);
    assert_eq!(answered[0]["body"]["answer"]["allow"]["scope"], "once");
}

#[test]
fn a_wish_to_stop_is_heard_at_a_question() {
    for (flags, code, reason) in
        [(&[][..], 130, "user_interrupt"), (&["--timeout", "1"][..], 5, "timeout")]
    {
        let env = env(SCRIPT);
        let mut wished = false;
        let (seen, ended) = watched(real(&env, &run(flags)), &env, 200, |seen, child| {
            if code == 130 && !wished && seen.ends_with("Answer: ") {
                wished = true;
                interrupt(child);
            }
            String::new()
        });
        assert_eq!(ended, Some(code), "{seen}");
        let head = env.quietly(&["show", "@last", "--json"]).json().remove(0);
        assert_eq!(head["stop_reason"], reason);
        assert_eq!(one(&env, &["resume", "--mode", "yolo"], 0)["status"], "success");
    }
}

#[test]
fn a_gate_that_is_passed_otherwise_does_not_stay_open() {
    let env = env(SCRIPT);
    one(&env, &run(&[]), 8);
    one(&env, &["resume", "--mode", "yolo"], 0);
    let answered = log(&env, "gate_answered");
    let who = answered[0]["body"]["who"].as_str().unwrap();
    assert!(who.ends_with(", by mode yolo"), "{who}");
    assert_eq!(answered.len(), log(&env, "gate").len());
}

#[test]
fn whoever_says_something_else_at_a_gate_lets_its_calls_pass() {
    let env = env(SCRIPT);
    one(&env, &run(&[]), 8);
    let said = one(&env, &["run", "never mind", "--session", "@last", "--mode", "yolo"], 0);
    assert_eq!((&said["output"], &said["steps"]), (&"All done.".into(), &3.into()));
    assert!(!env.work().join("hello.txt").exists());
    let messages = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
    assert_eq!(messages.matches("not run: the user said something else first").count(), 2);
    assert!(!messages.contains("outcome unknown"), "{messages}");
    assert_eq!(log(&env, "gate").len(), log(&env, "gate_answered").len());
    // Its step is complete before the user speaks.
    assert_eq!(log(&env, "step").len(), 3);
}

const SLOW: &str = "
- {text: a, calls: [{tool: run_command, arguments: {command: 'echo ran >> log.txt; test -e go || sleep 600'}}, {tool: read_file, arguments: {path: log.txt}}]}
- {text: Done.}
";

#[test]
fn a_command_that_was_interrupted_is_repeated_only_if_asked() {
    for (flags, times) in [(&[][..], 1), (&["--retry-unsafe"][..], 2)] {
        let env = env(SLOW);
        let (mut child, id) = running(&env);
        env.wait_for("log.txt");
        interrupt(&child);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        env.file("go", "");
        let args: Vec<&str> = ["resume", &id].iter().chain(flags).copied().collect();
        assert_eq!(one(&env, &args, 0)["output"], "Done.");
        assert_eq!(env.read("log.txt"), "ran\n".repeat(times));
        let told = env.quietly(&["log", &id, "--kind", "message"]).stdout;
        assert_eq!(told.contains("outcome unknown"), times == 1, "{told}");
    }
}

#[test]
fn a_session_is_resumed_from_any_folder() {
    let env = env(SCRIPT);
    one(&env, &run(&["--mode", "yolo", "--max-steps", "1"]), 5);
    let id = env.well().find("@last").unwrap().to_string();
    let away = env.path("away");
    std::fs::create_dir_all(&away).unwrap();
    let ran = env.command(&["resume", &id]).current_dir(&away).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(env.read("hello.txt"), "hello");
    assert!(!away.join(".stepwell").exists() && !away.join("hello.txt").exists());
}

#[test]
fn another_agent_and_new_instructions_are_told_to_the_model() {
    let env = env(SCRIPT);
    one(&env, &run(&["--mode", "yolo", "--max-steps", "1"]), 5);
    one(&env, &["resume", "--max-steps", "0"], 5);
    let system = |env: &TestEnv| {
        let messages = log(env, "message");
        messages.iter().filter(|message| message["body"]["role"] == "system").count()
    };
    assert_eq!(system(&env), 1, "nothing new is not told again");
    env.file("AGENTS.md", "Be brief.");
    one(&env, &["resume", "--max-steps", "0"], 5);
    one(&env, &["resume", "--max-steps", "0", "--agent", "plan"], 5);
    let messages = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
    assert_eq!(system(&env), 3);
    assert!(messages.contains("plans and changes nothing"), "{messages}");
}

#[test]
fn limits_that_cannot_be_kept_are_refused() {
    let env = env(SCRIPT);
    for args in [["--budget", "-1"], ["--budget-total", "-0.01"], ["--budget", "much"]] {
        let ran = env.quietly(&run(&args));
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
    }
    env.file(
        "stepwell.toml",
        "[agents.odd]\ntools = [\"read_fiel\"]\n[agents.poor]\nbudget = \"0\"\n\
         [agents.brief]\nmax_tokens = 5\n[agents.hasty]\ntimeout_seconds = 0\n",
    );
    let ran = env.quietly(&run(&["--agent", "odd"]));
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("read_fiel") && ran.stderr.contains("read_file"), "{}", ran.stderr);
    for (agent, reason) in
        [("poor", "budget_exceeded"), ("brief", "budget_exceeded"), ("hasty", "timeout")]
    {
        assert_eq!(one(&env, &run(&["--agent", agent]), 5)["stop_reason"], reason, "{agent}");
    }
}

#[test]
fn an_answer_that_was_cut_short_is_gone_on_with() {
    let half = "- {text: 'The first half, ', cut_short: true}\n- {text: and the second.}\n";
    let done = one(&env(half), &run(&[]), 0);
    assert_eq!(done["output"], "The first half, and the second.");
    let endless = env(&"- {text: and so on, cut_short: true}\n".repeat(9));
    let failed = one(&endless, &run(&[]), 1);
    assert!(failed["error"].as_str().unwrap().contains("model.max_output"), "{failed}");
}

#[test]
fn tokens_that_a_provider_does_not_count_are_estimated() {
    use stepwell_strict::Say;
    let (env, strict, _runtime) = with_provider("openai");
    strict.push(Say::text("Some words that nobody counted."));
    let args = ["run", "say a few words", "--model", "local/large", "--max-tokens", "20000"];
    let ran = env.quietly(&[&args[..], &["--json"]].concat());
    assert!(ran.stderr.contains("they are estimated"), "{}", ran.stderr);
    let counted = &ran.json()[0]["costs"];
    assert!(counted["total_input_tokens"].as_u64().unwrap() > 100, "{counted}");
    assert!(counted["total_output_tokens"].as_u64().unwrap() >= 10, "{counted}");
    assert!(counted["total_cost_usd"].as_f64().unwrap() > 0.0, "{counted}");
    // And what was estimated counts against a limit.
    let more = ["run", "more", "--session", "@last", "--max-tokens", "100"];
    assert_eq!(one(&env, &more, 5)["stop_reason"], "budget_exceeded");
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error_and_the_run_is_saved() {
    let env = env(SCRIPT);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = env.command(&run(&["--mode", "yolo", "--events"])).stdout(full).output().unwrap();
    assert_eq!(ran.status.code(), Some(1), "{}", String::from_utf8_lossy(&ran.stderr));
    let again = one(&env, &["resume", "@last"], 0);
    assert_eq!((&again["status"], &again["output"]), (&"success".into(), &"All done.".into()));
}

#[test]
fn a_recorded_script_is_private_and_costs_the_same() {
    let env = env(SCRIPT);
    let done = one(&env, &run(&["--mode", "yolo", "--record", "again.json"]), 0);
    let mode = std::fs::metadata(env.work().join("again.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let args = ["run", "say hello", "--model", "script:again.json", "--mode", "yolo"];
    assert_eq!(one(&env, &args, 0)["costs"], done["costs"]);
}

#[test]
fn a_store_of_another_name_is_out_of_the_tools_reach() {
    let script = "
- {text: a, calls: [{tool: read_file, arguments: {path: kept/stepwell.db}}, {tool: write_file, arguments: {path: kept/x, content: x}}, {tool: list_files, arguments: {}}]}
- {text: Done.}
";
    let env = env(script);
    one(&env, &[&run(&["--mode", "yolo"])[..], &["--store", "kept"]].concat(), 0);
    let told = env.quietly(&["log", "@last", "--store", "kept", "--kind", "message"]).stdout;
    assert_eq!(told.matches("holds Stepwell's own files").count(), 2, "{told}");
    assert!(!told.contains("kept/stepwell.db\\n") && !env.work().join("kept/x").exists(), "{told}");
}

#[test]
fn what_is_refused_changes_nothing() {
    let env = env(SCRIPT);
    env.file("stepwell.toml", "[agents.needy]\ntools = [\"no_such_tool\"]\n");
    one(&env, &run(&[]), 8);
    let status = || env.quietly(&["show", "@last", "--json"]).json().remove(0)["status"].clone();
    for args in [
        &["resume", "@last", "--record", "nowhere/x.json"][..],
        &["resume", "@last", "--agent", "needy", "--approve"],
        &["run", "more", "--session", "@last", "--agent", "needy"],
    ] {
        assert_ne!(env.quietly(args).code, Some(0), "{args:?}");
        assert_eq!(status(), "paused", "{args:?}");
    }
    assert_ne!(env.quietly(&run(&["--record", "nowhere/x.json"])).code, Some(0));
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 1);
}

#[test]
fn what_someone_else_allowed_is_asked_again() {
    let mut env = env(SCRIPT);
    one(&env, &run(&["--mode", "yolo", "--max-steps", "1"]), 5);
    // The folder comes to another user, with its store.
    env.set("XDG_STATE_HOME", env.path("elsewhere").to_str().unwrap());
    assert_eq!(
        one(&env, &["resume", "@last", "--model", "script:script.yaml"], 8)["status"],
        "paused"
    );
    assert!(!env.work().join("hello.txt").exists());
    // Their own answers count, and so does a mode of their choice.
    assert_eq!(one(&env, &["resume", "@last", "--approve"], 8)["status"], "paused");
    assert_eq!(env.read("hello.txt"), "hello");
    assert_eq!(one(&env, &["resume", "@last", "--mode", "yolo"], 0)["status"], "success");
}

#[test]
fn a_recording_keeps_what_was_cut_short_and_spares_what_it_does_not_replace() {
    let half = "- {text: 'The first half, ', cut_short: true}\n- {text: and the second.}\n";
    let env = env(half);
    env.file("again.json", "an earlier one");
    env.quietly(&run(&["--record", "again.json", "--max-steps", "x"]));
    assert_eq!(env.read("again.json"), "an earlier one");
    let done = one(&env, &run(&["--record", "again.json"]), 0);
    let replayed = one(&env, &["run", "say hello", "--model", "script:again.json"], 0);
    for key in ["output", "steps", "costs"] {
        assert_eq!(replayed[key], done[key], "{key}");
    }
}

#[test]
fn what_is_not_kept_is_not_asked_about_later() {
    let script = "
- {text: a, calls: [{tool: write_file, arguments: {path: a.ini, content: 'password = \"changeme-123\"'}}, {tool: write_file, arguments: {path: b.md, content: 'shows [redacted:RULE] there'}}]}
- {text: b, calls: [{tool: run_command, arguments: {command: 'echo [redacted:github-token] >> ran'}}]}
- {text: Done.}
";
    let env = env(script);
    assert_eq!(one(&env, &run(&[]), 8)["status"], "paused");
    // A placeholder is no secret: what it stood for has to be given anew, and nobody is asked.
    one(&env, &["resume", "--approve"], 0);
    assert_eq!(env.read("b.md"), "shows [redacted:RULE] there");
    let told = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
    assert!(told.contains("not kept until one can"), "{told}");
    assert!(told.contains("contain a placeholder"), "{told}");
    assert!(!env.work().join("ran").exists() && !env.work().join("a.ini").exists());
}

#[test]
fn programs_get_every_event_and_no_secret() {
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let env = env(&format!("- {{text: 'it is {secret}'}}\n"));
    let events = env.quietly(&run(&["--events"])).json();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=u64::try_from(seqs.len()).unwrap()).collect::<Vec<_>>());
    assert!(events[0]["body"]["id"].as_str().is_some());
    let done = one(&env, &run(&[]), 0);
    assert_eq!(done["output"], "it is [redacted:github-token]");
}

#[test]
fn instructions_are_read_through_a_link_of_the_workspace_and_otherwise_missed_aloud() {
    let env = env("- {text: Done.}\n");
    env.file("CLAUDE.md", "Be brief.");
    let link = env.work().join("AGENTS.md");
    std::os::unix::fs::symlink("CLAUDE.md", &link).unwrap();
    one(&env, &run(&[]), 0);
    assert!(env.quietly(&["log", "@last", "--kind", "message"]).stdout.contains("Be brief."));
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
    let ran = env.quietly(&run(&[]));
    assert!(ran.stderr.contains("it leads out of the workspace"), "{}", ran.stderr);
}
