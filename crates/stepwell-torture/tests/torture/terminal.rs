//! A terminal at which programs run one after another, as a person uses it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The end of a prompt for an approval.
const ASKED: &str = "Answer: ";

/// A program without output for this long is stuck, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The interval of checks on a program.
const LOOK: Duration = Duration::from_millis(50);

/// A terminal.
pub(crate) struct Terminal {
    person: File,
    /// The programs' side. It stays open, so that the terminal outlives each of them.
    programs: File,
    pieces: Receiver<Vec<u8>>,
    /// The output of the current program.
    seen: String,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let programs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let person = File::from(person);
        let (mut reader, (sender, pieces)) = (person.try_clone().unwrap(), channel());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut piece) {
                if sender.send(piece[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { person, programs, pieces, seen: String::new() }
    }

    /// Starts a program at the terminal.
    pub(crate) fn run(&mut self, mut command: Command) -> Child {
        // Skip the output of the program before.
        self.read_all();
        self.seen.clear();
        let side = || Stdio::from(self.programs.try_clone().unwrap());
        command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap()
    }

    /// Waits until the program has asked this many questions.
    pub(crate) fn until_asked(&mut self, times: usize) {
        self.until(|seen| seen.matches(ASKED).count() >= times);
    }

    fn until(&mut self, is_there: impl Fn(&str) -> bool) {
        while !is_there(&self.seen) {
            let piece = self.pieces.recv_timeout(PATIENCE);
            let piece = piece.unwrap_or_else(|_| panic!("nothing came after: {}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.person, "{line}").unwrap();
    }

    /// Waits until a program ends. A program that asks another question would wait for ever.
    pub(crate) fn until_it_ends(&mut self, mut program: Child, asked: usize) {
        while program.try_wait().unwrap().is_none() {
            if let Ok(piece) = self.pieces.recv_timeout(LOOK) {
                self.seen.push_str(&String::from_utf8_lossy(&piece));
            }
            if self.seen.matches(ASKED).count() > asked {
                program.kill().unwrap();
            }
        }
        self.read_all();
        assert_eq!(self.seen.matches(ASKED).count(), asked, "{}", self.seen);
    }

    /// Reads the output of programs that have ended, which comes first.
    fn read_all(&mut self) {
        const END: &str = "-- that was all --";
        self.seen = self.seen.replace(END, "");
        writeln!(self.programs, "{END}").unwrap();
        self.until(|seen| seen.contains(END));
    }
}
