//! Changing sessions over HTTP: permissions, effects and answers.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use stepwell::clock::Clock;
use stepwell::model::{Compacted, Kind, Scope, Time};
use stepwell::sqlite::{SqliteOptions, SqliteStore};
use stepwell::store::{Append, Span, Write};
use stepwell::{Event, Lane, Message, Seq, Status, Stepwell, StopReason};

use crate::test_env::{Limits, TestEnv, gate};

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_named_tagged_pinned_trashed_and_restored() {
    let env = TestEnv::new().await;
    let path = format!("/sessions/{}", env.session());
    let edit = json!({"label": "login", "tags": ["a", "b"], "pinned": true, "goal": "it works"});
    let edited = env.send(Method::PATCH, &path, Some(edit)).await.json;
    assert_eq!(edited["label"], "login");
    assert_eq!(edited["tags"], json!(["a", "b"]));
    assert_eq!((&edited["pinned"], &edited["goal"]), (&json!(true), &json!("it works")));
    let edit = json!({"label": null, "tags": ["b"]});
    let edited = env.send(Method::PATCH, &path, Some(edit)).await.json;
    assert!(edited.get("label").is_none());
    assert_eq!((&edited["tags"], &edited["pinned"]), (&json!(["b"]), &json!(true)));
    // A repetition has no effect.
    for _ in 0..2 {
        assert_eq!(env.send(Method::DELETE, &path, None).await.status, 200);
    }
    assert_eq!(env.get("/sessions").await.json["items"], json!([]));
    assert_eq!(env.get("/sessions?trash=true").await.json["items"].as_array().unwrap().len(), 1);
    for _ in 0..2 {
        assert_eq!(env.post(&format!("{path}/restore"), json!({})).await.status, 200);
    }
    assert_eq!(env.get("/sessions").await.json["items"].as_array().unwrap().len(), 1);
    // The log names the author, once for each change.
    let log = env.get(&format!("{path}/events?kind=edited&order=oldest")).await.json;
    let moves: Vec<_> = log["items"].as_array().unwrap().iter().map(|it| &it["body"]).collect();
    let moves: Vec<_> = moves.into_iter().filter(|it| it.get("trashed").is_some()).collect();
    assert_eq!(moves.len(), 2, "{moves:?}");
    for (moved, trashed) in moves.into_iter().zip([true, false]) {
        assert_eq!(moved["trashed"], trashed);
        assert!(moved["who"].to_string().contains("web: ann"), "{moved}");
    }
}

/// A clock that stands still.
#[derive(Debug)]
struct Then(Time);

