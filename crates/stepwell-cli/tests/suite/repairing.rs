//! verify, doctor, and what is damaged.

use insta::assert_snapshot;

use crate::test_env::{AUTH, TESTS, TestEnv};

/// Changes an event behind the store's back.
fn break_event(env: &TestEnv, id: &str, seq: i64) {
    let changed = env.database().execute(
        "UPDATE events SET body = replace(body, 'a', 'b') WHERE pos = \
         ((SELECT key FROM sessions WHERE id = ?1) << 32) + ?2",
        rusqlite::params![id, seq],
    );
    assert_eq!(changed, Ok(1));
}

#[test]
fn a_sound_store_verifies() {
    let mut env = TestEnv::furnished();
    env.say("verify");
    env.run(&["verify", AUTH]);
    env.run(&["verify", AUTH, "--json"]);
    env.say("verify nobody");
    env.say("doctor");
    assert_eq!(env.quietly(&["verify", "--json"]).json().len(), 5);
    assert!(env.quietly(&["doctor", "--json"]).json().len() > 5);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_damaged_session_is_named_and_hides_no_other() {
    let mut env = TestEnv::furnished();
    break_event(&env, AUTH, 4);
    env.say("verify");
    env.run(&["verify", AUTH, "--json"]);
    env.say("sessions");
    env.say("sessions --status damaged --json");
    env.run(&["show", AUTH]);
    env.run(&["log", AUTH]);
    env.run(&["checkpoint", AUTH, "now"]);
    env.say("doctor");
    env.say("doctor --repair");
    env.run(&["show", TESTS, "--json"]);
    let size = regex::Regex::new(r#""bytes":\d+"#).unwrap();
    assert_snapshot!(size.replace_all(&env.transcript(), "\"bytes\":[N]"));
}

#[test]
fn damaged_sessions_can_be_deleted_and_purged() {
    let mut env = TestEnv::furnished();
    break_event(&env, AUTH, 4);
    let broken =
        env.database().execute("UPDATE sessions SET head = '{' WHERE id = ?1", [TESTS]).unwrap();
    assert_eq!(broken, 1);
    env.say("sessions");
    env.run(&["show", TESTS]);
    env.run(&["delete", TESTS]);
    env.run(&["purge", TESTS, "--yes"]);
    env.run(&["delete", AUTH]);
    env.run(&["purge", AUTH, "--yes"]);
    env.say("verify");
    let size = regex::Regex::new(r"\([\d.]+ K?B\)").unwrap();
    assert_snapshot!(size.replace_all(&env.transcript(), "([SIZE])"));
}

#[test]
fn a_head_that_was_lost_is_rebuilt() {
    let mut env = TestEnv::furnished();
    let broken =
        env.database().execute("UPDATE sessions SET head = '{' WHERE id = ?1", [TESTS]).unwrap();
    assert_eq!(broken, 1);
    env.run(&["verify", TESTS]);
    env.say("doctor --repair");
    env.run(&["verify", TESTS]);
    env.run(&["sessions", "--task", "add tests"]);
    assert_snapshot!(env.transcript());
}

#[test]
fn what_is_no_store_is_said_to_be_none() {
    let mut env = TestEnv::new();
    env.file(".stepwell/stepwell.db", "this is no database, however long it goes on about it");
    for line in ["sessions", "verify", "doctor", "agent create --agent a --purpose p"] {
        env.say(line);
    }
    assert!(env.read(".stepwell/stepwell.db").starts_with("this is no database"));
    assert_snapshot!(env.transcript());
}

/// Resumes a session in a process that then dies.
fn die_running(env: &TestEnv, id: &str) {
    let well = env.well();
    let running = well.resume(&id.parse().unwrap()).unwrap();
    // As if this process had been another one, which is gone.
    let changed = env
        .database()
        .execute("UPDATE leases SET holder = json_set(holder, '$.started', 'long ago')", []);
    assert!(changed.unwrap() >= 1);
    std::mem::forget(running);
}

#[test]
fn doctor_sees_what_others_could() {
    use std::os::unix::fs::PermissionsExt;
    let mut env = TestEnv::furnished();
    std::fs::create_dir_all(env.work().join(".git")).unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(env.work().join(".stepwell"), open).unwrap();
    die_running(&env, AUTH);
    let other = env.path("work/gone");
    std::fs::create_dir_all(&other).unwrap();
    env.quietly(&[
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
    env.say("doctor");
    env.say("doctor --repair");
    env.say("doctor");
    env.run(&["log", AUTH, "-n", "1"]);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_store_that_cannot_be_looked_at_is_not_taken_for_none() {
    let mut env = TestEnv::new();
    env.file(".stepwell", "a file");
    env.say("sessions");
    env.say("sessions --store nowhere");
    env.say("agent should-resume x --store nowhere");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_damaged_agent_hides_no_other() {
    let mut env = TestEnv::new();
    for id in ["agent-1", "agent-2"] {
        env.quietly(&["agent", "create", "--agent", "a", "--purpose", "p", "--id", id]).line();
        env.quietly(&["agent", "update", id, "--phase", "planning"]).line();
    }
    break_event(&env, "agent-1", 2);
    env.say("agent list --json");
    env.say("verify");
    env.say("agent should-resume agent-1");
    env.say("agent list");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_damaged_content_is_healed_from_the_file_that_has_it() {
    let env = TestEnv::furnished();
    env.file(
        "script.yaml",
        "- {text: one, calls: [{tool: write_file, arguments: {path: healed.txt, content: whole}}]}\n\
         - {text: done}\n",
    );
    let run = ["run", "go", "--model", "script:script.yaml", "--mode", "yolo", "--json"];
    let ran = env.quietly(&run);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let id = ran.json()[0]["session_id"].as_str().unwrap().to_owned();
    let digest = stepwell::model::Digest::of(b"whole");
    let changed = env.database().execute(
        "UPDATE blobs SET data = x'00' WHERE digest = ?1",
        rusqlite::params![digest.as_bytes().as_slice()],
    );
    assert_eq!(changed, Ok(1));
    assert_eq!(env.quietly(&["verify", &id]).code, Some(7));
    env.quietly(&["doctor", "--repair"]);
    let verified = env.quietly(&["verify", &id]);
    assert_eq!(verified.code, Some(0), "{}{}", verified.stdout, verified.stderr);
    // What is whole nowhere stays damaged.
    let broken = env.database().execute(
        "UPDATE blobs SET data = x'00' WHERE digest = ?1",
        rusqlite::params![digest.as_bytes().as_slice()],
    );
    assert_eq!(broken, Ok(1));
    env.file("healed.txt", "another");
    env.quietly(&["verify", &id]);
    env.quietly(&["doctor", "--repair"]);
    assert_eq!(env.quietly(&["verify", &id]).code, Some(7));
}
