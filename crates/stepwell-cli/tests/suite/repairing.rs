//! verify, doctor, and what is damaged.

use insta::assert_snapshot;

use crate::desk::{AUTH, Desk, TESTS};

/// Changes an event behind the store's back.
fn break_event(desk: &Desk, id: &str, seq: i64) {
    let changed = desk.database().execute(
        "UPDATE events SET body = replace(body, 'a', 'b') WHERE pos = \
         ((SELECT key FROM sessions WHERE id = ?1) << 32) + ?2",
        rusqlite::params![id, seq],
    );
    assert_eq!(changed, Ok(1));
}

#[test]
fn a_sound_store_verifies() {
    let mut desk = Desk::furnished();
    desk.say("verify");
    desk.run(&["verify", AUTH]);
    desk.run(&["verify", AUTH, "--json"]);
    desk.say("verify nobody");
    desk.say("doctor");
    assert_eq!(desk.quietly(&["verify", "--json"]).json().len(), 5);
    assert!(desk.quietly(&["doctor", "--json"]).json().len() > 5);
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_damaged_session_is_named_and_hides_no_other() {
    let mut desk = Desk::furnished();
    break_event(&desk, AUTH, 4);
    desk.say("verify");
    desk.run(&["verify", AUTH, "--json"]);
    desk.say("sessions");
    desk.say("sessions --status damaged --json");
    desk.run(&["show", AUTH]);
    desk.run(&["log", AUTH]);
    desk.run(&["checkpoint", AUTH, "now"]);
    desk.say("doctor");
    desk.say("doctor --repair");
    desk.run(&["show", TESTS, "--json"]);
    let size = regex::Regex::new(r#""bytes":\d+"#).unwrap();
    assert_snapshot!(size.replace_all(&desk.transcript(), "\"bytes\":[N]"));
}

#[test]
fn damaged_sessions_can_be_deleted_and_purged() {
    let mut desk = Desk::furnished();
    break_event(&desk, AUTH, 4);
    let broken =
        desk.database().execute("UPDATE sessions SET head = '{' WHERE id = ?1", [TESTS]).unwrap();
    assert_eq!(broken, 1);
    desk.say("sessions");
    desk.run(&["show", TESTS]);
    desk.run(&["delete", TESTS]);
    desk.run(&["purge", TESTS, "--yes"]);
    desk.run(&["delete", AUTH]);
    desk.run(&["purge", AUTH, "--yes"]);
    desk.say("verify");
    let size = regex::Regex::new(r"\([\d.]+ K?B\)").unwrap();
    assert_snapshot!(size.replace_all(&desk.transcript(), "([SIZE])"));
}

#[test]
fn a_head_that_was_lost_is_rebuilt() {
    let mut desk = Desk::furnished();
    let broken =
        desk.database().execute("UPDATE sessions SET head = '{' WHERE id = ?1", [TESTS]).unwrap();
    assert_eq!(broken, 1);
    desk.run(&["verify", TESTS]);
    desk.say("doctor --repair");
    desk.run(&["verify", TESTS]);
    desk.run(&["sessions", "--task", "add tests"]);
    assert_snapshot!(desk.transcript());
}

#[test]
fn what_is_no_store_is_said_to_be_none() {
    let mut desk = Desk::new();
    desk.file(".stepwell/stepwell.db", "this is no database, however long it goes on about it");
    for line in ["sessions", "verify", "doctor", "agent create --agent a --purpose p"] {
        desk.say(line);
    }
    assert!(desk.read(".stepwell/stepwell.db").starts_with("this is no database"));
    assert_snapshot!(desk.transcript());
}

/// Resumes a session in a process that then dies.
fn die_running(desk: &Desk, id: &str) {
    let well = desk.well();
    let running = well.resume(&id.parse().unwrap()).unwrap();
    // As if this process had been another one, which is gone.
    let changed = desk
        .database()
        .execute("UPDATE leases SET holder = json_set(holder, '$.started', 'long ago')", []);
    assert!(changed.unwrap() >= 1);
    std::mem::forget(running);
}

#[test]
fn doctor_sees_what_others_could() {
    use std::os::unix::fs::PermissionsExt;
    let mut desk = Desk::furnished();
    std::fs::create_dir_all(desk.work().join(".git")).unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(desk.work().join(".stepwell"), open).unwrap();
    die_running(&desk, AUTH);
    let other = desk.path("work/gone");
    std::fs::create_dir_all(&other).unwrap();
    desk.quietly(&[
        "-C",
        other.to_str().unwrap(),
        "agent",
        "create",
        "--agent",
        "a",
        "--purpose",
        "p",
    ]);
    std::fs::remove_dir_all(&other).unwrap();
    desk.say("doctor");
    desk.say("doctor --repair");
    desk.say("doctor");
    desk.run(&["log", AUTH, "-n", "1"]);
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_store_that_cannot_be_looked_at_is_not_taken_for_none() {
    let mut desk = Desk::new();
    desk.file(".stepwell", "a file");
    desk.say("sessions");
    desk.say("sessions --store nowhere");
    desk.say("agent should-resume x --store nowhere");
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_damaged_agent_hides_no_other() {
    let mut desk = Desk::new();
    for id in ["agent-1", "agent-2"] {
        desk.quietly(&["agent", "create", "--agent", "a", "--purpose", "p", "--id", id]).line();
        desk.quietly(&["agent", "update", id, "--phase", "planning"]).line();
    }
    break_event(&desk, "agent-1", 2);
    desk.say("agent list --json");
    desk.say("verify");
    desk.say("agent should-resume agent-1");
    desk.say("agent list");
    assert_snapshot!(desk.transcript());
}
