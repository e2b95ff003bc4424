//! A user's environment: a workspace, a home, and a transcript of what was typed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use regex::Regex;
use stepwell::model::{
    Checkpoint, Edited, Failure, FileChanged, FileState, Money, StatusChanged, Usage,
};
use stepwell::sessions::Deps;
use stepwell::sqlite::{SqliteOptions, SqliteStore};
use stepwell::store::{Processes as _, SystemProcesses};
use stepwell::{Created, Lane, Message, SessionId, Status, Stepwell, StopReason};
use stepwell_conformance::TestClock;
use tempfile::TempDir;

use crate::answers;

/// The binary under test.
pub(crate) const STEPWELL: &str = env!("CARGO_BIN_EXE_stepwell");

/// When the commands run: two weeks after the furniture was made.
pub(crate) const NOW: &str = "2026-03-09T12:00:00Z";

/// A user's environment.
pub(crate) struct TestEnv {
    top: TempDir,
    variables: BTreeMap<String, String>,
    transcript: String,
}

/// What a command did.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

impl TestEnv {
    /// An empty environment.
    pub(crate) fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("work")).unwrap();
        std::fs::create_dir_all(top.path().join("home")).unwrap();
        Self { top, variables: BTreeMap::new(), transcript: String::new() }
    }

    /// An environment with a store that holds sessions of every kind.
    pub(crate) fn furnished() -> Self {
        let env = Self::new();
        let clock = Arc::new(TestClock::default());
        furnish(&env.well_at(&clock), &clock);
        env
    }

    /// The workspace.
    pub(crate) fn work(&self) -> PathBuf {
        self.top.path().join("work")
    }

    /// A name that nothing else has in this run of the tests.
    pub(crate) fn unique(what: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        format!("{what}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// A path in the environment.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// Writes a file in the workspace.
    pub(crate) fn file(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Reads a file in the workspace.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// Waits until a command has written to a file; that it is there is not enough.
    pub(crate) fn wait_for(&self, name: &str) {
        // Only a command that never writes takes all of these looks.
        let is_written = (0..12_000).any(|_| {
            let file = std::fs::metadata(self.work().join(name));
            let is_written = file.is_ok_and(|file| file.len() > 0);
            if !is_written {
                std::thread::park_timeout(Duration::from_millis(10));
            }
            is_written
        });
        assert!(is_written, "nothing was written to {name}");
    }

    /// The store, as another program would use it.
    pub(crate) fn well(&self) -> Stepwell {
        Stepwell::open(self.work().join(".stepwell")).unwrap()
    }

    fn well_at(&self, clock: &Arc<TestClock>) -> Stepwell {
        let options = SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() };
        let folder = self.work().join(".stepwell");
        let store = SqliteStore::open_with(&folder, options).unwrap();
        let surroundings = Deps { clock: clock.clone(), ..Deps::default() };
        Stepwell::with(Arc::new(store), surroundings)
    }

    /// The store's file, to break it.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.work().join(".stepwell/stepwell.db")).unwrap()
    }

    /// Sets a variable for the commands that follow.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    /// A command, ready to run in this environment and nowhere else.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(STEPWELL);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.path("home"))
            .env("TZ", "UTC")
            .env("STEPWELL_NOW", NOW)
            .envs(&self.variables)
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command without noting it.
    pub(crate) fn quietly(&self, args: &[&str]) -> Ran {
        let ran = ran(self.command(args).output().unwrap());
        answers::check(args, &ran.stdout);
        ran
    }

    /// Runs a command whose arguments have no spaces, and notes it.
    pub(crate) fn say(&mut self, line: &str) -> Ran {
        let args: Vec<&str> = line.split_whitespace().collect();
        self.run(&args)
    }

    /// Runs a command and notes it.
    pub(crate) fn run(&mut self, args: &[&str]) -> Ran {
        let ran = self.quietly(args);
        self.note(args, "", &ran);
        ran
    }

    /// Runs a command that reads this, and notes it.
    pub(crate) fn feed(&mut self, args: &[&str], input: &str) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read to the end closes its stdin.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let ran = ran(child.wait_with_output().unwrap());
        answers::check(args, &ran.stdout);
        self.note(args, input, &ran);
        ran
    }

    fn note(&mut self, args: &[&str], input: &str, ran: &Ran) {
        let quoted: Vec<String> = args
            .iter()
            .map(|arg| match arg.is_empty() || arg.contains(|c: char| " \"\n*".contains(c)) {
                true => format!("'{arg}'"),
                false => (*arg).to_owned(),
            })
            .collect();
        let out = &mut self.transcript;
        writeln!(out, "$ stepwell {}", quoted.join(" ")).unwrap();
        if !input.is_empty() {
            writeln!(out, "< {}", input.trim_end()).unwrap();
        }
        out.push_str(&ran.stdout);
        for line in ran.stderr.lines() {
            writeln!(out, "! {line}").unwrap();
        }
        match ran.code {
            Some(0) => {}
            Some(code) => writeln!(out, "exit {code}").unwrap(),
            None => writeln!(out, "killed").unwrap(),
        }
        out.push('\n');
    }

    /// Everything that was typed and answered, without what differs between runs.
    pub(crate) fn transcript(&self) -> String {
        self.redact(&self.transcript)
    }

    /// A text without what differs between runs: where the environment stands, new ids, and what
    /// this process, which goes by the real time, did.
    pub(crate) fn redact(&self, text: &str) -> String {
        let here = std::fs::canonicalize(self.top.path()).unwrap();
        let mut text = text.replace(here.to_str().unwrap(), "[DESK]");
        text = text.replace(self.top.path().to_str().unwrap(), "[DESK]");
        text = text.replace(&SystemProcesses.this().who().name, "[WHO]");
        let rules = [
            (r"\b20\d{6}-\d{6}-[0-9a-f]{6}\b", "[ID]"),
            (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "[TIME]"),
            (r"\b20\d\d-\d\d-\d\d\b", "[DAY]"),
            (r"process \d+ on \S+", "process [PID] on [HOST]"),
        ];
        for (pattern, name) in rules {
            let pattern = Regex::new(pattern).unwrap();
            let keep = |found: &regex::Captures<'_>| {
                let known = [AUTH, TESTS, MIGRATION, WIDE, REVIEW].contains(&&found[0]);
                let then = ["2026-02-", "2026-03-", "2026-04-"];
                match known || then.iter().any(|month| found[0].starts_with(month)) {
                    true => found[0].to_owned(),
                    false => name.to_owned(),
                }
            };
            text = pattern.replace_all(&text, keep).into_owned();
        }
        text
    }
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

