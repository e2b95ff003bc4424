//! import, convert, formats, watch, and resume in another agent.

use std::path::PathBuf;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::elsewhere::{copy, fixtures};
use crate::terminal::watched;
use crate::test_env::TestEnv;

const CLAUDE: &str = "7be2d940-15c3-4f6a-a1d8-90c4e3b7f512";

/// An environment whose user has other agents, with their sessions where those keep them.
pub(crate) fn agents() -> TestEnv {
    let env = TestEnv::new();
    let home = env.path("home");
    copy(&fixtures().join("claude/projects"), &home.join(".claude/projects"));
    copy(&fixtures().join("codex/sessions"), &home.join(".codex/sessions"));
    let goose = home.join(".local/share/goose/sessions");
    std::fs::create_dir_all(&goose).unwrap();
    let sql = std::fs::read_to_string(fixtures().join("goose/sessions/sessions.sql")).unwrap();
    let database = rusqlite::Connection::open(goose.join("sessions.db")).unwrap();
    database.execute_batch(&sql).unwrap();
    env
}

fn transcript(env: &TestEnv) -> PathBuf {
    env.path("home").join(".claude/projects/-home-mila-crumb-shop").join(format!("{CLAUDE}.jsonl"))
}

/// Another line at the end of Claude's transcript, in place of the torn one.
fn grow(env: &TestEnv, uuid: &str, parent: &str, text: &str) {
    let path = transcript(env);
    let mut lines: Vec<String> =
        std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    lines.retain(|line| line.ends_with('}'));
    lines.push(format!(
        r#"{{"parentUuid":"{parent}","isSidechain":false,"cwd":"/home/mila/crumb_shop","sessionId":"{CLAUDE}","version":"2.1.77","type":"user","message":{{"role":"user","content":"{text}"}},"uuid":"{uuid}","timestamp":"2026-05-04T06:53:00.000Z"}}"#
    ));
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn sessions_of_other_agents_are_found_asked_for_and_taken_in_once() {
    let mut env = agents();
    env.say("import");
    env.say("import --dry-run");
    env.say("sessions --all");
    env.say("import --yes");
    env.say("import --yes");
    grow(&env, "ask-5", "say-6", "and then?");
    env.say("import --yes --from claude");
    env.say("import --yes --from claude --json");
    env.say("sessions --all");
    env.say("search and then");
    env.say("verify");
    assert_snapshot!(env.transcript());
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let mut env = agents();
    let folder = env.work().join("mixed");
    copy(&env.path("home").join(".codex/sessions/2026/05/04"), &folder);
    env.file(
        "mixed/broken.jsonl",
        "{\"timestamp\":\"x\",\"type\":\"session_meta\",\"payload\":{\"id\":\"\"}}\n",
    );
    env.file("mixed/notes.txt", "nothing to see\n");
    env.say("import mixed");
    env.say("import mixed/broken.jsonl");
    env.say("import mixed/notes.txt absent");
    env.say("import mixed --from goose");
    env.say("import mixed --from html");
    assert_snapshot!(env.transcript());
}

#[test]
fn an_address_that_cannot_be_imported_from_is_refused_and_not_repeated() {
    let env = TestEnv::new();
    for address in ["https://ann:hunter2@host/db", "mysql://ann:hunter2@host/db"] {
        let ran = env.quietly(&["import", address]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("postgres://user@host:port/database"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
    assert!(!env.work().join(".stepwell").exists());
}

#[test]
fn a_folder_and_its_files_end_with_the_same_code_when_one_of_them_is_damaged() {
    let env = agents();
    let folder = env.work().join("mixed");
    copy(&env.path("home").join(".codex/sessions/2026/05/04"), &folder);
    let whole = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let broken = "{\"timestamp\":\"x\",\"type\":\"session_meta\",\"payload\":{\"id\":\"\"}}\n";
    env.file("mixed/broken.jsonl", broken);
    env.file("lone/broken.jsonl", broken);
    let code = |paths: &[&str]| {
        let ran = env.quietly(&[&["import"], paths].concat());
        assert!(ran.stderr.contains("damaged: "), "{paths:?}: {}", ran.stderr);
        assert!(ran.stdout.contains(", 1 damaged"), "{paths:?}: {}", ran.stdout);
        ran.code
    };
    assert_eq!(code(&["mixed"]), Some(0));
    assert_eq!(code(&["mixed/broken.jsonl", whole.to_str().unwrap()]), Some(0));
    assert_eq!(code(&["lone"]), Some(7));
    assert_eq!(code(&["lone/broken.jsonl"]), Some(7));
}

#[test]
fn a_taken_name_gets_a_suffix_and_says_so() {
    let mut env = agents();
    let archive = format!(
        "{{\"stepwell_archive\":1,\"sessions\":[{{\"id\":\"{CLAUDE}\",\"origin\":\"root\",\"events\":[{{\"seq\":1,\"at\":\"2026-02-23T14:30:22Z\",\"kind\":\"created\",\"version\":1,\"body\":{{\"id\":\"{CLAUDE}\",\"task\":\"mine\"}}}}]}}]}}"
    );
    env.file("own.json", &archive);
    env.say("import own.json");
    let path = transcript(&env);
    env.run(&["import", path.to_str().unwrap()]);
    env.run(&["import", path.to_str().unwrap()]);
    env.say("sessions --all");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_session_is_handed_to_another_agent() {
    let mut env = agents();
    env.quietly(&["import", "--yes"]);
    env.run(&["resume", CLAUDE, "--with", "claude"]);
    env.run(&["resume", CLAUDE, "--with", "codex"]);
    env.run(&["resume", CLAUDE, "--with", "codex", "--json"]);
    env.run(&["resume", "20260506_1", "--with", "claude"]);
    env.run(&["resume", CLAUDE, "--with", "goose"]);
    env.run(&["resume", CLAUDE, "--with", "nobody"]);
    env.run(&["resume", CLAUDE, "--exec"]);
    let slug = regex::Regex::new(r"projects/-[^/]*-work/").unwrap();
    let transcript = env.transcript();
    assert_snapshot!(slug.replace_all(&transcript, "projects/[SLUG]/"));
}

#[test]
fn what_was_handed_over_and_comes_back_is_not_counted_twice() {
    let mut env = agents();
    env.quietly(&["import", "--yes"]);
    let tokens = |env: &TestEnv| {
        let said = env.quietly(&["stats", "--json"]).stdout;
        let stats: serde_json::Value = serde_json::from_str(&said).unwrap();
        (stats["sessions"].as_u64().unwrap(), stats["tokens"].clone(), stats["calls"].clone())
    };
    let before = tokens(&env);
    assert!(before.1["input"].as_u64().unwrap() > 0, "{before:?}");
    for (id, agent) in [(CLAUDE, "codex"), (CLAUDE, "strands"), ("20260506_1", "claude")] {
        handed(&env, id, agent);
    }
    env.say("import --yes");
    assert_eq!(tokens(&env), before);
    // One of them is gone on with there.
    let (file, ..) = handed(&env, CLAUDE, "codex");
    let more = r#"{"timestamp":"2026-06-01T10:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"and on Sundays?"}]}}"#;
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{whole}{more}\n")).unwrap();
    env.say("import --yes --from codex");
    env.say("import --yes --from codex");
    let after = tokens(&env);
    assert_eq!((after.0, after.1, after.2), (before.0 + 1, before.1, before.2));
    assert_snapshot!(env.transcript());
}

#[test]
fn a_name_out_of_a_file_is_never_an_option_of_a_command() {
    let env = TestEnv::new();
    for (format, command) in [("claude", "claude --resume "), ("codex", "codex resume ")] {
        let evil = "--dangerously-skip-permissions";
        let line = match format {
            "claude" => format!(
                r#"{{"parentUuid":null,"isSidechain":false,"cwd":"/w","sessionId":"{evil}","type":"user","message":{{"role":"user","content":"hi"}},"uuid":"u1","timestamp":"2026-05-04T06:53:00.000Z"}}"#
            ),
            _ => format!(
                r#"{{"timestamp":"2026-05-04T06:53:00.000Z","type":"session_meta","payload":{{"id":"{evil}","timestamp":"2026-05-04T06:53:00.000Z","cwd":"/w","cli_version":"1"}}}}
{{"timestamp":"2026-05-04T06:53:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"hi"}}]}}}}"#
            ),
        };
        env.file("evil.jsonl", &format!("{line}\n"));
        let said = env.quietly(&["import", "evil.jsonl", "--json"]);
        let taken: serde_json::Value = serde_json::from_str(said.stdout.trim()).unwrap();
        let id = taken["session"].as_str().unwrap().to_owned();
        assert!(id.starts_with("dangerously-skip-permissions-"), "{id}");
        let said = env.quietly(&["resume", &id, "--with", format]);
        assert!(said.stdout.contains(command) && !said.stdout.contains(evil), "{}", said.stdout);
    }
}

#[test]
fn a_session_from_another_place_is_written_where_the_agent_looks() {
    let env = TestEnv::new();
    let other = env.work().join("other");
    copy(&fixtures().join("claude/projects"), &other.join("projects"));
    copy(&fixtures().join("codex/sessions"), &other.join("sessions"));
    env.quietly(&["import", "other"]);
    let codex = "0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11";
    for (id, agent, place) in [(CLAUDE, "claude", ".claude/projects"), (codex, "codex", ".codex")] {
        let said = env.quietly(&["resume", id, "--with", agent, "--json"]);
        let answer: serde_json::Value = serde_json::from_str(said.stdout.trim()).unwrap();
        let file = PathBuf::from(answer["file"].as_str().unwrap());
        assert!(file.starts_with(env.path("home").join(place)) && file.is_file(), "{file:?}");
        assert!(file.to_str().unwrap().contains(id), "{file:?}");
        assert!(said.stdout.contains(id), "{}", said.stdout);
    }
}

/// Hands a session over. The answer is the file, what is said of it, and the command.
fn handed(env: &TestEnv, id: &str, agent: &str) -> (PathBuf, String, String) {
    let said = env.quietly(&["resume", id, "--with", agent, "--json"]);
    let answer: serde_json::Value = serde_json::from_str(said.stdout.trim()).unwrap();
    let file = PathBuf::from(answer["file"].as_str().unwrap());
    (file, said.stderr, answer["command"][2].as_str().unwrap().to_owned())
}

#[test]
fn a_session_that_has_grown_is_handed_over_as_it_is_now() {
    let claude = "claude/projects/-home-mila-crumb-shop/7be2d940-15c3-4f6a-a1d8-90c4e3b7f512.jsonl";
    let oven = "0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11";
    let codex = format!("codex/sessions/2026/05/04/rollout-2026-05-04T07-15-00-{oven}.jsonl");
    for (id, agent, fixture) in [(CLAUDE, "claude", claude), (oven, "codex", codex.as_str())] {
        let env = TestEnv::new();
        let whole = std::fs::read_to_string(fixtures().join(fixture)).unwrap();
        let front: Vec<&str> = whole.lines().take(8).collect();
        env.file("it.jsonl", &(front.join("\n") + "\n"));
        env.quietly(&["import", "it.jsonl"]);
        let (old, said, name) = handed(&env, id, agent);
        assert!(said.contains("Wrote ") && name == id, "{said}");
        let written = std::fs::read_to_string(&old).unwrap();
        let (again, said, _) = handed(&env, id, agent);
        assert!(said.contains("was written before") && again == old, "{said}");
        // It goes on elsewhere, and what was written here is too old.
        env.file("it.jsonl", &whole);
        env.quietly(&["import", "it.jsonl"]);
        let (new, said, name) = handed(&env, id, agent);
        assert!(said.contains("Wrote ") && new != old && name != id, "{said}");
        assert!(new.to_str().unwrap().contains(&name), "{new:?}: {name}");
        assert_eq!(std::fs::read_to_string(&old).unwrap(), written);
        let lines = |path: &PathBuf| std::fs::read_to_string(path).unwrap().lines().count();
        assert!(lines(&new) > lines(&old), "{}", lines(&new));
        let (again, said, _) = handed(&env, id, agent);
        assert!(said.contains("was written before") && again == new, "{said}");
        // Once the agent has all of it under that name, that is where it goes on.
        let more = r#"{"type":"new","timestamp":"2026-05-04T09:00:00.000Z","payload":{}}"#;
        std::fs::write(&old, format!("{whole}\n{more}\n")).unwrap();
        let (again, said, name) = handed(&env, id, agent);
        assert!(said.contains("was written before") && again == old && name == id, "{said}");
    }
}

#[test]
fn a_rollout_that_goes_on_from_another_one_is_handed_over_whole() {
    let (base, fork) =
        ("0196a91c-77e2-7d04-9f10-2b8c5a4e3d22", "0196a953-08c4-7e6b-a4d1-93f7b1c60e33");
    let env = agents();
    let name = format!("rollout-2026-05-05T08-05-00-{base}_{fork}.jsonl");
    let path = env.path("home").join(".codex/sessions/2026/05/05").join(name);
    let said = r#"{"timestamp":"2026-05-05T08:05:02.000Z","ordinal":5,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"and rye?"}]}}"#;
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{}\n{said}\n", whole.trim_end())).unwrap();
    env.quietly(&["import", "--yes"]);
    let (file, _, name) = handed(&env, &format!("{base}_{fork}"), "codex");
    assert!(!name.contains('_') && name != base && name != fork, "{name}");
    assert!(file.to_str().unwrap().ends_with(&format!("-{name}.jsonl")), "{file:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let meta: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(meta["payload"]["id"], name.as_str());
    assert_eq!(meta["payload"]["session_id"], name.as_str());
    assert!(text.contains("and rye?") && !text.contains("\"history_base\""), "{text}");
}

#[test]
fn a_command_that_another_agent_may_have_run_is_not_run_when_its_session_is_resumed_here() {
    let env = TestEnv::new();
    let call = r#"{"id": "c1", "type": "function", "function": {"name": "run_command",
        "arguments": "{\"command\": \"echo again >> ran.txt\"}"}}"#;
    let session = format!(
        r#"{{"session_id": "20260507-051500-ba4e01", "task": "say it", "agent": "build",
        "model": "gpt-4.1", "status": "interrupted", "steps_completed": 0, "messages": [
        {{"role": "user", "content": "say it"}},
        {{"role": "assistant", "content": null, "tool_calls": [{call}]}}],
        "files_modified": [], "total_cost": 0.0, "started_at": 1778130900.0,
        "updated_at": 1778130970.0, "stop_reason": "user_interrupt", "metadata": {{}}}}"#
    );
    env.file("20260507-051500-ba4e01.json", &session);
    env.file("script.yaml", "- {text: Done.}\n- {text: Done.}\n");
    let imported = env.quietly(&["import", "20260507-051500-ba4e01.json"]);
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    let view = env.quietly(&["show", "ba4e01", "--view"]).stdout;
    assert!(view.contains("interrupted, outcome unknown"), "{view}");
    // Whether it goes on as it was, or with something else.
    for text in [None, Some("go on")] {
        let fork = env.quietly(&["fork", "ba4e01"]).line();
        let how = ["resume", &fork, "--model", "script:script.yaml", "--mode", "yolo"];
        let resumed = env.quietly(&how.into_iter().chain(text).collect::<Vec<_>>());
        assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
        let log = env.quietly(&["log", &fork]).stdout;
        assert!(log.contains("interrupted, outcome unknown"), "{log}");
        assert!(!env.path("ran.txt").exists());
    }
}

#[test]
fn a_session_without_a_conversation_is_not_handed_over() {
    let mut env = TestEnv::new();
    env.file(
        "own.json",
        r#"{"stepwell_archive":1,"sessions":[{"id":"silent","origin":"root","events":[{"seq":1,"at":"2026-02-23T14:30:22Z","kind":"created","version":1,"body":{"id":"silent","task":"mine"}}]}]}"#,
    );
    env.quietly(&["import", "own.json"]);
    env.say("resume silent --with claude");
    assert!(!env.path("home").join(".claude").exists());
    assert_snapshot!(env.transcript());
}

#[test]
fn the_agent_is_run_where_the_session_works() {
    let mut env = agents();
    env.quietly(&["import", "--yes"]);
    let codex = env.work().join("bin/codex");
    std::fs::create_dir_all(codex.parent().unwrap()).unwrap();
    std::fs::write(&codex, "#!/bin/sh\necho \"$PWD: $1 and a session\"\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&codex, mode).unwrap();
    let path = format!("{}:/usr/bin:/bin", codex.parent().unwrap().display());
    env.set("PATH", &path);
    env.run(&["resume", CLAUDE, "--with", "codex", "--exec"]);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_session_is_converted_without_a_store() {
    let mut env = agents();
    let from = transcript(&env);
    let from = from.to_str().unwrap();
    env.run(&["convert", from, "out.jsonl", "--to", "codex"]);
    env.run(&["convert", from, "out.jsonl", "--to", "codex"]);
    env.run(&["convert", "out.jsonl", "back.jsonl", "--to", "claude", "--json"]);
    env.run(&["convert", "out.jsonl", "page.md", "--to", "md"]);
    let codex = env.path("home").join(".codex");
    env.run(&["convert", codex.to_str().unwrap(), "many", "--to", "claude"]);
    env.run(&["convert", "page.md", "x", "--to", "codex"]);
    env.run(&["convert", from, "x", "--to", "goose"]);
    assert!(!env.work().join(".stepwell").exists());
    assert!(env.read("page.md").contains("pickup time"));
    assert_snapshot!(env.transcript());
}

#[test]
fn formats_says_what_is_read_what_is_written_and_where_it_looks() {
    let mut env = TestEnv::new();
    env.say("formats");
    env.say("formats --json");
    assert_snapshot!(env.transcript());
}

#[test]
fn watching_takes_in_what_grows_and_can_be_killed() {
    let env = agents();
    let mut command = env.command(&["watch", "--every", "1"]);
    let mut watching = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has = |env: &TestEnv, words: &str| {
        // A look takes a second, and a machine under load takes many; so does asking.
        (0..5_000).any(|_| env.quietly(&["log", CLAUDE]).stdout.contains(words))
    };
    assert!(has(&env, "Bake the test data"));
    let second = env.quietly(&["watch"]);
    assert_eq!(second.code, Some(6), "{}", second.stderr);
    grow(&env, "ask-5", "say-6", "said while watched");
    assert!(has(&env, "said while watched"));
    watching.kill().unwrap();
    watching.wait().unwrap();
    grow(&env, "ask-6", "ask-5", "said after it was killed");
    let again = env.quietly(&["import", "--yes", "--from", "claude"]);
    assert!(again.stdout.contains("1 updated"), "{}", again.stdout);
    assert_eq!(env.quietly(&["verify"]).code, Some(0));
}

#[test]
fn a_dry_run_of_a_handoff_says_all_and_writes_nothing() {
    let mut env = agents();
    env.quietly(&["import", "--yes", "--from", "claude"]);
    let before = std::fs::read_dir(env.path("home").join(".codex/sessions/2026")).unwrap().count();
    env.run(&["resume", CLAUDE, "--with", "codex", "--dry-run"]);
    env.run(&["resume", CLAUDE, "--with", "codex", "--dry-run", "--exec"]);
    let after = std::fs::read_dir(env.path("home").join(".codex/sessions/2026")).unwrap().count();
    let files = |env: &TestEnv| env.quietly(&["import", "--from", "codex", "--dry-run"]).stdout;
    assert!(before == after && files(&env).contains("3 imported"), "{}", files(&env));
    assert_snapshot!(env.transcript());
}

#[test]
fn the_numbers_of_an_import_are_those_of_its_dry_run_and_what_is_skipped_counts() {
    let mut env = agents();
    // The same session twice: the second time there is nothing to do.
    let copy = env.work().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(transcript(&env), copy.join(format!("{CLAUDE}.jsonl"))).unwrap();
    let home = env.path("home").join(".claude");
    let home = home.to_str().unwrap();
    env.run(&["import", home, "copy", "--dry-run"]);
    env.run(&["import", home, "copy"]);
    env.quietly(&["delete", CLAUDE]);
    grow(&env, "ask-5", "say-6", "said to the trash");
    let file = transcript(&env);
    env.run(&["import", file.to_str().unwrap()]);
    assert_snapshot!(env.transcript());
}

#[test]
fn watching_complains_once_and_leaves_nothing_where_there_is_nothing() {
    let mut env = TestEnv::new();
    env.say("watch");
    env.say("watch nowhere");
    assert!(!env.work().join(".stepwell").exists());
    assert_snapshot!(env.transcript());

    let env = agents();
    let broken = transcript(&env).with_file_name("20260101-000000-abcdef.json");
    std::fs::write(&broken, r#"{"session_id":"","task":"t","steps_completed":1"#).unwrap();
    let heard = env.work().join("heard");
    let projects = env.path("home").join(".claude");
    let mut command = env.command(&["watch", projects.to_str().unwrap(), "--every", "1"]);
    command.stdout(Stdio::null()).stderr(std::fs::File::create(&heard).unwrap());
    let mut watching = command.spawn().unwrap();
    let has =
        |words: &str| (0..5_000).any(|_| env.quietly(&["log", CLAUDE]).stdout.contains(words));
    // Three looks at least.
    let mut seen = has("Bake the test data");
    grow(&env, "ask-5", "say-6", "said at first");
    seen &= has("said at first");
    grow(&env, "ask-6", "ask-5", "said after that");
    seen &= has("said after that");
    watching.kill().unwrap();
    watching.wait().unwrap();
    let heard = std::fs::read_to_string(heard).unwrap();
    assert!(seen, "{heard}");
    assert_eq!(heard.matches("damaged").count(), 1, "{heard}");
}

#[test]
fn what_goose_says_is_seen_while_goose_runs() {
    let env = agents();
    let path = env.path("home").join(".local/share/goose/sessions/sessions.db");
    let goose = rusqlite::Connection::open(&path).unwrap();
    // What is said stays in the log beside the database.
    goose.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;").unwrap();
    let mut command = env.command(&["watch", "--every", "1"]);
    let mut watching = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has =
        |words: &str| (0..500).any(|_| env.quietly(&["log", "20260506_1"]).stdout.contains(words));
    assert!(has("price tags"));
    let say = "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp)
        VALUES ('tag-99', '20260506_1', 'user', ?1, 1778041900)";
    goose.execute(say, [r#"[{"type":"text","text":"said while it runs"}]"#]).unwrap();
    let seen = has("said while it runs");
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert!(seen);
}

#[test]
fn on_a_terminal_it_asks_and_shows_how_far_it_is() {
    let env = agents();
    let (seen, code) = watched(env.command(&["import"]), &env, 60, |seen, _| {
        let asked = seen.ends_with("[y/N] ");
        if asked { "y\n".to_owned() } else { String::new() }
    });
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("Import the sessions in 5 files here? [y/N] y"), "{seen}");
    assert!(seen.contains("[....................] 0% 7be2d940"), "{seen}");
    assert!(seen.contains("% sessions.db"), "{seen}");
    assert!(seen.trim_end().ends_with("7 imported, 0 updated, 0 unchanged, 0 damaged"), "{seen}");
    let (seen, code) = watched(env.command(&["import"]), &env, 60, |seen, _| {
        let asked = seen.ends_with("[y/N] ");
        if asked { "n\n".to_owned() } else { String::new() }
    });
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("nothing was done"), "{seen}");
}

#[test]
fn a_session_whose_agent_is_unknown_here_is_gone_on_with_by_build() {
    let env = TestEnv::new();
    let from = fixtures().join("architect/.architect/sessions/20260507-051500-ba4e01.json");
    let mut told: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(from).unwrap()).unwrap();
    told["agent"] = "mason".into();
    env.file("told.json", &told.to_string());
    // A script answers by the session's steps, of which there are some.
    env.file("script.yaml", &"- {text: Done.}\n".repeat(9));
    assert_eq!(env.quietly(&["import", "told.json", "--yes"]).code, Some(0));
    let resume = ["resume", "20260507-051500-ba4e01", "go on", "--model", "script:script.yaml"];
    let ran = env.quietly(&resume);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let notice = "\"mason\" is an agent of architect; build takes its place here";
    assert!(ran.stderr.contains(notice), "{}", ran.stderr);
    assert_eq!(env.quietly(&["show", "@last", "--json"]).json()[0]["agent"], "build");
    // One that is named and not there is an error.
    let ran = env.quietly(&["resume", "@last", "go on", "--agent", "mason"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
}

/// A transcript of Claude Code's whose user waits for an answer, in this workspace.
fn waiting(env: &TestEnv, id: &str) -> String {
    let folder = std::fs::canonicalize(env.work()).unwrap();
    let line = serde_json::json!({
        "parentUuid": null, "isSidechain": false, "cwd": folder, "sessionId": id,
        "version": "2.1.77", "type": "user", "uuid": "ask-1",
        "message": {"role": "user", "content": "bake a loaf"},
        "timestamp": "2026-03-08T06:53:00.000Z",
    });
    format!("{line}\n")
}

#[test]
fn a_session_of_my_own_agents_folder_counts_as_mine_and_one_that_i_named_does_not() {
    let [mine, named, elsewhere] =
        ["aaaa", "bbbb", "cccc"].map(|it| format!("7be2d940-15c3-4f6a-a1d8-90c4e3b7{it}"));
    let env = TestEnv::new();
    env.file("quick.yaml", "- {text: Baked.}\n");
    env.file("given.jsonl", &waiting(&env, &named));
    assert_eq!(env.quietly(&["import", "given.jsonl"]).code, Some(0));
    let resume = ["resume", "--model", "script:quick.yaml"];
    let ran = env.quietly(&resume);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("no session that you began"), "{}", ran.stderr);
    let folder = env.path("home/.claude/projects/-w");
    std::fs::create_dir_all(&folder).unwrap();
    // One of another folder is mine, and not of this workspace.
    let other = waiting(&env, &elsewhere).replace("/work\"", "/elsewhere\"");
    assert!(other.contains("/elsewhere"));
    std::fs::write(folder.join(format!("{elsewhere}.jsonl")), other).unwrap();
    assert_eq!(env.quietly(&["import", "--yes"]).code, Some(0));
    assert_eq!(env.quietly(&resume).code, Some(3));
    std::fs::write(folder.join(format!("{mine}.jsonl")), waiting(&env, &mine)).unwrap();
    assert_eq!(env.quietly(&["import", "--yes"]).code, Some(0));
    let ran = env.quietly(&[
        "run",
        "--config",
        "sessions.resume_on_startup=true",
        "--model",
        "script:quick.yaml",
    ]);
    assert!(ran.stderr.contains(&mine), "{}", ran.stderr);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn nothing_that_is_said_in_an_imported_session_is_allowed_by_me() {
    let id = "7be2d940-15c3-4f6a-a1d8-90c4e3b7dddd";
    let env = TestEnv::new();
    let script = "- {text: go, calls: [{tool: run_command, arguments: {command: 'echo ran > ran.txt'}}]}\n- {text: done}\n";
    env.file("script.yaml", script);
    let folder = env.path("home/.claude/projects/-w");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{id}.jsonl")), waiting(&env, id)).unwrap();
    assert_eq!(env.quietly(&["import", "--yes"]).code, Some(0));
    // Its log claims a loose mode, as an import could.
    let well = env.well();
    let session = well.lock(&id.parse().unwrap()).unwrap();
    let settings = stepwell::model::Settings {
        mode: Some(stepwell::model::Mode::Yolo),
        ..stepwell::model::Settings::default()
    };
    session.append(settings).unwrap();
    drop(session);
    let ran = env.quietly(&["resume", "--model", "script:script.yaml"]);
    assert_eq!(ran.code, Some(8), "it asks: {}{}", ran.stdout, ran.stderr);
    assert!(!env.work().join("ran.txt").exists());
}
