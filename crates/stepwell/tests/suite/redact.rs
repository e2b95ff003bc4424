//! Everything recorded through a well is redacted.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;
use stepwell::log::Redactor;
use stepwell::model::{
    Answer, Artifact, Change, Checkpoint, Compacted, Edited, Elsewhere, Epoch, Failure,
    FileChanged, FileState, Foreign, Gate, GateAnswered, Node, NodeState, Part, Permission,
    Question, Record, Said, Settings, StatusChanged, StopAsked, Task, TaskStatus,
};
use stepwell::sessions::{Deps, NewSession};
use stepwell::sqlite::SqliteStore;
use stepwell::store::Span;
use stepwell::{Created, Event, Lane, Message, NewEvent, Seq, Status, Stepwell};

/// Assembled here, so that no file of this repository contains a secret.
fn secret() -> String {
    format!("ghp_{}", "aB3dE5gH7jK9mN1p".repeat(3))
}

fn says() -> String {
    format!("it is {}", secret())
}

fn log(well: &Stepwell, id: &stepwell::SessionId) -> Vec<Event> {
    let events = well.store().events(id, Span::ALL).unwrap().intact(id).unwrap();
    events.into_iter().map(|event| event.event).collect()
}

/// Whether a session's first event says that it is redacted.
fn mark(event: &Event) -> Option<bool> {
    match event {
        Event::Created(created) => Some(created.redacted),
        _ => None,
    }
}

/// An event with a secret in each of its texts, for every kind with free text.
fn events() -> Vec<NewEvent> {
    let link = FileState::Symlink { target: says() };
    let metadata: BTreeMap<_, _> = [("note".to_owned(), json!({ "deep": [says()] }))].into();
    let elsewhere = Elsewhere { last_error: Some(says()), ..Elsewhere::default() };
    let edited = Edited {
        label: Change::Set(says()),
        goal: Change::Set(says()),
        tag: [says()].into(),
        untag: [says()].into(),
        metadata: metadata.clone(),
        elsewhere: Some(elsewhere),
        ..Edited::default()
    };
    let status = StatusChanged { status: Status::Failed, reason: None, error: Some(says()) };
    let file = FileChanged { path: says(), before: link.clone(), after: link, renamed_from: None };
    let node = Node {
        key: "n".into(),
        state: NodeState::Done,
        output: Some(json!({ "said": says() })),
        usage: None,
        error: Some(says()),
    };
    let gate = Gate { default: Some(says()), ..Gate::new("g", says()) };
    let answered = GateAnswered::new("g", says(), "me");
    let denied = GateAnswered::new("g", Answer::deny(says()), "me");
    let settings = Settings { model: Some(says()), agent: Some(says()), ..Settings::default() };
    let said = Said { text: says(), lane: Lane::main(), who: "me".into(), now: false };
    let stop = StopAsked { epoch: Epoch::FIRST, who: says().into(), reason: Some(says()) };
    let checkpoint = Checkpoint { name: says(), metadata, ..Checkpoint::default() };
    let compacted = Compacted::new(Lane::main(), Seq::FIRST, Seq::FIRST);
    let compacted = Compacted { summary: Some(says()), fault: Some(says()), ..compacted };
    let task = Task {
        id: "1".into(),
        action: says(),
        description: says(),
        deps: vec![],
        status: TaskStatus::Pending,
        files: vec![says()],
    };
    let question = Question::new("q", says()).with_answer(says());
    let call = json!({ "command": says() }).to_string();
    vec![
        Message::user(says()).into(),
        Message::assistant(says()).calling("1", "run", &call).into(),
        Message::tool_result("1", says()).into(),
        edited.into(),
        status.into(),
        file.into(),
        node.into(),
        gate.into(),
        answered.into(),
        denied.into(),
        settings.into(),
        said.into(),
        stop.into(),
        checkpoint.into(),
        compacted.into(),
        task.into(),
        question.into(),
        Failure { message: says() }.into(),
        Permission::new(says(), true).into(),
        Artifact { path: says(), digest: stepwell::model::Digest::of(b"x") }.into(),
    ]
}

#[test]
fn no_text_of_any_event_keeps_a_secret() {
    let redactor = Redactor::default();
    for event in events() {
        let redacted = event.clone().redacted(&redactor);
        let shown = format!("{redacted:?}");
        assert!(!shown.contains(&secret()), "{shown}");
        assert!(shown.contains("[redacted:github-token]"), "{shown}");
        assert_eq!(redacted.clone().redacted(&redactor), redacted);
    }
}

