//! Tools of MCP servers: from the user's configuration to a run that uses them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use insta::assert_snapshot;

use crate::running::one;
use crate::terminal::watched;
use crate::test_env::TestEnv;

/// A server of tools: one looks, one changes something, one takes for ever, one tells its
/// variables. It notes its process, what it did, and what was cancelled.
pub(crate) const SERVER: &str = r#"
echo $$ > "$1/pid"
tools='[{"name":"look","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}},
{"name":"put","inputSchema":{"type":"object","properties":{"line":{"type":"string"}}}},
{"name":"stay","inputSchema":{"type":"object"}},{"name":"tell","inputSchema":{"type":"object"}}]'
while read -r line; do
  ask() { printf '%s\n' "$line" | jq -r "$1"; }
  text() { jq -nc --arg text "$1" '{content: [{type: "text", text: $text}]}'; }
  id=$(ask .id)
  case $(ask .method) in
    initialize) result='{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
      "serverInfo": {"name": "test", "version": "1"}}' ;;
    tools/list) result="{\"tools\": $tools}" ;;
    notifications/cancelled) echo cancelled >> "$1/log"; continue ;;
    tools/call) case $(ask .params.name) in
      look) result=$(text "all is well") ;;
      put) ask .params.arguments.line >> "$1/log"; result=$(text "put") ;;
      stay) echo stayed >> "$1/log"; continue ;;
      tell) result=$(text "$GIVEN, ${OPENAI_API_KEY-no key}, ${LOCAL_KEY-none}, $PLAIN, $(pwd)") ;;
    esac ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(printf '%s' "$result" | jq -c .)"
done
"#;

const CALLS: &str = "
- text: I look and I put.
  calls:
    - {tool: notes__look, arguments: {}}
    - {tool: notes__put, arguments: {line: one}}
- {text: Done.}
";

/// An environment whose user has a server, and a script for the model.
fn env(script: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    std::fs::write(env.path("server.sh"), SERVER).unwrap();
    let folder = env.path("");
    let server = env.path("server.sh");
    configure(&env, &format!("[mcp.notes]\ncommand = \"sh\"\nargs = [{server:?}, {folder:?}]\n"));
    env.file("script.yaml", script);
    env
}

