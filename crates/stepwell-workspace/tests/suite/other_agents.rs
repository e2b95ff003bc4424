//! Other agents' sessions, found without importing them.

use std::os::unix::fs::PermissionsExt;
use stepwell_workspace::other_sessions;

use crate::machine::Machine;

/// A session of Claude Code's.
fn claude(id: &str, said: &str) -> String {
    let line = |kind: &str, uuid: &str, parent: &str, text: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"{id}","cwd":"/home/mila/crumb","timestamp":"2026-11-01T10:00:00.000Z","version":"2.0.0","message":{{"role":"{kind}","content":"{text}"}}}}"#
        )
    };
    let (first, second) =
        (line("user", "u-1", "null", said), line("assistant", "u-2", r#""u-1""#, "Done."));
    format!("{first}\n{second}\n")
}

fn switched_on() -> Machine {
    let machine = Machine::new();
    machine.write("home/.config/stepwell/config.toml", "[other_agents]\nindex = true\n");
    machine
}

#[test]
fn other_agents_sessions_are_found_by_prompt_and_folder_only_if_the_user_wants_that() {
    let file = "home/.claude/projects/-home-mila-crumb/a.jsonl";
    let machine = Machine::new();
    machine.write(file, &claude("a", "fix the oven"));
    assert!(other_sessions::refresh(&machine.at("work").unwrap()).unwrap().is_none());
    // A project does not switch it on.
    machine.write("work/stepwell.toml", "[other_agents]\nindex = true\n");
    assert!(machine.at("work").is_err());
    let machine = switched_on();
    machine.write(file, &claude("a", "fix the oven"));
    let workspace = machine.at("work").unwrap();
    let all = other_sessions::refresh(&workspace).unwrap().unwrap();
    for (words, found) in [("", 1), ("OVEN", 1), ("oven crumb", 1), ("oven bread", 0)] {
        assert_eq!(all.find(words).len(), found, "{words}");
    }
    let session = all.find("oven")[0];
    assert_eq!((session.system.as_str(), session.id.as_str()), ("claude-code", "a"));
    assert_eq!(session.folder, "/home/mila/crumb");
    // It is there for the next process, and only for its user.
    let index = machine.folder("home/.local/state/stepwell").join("other-sessions.json");
    assert_eq!(index.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(other_sessions::known(&workspace).unwrap().unwrap(), all);
}

#[test]
fn what_changed_is_read_again_and_what_is_gone_is_forgotten() {
    let machine = switched_on();
    let path = machine.write("home/.claude/projects/-p/a.jsonl", &claude("a", "first"));
    machine.write("home/.claude/projects/-p/b.jsonl", &claude("b", "second"));
    let workspace = machine.at("work").unwrap();
    assert_eq!(other_sessions::refresh(&workspace).unwrap().unwrap().find("").len(), 2);
    machine.write("home/.claude/projects/-p/b.jsonl", &claude("b", "another one"));
    std::fs::remove_file(path).unwrap();
    let all = other_sessions::refresh(&workspace).unwrap().unwrap();
    let prompts: Vec<_> = all.find("").iter().map(|it| it.prompt.clone()).collect();
    assert_eq!(prompts, ["another one"]);
}

#[test]
fn secrets_and_long_texts_stay_out_of_the_index() {
    let machine = switched_on();
    let key = format!("sk-ant-api03-{}", "Ab1".repeat(32));
    let said = format!("use {key} {}", "words ".repeat(500));
    machine.write("home/.claude/projects/-p/a.jsonl", &claude("a", &said));
    other_sessions::refresh(&machine.at("work").unwrap()).unwrap();
    let index = machine.folder("home/.local/state/stepwell").join("other-sessions.json");
    let text = std::fs::read_to_string(index).unwrap();
    assert!(!text.contains(&key) && text.contains("words"));
    assert!(text.len() < 2_000, "{}", text.len());
}

#[test]
fn a_damaged_index_is_made_anew() {
    let machine = switched_on();
    machine.write("home/.claude/projects/-p/a.jsonl", &claude("a", "first"));
    machine.write("home/.local/state/stepwell/other-sessions.json", "{ no");
    let workspace = machine.at("work").unwrap();
    assert!(other_sessions::known(&workspace).unwrap().unwrap().find("").is_empty());
    assert_eq!(other_sessions::refresh(&workspace).unwrap().unwrap().find("").len(), 1);
}
