//! What someone meets who uses Stepwell for the first time.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::running::{SCRIPT, env as with_script, one, run};
use crate::test_env::{AUTH, TESTS, TestEnv};

fn stderr(env: &TestEnv, args: &[&str], code: i32) -> String {
    let ran = env.quietly(args);
    assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stderr
}

fn stdout(env: &TestEnv, args: &[&str]) -> String {
    let ran = env.quietly(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

#[test]
fn any_unique_part_of_an_id_names_a_session() {
    let env = TestEnv::furnished();
    for part in ["a1b2c3", "a1b", "b2c3", "143022", AUTH] {
        let shown = env.quietly(&["show", part, "--json"]).json().remove(0);
        assert_eq!(shown["id"], AUTH, "{part}");
    }
    assert!(stderr(&env, &["show", "20260223"], 3).contains("type more of the id"));
}

#[test]
fn a_list_in_colour_dims_what_need_not_be_typed() {
    let env = TestEnv::furnished();
    let listed = stdout(&env, &["sessions", "--color", "always"]);
    assert!(
        listed.contains("\u{1b}[2m20260223-151045-\u{1b}[0md4e5\u{1b}[2mf6\u{1b}[0m"),
        "{listed}"
    );
    assert!(!stdout(&env, &["sessions"]).contains('\u{1b}'));
}

#[test]
fn resume_with_a_text_goes_on_with_it() {
    let script = format!("{SCRIPT}  - text: More is done too.\n");
    let env = with_script(&script);
    one(&env, &run(&["--mode", "yolo"]), 0);
    let told = stderr(&env, &["resume", "@last"], 0);
    assert!(told.contains("was finished already") && told.contains("\"TEXT\""), "{told}");
    let more = one(&env, &["resume", "@last", "and now more"], 0);
    assert_eq!(more["output"], "More is done too.");
    let log = stdout(&env, &["log", "@last", "--json"]);
    assert!(log.contains("and now more"), "{log}");
    let told = stderr(&env, &["resume", "and now more"], 3);
    assert!(told.contains("stepwell resume @last"), "{told}");
}

#[test]
fn what_is_no_session_is_not_recognised_and_makes_no_store() {
    let env = TestEnv::new();
    env.file("empty.json", "{}");
    for (args, says) in [
        (&["import", "nofile"][..], "not recognised: nofile"),
        (&["import", "empty.json"], "not recognised: "),
        (&["import", "empty.json", "--from", "codex"], "not recognised: "),
        (&["convert", "nofile", "out", "--to", "json"], "nofile"),
        (&["convert", "empty.json", "out", "--to", "json"], "no session of a known format"),
    ] {
        let told = stderr(&env, args, 3);
        assert!(told.contains(says) && !told.contains("damaged:"), "{args:?}: {told}");
    }
    assert!(!env.work().join(".stepwell").exists());
}

#[test]
fn a_backup_finds_its_way_back() {
    let env = TestEnv::furnished();
    stdout(&env, &["backup", "kept.db"]);
    let listed = stdout(&env, &["sessions", "--json"]);
    let told = stderr(&env, &["--store", "kept.db", "sessions"], 3);
    assert!(told.contains("restore"), "{told}");
    // Into another folder, which then is a store.
    stdout(&env, &["--store", "elsewhere", "restore", "kept.db"]);
    let there = stdout(&env, &["--store", "elsewhere", "sessions"]);
    assert!(there.contains(AUTH) && there.contains(TESTS), "{there}");
    // In place of what is here, which is kept.
    stdout(&env, &["delete", AUTH]);
    assert!(stderr(&env, &["restore", "kept.db"], 1).contains("--replace"));
    let told = env.quietly(&["restore", "kept.db", "--replace"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(told.stderr.contains("stepwell.db.before-"), "{}", told.stderr);
    assert_eq!(stdout(&env, &["sessions", "--json"]), listed);
    assert_eq!(env.quietly(&["verify"]).code, Some(0));
    // What is no backup leaves all as it is.
    env.file("no.db", "not a database");
    assert_ne!(env.quietly(&["restore", "no.db", "--replace"]).code, Some(0));
    assert_eq!(stdout(&env, &["sessions", "--json"]), listed);
    assert_eq!(env.quietly(&["restore", "nofile"]).code, Some(3));
}

#[test]
fn a_search_finds_each_message_once() {
    let env = with_script(SCRIPT);
    one(&env, &run(&["--mode", "yolo"]), 0);
    let found = env.quietly(&["search", "say", "hello", "--json"]).json();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["kind"], "message");
    let fork = env.quietly(&["fork", "@last", "--label", "again"]).line();
    assert_eq!(env.quietly(&["search", "say hel", "--json"]).json().len(), 1);
    let labelled = one(&env, &["show", "again"], 0);
    assert_eq!(labelled["id"], Value::from(fork));
    // What every agent is told is found only if it is asked for.
    assert!(env.quietly(&["search", "workspace", "--json"]).json().is_empty());
    assert!(!env.quietly(&["search", "workspace", "--system", "--json"]).json().is_empty());
    let away = TestEnv::new();
    assert!(stderr(&away, &["search", "word"], 0).contains("no store here"));
}

#[test]
fn a_store_hides_itself_from_git_and_a_healthy_one_has_no_findings() {
    let env = TestEnv::new();
    stdout(&env, &["init"]);
    assert_eq!(env.read(".stepwell/.gitignore"), "*\n");
    // Only then does the folder become a work tree.
    std::fs::create_dir(env.work().join(".git")).unwrap();
    env.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]);
    let told = stdout(&env, &["doctor"]);
    assert!(!told.contains("behind") && !told.contains("wrong"), "{told}");
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(env.work().join(".stepwell/stepwell.db"), open).unwrap();
    assert_eq!(env.quietly(&["doctor"]).code, Some(1));
    stdout(&env, &["doctor", "--repair"]);
    stdout(&env, &["doctor"]);
}

#[test]
fn a_noun_alone_shows_and_changes_nothing() {
    let env = TestEnv::furnished();
    let log = stdout(&env, &["log", AUTH, "--json"]);
    for args in [
        &["checkpoint", AUTH][..],
        &["label", AUTH],
        &["tag", AUTH],
        &["meta", AUTH],
        &["phase", AUTH],
        &["trash"],
        &["store"],
        &["worktrees"],
        &["config"],
    ] {
        let ran = env.quietly(args);
        assert!(matches!(ran.code, Some(0 | 1)), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(stdout(&env, &["log", AUTH, "--json"]), log);
}

#[test]
fn users_keep_metadata_of_their_own_on_sessions_and_checkpoints() {
    let env = TestEnv::furnished();
    let kept = one(&env, &["meta", AUTH, "ticket=T-1", "size:=3"], 0);
    assert_eq!(
        (&kept["metadata"]["ticket"], &kept["metadata"]["size"]),
        (&json!("T-1"), &json!(3))
    );
    assert!(one(&env, &["meta", AUTH, "ticket:=null"], 0)["metadata"].get("ticket").is_none());
    // No key is Stepwell's own.
    assert_eq!(one(&env, &["meta", AUTH, "imported=yes"], 0)["metadata"]["imported"], "yes");
    stdout(&env, &["checkpoint", AUTH, "here", "--meta", "why=before lunch"]);
    let listed = env.quietly(&["checkpoint", AUTH, "--json"]).json();
    let here = listed.iter().find(|it| it["name"] == "here").unwrap();
    assert_eq!(here["metadata"], json!({"why": "before lunch"}));
    assert!(stdout(&env, &["checkpoint", AUTH]).contains("here (why=before lunch)"));
}

#[test]
fn a_setting_can_be_taken_back() {
    let env = TestEnv::new();
    stdout(&env, &["config", "set", "sessions.cleanup_after_days", "9"]);
    stdout(&env, &["config", "unset", "sessions.cleanup_after_days"]);
    assert_eq!(stdout(&env, &["config", "get", "sessions.cleanup_after_days"]), "7\n");
    let again = stdout(&env, &["config", "unset", "sessions.cleanup_after_days"]);
    assert!(again.contains("is not set"), "{again}");
}

#[test]
fn turns_of_an_agent_are_recorded_and_the_last_ones_shown() {
    let mut env = TestEnv::new();
    env.file("stepwell.toml", "[agent]\nid_format = 'agent'\nshown_turns = 2\n");
    let id = env.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]).line();
    assert!(id.starts_with("agent-2026") && id.len() == "agent-20260309-120000-12345678".len());
    stdout(&env, &["agent", "update", &id, "--phase", "planning"]);
    stdout(&env, &["agent", "say", &id, "--role", "user", "first"]);
    let lines = "{\"role\": \"assistant\", \"text\": \"second\"}\n\n\
                 {\"role\": \"user\", \"content\": \"third\"}\n";
    assert_eq!(env.feed(&["agent", "say", &id], lines).code, Some(0));
    assert_eq!(env.feed(&["agent", "say", &id], "nonsense\n").code, Some(2));
    let shown = env.quietly(&["agent", "turns", &id, "--json"]).json();
    let texts: Vec<_> = shown.iter().map(|turn| turn["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["second", "third"]);
    assert_eq!(env.quietly(&["agent", "turns", &id, "-n", "9", "--json"]).json().len(), 3);
    // Taken up again by a hook, it counts.
    let payload = format!("{{\"agent_id\": \"{id}\"}}");
    let answer = env.feed(&["hook", "pre-delegate"], &payload).json().remove(0);
    assert_eq!(answer["should_resume"], true, "{answer}");
    let agent = env.quietly(&["agent", "get", &id]).json().remove(0);
    assert_eq!((&agent["resumes"], &agent["turns"]), (&json!(1), &json!(3)));
    assert_eq!((&agent["phase"], &agent["status"]), (&json!("planning"), &json!("running")));
    let stats = env.quietly(&["stats", "--json"]).json().remove(0);
    assert_eq!(stats["resume_rate"], json!(1), "{stats}");
    // What it died of is kept.
    let payload = format!("{{\"agent_id\": \"{id}\", \"error\": \"disk full\"}}");
    env.feed(&["hook", "subagent-stop"], &payload);
    let agent = env.quietly(&["agent", "get", &id]).json().remove(0);
    assert_eq!(agent["phase"], "failed");
    assert_eq!(agent["last_error"]["message"], "disk full", "{agent}");
    let listed =
        |flag: &str, when: &str| env.quietly(&["agent", "list", flag, when, "--json"]).json().len();
    assert_eq!((listed("--since", "2026-03-01"), listed("--until", "2026-03-01")), (1, 0));
}

#[test]
fn a_dash_is_stdout_for_an_export() {
    let env = TestEnv::furnished();
    let plain = stdout(&env, &["export", "@last", "--format", "markdown"]);
    assert_eq!(stdout(&env, &["export", "@last", "--format", "markdown", "-o", "-"]), plain);
    assert!(!env.work().join("-").exists());
}

#[test]
fn a_dash_reads_what_an_agent_said_from_stdin() {
    let mut env = TestEnv::new();
    let id = env.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]).line();
    let typed = env.feed(&["agent", "say", &id, "-", "--role", "user"], "two\nlines\n");
    assert_eq!(typed.code, Some(0), "{}", typed.stderr);
    assert_eq!(stdout(&env, &["agent", "turns", &id]), "user: two\n  lines\n");
}

#[test]
fn a_dry_run_says_for_each_command_what_it_does_there() {
    let env = TestEnv::new();
    let help = |args: &[&str]| {
        let words = stdout(&env, &[args, &["--help"]].concat());
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let plans = "--dry-run Shows the plan with its variables filled in, and ends";
    assert!(help(&["flow", "run"]).contains(plans) && help(&["work"]).contains(plans));
    assert!(help(&["run"]).contains("--dry-run Asks the model, and changes nothing outside"));
    assert!(help(&["resume"]).contains("For a flow, shows what would run next, and exits"));
}
