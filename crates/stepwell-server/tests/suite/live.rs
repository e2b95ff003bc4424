//! Streams: nothing is missed or repeated, over reconnects and restarts.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};
use stepwell::{Message, SessionId};
use stepwell_server::Token;
use stepwell_strict::{Ending, Rules, Say, Strict};

use crate::test_env::TestEnv;

/// A stream, read frame by frame, and checked against the document if there is one.
struct Frames {
    response: reqwest::Response,
    rest: String,
    /// The document's description of its events, with its references.
    events: Value,
    components: Value,
    known: HashMap<String, jsonschema::Validator>,
}

/// A frame: its name, its id, and its data.
#[derive(Debug)]
struct Frame {
    name: String,
    id: Option<u64>,
    data: Value,
}

impl Frames {
    async fn open(env: &TestEnv, path: &str, last: Option<u64>) -> Self {
        Self::open_as(env, &env.operator, path, last).await
    }

    async fn open_as(env: &TestEnv, token: &Token, path: &str, last: Option<u64>) -> Self {
        let mut request = reqwest::Client::new()
            .request(Method::GET, env.url(path))
            .header(AUTHORIZATION, format!("Bearer {}", token.reveal()));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let of = if path.starts_with("/changes") { "changes" } else { "sessions/{id}/stream" };
        let answer = &env.document["paths"][format!("/api/v1/{of}")]["get"]["responses"]["200"];
        Self {
            response,
            rest: String::new(),
            events: answer["content"]["text/event-stream"]["x-events"].clone(),
            components: env.document["components"].clone(),
            known: HashMap::new(),
        }
    }

    fn check(&mut self, frame: &Frame) {
        if self.events.is_null() {
            return;
        }
        let Frame { name, data, .. } = frame;
        let validator = self.known.entry(name.clone()).or_insert_with(|| {
            let mut schema = self.events[name]["schema"].clone();
            assert!(schema.is_object(), "{name} is not documented");
            schema["components"] = self.components.clone();
            jsonschema::validator_for(&schema).unwrap()
        });
        if let Err(error) = validator.validate(data) {
            panic!("{name}: {error} in {data:#}");
        }
    }

    /// The next frame; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, rest)) = self.rest.split_once("\n\n") {
                let field = |name: &str| {
                    frame.lines().find_map(|line| line.strip_prefix(name)).map(ToOwned::to_owned)
                };
                let found = field("event: ").map(|name| Frame {
                    name,
                    id: field("id: ").and_then(|id| id.parse().ok()),
                    data: serde_json::from_str(&field("data: ").unwrap_or_default()).unwrap(),
                });
                self.rest = rest.to_owned();
                match found {
                    Some(frame) => {
                        self.check(&frame);
                        return Some(frame);
                    }
                    None => continue,
                }
            }
            let read = tokio::time::timeout(Duration::from_secs(60), self.response.chunk()).await;
            match read.unwrap() {
                Ok(Some(bytes)) => self.rest.push_str(std::str::from_utf8(&bytes).unwrap()),
                _ => return None,
            }
        }
    }

    /// The ids of events, until this many arrived or the stream ended.
    async fn ids(&mut self, many: usize) -> Vec<u64> {
        let mut ids = Vec::new();
        while ids.len() < many {
            match self.next().await {
                Some(frame) if frame.name == "recorded" => ids.extend(frame.id),
                Some(_) => {}
                None => break,
            }
        }
        ids
    }
}

