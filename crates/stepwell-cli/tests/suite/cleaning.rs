//! delete, trash, cleanup.

use insta::assert_snapshot;

use crate::desk::{AUTH, Desk, MIGRATION, TESTS, WIDE};

#[test]
fn what_is_deleted_comes_back() {
    let mut desk = Desk::furnished();
    desk.say("trash list");
    desk.run(&["delete", AUTH]);
    desk.run(&["delete", AUTH]);
    desk.run(&["delete", TESTS, "nobody"]);
    desk.run(&["delete", TESTS, MIGRATION, TESTS]);
    desk.say("trash list");
    desk.say("sessions");
    desk.say("trash restore 20260223-14302");
    desk.run(&["trash", "restore", MIGRATION, "--json"]);
    desk.run(&["trash", "restore", WIDE]);
    desk.say("trash restore nobody");
    desk.say("sessions --tree");
    desk.say("trash");
    assert_snapshot!(desk.transcript());
}

#[test]
fn the_trash_is_emptied_for_good_after_a_question() {
    let mut desk = Desk::furnished();
    desk.say("trash empty");
    desk.run(&["delete", AUTH]);
    desk.say("trash empty");
    desk.say("trash list --json");
    desk.say("trash empty --yes");
    desk.say("trash empty --json");
    desk.run(&["show", AUTH]);
    let transcript = desk.transcript();
    assert!(transcript.contains("nobody can be asked"));
    let size = regex::Regex::new(r#""bytes":\d+"#).unwrap();
    assert_snapshot!(size.replace_all(&transcript, "\"bytes\":[N]"));
}

#[test]
fn cleanup_takes_the_old_and_leaves_the_rest() {
    let mut desk = Desk::furnished();
    desk.run(&["pin", TESTS]);
    desk.run(&["label", WIDE, "touched-today"]);
    desk.say("cleanup --dry-run");
    desk.say("cleanup --dry-run --json");
    desk.say("cleanup");
    desk.say("sessions");
    desk.say("cleanup --json");
    desk.say("trash restore 20260223-14302");
    let transcript = desk.transcript();
    let size = regex::Regex::new(r#"(\d+ B|"bytes":\d+)"#).unwrap();
    assert_snapshot!(size.replace_all(&transcript, "[SIZE]"));
}

#[test]
fn cleanup_follows_its_rules() {
    let size = regex::Regex::new(r#"(\d+ B|"bytes":\d+)"#).unwrap();
    let mut desk = Desk::furnished();
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
        desk.say(line);
    }
    assert_snapshot!(size.replace_all(&desk.transcript(), "[SIZE]"));
}

#[test]
fn a_running_session_survives_a_cleanup() {
    let mut desk = Desk::furnished();
    let well = desk.well();
    let running = well.resume(&AUTH.parse().unwrap()).unwrap();
    desk.say("cleanup --older-than 0");
    running.append(stepwell::Message::user("still here")).unwrap();
    desk.say("sessions --status running");
    let size = regex::Regex::new(r"\d+ B").unwrap();
    assert_snapshot!(size.replace_all(&desk.transcript(), "[SIZE]"));
}

#[test]
fn the_trash_lets_go_after_a_month_and_says_so() {
    let mut desk = Desk::furnished();
    desk.run(&["delete", TESTS]);
    desk.run(&["delete", MIGRATION]);
    // As if it had been deleted long ago.
    let month = 31 * 86_400 * 1_000_000_i64;
    let moved = desk.database().execute(
        "UPDATE sessions SET trashed = trashed - ?1 WHERE id = ?2",
        rusqlite::params![month, TESTS],
    );
    assert_eq!(moved, Ok(1));
    desk.run(&["tag", AUTH, "x"]);
    desk.say("trash list");
    desk.run(&["trash", "restore", TESTS]);
    assert_snapshot!(desk.transcript());
}

#[test]
fn cleanup_by_itself_happens_once_a_day() {
    let mut desk = Desk::furnished();
    // The user's own file: a project's can turn no cleanup on.
    let folder = desk.path("home/.config/stepwell");
    std::fs::create_dir_all(&folder).unwrap();
    let own = "[sessions]\nauto_cleanup = true\ncleanup_after_days = 7\n";
    std::fs::write(folder.join("config.toml"), own).unwrap();
    desk.run(&["tag", WIDE, "x"]);
    desk.say("trash restore 20260223-14302");
    desk.run(&["tag", WIDE, "y"]);
    desk.say("sessions");
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_subagents_session_comes_back_with_its_parent_only() {
    let mut desk = Desk::furnished();
    desk.quietly(&["delete", AUTH]).line();
    desk.run(&["trash", "restore", crate::desk::REVIEW]);
    desk.run(&["trash", "restore", AUTH]);
    assert_snapshot!(desk.transcript());
}

#[test]
fn an_agent_that_speaks_now_and_then_is_not_cleaned_up() {
    let mut desk = Desk::new();
    desk.quietly(&["agent", "create", "--agent", "a", "--purpose", "p", "--id", "agent-1"]).line();
    desk.say("cleanup --older-than 0");
    desk.set("STEPWELL_NOW", "2026-03-09T12:30:00Z");
    desk.say("cleanup --older-than 0 --dry-run");
    let size = regex::Regex::new(r"\d+ B").unwrap();
    assert_snapshot!(size.replace_all(&desk.transcript(), "[SIZE]"));
}

#[test]
fn cleanup_with_purge_erases_and_frees_the_disk_after_a_question() {
    let desk = Desk::new();
    let well = desk.well();
    let text: String = (0..200_000).map(|n| format!("{n} ")).collect();
    let mut created = well.draft("old");
    created.id = "old".parse().unwrap();
    let session = well.create(created).unwrap();
    session.append(stepwell::Message::user(text)).unwrap();
    drop((session, well));
    let size = || std::fs::metadata(desk.work().join(".stepwell/stepwell.db")).unwrap().len();
    let asked = desk.quietly(&["cleanup", "--purge", "--keep-last", "0"]);
    assert_ne!(asked.code, Some(0), "it asks: {}", asked.stdout);
    assert_eq!(desk.quietly(&["show", "old"]).code, Some(0));
    let before = size();
    let ran = desk.quietly(&["cleanup", "--purge", "--keep-last", "0", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("This cannot be undone"), "{}", ran.stderr);
    assert_eq!(desk.quietly(&["show", "old"]).code, Some(3));
    assert_eq!(desk.quietly(&["trash", "list", "--json"]).stdout, "");
    assert!(size() < before / 2, "{} of {before}", size());
}
