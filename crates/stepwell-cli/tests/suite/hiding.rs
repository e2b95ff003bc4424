//! Lines that are cut hold no part of a secret.

use std::collections::BTreeMap;

use stepwell::model::{Change, Checkpoint, CheckpointReason, Edited, Gate, StatusChanged};
use stepwell::store::{Append, Create, Span, Write};
use stepwell::{Created, Message, NewEvent, Status, StopReason};

use crate::seat::Seat;
use crate::terminal::watched;
use crate::test_env::TestEnv;

/// Secrets that are put together here, so that no file of ours holds one.
struct Secrets {
    token: String,
    api_key: String,
    /// A line of the private key.
    line: String,
}

impl Secrets {
    fn new() -> Self {
        Self {
            token: format!("ghp_{}", "aB3dE5gH7jK9mN1p".repeat(3)),
            api_key: format!("sk-ant-api03-{}", "Zx8vC6bN4mQ2wE0r".repeat(6)),
            line: "Qk7zB3wMf5tR9yU2".repeat(4),
        }
    }

    /// A text that holds all of them, the first one behind so many characters.
    fn text(&self, before: usize) -> String {
        let front = "word ".repeat(before / 5 + 1);
        let key = [self.line.as_str(); 6].join("\n");
        format!(
            "{} {}\n{} -----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----",
            &front[..before],
            self.token,
            self.api_key
        )
    }

    /// Does a text show eight characters in a row of one of them, fixed prefixes aside?
    fn are_in(&self, shown: &str) -> bool {
        let secrets = [&self.token[4..], &self.api_key[13..], &self.line];
        let parts = |secret: &'_ str| secret.len() - 8;
        secrets.iter().any(|secret| (0..=parts(secret)).any(|n| shown.contains(&secret[n..n + 8])))
    }
}

/// Writes a session as an import does: past what redacts.
fn import(env: &TestEnv, id: &str, text: &str) {
    let well = env.well();
    let created = Created { task: text.to_owned(), ..well.draft("") };
    let created = Created { id: id.parse().unwrap(), ..created };
    let create = Create { created, event_id: None, at: None, claim: None };
    well.store().write(Write::Create(create)).unwrap();
    let session = well.lock(&id.parse().unwrap()).unwrap();
    let arguments = serde_json::json!({ "command": text }).to_string();
    let checkpoint = Checkpoint {
        name: "before-it".into(),
        reason: CheckpointReason::Manual,
        metadata: BTreeMap::from([("note".to_owned(), text.into())]),
    };
    let paused = StatusChanged {
        status: Status::Paused,
        reason: Some(StopReason::Gate),
        error: Some(text.to_owned()),
    };
    let first = text.lines().next().unwrap();
    let label = format!("l{}", &first[first.len().saturating_sub(120)..]);
    let label = Edited { label: Change::Set(label), ..Edited::default() };
    let events: Vec<NewEvent> = vec![
        label.into(),
        Message::user(text).into(),
        Message::assistant(text).calling("c1", "run_command", arguments).into(),
        Message::tool_result("c1", text).into(),
        checkpoint.into(),
        Gate::new("ask-1", text).into(),
        Gate::new("ask-2", text).into(),
        paused.into(),
    ];
    let epoch = Some(session.lease().epoch);
    let append =
        Append { session: session.id().clone(), epoch, expected: None, events: events.into() };
    well.store().write(Write::Append(append)).unwrap();
    let stored = well.store().events(session.id(), Span::ALL).unwrap().events;
    assert!(format!("{stored:?}").contains(text.split(' ').next_back().unwrap().trim()));
}

#[test]
fn no_line_that_is_cut_shows_a_part_of_a_secret() {
    let env = TestEnv::new();
    assert_eq!(env.quietly(&["init"]).code, Some(0));
    let secrets = Secrets::new();
    // Cuts fall into different places of the secrets.
    for (n, before) in [0, 12, 20, 28, 35, 45, 60, 100].into_iter().enumerate() {
        import(&env, &format!("old-{n}"), &secrets.text(before));
    }
    let commands = [
        &["sessions", "--all"][..],
        &["sessions", "--tree"],
        &["gates"],
        &["gates", "answer", "ask-1", "yes"],
        &["log", "old-4"],
        &["show", "old-4"],
        &["show", "old-4", "--messages"],
        &["show", "old-4", "--events"],
        &["checkpoint", "old-4"],
        &["resume", "old-4"],
        &["resume", "old-4", "--gate", "none", "--approve"],
        &["work", "old-4"],
        &["search", "word"],
    ];
    for args in commands {
        let ran = env.quietly(args);
        let piped = ran.stdout + &ran.stderr;
        assert!(!secrets.are_in(&piped), "{args:?}: {piped}");
        for columns in [50, 90, 140] {
            let (seen, _) = watched(env.command(args), &env, columns, |_, _| String::new());
            assert!(!secrets.are_in(&seen), "{args:?}, {columns} columns: {seen}");
        }
    }
}

#[test]
fn completion_offers_no_secret() {
    let env = TestEnv::new();
    assert_eq!(env.quietly(&["init"]).code, Some(0));
    let secrets = Secrets::new();
    for (n, before) in [0, 12, 20, 28, 35, 45].into_iter().enumerate() {
        import(&env, &format!("old-{n}"), &secrets.text(before));
    }
    for words in [&["show", "o"][..], &["show", "l"], &["sessions", "--label", "l"]] {
        let mut command = env.command(&[&["--", "stepwell"], words].concat());
        let told = command.env("_STEPWELL_COMPLETE", "fish").output().unwrap();
        let offered = String::from_utf8(told.stdout).unwrap();
        assert!(told.status.success() && !secrets.are_in(&offered), "{words:?}: {offered}");
    }
}

#[test]
fn the_chats_list_shows_no_part_of_a_secret() {
    let env = crate::running::env("answers: [{text: Done.}]");
    assert_eq!(env.quietly(&["init"]).code, Some(0));
    let secrets = Secrets::new();
    import(&env, "old-1", &secrets.text(28));
    for columns in [60, 100] {
        let mut seat = Seat::sit_before(env.command(&["chat"]), (columns, 24));
        seat.until("what is to be done?").press("\u{12}").until("Sessions").until("word");
        seat.press("\u{1b}").until_gone("Sessions").until("what is to be done?");
        assert!(!secrets.are_in(&seat.written()), "{}", seat.screen());
        seat.leave();
    }
}
