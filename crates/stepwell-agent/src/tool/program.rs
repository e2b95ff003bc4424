//! `try_program`: starts a program, checks that it works, and stops it.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::model::{Effect, Outcome};
use tokio::time::{Instant, sleep, timeout};

use super::command::{Running, shown_line};
use super::{Done, Plan, Tool, ToolEnv, parse, spec};
use crate::provider::ToolSpec;

/// How long a program is observed by default.
const SECONDS: u64 = 10;

/// The longest observation.
const MOST_SECONDS: u64 = 600;

/// The interval between checks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The time limit of one HTTP answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How much of an answer is searched.
const MOST_BODY: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct TryProgram {
    spec: ToolSpec,
}

pub(super) fn try_program() -> TryProgram {
    let text = |says: &str| json!({ "type": "string", "description": says });
    let spec = spec(
        "try_program",
        "Starts a program in the root of the workspace, checks whether it works, and stops it. \
         With a url it must answer there with a status below 400; without one it must end with \
         exit code 0 or still run when its time is up.",
        &json!({
            "command": text("The command line."),
            "url": text("An address of this machine, such as http://127.0.0.1:8080/healthz."),
            "expect": text("A text that must occur in the answer (without a url: in the output)."),
            "seconds": { "type": "integer", "minimum": 1, "description": "How long it may take. Default: 10." },
        }),
        &["command"],
    );
    TryProgram { spec }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    expect: Option<String>,
    #[serde(default)]
    seconds: Option<u64>,
}

impl Arguments {
    fn read(arguments: &Value) -> Result<(Self, Option<Url>), String> {
        let arguments: Self = parse("try_program", arguments)?;
        if arguments.command.trim().is_empty() || arguments.command.contains('\0') {
            return Err("the command is empty or contains a NUL character".to_owned());
        }
        let url = arguments.url.as_deref().map(check_local_url).transpose()?;
        Ok((arguments, url))
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(SECONDS).clamp(1, MOST_SECONDS))
    }
}

/// Parses a URL under which a program may be checked: on this machine, over plain HTTP.
pub fn check_local_url(text: &str) -> Result<Url, String> {
    let refuse = || Err(format!("{text:?} is not an http URL of this machine"));
    let Ok(url) = Url::parse(text.trim()) else { return refuse() };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_plain = url.username().is_empty() && url.password().is_none();
    if url.scheme() == "http" && is_local && is_plain { Ok(url) } else { refuse() }
}

impl Tool for TryProgram {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        Effect::Unsafe
    }

    fn preview(&self, arguments: &Value) -> String {
        format!("start {}", shown_line(arguments))
    }

    fn plan(&self, arguments: &Value, _: &ToolEnv) -> Result<Plan, String> {
        Arguments::read(arguments).map(|_| Plan::default())
    }

    fn run<'a>(&'a self, arguments: &'a Value, place: &'a ToolEnv) -> BoxFuture<'a, Done> {
        Box::pin(async move {
            match Arguments::read(arguments) {
                Ok((arguments, url)) => look_at(&arguments, url, place).await,
                Err(why) => Done::failed(why),
            }
        })
    }
}

/// The outcome of checking a program.
struct Seen {
    outcome: Outcome,
    note: String,
}

impl Seen {
    fn well(note: impl Into<String>) -> Self {
        Self { outcome: Outcome::Done, note: note.into() }
    }

    fn badly(note: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed, note: note.into() }
    }
}

async fn look_at(arguments: &Arguments, url: Option<Url>, place: &ToolEnv) -> Done {
    let client = match url.as_ref().map(|_| client()).transpose() {
        Ok(client) => client,
        Err(error) => return Done::failed(format!("HTTP checks are not possible: {error}")),
    };
    let site = url.zip(client).map(|(url, client)| Site { url, client });
    // The answer of another program must not count for this one.
    if let Some(site) = &site
        && site.get().await.is_ok()
    {
        return Done::failed(format!(
            "another program already answers at {}; the program was not started",
            site.url
        ));
    }
    let mut running = match Running::start(OsStr::new(&arguments.command), place) {
        Ok(running) => running,
        Err(error) => return Done::failed(format!("the program could not be started: {error}")),
    };
    let seen = watch(&mut running, arguments, site.as_ref()).await;
    running.stop().await;
    let mut text = running.output().await;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Done { outcome: seen.outcome, ..Done::ok(format!("{text}[{}; it was stopped]", seen.note)) }
}

/// Observes a program until it is clear whether it works.
async fn watch(running: &mut Running, arguments: &Arguments, site: Option<&Site>) -> Seen {
    let limit = arguments.limit();
    let deadline = Instant::now() + limit;
    let mut last = "no answer".to_owned();
    loop {
        let ended = tokio::select! {
            ended = running.end() => Some(ended),
            () = sleep(LOOK_EVERY) => None,
        };
        if let Some(ended) = ended {
            running.drain().await;
            return match ended {
                Ok(code) => exited(code, running, arguments, site),
                Err(why) => Seen { outcome: Outcome::Unknown, note: why.to_string() },
            };
        }
        match (site, &arguments.expect) {
            (Some(site), expect) => match site.look(expect.as_deref()).await {
                Ok(note) => return Seen::well(note),
                Err(why) => last = why,
            },
            (None, Some(expect)) if running.wrote(expect) => {
                return Seen::well(format!("it wrote {expect:?}"));
            }
            (None, _) => {}
        }
        if Instant::now() >= deadline {
            let seconds = limit.as_secs();
            return match (site, &arguments.expect) {
                (Some(site), _) => Seen::badly(format!("{}: {last} within {seconds} s", site.url)),
                (None, Some(expect)) => {
                    Seen::badly(format!("it did not write {expect:?} within {seconds} s"))
                }
                (None, None) => Seen::well(format!("it still ran after {seconds} s")),
            };
        }
    }
}

