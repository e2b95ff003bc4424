//! A panic on a real terminal: it is left as it was found.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use stepwell::model::Mode;
use stepwell_tui::{Backstage, Clean, Effect, InputChannel, Look, State, Theme, inputs, run};

const SIZE: (u16, u16) = (60, 20);

/// Has this program show the chat and panic, when the test starts it again.
const PANICS: &str = "STEPWELL_TEST_PANICS";

/// Carries nothing out, and panics when it is asked for something while a page covers the screen.
struct Panicking {
    asked: usize,
}

impl Backstage for Panicking {
    fn carry_out(&mut self, effect: Effect) {
        self.asked += 1;
        assert!(self.asked < 2, "a bug was met at {effect:?}");
    }

    fn editor(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&mut self) {}
}

fn show_and_panic() {
    let look = Look {
        columns: SIZE.0,
        rows: SIZE.1,
        theme: Theme::PLAIN,
        model: Clean::new("anthropic/sonnet"),
        mode: Mode::ConfirmSensitive,
        folder: Clean::new("~/project"),
    };
    let InputChannel { to: _inputs, from: wanted } = inputs();
    drop(run(State::new(look), &mut Panicking { asked: 0 }, wanted, Vec::new()));
}

/// A program on a terminal, and what it shows.
struct Watched {
    child: Child,
    terminal: File,
    /// The program's side, which outlives it here.
    side: File,
    shown: vt100::Parser,
}

impl Watched {
    fn new(mut command: Command) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let (columns, rows) = SIZE;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let side = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        command.stdin(Stdio::from(side())).stdout(Stdio::from(side())).stderr(Stdio::from(side()));
        let child = command.env("TERM", "xterm-256color").spawn().unwrap();
        let shown = vt100::Parser::new(rows, columns, 100);
        Self { child, terminal: File::from(terminal), side: side(), shown }
    }

    /// Reads until the screen holds a text. A program that says where the cursor is to be asked is
    /// answered.
    fn until(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.screen().contains(text) {
            let n = self.terminal.read(&mut buffer).unwrap();
            assert!(n > 0, "{text:?} never came:\n{}", self.screen());
            self.shown.process(&buffer[..n]);
            if buffer[..n].windows(4).any(|bytes| bytes == b"\x1b[6n") {
                let (row, column) = self.shown.screen().cursor_position();
                let answer = format!("\u{1b}[{};{}R", row + 1, column + 1);
                self.terminal.write_all(answer.as_bytes()).unwrap();
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    fn screen(&self) -> String {
        self.shown.screen().contents()
    }

    fn modes(&self) -> Termios {
        tcgetattr(self.side.as_fd()).unwrap()
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test tells the program that it starts what to do"
)]
fn a_panic_leaves_the_terminal_as_it_was_and_its_message_on_the_screen() {
    if std::env::var_os(PANICS).is_some() {
        show_and_panic();
        return;
    }
    let name = "panics::a_panic_leaves_the_terminal_as_it_was_and_its_message_on_the_screen";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(PANICS, "1");
    let mut watched = Watched::new(command);
    watched.until("what is to be done?");
    let while_shown = watched.modes().local_modes;
    assert!(!while_shown.intersects(LocalModes::ICANON | LocalModes::ECHO), "{while_shown:?}");
    assert!(watched.shown.screen().bracketed_paste());
    // A page covers the screen, and asks for something again.
    watched.press("\u{12}");
    watched.until("Sessions");
    assert!(watched.shown.screen().alternate_screen());
    watched.press("x");
    watched.until("a bug was met at");
    // The rest of the words come behind it; then the program ends.
    watched.until("test result: FAILED");
    assert_eq!(watched.child.wait().unwrap().code(), Some(101));
    let screen = watched.shown.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    let after = watched.modes().local_modes;
    assert!(after.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "{after:?}");
}
