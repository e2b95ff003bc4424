//! Coming from architect, M31A and GAIA-OPS: their sessions here, gone on with, and back again.

use insta::assert_snapshot;
use serde_json::json;

use crate::elsewhere::{copy, fixtures};
use crate::test_env::TestEnv;

/// A workspace in which the three were used, by a user who used M31A before.
fn env() -> TestEnv {
    let mut env = TestEnv::new();
    copy(&fixtures().join("architect"), &env.work());
    copy(&fixtures().join("gaia"), &env.work());
    copy(&fixtures().join("m31a/project"), &env.work());
    copy(&fixtures().join("m31a/home"), &env.path("home"));
    copy(&fixtures().join("m31a/older/home"), &env.path("home"));
    env.set("STEPWELL_NOW", "2026-05-10T03:20:00Z");
    env
}

#[test]
fn what_was_begun_elsewhere_is_listed_resumed_and_taken_back() {
    let mut env = env();
    env.say("import --yes");
    env.say("import --yes");
    env.say("sessions --all --tree");
    env.say("tasks c4de0000");
    env.say("state c4de0000");
    env.say("ledger");
    env.say("models import ../home/.m31a/recent_models.json");
    env.say("models import ../home/.m31a/LEDGER.md");
    env.say("models");
    env.say("agent list");
    env.say("agent should-resume agent-20260510-030600-d0c5f00d");
    env.say("agent should-resume burnt-thrice");
    env.say("agent update agent-20260510-030600-d0c5f00d --phase planning");
    env.say("export agent-20260510-030600-d0c5f00d --format gaia");
    env.file("m.yaml", "- text: one\n- text: I went on.\n");
    env.say("resume 20260507-071000-ba4e03 --model script:m.yaml");
    env.say("export 20260507-071000-ba4e03 --format architect -o back.json");
    env.say("export c4de0000 --format m31a");
    env.say("export c4de0000 --format m31a -o back");
    env.say("export c4de0000 --format architect --truncate -o cut.json");
    env.say("verify");
    assert_snapshot!(env.transcript());
    let back = std::fs::read_to_string(env.work().join("back.json")).unwrap();
    assert!(back.contains("I went on."), "{back}");
}

#[test]
fn models_that_m31a_names_without_a_provider_get_the_names_that_a_run_takes() {
    let env = TestEnv::new();
    let both = "[providers.one]\nbase_url = \"http://127.0.0.1:9/v1\"\n\n\
        [providers.two]\nbase_url = \"http://127.0.0.1:9/v1\"\n\n\
        [prices.\"one/oat-1\"]\ninput = \"1\"\noutput = \"2\"\n\n\
        [prices.\"two/oat-1\"]\ninput = \"1\"\noutput = \"2\"\n";
    std::fs::create_dir_all(env.path("home/.config/stepwell")).unwrap();
    std::fs::write(env.path("home/.config/stepwell/config.toml"), both).unwrap();
    let theirs = json!({
        "recent": ["gpt-4o", "claude-sonnet-4-5", "oat-1", "openai/gpt-4.1", "deepseek-chat"],
        "favorites": {"gpt-4o": true, "nobodys-model": true, "gemini-2.5-pro": true},
    });
    env.file("recent.json", &theirs.to_string());
    let told = env.quietly(&["models", "import", "recent.json"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let known = env.quietly(&["models", "--json"]).json().remove(0);
    let recent = json!(["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "openai/gpt-4.1"]);
    assert_eq!(known["recent"], recent);
    assert_eq!(known["favourites"], json!(["gemini/gemini-2.5-pro", "openai/gpt-4o"]));
    for said in [
        "\"oat-1\" is left out: it may be one/oat-1 or two/oat-1; stepwell models add one/oat-1",
        "\"deepseek-chat\" is left out: it is a model of deepseek",
        "\"nobodys-model\" is left out: --model takes no such name",
    ] {
        assert!(told.stderr.contains(said), "{said} in {}", told.stderr);
    }
}
