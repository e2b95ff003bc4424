//! config, and where values come from.

use insta::assert_snapshot;

use crate::test_env::TestEnv;

#[test]
fn every_value_says_where_it_came_from() {
    let mut env = TestEnv::new();
    env.say("config");
    env.file("stepwell.toml", "[sessions]\ncleanup_after_days = 9\n\n[agent]\nmax_errors = 5\n");
    env.say("config set sessions.cleanup_after_days 11 --user");
    env.say("config set agent.resume_timeout 45m --user --json");
    env.say("config get sessions.cleanup_after_days");
    env.say("config get agent.resume_timeout --json");
    env.set("STEPWELL_AGENT_MAX_ERRORS", "6");
    env.say("config get agent.max_errors --json");
    env.say("config get agent.max_errors --json --config agent.max_errors=7");
    env.say("config set sessions.cleanup_after_days 12");
    env.say("config get sessions.cleanup_after_days --json");
    env.say("config list --json");
    assert_snapshot!(env.transcript());
}

#[test]
fn unknown_keys_and_wrong_values_are_errors_that_name_their_place() {
    let mut env = TestEnv::new();
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
        env.file("stepwell.toml", text);
        assert_eq!(env.say("sessions").code, Some(3), "{text}");
    }
    std::fs::remove_file(env.work().join("stepwell.toml")).unwrap();
    env.say("config get sessions.cleanup_days");
    env.say("config set sessions.cleanup_days 3");
    env.say("config set sessions.cleanup_after_days never");
    env.say("sessions --config sessions.cleanup_days=3");
    env.say("sessions --config nonsense");
    env.set("STEPWELL_SESSIONS_CLEANUP_DAYS", "3");
    env.say("sessions");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_key_that_is_none_is_answered_with_the_nearest_one() {
    let env = TestEnv::new();
    for args in [&["get", "sesions.retention_day"][..], &["unset", "retention_day"]] {
        let ran = env.quietly(&[&["config"], args].concat());
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert!(ran.stderr.contains("did you mean sessions.retention_days?"), "{}", ran.stderr);
    }
}

#[test]
fn ids_look_as_configured() {
    let env = TestEnv::new();
    let make = |flags: &[&str]| {
        let args = ["agent", "create", "--agent", "a", "--purpose", "p"];
        let args: Vec<&str> = args.iter().chain(flags).copied().collect();
        env.quietly(&args).line()
    };
    let hex = make(&["--config", "sessions.id_format=hex", "--config", "sessions.id_length=12"]);
    assert!(hex.len() == 12 && hex.chars().all(|c| c.is_ascii_hexdigit()), "{hex}");
    assert_eq!(make(&["--config", "sessions.id_format=uuid"]).len(), 36);
    assert_eq!(make(&[]).len(), "20260223-143022-a1b2c3".len());
}