impl Ran {
    /// The one line of the answer.
    pub(crate) fn line(&self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout.trim_end().to_owned()
    }

    /// The answer as JSON values, read by jq, which takes nothing but JSON.
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        let mut jq = Command::new("jq")
            .args(["-c", "."])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("jq is installed; ./check installs it");
        let mut input = jq.stdin.take().unwrap();
        let text = self.stdout.clone();
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let output = jq.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success(), "jq refused: {}", self.stdout);
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(crate) const AUTH: &str = "20260223-143022-a1b2c3";
pub(crate) const TESTS: &str = "20260223-151045-d4e5f6";
pub(crate) const MIGRATION: &str = "20260223-160000-f7a8b9";
pub(crate) const WIDE: &str = "20260224-090000-0a0b0c";
pub(crate) const REVIEW: &str = "20260223-143100-5ab001";

/// Sessions as they come about: interrupted, done, stopped by a limit, failed, and one
/// of a subagent.
fn furnish(well: &Stepwell, clock: &TestClock) {
    let later = || clock.advance(Duration::from_secs(60 * 60));
    let id = |name: &str| name.parse::<SessionId>().unwrap();
    let created = |name: &str, task: &str| {
        Created::new(id(name), task).with_agent("build").with_model("acme", "large-2")
    };
    let usage = Usage { input: 1_200, output: 300, ..Usage::default() };
    let dollars = |text: &str| Some(text.parse::<Money>().unwrap());

    let auth = well.create(created(AUTH, "refactor the entire auth module")).unwrap();
    auth.append(Message::user("refactor the entire auth module")).unwrap();
    let ask = Message::assistant("I look at the code first.")
        .calling("c1", "read_file", r#"{"path":"src/auth.rs"}"#)
        .spending(usage, dollars("0.0123"));
    auth.step([ask, Message::tool_result("c1", "fn login() { todo!() }")]).unwrap();
    let absent = FileState::Absent;
    let secret = FileState::NotCaptured { digest: None, why: "too large".into() };
    let file = |path: &str| FileChanged {
        path: path.into(),
        before: absent.clone(),
        after: secret.clone(),
        renamed_from: None,
    };
    auth.append_all(vec![file("src/auth.rs").into(), file("src/token.rs").into()]).unwrap();
    auth.append(Checkpoint { name: "before-tests".into(), ..Checkpoint::default() }).unwrap();
    let review = well.draft("review the change").with_agent("reviewer");
    let review = Created { id: id(REVIEW), ..review };
    let review = auth.spawn(review).unwrap();
    review.step([Message::assistant("Looks good.").spending(usage, dollars("0.0040"))]).unwrap();
    review.finish(Status::Success, Some(StopReason::LlmDone)).unwrap();
    auth.append(Message::assistant("").calling("c2", "run_command", r#"{"cmd":"make"}"#)).unwrap();
    let status = StatusChanged {
        status: Status::Interrupted,
        reason: Some(StopReason::UserInterrupt),
        error: None,
    };
    auth.append(status).unwrap();
    drop(auth);

    later();
    let tests = well.create(created(TESTS, "add tests to user.py")).unwrap();
    let lane: Lane = "tester".parse().unwrap();
    let done = Message::assistant("All tests pass.").spending(usage, dollars("0.45"));
    tests.step_in(&lane, [done]).unwrap();
    tests.append(Edited { tag: ["ci".to_owned()].into(), ..Edited::default() }).unwrap();
    tests.finish(Status::Success, Some(StopReason::LlmDone)).unwrap();

    later();
    let migration = well.create(created(MIGRATION, "migrate the database")).unwrap();
    let unpriced = Message::assistant("First the schema.").spending(usage, None);
    migration.step([unpriced]).unwrap();
    migration.finish(Status::Partial, Some(StopReason::BudgetExceeded)).unwrap();

    later();
    let task =
        "Migrate\n\nthe 数据库 to\tPostgreSQL, then \u{1b}[31mtell\u{1b}[0m everyone about it";
    let wide = well.create(created(WIDE, task)).unwrap();
    wide.append(Failure { message: "the server is gone".into() }).unwrap();
    let failed = StatusChanged {
        status: Status::Failed,
        reason: Some(StopReason::LlmError),
        error: Some("the server is gone".into()),
    };
    wide.append(failed).unwrap();
    drop(wide);
}