pub(crate) fn configure(env: &TestEnv, text: &str) {
    let path = env.path("home/.config/stepwell/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn run<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    ["run", "take notes", "--model", "script:script.yaml"].iter().chain(flags).copied().collect()
}

/// What the server did.
fn done(env: &TestEnv) -> String {
    std::fs::read_to_string(env.path("log")).unwrap_or_default()
}

fn is_dead(pid: &Path) -> bool {
    let pid = std::fs::read_to_string(pid).unwrap();
    let ps = Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output().unwrap();
    let state = String::from_utf8(ps.stdout).unwrap();
    state.trim().is_empty() || state.starts_with('Z')
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let look = |_| {
        std::thread::park_timeout(std::time::Duration::from_millis(30));
        holds()
    };
    assert!((0..1_000).any(look), "it never happened: {what}");
}

#[test]
fn a_servers_tool_runs_in_yolo_mode() {
    let mut env = env(CALLS);
    env.run(&run(&["--mode", "yolo"]));
    assert_eq!(done(&env), "one\n");
    // It ended with the run.
    assert!(is_dead(&env.path("pid")));
    let messages = env.quietly(&["show", "@last", "--messages"]).stdout;
    assert!(messages.contains("-> notes__put({\"line\":\"one\"})"), "{messages}");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_server_that_is_slow_to_start_is_named() {
    let seen = waiting_for_a_tortoise();
    assert!(seen.contains("Waiting for MCP server") && seen.contains("tortoise"), "{seen}");
}

/// What a run says whose second server starts when the first word about it is seen.
fn waiting_for_a_tortoise() -> String {
    let mut env = env(CALLS);
    env.set("NO_COLOR", "1");
    let (server, folder, go) = (env.path("server.sh"), env.path(""), env.path("go"));
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    let slow =
        format!("cat {} >&2; exec sh {} {}", go.display(), server.display(), folder.display());
    configure(
        &env,
        &format!(
            "[mcp.notes]\ncommand = \"sh\"\nargs = [{server:?}, {folder:?}]\n\
             [mcp.tortoise]\ncommand = \"sh\"\nargs = [\"-c\", {slow:?}]\n"
        ),
    );
    let mut goes = Some(go);
    let command = env.command(&run(&["--mode", "yolo"]));
    let (seen, code) = watched(command, &env, 120, |seen, _| {
        if seen.contains(" to start")
            && let Some(go) = goes.take()
        {
            std::fs::write(go, "").unwrap();
        }
        String::new()
    });
    assert_eq!(code, Some(0), "{seen}");
    seen
}

#[test]
fn a_servers_tool_waits_for_consent_unless_it_only_reads() {
    let mut env = env(CALLS);
    env.run(&run(&[]));
    assert_eq!(done(&env), "");
    env.say("resume --approve");
    assert_eq!(done(&env), "one\n");
    assert_snapshot!(env.transcript());
}

#[test]
fn agents_that_only_read_get_only_what_only_reads() {
    let env = env(CALLS);
    for agent in ["plan", "review"] {
        one(&env, &run(&["--mode", "yolo", "--agent", agent]), 0);
        let log = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
        assert!(log.contains("all is well") && log.contains("there is no such tool"), "{log}");
    }
    assert_eq!(done(&env), "");
}

#[test]
fn a_dry_run_asks_a_server_for_nothing_but_to_look() {
    let env = env(CALLS);
    one(&env, &run(&["--dry-run"]), 0);
    assert_eq!(done(&env), "");
}

const STAYS: &str = "
- {text: I stay., calls: [{tool: notes__stay, arguments: {}}]}
- {text: Done.}
";

/// A run whose call has begun and does not end.
fn staying(env: &TestEnv) -> (Child, String) {
    let mut command = env.command(&run(&["--mode", "yolo", "--events"]));
    command.env_remove("STEPWELL_NOW");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let started = lines.by_ref().map(Result::unwrap).find(|line| line.contains("\"unsafe\""));
    assert!(started.is_some());
    std::thread::spawn(move || lines.for_each(drop));
    until("the server is asked", || done(env) == "stayed\n");
    let id = env.well().find("@last").unwrap().to_string();
    (child, id)
}

#[test]
fn a_call_that_was_killed_is_reported_as_unknown_and_not_repeated() {
    let env = env(STAYS);
    let (mut child, id) = staying(&env);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the server ends too", || is_dead(&env.path("pid")));
    let ended = one(&env, &["resume", &id], 0);
    assert_eq!(ended["output"], "Done.");
    let log = env.quietly(&["log", &id]).stdout;
    assert_eq!(log.matches("\"tool_started\"").count(), 1);
    assert!(log.contains("interrupted, outcome unknown"), "{log}");
    assert_eq!(done(&env), "stayed\n");
}

#[test]
fn a_call_that_is_interrupted_is_cancelled() {
    let env = env(STAYS);
    let (mut child, id) = staying(&env);
    let mut stop = env.command(&["stop", &id]);
    assert!(stop.env_remove("STEPWELL_NOW").output().unwrap().status.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_dead(&env.path("pid")));
    assert_eq!(done(&env), "stayed\ncancelled\n");
    assert_eq!(one(&env, &["resume", &id], 0)["output"], "Done.");
    assert_eq!(done(&env), "stayed\ncancelled\n");
}

#[test]
fn a_run_goes_on_without_a_server_unless_its_agent_needs_it() {
    let mut env = env("- {text: Done.}\n");
    let (folder, server) = (env.path(""), env.path("server.sh"));
    let notes = format!("[mcp.notes]\ncommand = \"sh\"\nargs = [{server:?}, {folder:?}]\n");
    configure(
        &env,
        &(notes
            + "[mcp.gone]\ncommand = \"no-such-program\"\n\
         [mcp.unset]\ncommand = \"true\"\nenv_from = [\"NOWHERE_API_KEY\"]\n\
         [mcp.web]\nurl = \"http://127.0.0.1:9/mcp\"\nkey_command = \"exit 3\"\n\
         [agents.needy]\nprompt = \"You need it.\"\ntools = [\"read_file\", \"gone__*\"]\n\
         [agents.vague]\nprompt = \"x\"\ntools = [\"read_fil\"]\n\
         [agents.wrong]\nprompt = \"x\"\ntools = [\"nobody__x\"]\n\
         [agents.close]\nprompt = \"x\"\ntools = [\"notes__pit\"]\n\
         [agents.modest]\nprompt = \"x\"\ntools = [\"read_file\"]\n"),
    );
    env.run(&run(&[]));
    env.run(&run(&["--agent", "modest"]));
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 2);
    env.run(&run(&["--agent", "needy"]));
    env.run(&run(&["--agent", "vague"]));
    env.run(&run(&["--agent", "wrong"]));
    env.run(&run(&["--agent", "close"]));
    env.say("resume @last --agent needy");
    // Nothing was begun that cannot go on.
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 2);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_server_is_told_what_is_named_and_no_more_and_none_of_it_is_written() {
    let script = "
- {text: Tell me., calls: [{tool: notes__tell, arguments: {}}]}
- {text: Done.}
";
    let mut env = env(script);
    let (folder, server) = (env.path(""), env.path("server.sh"));
    configure(
        &env,
        &format!(
            "[providers.local]\nbase_url = \"http://127.0.0.1:9\"\nkey_env = \"LOCAL_KEY\"\n\
             [mcp.notes]\ncommand = \"sh\"\nargs = [{server:?}, {folder:?}]\n\
             env_from = [\"GIVEN\"]\ncwd = \"{{workspace}}\"\n\
             [mcp.notes.env]\nPLAIN = \"in {{workspace}}\"\n"
        ),
    );
    env.set("GIVEN", "a-value-like-no-other");
    env.set("OPENAI_API_KEY", "sk-is-not-for-servers");
    env.set("LOCAL_KEY", "nor-is-this-one");
    one(&env, &run(&["--mode", "yolo"]), 0);
    let log = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
    let work = std::fs::canonicalize(env.work()).unwrap().display().to_string();
    let told = format!("[redacted:provider-key], no key, none, in {work}, {work}");
    assert!(log.contains(&told), "{log}");
    for entry in std::fs::read_dir(env.work().join(".stepwell")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let secret = b"a-value-like-no-other";
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
}

#[test]
fn servers_are_the_users_own_and_their_faults_are_named() {
    let mut env = env("- {text: Done.}\n");
    env.file("stepwell.toml", "[mcp.evil]\ncommand = \"sh\"\n");
    env.say("sessions");
    std::fs::remove_file(env.work().join("stepwell.toml")).unwrap();
    for text in [
        "[mcp.a]\ncommmand = \"x\"\n",
        "[mcp.a]\n\nhedaers = {}\nurl = \"https://x\"\n",
        "[mcp.a]\n",
        "[mcp.a]\ncommand = \"x\"\nurl = \"https://x\"\n",
        "[mcp.a]\ncommand = \"npx -y server\"\n",
        "[mcp.a]\ncommand = \"x\"\nheaders = {A = \"b\"}\n",
        "[mcp.a]\nurl = \"https://x\"\nargs = [\"b\"]\n",
        "[mcp.a]\nurl = \"example.com\"\n",
        "[mcp.a]\nurl = \"https://x\"\nkey_env = \"A\"\nkey_command = \"b\"\n",
        "[mcp.a]\ncommand = \"x\"\ncwd = \"here\"\n",
        "[mcp.a]\ncommand = \"x\"\nenv = {A = 1}\n",
        "[mcp.a]\ncommand = \"x\"\ntimeout = \"soon\"\n",
        "[mcp.a__b]\ncommand = \"x\"\n",
        "[mcp.\"a b\"]\ncommand = \"x\"\n",
        "mcp = 3\n",
    ] {
        configure(&env, text);
        assert_eq!(env.say("sessions").code, Some(3), "{text}");
    }
    configure(
        &env,
        "[mcp.files]\ncommand = \"npx\"\nargs = [\"-y\", \"files\", \"{workspace}\"]\n\
         env = {TOKEN = \"ghp_abcdefghijklmnopqrstuvwxyz0123456789\"}\nstart_timeout = \"90s\"\n\
         [mcp.web]\nurl = \"https://example.com/mcp?key=ghp_abcdefghijklmnopqrstuvwxyz0123456789\"\n\
         headers = {X-Team = \"blue\"}\nkey_env = \"WEB_KEY\"\n",
    );
    let shown = env.quietly(&["config"]).stdout;
    let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with("mcp.")).collect();
    let json = env.quietly(&["config", "--json"]).stdout;
    let objects: Vec<&str> = json.lines().filter(|line| line.contains("\"mcp.")).collect();
    let shown = env.redact(&format!("{}\n{}", lines.join("\n"), objects.join("\n")));
    assert_snapshot!(format!("{}{shown}", env.transcript()));
}

/// Runs a flow whose agent lists these tools, of which these are allowed.
fn guarded(tools: &str, allowed: &str) -> (TestEnv, crate::test_env::Ran) {
    let script = "lanes: {writer: [{calls: [{tool: calc__look, arguments: {}}, \
                  {tool: calc__put, arguments: {line: one}}]}, {text: Done.}]}";
    let env = env(script);
    let (server, folder) = (env.path("server.sh"), env.path(""));
    env.file(
        "flow.yaml",
        &format!(
            "version: 0\nname: guarded\n\
             tools: {{mcp: [{{id: calc, command: sh, args: [{server:?}, {folder:?}]}}]}}\n\
             security: {{guardrails: {{allow_tools: [{allowed}]}}}}\n\
             agents: {{writer: {{prompt: You count., tools: [{tools}]}}}}\n\
             pattern: {{type: chain, config: {{steps: [{{agent: writer, input: Count.}}]}}}}\n"
        ),
    );
    let run = ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--mode", "yolo"];
    let ran = env.quietly(&run);
    (env, ran)
}

#[test]
fn guardrails_allow_a_server_or_one_of_its_tools() {
    for (tools, allowed, put) in [
        ("calc", "calc__look", ""),
        ("calc", "mcp__calc__put, read_file", "one\n"),
        ("calc__put", "calc", "one\n"),
        ("calc__look, calc__put", "calc__put", "one\n"),
        ("calc", "calc", "one\n"),
    ] {
        let (env, ran) = guarded(tools, allowed);
        assert_eq!(ran.code, Some(0), "{tools} by {allowed}: {}", ran.stderr);
        assert_eq!(done(&env), put, "{tools} by {allowed}");
        let log = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
        let looks = tools != "calc__put" && !allowed.ends_with("put") && !allowed.contains("mcp__");
        assert_eq!(log.contains("all is well"), looks, "{tools} by {allowed}: {log}");
    }
}

#[test]
fn what_guardrails_take_away_is_said_and_what_they_misspell_is_refused() {
    let (_, ran) = guarded("calc, read_file", "calc");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("agents.writer does not get read_file"), "{}", ran.stderr);
    for wrong in ["clac", "read_fil"] {
        let (env, ran) = guarded("calc", wrong);
        let told = format!("allow_tools[0]: unknown tool `{wrong}`");
        for ran in [ran, env.quietly(&["flow", "validate", "flow.yaml"])] {
            assert_eq!(ran.code, Some(3), "{}", ran.stderr);
            assert!(
                ran.stderr.contains(&told) && ran.stderr.contains("did you mean"),
                "{}",
                ran.stderr
            );
        }
    }
    let (env, ran) = guarded("calc", "clac__look");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let told = "allow_tools: there is no tool \"clac__look\"";
    assert!(ran.stderr.contains(told) && ran.stderr.contains("calc__*"), "{}", ran.stderr);
    assert_eq!(env.quietly(&["flow", "validate", "flow.yaml"]).code, Some(3));
    let (_, ran) = guarded("calc", "calc__lok");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("calc__look"), "{}", ran.stderr);
}