/// The outcome if the program ended by itself.
fn exited(code: i32, running: &Running, arguments: &Arguments, site: Option<&Site>) -> Seen {
    match (code, site, &arguments.expect) {
        (_, Some(site), _) => Seen::badly(format!(
            "it ended with exit code {code} and did not answer at {}",
            site.url
        )),
        (0, None, Some(expect)) if !running.wrote(expect) => {
            Seen::badly(format!("exit code 0, but it did not write {expect:?}"))
        }
        (0, None, _) => Seen::well("exit code 0"),
        (code, None, _) => Seen::badly(format!("exit code {code}")),
    }
}

/// Where the program answers.
struct Site {
    url: Url,
    client: reqwest::Client,
}

impl Site {
    async fn get(&self) -> Result<(u16, String), reqwest::Error> {
        let mut answer = self.client.get(self.url.clone()).send().await?;
        let (status, mut body) = (answer.status().as_u16(), Vec::new());
        while body.len() < MOST_BODY
            && let Some(part) = answer.chunk().await?
        {
            body.extend_from_slice(&part);
        }
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Describes the answer if it is correct; otherwise the error says what is wrong.
    async fn look(&self, expect: Option<&str>) -> Result<String, String> {
        let answer = timeout(ANSWER_WITHIN, self.get()).await;
        let Ok(Ok((status, body))) = answer else { return Err("no answer".to_owned()) };
        let said = format!("{} answered {status}", self.url);
        match expect {
            _ if status >= 400 => Err(format!("it answered {status}")),
            Some(expect) if !body.contains(expect) => {
                Err(format!("it answered {status} without {expect:?}"))
            }
            Some(expect) => Ok(format!("{said} with {expect:?}")),
            None => Ok(said),
        }
    }
}

/// A client for this machine only: no proxy, and no redirects.
fn client() -> reqwest::Result<reqwest::Client> {
    crate::provider::remote::use_ring();
    let builder = reqwest::Client::builder().no_proxy().timeout(ANSWER_WITHIN);
    builder.redirect(reqwest::redirect::Policy::none()).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_looked_at() {
        for local in ["http://127.0.0.1:8080/x", "http://localhost/", "http://[::1]:1/"] {
            assert!(check_local_url(local).is_ok(), "{local}");
        }
        for other in [
            "http://example.com/",
            "https://127.0.0.1/",
            "http://10.0.0.1/",
            "http://localhost.example.com/",
            "http://user:word@127.0.0.1/",
            "file:///etc/passwd",
            "8080",
        ] {
            assert!(check_local_url(other).is_err(), "{other}");
        }
    }

    async fn tried(arguments: Value) -> Done {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        try_program().run(&arguments, &ToolEnv::new(root)).await
    }

    /// A test server that answers every request with this status and body.
    async fn site(
        status: &'static str,
        body: &'static str,
    ) -> (String, tokio::task::JoinHandle<()>) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut asked = [0; 1024];
                let _ = socket.read(&mut asked).await;
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
                let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        (url, serving)
    }

    #[tokio::test]
    async fn an_answer_over_http_is_judged_by_its_status_and_its_text() {
        for (status, body, expect, good) in [
            ("200 OK", "hello there", None, true),
            ("200 OK", "hello there", Some("hello"), true),
            ("200 OK", "hello there", Some("bye"), false),
            ("302 Found", "", None, true),
            ("500 Oh", "hello there", Some("hello"), false),
        ] {
            let (url, serving) = site(status, body).await;
            let site = Site { url: check_local_url(&url).unwrap(), client: client().unwrap() };
            let seen = site.look(expect).await;
            assert_eq!(seen.is_ok(), good, "{status} {expect:?}: {seen:?}");
            serving.abort();
        }
    }

    #[tokio::test]
    async fn what_answers_before_the_program_runs_is_not_taken_for_it() {
        let (url, serving) = site("200 OK", "another").await;
        let done = tried(json!({ "command": "echo ran > ran.txt", "url": url })).await;
        assert_eq!(done.outcome, Outcome::Failed, "{}", done.text);
        assert!(done.text.contains("answers at") && done.text.contains("not started"));
        serving.abort();
    }

    #[tokio::test]
    async fn a_program_is_judged_by_its_exit_and_its_output() {
        for (arguments, outcome) in [
            (json!({ "command": "echo hello" }), Outcome::Done),
            (json!({ "command": "echo hello; exit 3" }), Outcome::Failed),
            (json!({ "command": "echo hello", "expect": "hello" }), Outcome::Done),
            (json!({ "command": "echo hello", "expect": "bye" }), Outcome::Failed),
            (json!({ "command": "echo up; exec sleep 60", "expect": "up" }), Outcome::Done),
            (json!({ "command": "exec sleep 60", "seconds": 1 }), Outcome::Done),
            (json!({ "command": "exec sleep 60", "seconds": 1, "expect": "up" }), Outcome::Failed),
        ] {
            let done = tried(arguments.clone()).await;
            assert_eq!(done.outcome, outcome, "{arguments}: {}", done.text);
            assert!(done.text.ends_with("it was stopped]"), "{}", done.text);
        }
    }
}
