//! delete, trash, cleanup.

use insta::assert_snapshot;

use crate::test_env::{AUTH, MIGRATION, TESTS, TestEnv, WIDE};

#[test]
fn what_is_deleted_comes_back() {
    let mut env = TestEnv::furnished();
    env.say("trash list");
    env.run(&["delete", AUTH]);
    env.run(&["delete", AUTH]);
    env.run(&["delete", TESTS, "nobody"]);
    env.run(&["delete", TESTS, MIGRATION, TESTS]);
    env.say("trash list");
    env.say("sessions");
    env.say("trash restore 20260223-14302");
    env.run(&["trash", "restore", MIGRATION, "--json"]);
    env.run(&["trash", "restore", WIDE]);
    env.say("trash restore nobody");
    env.say("sessions --tree");
    env.say("trash");
    assert_snapshot!(env.transcript());
}

#[test]
fn the_trash_is_emptied_for_good_after_a_question() {
    let mut env = TestEnv::furnished();
    env.say("trash empty");
    env.run(&["delete", AUTH]);
    env.say("trash empty");
    env.say("trash list --json");
    env.say("trash empty --yes");
    env.say("trash empty --json");
    env.run(&["show", AUTH]);
    let transcript = env.transcript();
    assert!(transcript.contains("nobody can be asked"));
    let size = regex::Regex::new(r#""bytes":\d+"#).unwrap();
    assert_snapshot!(size.replace_all(&transcript, "\"bytes\":[N]"));
}

#[test]
fn cleanup_takes_the_old_and_leaves_the_rest() {
    let mut env = TestEnv::furnished();
    env.run(&["pin", TESTS]);
    env.run(&["label", WIDE, "touched-today"]);
    env.say("cleanup --dry-run");
    env.say("cleanup --dry-run --json");
    env.say("cleanup");
    env.say("sessions");
    env.say("cleanup --json");
    env.say("trash restore 20260223-14302");
    let transcript = env.transcript();
    let size = regex::Regex::new(r#"(\d+ B|"bytes":\d+)"#).unwrap();
    assert_snapshot!(size.replace_all(&transcript, "[SIZE]"));
}

#[test]
fn cleanup_follows_its_rules() {
    let size = regex::Regex::new(r#"(\d+ B|"bytes":\d+)"#).unwrap();
    let mut env = TestEnv::furnished();
    for line in [
        "cleanup --dry-run --status partial",
        "cleanup --dry-run --tag ci",
        "cleanup --dry-run --keep-last 3",
        "cleanup --dry-run --older-than 99999",
        "cleanup --dry-run --max-bytes 1KB",
        "cleanup --dry-run --config sessions.cleanup_after_days=99999",
        "cleanup --older-than -1",
        "cleanup --older-than soon",
        "cleanup --older-than 1.5",
        "cleanup --max-bytes much",
        "cleanup --status sleeping",
    ] {
        env.say(line);
    }
    assert_snapshot!(size.replace_all(&env.transcript(), "[SIZE]"));
}

#[test]
fn a_running_session_survives_a_cleanup() {
    let mut env = TestEnv::furnished();
    let well = env.well();
    let running = well.resume(&AUTH.parse().unwrap()).unwrap();
    env.say("cleanup --older-than 0");
    running.append(stepwell::Message::user("still here")).unwrap();
    env.say("sessions --status running");
    let size = regex::Regex::new(r"\d+ B").unwrap();
    assert_snapshot!(size.replace_all(&env.transcript(), "[SIZE]"));
}

#[test]
fn the_trash_lets_go_after_a_month_and_says_so() {
    let mut env = TestEnv::furnished();
    env.run(&["delete", TESTS]);
    env.run(&["delete", MIGRATION]);
    // As if it had been deleted long ago.
    let month = 31 * 86_400 * 1_000_000_i64;
    let moved = env.database().execute(
        "UPDATE sessions SET trashed = trashed - ?1 WHERE id = ?2",
        rusqlite::params![month, TESTS],
    );
    assert_eq!(moved, Ok(1));
    env.run(&["tag", AUTH, "x"]);
    env.say("trash list");
    env.run(&["trash", "restore", TESTS]);
    assert_snapshot!(env.transcript());
}

#[test]
fn cleanup_by_itself_happens_once_a_day() {
    let mut env = TestEnv::furnished();
    // The user's own file: a project's can turn no cleanup on.
    let folder = env.path("home/.config/stepwell");
    std::fs::create_dir_all(&folder).unwrap();
    let own = "[sessions]\nauto_cleanup = true\ncleanup_after_days = 7\n";
    std::fs::write(folder.join("config.toml"), own).unwrap();
    env.run(&["tag", WIDE, "x"]);
    env.say("trash restore 20260223-14302");
    env.run(&["tag", WIDE, "y"]);
    env.say("sessions");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_subagents_session_comes_back_with_its_parent_only() {
    let mut env = TestEnv::furnished();
    env.quietly(&["delete", AUTH]).line();
    env.run(&["trash", "restore", crate::test_env::REVIEW]);
    env.run(&["trash", "restore", AUTH]);
    assert_snapshot!(env.transcript());
}

#[test]
fn an_agent_that_speaks_now_and_then_is_not_cleaned_up() {
    let mut env = TestEnv::new();
    env.quietly(&["agent", "create", "--agent", "a", "--purpose", "p", "--id", "agent-1"]).line();
    env.say("cleanup --older-than 0");
    env.set("STEPWELL_NOW", "2026-03-09T12:30:00Z");
    env.say("cleanup --older-than 0 --dry-run");
    let size = regex::Regex::new(r"\d+ B").unwrap();
    assert_snapshot!(size.replace_all(&env.transcript(), "[SIZE]"));
}

#[test]
fn cleanup_with_purge_erases_and_frees_the_disk_after_a_question() {
    let env = TestEnv::new();
    let well = env.well();
    let text: String = (0..200_000).map(|n| format!("{n} ")).collect();
    let mut created = well.draft("old");
    created.id = "old".parse().unwrap();
    let session = well.create(created).unwrap();
    session.append(stepwell::Message::user(text)).unwrap();
    drop((session, well));
    let size = || std::fs::metadata(env.work().join(".stepwell/stepwell.db")).unwrap().len();
    let asked = env.quietly(&["cleanup", "--purge", "--keep-last", "0"]);
    assert_ne!(asked.code, Some(0), "it asks: {}", asked.stdout);
    assert_eq!(env.quietly(&["show", "old"]).code, Some(0));
    let before = size();
    let ran = env.quietly(&["cleanup", "--purge", "--keep-last", "0", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("This cannot be undone"), "{}", ran.stderr);
    assert_eq!(env.quietly(&["show", "old"]).code, Some(3));
    assert_eq!(env.quietly(&["trash", "list", "--json"]).stdout, "");
    assert!(size() < before / 2, "{} of {before}", size());
}

#[test]
fn a_projects_shorter_age_is_ignored_by_cleanup_which_says_so() {
    let env = TestEnv::furnished();
    env.file("stepwell.toml", "[sessions]\ncleanup_after_days = 1\n");
    let home = env.path("home/.config/stepwell");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.toml"), "[sessions]\ncleanup_after_days = 90\n").unwrap();
    let ran = env.quietly(&["cleanup", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for said in ["stepwell.toml", "cleanup_after_days", "90 days", "cannot shorten"] {
        assert!(ran.stderr.contains(said), "{said} in {}", ran.stderr);
    }
    assert!(ran.stderr.contains("hint: stepwell cleanup --older-than 1"), "{}", ran.stderr);
    assert!(ran.stdout.ends_with("removed: 0\n"), "{}", ran.stdout);
    // So of agents' sessions.
    env.file("stepwell.toml", "[agent]\ncleanup_after_hours = 1\n");
    let ran = env.quietly(&["agent", "cleanup", "--dry-run"]);
    for said in ["cleanup_after_hours = 1", "own 24 hours", "stepwell agent cleanup --hours 1"] {
        assert!(ran.stderr.contains(said), "{said} in {}", ran.stderr);
    }
    env.file("stepwell.toml", "[sessions]\ncleanup_after_days = 1\n");
    // Nothing is ignored where the age was typed, or another rule stands alone.
    for args in [&["--older-than", "1"][..], &["--keep-last", "1"]] {
        let ran = env.quietly(&[&["cleanup", "--dry-run"], args].concat());
        assert!(!ran.stderr.contains("shorten"), "{}", ran.stderr);
    }
}
