//! What Codex puts into a conversation in the user's name is not the user's.

use stepwell::{Message, Stepwell};

use crate::mirror::{shown, taken};

const THREAD: &str = "0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a43";

/// A rollout of messages, each of some blocks.
fn read(messages: &[(&str, &[&str])]) -> (Stepwell, stepwell::SessionId) {
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-05-04T07:15:00Z","type":"{kind}","payload":{payload}}}"#)
    };
    let mut lines = vec![line("session_meta", &format!(r#"{{"id":"{THREAD}","cwd":"/w"}}"#))];
    for (role, blocks) in messages {
        let block = |text: &&str| match *text {
            "PICTURE" => {
                r#"{"type":"input_image","image_url":"data:image/png;base64,AA=="}"#.to_owned()
            }
            text => format!(r#"{{"type":"input_text","text":{}}}"#, serde_json::json!(text)),
        };
        let blocks = blocks.iter().map(block).collect::<Vec<_>>().join(",");
        let item = format!(r#"{{"type":"message","role":"{role}","content":[{blocks}]}}"#);
        lines.push(line("response_item", &item));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("rollout-2026-05-04T07-15-00-{THREAD}.jsonl"));
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let well = Stepwell::in_memory();
    let id = taken(&well, &path).remove(0).id;
    (well, id)
}

const CONTEXT: &[&str] = &[
    "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nWeigh twice.\n</INSTRUCTIONS>",
    "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
];

#[test]
fn the_task_is_the_first_thing_that_the_user_typed() {
    let pictured: &[&str] = &["<image name=[Image #1]>", "PICTURE", "</image>", "what is on it?"];
    let silent: &[&str] = &["<image>", "PICTURE", "</image>"];
    for (messages, task) in [
        (vec![("user", CONTEXT), ("user", pictured)], "what is on it?"),
        (vec![("user", CONTEXT), ("user", silent), ("user", &["and now?"])], "and now?"),
        (vec![("user", &["<user_instructions>x</user_instructions>"]), ("user", &["go"])], "go"),
        // What a user types may look like an element.
        (vec![("user", CONTEXT), ("user", &["<div> is too wide"])], "<div> is too wide"),
        (vec![("user", &["<b>bold</b>"])], "<b>bold</b>"),
    ] {
        let (well, id) = read(&messages);
        assert_eq!(well.info(&id).unwrap().head.task, task);
    }
}

#[test]
fn what_codex_injects_is_shown_to_the_model_and_is_not_from_the_user() {
    let (well, id) = read(&[("developer", &["be kind"]), ("user", CONTEXT), ("user", &["weigh"])]);
    let messages = shown(&well, &id);
    let own: Vec<_> = messages.iter().filter(|it| it.is_from_user()).map(Message::text).collect();
    assert_eq!(own, ["weigh"]);
    assert!(messages.iter().any(|it| it.text().contains("Weigh twice.")));
    let mut page = Vec::new();
    stepwell_formats::export(&well, &id, stepwell_formats::Format::MARKDOWN, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(page.matches("## User").count(), 1, "{page}");
}
