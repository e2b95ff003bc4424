//! run, resume, stop.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;

use crate::test_env::TestEnv;

/// Three steps: it looks, it writes and runs, it is done.
pub(crate) const SCRIPT: &str = "
prices: {input: '3', output: '15'}
answers:
  - text: I look at what is there.
    calls: [{tool: list_files, arguments: {}}]
    usage: {input: 1000, output: 50}
  - text: I write the file.
    calls:
      - {tool: write_file, arguments: {path: hello.txt, content: hello}}
      - {tool: run_command, arguments: {command: 'cat hello.txt; echo done >> log.txt'}}
    usage: {input: 1200, output: 80}
  - text: All done.
    usage: {input: 1400, output: 20}
";

pub(crate) fn env(script: &str) -> TestEnv {
    let env = TestEnv::new();
    env.file("script.yaml", script);
    env
}

pub(crate) fn run<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    ["run", "say hello", "--model", "script:script.yaml"].iter().chain(flags).copied().collect()
}

pub(crate) fn one(env: &TestEnv, args: &[&str], code: i32) -> Value {
    let args: Vec<&str> = args.iter().chain(&["--json"]).copied().collect();
    let ran = env.quietly(&args);
    assert_eq!(ran.code, Some(code), "{args:?}: {} {}", ran.stdout, ran.stderr);
    let mut answer = ran.json();
    assert_eq!(answer.len(), 1);
    answer.remove(0)
}

fn plain(env: &TestEnv) -> String {
    // The clock stands still in these tests, but commands take real time.
    let time = regex::Regex::new(r#"("duration_ms":)\d+"#).unwrap();
    time.replace_all(&env.transcript(), "${1}0").into_owned()
}

#[test]
fn a_run_shows_what_it_does_and_ends_with_what_it_did() {
    let mut env = env(SCRIPT);
    env.run(&run(&["--mode", "yolo"]));
    env.say("sessions");
    env.say("show @last");
    assert_eq!(env.read("hello.txt"), "hello");
    assert_eq!(env.read("log.txt"), "done\n");
    assert_snapshot!(plain(&env));
}

#[test]
fn a_run_as_json_is_one_object() {
    let env = env(SCRIPT);
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    for (key, value) in [
        ("status", Value::from("success")),
        ("stop_reason", "llm_done".into()),
        ("output", "All done.".into()),
        ("steps", 3.into()),
        ("tools_used", serde_json::json!(["list_files", "write_file", "run_command"])),
        ("files_modified", serde_json::json!(["hello.txt", "log.txt"])),
        ("resumed_from", Value::Null),
    ] {
        assert_eq!(done[key], value, "{key}");
    }
    let costs = &done["costs"];
    assert_eq!(costs["total_input_tokens"], 3600);
    assert_eq!(costs["total_tokens"], 3750);
    assert_eq!(costs["total_cost_usd"].to_string(), "0.01305");
    assert_eq!(costs["by_source"]["main"].to_string(), "0.01305");
}

#[test]
fn events_come_as_lines_while_it_runs() {
    let env = env(SCRIPT);
    let ran = env.quietly(&run(&["--mode", "yolo", "--events"]));
    let kinds: Vec<Value> = ran.json().into_iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds.first().unwrap(), "created");
    assert!(kinds.contains(&"tool_started".into()) && kinds.contains(&"step".into()));
}

#[test]
fn each_limit_stops_a_run_that_can_be_resumed() {
    for (flags, reason) in [
        (&["--max-steps", "1"][..], "max_steps"),
        (&["--budget", "0"], "budget_exceeded"),
        (&["--budget", "0.13"], "budget_exceeded"),
        (&["--budget-total", "0.13"], "budget_exceeded"),
        (&["--max-tokens", "100"], "budget_exceeded"),
    ] {
        let env = env(SCRIPT);
        let flags: Vec<&str> = flags.iter().chain(&["--mode", "yolo"]).copied().collect();
        let stopped = one(&env, &run(&flags), 5);
        assert_eq!(stopped["status"], "partial", "{flags:?}");
        assert_eq!(stopped["stop_reason"], reason, "{flags:?}");
        let id = stopped["session_id"].as_str().unwrap();
        if flags[0] == "--budget-total" {
            // The session's own budget is kept, until another is given.
            assert_eq!(one(&env, &["resume", id], 5)["stop_reason"], reason);
        }
        let done = one(&env, &["resume", id, "--budget-total", "100"], 0);
        assert_eq!(done["status"], "success", "{flags:?}");
        assert_eq!(done["costs"]["total_cost_usd"].to_string(), "0.01305", "{flags:?}");
        assert!(done["resumed_from"].as_u64().unwrap() > 0);
        assert_eq!(env.read("log.txt"), "done\n", "{flags:?}");
    }
}

