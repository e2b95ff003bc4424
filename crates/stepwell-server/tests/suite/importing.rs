//! Importing what other agents of the machine keep, over HTTP.

use reqwest::Method;
use serde_json::json;

use crate::test_env::TestEnv;

/// A session that Codex kept in the home folder.
fn codex_session(env: &TestEnv) -> String {
    let id = "0196a6b0-6e20-7c3b-9d51-3f1c0a5b7e21";
    let folder = env.home().join(".codex/sessions/2026/05/04");
    std::fs::create_dir_all(&folder).unwrap();
    let at = "2026-05-04T07:15:00.000Z";
    let message = |role: &str, kind: &str, text: &str| {
        let content = json!([{"type": kind, "text": text}]);
        json!({"type": "message", "role": role, "content": content})
    };
    let lines = [
        json!({"timestamp": at, "type": "session_meta", "payload": {
            "id": id, "timestamp": at, "cwd": "/w", "originator": "codex_cli_rs",
            "cli_version": "0.130.0", "source": "cli"}}),
        json!({"timestamp": at, "type": "response_item",
            "payload": message("user", "input_text", "mend the oven")}),
        json!({"timestamp": at, "type": "response_item",
            "payload": message("assistant", "output_text", "It is mended.")}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join(format!("rollout-2026-05-04T07-15-00-{id}.jsonl")), text).unwrap();
    id.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_other_agents_are_counted_and_then_imported() {
    let env = TestEnv::new().await;
    codex_session(&env);
    let counted = env.post("/import", json!({"dry_run": true})).await;
    assert_eq!(counted.status, 200, "{:#}", counted.json);
    assert_eq!(counted.json["dry_run"], true);
    assert_eq!(counted.json["imported"], 1, "{:#}", counted.json);
    assert_eq!(counted.json["agents"][0]["format"], "codex");
    assert_eq!(counted.json["agents"][0]["files"], 1);
    assert_eq!(env.get("/sessions").await.json["items"], json!([]), "nothing is written yet");
    let done = env.post("/import", json!({})).await;
    assert_eq!((done.status, &done.json["imported"]), (200, &json!(1)), "{:#}", done.json);
    let session = done.json["sessions"][0]["session"].as_str().unwrap();
    let shown = env.get(&format!("/sessions/{session}")).await;
    assert_eq!(shown.json["source"], "codex", "{:#}", shown.json);
    // Nothing is imported twice.
    let again = env.post("/import", json!({"from": "codex"})).await.json;
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(0), &json!(1)), "{again:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_user_of_the_machine_imports_from_its_agents() {
    let env = TestEnv::new().await;
    codex_session(&env);
    for token in [&env.colleague, &env.viewer] {
        let server = env.send_as(token, Method::GET, "/server", None).await.json;
        assert_eq!(server["may_import"], false, "{server:#}");
        let refused = env.send_as(token, Method::POST, "/import", Some(json!({}))).await;
        assert_eq!(refused.status, 403, "{:#}", refused.json);
    }
    assert_eq!(env.get("/server").await.json["may_import"], true);
    let wrong = env.post("/import", json!({"from": "nobody"})).await;
    assert_eq!((wrong.status, &wrong.json["place"]), (400, &json!("from")), "{:#}", wrong.json);
}