fn say(env: &TestEnv, id: &SessionId, times: usize) {
    let session = env.well.lock(id).unwrap();
    for n in 0..times {
        session.append(Message::user(format!("word {n}"))).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_joins_without_a_past_knows_where_they_joined() {
    let env = TestEnv::new().await;
    let id = env.session();
    let mut frames = Frames::open(&env, &format!("/sessions/{id}/stream"), None).await;
    let first = frames.next().await.unwrap();
    let head = env.well.info(&id).unwrap().head.seq.get();
    assert_eq!((first.name.as_str(), first.id), ("info", Some(head)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_no_secret_of_an_imported_task() {
    let env = TestEnv::new().await;
    // Built at run time, so that this file contains no secret.
    let secret = format!("ghp_{}", "aB3dE5gH7jK9mN1p".repeat(3));
    let created = env.well.draft("imported");
    let created = stepwell::Created { task: format!("use {secret}"), ..created };
    let id = created.id.clone();
    // Unredacted, as an import writes it.
    let create = stepwell::store::Create { created, event_id: None, at: None, claim: None };
    env.well.store().write(stepwell::store::Write::Create(create)).unwrap();
    assert!(env.well.info(&id).unwrap().head.task.contains(&secret));
    let mut frames = Frames::open(&env, &format!("/sessions/{id}/stream"), Some(0)).await;
    loop {
        let frame = frames.next().await.unwrap();
        assert!(!frame.data.to_string().contains(&secret), "{frame:?}");
        if frame.name == "info" {
            break;
        }
    }
    // A start beyond the end means the end: new events arrive.
    let mut frames = Frames::open(&env, &format!("/sessions/{id}/stream"), Some(999)).await;
    assert_eq!(frames.next().await.unwrap().id, Some(1));
    env.well
        .edit(&id, stepwell::model::Edited { pinned: Some(true), ..Default::default() })
        .unwrap();
    assert_eq!(frames.next().await.unwrap().id, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_where_it_was_over_a_restart_of_the_server() {
    let mut env = TestEnv::new().await;
    let id = env.session();
    let path = format!("/sessions/{id}/stream?from=1");
    let mut frames = Frames::open(&env, &path, None).await;
    let begun = env.well.info(&id).unwrap().head.seq.get();
    let seen = frames.ids(usize::try_from(begun).unwrap()).await;
    assert_eq!(seen, (1..=begun).collect::<Vec<_>>());
    say(&env, &id, 3);
    let more = frames.ids(3).await;
    assert_eq!(more, (begun + 1..=begun + 3).collect::<Vec<_>>());
    // Events recorded while no server runs come with the next connection.
    env.stop().await;
    say(&env, &id, 4);
    env.serve();
    let mut frames = Frames::open(&env, &path, more.last().copied()).await;
    let rest = frames.ids(4).await;
    assert_eq!(rest, (begun + 4..=begun + 7).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_watch_one_session_and_each_sees_every_event_once() {
    let env = TestEnv::new().await;
    let id = env.session();
    let begun = env.well.info(&id).unwrap().head.seq.get();
    let path = format!("/sessions/{id}/stream");
    let mut watchers = Vec::new();
    for _ in 0..20 {
        watchers.push(Frames::open(&env, &path, Some(begun)).await);
    }
    say(&env, &id, 30);
    for mut frames in watchers {
        assert_eq!(frames.ids(30).await, (begun + 1..=begun + 30).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_session_is_erased() {
    let env = TestEnv::new().await;
    let id = env.session();
    let mut frames = Frames::open(&env, &format!("/sessions/{id}/stream?from=1"), None).await;
    let begun = env.well.info(&id).unwrap().head.seq.get();
    let _ = frames.ids(usize::try_from(begun).unwrap()).await;
    env.well.purge(&id).unwrap();
    let mut last = None;
    while let Some(frame) = frames.next().await {
        last = Some(frame.name);
    }
    assert_eq!(last.as_deref(), Some("gone"));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_name_the_sessions_that_changed() {
    let env = TestEnv::new().await;
    let mut frames = Frames::open(&env, "/changes", None).await;
    let id = env.session();
    let frame = frames.next().await.unwrap();
    assert!(frame.name == "changed" || frame.name == "reset", "{frame:?} of {id}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_tells_of_changes_in_all_of_a_users_stores() {
    let env = TestEnv::new().await;
    let other = env.other_store();
    let mut frames = Frames::open(&env, "/changes?store=*", None).await;
    let here = env.session();
    let there = other.create(other.draft("elsewhere")).unwrap().id().clone();
    let list = env.get("/stores").await.json;
    let key = |home: bool| {
        let all = list["items"].as_array().unwrap();
        all.iter().find(|it| it["home"] == home).unwrap()["key"].as_str().unwrap().to_owned()
    };
    let (home, elsewhere) = (key(true), key(false));
    let mut told = std::collections::BTreeSet::new();
    while !(told.contains(&home) && told.contains(&elsewhere)) {
        let frame = frames.next().await.unwrap();
        // After too many changes only the store is named.
        assert!(frame.name == "changed" || frame.name == "reset", "{frame:?}");
        let store = frame.data["store"].as_str().unwrap();
        match frame.data["id"].as_str() {
            Some(id) if id == here.as_str() => assert_eq!(store, home),
            Some(id) => assert_eq!((id, store), (there.as_str(), elsewhere.as_str())),
            None => {}
        }
        told.insert(store.to_owned());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_has_only_so_many_streams() {
    let env = TestEnv::new().await;
    let id = env.session();
    let home = env.get("/stores").await.json["items"][0]["key"].as_str().unwrap().to_owned();
    // Each followed session counts, too.
    let follow = format!("&follow={home}/{id}/1").repeat(63);
    let path = format!("/changes?store=*{follow}");
    let _open = [Frames::open(&env, &path, None).await, Frames::open(&env, &path, None).await];
    let refused = env.get("/changes").await;
    assert_eq!(refused.status, 429, "{:#}", refused.json);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_follows_several_sessions_and_one_that_is_gone_ends_no_other() {
    let mut env = TestEnv::new().await;
    let [one, other] = [env.session(), env.session()];
    let home = env.get("/stores").await.json["items"][0]["key"].as_str().unwrap().to_owned();
    let path = |from: u64| {
        let nobody = "20260101-000000-abcdef";
        let follow = |id: &str| format!("&follow={home}%2F{id}%2F{from}");
        format!(
            "/changes?store=*{}{}{}",
            follow(nobody),
            follow(one.as_str()),
            follow(other.as_str())
        )
    };
    let mut frames = Frames::open(&env, &path(1), None).await;
    let mut told: HashMap<String, Vec<u64>> = HashMap::new();
    let mut gone = Vec::new();
    let last = env.well.info(&one).unwrap().head.seq.get();
    let is_whole = |told: &HashMap<String, Vec<u64>>, last: u64| {
        [&one, &other]
            .iter()
            .all(|id| told.get(id.as_str()).and_then(|it| it.last()) == Some(&last))
    };
    while gone.is_empty() || !is_whole(&told, last) {
        let frame = frames.next().await.unwrap();
        let session = frame.data["session"].as_str().unwrap_or_default().to_owned();
        match frame.name.as_str() {
            "recorded" => {
                assert_eq!(
                    (frame.id, &frame.data["store"]),
                    (frame.data["data"]["seq"].as_u64(), &Value::from(home.as_str()))
                );
                told.entry(session).or_default().extend(frame.id);
            }
            "gone" => gone.push(session),
            _ => {}
        }
    }
    assert_eq!(gone, ["20260101-000000-abcdef"]);
    // Events recorded while no client listens come after a reconnect, also over a restart.
    drop(frames);
    env.stop().await;
    say(&env, &one, 3);
    env.serve();
    say(&env, &other, 3);
    let mut frames = Frames::open(&env, &path(last + 1), None).await;
    while !is_whole(&told, last + 3) {
        let frame = frames.next().await.unwrap();
        if frame.name == "recorded" {
            let session = frame.data["session"].as_str().unwrap().to_owned();
            told.entry(session).or_default().extend(frame.id);
        }
    }
    for id in [&one, &other] {
        assert_eq!(told[id.as_str()], (1..=last + 3).collect::<Vec<_>>());
    }
    let refused = env.get("/changes?follow=nonsense").await;
    assert_eq!((refused.status, &refused.json["place"]), (400, &Value::from("follow")));
}

const WHOLE: &str = "Half an answer, and the rest of it.";
const HALF: &str = "Half an answer,";

impl Frames {
    /// Reads pieces until the text has this content.
    async fn until_heard(&mut self, wanted: &str) {
        let mut text = String::new();
        while text != wanted {
            let frame = self.next().await.expect("a frame");
            assert_ne!(frame.data["kind"], "void");
            if frame.name == "delta" {
                assert_eq!(frame.id, None, "a piece is not on record");
                text.push_str(frame.data["text"].as_str().unwrap_or_default());
                assert!(wanted.starts_with(&text), "{text}");
            }
        }
    }

    /// Reads pieces until the answer is recorded: the text of the pieces, and of the answer.
    async fn until_answered(&mut self) -> (String, String) {
        let mut heard = String::new();
        loop {
            let frame = self.next().await.expect("a frame");
            let body = &frame.data["body"];
            match frame.name.as_str() {
                "delta" => heard.push_str(frame.data["text"].as_str().unwrap_or_default()),
                "recorded" if body["role"] == "assistant" => {
                    let text = body["parts"][0]["text"]["text"].as_str().unwrap();
                    return (heard, text.to_owned());
                }
                _ => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_hears_a_model_while_it_speaks_and_nobody_else_does() {
    let env = TestEnv::new().await;
    let strict = Strict::start(Rules::default()).await.unwrap();
    strict.push(Say::text(WHOLE).ending(Ending::PausedAfter(4)));
    let handle = tokio::task::block_in_place(|| env.start_run(&strict));
    let path = format!("/sessions/{}/stream?from=1", handle.id());
    let mut user = Frames::open(&env, &path, None).await;
    user.until_heard(HALF).await;
    // A client that joins in the middle receives the answer from its beginning.
    let mut late = Frames::open(&env, &path, None).await;
    late.until_heard(HALF).await;
    let mut viewer = Frames::open_as(&env, &env.viewer, &path, None).await;
    let mut colleague = Frames::open_as(&env, &env.colleague, &path, None).await;
    strict.go_on();
    for frames in [&mut user, &mut late] {
        let (rest, answer) = frames.until_answered().await;
        assert_eq!(answer, WHOLE);
        assert!(WHOLE.strip_prefix(HALF).unwrap().starts_with(&rest), "{rest}");
    }
    for frames in [&mut viewer, &mut colleague] {
        assert_eq!(frames.until_answered().await, (String::new(), WHOLE.to_owned()));
    }
    let report = tokio::task::block_in_place(|| handle.join()).unwrap();
    assert_eq!(report.status, stepwell::Status::Success);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_stopped_waits_however_often_it_is_looked_at() {
    let env = TestEnv::new().await;
    let strict = Strict::start(Rules::default()).await.unwrap();
    strict.push(Say::text(WHOLE).ending(Ending::PausedAfter(4)));
    let handle = tokio::task::block_in_place(|| env.start_run(&strict));
    let id = handle.id().clone();
    strict.arrived(1).await;
    let stopped = env.post(&format!("/sessions/{id}/stop"), json!({})).await;
    assert_eq!(stopped.status, 200, "{:#}", stopped.json);
    let report = tokio::task::block_in_place(|| handle.join()).unwrap();
    assert_eq!(report.reason, Some(stepwell::StopReason::UserInterrupt));
    let before = env.well.info(&id).unwrap().head;
    let gets = env.paths().into_iter().filter(|(method, path)| {
        method == "get" && path.starts_with("/sessions/{id}") && path.matches('{').count() == 1
    });
    let gets: Vec<String> = gets.map(|(_, path)| path.replace("{id}", id.as_str())).collect();
    assert!(gets.len() > 3, "{gets:?}");
    for path in &gets {
        env.get(path).await;
    }
    assert_eq!(env.well.info(&id).unwrap().head, before);
    assert_eq!(strict.asked().len(), 1, "a model was asked");
    strict.go_on();
}
