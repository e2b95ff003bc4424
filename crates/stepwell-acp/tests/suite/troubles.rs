//! What cannot be done, in words that say what to do instead.

use serde_json::{Value, json};

use crate::client::{Client, TestEnv};

/// The error that a prompt gets.
fn refusal(client: &mut Client, session: &str, text: &str) -> (i64, String) {
    let prompt = client.prompt(session, text);
    let answer = client.answer_of(prompt);
    let error = &answer["error"];
    let message = error["message"].as_str().unwrap().to_owned();
    (error["code"].as_i64().unwrap(), message)
}

#[test]
fn without_a_model_the_error_says_how_to_name_one() {
    let env = TestEnv::new("[]");
    std::fs::write(env.root().join("stepwell.toml"), "").unwrap();
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    let (_, said) = refusal(&mut client, &session, "hi");
    assert!(said.starts_with("no model was named") && said.contains("/model NAME"), "{said}");
}

#[test]
fn a_model_whose_key_is_not_there_can_be_changed_as_the_error_says() {
    let id = "7be2d940-15c3-4a41-9c55-0c5f1f6f0a13";
    let env = TestEnv::new("- {text: one}\n- {text: I went on.}\n").with_home(true);
    let folder = env.root().join("home/.claude/projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let line = |kind: &str, uuid: &str, parent: Value, message: Value| {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": id,
            "cwd": env.root(), "timestamp": "2026-11-01T10:00:00.000Z", "version": "2.0.0",
            "message": message})
    };
    let answer = json!({"role": "assistant", "model": "claude-sonnet-4-5", "content": "It bakes."});
    let lines = [
        line("user", "u-1", Value::Null, json!({"role": "user", "content": "fix the oven"})),
        line("assistant", "u-2", json!("u-1"), answer),
    ];
    let text = lines.map(|it| format!("{it}\n")).concat();
    std::fs::write(folder.join(format!("{id}.jsonl")), text).unwrap();
    let mut client = env.greeted(&json!({}));
    let load = json!({"sessionId": id, "cwd": env.root(), "mcpServers": []});
    client.ask("session/load", &load).unwrap();
    let (code, said) = refusal(&mut client, id, "and now?");
    assert_eq!(code, -32000, "{said}");
    assert!(said.contains("/model NAME") && said.contains("Model option"), "{said}");
    let script = format!("/model script:{}", env.root().join("script.yaml").display());
    client.says(id, &script);
    assert!(client.says(id, "and now?").contains("I went on."));
}

#[test]
fn a_server_that_cannot_start_is_told_of_once_to_whoever_takes_no_notices() {
    for takes in [true, false] {
        let env = TestEnv::new("- {text: One.}\n- {text: Two.}\n");
        let capabilities = if takes { json!({"session": {"notices": {}}}) } else { json!({}) };
        let mut client = env.greeted(&capabilities);
        let server = json!({"name": "gone", "command": "/no/such/program", "args": [], "env": []});
        let params = json!({"cwd": env.root(), "mcpServers": [server]});
        let made = client.ask("session/new", &params).unwrap();
        let session = made["sessionId"].as_str().unwrap().to_owned();
        let (one, two) = (client.says(&session, "hi"), client.says(&session, "again"));
        assert_eq!(one.contains("The MCP server gone is not there"), !takes, "{one}");
        assert!(one.ends_with("One."), "{one}");
        assert_eq!(two, "Two.");
        assert_eq!(client.updates("notice").len(), usize::from(takes));
    }
}

#[test]
fn folders_that_are_not_there_are_an_error_of_the_parameters() {
    let env = TestEnv::new("[]");
    let mut client = env.greeted(&json!({}));
    let (root, gone) = (env.root(), env.root().join("gone"));
    for params in [
        json!({"cwd": gone, "mcpServers": []}),
        json!({"cwd": root, "mcpServers": [], "additionalDirectories": [gone]}),
        json!({"cwd": root.join("stepwell.toml"), "mcpServers": []}),
    ] {
        assert_eq!(client.ask("session/new", &params), Err(-32602), "{params}");
    }
}

#[test]
fn parameters_have_names() {
    let env = TestEnv::new("- {text: Hello.}\n");
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    client.says(&session, "hi");
    for method in ["session/delete", "session/close", "_stepwell/verify"] {
        assert_eq!(client.ask(method, &json!([session])), Err(-32602), "{method}");
    }
    let id = client.request("_stepwell/rewind", &json!({"sessionId": session, "to": []}));
    let said = client.answer_of(id)["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(said, "a point is a seq or a name");
    let page = client.ask("session/list", &json!({"cwd": env.root()})).unwrap();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn whoever_names_a_folder_within_a_workspace_is_told_where_the_session_works() {
    let env = TestEnv::new("- {text: Hello.}\n");
    let sub = env.root().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    client.says(&session, "hi");
    assert!(!client.said("agent_message_chunk").contains("works in"));
    client.ask("session/new", &json!({"cwd": sub, "mcpServers": []})).unwrap();
    client.wait(|it| it.to_string().contains(&format!("works in {}:", env.root().display())));
}

#[test]
fn a_session_is_loaded_for_a_folder_that_is_not_there_and_says_where_it_works() {
    let env = TestEnv::new("- {text: Hello.}\n- {text: Again.}\n");
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    client.says(&session, "hi");
    let works = format!("works in {}:", env.root().display());
    for method in ["session/load", "session/resume"] {
        let load = |cwd| json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
        let mut other = env.greeted(&json!({}));
        other.ask(method, &load(env.root())).unwrap();
        assert!(!other.said("agent_message_chunk").contains("works in"), "{method}");
        let mut other = env.greeted(&json!({}));
        other.ask(method, &load(env.root().join("gone"))).unwrap();
        other.wait(|it| it.to_string().contains(&works) && it.to_string().contains("is in it"));
        let mut other = env.greeted(&json!({}));
        other.ask(method, &load("/no/such/folder".into())).unwrap();
        other.wait(|it| it.to_string().contains("/no/such/folder is not there"));
    }
}
