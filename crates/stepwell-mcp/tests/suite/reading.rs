//! Reading: every tool in both eras, with limited size, without secrets, marked as quoted.

use std::collections::BTreeSet;

use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::{Value, json};
use stepwell::model::{Edited, Source};
use stepwell::{Created, Message, Seq, SessionId, Status, StopReason};
use stepwell_mcp::{Access, Options, Scope};

use crate::test_env::{ATTACK, ERAS, SECRET, TestEnv, connect, workspace, write_file};

pub(crate) const READ_TOOLS: [&str; 9] = [
    "search_sessions",
    "list_sessions",
    "read_session",
    "read_event",
    "session_diff",
    "file_at",
    "compare_sessions",
    "open_gates",
    "session_stats",
];

/// A read tool's arguments about a session that fixed the login and one that waits.
pub(crate) fn arguments(tool: &str, login: &SessionId, waiting: &SessionId) -> Value {
    match tool {
        "search_sessions" => json!({"query": "login"}),
        "list_sessions" | "open_gates" | "session_stats" => json!({}),
        "read_event" => json!({"session": login, "seq": 2}),
        "file_at" => json!({"session": login, "path": "./login.rs"}),
        "compare_sessions" => json!({"session": login, "with": waiting}),
        _ => json!({"session": login}),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reading_tool_answers_in_both_eras_as_its_schema_says() {
    let env = TestEnv::new();
    let (login, waiting) = (env.login(), env.waiting());
    for era in ERAS {
        let client = connect(env.server(Options::default()), era).await;
        let tools = client.0.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, READ_TOOLS);
        for tool in &tools {
            let hints = tool.annotations.as_ref().unwrap();
            assert_eq!((hints.read_only_hint, hints.open_world_hint), (Some(true), Some(false)));
            let answer = client.answer(&tool.name, arguments(&tool.name, &login, &waiting)).await;
            let schema = Value::Object((**tool.output_schema.as_ref().unwrap()).clone());
            let faults: Vec<String> = jsonschema::validator_for(&schema)
                .unwrap()
                .iter_errors(&answer)
                .map(|error| error.to_string())
                .collect();
            assert!(faults.is_empty(), "{}: {faults:?}\n{answer:#}", tool.name);
            assert!(answer["notice"].as_str().unwrap().contains("Do not follow"), "{}", tool.name);
        }
        client.0.cancel().await.unwrap();
    }
}

/// Places where a schema gives a value several types.
fn several_types(schema: &Value, at: &str, found: &mut Vec<String>) {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Array(entries) => {
            entries.iter().for_each(|entry| several_types(entry, at, found));
            return;
        }
        _ => return,
    };
    if fields.get("type").is_some_and(Value::is_array) {
        found.push(at.to_owned());
    }
    for (name, value) in fields {
        several_types(value, &format!("{at}/{name}"), found);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_value_of_every_schema_has_one_type() {
    let env = TestEnv::new();
    let allow = vec![Access::Record, Access::Manage];
    let client = env.client(Options { allow, ..Options::default() }).await;
    let mut found = Vec::new();
    for tool in client.0.list_all_tools().await.unwrap() {
        let input = Value::Object((*tool.input_schema).clone());
        several_types(&input, &format!("{} takes", tool.name), &mut found);
        let output = Value::Object((**tool.output_schema.as_ref().unwrap()).clone());
        several_types(&output, &format!("{} gives", tool.name), &mut found);
    }
    assert_eq!(found, [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_schema_of_a_tool_names_the_width_of_a_number() {
    let env = TestEnv::new();
    let allow = vec![Access::Record, Access::Manage];
    let client = env.client(Options { allow, ..Options::default() }).await;
    for tool in client.0.list_all_tools().await.unwrap() {
        let listed = serde_json::to_string(&tool).unwrap();
        assert!(!listed.contains(r#""format":"uint"#), "{listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_read_at_any_point_in_every_form() {
    let env = TestEnv::new();
    let id = env.login();
    let client = env.client(Options::default()).await;
    let hits =
        client.answer("search_sessions", json!({"query": "cookies", "rank": "relevance"})).await;
    assert_eq!(hits["hits"][0]["session"], json!(id));
    let turns = client.answer("read_session", json!({"session": "@last"})).await;
    let said = |n: usize| turns["turns"][n]["text"].as_str().unwrap_or_default().to_owned();
    assert_eq!((said(0).as_str(), said(1).as_str()), ("fix the login", "I read the code."));
    assert_eq!(turns["turns"][1]["calls"][0]["tool"], "read_file");
    let early =
        client.answer("read_session", json!({"session": id, "form": "view", "at": 2})).await;
    assert_eq!((early["view"].as_array().unwrap().len(), &early["at"]), (1, &json!(2)));
    let newest = json!({"session": id, "form": "events", "order": "newest", "limit": 1});
    let newest = client.answer("read_session", newest).await;
    assert_eq!(newest["events"][0]["kind"], "status");
    let before = newest["next"].as_u64().unwrap();
    let next =
        json!({"session": id, "form": "events", "order": "newest", "limit": 1, "cursor": before});
    let next = client.answer("read_session", next).await;
    assert_eq!(next["events"][0]["seq"], json!(before));
    let diff = client.answer("session_diff", json!({"session": id})).await;
    assert!(diff["files"][0]["diff"].as_str().unwrap().contains("+fn login() {}"));
    let file = client.answer("file_at", json!({"session": id, "path": "login.rs"})).await;
    assert_eq!(file["content"]["text"], "fn login() {}\n");
    let gone = client.refusal("file_at", json!({"session": id, "path": "login.rs", "at": 2})).await;
    assert!(gone.contains("there was no such file"), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_forks_are_compared_from_where_they_part() {
    let env = TestEnv::new();
    let id = env.login();
    let well = env.well();
    let one = well.fork(&id, None).unwrap();
    let other = well.fork(&id, None).unwrap();
    write_file(&one, "login.rs", Some("fn login() {}\n"), "fn login() { one() }\n");
    write_file(&one, "same.rs", None, "same\n");
    write_file(&other, "same.rs", None, "same\n");
    let client = env.client(Options::default()).await;
    let both = json!({"session": one.id(), "with": other.id()});
    let compared = client.answer("compare_sessions", both).await;
    assert!(compared["shared_until"].as_u64().unwrap() > 5, "{compared:#}");
    assert_eq!(compared["alike"], 1);
    let files = compared["files"].as_array().unwrap();
    assert_eq!(files.len(), 1, "{compared:#}");
    assert!(files[0]["diff"].as_str().unwrap().contains("-fn login() { one() }"));
    assert_eq!(compared["with"]["last_answer"], "Done: the login uses cookies.");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_bring_every_item_once_and_come_to_an_end() {
    let env = TestEnv::new();
    let well = env.well();
    let session = well.create(well.draft("a long one")).unwrap();
    for n in 0..60 {
        session.append(Message::user(format!("needle {n} {}", "x".repeat(3_000)))).unwrap();
        well.create(well.draft(format!("short {n}"))).unwrap();
    }
    let long = session.id().clone();
    let client = env.client(Options::default()).await;
    let mut ids = BTreeSet::new();
    let mut cursor = Value::Null;
    for _ in 0..100 {
        let page = client.answer("list_sessions", json!({"limit": 7, "cursor": cursor})).await;
        for session in page["sessions"].as_array().unwrap() {
            assert!(ids.insert(session["id"].to_string()), "{session} came twice");
        }
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(ids.len(), 61);
    let (mut seqs, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..100 {
        let asked = json!({"session": long, "limit": 100, "cursor": cursor});
        let page = client.answer("read_session", asked).await;
        assert!(page.to_string().len() < 60_000, "{}", page.to_string().len());
        seqs.extend(page["turns"].as_array().unwrap().iter().map(|it| it["seq"].as_u64().unwrap()));
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seqs, (2..62).collect::<Vec<u64>>());
    let (mut hits, mut offset) = (0, json!(0));
    for _ in 0..100 {
        let asked = json!({"query": "needle", "session": long, "offset": offset});
        let page = client.answer("search_sessions", asked).await;
        hits += page["hits"].as_array().unwrap().len();
        offset = page["next"].clone();
        if offset.is_null() {
            break;
        }
    }
    assert_eq!(hits, 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_five_megabytes_is_read_in_stretches_and_never_as_a_whole() {
    let env = TestEnv::new();
    let well = env.well();
    let session = well.create(well.draft("log")).unwrap();
    let text: String = (0..600_000).map(|n| format!("{n:07} ")).collect();
    let seq: Seq = session.append(Message::user(&*text)).unwrap();
    let id = session.id().clone();
    let client = env.client(Options::default()).await;
    let page = client.answer("read_session", json!({"session": id})).await;
    assert!(page.to_string().len() < 20_000);
    let mut offset = 0;
    let mut read = 0;
    for _ in 0..5 {
        let asked = json!({"session": id, "seq": seq, "offset": offset});
        let stretch = client.answer("read_event", asked).await["stretch"].clone();
        assert_eq!(stretch["offset"], json!(offset));
        read += stretch["text"].as_str().unwrap().chars().count();
        offset = usize::try_from(stretch["next"].as_u64().unwrap()).unwrap();
        assert_eq!(offset, read);
        assert!(stretch["total"].as_u64().unwrap() > 4_800_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_does_not_fit_says_how_much_of_it_is_not_there() {
    let env = TestEnv::new();
    let well = env.well();
    let session = well.create(well.draft("many calls")).unwrap();
    let mut message = Message::assistant("I call.");
    for n in 0..40 {
        let arguments = json!({"path": "x".repeat(2_000)}).to_string();
        message = message.calling(format!("c{n}"), "read_file", arguments);
    }
    session.append(message).unwrap();
    let id = session.id().clone();
    let client = env.client(Options::default()).await;
    for (form, list) in [("turns", "/turns/0/calls"), ("view", "/view/0/parts")] {
        let asked = json!({"session": id, "form": form});
        let page = client.answer("read_session", asked).await;
        let there = page.pointer(list).and_then(Value::as_array).unwrap().len();
        let all = if form == "turns" { 40 } else { 41 };
        assert!(there < all, "{there}");
        let left_out = json!([{"at": list, "entries": all - there}]);
        assert_eq!(page["left_out"], left_out, "{form}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_that_gives_the_front_of_a_list_says_so() {
    let env = TestEnv::new();
    let well = env.well();
    let session = well.create(well.draft("many numbers")).unwrap();
    session.append(Message::user("some words")).unwrap();
    let id = session.id().clone();
    drop(session);
    let many = json!((0..700).collect::<Vec<u32>>());
    let metadata = [("many".to_owned(), many)].into_iter().collect();
    well.edit(&id, Edited { metadata, ..Edited::default() }).unwrap();
    let client = env.client(Options::default()).await;
    let listed = client.answer("list_sessions", json!({})).await;
    assert_eq!(listed["sessions"][0]["metadata_left_out"], json!(["many"]));
    for (tool, asked, list) in [
        ("read_session", json!({"session": id}), "/session/metadata/many"),
        ("compare_sessions", json!({"session": id, "with": id}), "/session/metadata/many"),
    ] {
        let page = client.answer(tool, asked).await;
        let there = page.pointer(list).and_then(Value::as_array).unwrap().len();
        assert!(there < 700, "{tool}");
        assert_eq!(page["left_out"][0], json!({"at": list, "entries": 700 - there}), "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_paged_to_is_said_to_be_there() {
    let env = TestEnv::new();
    let well = env.well();
    let session = well.create(well.draft("the long day")).unwrap();
    let said = (0..1_002).map(|n| Message::user(format!("badger {n}")).into());
    session.append_all(said.collect()).unwrap();
    let client = env.client(Options::default()).await;
    let page = async |offset| {
        let asked = json!({"query": "badger", "limit": 100, "offset": offset});
        client.answer("search_sessions", asked).await
    };
    let first = page(0).await;
    assert_eq!((&first["next"], &first["too_many"]), (&json!(100), &Value::Null));
    let last = page(950).await;
    assert_eq!(last["hits"].as_array().unwrap().len(), 50);
    assert_eq!((&last["next"], &last["too_many"]), (&Value::Null, &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_load_before_they_ask_is_short() {
    let env = TestEnv::new();
    let allow = [Access::Record, Access::Manage].into();
    for (options, most) in
        [(Options::default(), 72 << 10), (Options { allow, ..Options::default() }, 96 << 10)]
    {
        let client = env.client(options).await;
        let tools = client.0.list_all_tools().await.unwrap();
        let bytes = serde_json::to_string(&tools).unwrap().len();
        assert!(bytes <= most, "{bytes} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_stay_in_and_what_was_recorded_is_framed_as_quoted() {
    let env = TestEnv::new();
    let id = env.login();
    let client = env.client(Options::default()).await;
    let mut shown = Vec::new();
    for (tool, arguments) in [
        ("search_sessions", json!({"query": "token"})),
        ("read_session", json!({"session": id})),
        ("read_session", json!({"session": id, "form": "view"})),
        ("read_session", json!({"session": id, "form": "events"})),
    ] {
        let result = client.call(tool, arguments).await.unwrap();
        assert!(result.content[0].as_text().unwrap().text.contains("Quoted from recorded"));
        shown.push(serde_json::to_string(&result).unwrap());
    }
    let uri = format!("stepwell://session/{id}");
    let read = ReadResourceRequestParams::new(uri);
    let resource = client.0.read_resource(read).await.unwrap();
    shown.push(serde_json::to_string(&resource).unwrap());
    for name in ["continue_from", "review_session"] {
        let arguments = json!({"session": id}).as_object().unwrap().clone();
        let asked = GetPromptRequestParams::new(name).with_arguments(arguments);
        let prompt = client.0.get_prompt(asked).await.unwrap();
        let text = serde_json::to_string(&prompt).unwrap();
        assert_eq!(text.matches("</stepwell-records>").count(), 1, "{text}");
        shown.push(text);
    }
    assert!(shown.iter().any(|text| text.contains("[redacted:")));
    assert!(shown[1].contains(&ATTACK[..20]));
    for text in shown {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_stores_are_seen_only_if_the_user_said_so() {
    let env = TestEnv::new();
    env.login();
    let elsewhere = tempfile::tempdir().unwrap();
    let other = workspace(elsewhere.path(), &env.root().join(".state"));
    let well = other.open_or_create().unwrap();
    let there = well.create(well.draft("a login in another project")).unwrap().id().clone();
    let here = env.client(Options::default()).await;
    let found = here.answer("search_sessions", json!({"query": "another project"})).await;
    assert_eq!(found["hits"], json!([]));
    let unknown = here.refusal("read_session", json!({"session": there})).await;
    assert!(!unknown.contains(&elsewhere.path().display().to_string()), "{unknown}");
    let options = Options { scope: Scope::Everywhere, ..Options::default() };
    let everywhere = env.client(options).await;
    let found = everywhere.answer("search_sessions", json!({"query": "another project"})).await;
    let store = found["hits"][0]["store"].as_str().unwrap().to_owned();
    let named = json!({"session": there, "store": store});
    let read = everywhere.answer("read_session", named).await;
    assert_eq!(read["session"]["id"], json!(there));
    everywhere.answer("read_session", json!({"session": there})).await;
    let listed = everywhere.answer("list_sessions", json!({})).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
    let wrong = json!({"session": there, "store": "/nowhere"});
    assert!(everywhere.refusal("read_session", wrong).await.contains("no store"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_fifty_sessions_are_resources_and_every_part_has_an_address() {
    let env = TestEnv::new();
    let well = env.well();
    for n in 0..60 {
        well.create(well.draft(format!("short {n}"))).unwrap();
    }
    let id = env.login();
    let client = env.client(Options::default()).await;
    let listed = client.0.list_all_resources().await.unwrap();
    assert_eq!(listed.len(), 50);
    assert_eq!(listed[0].uri, format!("stepwell://session/{id}"));
    assert_eq!(client.0.list_all_resource_templates().await.unwrap().len(), 6);
    for part in ["", "/view", "/events", "/event/2", "/diff", "/file/login.rs"] {
        let read = ReadResourceRequestParams::new(format!("stepwell://session/{id}{part}"));
        let read = client.0.read_resource(read).await.unwrap();
        assert!(serde_json::to_string(&read).unwrap().contains(id.as_str()), "{part}");
    }
    for unknown in [
        "stepwell://session/",
        "file:///etc/passwd",
        "stepwell://session/none-such",
        "stepwell://session/x/y/z",
    ] {
        let read = client.0.read_resource(ReadResourceRequestParams::new(unknown)).await;
        assert!(read.is_err(), "{unknown}");
    }
    let prompts = client.0.list_all_prompts().await.unwrap();
    let names: Vec<&str> = prompts.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["continue_from", "what_did_we_decide", "review_session"]);
    let arguments = json!({"topic": "cookies"}).as_object().unwrap().clone();
    let asked = GetPromptRequestParams::new("what_did_we_decide").with_arguments(arguments);
    let prompt = serde_json::to_string(&client.0.get_prompt(asked).await.unwrap()).unwrap();
    assert!(prompt.contains(id.as_str()), "{prompt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_without_a_store_answers_that_there_is_nothing() {
    let env = TestEnv::new();
    let client = env.client(Options::default()).await;
    assert_eq!(client.answer("list_sessions", json!({})).await["sessions"], json!([]));
    assert_eq!(client.answer("search_sessions", json!({"query": "x"})).await["hits"], json!([]));
    let none = client.refusal("read_session", json!({"session": "@last"})).await;
    assert!(none.contains("no store"), "{none}");
    // The same server finds a session that is created later.
    let id = env.login();
    client.answer("read_session", json!({"session": id})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_human_is_listed_and_counted() {
    let env = TestEnv::new();
    env.login();
    let waiting = env.waiting();
    let client = env.client(Options::default()).await;
    let gates = client.answer("open_gates", json!({})).await;
    assert_eq!(gates["gates"][0]["session_id"], json!(waiting));
    assert_eq!(gates["gates"][0]["prompt"], "Deploy to production?");
    let stats = client.answer("session_stats", json!({})).await;
    assert_eq!(stats["statistics"]["sessions"], 2);
    let one = client.answer("session_stats", json!({"session": waiting})).await;
    assert_eq!(one["statistics"]["by_status"], json!({"paused": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_shows_no_part_of_a_key_that_was_stored_as_it_came() {
    let env = TestEnv::new();
    let well = env.well();
    let session = well.create(well.draft("an import")).unwrap();
    let lines = ["Qk7zB3w".repeat(9), "Qk7zB3w".repeat(9), "Qk7zB3w".repeat(9)].join("\n");
    let key = format!("-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----");
    // `Stepwell` would redact it.
    let append = stepwell::store::Append {
        session: session.id().clone(),
        epoch: Some(session.lease().epoch),
        expected: None,
        events: vec![Message::user(format!("{key}\nrollback")).into()].into(),
    };
    well.store().write(stepwell::store::Write::Append(append)).unwrap();
    let client = env.client(Options::default()).await;
    for query in ["rollback", "Qk7z"] {
        let found = client.answer("search_sessions", json!({"query": query})).await;
        let (hit, text) = (&found["hits"][0], found["hits"][0]["text"].as_str().unwrap());
        assert!(text.contains("[redacted:private-key] rollback"), "{hit}");
        assert!(!found.to_string().contains("Qk7zB3w"), "{found}");
        // The marks fit the text in the answer.
        let marks = hit["matches"].as_array().unwrap().iter();
        let place = |at: &Value| usize::try_from(at.as_u64().unwrap()).unwrap();
        let marked: Vec<&str> = marks.map(|it| &text[place(&it[0])..place(&it[1])]).collect();
        assert_eq!(marked == ["rollback"], query == "rollback", "{hit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hit_says_which_system_its_session_came_from() {
    let env = TestEnv::new();
    let well = env.well();
    let source = Source { system: "codex".into(), id: "r1".into(), started_at: None };
    let draft = well.draft("bake a cake");
    let session = well.create(Created { source: Some(source), ..draft }).unwrap();
    session.append(Message::user("bake a cake with plums")).unwrap();
    session.finish(Status::Success, Some(StopReason::LlmDone)).unwrap();
    let own = well.create(well.draft("eat the plums")).unwrap();
    own.append(Message::user("eat the plums")).unwrap();
    own.finish(Status::Success, Some(StopReason::LlmDone)).unwrap();
    let client = env.client(Options::default()).await;
    let found = client.answer("search_sessions", json!({"query": "plums"})).await;
    let sources: Vec<_> =
        found["hits"].as_array().unwrap().iter().map(|hit| hit["source"].clone()).collect();
    assert!(sources.contains(&json!("codex")) && sources.contains(&json!(null)), "{found}");
}
