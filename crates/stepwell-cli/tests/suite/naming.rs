//! label, tag, pin, checkpoint, fork, abandon.

use insta::assert_snapshot;

use crate::test_env::{AUTH, MIGRATION, TESTS, TestEnv};

#[test]
fn labels_tags_and_pins_are_attributes_of_a_session() {
    let mut env = TestEnv::furnished();
    env.run(&["label", AUTH, "auth"]);
    env.say("label auth other --json");
    env.run(&["label", TESTS, "other"]);
    env.run(&["label", "other"]);
    env.run(&["label", AUTH, "@last"]);
    env.run(&["label", AUTH, "two\nlines"]);
    env.run(&["tag", AUTH, "a", "b"]);
    env.run(&["untag", AUTH, "a", "--json"]);
    env.run(&["untag", AUTH, "b"]);
    env.run(&["tag", AUTH]);
    env.run(&["pin", AUTH]);
    env.run(&["unpin", AUTH, "--json"]);
    env.say("pin nobody");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_checkpoint_names_a_point_to_fork_from() {
    let mut env = TestEnv::furnished();
    env.run(&["checkpoint", AUTH]);
    env.run(&["checkpoint", AUTH, "named", "--json"]);
    let fork = env.run(&["fork", AUTH, "--at", "before-tests"]).line();
    let shared = env.quietly(&["log", &fork]).json();
    assert_eq!(shared.len(), 10);
    assert_eq!((&shared[8]["kind"], &shared[9]["kind"]), (&"created".into(), &"status".into()));
    env.run(&["fork", AUTH, "--at", "3", "--json"]);
    env.run(&["fork", AUTH, "--at", "99"]);
    env.run(&["fork", AUTH, "--at", "nowhere"]);
    env.run(&["fork", MIGRATION, "--at", "nowhere"]);
    env.say("fork nobody");
    env.run(&["show", &fork]);
    assert_snapshot!(env.transcript());
}

#[test]
fn an_abandoned_session_stays_and_says_so() {
    let mut env = TestEnv::furnished();
    env.run(&["abandon", AUTH]);
    env.run(&["abandon", MIGRATION, "--json"]);
    env.run(&["sessions", "--status", "abandoned"]);
    let agent = env.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]).line();
    env.run(&["abandon", &agent]);
    env.run(&["agent", "should-resume", &agent]);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_session_that_runs_elsewhere_is_busy() {
    let mut env = TestEnv::furnished();
    let well = env.well();
    let running = well.resume(&AUTH.parse().unwrap()).unwrap();
    env.run(&["checkpoint", AUTH, "now"]);
    env.run(&["abandon", AUTH]);
    env.run(&["delete", AUTH]);
    env.run(&["purge", AUTH, "--yes"]);
    env.run(&["scrub", "auth", AUTH, "--yes"]);
    // A label reaches a running session.
    env.run(&["label", AUTH, "mine"]);
    assert_snapshot!(env.transcript());
    drop(running);
    assert_eq!(env.quietly(&["checkpoint", AUTH, "now"]).code, Some(0));
}
