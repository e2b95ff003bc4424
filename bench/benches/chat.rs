//! The conversation in the terminal: the time from a key to its frame with 10,000 messages open
//! while a model streams, from a key in the picker to its hits, and from the start to the first
//! frame; and the memory.
//!
//! `cargo build --release -p stepwell-cli && cargo bench -p stepwell-bench --bench chat`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use stepwell::model::{Mode, Time};
use stepwell::sqlite::SqliteStore;
use stepwell::store::Create;
use stepwell::{
    Created, Event, Message, NewEvent, Recorded, Seq, SessionId, Status, Stepwell, Store,
};
use stepwell_bench::{Table, Times, timed};
use stepwell_runtime::Runtime;
use stepwell_tui::{
    Backstage as _, Clean, Effect, Input, InputChannel, Look, Opened, Program, Reach, Reply,
    RuntimeBackstage, Screen, SessionCard, State, Theme, Told, draw, inputs, printed,
};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

const MESSAGES: u64 = 10_000;

/// The message at a position of a long session.
fn message(n: u64) -> Message {
    let text = format!("message {n}: `code`, **words** and a list\n\n- one\n- two\n");
    if n % 2 == 1 { Message::user(text) } else { Message::assistant(text) }
}

fn card(id: SessionId) -> SessionCard {
    SessionCard {
        id,
        title: Clean::new("a long day"),
        status: Status::Success,
        model: Clean::new("local/large"),
        mode: None,
        phase: None,
        cost: Clean::new("$1.20"),
        left: None,
        context: Some(40),
        is_flow: false,
        is_guided: false,
    }
}

/// A terminal with an open session of this many messages, and a streaming model.
fn open(messages: u64) -> (State, Screen<std::io::Sink>) {
    let look = Look {
        columns: 120,
        rows: 40,
        theme: Theme::COLOUR,
        model: Clean::new("local/large"),
        mode: Mode::ConfirmSensitive,
        folder: Clean::new("~/work"),
    };
    let recorded = |n| Recorded {
        seq: Seq::new(n),
        at: Time::from_micros(0),
        id: None,
        event: Event::from(message(n)),
    };
    let opened = Opened {
        opening: 1,
        place: None,
        card: card("long".parse().unwrap()),
        events: (1..=messages).map(recorded).collect(),
        more: false,
        unheard: 0,
        resume: false,
        rests: false,
        stopped: false,
        waiting: 0,
        seq: Seq::new(messages),
        elsewhere: None,
    };
    let mut state = State::new(look);
    state.open_session("long".to_owned(), None, false);
    state.update(Duration::ZERO, Input::Reply(Reply::Opened(Box::new(opened))));
    state.take_printable();
    state.update(Duration::ZERO, Input::Line("go on".to_owned()));
    (state, Screen::new(std::io::sink(), (120, 40), Some(0)))
}

/// A key, after a piece of an answer, and the frame that shows both.
fn press((state, screen): &mut (State, Screen<std::io::Sink>), n: &mut u64) {
    *n += 1;
    let now = Duration::from_millis(*n);
    let piece = if n.is_multiple_of(40) { "the end.\n\n" } else { "more words " };
    state.update(now, Input::Run(Told::Text(piece.to_owned())));
    // The typed text stays as short as a person's.
    let key = if n.is_multiple_of(60) { KeyCode::Home } else { KeyCode::Char('x') };
    state.update(now, Input::Key(KeyEvent::from(key)));
    let blocks = state.take_printable();
    let lines = blocks.iter().flat_map(|block| printed(state, block)).collect();
    screen.show(lines, &draw(state)).unwrap();
}

