//! Coming from architect, M31A and GAIA-OPS: their sessions here, gone on with, and back again.

use insta::assert_snapshot;

use crate::desk::Desk;
use crate::elsewhere::{copy, fixtures};

/// A workspace in which the three were used, by a user who used M31A before.
fn desk() -> Desk {
    let mut desk = Desk::new();
    copy(&fixtures().join("architect"), &desk.work());
    copy(&fixtures().join("gaia"), &desk.work());
    copy(&fixtures().join("m31a/project"), &desk.work());
    copy(&fixtures().join("m31a/home"), &desk.path("home"));
    copy(&fixtures().join("m31a/older/home"), &desk.path("home"));
    desk.set("STEPWELL_NOW", "2026-05-10T03:20:00Z");
    desk
}

#[test]
fn what_was_begun_elsewhere_is_listed_resumed_and_taken_back() {
    let mut desk = desk();
    desk.say("import --yes");
    desk.say("import --yes");
    desk.say("sessions --all --tree");
    desk.say("tasks c4de0000");
    desk.say("state c4de0000");
    desk.say("ledger");
    desk.say("models import ../home/.m31a/recent_models.json");
    desk.say("models import ../home/.m31a/LEDGER.md");
    desk.say("models");
    desk.say("agent list");
    desk.say("agent should-resume agent-20260510-030600-d0c5f00d");
    desk.say("agent should-resume burnt-thrice");
    desk.say("agent update agent-20260510-030600-d0c5f00d --phase planning");
    desk.say("export agent-20260510-030600-d0c5f00d --format gaia");
    desk.file("m.yaml", "- text: one\n- text: I went on.\n");
    desk.say("resume 20260507-071000-ba4e03 --model script:m.yaml");
    desk.say("export 20260507-071000-ba4e03 --format architect -o back.json");
    desk.say("export c4de0000 --format m31a");
    desk.say("export c4de0000 --format m31a -o back");
    desk.say("export c4de0000 --format architect --truncate -o cut.json");
    desk.say("verify");
    assert_snapshot!(desk.transcript());
    let back = std::fs::read_to_string(desk.work().join("back.json")).unwrap();
    assert!(back.contains("I went on."), "{back}");
}
