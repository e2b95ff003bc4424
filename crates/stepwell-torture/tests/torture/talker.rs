//! A workspace, and `talker` processes in it.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use stepwell::model::{Kind, Origin};
use stepwell::sessions::Deps;
use stepwell::store::query::Query;
use stepwell::store::{Facts, Span};
use stepwell::{Event, Recorded, Seq, SessionId, Stepwell};
use stepwell_postgres::{Address, PostgresStore};
use stepwell_torture::{Asker, Order, Person, Said, Task};
use tempfile::TempDir;

use crate::child::was_killed;
use crate::program::{OTHER_MACHINE, Where};

/// A workspace with everything that may ask, and a user's home beside it.
pub(crate) struct TestEnv {
    folder: TempDir,
    store: Option<String>,
}

const FLOW: &str = "
version: 0
name: letter
runtime: {provider: ollama, model_id: fake}
agents:
  writer: {prompt: Write., tools: [run_command]}
pattern:
  type: chain
  config:
    steps:
      - {agent: writer, input: Make it.}
";

impl TestEnv {
    pub(crate) fn new(asker: Asker, store: Option<String>) -> Self {
        let env = Self { folder: tempfile::tempdir().unwrap(), store };
        for name in ["work", "home", "config", "state"] {
            std::fs::create_dir(env.folder.path().join(name)).unwrap();
        }
        let made = env.made();
        let asks = format!(
            "{{text: I make it., calls: [{{tool: run_command, arguments: {{command: 'echo x >> {}'}}}}]}}",
            made.display()
        );
        match asker {
            Asker::Agent => env.file("script.yaml", &format!("- {asks}\n- {{text: Made.}}\n")),
            Asker::Flow => {
                env.file("script.yaml", &format!("lanes: {{writer: [{asks}, {{text: Made.}}]}}\n"));
                env.file("flow.yaml", FLOW);
            }
            Asker::Subagent => {
                let hands_on = "{tool: dispatch_subagent, arguments: \
                                {task: make it, agent: worker, workspace: worktree}}";
                let parent =
                    format!("- {{text: Do it., calls: [{hands_on}]}}\n- {{text: Done.}}\n");
                env.file("script.yaml", &parent);
                env.file("worker.yaml", &format!("- {asks}\n- {{text: Made.}}\n"));
                let worker =
                    "[agents.worker]\nprompt = \"Work.\"\nmodel = \"script:worker.yaml\"\n";
                env.file("stepwell.toml", worker);
                env.file(".gitignore", ".stepwell/\n");
                env.git(&["init", "-q", "-b", "main"]);
                env.git(&["add", "."]);
                env.git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a"]);
            }
        }
        env
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join("work").join(name), text).unwrap();
    }

    fn git(&self, args: &[&str]) {
        let work = self.folder.path().join("work");
        assert!(Command::new("git").arg("-C").arg(work).args(args).status().unwrap().success());
    }

    /// The file to which the approved command appends a line.
    fn made(&self) -> PathBuf {
        self.folder.path().join("made.txt")
    }

    /// How often that command ran.
    pub(crate) fn ran(&self) -> usize {
        std::fs::read_to_string(self.made()).unwrap_or_default().lines().count()
    }

    pub(crate) fn well(&self) -> Stepwell {
        match &self.store {
            None => Stepwell::open(self.folder.path().join("work/.stepwell")).unwrap(),
            Some(url) => {
                let store = PostgresStore::open(Address::parse(url).unwrap()).unwrap();
                Stepwell::with(Arc::new(store), Deps::default())
            }
        }
    }

    /// The events that `pick` selects, with their sessions.
    pub(crate) fn events<T>(&self, pick: impl Fn(Recorded) -> Option<T>) -> Vec<(SessionId, T)> {
        let well = self.well();
        let mut found = Vec::new();
        for info in well.sessions(Query::default()) {
            let id = info.unwrap().head.id;
            let events = well.store().events(&id, Span::ALL).unwrap().intact(&id).unwrap();
            found.extend(events.into_iter().filter_map(&pick).map(|it| (id.clone(), it)));
        }
        found
    }

    /// The question about the command: recorded once, whatever was killed.
    pub(crate) fn gate(&self) -> (SessionId, String) {
        let mut asked = self.events(|event| match event.event {
            Event::Gate(gate) => {
                gate.call.filter(|call| call.tool == "run_command").map(|_| gate.id)
            }
            _ => None,
        });
        assert_eq!(asked.len(), 1, "it is asked once: {asked:?}");
        asked.remove(0)
    }

    /// Waits until a question has an answer.
    pub(crate) fn wait_for_answer(&self, session: &SessionId, gate: &str) {
        let well = self.well();
        let mut seq = Seq::ZERO;
        loop {
            let facts = Facts::under(&[Kind::GateAnswered], gate);
            if !well.store().keyed(session, facts).unwrap().is_empty() {
                return;
            }
            seq = well.store().wait_after(session, seq, Duration::from_secs(60)).unwrap();
        }
    }

    fn talking(&self, task: Task) -> Command {
        let (folder, store) = (self.folder.path().to_owned(), self.store.clone());
        let order = serde_json::to_string(&Order { folder, store, task }).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_talker"));
        command.arg(order);
        command
    }

    pub(crate) fn talker(&self, task: Task) -> Talker {
        let mut command = self.talking(task);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Talker { process, lines }
    }

    pub(crate) fn start(&self, asker: Asker, person: Person) -> (Talker, SessionId) {
        let mut talker = self.talker(Task::Start { asker, person });
        match talker.next() {
            Some(Said::Began(id)) => (talker, id),
            other => panic!("it did not begin: {other:?}"),
        }
    }

    /// The command that starts it at a terminal.
    pub(crate) fn starting(&self, asker: Asker, person: Person) -> Command {
        self.talking(Task::Start { asker, person })
    }

    /// The session that was started, not a subagent's.
    pub(crate) fn begun(&self) -> SessionId {
        let well = self.well();
        let mut heads = well.sessions(Query::default()).map(|info| info.unwrap().head);
        heads.find(|head| !matches!(head.origin, Origin::Subagent { .. })).unwrap().id
    }

    /// The program, in the workspace.
    pub(crate) fn stepwell(&self, args: &[&str]) -> Command {
        self.program(Where::Here, args)
    }

    /// The program, starting the run that asks.
    pub(crate) fn begin(&self, asker: Asker) -> Command {
        let model = ["--model", "script:script.yaml"];
        match asker {
            Asker::Flow => self.stepwell(&[&["flow", "run", "flow.yaml"][..], &model].concat()),
            _ => self.stepwell(&[&["run", "make it"][..], &model].concat()),
        }
    }

    /// The machine that answers: with a shared store, another one.
    pub(crate) fn place(&self) -> Where {
        if self.store.is_some() { Where::OtherMachine } else { Where::Here }
    }

    /// The program, answering the question.
    pub(crate) fn answering(&self, word: &str) -> Command {
        let (session, gate) = self.gate();
        self.program(self.place(), &["gates", "answer", &format!("{session}/{gate}"), word])
    }

    fn program(&self, place: Where, args: &[&str]) -> Command {
        let path = PathBuf::from(env!("CARGO_BIN_EXE_talker")).with_file_name("stepwell");
        assert!(path.exists(), "cargo build -p stepwell-cli makes {}", path.display());
        let mut command = Command::new(path);
        let store = self.store.iter().flat_map(|store| ["--store", store.as_str()]);
        // As for a person: without the tests' environment.
        command.args(store).args(args).env_clear().env("NO_COLOR", "1").env("TERM", "dumb");
        command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
        let top = match place {
            Where::Here => self.folder.path().to_owned(),
            Where::OtherMachine => {
                command.env("STEPWELL_HOST", OTHER_MACHINE);
                self.folder.path().join(OTHER_MACHINE)
            }
        };
        std::fs::create_dir_all(top.join("work")).unwrap();
        command.env("HOME", top.join("home"));
        command.env("XDG_CONFIG_HOME", top.join("config"));
        command.env("XDG_STATE_HOME", top.join("state")).current_dir(top.join("work"));
        command
    }

    pub(crate) fn resume(&self, session: &SessionId, person: Person) -> Talker {
        let mut talker = self.talker(Task::Resume { session: session.clone(), person });
        assert_eq!(talker.next(), Some(Said::Began(session.clone())));
        talker
    }
}

/// A `talker` process.
pub(crate) struct Talker {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talker {
    /// Its next report; `None` at its end.
    pub(crate) fn next(&mut self) -> Option<Said> {
        let line = self.lines.next()?.unwrap();
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}")))
    }

    /// Makes a waiting process answer, or send another message.
    pub(crate) fn go(&mut self) {
        writeln!(self.process.stdin.as_mut().unwrap(), "go").unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Its reports until its end.
    pub(crate) fn rest(mut self) -> Vec<Said> {
        drop(self.process.stdin.take());
        let said = std::iter::from_fn(|| self.next()).collect();
        assert!(self.process.wait().unwrap().success(), "{said:?}");
        said
    }

    /// Its reports until it kills itself or was killed.
    pub(crate) fn last_words(mut self) -> Vec<Said> {
        let said = std::iter::from_fn(|| self.next()).collect();
        assert!(was_killed(self.process.wait().unwrap()), "{said:?}");
        said
    }
}
