//! label, tag, pin, checkpoint, fork, abandon.

use insta::assert_snapshot;

use crate::desk::{AUTH, Desk, MIGRATION, TESTS};

#[test]
fn labels_tags_and_pins_are_attributes_of_a_session() {
    let mut desk = Desk::furnished();
    desk.run(&["label", AUTH, "auth"]);
    desk.say("label auth other --json");
    desk.run(&["label", TESTS, "other"]);
    desk.run(&["label", "other"]);
    desk.run(&["label", AUTH, "@last"]);
    desk.run(&["label", AUTH, "two\nlines"]);
    desk.run(&["tag", AUTH, "a", "b"]);
    desk.run(&["untag", AUTH, "a", "--json"]);
    desk.run(&["untag", AUTH, "b"]);
    desk.run(&["tag", AUTH]);
    desk.run(&["pin", AUTH]);
    desk.run(&["unpin", AUTH, "--json"]);
    desk.say("pin nobody");
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_checkpoint_names_a_point_to_fork_from() {
    let mut desk = Desk::furnished();
    desk.run(&["checkpoint", AUTH]);
    desk.run(&["checkpoint", AUTH, "named", "--json"]);
    let fork = desk.run(&["fork", AUTH, "--at", "before-tests"]).line();
    let shared = desk.quietly(&["log", &fork]).json();
    assert_eq!(shared.len(), 10);
    assert_eq!((&shared[8]["kind"], &shared[9]["kind"]), (&"created".into(), &"status".into()));
    desk.run(&["fork", AUTH, "--at", "3", "--json"]);
    desk.run(&["fork", AUTH, "--at", "99"]);
    desk.run(&["fork", AUTH, "--at", "nowhere"]);
    desk.run(&["fork", MIGRATION, "--at", "nowhere"]);
    desk.say("fork nobody");
    desk.run(&["show", &fork]);
    assert_snapshot!(desk.transcript());
}

#[test]
fn an_abandoned_session_stays_and_says_so() {
    let mut desk = Desk::furnished();
    desk.run(&["abandon", AUTH]);
    desk.run(&["abandon", MIGRATION, "--json"]);
    desk.run(&["sessions", "--status", "abandoned"]);
    let agent = desk.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]).line();
    desk.run(&["abandon", &agent]);
    desk.run(&["agent", "should-resume", &agent]);
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_session_that_runs_elsewhere_is_busy() {
    let mut desk = Desk::furnished();
    let well = desk.well();
    let running = well.resume(&AUTH.parse().unwrap()).unwrap();
    desk.run(&["checkpoint", AUTH, "now"]);
    desk.run(&["abandon", AUTH]);
    desk.run(&["delete", AUTH]);
    desk.run(&["purge", AUTH, "--yes"]);
    desk.run(&["scrub", "auth", AUTH, "--yes"]);
    // A label reaches a running session.
    desk.run(&["label", AUTH, "mine"]);
    assert_snapshot!(desk.transcript());
    drop(running);
    assert_eq!(desk.quietly(&["checkpoint", AUTH, "now"]).code, Some(0));
}
