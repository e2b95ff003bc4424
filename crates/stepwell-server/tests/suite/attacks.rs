//! Attacks, as they arrive over the wire.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderName;
use serde_json::json;

use crate::dice::{Dice, Guess};
use crate::test_env::{Login, TestEnv};

/// Sends raw bytes, and reads the status.
fn raw(env: &TestEnv, request: &str) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", env.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 64];
    let n = stream.read(&mut answer).unwrap();
    let line = String::from_utf8_lossy(&answer[..n]).into_owned();
    line.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{line:?}"))
}

fn head(env: &TestEnv, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str(&format!("Host: 127.0.0.1:{}\r\n", env.port));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("Connection: close\r\n\r\n");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn another_name_and_another_origin_are_refused() {
    let env = TestEnv::new().await;
    let bearer = format!("Bearer {}", env.operator.reveal());
    let own = ("Authorization", bearer.as_str());
    let path = "/api/v1/sessions";
    // A name that an attacker's page rebound to this address.
    assert_eq!(raw(&env, &head(&env, "GET", path, &[("Host", "evil.example"), own])), 421);
    let origin = ("Origin", "https://evil.example");
    assert_eq!(raw(&env, &head(&env, "GET", path, &[origin, own])), 403);
    let json = ("Content-Type", "application/json");
    let sent = head(&env, "POST", path, &[origin, own, json, ("X-Stepwell", "1")]);
    assert_eq!(raw(&env, &sent), 403);
    // A form of another site can send this.
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    assert_eq!(raw(&env, &head(&env, "POST", path, &[own, form])), 415);
    assert_eq!(raw(&env, &head(&env, "GET", path, &[own])), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_access_log_says_who_asked_for_what_and_holds_no_secret() {
    let env = TestEnv::new().await;
    let id = env.session();
    env.get("/search?q=hunter2secret").await;
    env.send_as(&env.viewer, Method::POST, &format!("/sessions/{id}/say"), None).await;
    raw(&env, &head(&env, "GET", "/api/v1/stores", &[("Authorization", "Bearer guessed")]));
    let kept = env.accesses();
    let last: Vec<_> = kept[kept.len() - 3..]
        .iter()
        .map(|it| (it.who.as_deref(), it.method.as_str(), it.path.as_str(), it.status))
        .collect();
    let say = format!("/api/v1/sessions/{id}/say");
    let wanted = [
        (Some("ann"), "GET", "/api/v1/search", 200),
        (Some("victor"), "POST", say.as_str(), 403),
        (None, "GET", "/api/v1/stores", 401),
    ];
    assert_eq!(last, wanted);
    assert!(kept.iter().all(|it| it.from.is_some_and(|from| from.ip().is_loopback())));
    let text = serde_json::to_string(&kept).unwrap();
    for secret in ["hunter2secret", "guessed", &env.operator.reveal(), &env.viewer.reveal()] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_in_without_a_token_and_guessing_is_stopped() {
    let env = TestEnv::new().await;
    for path in ["/api/v1/sessions", "/api/v1/openapi.json", "/api/v1/changes", "/api/v1/stores"] {
        assert_eq!(raw(&env, &head(&env, "GET", path, &[])), 401, "{path}");
    }
    assert_eq!(raw(&env, &head(&env, "GET", "/api/v1/healthz", &[])), 204);
    let wrong = ("Authorization", "Bearer AAAA");
    let tries: Vec<u16> =
        (0..12).map(|_| raw(&env, &head(&env, "GET", "/api/v1/sessions", &[wrong]))).collect();
    assert_eq!(tries[..10], [401; 10]);
    assert_eq!(tries[10..], [429; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_to_a_file() {
    let env = TestEnv::new().await;
    let bearer = format!("Bearer {}", env.operator.reveal());
    let own = ("Authorization", bearer.as_str());
    for path in [
        "/../../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/vendor/../../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/api/v1/sessions/..%2f..%2fetc%2fpasswd",
        "/api/v1/sessions/x/files/content?path=/etc/passwd",
    ] {
        let status = raw(&env, &head(&env, "GET", path, &[own]));
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    let id = env.session();
    let content = format!("/sessions/{id}/files/content?path=..%2F..%2Fetc%2Fpasswd");
    assert_eq!(env.get(&content).await.status, 404, "only what the session recorded");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_and_the_next_request_is_answered() {
    let env = TestEnv::new().await;
    let id = env.session();
    let text = "x".repeat((1 << 20) + 1);
    let answer = env.post(&format!("/sessions/{id}/say"), json!({"text": text})).await;
    assert_eq!(answer.status, 413);
    let long = "x".repeat(70 * 1024);
    let status = raw(&env, &head(&env, "GET", "/api/v1/healthz", &[("X-Long", &long)]));
    assert_eq!(status, 431);
    assert_eq!(env.get("/sessions").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_is_ours_alone_and_a_link_works_once() {
    let env = TestEnv::new().await;
    // A token works as a login, too.
    let body = json!({"code": env.operator.reveal()}).to_string();
    let send = |body: String| {
        reqwest::Client::new()
            .post(env.url("/login"))
            .header("content-type", "application/json")
            .header("x-stepwell", "1")
            .body(body)
            .send()
    };
    let answer = send(body).await.unwrap();
    assert_eq!(answer.status(), 200);
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(cookie.starts_with(&format!("stepwell_{}=", env.port)), "{cookie}");
    let wrong = send(json!({"code": "nonsense"}).to_string()).await.unwrap();
    assert_eq!(wrong.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_without_its_key_opens_nothing_and_logs_nobody_out() {
    let env = TestEnv::new().await;
    let id = env.session();
    let [login, other] = [env.log_in(&env.operator).await, env.log_in(&env.operator).await];
    let cookie_alone = Login { key: String::new(), ..login.clone() };
    let key_of_another = Login { key: other.key.clone(), ..login.clone() };
    for stolen in [cookie_alone, key_of_another] {
        for path in ["/sessions", "/changes", &format!("/sessions/{id}/stream"), "/openapi.json"] {
            assert_eq!(env.browse(&stolen, Method::GET, path).await.status(), 401, "{path}");
        }
        let stop = format!("/sessions/{id}/stop");
        assert_eq!(env.browse(&stolen, Method::POST, &stop).await.status(), 401);
        // It gets the answer of a logout, but the browser that owns the cookie stays logged in.
        assert_eq!(env.browse(&stolen, Method::POST, "/logout").await.status(), 204);
    }
    assert_eq!(env.browse(&login, Method::GET, "/sessions").await.status(), 200);
    let with_cookie = [("Cookie", login.cookie.as_str()), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(raw(&env, &head(&env, "GET", "/api/v1/sessions", &with_cookie)), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_logged_out_stays_out_over_a_restart_and_hears_nothing_more() {
    let mut env = TestEnv::new().await;
    let id = env.session();
    let cookie = env.log_in(&env.operator).await;
    let mut stream =
        env.browse(&cookie, Method::GET, &format!("/sessions/{id}/stream?from=1")).await;
    let first = stream.chunk().await.unwrap().unwrap();
    assert!(!first.is_empty());
    assert_eq!(env.browse(&cookie, Method::POST, "/logout").await.status(), 204);
    assert_eq!(env.browse(&cookie, Method::GET, "/stores").await.status(), 401);
    env.well.lock(&id).unwrap().append(stepwell::Message::user("said after it")).unwrap();
    let mut heard = String::new();
    while let Some(bytes) = stream.chunk().await.unwrap() {
        heard.push_str(&String::from_utf8_lossy(&bytes));
    }
    assert!(!heard.contains("said after it"), "{heard}");
    env.stop().await;
    env.serve();
    assert_eq!(env.browse(&cookie, Method::GET, "/stores").await.status(), 401);
    let again = env.log_in(&env.operator).await;
    assert_eq!(env.browse(&again, Method::GET, "/stores").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_allows_what_its_token_allows() {
    let env = TestEnv::new().await;
    for token in [&env.operator, &env.colleague, &env.viewer] {
        let by_token = env.send_as(token, Method::GET, "/server", None).await.json;
        let cookie = env.log_in(token).await;
        let by_cookie = env.browse(&cookie, Method::GET, "/server").await.bytes().await.unwrap();
        let by_cookie: serde_json::Value = serde_json::from_slice(&by_cookie).unwrap();
        for what in ["caller", "may_change", "may_start"] {
            assert_eq!(by_cookie[what], by_token[what], "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_take_no_answer_hold_nobody_up() {
    let env = TestEnv::new().await;
    let host = format!("Host: 127.0.0.1:{}", env.port);
    let request = format!("GET /vendor/preact.mjs HTTP/1.1\r\n{host}\r\n\r\n").repeat(400);
    let mut greedy = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(("127.0.0.1", env.port)).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        // The server may have disconnected already.
        let _ = stream.write_all(request.as_bytes());
        greedy.push(stream);
    }
    let asked = tokio::time::timeout(ANSWER, env.get("/sessions")).await;
    assert_eq!(asked.expect("nobody is answered any more").status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_invites_other_sites() {
    let env = TestEnv::new().await;
    let cookie = env.log_in(&env.operator).await;
    for (method, path) in
        [(Method::GET, "/sessions"), (Method::OPTIONS, "/sessions"), (Method::GET, "/nothing")]
    {
        let answer = env.browse(&cookie, method.clone(), path).await;
        let invites = |name: &&str| name.starts_with("access-control");
        let found: Vec<_> =
            answer.headers().keys().map(HeaderName::as_str).filter(invites).collect();
        assert!(found.is_empty(), "{method} {path}: {found:?}");
    }
}

/// The default number of requests; `STEPWELL_SERVER_REQUESTS` overrides it.
const REQUESTS: usize = 600;

/// How many of them concern one session: some delete it.
const OF_ONE_SESSION: usize = 100;

/// How long an answer may take on a busy machine.
const ANSWER: Duration = Duration::from_secs(60);

/// The number of threads and open files of this process.
fn held() -> [usize; 2] {
    ["/proc/self/task", "/proc/self/fd"]
        .map(|folder| std::fs::read_dir(folder).map_or(0, Iterator::count))
}

/// The long form runs alone in its process: `STEPWELL_SERVER_REQUESTS=10000 cargo test -p
/// stepwell-server --test suite random_requests`. Then it also counts threads and files that stay
/// open.
#[tokio::test(flavor = "multi_thread")]
async fn random_requests_are_never_a_defect_of_ours() {
    let env = TestEnv::new().await;
    #[expect(clippy::disallowed_methods, reason = "the long form is asked for by a variable")]
    let told = std::env::var("STEPWELL_SERVER_REQUESTS").ok().and_then(|it| it.parse().ok());
    let requests = told.unwrap_or(REQUESTS);
    let (mut dice, mut id, mut before) = (Dice(7), env.session(), [0; 2]);
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for n in 0..requests {
        if n % OF_ONE_SESSION == 0 {
            id = env.session();
        }
        if n == requests / 4 {
            before = held();
        }
        let Guess { method, target, body } = dice.request(&env.document, id.as_str());
        let Ok(_) = target.parse::<axum::http::Uri>() else { continue };
        let asked = format!("request {n}: {method} {target} {body}");
        let answer = tokio::time::timeout(ANSWER, env.send(method, &target, Some(body))).await;
        let answer = answer.unwrap_or_else(|_| panic!("{asked}: no answer"));
        assert!(answer.status < 500, "{asked}: {:#}", answer.json);
        *statuses.entry(answer.status).or_default() += 1;
    }
    let done = statuses.get(&200).copied().unwrap_or_default();
    assert!(done > requests / 10, "most of them ask for something else: {statuses:?}");
    let after = held();
    let is_kept = before.iter().zip(after).all(|(before, after)| after <= before + 32);
    assert!(told.is_none() || is_kept, "threads and files: {before:?}, then {after:?}");
}
