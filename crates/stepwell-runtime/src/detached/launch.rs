//! Starting the program that does it.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stepwell::SessionId;

use super::{DetachedAnswer, DetachedRequest};

/// The program that does what a request asks: it reads it from its input.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// The arguments that name the store; none, if the program finds it by itself.
    pub store: Vec<OsString>,
    /// Its other arguments.
    pub arguments: Vec<OsString>,
}

/// Starts a program.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program.
    pub program: Program,
    /// The folder that it works in.
    pub folder: PathBuf,
    /// The folder, in the store's, for what it writes beside its answer.
    pub logs: PathBuf,
}

/// How much of a log is looked at for the reason of a failure.
const REASON_BYTES: u64 = 4096;

impl Launcher {
    /// Starts it, and waits for its answer. The program goes on by itself, in a session of its
    /// own: what ends this process does not end it.
    ///
    /// # Errors
    /// If the program cannot be started, or ends without an answer.
    pub fn start(&self, request: &DetachedRequest) -> std::io::Result<DetachedAnswer> {
        stepwell::store::refuse_link(&self.logs).map_err(std::io::Error::other)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.logs)?;
        let path =
            self.logs.join(format!("request-{}-{:?}.log", std::process::id(), thread_number()));
        // What a process of the same number left there was of nobody's.
        let _ = std::fs::remove_file(&path);
        let mut log = OpenOptions::new();
        let log = log.create_new(true).append(true).mode(0o600).open(&path)?;
        let Program { path: program, store, arguments } = &self.program;
        let mut child = Command::new(program)
            .args(store)
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // One that ended already says why.
            let _ = input.write_all(&serde_json::to_vec(request)?);
        }
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let answer = serde_json::from_str(&line);
        match answer {
            Ok(answer) => {
                self.name_log(&path, &answer);
                // Waited for by a thread, so that no dead process stays behind.
                std::thread::spawn(move || child.wait());
                Ok(answer)
            }
            Err(_) => {
                let _ = child.wait();
                let why = reason(&path);
                let _ = std::fs::remove_file(&path);
                Err(std::io::Error::other(why))
            }
        }
    }

    /// The file that the run of a session writes to.
    #[must_use]
    pub fn log_of(&self, session: &SessionId) -> PathBuf {
        self.logs.join(format!("{session}.log"))
    }

    /// The log of a run is named after its session; what is done at once leaves none.
    fn name_log(&self, path: &Path, answer: &DetachedAnswer) {
        let _ = match answer {
            DetachedAnswer::Started { session } => std::fs::rename(path, self.log_of(session)),
            _ => std::fs::remove_file(path),
        };
    }
}

/// Tells two requests apart that one process starts at the same time.
fn thread_number() -> std::thread::ThreadId {
    std::thread::current().id()
}

fn reason(log: &Path) -> String {
    let mut why = String::new();
    let read = File::open(log).and_then(|it| it.take(REASON_BYTES).read_to_string(&mut why));
    match read {
        Ok(_) if !why.trim().is_empty() => why.trim().to_owned(),
        _ => "the program ended without an answer".to_owned(),
    }
}
