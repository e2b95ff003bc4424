//! chat, on a terminal: a day of work, kills, and coming back.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use stepwell::{Event, Message, Role, Span, Status};
use stepwell_strict::{Ending, Say};

use crate::desk::Desk;
use crate::running;

const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

/// What a model says over a day: it looks, writes a file, and answers more questions.
const DAY: &str = "
answers:
  - text: I write **the file**.
    calls: [{tool: write_file, arguments: {path: notes.md, content: 'first'}}]
  - text: It is written.
  - text: Of course, here is more.
  - text: 'Then otherwise: fine.'
";

/// A person at a terminal.
struct Seat {
    child: Child,
    terminal: File,
    shown: vt100::Parser,
}

impl Seat {
    fn sit(mut command: Command) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let side = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        command.stdin(Stdio::from(side())).stdout(Stdio::from(side())).stderr(Stdio::from(side()));
        let child = command.env("TERM", "xterm-256color").spawn().unwrap();
        drop(command);
        let shown = vt100::Parser::new(ROWS, COLUMNS, 10_000);
        Self { child, terminal: File::from(terminal), shown }
    }

    /// Reads what the program writes, and answers where the cursor is if it asks. False, if it has
    /// ended.
    fn look(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let Ok(n @ 1..) = self.terminal.read(&mut buffer) else { return false };
        self.shown.process(&buffer[..n]);
        if String::from_utf8_lossy(&buffer[..n]).contains("\u{1b}[6n") {
            let (row, column) = self.shown.screen().cursor_position();
            let answer = format!("\u{1b}[{};{}R", row + 1, column + 1);
            self.terminal.write_all(answer.as_bytes()).unwrap();
        }
        true
    }

    fn screen(&self) -> String {
        self.shown.screen().contents()
    }

    /// Watches until something is on the screen.
    fn until(&mut self, text: &str) -> &mut Self {
        while !self.screen().contains(text) {
            assert!(self.look(), "{text:?} never came:\n{}", self.screen());
        }
        self
    }

    /// Watches until something is no longer on the screen.
    fn until_gone(&mut self, text: &str) -> &mut Self {
        while self.screen().contains(text) {
            assert!(self.look(), "{text:?} never went:\n{}", self.screen());
        }
        self
    }

    fn press(&mut self, keys: &str) -> &mut Self {
        self.terminal.write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Answers a question once it was there long enough to be read.
    fn answer(&mut self, key: &str) -> &mut Self {
        self.until("waiting for you").until("y once").until(" 1s").press(key)
    }

    /// Leaves, and waits until the program has ended.
    fn leave(mut self) -> (String, Option<i32>) {
        self.press("\u{4}");
        while self.look() {}
        (self.screen(), self.child.wait().unwrap().code())
    }

    /// The power goes.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn chat(desk: &Desk, args: &[&str]) -> Seat {
    Seat::sit(desk.command(&[&["chat"], args].concat()))
}

/// What was said in the only session, and how it stands.
fn said(desk: &Desk) -> (Status, Vec<(Role, String)>) {
    let well = desk.well();
    let id = well.find("@last").unwrap();
    let events = well.store().events(&id, Span::ALL).unwrap().events;
    let messages = events.into_iter().filter_map(|event| match event.event {
        Event::Message(Message { role: Role::System | Role::Tool, .. }) => None,
        Event::Message(message) => Some((message.role, message.text())),
        _ => None,
    });
    (well.standing(&id).unwrap().head.status, messages.collect())
}

#[test]
fn a_day_of_work_survives_a_kill_during_an_approval() {
    let desk = running::desk(DAY);
    let mut seat = chat(&desk, &["--model", "script:script.yaml"]);
    seat.until("what is to be done?").press("write the notes\r");
    seat.until("I write the file.").until("Allow").until("y once");
    seat.kill();
    assert!(!desk.work().join("notes.md").exists());
    // It waits for its answer, and asks again.
    let mut seat = chat(&desk, &[]);
    seat.until("waits for you").press("\u{1b}[B\r").until("write the notes");
    seat.answer("y").until("It is written.").until("what next?");
    assert_eq!(desk.read("notes.md"), "first");
    seat.press("more\r").until("here is more.").until("what next?");
    // A command of the terminal, one of the user's own, one that there is none of.
    seat.press("/rename my notes\r").until("my notes");
    seat.press("!cat notes.md\r").until("  first");
    seat.press("/resme\r").until("did you mean /resume?");
    // Back to before what was said last.
    seat.press("/rewind\r").until("Go back to").press("\r").until("Bring back:").press("\r");
    seat.until_gone("Go back to").until("the session was changed").until("› more");
    seat.press("\u{15}then otherwise\r").until("working").until("what next?");
    let (screen, code) = seat.leave();
    assert!(screen.contains("Saved. stepwell chat "), "{screen}");
    assert_eq!(code, Some(0));
    let (status, messages) = said(&desk);
    assert_eq!(status, Status::Success);
    let words: Vec<&str> = messages.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(words[0], "write the notes");
    assert!(words.contains(&"then otherwise") && words.contains(&"more"), "{words:?}");
    assert!(words.iter().any(|text| text.starts_with("I ran `cat notes.md`")), "{words:?}");
    // All of it is there when it is opened again.
    let mut seat = chat(&desk, &["my notes"]);
    seat.until("then otherwise").until("what next?");
    assert!(!seat.screen().contains("› more"), "what was taken back is not shown");
    seat.leave();
}

#[test]
fn a_kill_while_the_model_speaks_loses_nothing_that_was_said() {
    let (desk, strict, _runtime) = running::with_provider("openai");
    strict.push(Say::text("Half of the answer").ending(Ending::SilentAfter(1)));
    let mut seat = chat(&desk, &["--model", "local/large"]);
    seat.until("what is to be done?").press("tell me\r").until("Half of the answer");
    // What is said meanwhile is on record at once.
    seat.press("and be brief\r").until("» and be brief");
    while desk.well().standing(&desk.well().find("@last").unwrap()).unwrap().head.unheard == 0 {
        std::thread::yield_now();
    }
    seat.kill();
    strict.push(Say::text("The whole answer."));
    strict.push(Say::text("The brief answer."));
    let mut seat = chat(&desk, &["@last"]);
    seat.until("tell me").until("answer.").until("what next?");
    seat.leave();
    let (status, messages) = said(&desk);
    assert_eq!(status, Status::Success);
    let mine: Vec<&str> = messages
        .iter()
        .filter(|(role, _)| *role == Role::User)
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(mine, ["tell me", "and be brief"]);
}

#[test]
fn stepwell_alone_talks_on_a_terminal_and_helps_in_a_pipe() {
    let desk = Desk::new();
    let mut seat = Seat::sit(desk.command(&[]));
    seat.until("Say what to do.");
    assert_eq!(seat.leave().1, Some(0));
    let piped = desk.quietly(&[]);
    assert_eq!(piped.code, Some(2));
    assert!(format!("{}{}", piped.stdout, piped.stderr).contains("Usage: stepwell"));
    let piped = desk.quietly(&["chat"]);
    assert_eq!(piped.code, Some(2));
    assert!(piped.stderr.contains("needs a terminal"), "{}", piped.stderr);
}

#[test]
fn a_screen_reader_gets_lines_and_no_escapes() {
    let mut desk = running::desk(DAY);
    let ran = desk.feed(
        &["chat", "--plain", "--model", "script:script.yaml", "--mode", "yolo"],
        "write the notes\n",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains('\u{1b}'));
    for line in ["you: write the notes", "tool write_file", "agent: It is written."] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert_eq!(desk.read("notes.md"), "first");
}