fn keys(table: &Table) {
    let (mut long, mut short) = (open(MESSAGES), open(10));
    let (mut a, mut b) = (0, 0);
    let (ours, beside) =
        Times::of_both(21, 100, || press(&mut long, &mut a), || press(&mut short, &mut b));
    let goal = "p99 ≤ 16 ms";
    table.row("key to frame, 10,000 messages, streaming", &ours, ("10 messages", &beside), goal);
    let (mut long, mut short) = (open(MESSAGES), open(10));
    for (state, _) in [&mut long, &mut short] {
        state.update(Duration::ZERO, Input::Line("/transcript".to_owned()));
    }
    let (ours, beside) =
        Times::of_both(11, 100, || press(&mut long, &mut a), || press(&mut short, &mut b));
    table.row("the same on the page of all of it", &ours, ("10 messages", &beside), goal);
}

/// A store of this many sessions, read by the picker.
struct Picking {
    backstage: RuntimeBackstage,
    replies: tokio::sync::mpsc::UnboundedReceiver<Input>,
    asked: u64,
    _folder: tempfile::TempDir,
}

impl Picking {
    fn among(sessions: usize) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = folder.path().join("work");
        let store = SqliteStore::open(&root.join(".stepwell")).unwrap();
        for chunk in 0..sessions / 100 {
            let writes = (0..100).flat_map(|n| {
                let number = chunk * 100 + n;
                let id: SessionId = format!("s{number:06}").parse().unwrap();
                let task = format!("repair part {number} of the machine");
                let mut created = Created::new(id.clone(), task.clone());
                created.driver = stepwell::model::Driver::External;
                let create = Create { created, event_id: None, at: None, claim: None };
                let events = vec![NewEvent::from(Message::user(task))];
                let append = stepwell::store::Append {
                    session: id,
                    epoch: None,
                    expected: None,
                    events: events.into(),
                };
                [stepwell::store::Write::Create(create), stepwell::store::Write::Append(append)]
            });
            store.batch(writes.collect()).unwrap();
        }
        drop(store);
        let state = Some(folder.path().join("state"));
        let host = Host { folder: Some(root.clone()), state, ..Host::bare() };
        let wanted = Wanted { folder: Some(root), ..Wanted::default() };
        let workspace = Workspace::locate(host, wanted, Notices::to_nobody()).unwrap();
        // Nothing runs in the background here.
        let launcher = Arc::new(|_: &Workspace| Err(std::io::ErrorKind::Unsupported.into()));
        let program = Program { runtime: Arc::new(Runtime::new), launcher, editor: Vec::new() };
        let InputChannel { to: inputs, from: replies } = inputs();
        let backstage = RuntimeBackstage::new(workspace, program, inputs);
        Self { backstage, replies, asked: 0, _folder: folder }
    }

    /// The number of hits for these words.
    fn find(&mut self, words: &str) -> usize {
        self.asked += 1;
        let (search, words, reach) = (self.asked, words.to_owned(), Reach::Workspace);
        self.backstage.carry_out(Effect::Find { search, words, reach });
        loop {
            match self.replies.blocking_recv().unwrap() {
                Input::Reply(Reply::Found { search, rows, .. }) if search == self.asked => {
                    return rows.len();
                }
                _ => {}
            }
        }
    }
}

fn picker(table: &Table) {
    let (mut many, mut few) = (Picking::among(100_000), Picking::among(1_000));
    // A typed word, and one without hits.
    for (what, typed, is_there) in [
        ("a key in the picker over 100,000 sessions", ["p", "part", "part 7", "part 77"], true),
        ("the same where nothing is found", ["zq", "zqx", "zqxj", "zqxjk"], false),
    ] {
        let (mut a, mut b) = (typed.iter().cycle(), typed.iter().cycle());
        let (ours, beside) = Times::of_both(
            11,
            8,
            || assert_eq!(many.find(a.next().unwrap()) > 0, is_there),
            || assert_eq!(few.find(b.next().unwrap()) > 0, is_there),
        );
        table.row(what, &ours, ("over 1,000", &beside), "≤ 30 ms");
    }
}

