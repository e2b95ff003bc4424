//! Secrets of sessions that were imported as they are: no message to a client holds one.

use serde_json::{Value, json};

use crate::client::TestEnv;

const TOKEN: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
const KEY: &str = "AKIA2E0A8F3B244C9986";

#[test]
fn no_secret_of_an_imported_session_is_shown() {
    let id = "7be2d940-15c3-4a41-9c55-0c5f1f6f0a12";
    let env = TestEnv::new("- {text: one}\n- {text: I went on.}\n").with_home(true);
    let folder = env.root().join("home/.claude/projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let line = |kind: &str, uuid: &str, parent: Value, content: Value| {
        let message = json!({"role": kind, "content": content});
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": id,
            "cwd": env.root(), "timestamp": "2026-11-01T10:00:00.000Z", "version": "2.0.0",
            "message": message})
    };
    // The title and a tool's output are cut: no half of a secret is left, either.
    let task = format!("{} {TOKEN} is the token", "push with it ".repeat(7));
    let call = json!([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": format!("export T={TOKEN}")}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": format!("{}{KEY}", "y ".repeat(16_377))}]);
    let lines = [
        line("user", "u-1", Value::Null, json!(task)),
        line("assistant", "u-2", json!("u-1"), call),
        line("user", "u-3", json!("u-2"), result),
        line("assistant", "u-4", json!("u-3"), json!(format!("I used {KEY}."))),
    ];
    let text = lines.map(|it| format!("{it}\n")).concat();
    std::fs::write(folder.join(format!("{id}.jsonl")), text).unwrap();
    let mut client = env.greeted(&json!({}));
    let mut said = Vec::new();
    said.push(client.ask("session/list", &json!({"cwd": env.root()})).unwrap());
    let load = json!({"sessionId": id, "cwd": env.root(), "mcpServers": []});
    said.push(client.ask("session/load", &load).unwrap());
    said.push(client.ask("session/list", &json!({"cwd": env.root()})).unwrap());
    for (method, more) in [
        ("_stepwell/view", json!({"sessionId": id})),
        ("_stepwell/search", json!({"query": "token", "cwd": env.root()})),
    ] {
        said.push(client.ask(method, &more).unwrap());
    }
    let told = client.says(id, "/context");
    assert!(told.contains("[redacted:"), "{told}");
    client.says(id, "/rewind");
    said.extend(client.heard.clone());
    said.extend(client.leave());
    let all = Value::Array(said).to_string();
    assert!(all.contains("I used [redacted:"), "{all}");
    for secret in [TOKEN, KEY] {
        assert!(!all.contains(&secret[..10]), "{secret}");
    }
}