#[test]
fn everything_recorded_through_a_well_is_redacted() {
    let well = Stepwell::in_memory();
    let session = well.create(Created::new("s-1".parse().unwrap(), says())).unwrap();
    session.append(Message::user(says())).unwrap();
    session.checkpoint(says()).unwrap();
    session.append(Failure { message: says() }).unwrap();
    let id = session.id().clone();
    well.edit(&id, Edited { label: Change::Set(says()), ..Edited::default() }).unwrap();
    let fork = well.fork(&id, None).unwrap();
    let begins = vec![Edited { goal: Change::Set(says()), ..Edited::default() }.into()];
    let outside = Created::new("s-2".parse().unwrap(), says()).driven_externally();
    well.create_unheld(outside, begins.clone()).unwrap();
    let with = Created::new("s-3".parse().unwrap(), says());
    let with = well.create(NewSession { created: with, events: begins }).unwrap();
    for id in [&id, fork.id(), &"s-2".parse().unwrap(), with.id()] {
        let log = log(&well, id);
        assert!(!format!("{log:?}").contains(&secret()), "{log:?}");
        assert!(log.iter().filter_map(mark).all(|redacted| redacted), "{log:?}");
        assert_eq!(mark(&log[0]), Some(true));
    }
    assert!(well.redactor().taken() > 0);
}

#[test]
fn direct_writes_to_the_store_stay_byte_for_byte() {
    let well = Stepwell::in_memory();
    let created = Created::new("s-1".parse().unwrap(), says());
    let create = stepwell::store::Create { created, event_id: None, at: None, claim: None };
    well.store().write(stepwell::store::Write::Create(create)).unwrap();
    let id = "s-1".parse().unwrap();
    let log = log(&well, &id);
    assert!(matches!(&log[0], Event::Created(it) if it.task == says() && !it.redacted));
    // A fork shares its parent's beginning, and is redacted after that.
    let fork = well.fork(&id, None).unwrap();
    let marks: Vec<_> = self::log(&well, fork.id()).iter().filter_map(mark).collect();
    assert_eq!(marks, [false, true]);
}

#[test]
fn a_well_redacts_the_keys_it_was_given() {
    let redactor = Redactor::new(["the-key-of-my-gateway".to_owned()]);
    let surroundings = Deps { redactor, ..Deps::default() };
    let well = Stepwell::with(Arc::new(SqliteStore::in_memory().unwrap()), surroundings);
    let session = well.create(well.draft("use the-key-of-my-gateway")).unwrap();
    assert_eq!(session.info().unwrap().head.task, "use [redacted:provider-key]");
}

#[test]
fn other_programs_data_and_ids_stay() {
    let redactor = Redactor::default();
    let foreign =
        Foreign { system: "x".into(), about: stepwell::model::About::Session, data: says() };
    let stays = |event: Event| assert_eq!(event.clone().redacted(&redactor), event);
    stays(foreign.into());
    let gate = Gate::new(secret(), "?");
    stays(gate.into());
    let record = Record { data: says(), text: Some(says()), ..Record::default() };
    stays(record.into());
}

#[test]
fn a_secret_is_recognized_by_its_key() {
    let metadata = BTreeMap::from([
        ("password".to_owned(), json!("hunter2-hunter2")),
        ("plain".to_owned(), json!("hunter2-hunter2")),
        (secret(), json!("kept")),
    ]);
    let edited = Edited { metadata, ..Edited::default() };
    let redacted = Event::from(edited).redacted(&Redactor::default());
    let Event::Edited(edited) = &redacted else { panic!("{redacted:?}") };
    assert_eq!(edited.metadata["password"], json!("[redacted:assigned-secret]"));
    assert_eq!(edited.metadata["plain"], json!("hunter2-hunter2"));
    assert_eq!(edited.metadata["[redacted:github-token]"], json!("kept"));
    assert_eq!(edited.metadata.len(), 3);
}

/// Characters of a token.
fn token(len: usize) -> String {
    "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ".chars().cycle().take(len).collect()
}