#[test]
fn time_that_is_up_stops_a_run() {
    let slow =
        SCRIPT.replace("text: I write the file.", "text: I write the file.\n    delay_ms: 60000");
    let env = env(&slow);
    let stopped = one(&env, &run(&["--mode", "yolo", "--timeout", "1"]), 5);
    assert_eq!(
        (&stopped["status"], &stopped["stop_reason"]),
        (&"partial".into(), &"timeout".into())
    );
    env.file("script.yaml", SCRIPT);
    assert_eq!(one(&env, &["resume"], 0)["status"], "success");
}

#[test]
fn faults_of_the_provider_end_a_run_as_they_should() {
    for (fault, code, status, reason) in [
        ("auth", 4, "failed", "llm_error"),
        ("unknown_model", 3, "failed", "llm_error"),
        ("refused", 1, "failed", "llm_error"),
        ("unavailable", 1, "failed", "llm_error"),
        ("context_full", 5, "partial", "context_full"),
    ] {
        let failing = format!("- {{fail: [{fault}], forever: true, text: hi}}\n");
        let env = env(&failing);
        let ended = one(&env, &run(&[]), code);
        assert_eq!((&ended["status"], &ended["stop_reason"]), (&status.into(), &reason.into()));
        assert!(ended["error"].as_str().is_some(), "{fault}");
        env.file("script.yaml", "- {text: hi}");
        assert_eq!(one(&env, &["resume"], 0)["output"], "hi", "{fault}");
    }
}

#[test]
fn without_a_terminal_a_run_waits_for_an_answer() {
    let mut env = env(SCRIPT);
    env.run(&run(&[]));
    env.say("sessions");
    env.say("resume");
    env.say("resume --approve");
    assert_eq!(env.read("hello.txt"), "hello");
    assert!(!env.work().join("log.txt").exists());
    env.run(&["resume", "--deny", "--reason", "no commands today"]);
    assert!(!env.work().join("log.txt").exists());
    env.run(&["log", "@last", "--kind", "gate,gate_answered,status"]);
    env.say("resume @last --approve");
    env.say("sessions");
    assert_snapshot!(plain(&env));
}

#[test]
fn more_can_be_said_to_a_session_that_is_done() {
    let script = format!("{SCRIPT}  - text: More is done too.\n");
    let mut env = env(&script);
    env.quietly(&run(&["--mode", "yolo"]));
    env.run(&["run", "and now more", "--session", "@last"]);
    env.run(&["show", "@last", "--messages"]);
    env.feed(&["run", "-", "--model", "script:script.yaml", "--max-steps", "1"], "from stdin\n");
    env.run(&["run", " ", "--model", "script:script.yaml"]);
    assert_snapshot!(plain(&env));
}

#[test]
fn a_dry_run_changes_nothing() {
    let env = env(SCRIPT);
    let done = one(&env, &run(&["--mode", "yolo", "--dry-run"]), 0);
    assert_eq!(done["files_modified"], serde_json::json!([]));
    assert!(!env.work().join("hello.txt").exists() && !env.work().join("log.txt").exists());
}

#[test]
fn a_recorded_run_replays_exactly() {
    let env = env(SCRIPT);
    one(&env, &run(&["--mode", "yolo", "--record", "again.json"]), 0);
    std::fs::remove_file(env.work().join("hello.txt")).unwrap();
    let args = ["run", "say hello", "--model", "script:again.json", "--mode", "yolo"];
    let again = one(&env, &args, 0);
    assert_eq!(again["output"], "All done.");
    assert_eq!(env.read("hello.txt"), "hello");
}