impl Clock for Then {
    fn now(&self) -> Time {
        self.0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_has_the_trash_emptied_of_what_is_due() {
    let env = TestEnv::new().await;
    let id = env.session();
    let due = env.well.create(env.well.draft("long ago")).unwrap();
    let due = {
        let id = due.id().clone();
        due.finish(Status::Success, None).unwrap();
        id
    };
    // As if it had been deleted long ago.
    let month = Duration::from_secs(31 * 86_400);
    let clock = Arc::new(Then(env.well.now().minus(month)));
    let options = SqliteOptions { clock, ..SqliteOptions::default() };
    let store = Arc::new(SqliteStore::open_with(&env.store(), options).unwrap());
    Stepwell::with(store, stepwell::sessions::Deps::default()).delete(&due).unwrap();
    let known = env.well.subscribe().unwrap();
    assert!(env.well.store().exists(&due).unwrap());
    let edit = json!({"label": "login"});
    let path = format!("/sessions/{id}");
    assert_eq!(env.send(Method::PATCH, &path, Some(edit)).await.status, 200);
    // Only this test waits for it.
    let is_there = || env.well.store().exists(&due).unwrap();
    while is_there() {
        let told = known.next(Duration::from_secs(20)).unwrap();
        assert!(told.is_some() || !is_there(), "nothing was tidied");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_counts_and_the_second_is_told_whose_it_was() {
    let env = TestEnv::new().await;
    let id = env.session();
    let gates = env.get("/gates").await.json;
    assert_eq!(gates["items"][0]["session_id"], id.as_str());
    let path = format!("/sessions/{id}/gates/ask-1");
    let answer = env.post(&path, json!({"choice": "deny", "reason": "not now"})).await;
    assert_eq!(answer.status, 200, "{:#}", answer.json);
    assert_eq!(answer.json["goes_on"], false);
    let second = env.post(&path, json!({"choice": "once"})).await;
    assert_eq!(second.status, 409, "{:#}", second.json);
    assert!(second.json["title"].as_str().unwrap().contains("web: ann"), "{:#}", second.json);
    let facts = env.well.store().keyed_events(&id, &[Kind::GateAnswered]).unwrap();
    let Event::GateAnswered(given) = &facts[0].event else { panic!("{facts:?}") };
    assert_eq!(given.who.name, "web: ann");
    assert!(!given.answer.allows());
    assert_eq!(env.get("/gates").await.json["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_one_choice_or_words_and_only_a_denial_has_a_reason() {
    let env = TestEnv::new().await;
    let path = format!("/sessions/{}/gates/ask-1", env.session());
    for body in [
        json!({}),
        json!({"reason": "not now"}),
        json!({"choice": "once", "text": "yes"}),
        json!({"choice": "once", "reason": "but not again"}),
        json!({"choice": "perhaps"}),
        json!({"text": "yes, but look first"}),
    ] {
        let answer = env.post(&path, body.clone()).await;
        assert!((400..500).contains(&answer.status), "{body}: {:#}", answer.json);
    }
    assert_eq!(env.get("/gates").await.json["items"].as_array().unwrap().len(), 1);
    assert_eq!(env.post(&path, json!({"text": "no: not now"})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_is_offered_with_what_it_is_about() {
    let env = TestEnv::new().await;
    env.session();
    let gates = env.get("/gates").await.json;
    let offers = json!([
        {"choice": "once", "label": "Allow once"},
        {"choice": "always", "label": "Always allow any call of run_command in this session"},
        {"choice": "deny", "label": "Deny"},
        {"choice": "never", "label": "Never allow any call of run_command in this session"},
    ]);
    assert_eq!(gates["items"][0]["offers"], offers);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_does_not_undo_a_stop() {
    let env = TestEnv::new().await;
    let session = env.well.create(env.well.draft("stopped at a question")).unwrap();
    let id = session.id().clone();
    session.append(gate("ask-1")).unwrap();
    session.finish(Status::Interrupted, Some(StopReason::UserInterrupt)).unwrap();
    let path = format!("/sessions/{id}");
    assert_eq!(env.get(&path).await.json["stopped"], true);
    let answer = json!({"choice": "deny", "reason": "not now"});
    let answer = env.post(&format!("{path}/gates/ask-1"), answer).await.json;
    assert_eq!((&answer["goes_on"], &answer["stopped"]), (&json!(false), &json!(true)));
    assert_eq!(answer["resume"], id.as_str());
    assert_eq!(env.get(&path).await.json["stopped"], true);
    // A session that waits at a question was not stopped, so an answer continues it.
    let waits = env.session();
    let answer = json!({"choice": "deny"});
    let answer = env.post(&format!("/sessions/{waits}/gates/ask-1"), answer).await.json;
    assert_eq!(answer.get("stopped"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_sessions_that_can_be_resumed_are_full() {
    let env = TestEnv::new().await;
    let mut wanted = std::collections::BTreeSet::new();
    for n in 0..12 {
        let session = env.well.create(env.well.draft("one of many")).unwrap();
        let id = session.id().to_string();
        // Three of four are done.
        let status = if n % 4 == 0 { Status::Partial } else { Status::Success };
        session.finish(status, None).unwrap();
        if n % 4 == 0 {
            wanted.insert(id);
        }
    }
    let (mut found, mut lengths, mut cursor) = (Vec::new(), Vec::new(), String::new());
    loop {
        let list = env.get(&format!("/sessions?ready=true&limit=2{cursor}")).await.json;
        let items = list["items"].as_array().unwrap();
        lengths.push(items.len());
        found.extend(items.iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        let Some(next) = list["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(lengths, [2, 1]);
    assert_eq!(found.into_iter().collect::<std::collections::BTreeSet<_>>(), wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_what_was_rewound_since_is_refused() {
    let env = TestEnv::new().await;
    let id = env.session();
    let seen = env.well.info(&id).unwrap().head.seq.get();
    let session = env.well.lock(&id).unwrap();
    session.rewind(Seq::new(3), Scope::Chat).unwrap();
    session.append(gate("ask-1")).unwrap();
    drop(session);
    let path = format!("/sessions/{id}/gates/ask-1");
    let answer = env.post(&path, json!({"choice": "once", "seen": seen})).await;
    assert_eq!(answer.status, 409, "{:#}", answer.json);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_is_in_the_log_with_the_name_of_who_said_it() {
    let env = TestEnv::new().await;
    let id = env.session();
    let said = env.post(&format!("/sessions/{id}/say"), json!({"text": "use make -k"})).await;
    assert_eq!((said.status, &said.json["running"]), (200, &json!(false)));
    let facts = env.well.store().keyed_events(&id, &[Kind::Said]).unwrap();
    let Event::Said(said) = &facts[0].event else { panic!("{facts:?}") };
    assert_eq!((said.text.as_str(), said.who.name.as_str()), ("use make -k", "web: ann"));
    let empty = env.post(&format!("/sessions/{id}/say"), json!({"text": " "})).await;
    assert_eq!((empty.status, &empty.json["place"]), (400, &json!("text")));
    let stop = env.post(&format!("/sessions/{id}/stop"), json!({})).await;
    assert_eq!(stop.status, 409, "nobody runs it: {:#}", stop.json);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_key_is_carried_out_once() {
    let env = TestEnv::new().await;
    let id = env.session();
    let say = async |key: &str, text: &str| {
        let request = reqwest::Client::new()
            .post(env.url(&format!("/sessions/{id}/say")))
            .header("authorization", format!("Bearer {}", env.operator.reveal()))
            .header("content-type", "application/json")
            .header("x-stepwell", "1")
            .header("idempotency-key", key)
            .body(json!({"text": text}).to_string());
        request.send().await.unwrap().status().as_u16()
    };
    for _ in 0..3 {
        assert_eq!(say("k1", "use make -k").await, 200);
    }
    assert_eq!(say("k1", "something else").await, 422);
    assert_eq!(say("k2", "use make -k").await, 200);
    let said = env.well.store().keyed_events(&id, &[Kind::Said]).unwrap();
    assert_eq!(said.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_again_after_a_restart_changes_nothing() {
    let mut env = TestEnv::new().await;
    let id = env.session();
    let mut seqs = Vec::new();
    for _ in 0..2 {
        for (route, body) in [
            ("say", json!({"text": "use make -k"})),
            ("checkpoint", json!({"name": "here"})),
            ("gates/ask-1", json!({"choice": "deny"})),
        ] {
            let request = reqwest::Client::new()
                .post(env.url(&format!("/sessions/{id}/{route}")))
                .header("authorization", format!("Bearer {}", env.operator.reveal()))
                .header("content-type", "application/json")
                .header("x-stepwell", "1")
                .header("idempotency-key", "k1")
                .body(body.to_string());
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 200, "{route}");
        }
        seqs.push(env.well.info(&id).unwrap().head.seq);
        env.stop().await;
        env.serve();
    }
    assert_eq!(seqs[0], seqs[1], "nothing was recorded again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_not_the_same_is_another_run() {
    let env = TestEnv::new().await;
    let id = env.session();
    let task = env.well.info(&id).unwrap().head.task;
    let longer = json!({"id": id, "task": format!("{task} and then erase everything")});
    assert_eq!(env.post("/sessions", longer).await.status, 409);
    let same = json!({"id": id, "task": task});
    assert_eq!(env.post("/sessions", same.clone()).await.status, 202);
    env.send(Method::DELETE, &format!("/sessions/{id}"), None).await;
    assert_eq!(env.post("/sessions", same).await.status, 409, "it is in the trash");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_other_stores_are_the_users_alone() {
    let env = TestEnv::new().await;
    let other = env.other_store();
    let id = other.create(other.draft("private")).unwrap().id().clone();
    let all = env.get("/stores").await.json;
    let key = all["items"][1]["key"].as_str().unwrap().to_owned();
    let path = format!("/sessions/{id}?store={key}");
    assert_eq!(env.get(&path).await.status, 200);
    for token in [&env.colleague, &env.viewer] {
        let theirs = env.send_as(token, Method::GET, "/stores", None).await.json;
        assert_eq!(theirs["items"].as_array().unwrap().len(), 1, "{theirs:#}");
        assert_eq!(env.send_as(token, Method::GET, &path, None).await.status, 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_shown_as_it_was_at_a_point() {
    let env = TestEnv::new().await;
    let id = env.session();
    let session = env.well.lock(&id).unwrap();
    let at = session.append(Message::user("before the point")).unwrap();
    session.append(Message::user("behind the point")).unwrap();
    drop(session);
    let page = |query: String| {
        let request = reqwest::Client::new()
            .get(env.url(&format!("/sessions/{id}/document{query}")))
            .header("authorization", format!("Bearer {}", env.operator.reveal()));
        async move { request.send().await.unwrap().text().await.unwrap() }
    };
    let then = page(format!("?at={at}")).await;
    assert!(then.contains("before the point") && !then.contains("behind the point"), "{then}");
    assert!(page(String::new()).await.contains("behind the point"));
    for wrong in ["view?lane=nowhere", "files/content?path=gone.txt"] {
        assert_eq!(env.get(&format!("/sessions/{id}/{wrong}")).await.status, 404, "{wrong}");
    }
    for wrong in ["events?kind=bogus", "document?format=json"] {
        assert_eq!(env.get(&format!("/sessions/{id}/{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(env.post(&format!("/sessions/{id}/verify"), json!({})).await.status, 200);
    assert_eq!(env.get(&format!("/sessions?family={id}")).await.json["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_not_known_is_refused_and_the_known_ones_are_named() {
    let env = TestEnv::new().await;
    for path in ["/sessions".to_owned(), format!("/sessions/{}/resume", env.session())] {
        let refused = env.post(&path, json!({"task": "x", "budjet": "0.01"})).await;
        assert_eq!(refused.status, 400, "{:#}", refused.json);
        let title = refused.json["title"].as_str().unwrap();
        assert!(title.contains("budget") && title.contains("max_steps"), "{title}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_no_text_is_a_problem_like_any_other() {
    let env = TestEnv::new().await;
    let refused = env.get("/sessions/%ff%fe").await;
    assert_eq!((refused.status, &refused.json["kind"]), (400, &json!("invalid")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_compared_with_its_parent() {
    let env = TestEnv::new().await;
    let id = env.session();
    let fork = env.post(&format!("/sessions/{id}/fork"), json!({"at": 3, "label": "other"})).await;
    assert_eq!(fork.status, 200, "{:#}", fork.json);
    let fork: stepwell::SessionId = fork.json["id"].as_str().unwrap().parse().unwrap();
    let session = env.well.lock(&fork).unwrap();
    session.step([Message::assistant("another way")]).unwrap();
    drop(session);
    let compared = env.get(&format!("/sessions/{id}/compare?with={fork}")).await.json;
    assert_eq!(compared["parted_at"], 3);
    assert_eq!(compared["right"]["steps"], 1);
    let stranger = env.session();
    let compared = env.get(&format!("/sessions/{id}/compare?with={stranger}")).await.json;
    assert_eq!(compared["parted_at"], 0, "they share nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_and_a_read_only_server_change_nothing() {
    let env = TestEnv::new().await;
    let strict = TestEnv::with(Limits { read_only: true }).await;
    for env in [&env, &strict] {
        let id = env.session();
        let before = env.well.info(&id).unwrap().head.seq;
        // Logging in and out changes no session, so every caller may do it.
        let changes = |(method, path): &(String, String)| {
            method != "get" && path != "/login" && path != "/logout"
        };
        for (method, path) in env.paths().into_iter().filter(changes) {
            let path = path.replace("{id}", id.as_str()).replace("{gate}", "ask-1");
            let method: Method = method.to_uppercase().parse().unwrap();
            let token = match env.port == strict.port {
                true => &env.operator,
                false => &env.viewer,
            };
            let answer = env.send_as(token, method.clone(), &path, None).await;
            assert_eq!(answer.status, 403, "{method} {path}: {:#}", answer.json);
        }
        assert_eq!(env.well.info(&id).unwrap().head.seq, before);
        assert_eq!(env.send_as(&env.viewer, Method::GET, "/sessions", None).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_no_program_starts_nothing() {
    let env = TestEnv::new().await;
    let start = env.post("/sessions", json!({"task": "x"})).await;
    assert_eq!((start.status, &start.json["kind"]), (403, &json!("denied")));
    let yolo = env.post("/sessions", json!({"task": "x", "mode": "yolo"})).await;
    assert!(yolo.json["title"].as_str().unwrap().contains("ask nobody"), "{:#}", yolo.json);
    let script = env.post("/sessions", json!({"task": "x", "model": "script:/etc/passwd"})).await;
    assert_eq!((script.status, &script.json["place"]), (403, &json!("model")));
    let flow = env.post("/flows", json!({"path": "../../etc/passwd"})).await;
    assert_eq!((flow.status, &flow.json["place"]), (404, &json!("path")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_as_it_came_is_shown_without_secrets() {
    let env = TestEnv::new().await;
    // Built at run time, so that this file contains no secret.
    let secret = format!("ghp_{}", "aB3dE5gH7jK9mN1p".repeat(3));
    let session = env.well.create(env.well.draft("imported")).unwrap();
    let id = session.id().clone();
    let words = Message::user(format!("the token is {secret}"));
    let (epoch, events) = (Some(session.lease().epoch), vec![words.into()]);
    let append = Append { session: id.clone(), epoch, expected: None, events: events.into() };
    // Unredacted, as an import writes it.
    env.well.store().write(Write::Append(append)).unwrap();
    let kept = env.well.store().events(&id, Span::ALL).unwrap().events;
    assert!(serde_json::to_string(&kept).unwrap().contains(&secret));
    for path in ["events", "view"] {
        let shown = env.get(&format!("/sessions/{id}/{path}")).await.json.to_string();
        assert!(shown.contains("the token is") && !shown.contains(&secret), "{shown}");
    }
    // Only the user may export it unredacted.
    let path = format!("/sessions/{id}/export?format=json");
    for token in [&env.colleague, &env.viewer] {
        assert_eq!(env.send_as(token, Method::GET, &path, None).await.status, 403);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_counts_for_the_user_only_if_the_user_gave_it() {
    let env = TestEnv::new().await;
    for (token, counts) in [(&env.operator, true), (&env.colleague, false)] {
        let id = env.session();
        let path = format!("/sessions/{id}/gates/ask-1");
        let allow = Some(json!({"choice": "once"}));
        let answer = env.send_as(token, Method::POST, &path, allow).await;
        assert_eq!(answer.status, 200, "{:#}", answer.json);
        assert_eq!(answer.json["counts"], counts, "{:#}", answer.json);
        let ignored = env.well.weigh(&id).unwrap().ignored;
        assert_eq!(ignored.is_empty(), counts, "{ignored:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_used_for_something_else_is_refused_also_after_a_restart() {
    let mut env = TestEnv::new().await;
    let id = env.session();
    let path = |rest: &str| format!("/sessions/{id}{rest}");
    let requests = [
        (Method::POST, path("/checkpoint"), json!({"name": "c1"}), json!({"name": "c2"})),
        (Method::POST, path("/say"), json!({"text": "one"}), json!({"text": "two"})),
        (Method::PATCH, path(""), json!({"label": "one"}), json!({"label": "two"})),
        (Method::PATCH, path(""), json!({"tags": ["a"]}), json!({"tags": ["b"]})),
        (Method::POST, path("/gates/ask-1"), json!({"choice": "deny"}), json!({"choice": "once"})),
    ];
    for (n, (method, path, first, _)) in requests.iter().enumerate() {
        let done = env.send_once(&format!("k{n}"), method.clone(), path, first).await;
        assert_eq!(done.status, 200, "{path}: {:#}", done.json);
    }
    env.stop().await;
    env.serve();
    let before = env.well.info(&id).unwrap().head.seq;
    for (n, (method, path, first, other)) in requests.iter().enumerate() {
        let key = format!("k{n}");
        let refused = env.send_once(&key, method.clone(), path, other).await;
        assert_eq!(refused.status, 422, "{path}: {:#}", refused.json);
        let again = env.send_once(&key, method.clone(), path, first).await;
        assert_eq!(again.status, 200, "{path}: {:#}", again.json);
    }
    assert_eq!(env.well.info(&id).unwrap().head.seq, before, "nothing was recorded again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_of_one_target_and_of_changes_alone() {
    let env = TestEnv::new().await;
    let id = env.session();
    let session = env.well.lock(&id).unwrap();
    session.append(gate("ask-2")).unwrap();
    drop(session);
    let body = json!({"choice": "deny"});
    for name in ["ask-1", "ask-2"] {
        let path = format!("/sessions/{id}/gates/{name}");
        let answer = env.post_once("same", &path, &body).await;
        assert_eq!((answer.status, &answer.json["gate"]), (200, &json!(name)), "{:#}", answer.json);
    }
    assert_eq!(env.get("/gates").await.json["items"], json!([]));
    env.session();
    for limit in [1, 2] {
        let path = format!("/sessions?limit={limit}");
        let list = env.send_once("same", Method::GET, &path, &json!({})).await.json;
        assert_eq!(list["items"].as_array().unwrap().len(), limit);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_takes_no_label_that_is_taken() {
    let env = TestEnv::new().await;
    let path = format!("/sessions/{}/fork", env.session());
    assert_eq!(env.post(&path, json!({"label": "f"})).await.status, 200);
    let second = env.post(&path, json!({"label": "f"})).await;
    assert_eq!(second.status, 400, "{:#}", second.json);
    assert!(second.json["title"].as_str().unwrap().contains("already"), "{:#}", second.json);
    let fork = env.post(&path, json!({})).await.json["id"].as_str().unwrap().to_owned();
    let events = env.get(&format!("/sessions/{fork}/events?kind=edited")).await.json;
    assert_eq!(events["items"][0]["body"]["who"], "web: ann", "{events:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_is_taken_back_once_and_by_somebody() {
    let mut env = TestEnv::new().await;
    let id = env.session();
    let session = env.well.lock(&id).unwrap();
    for _ in 0..2 {
        let to = session.append(Message::user("more")).unwrap();
        session.append(Compacted::new(Lane::main(), to, to)).unwrap();
    }
    drop(session);
    let path = format!("/sessions/{id}/compact/undo");
    let mut undone = Vec::new();
    for _ in 0..2 {
        let answer = env.post_once("u1", &path, &json!({})).await;
        assert_eq!(answer.status, 200, "{:#}", answer.json);
        undone.push(answer.json["undone"].clone());
        env.stop().await;
        env.serve();
    }
    assert_eq!(undone[0], undone[1], "the one before it stays");
    assert_eq!(env.well.store().keyed_events(&id, &[Kind::Undone]).unwrap().len(), 1);
    let events = env.get(&format!("/sessions/{id}/events?kind=edited")).await.json;
    assert_eq!(events["items"][0]["body"]["who"], "web: ann", "{events:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_shown_with_the_settings_of_then() {
    let env = TestEnv::new().await;
    let session = env.well.create(env.well.draft("look")).unwrap();
    let id = session.id().clone();
    let with = |model: &str, agent: &str| stepwell::model::Settings {
        model: Some(model.to_owned()),
        agent: Some(agent.to_owned()),
        who: "ann".into(),
        ..stepwell::model::Settings::default()
    };
    session.append(with("openai/first", "build")).unwrap();
    let pin = session.append(Message::user("look")).unwrap();
    let then = session.append(Message::assistant("I looked.")).unwrap();
    drop(session);
    let shown = async || env.get(&format!("/sessions/{id}/view?at={then}")).await.json;
    let before = shown().await;
    let session = env.well.lock(&id).unwrap();
    session.append(with("openai/second", "explore")).unwrap();
    session.append(Message::user("again")).unwrap();
    drop(session);
    let pinned = stepwell::model::Edited {
        pin_messages: [pin].into(),
        ..stepwell::model::Edited::default()
    };
    env.well.edit(&id, pinned).unwrap();
    assert_eq!(before["model"], "openai/first");
    assert_eq!(shown().await, before);
    let now = env.get(&format!("/sessions/{id}/view")).await.json;
    assert_eq!(now["model"], "openai/second");
    assert_ne!(now["tools"], before["tools"], "another agent has other tools");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_user_has_elsewhere_is_not_shown_to_others() {
    let env = TestEnv::new().await;
    drop(env.other_store());
    std::fs::remove_file(env.other_store_file()).unwrap();
    let own = env.get("/doctor").await.json.to_string();
    assert!(own.contains("known stores") && own.contains("is gone"), "{own}");
    for token in [&env.colleague, &env.viewer] {
        let theirs = env.send_as(token, Method::GET, "/doctor", None).await.json.to_string();
        assert!(!theirs.contains("known stores") && !theirs.contains("is gone"), "{theirs}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_opened_is_named() {
    let env = TestEnv::new().await;
    drop(env.other_store());
    std::fs::write(env.other_store_file(), "junk".repeat(4096)).unwrap();
    let stores = env.get("/stores").await.json;
    assert_eq!(stores["items"].as_array().unwrap().len(), 2, "{stores:#}");
    assert!(stores["items"][1]["problem"].is_string(), "{stores:#}");
    assert!(stores["items"][0].get("problem").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_only_begins_alike_is_another_run() {
    let env = TestEnv::new().await;
    let long = "word ".repeat(4000);
    let session = env.well.create(env.well.draft(&long)).unwrap();
    let id = session.id().clone();
    drop(session);
    let other = json!({"id": id, "task": format!("{long} and something else")});
    assert_eq!(env.post("/sessions", other).await.status, 409);
    assert_eq!(env.post("/sessions", json!({"id": id, "task": long})).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_tells_how_a_session_stood_then() {
    let env = TestEnv::new().await;
    let id = env.session();
    let page = async |at: u64| {
        let answer = reqwest::Client::new()
            .get(env.url(&format!("/sessions/{id}/document?at={at}")))
            .header("authorization", format!("Bearer {}", env.operator.reveal()));
        let answer = answer.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (status, text) = page(2).await;
    assert!(status == 200 && text.contains("running") && !text.contains("crashed"), "{text}");
    assert_eq!(page(0).await.0, 400);
}
