//! A terminal at which one program runs after the other, as a person uses it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// What a program that asks whether a tool may run ends its line with.
const ASKED: &str = "Answer: ";

/// A program that writes nothing for so long does not go on, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long one look at a program waits.
const LOOK: Duration = Duration::from_millis(50);

/// A terminal.
pub(crate) struct Terminal {
    person: File,
    /// The programs' side. It stays open, so that the terminal outlives each of them.
    programs: File,
    pieces: Receiver<Vec<u8>>,
    /// What the program that runs now has written.
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

    /// Starts a program at it.
    pub(crate) fn run(&mut self, mut command: Command) -> Child {
        // What the one before it wrote is not its own.
        self.read_all();
        self.seen.clear();
        let side = || Stdio::from(self.programs.try_clone().unwrap());
        command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap()
    }

    /// Watches until the program has asked so many questions.
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

    /// Waits until a program ends that has asked so often, and asks no more: it would wait forever.
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

    /// Reads whatever programs that have ended wrote: it comes before this.
    fn read_all(&mut self) {
        const END: &str = "-- that was all --";
        self.seen = self.seen.replace(END, "");
        writeln!(self.programs, "{END}").unwrap();
        self.until(|seen| seen.contains(END));
    }
}
