//! A person at a terminal: a real one, as far as the program can tell.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const ROWS: u16 = 24;
const COLUMNS: u16 = 80;
const WHERE_IS_THE_CURSOR: &[u8] = b"\x1b[6n";
/// A program that writes nothing for so long does not go on, on however slow a machine.
const PATIENCE: Timespec = Timespec { tv_sec: 240, tv_nsec: 0 };
/// What did not come within so many pieces of output never comes: a clock that is drawn makes a few
/// in a second.
const PIECES: usize = 5_000;

/// A person at a terminal.
pub(crate) struct Seat {
    child: Child,
    terminal: File,
    shown: vt100::Parser,
    /// All that was written, for what has left the screen.
    written: Vec<u8>,
    /// How many pieces were read since something was waited for.
    pieces: usize,
}

impl Seat {
    pub(crate) fn sit(command: Command) -> Self {
        Self::sit_before(command, (COLUMNS, ROWS))
    }

    /// Sits down before a terminal of a size.
    pub(crate) fn sit_before(mut command: Command, (columns, rows): (u16, u16)) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let side = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        command.stdin(Stdio::from(side())).stdout(Stdio::from(side())).stderr(Stdio::from(side()));
        let child = command.env("TERM", "xterm-256color").spawn().unwrap();
        drop(command);
        let shown = vt100::Parser::new(rows, columns, 10_000);
        let (terminal, pieces) = (File::from(terminal), 0);
        Self { child, terminal, shown, written: Vec::new(), pieces }
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&mut self, (columns, rows): (u16, u16)) -> &mut Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.terminal, size).unwrap();
        self.shown.screen_mut().set_size(rows, columns);
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::WINCH).unwrap();
        self
    }

    /// Reads what the program writes, and answers where the cursor is if it asks. False, if it has
    /// ended.
    fn look(&mut self) -> bool {
        let mut waiting = [PollFd::new(&self.terminal, PollFlags::IN)];
        let ready = poll(&mut waiting, Some(&PATIENCE)).unwrap();
        self.pieces += 1;
        assert!(ready > 0 && self.pieces < PIECES, "nothing new came:\n{}", self.screen());
        let mut buffer = [0; 4096];
        let Ok(n @ 1..) = self.terminal.read(&mut buffer) else { return false };
        self.shown.process(&buffer[..n]);
        self.written.extend_from_slice(&buffer[..n]);
        // A question may come in two pieces.
        let unread = self.written.len() - n;
        let unread = &self.written[unread.saturating_sub(WHERE_IS_THE_CURSOR.len() - 1)..];
        if unread.windows(WHERE_IS_THE_CURSOR.len()).any(|bytes| bytes == WHERE_IS_THE_CURSOR) {
            let (row, column) = self.shown.screen().cursor_position();
            let answer = format!("\u{1b}[{};{}R", row + 1, column + 1);
            self.terminal.write_all(answer.as_bytes()).unwrap();
        }
        true
    }

    pub(crate) fn screen(&self) -> String {
        self.shown.screen().contents()
    }

    /// All that the program wrote, as it wrote it.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// Watches until something is on the screen.
    pub(crate) fn until(&mut self, text: &str) -> &mut Self {
        self.pieces = 0;
        while !self.screen().contains(text) {
            assert!(self.look(), "{text:?} never came:\n{}", self.screen());
        }
        self
    }

    /// Watches until something is no longer on the screen.
    pub(crate) fn until_gone(&mut self, text: &str) -> &mut Self {
        self.pieces = 0;
        while self.screen().contains(text) {
            assert!(self.look(), "{text:?} never went:\n{}", self.screen());
        }
        self
    }

    pub(crate) fn press(&mut self, keys: &str) -> &mut Self {
        self.terminal.write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Chooses an answer with the arrow keys, and gives it once the question was there long enough to
    /// be read.
    pub(crate) fn answer(&mut self, label: &str) -> &mut Self {
        let how = "arrows and Enter";
        self.until(how);
        for _ in 0..8 {
            self.press("\u{1b}[A");
        }
        self.until("[Allow once]");
        let chosen = format!("[{label}");
        while !self.screen().contains(&chosen) {
            let before = self.screen();
            self.press("\u{1b}[B");
            while self.screen() == before {
                assert!(self.look(), "{label} is not offered:\n{}", self.screen());
            }
        }
        // An answer that comes too soon is refused, and may be given again.
        loop {
            self.press("\r");
            self.pieces = 0;
            while self.screen().contains(how) && !self.screen().contains("just came up") {
                assert!(self.look(), "the question stayed:\n{}", self.screen());
            }
            if !self.screen().contains(how) {
                return self;
            }
            self.until_gone("just came up");
        }
    }

    /// Presses Ctrl+C, where the terminal makes a signal of it.
    pub(crate) fn interrupt(&mut self) -> &mut Self {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self
    }

    /// Leaves, and waits until the program has ended.
    pub(crate) fn leave(mut self) -> (String, Option<i32>) {
        self.press("\u{4}");
        self.end()
    }

    /// Waits until the program has ended.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        self.pieces = 0;
        while self.look() {}
        (self.screen(), self.child.wait().unwrap().code())
    }

    /// Keeps the program from doing anything more.
    pub(crate) fn freeze(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    /// The power goes.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
