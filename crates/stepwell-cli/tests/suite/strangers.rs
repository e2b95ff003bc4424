//! Flows that someone else wrote or began: what they may not do with what is the user's.

use stepwell_strict::Say;

use crate::running::with_provider;
use crate::test_env::{Ran, TestEnv};

/// A question, then a model's answer, at an address that the spec names.
fn spec(provider: &str, host: &str) -> String {
    format!(
        "version: 0\nname: hosted\nagents: {{writer: {{prompt: You write.}}}}\n\
         runtime: {{provider: {provider}, model_id: large, host: '{host}'}}\n\
         pattern:\n  type: chain\n  config:\n    steps:\n\
         \x20     - {{type: hitl, prompt: 'Shall it be written?'}}\n\
         \x20     - {{agent: writer, input: 'Write.'}}\n"
    )
}

fn ends(ran: &Ran, code: i32) {
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
}

/// The same folder, in the hands of someone who did not begin what is in it.
fn hand_on(env: &mut TestEnv) {
    let home = env.path("stranger");
    std::fs::create_dir_all(&home).unwrap();
    env.set("HOME", home.to_str().unwrap());
}

#[test]
fn a_host_that_a_spec_names_is_not_sent_the_users_key() {
    let (mut env, strict, _runtime) = with_provider("openai");
    env.set("OPENAI_API_KEY", "sk-of-the-victim-0123456789");
    env.file("flow.yaml", &spec("openai", strict.base_url().trim_end_matches("/v1")));
    let ran = env.quietly(&["flow", "run", "flow.yaml"]);
    ends(&ran, 8);
    assert!(ran.stderr.contains("is asked without your key for openai"), "{}", ran.stderr);
    assert!(ran.stderr.contains("[providers.NAME]"), "{}", ran.stderr);
    // It is refused for want of a key, and was sent none.
    ends(&env.quietly(&["resume", "@last", "--respond", "yes"]), 4);
    let asked = strict.asked();
    assert!(!asked.is_empty());
    for asked in &asked {
        let sent = format!("{:?}", asked.headers);
        assert!(!sent.contains("victim") && !sent.contains(strict.key()), "{sent}");
    }
}

#[test]
fn a_host_that_the_user_gave_the_key_for_is_sent_it() {
    let (env, strict, _runtime) = with_provider("openai");
    strict.push(Say::text("Written."));
    env.file("flow.yaml", &spec("local", &strict.base_url()));
    let ran = env.quietly(&["flow", "run", "flow.yaml"]);
    ends(&ran, 8);
    assert!(!ran.stderr.contains("without your key"), "{}", ran.stderr);
    let ran = env.quietly(&["resume", "@last", "--respond", "yes"]);
    ends(&ran, 0);
    assert_eq!((ran.stdout.as_str(), strict.rejected()), ("Written.\n", 0));
}

#[test]
fn a_session_of_someone_else_sends_nothing_to_addresses_of_its_own() {
    let (mut env, strict, _runtime) = with_provider("openai");
    env.file("flow.yaml", &spec("ollama", &strict.base_url()));
    ends(&env.quietly(&["flow", "run", "flow.yaml"]), 8);
    hand_on(&mut env);
    let ran = env.quietly(&["resume", "@last", "--respond", "yes"]);
    ends(&ran, 1);
    let said = format!("would send its conversations to {}", strict.base_url());
    assert!(ran.stderr.contains(&said) && ran.stderr.contains("--mode"), "{}", ran.stderr);
    assert_eq!(strict.asked().len(), 0);
    let answered = env.quietly(&["log", "@last"]).stdout.contains("gate_answered");
    assert!(!answered, "nothing was recorded");
}

#[test]
fn a_session_of_someone_else_connects_to_no_server_of_its_own() {
    let mut env = TestEnv::new();
    let server =
        "tools: {mcp: [{id: far, url: 'http://127.0.0.1:9/mcp'}]}\nagents: {writer: {tools: [far],";
    let spec = spec("ollama", "http://localhost:11434");
    let before = "agents: {writer: {";
    // It is begun without the server, as an importer would: nothing answers there.
    env.file("flow.yaml", &spec);
    ends(&env.quietly(&["flow", "run", "flow.yaml"]), 8);
    hand_on(&mut env);
    ends(&env.quietly(&["resume", "@last"]), 8);
    env.file("flow.yaml", &spec.replace(before, server));
    let ran = env.quietly(&["resume", "@last", "--use-current-spec"]);
    ends(&ran, 1);
    assert!(ran.stderr.contains("would connect to http://127.0.0.1:9/mcp"), "{}", ran.stderr);
}
