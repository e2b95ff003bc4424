//! What someone meets who uses Stepwell for the first time.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::desk::{AUTH, Desk, TESTS};
use crate::running::{SCRIPT, desk as with_script, one, run};

fn stderr(desk: &Desk, args: &[&str], code: i32) -> String {
    let ran = desk.quietly(args);
    assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stderr
}

fn stdout(desk: &Desk, args: &[&str]) -> String {
    let ran = desk.quietly(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

#[test]
fn any_unique_part_of_an_id_names_a_session() {
    let desk = Desk::furnished();
    for part in ["a1b2c3", "a1b", "b2c3", "143022", AUTH] {
        let shown = desk.quietly(&["show", part, "--json"]).json().remove(0);
        assert_eq!(shown["id"], AUTH, "{part}");
    }
    assert!(stderr(&desk, &["show", "20260223"], 3).contains("type more of the id"));
}

#[test]
fn a_list_in_colour_dims_what_need_not_be_typed() {
    let desk = Desk::furnished();
    let listed = stdout(&desk, &["sessions", "--color", "always"]);
    assert!(
        listed.contains("\u{1b}[2m20260223-151045-\u{1b}[0md4e5\u{1b}[2mf6\u{1b}[0m"),
        "{listed}"
    );
    assert!(!stdout(&desk, &["sessions"]).contains('\u{1b}'));
}

#[test]
fn resume_with_a_text_goes_on_with_it() {
    let script = format!("{SCRIPT}  - text: More is done too.\n");
    let desk = with_script(&script);
    one(&desk, &run(&["--mode", "yolo"]), 0);
    let told = stderr(&desk, &["resume", "@last"], 0);
    assert!(told.contains("was finished already") && told.contains("\"TEXT\""), "{told}");
    let more = one(&desk, &["resume", "@last", "and now more"], 0);
    assert_eq!(more["output"], "More is done too.");
    let log = stdout(&desk, &["log", "@last", "--json"]);
    assert!(log.contains("and now more"), "{log}");
    let told = stderr(&desk, &["resume", "and now more"], 3);
    assert!(told.contains("stepwell resume @last"), "{told}");
}

#[test]
fn what_is_no_session_is_not_recognised_and_makes_no_store() {
    let desk = Desk::new();
    desk.file("empty.json", "{}");
    for (args, says) in [
        (&["import", "nofile"][..], "not recognised: nofile"),
        (&["import", "empty.json"], "not recognised: "),
        (&["import", "empty.json", "--from", "codex"], "not recognised: "),
        (&["convert", "nofile", "out", "--to", "json"], "nofile"),
        (&["convert", "empty.json", "out", "--to", "json"], "no session of a known format"),
    ] {
        let told = stderr(&desk, args, 3);
        assert!(told.contains(says) && !told.contains("damaged:"), "{args:?}: {told}");
    }
    assert!(!desk.work().join(".stepwell").exists());
}

#[test]
fn a_backup_finds_its_way_back() {
    let desk = Desk::furnished();
    stdout(&desk, &["backup", "kept.db"]);
    let listed = stdout(&desk, &["sessions", "--json"]);
    let told = stderr(&desk, &["--store", "kept.db", "sessions"], 3);
    assert!(told.contains("restore"), "{told}");
    // Into another folder, which then is a store.
    stdout(&desk, &["--store", "elsewhere", "restore", "kept.db"]);
    let there = stdout(&desk, &["--store", "elsewhere", "sessions"]);
    assert!(there.contains(AUTH) && there.contains(TESTS), "{there}");
    // In place of what is here, which is kept.
    stdout(&desk, &["delete", AUTH]);
    assert!(stderr(&desk, &["restore", "kept.db"], 1).contains("--replace"));
    let told = desk.quietly(&["restore", "kept.db", "--replace"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(told.stderr.contains("stepwell.db.before-"), "{}", told.stderr);
    assert_eq!(stdout(&desk, &["sessions", "--json"]), listed);
    assert_eq!(desk.quietly(&["verify"]).code, Some(0));
    // What is no backup leaves all as it is.
    desk.file("no.db", "not a database");
    assert_ne!(desk.quietly(&["restore", "no.db", "--replace"]).code, Some(0));
    assert_eq!(stdout(&desk, &["sessions", "--json"]), listed);
    assert_eq!(desk.quietly(&["restore", "nofile"]).code, Some(3));
}

#[test]
fn a_search_finds_each_message_once() {
    let desk = with_script(SCRIPT);
    one(&desk, &run(&["--mode", "yolo"]), 0);
    let found = desk.quietly(&["search", "say", "hello", "--json"]).json();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["kind"], "message");
    let fork = desk.quietly(&["fork", "@last", "--label", "again"]).line();
    assert_eq!(desk.quietly(&["search", "say hel", "--json"]).json().len(), 1);
    let labelled = one(&desk, &["show", "again"], 0);
    assert_eq!(labelled["id"], Value::from(fork));
    // What every agent is told is found only if it is asked for.
    assert!(desk.quietly(&["search", "workspace", "--json"]).json().is_empty());
    assert!(!desk.quietly(&["search", "workspace", "--system", "--json"]).json().is_empty());
    let away = Desk::new();
    assert!(stderr(&away, &["search", "word"], 0).contains("no store here"));
}

#[test]
fn a_store_hides_itself_from_git_and_a_healthy_one_has_no_findings() {
    let desk = Desk::new();
    stdout(&desk, &["init"]);
    assert_eq!(desk.read(".stepwell/.gitignore"), "*\n");
    // Only then does the folder become a work tree.
    std::fs::create_dir(desk.work().join(".git")).unwrap();
    desk.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]);
    let told = stdout(&desk, &["doctor"]);
    assert!(!told.contains("behind") && !told.contains("wrong"), "{told}");
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(desk.work().join(".stepwell/stepwell.db"), open).unwrap();
    assert_eq!(desk.quietly(&["doctor"]).code, Some(1));
    stdout(&desk, &["doctor", "--repair"]);
    stdout(&desk, &["doctor"]);
}

#[test]
fn a_noun_alone_shows_and_changes_nothing() {
    let desk = Desk::furnished();
    let log = stdout(&desk, &["log", AUTH, "--json"]);
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
        let ran = desk.quietly(args);
        assert!(matches!(ran.code, Some(0 | 1)), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(stdout(&desk, &["log", AUTH, "--json"]), log);
}

#[test]
fn users_keep_metadata_of_their_own_on_sessions_and_checkpoints() {
    let desk = Desk::furnished();
    let kept = one(&desk, &["meta", AUTH, "ticket=T-1", "size:=3"], 0);
    assert_eq!(
        (&kept["metadata"]["ticket"], &kept["metadata"]["size"]),
        (&json!("T-1"), &json!(3))
    );
    assert!(one(&desk, &["meta", AUTH, "ticket:=null"], 0)["metadata"].get("ticket").is_none());
    assert!(stderr(&desk, &["meta", AUTH, "mode=yolo"], 2).contains("mode"));
    stdout(&desk, &["checkpoint", AUTH, "here", "--meta", "why=before lunch"]);
    let listed = desk.quietly(&["checkpoint", AUTH, "--json"]).json();
    let here = listed.iter().find(|it| it["name"] == "here").unwrap();
    assert_eq!(here["metadata"], json!({"why": "before lunch"}));
    assert!(stdout(&desk, &["checkpoint", AUTH]).contains("here (why=before lunch)"));
}

#[test]
fn a_setting_can_be_taken_back() {
    let desk = Desk::new();
    stdout(&desk, &["config", "set", "sessions.cleanup_after_days", "9"]);
    stdout(&desk, &["config", "unset", "sessions.cleanup_after_days"]);
    assert_eq!(stdout(&desk, &["config", "get", "sessions.cleanup_after_days"]), "7\n");
    let again = stdout(&desk, &["config", "unset", "sessions.cleanup_after_days"]);
    assert!(again.contains("is not set"), "{again}");
}

#[test]
fn turns_of_an_agent_are_recorded_and_the_last_ones_shown() {
    let mut desk = Desk::new();
    desk.file("stepwell.toml", "[agent]\nid_format = 'agent'\nshown_turns = 2\n");
    let id = desk.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]).line();
    assert!(id.starts_with("agent-2026") && id.len() == "agent-20260309-120000-12345678".len());
    stdout(&desk, &["agent", "update", &id, "--phase", "planning"]);
    stdout(&desk, &["agent", "say", &id, "--role", "user", "first"]);
    let lines = "{\"role\": \"assistant\", \"text\": \"second\"}\n\n\
                 {\"role\": \"user\", \"content\": \"third\"}\n";
    assert_eq!(desk.feed(&["agent", "say", &id], lines).code, Some(0));
    assert_eq!(desk.feed(&["agent", "say", &id], "nonsense\n").code, Some(2));
    let shown = desk.quietly(&["agent", "turns", &id, "--json"]).json();
    let texts: Vec<_> = shown.iter().map(|turn| turn["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["second", "third"]);
    assert_eq!(desk.quietly(&["agent", "turns", &id, "-n", "9", "--json"]).json().len(), 3);
    // Taken up again by a hook, it counts.
    let payload = format!("{{\"agent_id\": \"{id}\"}}");
    let answer = desk.feed(&["hook", "pre-delegate"], &payload).json().remove(0);
    assert_eq!(answer["should_resume"], true, "{answer}");
    let agent = desk.quietly(&["agent", "get", &id]).json().remove(0);
    assert_eq!((&agent["resumes"], &agent["turns"]), (&json!(1), &json!(3)));
    assert_eq!((&agent["phase"], &agent["status"]), (&json!("planning"), &json!("running")));
    let stats = desk.quietly(&["stats", "--json"]).json().remove(0);
    assert_eq!(stats["resume_rate"], json!(1), "{stats}");
    // What it died of is kept.
    let payload = format!("{{\"agent_id\": \"{id}\", \"error\": \"disk full\"}}");
    desk.feed(&["hook", "subagent-stop"], &payload);
    let agent = desk.quietly(&["agent", "get", &id]).json().remove(0);
    assert_eq!(agent["phase"], "failed");
    assert_eq!(agent["last_error"]["message"], "disk full", "{agent}");
    let listed = |flag: &str, when: &str| {
        desk.quietly(&["agent", "list", flag, when, "--json"]).json().len()
    };
    assert_eq!((listed("--since", "2026-03-01"), listed("--until", "2026-03-01")), (1, 0));
}

#[test]
fn a_dash_is_stdout_for_an_export() {
    let desk = Desk::furnished();
    let plain = stdout(&desk, &["export", "@last", "--format", "markdown"]);
    assert_eq!(stdout(&desk, &["export", "@last", "--format", "markdown", "-o", "-"]), plain);
    assert!(!desk.work().join("-").exists());
}

#[test]
fn a_dash_reads_what_an_agent_said_from_stdin() {
    let mut desk = Desk::new();
    let id = desk.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]).line();
    let typed = desk.feed(&["agent", "say", &id, "-", "--role", "user"], "two\nlines\n");
    assert_eq!(typed.code, Some(0), "{}", typed.stderr);
    assert_eq!(stdout(&desk, &["agent", "turns", &id]), "user: two\n  lines\n");
}

#[test]
fn a_dry_run_says_for_each_command_what_it_does_there() {
    let desk = Desk::new();
    let help = |args: &[&str]| {
        let words = stdout(&desk, &[args, &["--help"]].concat());
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let plans = "--dry-run Shows the plan with its variables filled in, and ends";
    assert!(help(&["flow", "run"]).contains(plans) && help(&["work"]).contains(plans));
    assert!(help(&["run"]).contains("--dry-run Asks the model, and changes nothing outside"));
    assert!(help(&["resume"]).contains("For a flow, shows what would run next, and exits"));
}
