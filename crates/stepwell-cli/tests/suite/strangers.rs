//! Flows that someone else wrote or began: what they may not do with what is the user's.

use stepwell_strict::Say;

use crate::desk::{Desk, Ran};
use crate::running::with_provider;

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
fn hand_on(desk: &mut Desk) {
    let home = desk.path("stranger");
    std::fs::create_dir_all(&home).unwrap();
    desk.set("HOME", home.to_str().unwrap());
}

#[test]
fn a_host_that_a_spec_names_is_not_sent_the_users_key() {
    let (mut desk, strict, _runtime) = with_provider("openai");
    desk.set("OPENAI_API_KEY", "sk-of-the-victim-0123456789");
    desk.file("flow.yaml", &spec("openai", strict.base_url().trim_end_matches("/v1")));
    let ran = desk.quietly(&["flow", "run", "flow.yaml"]);
    ends(&ran, 8);
    assert!(ran.stderr.contains("is asked without your key for openai"), "{}", ran.stderr);
    assert!(ran.stderr.contains("[providers.NAME]"), "{}", ran.stderr);
    // It is refused for want of a key, and was sent none.
    ends(&desk.quietly(&["resume", "@last", "--respond", "yes"]), 4);
    let asked = strict.asked();
    assert!(!asked.is_empty());
    for asked in &asked {
        let sent = format!("{:?}", asked.headers);
        assert!(!sent.contains("victim") && !sent.contains(strict.key()), "{sent}");
    }
}

#[test]
fn a_host_that_the_user_gave_the_key_for_is_sent_it() {
    let (desk, strict, _runtime) = with_provider("openai");
    strict.push(Say::text("Written."));
    desk.file("flow.yaml", &spec("local", &strict.base_url()));
    let ran = desk.quietly(&["flow", "run", "flow.yaml"]);
    ends(&ran, 8);
    assert!(!ran.stderr.contains("without your key"), "{}", ran.stderr);
    let ran = desk.quietly(&["resume", "@last", "--respond", "yes"]);
    ends(&ran, 0);
    assert_eq!((ran.stdout.as_str(), strict.rejected()), ("Written.\n", 0));
}

#[test]
fn a_session_of_someone_else_sends_nothing_to_addresses_of_its_own() {
    let (mut desk, strict, _runtime) = with_provider("openai");
    desk.file("flow.yaml", &spec("ollama", &strict.base_url()));
    ends(&desk.quietly(&["flow", "run", "flow.yaml"]), 8);
    hand_on(&mut desk);
    let ran = desk.quietly(&["resume", "@last", "--respond", "yes"]);
    ends(&ran, 1);
    let said = format!("would send its conversations to {}", strict.base_url());
    assert!(ran.stderr.contains(&said) && ran.stderr.contains("--mode"), "{}", ran.stderr);
    assert_eq!(strict.asked().len(), 0);
    let answered = desk.quietly(&["log", "@last"]).stdout.contains("gate_answered");
    assert!(!answered, "nothing was recorded");
}

#[test]
fn a_session_of_someone_else_connects_to_no_server_of_its_own() {
    let mut desk = Desk::new();
    let server =
        "tools: {mcp: [{id: far, url: 'http://127.0.0.1:9/mcp'}]}\nagents: {writer: {tools: [far],";
    let spec = spec("ollama", "http://localhost:11434");
    let before = "agents: {writer: {";
    // It is begun without the server, as an importer would: nothing answers there.
    desk.file("flow.yaml", &spec);
    ends(&desk.quietly(&["flow", "run", "flow.yaml"]), 8);
    hand_on(&mut desk);
    ends(&desk.quietly(&["resume", "@last"]), 8);
    desk.file("flow.yaml", &spec.replace(before, server));
    let ran = desk.quietly(&["resume", "@last", "--use-current-spec"]);
    ends(&ran, 1);
    assert!(ran.stderr.contains("would connect to http://127.0.0.1:9/mcp"), "{}", ran.stderr);
}
