//! What must not get through, as it arrives over the wire.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::Desk;

/// Sends bytes as they are, and reads the status.
fn raw(desk: &Desk, request: &str) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", desk.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 64];
    let n = stream.read(&mut answer).unwrap();
    let line = String::from_utf8_lossy(&answer[..n]).into_owned();
    line.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{line:?}"))
}

fn head(desk: &Desk, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str(&format!("Host: 127.0.0.1:{}\r\n", desk.port));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("Connection: close\r\n\r\n");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn another_name_and_another_origin_are_refused() {
    let desk = Desk::new().await;
    let bearer = format!("Bearer {}", desk.operator.reveal());
    let own = ("Authorization", bearer.as_str());
    let path = "/api/v1/sessions";
    // A name that was rebound to this address, as an attacker's page would use it.
    assert_eq!(raw(&desk, &head(&desk, "GET", path, &[("Host", "evil.example"), own])), 421);
    let origin = ("Origin", "https://evil.example");
    assert_eq!(raw(&desk, &head(&desk, "GET", path, &[origin, own])), 403);
    let json = ("Content-Type", "application/json");
    let sent = head(&desk, "POST", path, &[origin, own, json, ("X-Stepwell", "1")]);
    assert_eq!(raw(&desk, &sent), 403);
    // What a form of another site can send.
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    assert_eq!(raw(&desk, &head(&desk, "POST", path, &[own, form])), 415);
    assert_eq!(raw(&desk, &head(&desk, "GET", path, &[own])), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_access_log_says_who_asked_for_what_and_holds_no_secret() {
    let desk = Desk::new().await;
    let id = desk.session();
    desk.get("/search?q=hunter2secret").await;
    desk.send_as(&desk.viewer, Method::POST, &format!("/sessions/{id}/say"), None).await;
    raw(&desk, &head(&desk, "GET", "/api/v1/stores", &[("Authorization", "Bearer guessed")]));
    let kept = desk.accesses();
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
    for secret in ["hunter2secret", "guessed", &desk.operator.reveal(), &desk.viewer.reveal()] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_in_without_a_token_and_guessing_is_stopped() {
    let desk = Desk::new().await;
    for path in ["/api/v1/sessions", "/api/v1/openapi.json", "/api/v1/changes", "/api/v1/stores"] {
        assert_eq!(raw(&desk, &head(&desk, "GET", path, &[])), 401, "{path}");
    }
    assert_eq!(raw(&desk, &head(&desk, "GET", "/api/v1/healthz", &[])), 204);
    let wrong = ("Authorization", "Bearer AAAA");
    let tries: Vec<u16> =
        (0..12).map(|_| raw(&desk, &head(&desk, "GET", "/api/v1/sessions", &[wrong]))).collect();
    assert_eq!(tries[..10], [401; 10]);
    assert_eq!(tries[10..], [429; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_to_a_file() {
    let desk = Desk::new().await;
    let bearer = format!("Bearer {}", desk.operator.reveal());
    let own = ("Authorization", bearer.as_str());
    for path in [
        "/../../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/vendor/../../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/api/v1/sessions/..%2f..%2fetc%2fpasswd",
        "/api/v1/sessions/x/files/content?path=/etc/passwd",
    ] {
        let status = raw(&desk, &head(&desk, "GET", path, &[own]));
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    let id = desk.session();
    let content = format!("/sessions/{id}/files/content?path=..%2F..%2Fetc%2Fpasswd");
    assert_eq!(desk.get(&content).await.status, 404, "only what the session recorded");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_and_the_next_request_is_answered() {
    let desk = Desk::new().await;
    let id = desk.session();
    let text = "x".repeat((1 << 20) + 1);
    let answer = desk.post(&format!("/sessions/{id}/say"), json!({"text": text})).await;
    assert_eq!(answer.status, 413);
    let long = "x".repeat(70 * 1024);
    let status = raw(&desk, &head(&desk, "GET", "/api/v1/healthz", &[("X-Long", &long)]));
    assert_eq!(status, 431);
    assert_eq!(desk.get("/sessions").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_is_ours_alone_and_a_link_works_once() {
    let desk = Desk::new().await;
    // A token is a login, too.
    let body = json!({"code": desk.operator.reveal()}).to_string();
    let send = |body: String| {
        reqwest::Client::new()
            .post(desk.url("/login"))
            .header("content-type", "application/json")
            .header("x-stepwell", "1")
            .body(body)
            .send()
    };
    let answer = send(body).await.unwrap();
    assert_eq!(answer.status(), 204);
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(cookie.starts_with(&format!("stepwell_{}=", desk.port)), "{cookie}");
    let pair = cookie.split(';').next().unwrap().to_owned();
    let with = |site: &'static str| {
        let sent = [("Cookie", pair.as_str()), ("Sec-Fetch-Site", site)];
        raw(&desk, &head(&desk, "GET", "/api/v1/sessions", &sent))
    };
    assert_eq!(with("same-origin"), 200);
    assert_eq!(with("cross-site"), 403);
    let wrong = send(json!({"code": "nonsense"}).to_string()).await.unwrap();
    assert_eq!(wrong.status(), 401);
}

/// A generator that makes the same requests in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn word(&mut self, id: &str) -> String {
        let words = [
            "",
            "0",
            "-1",
            "18446744073709551615",
            "99999999999999999999",
            "null",
            "true",
            "%00",
            "%FF",
            "../x",
            "a,b",
            "running",
            "2026-01-01T00:00:00Z",
            "newest",
            "main",
            "<script>",
            "%F0%9F%98%80",
            "[]",
            "{}",
        ];
        match self.roll(words.len() + 1) {
            0 => id.to_owned(),
            n => words[n - 1].to_owned(),
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.roll(1000)),
            3 => json!(self.word("x")),
            4 => json!(-1.5),
            5 => json!([self.value(depth - 1)]),
            _ => json!({"text": self.value(depth - 1), "to": self.value(depth - 1)}),
        }
    }
}

/// How many requests are made, unless `STEPWELL_SERVER_REQUESTS` says otherwise.
const REQUESTS: usize = 600;

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_are_never_a_defect_of_ours() {
    let desk = Desk::new().await;
    let id = desk.session();
    let paths = desk.paths();
    let mut dice = Dice(7);
    #[expect(clippy::disallowed_methods, reason = "the long form is asked for by a variable")]
    let told = std::env::var("STEPWELL_SERVER_REQUESTS").ok().and_then(|it| it.parse().ok());
    for n in 0..told.unwrap_or(REQUESTS) {
        let (method, path) = &paths[dice.roll(paths.len())];
        let session = if dice.roll(4) > 0 { id.to_string() } else { dice.word("nobody") };
        let path = path.replace("{id}", &session).replace("{gate}", &dice.word("ask-1"));
        let names = [
            "q", "at", "from", "to", "limit", "cursor", "status", "path", "with", "format", "kind",
            "lane", "store",
        ];
        let query: Vec<String> = (0..dice.roll(4))
            .map(|_| format!("{}={}", names[dice.roll(names.len())], dice.word(id.as_str())))
            .collect();
        let method: Method = method.to_uppercase().parse().unwrap();
        let fields = [
            "text", "answer", "to", "task", "label", "tags", "at", "name", "path", "mode", "scope",
        ];
        let body: serde_json::Map<String, Value> = (0..dice.roll(4))
            .map(|_| (fields[dice.roll(fields.len())].to_owned(), dice.value(2)))
            .collect();
        let target = format!("{path}?{}", query.join("&"));
        let Ok(_) = target.parse::<axum::http::Uri>() else { continue };
        let answer = desk.send(method.clone(), &target, Some(Value::Object(body.clone()))).await;
        assert!(answer.status < 500, "request {n}: {method} {target} {body:?}: {:#}", answer.json);
    }
}