/// Texts with a secret, each with the part that no answer may show.
fn secrets() -> Vec<(String, String)> {
    let line = |n: usize| format!("{}{}", token(40 + n), "q+Z9/x".repeat(4)).split_off(n);
    let lines = (0..6).map(line).collect::<Vec<_>>().join("\n");
    let header = |header: &str| format!("-----BEGIN {header}PRIVATE KEY-----\n");
    let end = |header: &str| format!("\n-----END {header}PRIVATE KEY-----");
    let behind =
        |front: &str, hidden: String, after: &str| (format!("{front}{hidden}{after}"), hidden);
    vec![
        behind(&header("RSA "), lines.clone(), &end("RSA ")),
        behind(&header("OPENSSH "), lines.clone(), &end("OPENSSH ")),
        behind(&header(""), lines, &end("")),
        behind("ghp_", token(36), ""),
        behind("sk-ant-api03-", token(90), "-AA"),
        behind("\u{1b}[31msk-", token(48), "\u{1b}[0m"),
        behind("eyJ", format!("{}.eyJ{}.{}", token(20), token(40), token(43)), ""),
        behind("postgres://ann:", token(16), "@db/shop"),
        behind("{\"client_secret\": \"", token(24), "\"}"),
        behind("DB_PASSWORD='", "x-7_Gq.2Lp~T9+vW".to_owned(), "'"),
        behind("kind: Secret\ndata:\n  password: ", "aHVudGVyMmh1bnRlcjI=".to_owned(), "\n"),
    ]
}

/// A well whose store holds an unredacted text, as an import leaves it: in a message, in a call's
/// arguments, and in another program's record.
fn well_with(text: &str) -> Stepwell {
    let well = Stepwell::in_memory();
    let session = well.create(well.draft("an import")).unwrap();
    let arguments = json!({ "content": text }).to_string();
    let record = Record {
        system: "other".to_owned(),
        topic: "note".to_owned(),
        key: "1".to_owned(),
        data: text.to_owned(),
        text: Some(text.to_owned()),
        ..Record::default()
    };
    let events = vec![
        Message::user(text).into(),
        Message::assistant("").calling("c", "write", arguments).into(),
        record.into(),
    ];
    let (id, epoch) = (session.id().clone(), Some(session.lease().epoch));
    let append =
        stepwell::store::Append { session: id, epoch, expected: None, events: events.into() };
    well.store().write(stepwell::store::Write::Append(append)).unwrap();
    drop(session);
    well
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_search_shows_no_eight_characters_of_a_secret(
        (secret, hidden) in select(secrets()),
        before in "([a-z]{1,9}[ \n.,]){0,40}",
        after in "([ \n.,][a-z]{1,9}){0,40}",
        asked in any::<Index>(),
        open in any::<bool>(),
    ) {
        let text = format!("{before}{secret}{after}");
        let words: Vec<String> = stepwell::backend::words(&text).map(|word| word.text).collect();
        let mut question = asked.get(&words).clone();
        if open {
            question.truncate(question.floor_char_boundary(4));
            question.push('*');
        }
        let found = well_with(&text).search(&stepwell::store::query::Search::new(question)).unwrap();
        prop_assert!(!found.hits.is_empty());
        for hit in found.hits {
            let shown = hit.snippet.text();
            // Compared without white space, because excerpts are on one line.
            let hidden: Vec<char> = hidden.chars().filter(|c| !c.is_whitespace()).collect();
            let shown_chars: String = shown.chars().filter(|c| !c.is_whitespace()).collect();
            for window in hidden.windows(8) {
                let window: String = window.iter().collect();
                prop_assert!(!shown_chars.contains(&window), "{window} in {shown}");
            }
            for place in hit.snippet.matches() {
                prop_assert!(shown.get(place.clone()).is_some(), "{place:?} in {shown}");
            }
        }
    }
}

#[test]
fn a_private_key_split_over_two_texts_is_redacted_in_both() {
    let lines = format!("{}\n", "aB3dE5gH7jK9mN1p".repeat(4)).repeat(3);
    let key = format!("-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----");
    for at in [1, 20, 30, 50, 100, key.len() - 40, key.len() - 20, key.len() - 1] {
        let mut message = Message::user(format!("here: {}", &key[..at]));
        message.parts.push(Part::text(format!("{} done", &key[at..])));
        let redacted = Event::Message(message).redacted(&Redactor::default());
        let Event::Message(message) = &redacted else { panic!("{redacted:?}") };
        let texts: Vec<&str> = message.parts.iter().filter_map(Part::as_text).collect();
        let shown = texts.concat();
        assert!(!shown.contains("dE5gH7jK"), "{at}: {shown}");
        assert!(texts[0].starts_with("here: ") && texts[1].ends_with(" done"), "{at}: {texts:?}");
    }
}
