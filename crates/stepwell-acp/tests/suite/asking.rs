//! What the client is shown when it is asked for leave.

use std::process::Command;

use serde_json::{Value, json};

use crate::client::TestEnv;

/// The content of the question about a write.
fn asked_about(path: &str, prepare: impl FnOnce(&TestEnv)) -> Value {
    let env = TestEnv::new(&format!(
        "- {{text: I write., calls: [{{tool: write_file, arguments: {{path: {path}, content: new}}}}]}}\n\
         - {{text: Done.}}\n"
    ));
    prepare(&env);
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    let prompt = client.prompt(&session, "write it");
    let question = client.wait(|it| it["method"] == "session/request_permission");
    let denied = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
    client.answer(&question, &denied);
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    question["params"]["toolCall"]["content"].clone()
}

#[test]
fn a_small_text_is_shown_as_it_is_and_will_be() {
    let shown = asked_about("a.txt", |env| {
        std::fs::write(env.root().join("a.txt"), "old").unwrap();
    });
    assert_eq!((&shown[0]["oldText"], &shown[0]["newText"]), (&json!("old"), &json!("new")));
    let shown = asked_about("a.txt", |_| {});
    assert_eq!((&shown[0]["oldText"], &shown[0]["newText"]), (&Value::Null, &json!("new")));
}

#[test]
fn a_file_that_is_not_shown_is_not_taken_for_a_new_one() {
    for (bytes, size) in [(vec![b'x'; 420_000], 420_000), (vec![0xff, 0xfe, 0x00], 3)] {
        let shown = asked_about("a.bin", |env| {
            std::fs::write(env.root().join("a.bin"), &bytes).unwrap();
        });
        assert_ne!(shown[0]["type"], "diff", "{shown}");
        let said = shown[0]["content"]["text"].as_str().unwrap();
        assert_eq!(said.replace(',', ""), format!("This replaces a file of {size} bytes."));
    }
}

#[test]
fn nothing_but_files_of_the_workspace_is_read() {
    // Whoever opened the pipe would wait for ever.
    let pipe = asked_about("pipe", |env| {
        assert!(Command::new("mkfifo").arg(env.root().join("pipe")).status().unwrap().success());
    });
    assert_ne!(pipe[0]["type"], "diff", "{pipe}");
    let outside = tempfile::tempdir().unwrap();
    let path = std::fs::canonicalize(outside.path()).unwrap().join("private.txt");
    std::fs::write(&path, "not for this session").unwrap();
    let shown = asked_about(&path.display().to_string(), |_| {});
    assert!(!shown.to_string().contains("not for this session"), "{shown}");
}
