//! config, and where values come from.

use insta::assert_snapshot;

use crate::desk::Desk;

#[test]
fn every_value_says_where_it_came_from() {
    let mut desk = Desk::new();
    desk.say("config");
    desk.file("stepwell.toml", "[sessions]\ncleanup_after_days = 9\n\n[agent]\nmax_errors = 5\n");
    desk.say("config set sessions.cleanup_after_days 11 --user");
    desk.say("config set agent.resume_timeout 45m --user --json");
    desk.say("config get sessions.cleanup_after_days");
    desk.say("config get agent.resume_timeout --json");
    desk.set("STEPWELL_AGENT_MAX_ERRORS", "6");
    desk.say("config get agent.max_errors --json");
    desk.say("config get agent.max_errors --json --config agent.max_errors=7");
    desk.say("config set sessions.cleanup_after_days 12");
    desk.say("config get sessions.cleanup_after_days --json");
    desk.say("config list --json");
    assert_snapshot!(desk.transcript());
}

#[test]
fn unknown_keys_and_wrong_values_are_errors_that_name_their_place() {
    let mut desk = Desk::new();
    let wrong = [
        "[sessions]\n\ncleanup_days = 9\n",
        "[session]\nauto_save = true\n",
        "sessions = 3\n",
        "[sessions.auto_save]\nx = 1\n",
        "[sessions]\ncleanup_after_days = -9\n",
        "[sessions]\ncleanup_after_days = \"9\"\n",
        "[agent]\nresume_timeout = 30\n",
        "[agent\n",
        "[[agent]]\nmax_errors = 3\n",
    ];
    for text in wrong {
        desk.file("stepwell.toml", text);
        assert_eq!(desk.say("sessions").code, Some(3), "{text}");
    }
    std::fs::remove_file(desk.work().join("stepwell.toml")).unwrap();
    desk.say("config get sessions.cleanup_days");
    desk.say("config set sessions.cleanup_days 3");
    desk.say("config set sessions.cleanup_after_days never");
    desk.say("sessions --config sessions.cleanup_days=3");
    desk.say("sessions --config nonsense");
    desk.set("STEPWELL_SESSIONS_CLEANUP_DAYS", "3");
    desk.say("sessions");
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_key_that_is_none_is_answered_with_the_nearest_one() {
    let desk = Desk::new();
    for args in [&["get", "sesions.retention_day"][..], &["unset", "retention_day"]] {
        let ran = desk.quietly(&[&["config"], args].concat());
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert!(ran.stderr.contains("did you mean sessions.retention_days?"), "{}", ran.stderr);
    }
}

#[test]
fn ids_look_as_configured() {
    let desk = Desk::new();
    let make = |flags: &[&str]| {
        let args = ["agent", "create", "--agent", "a", "--purpose", "p"];
        let args: Vec<&str> = args.iter().chain(flags).copied().collect();
        desk.quietly(&args).line()
    };
    let hex = make(&["--config", "sessions.id_format=hex", "--config", "sessions.id_length=12"]);
    assert!(hex.len() == 12 && hex.chars().all(|c| c.is_ascii_hexdigit()), "{hex}");
    assert_eq!(make(&["--config", "sessions.id_format=uuid"]).len(), 36);
    assert_eq!(make(&[]).len(), "20260223-143022-a1b2c3".len());
}
