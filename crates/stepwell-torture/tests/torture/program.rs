//! The `stepwell` program in a pipe.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStderr, Command, Stdio};

/// The machine on which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// The machine that runs the session.
    Here,
    /// Another machine, which only has the store's address.
    OtherMachine,
}

/// The name of the other machine.
pub(crate) const OTHER_MACHINE: &str = "other-machine";

/// A running program.
pub(crate) struct Program {
    process: Child,
    stderr: Lines<BufReader<ChildStderr>>,
    said: Vec<String>,
}

/// The end of a program.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    /// How often it reported that it waits for an answer.
    pub(crate) waited: usize,
    /// Its stderr.
    said: String,
}

impl Program {
    pub(crate) fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap()).lines();
        Self { process, stderr, said: Vec::new() }
    }

    fn next_line(&mut self) -> Option<&String> {
        let line = self.stderr.next()?.unwrap();
        self.said.push(line);
        self.said.last()
    }

    /// Reads until it reports that it waits for an answer.
    pub(crate) fn until_it_waits(&mut self) {
        while !self.said.last().is_some_and(|line| waits(line)) {
            assert!(self.next_line().is_some(), "it did not ask: {:?}", self.said);
        }
    }

    /// Reads until it ends. A program that asks another question would wait for ever.
    pub(crate) fn end(mut self) -> End {
        while let Some(line) = self.next_line() {
            if waits(line) {
                self.process.kill().unwrap();
            }
        }
        let code = self.process.wait().unwrap().code();
        let waited = self.said.iter().filter(|line| waits(line)).count();
        End { code, waited, said: self.said.join("\n") }
    }
}

impl End {
    /// Checks that it reports the earlier answer, with author and time.
    pub(crate) fn is_too_late(&self, first: Where) {
        assert_eq!(self.code, Some(6), "{self:?}");
        let who = match first {
            Where::Here => "@",
            Where::OtherMachine => OTHER_MACHINE,
        };
        let told = self.said.split_once("was answered by ").map(|it| it.1);
        let (by, at) = told.and_then(|told| told.split_once(" at 20")).unwrap_or_default();
        assert!(by.contains(who) && at.contains(':'), "{self:?}");
    }
}

fn waits(line: &str) -> bool {
    line.contains(" waits: ")
}
