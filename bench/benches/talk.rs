//! Talking to a run: the time from an answer to its tool's start, and the cost to a run of others
//! listening to it.
//!
//! `cargo bench -p stepwell-bench --bench talk`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use stepwell::Status;
use stepwell::model::Answer;
use stepwell_agent::permission::Mode;
use stepwell_bench::{Table, Times, timed};
use stepwell_runtime::live::listen;
use stepwell_runtime::{
    FlowOptions, Given, OpenGate, Patience, RunEvent, RunHandle, RunOptions, RunRequest, Runtime,
};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

const GATES: usize = 200;
const STEPS: usize = 200;
const RUNS: usize = 15;

/// A workspace of its own.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir_all(folder.path().join("work")).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The runtime of a process.
    fn runtime(&self) -> Runtime {
        let root = self.path().join("work");
        let host = Host {
            folder: Some(root.clone()),
            home: Some(self.path().to_owned()),
            config: Some(self.path().join("config")),
            state: Some(self.path().join("state")),
            ..Host::bare()
        };
        let wanted = Wanted { folder: Some(root), ..Wanted::default() };
        Runtime::new(Workspace::locate(host, wanted, Notices::to_nobody()).unwrap())
    }

    fn start(&self, runtime: &Runtime, script: &str, mode: Mode) -> RunHandle {
        let path = self.path().join("script.yaml");
        std::fs::write(&path, script).unwrap();
        let options = RunOptions {
            model: Some(format!("script:{}", path.display())),
            mode: Some(mode),
            patience: Patience::Wait,
            ..RunOptions::default()
        };
        runtime.start(RunRequest { options, ..RunRequest::new("work") }).unwrap()
    }
}

/// A script that calls a tool this many times.
fn script(times: usize, tool: &str, arguments: &str) -> String {
    let text = "I look at the next file, and say why in a few words. ".repeat(8);
    let mut script = String::new();
    for _ in 0..times {
        let call = format!("{{tool: {tool}, arguments: {arguments}}}");
        writeln!(script, "- {{text: '{text}', calls: [{call}]}}").unwrap();
    }
    script + "- {text: Done.}\n"
}

/// The time from an answer to the start of the tool, and the time of answering.
fn gates(answer: impl Fn(&Desk, &RunHandle, &OpenGate)) -> (Times, Times) {
    let desk = Desk::new();
    let runtime = desk.runtime();
    let script = script(GATES, "run_command", "{command: 'true'}");
    let handle = desk.start(&runtime, &script, Mode::ConfirmSensitive);
    let (mut ways, mut answers) = (Vec::new(), Vec::new());
    let mut answered = None;
    for event in handle.events() {
        match event {
            RunEvent::Approval(open) => {
                answered = Some(Instant::now());
                answers.push(timed(|| answer(&desk, &handle, &open)));
            }
            RunEvent::ToolStarted { .. } => ways.extend(answered.take().map(|it| it.elapsed())),
            _ => {}
        }
    }
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert_eq!(ways.len(), GATES);
    (Times::from_samples(ways), Times::from_samples(answers))
}

/// The listeners of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Live {
    /// No socket.
    Off,
    /// A socket without listeners.
    Unheard,
    /// A listener.
    Heard,
}

/// The time of a run.
fn run(live: Live, script: &str) -> Duration {
    let desk = Desk::new();
    if live == Live::Off {
        // A folder that others may enter is not used.
        let folder = desk.path().join("state/live");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let runtime = desk.runtime();
    drop(runtime.workspace().open_or_create().unwrap());
    let began = Instant::now();
    let handle = desk.start(&runtime, script, Mode::Yolo);
    let well = runtime.workspace().open_existing(stepwell::sqlite::Access::Read).unwrap();
    let heard =
        (live == Live::Heard).then(|| listen(runtime.workspace(), &well, handle.id(), drop));
    assert_eq!(handle.join().unwrap().status, Status::Success);
    let took = began.elapsed();
    drop(heard);
    took
}

fn main() {
    let table = Table::begin();
    let (ways, answers) = gates(|_, handle, open| {
        handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    });
    let beside = ("the answer's own append", &answers);
    table.row("answer in the runner's process to the tool's start", &ways, beside, "");
    let (ways, answers) = gates(|desk, handle, open| {
        let given = Given { gate: Some(open.gate.id.clone()), answer: Answer::from("yes") };
        desk.runtime().answer(handle.id(), &given, &FlowOptions::default()).unwrap();
    });
    let beside = ("finding the store and appending", &answers);
    table.row("answer of another process to the tool's start", &ways, beside, "");

    let script = script(STEPS, "list_files", "{}");
    let mut times = [const { Vec::new() }; 3];
    for turn in 0..=RUNS {
        for (which, live) in [Live::Off, Live::Unheard, Live::Heard].into_iter().enumerate() {
            let took = run(live, &script);
            times[which].extend((turn > 0).then_some(took));
        }
    }
    let [off, unheard, heard] = times.map(Times::from_samples);
    let what = format!("run of {STEPS} steps that nobody listens to");
    table.row(&what, &unheard, ("without a socket", &off), "≤ 1.02x");
    table.row("the same with a listener", &heard, ("without a socket", &off), "");
}