/// The release build of the command, next to this benchmark.
fn stepwell() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let binary = here.ancestors().nth(2).unwrap().join("stepwell");
    assert!(binary.exists(), "build it first: cargo build --release -p stepwell-cli");
    binary
}

fn command(binary: &Path, folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(args).env_clear().env("HOME", folder).env("TERM", "xterm-256color");
    command.current_dir(folder);
    command
}

/// A process with its own terminal.
fn at_terminal(mut command: Command) -> (Child, File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    command.stdin(Stdio::from(side())).stdout(Stdio::from(side())).stderr(Stdio::from(side()));
    let child = command.spawn().unwrap();
    drop(command);
    (child, File::from(terminal))
}

/// Reads until this text was drawn.
fn until(terminal: &mut File, text: &str) {
    let (mut seen, mut buffer) = (String::new(), [0; 65_536]);
    while !seen.contains(text) {
        let n = terminal.read(&mut buffer).unwrap();
        let piece = String::from_utf8_lossy(&buffer[..n]).into_owned();
        // It asks for the cursor's position before it draws.
        if piece.contains("\u{1b}[6n") {
            terminal.write_all(b"\x1b[1;1R").unwrap();
        }
        seen.push_str(&piece);
    }
}

/// Starts a conversation, and ends it after its first frame.
fn first_frame(binary: &Path, folder: &Path, (args, text): (&[&str], &str)) -> Child {
    let (child, mut terminal) = at_terminal(command(binary, folder, args));
    until(&mut terminal, text);
    // Further output is read until it ends.
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = terminal.write_all(b"\x04");
        let _ = terminal.read_to_end(&mut rest);
    });
    child
}

/// A session of 10,000 messages, on disk.
fn fill(folder: &Path) {
    let store = SqliteStore::open(&folder.join(".stepwell")).unwrap();
    let id: SessionId = "long".parse().unwrap();
    let created = Created::new(id.clone(), "a long day");
    let create = Create { created, event_id: None, at: None, claim: None };
    store.batch(vec![stepwell::store::Write::Create(create)]).unwrap();
    drop(store);
    let well = Stepwell::open(folder.join(".stepwell")).unwrap();
    let session = well.lock(&id).unwrap();
    for chunk in 0..MESSAGES / 500 {
        let events = (1..=500).map(|n| NewEvent::from(message(chunk * 500 + n)));
        session.append_all(events.collect::<Vec<_>>()).unwrap();
    }
}

/// The peak memory of a process, in KiB.
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn processes(table: &Table) {
    let binary = stepwell();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fill(folder.path());
    let start: (&[&str], &str) = (&[], "what is to be done?");
    let long: (&[&str], &str) = (&["chat", "long"], "what next?");
    let version = || {
        let mut command = command(&binary, folder.path(), &["--version"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().unwrap().success());
    };
    let goal = "≤ 50 ms";
    for (what, args) in [("start to first frame", start), ("the same with 10,000 messages", long)] {
        let (mut ours, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            let mut child = None;
            ours.push(timed(|| child = Some(first_frame(&binary, folder.path(), args))));
            child.unwrap().wait().unwrap();
            beside.push(timed(version));
        }
        let (ours, beside) = (Times::from_samples(ours), Times::from_samples(beside));
        table.row(what, &ours, ("stepwell --version", &beside), goal);
    }
    let memory = |args| {
        let (mut child, mut terminal) = at_terminal(command(&binary, folder.path(), args));
        let text = if args.is_empty() { start.1 } else { long.1 };
        until(&mut terminal, text);
        let peak = peak(&child);
        child.kill().unwrap();
        child.wait().unwrap();
        format!("{:.1} MiB", peak as f64 / 1024.0)
    };
    let (long, start) = (memory(&["chat", "long"]), memory(&[]));
    table.figure("memory with 10,000 messages open", &long, &format!("none open {start}"), "");
}

fn main() {
    let table = Table::begin();
    keys(&table);
    picker(&table);
    processes(&table);
}
