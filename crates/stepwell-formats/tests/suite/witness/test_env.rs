//! Where a real program works: a home and a workspace of its own, and a model that records.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use stepwell::{SessionId, Stepwell};
use stepwell_formats::{
    Destination, Existing, Format, Handoff, Handover, Homes, Purpose, Wishes, write_to,
};
use stepwell_strict::{Rules, Say, Strict};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::runtime::Runtime;

/// What the model answers when a test has nothing else for it to say.
pub(super) const ANSWER: &str = "Gone on.";

/// A name that no session has yet.
pub(super) const NAME: &str = "0196a3f0-0000-7a52-8c3e-000000000042";

/// Longer than any of these programs takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A real program that somebody installed and named in a variable. `./check` always has; a test
/// that is run without says that it did nothing.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says where it is")]
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
pub(crate) fn program(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    let needed = ["CI", "STEPWELL_CHECK"].iter().any(|it| std::env::var_os(it).is_some());
    let hint = "eval \"$(./install-witnesses)\" installs it and sets the variable";
    match &found {
        None if needed => panic!("{variable} names no program; {hint}"),
        None => eprintln!("skipped: {variable} names no program; {hint}"),
        Some(_) => {}
    }
    found
}

/// A home, a workspace and a model.
pub(super) struct TestEnv {
    folder: TempDir,
    runtime: Runtime,
    pub(super) model: Strict,
}

impl TestEnv {
    pub(super) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let model = runtime.block_on(Strict::start(Rules::default())).unwrap();
        model.answer_with(|_| Say::text(ANSWER).into());
        let env = Self { folder: tempfile::tempdir().unwrap(), runtime, model };
        for folder in [env.home(), env.workspace()] {
            std::fs::create_dir(folder).unwrap();
        }
        env
    }

    /// The folder that stands for the user's home.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The folder that sessions work in.
    pub(super) fn workspace(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    /// A command of the program that sees nothing of the user's, and reaches only loopback.
    pub(super) fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        let nowhere = "http://127.0.0.1:9";
        command
            .args(arguments)
            .env_clear()
            .env("PATH", path_variable())
            .env("HOME", self.home())
            .env("MODEL_KEY", self.model.key())
            .envs(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].map(|name| (name, nowhere)))
            .env("NO_PROXY", "127.0.0.1")
            .current_dir(self.workspace())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end. The answer is what it printed.
    pub(super) fn run(&self, mut command: Command) -> String {
        let run = async { tokio::time::timeout(PATIENCE, command.output()).await };
        let out = self.runtime.block_on(run).expect("it ends in time").unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let noise = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{}: {said}\n{noise}", out.status);
        assert_eq!(self.model.rejected(), 0, "{:#?}", refused(&self.model));
        said
    }

    /// Waits for something that a program does.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        let bounded = async { tokio::time::timeout(PATIENCE, work).await };
        self.runtime.block_on(bounded).expect("it is done in time")
    }

    /// Hands a session over, as `stepwell resume --with` does.
    pub(super) fn hand_over(&self, well: &Stepwell, id: &SessionId, to: Format) -> Handoff {
        let head = well.info(id).unwrap().head;
        let (home, workspace) = (self.home(), self.workspace());
        let homes =
            Homes { home: Some(&home), data: None, workspace: None, variable: &|_: &str| None };
        let session = Handover { head: &head, uuid: NAME, workspace: &workspace };
        let writer = to.writer().unwrap();
        let handoff = writer.handoff(&session, &homes).unwrap();
        std::fs::create_dir_all(handoff.path.parent().unwrap()).unwrap();
        let wishes = Wishes { purpose: Purpose::Continue, ..Wishes::default() };
        let destination = Destination { wishes, ..Destination::new(&handoff.path, Existing::Keep) };
        write_to(&destination, writer, well, id).unwrap();
        handoff
    }

    /// The bodies of all that the model was asked.
    pub(super) fn asked(&self) -> Vec<Value> {
        self.model.asked().into_iter().map(|asked| asked.body).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "programs are found as the test's own are")]
fn path_variable() -> impl AsRef<OsStr> {
    std::env::var_os("PATH").unwrap_or_default()
}

fn refused(model: &Strict) -> Vec<String> {
    model.asked().into_iter().filter_map(|asked| asked.rejected).collect()
}

/// Fails unless all of `expected` is in `sent`, in that order. Programs add words of their own
/// between.
pub(super) fn assert_in_order(expected: &[String], sent: &[String]) {
    let mut rest = sent.iter();
    for line in expected {
        assert!(
            rest.any(|it| it == line),
            "{line}\nis not in its place among {sent:#?}\nwhich should be {expected:#?}"
        );
    }
}

/// The text in something that is one, or a list of blocks with one each.
pub(super) fn text_in(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|it| it["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