#[test]
fn what_is_not_saved_is_said_and_not_resumed() {
    let mut env = env(SCRIPT);
    env.file("stepwell.toml", "[sessions]\nauto_save = false\n");
    env.run(&run(&["--mode", "yolo"]));
    env.say("resume");
    env.say("run more --session x");
    assert!(!env.work().join(".stepwell").exists());
    assert_snapshot!(plain(&env));
    // There is nothing that its name could be used for.
    let json = one(&env, &run(&["--mode", "yolo"]), 0);
    assert!(json.get("session_id").is_none() && json["saved"] == false, "{json}");
    let ran = env.quietly(&run(&["--mode", "yolo"]));
    let id = regex::Regex::new(r"20\d{6}-\d{6}-[0-9a-f]{6}").unwrap();
    assert!(!id.is_match(&ran.stderr) && !id.is_match(&ran.stdout), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_run_is_refused_clearly() {
    let mut env = env(SCRIPT);
    env.run(&["run", "x"]);
    env.run(&["run", "x", "--model", "opnai/gpt"]);
    env.run(&["run", "x", "--model", "openai/gpt-4.1"]);
    env.run(&["run", "x", "--model", "script:nowhere.yaml"]);
    env.run(&run(&["--agent", "nobody"]));
    env.run(&run(&["--mode", "reckless"]));
    env.run(&run(&["--timeout", "soon"]));
    env.run(&["run", "x", "--model", "ollama/any", "--session", "nobody"]);
    env.say("resume nobody");
    env.say("resume");
    env.say("stop nobody");
    env.file("bad.yaml", "- {txt: hi}");
    env.run(&["run", "x", "--model", "script:bad.yaml"]);
    assert_snapshot!(plain(&env));
}

#[test]
fn an_agent_of_ones_own_has_its_tools_and_its_limits() {
    let mut env = env(SCRIPT);
    env.file(
        "stepwell.toml",
        "[agents.looker]\nprompt = \"You look.\"\ntools = [\"list_files\"]\nmax_steps = 2\n\
         model = \"script:script.yaml\"\n",
    );
    env.file("AGENTS.md", "Be brief.\n");
    let ended = one(&env, &["run", "look", "--agent", "looker"], 5);
    assert_eq!(ended["stop_reason"], "max_steps");
    assert!(!env.work().join("hello.txt").exists());
    let log = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
    assert!(log.contains("You look.") && log.contains("Be brief."), "{log}");
    assert!(log.contains("there is no such tool"), "{log}");
    env.file("stepwell.toml", "[agents.bad]\nprompd = \"x\"\n");
    env.say("sessions");
    env.file("stepwell.toml", "[providers.evil]\nbase_url = \"http://evil\"\n");
    env.say("sessions");
    assert_snapshot!(plain(&env));
}

/// A run that waits in a command, and its first lines of events.
pub(crate) fn running(env: &TestEnv) -> (std::process::Child, String) {
    let mut command = env.command(&run(&["--mode", "yolo", "--events"]));
    // The real time: a lease must not look as if it had run out.
    command.env_remove("STEPWELL_NOW");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The command has begun when its start is recorded.
    let started = lines.by_ref().map(Result::unwrap).find(|line| line.contains("\"unsafe\""));
    assert!(started.is_some());
    std::thread::spawn(move || lines.for_each(drop));
    let id = env.well().find("@last").unwrap().to_string();
    (child, id)
}

pub(crate) const WAITS: &str = "
- {text: I wait., calls: [{tool: run_command, arguments: {command: 'sleep 600; echo late > late.txt'}}]}
- {text: Done.}
";

/// Resumes a run whose command was cut off: the model is told, and nothing runs twice.
fn ends_without_repeating(env: &TestEnv, id: &str) {
    let done = one(env, &["resume", id], 0);
    assert_eq!(done["output"], "Done.");
    let log = env.quietly(&["log", id]).stdout;
    assert_eq!(log.matches("\"tool_started\"").count(), 1);
    assert!(log.contains("interrupted, outcome unknown"), "{log}");
}

#[test]
fn a_run_elsewhere_is_busy_can_be_followed_and_asked_to_stop() {
    let env = env(WAITS);
    let (mut child, id) = running(&env);
    let real = |args: &[&str]| {
        let mut command = env.command(args);
        command.env_remove("STEPWELL_NOW").output().unwrap()
    };
    let busy = real(&["resume", &id]);
    assert_eq!(busy.status.code(), Some(6));
    let said = String::from_utf8(busy.stderr).unwrap();
    assert!(said.contains("is in use by process") && said.contains("--attach"), "{said}");
    let mut follower = env.command(&["resume", &id, "--attach"]);
    let mut follower = follower.env_remove("STEPWELL_NOW").stdout(Stdio::piped()).spawn().unwrap();
    let mut followed = BufReader::new(follower.stdout.take().unwrap());
    followed.read_line(&mut String::new()).unwrap();
    let asked = real(&["stop", &id]);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut followed, &mut rest).unwrap();
    assert!(rest.contains("user_interrupt"), "{rest}");
    assert!(follower.wait().unwrap().success());
    let head = env.quietly(&["show", &id, "--json"]).json().remove(0);
    assert_eq!(
        (&head["status"], &head["stop_reason"]),
        (&"interrupted".into(), &"user_interrupt".into())
    );
    // The command was ended with the run, and its outcome is told as it is.
    assert!(!env.work().join("late.txt").exists());
    ends_without_repeating(&env, &id);
}

#[test]
fn a_run_that_was_killed_reads_as_interrupted_and_repeats_nothing() {
    let env = env(WAITS);
    let (mut child, id) = running(&env);
    child.kill().unwrap();
    child.wait().unwrap();
    let head = env.quietly(&["show", &id, "--json"]).json().remove(0);
    assert_eq!((&head["status"], &head["stop_reason"]), (&"interrupted".into(), &"crashed".into()));
    ends_without_repeating(&env, &id);
}

#[test]
fn secrets_are_written_nowhere() {
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let (deploy, other) = ("zz-deploy-91-quite-long", "other-providers-key-77");
    let script = format!(
        "
- text: The token is {secret}.
  calls:
    - {{tool: write_file, arguments: {{path: .env, content: 'TOKEN={secret}'}}}}
    - {{tool: read_file, arguments: {{path: planted.txt}}}}
    - {{tool: run_command, arguments: {{command: 'echo {secret} $DEPLOY_TOKEN [$OPENAI_API_KEY]'}}}}
    - {{tool: '{secret}', arguments: {{}}}}
- {{text: Done.}}
"
    );
    let mut env = env(&script);
    env.set("DEPLOY_TOKEN", deploy);
    env.set("OPENAI_API_KEY", other);
    env.file("planted.txt", &format!("here: {secret} and {other}\n"));
    let task = format!("use {secret} for it");
    let args = ["run", &task, "--model", "script:script.yaml", "--mode", "yolo"];
    let ran = env.quietly(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // The work itself was done with it, and a command has no key that is not its own.
    assert_eq!(env.read(".env"), format!("TOKEN={secret}"));
    let archive = env.quietly(&["export", "@last"]).stdout;
    assert!(archive.contains("[redacted:environment] []"), "{archive}");
    for secret in [secret, deploy, other] {
        is_nowhere(&env, secret);
    }
}

/// Looks for a secret in the store's files as bytes, and in every body and every blob as
/// they read.
fn is_nowhere(env: &TestEnv, secret: &str) {
    for entry in std::fs::read_dir(env.work().join(".stepwell")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
    let archive = env.quietly(&["export", "@last"]).stdout;
    assert!(!archive.contains(secret) && archive.contains("[redacted:"), "{archive}");
    let well = env.well();
    let digests: Vec<String> = {
        let database = env.database();
        let mut blobs = database.prepare("SELECT lower(hex(digest)) FROM blobs").unwrap();
        blobs.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    for digest in digests {
        let blob = well.store().blob(&digest.parse().unwrap()).unwrap();
        assert!(!String::from_utf8_lossy(&blob).contains(secret));
    }
}

#[test]
fn the_recipe_for_ci_works_as_it_was_written() {
    let env = env(SCRIPT);
    env.file(
        "ci.sh",
        "stepwell run \"implement feature X\" --mode yolo --model script:script.yaml --max-steps 1 --json > result.json\n\
         SESSION=$(jq -r '.session_id // empty' result.json)\n\
         if [ \"$(jq -r '.status' result.json)\" = \"partial\" ]; then\n\
         stepwell resume \"$SESSION\" --mode yolo --budget 1.00\n\
         fi\n",
    );
    let folder = std::path::Path::new(crate::test_env::STEPWELL).parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
    let mut command = std::process::Command::new("sh");
    command.arg("ci.sh").env_clear().env("PATH", path).env("HOME", env.path("home"));
    let output = command.current_dir(env.work()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(env.read("log.txt"), "done\n");
}

#[test]
fn the_demo_ends_well_and_leaves_nothing() {
    let mut env = TestEnv::new();
    std::fs::create_dir(env.path("tmp")).unwrap();
    let folder = env.path("tmp");
    env.set("TMPDIR", folder.to_str().unwrap());
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let ran = env.quietly(&["demo"]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    for part in [
        "kill -9",
        "interrupted",
        "ok: greets by name",
        "success",
        "+ echo \"Hello, ${1:-world}!\"",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert_eq!(std::fs::read_dir(env.path("tmp")).unwrap().count(), 0);
    assert!(!env.work().join(".stepwell").exists());
}

#[test]
fn a_project_cannot_make_itself_trusted() {
    let env = env(SCRIPT);
    let loose = "[agent]\nmode = \"yolo\"\n[agents.mine]\nprompt = \"x\"\nmode = \"yolo\"\n";
    env.file("stepwell.toml", loose);
    assert_eq!(one(&env, &run(&[]), 8)["stop_reason"], "gate");
    assert_eq!(one(&env, &run(&["--agent", "mine"]), 8)["stop_reason"], "gate");
    assert!(!env.work().join("hello.txt").exists());
    // Its user can.
    env.quietly(&["config", "set", "agent.mode", "yolo", "--user"]).line();
    assert_eq!(one(&env, &run(&[]), 0)["status"], "success");
    // And it can ask for more care.
    env.file("stepwell.toml", "[agent]\nmode = \"confirm-all\"\n");
    assert_eq!(one(&env, &run(&[]), 8)["stop_reason"], "gate");
}

/// An environment whose user has a provider of their own, and that provider.
pub(crate) fn with_provider(
    protocol: &str,
) -> (TestEnv, stepwell_strict::Strict, tokio::runtime::Runtime) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let strict =
        runtime.block_on(stepwell_strict::Strict::start(stepwell_strict::Rules::default()));
    let strict = strict.unwrap();
    let mut env = TestEnv::new();
    let config = format!(
        "[providers.local]\nbase_url = \"{}\"\nprotocol = \"{protocol}\"\nkey_env = \"LOCAL_KEY\"\n\
         [prices.\"local/*\"]\ninput = \"3\"\noutput = \"15\"\n",
        strict.base_url()
    );
    let path = env.path("home/.config/stepwell/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, config).unwrap();
    env.set("LOCAL_KEY", strict.key());
    (env, strict, runtime)
}

#[test]
fn a_strict_provider_never_has_to_refuse() {
    use stepwell_strict::{Say, Tokens};
    for protocol in ["openai", "anthropic"] {
        let (env, strict, _runtime) = with_provider(protocol);
        let tokens = || Tokens { input: 1_000, output: 10, ..Tokens::default() };
        strict.push(
            Say::text("I look and I write.")
                .calling("call_1", "list_files", &["{}"])
                .calling("call_2", "write_file", &["{\"path\":\"a.txt\",", "\"content\":\"x\"}"])
                .calling("call_3", "run_command", &["{\"command\":\"echo ran >> log.txt\"}"])
                .using(tokens()),
        );
        let model = ["--model", "local/large-high"];
        let args: Vec<&str> = ["run", "do it"].iter().chain(&model).copied().collect();
        // One call runs, the second waits.
        let paused = one(&env, &args, 8);
        let id = paused["session_id"].as_str().unwrap().to_owned();
        assert_eq!(one(&env, &["resume", &id, "--approve"], 8)["status"], "paused");
        assert_eq!(env.read("a.txt"), "x");
        strict.push(Say::text("Not allowed, so I stop.").using(tokens()));
        let done = one(&env, &["resume", &id, "--deny", "--reason", "no"], 0);
        assert_eq!(done["output"], "Not allowed, so I stop.");
        assert_eq!(done["costs"]["total_cost_usd"].to_string(), "0.0063", "{protocol}");
        // More is said to it, and malformed arguments come back to the model as an error.
        strict.push(Say::text("").calling("call_1", "read_file", &["{\"path\""]).using(tokens()));
        strict.push(Say::text("I see.").using(tokens()));
        let more = one(&env, &["run", "and more", "--session", &id], 0);
        assert_eq!(more["output"], "I see.");
        assert_eq!(strict.rejected(), 0, "{protocol}");
        assert_eq!(strict.asked().len(), 4);
        let model = |asked: &stepwell_strict::Asked| asked.body["model"].clone();
        assert!(strict.asked().iter().all(|asked| model(asked) == "large-high"));
    }
}

#[test]
fn faults_of_a_real_provider_end_a_run_as_they_should() {
    use stepwell_strict::{Ending, Reply, Say};
    let (mut env, strict, _runtime) = with_provider("openai");
    // A stream that breaks off is asked again, and only the whole answer is recorded.
    strict.push(Say::text("Half of the ans").ending(Ending::CutAfter(1)));
    strict.push(Say::text("The whole answer."));
    let done = one(&env, &["run", "x", "--model", "local/large"], 0);
    assert_eq!((&done["output"], &done["steps"]), (&"The whole answer.".into(), &1.into()));
    // Less and less is asked for, until it could not be an answer any more.
    for _ in 0..4 {
        strict.push(
            Reply::error(400, "This model's maximum context length is 10 tokens.")
                .code("context_length_exceeded"),
        );
    }
    assert_eq!(
        one(&env, &["run", "x", "--model", "local/large"], 5)["stop_reason"],
        "context_full"
    );
    strict.push(Reply::error(404, "The model `large` does not exist").code("model_not_found"));
    assert_eq!(one(&env, &["run", "x", "--model", "local/large"], 3)["stop_reason"], "llm_error");
    env.set("LOCAL_KEY", "wrong");
    let refused = one(&env, &["run", "my secret prompt", "--model", "local/large"], 4);
    let error = refused["error"].as_str().unwrap();
    assert!(!error.contains("my secret prompt") && !error.contains("wrong"), "{error}");
}

#[test]
fn ids_that_repeat_are_told_apart() {
    let twice = "
- {text: a, calls: [{id: x, tool: run_command, arguments: {command: 'echo A >> log.txt'}}, {id: x, tool: run_command, arguments: {command: 'echo B >> log.txt'}}]}
- {text: b, calls: [{id: x, tool: run_command, arguments: {command: 'echo C >> log.txt'}}]}
- {text: done}
";
    let yolo = env(twice);
    one(&yolo, &run(&["--mode", "yolo"]), 0);
    assert_eq!(yolo.read("log.txt"), "A\nB\nC\n");
    // What was allowed once is not allowed again.
    let asked = env(twice);
    one(&asked, &run(&[]), 8);
    for (n, lines) in ["A\n", "A\nB\n"].iter().enumerate() {
        one(&asked, &["resume", "--approve"], 8);
        assert_eq!(asked.read("log.txt"), *lines, "{n}");
    }
    one(&asked, &["resume", "--approve"], 0);
    assert_eq!(asked.read("log.txt"), "A\nB\nC\n");
}

#[test]
fn a_run_that_died_at_once_begins_with_its_task() {
    let env = env("- {text: Done.}\n");
    let well = env.well();
    drop(well.create(well.draft("the task").with_model("script", "script.yaml")).unwrap());
    drop(well);
    let resumed = one(&env, &["resume", "@last", "--model", "script:script.yaml"], 0);
    assert_eq!(resumed["output"], "Done.");
    let log = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
    assert!(log.contains("the task") && log.contains("careful software engineer"), "{log}");
}
