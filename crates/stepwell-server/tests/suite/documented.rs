//! Every route answers as the `OpenAPI` document says: the client checks each answer.

use reqwest::Method;
use serde_json::json;
use stepwell::Message;
use stepwell::model::Usage;
use stepwell::sessions::ForkAt;

use crate::test_env::TestEnv;

#[tokio::test(flavor = "multi_thread")]
async fn every_reading_route_answers_as_documented() {
    let env = TestEnv::new().await;
    let id = env.session();
    let fork = env.well.fork(&id, ForkAt::from(None)).unwrap().id().clone();
    let mut asked = 0;
    for (method, path) in env.paths() {
        if method != "get" {
            continue;
        }
        let query = match path.rsplit('/').next().unwrap() {
            "search" => "?q=login".to_owned(),
            "compare" => format!("?with={fork}"),
            // The session changed no file, which has an answer, too.
            "content" => "?path=a.rs".to_owned(),
            _ => String::new(),
        };
        let path = path.replace("{id}", id.as_str());
        let answer = env.get(&format!("{path}{query}")).await;
        let absent = path.ends_with("/content") || path == format!("/sessions/{id}/flow");
        let wanted = match absent {
            true => 404,
            false if path == "/healthz" => 204,
            false => 200,
        };
        assert_eq!(answer.status, wanted, "{path}: {:#}", answer.json);
        asked += 1;
    }
    assert!(asked > 20, "{asked} routes");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_change_takes_is_what_the_document_says() {
    let env = TestEnv::new().await;
    let id = env.session();
    let mut asked = 0;
    for (method, path) in env.paths() {
        let schema = &env.document["paths"][format!("/api/v1{path}")][&method]["requestBody"]["content"]
            ["application/json"]["schema"];
        if schema.is_null() || path.starts_with("/log") {
            continue;
        }
        let fields = schema["properties"].as_object().into_iter().flatten();
        let mut documented: Vec<_> = fields.map(|(name, _)| name.clone()).collect();
        documented.sort();
        let target = path.replace("{id}", id.as_str()).replace("{gate}", "ask-1");
        let method: Method = method.to_uppercase().parse().unwrap();
        let answer = env.send(method, &target, Some(json!({"no-such-field": 1}))).await;
        assert_eq!(
            (answer.status, &answer.json["place"]),
            (400, &json!("no-such-field")),
            "{path}"
        );
        let title = answer.json["title"].as_str().unwrap();
        let taken = title.split_once("one of: ").map_or("", |(_, names)| names);
        assert_eq!(documented.join(", "), taken, "{path}");
        asked += 1;
    }
    assert!(asked > 12, "{asked} routes");
}

/// Requests beyond the allowed limits.
const NOT_OFFERED: [&str; 11] = [
    "/purge",
    "/scrub",
    "/config",
    "/providers",
    "/keys",
    "/trust",
    "/trash",
    "/repair",
    "/backup",
    "/sessions/{id}/purge",
    "/sessions/{id}/scrub",
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_erases_or_configures_and_every_path_is_documented() {
    let env = TestEnv::new().await;
    let id = env.session();
    for path in NOT_OFFERED {
        let path = path.replace("{id}", id.as_str());
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            let answer = env.send(method.clone(), &path, None).await;
            assert!(matches!(answer.status, 404 | 405), "{method} {path}: {}", answer.status);
        }
    }
    let words = ["purge", "scrub", "config", "provider", "credential", "secret"];
    for (method, path) in env.paths() {
        assert!(!words.iter().any(|word| path.contains(word)), "{method} {path}");
    }
    // Streams and logins are described as well.
    let known = env.paths();
    for (method, path) in [
        ("get", "/sessions/{id}/stream"),
        ("get", "/changes"),
        ("post", "/login"),
        ("post", "/logout"),
        ("get", "/healthz"),
        ("get", "/openapi.json"),
    ] {
        assert!(known.contains(&(method.to_owned(), path.to_owned())), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_names_no_width_of_a_number() {
    let env = TestEnv::new().await;
    assert!(!env.document.to_string().contains(r#""format":"uint"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_filtered_and_refuse_nonsense() {
    let env = TestEnv::new().await;
    let ids: Vec<_> = (0..5).map(|_| env.session()).collect();
    let first = env.get("/sessions?limit=2&sort=created").await.json;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let next = first["next"].as_str().unwrap();
    let second = env.get(&format!("/sessions?limit=200&sort=created&cursor={next}")).await.json;
    assert_eq!(second["items"].as_array().unwrap().len(), 3);
    assert!(second["next"].is_null());
    let mut seen: Vec<String> = [&first, &second]
        .iter()
        .flat_map(|page| page["items"].as_array().unwrap())
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect();
    seen.sort();
    let mut all: Vec<String> = ids.iter().map(ToString::to_string).collect();
    all.sort();
    assert_eq!(seen, all);
    let paused = env.get("/sessions?status=paused,running").await.json;
    assert_eq!(paused["items"].as_array().unwrap().len(), 5);
    let none = env.get("/sessions?status=success").await.json;
    assert_eq!(none["items"].as_array().unwrap().len(), 0);
    for wrong in ["status=asleep", "sort=colour", "cursor=x", "since=yesterday", "limit=many"] {
        let answer = env.get(&format!("/sessions?{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}: {:#}", answer.json);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_comes_line_by_line_to_who_asks_so() {
    let env = TestEnv::new().await;
    let id = env.session();
    let path = format!("/sessions/{id}/events");
    let all = env.get(&path).await.json;
    let all = all["items"].as_array().unwrap();
    let mut lines = Vec::new();
    let mut from = Some("1".to_owned());
    while let Some(first) = from {
        let page = reqwest::Client::new()
            .get(env.url(&format!("{path}?limit=2&from={first}")))
            .bearer_auth(env.operator.reveal())
            .header("accept", "application/json;q=0.5, application/x-ndjson")
            .send()
            .await
            .unwrap();
        assert_eq!(page.headers()["content-type"], "application/x-ndjson");
        from = page.headers().get("stepwell-next").map(|it| it.to_str().unwrap().to_owned());
        let text = page.text().await.unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        let read = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
        lines.extend(text.lines().map(read));
    }
    assert_eq!(&lines, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_at_an_earlier_point_shows_what_the_model_saw_then() {
    let env = TestEnv::new().await;
    let id = env.session();
    let now = env.get(&format!("/sessions/{id}/view")).await.json;
    let then = env.get(&format!("/sessions/{id}/view?at=2")).await.json;
    let count = |view: &serde_json::Value| view["messages"].as_array().unwrap().len();
    assert!(count(&then) < count(&now), "{then:#} {now:#}");
    assert_eq!(then["messages"][0]["role"], "user");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_named_with_its_place() {
    let env = TestEnv::new().await;
    let answer = env.get("/sessions/20260101-000000-abcdef").await;
    assert_eq!((answer.status, answer.json["kind"].as_str()), (404, Some("absent")));
    assert_eq!(answer.json["place"], "id");
    let answer = env.get("/nothing").await;
    assert_eq!(answer.status, 404);
    let answer = env.send(Method::PUT, "/sessions", Some(json!({}))).await;
    assert_eq!(answer.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_may_have_cost_is_told_apart_from_what_it_did() {
    let env = TestEnv::new().await;
    let created = env.well.draft("begun elsewhere").with_model("openai", "gpt-4.1");
    let session = env.well.create(created).unwrap();
    let usage = Usage { input: 1_000_000, ..Usage::default() };
    session.append(Message::assistant("one").spending(usage, None)).unwrap();
    let list = env.get("/sessions").await.json["items"][0].clone();
    let shown = env.get(&format!("/sessions/{}", session.id())).await.json;
    let costs = env.get(&format!("/sessions/{}/cost", session.id())).await.json;
    for answer in [&list, &shown, &costs] {
        assert_eq!(answer["estimated_cost_usd"], 2, "{answer:#}");
    }
    assert_eq!((&list["cost"], &shown["cost"]), (&0.into(), &0.into()));
    assert_eq!((&costs["total_cost_usd"], &costs["recorded_cost_usd"]), (&json!(null), &json!(0)));
}
