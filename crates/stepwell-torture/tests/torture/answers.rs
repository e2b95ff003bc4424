//! Questions and answers, with kills in between: the command in question runs once or not at all,
//! as the first answer says; no question is asked twice; and a later answer gets the first one
//! reported.
//!
//! The program itself gives the answers, and resumes a killed run. It is taken from the build
//! folder of these tests: if only these are run, build it with `cargo build -p stepwell-cli`.

use rustix::process::Signal;
use stepwell::{Event, SessionId, Status};
use stepwell_cluster::{Disk, Server};
use stepwell_torture::{Asker, Person, Said};

use crate::child::was_killed;
use crate::program::Program;
use crate::talker::TestEnv;
use crate::terminal::Terminal;

/// When the runner is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kill {
    /// The question is recorded, and not shown yet.
    BeforeShown,
    /// It waits for an answer.
    WhileItWaits,
    /// The answer is recorded, and the run has not read it.
    BeforeTaken,
}

const KILLS: [Kill; 3] = [Kill::BeforeShown, Kill::WhileItWaits, Kill::BeforeTaken];

/// Where the answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// Another process: with a server, on another machine.
    Elsewhere,
    /// Two such processes at once: one allows it, the other denies it.
    TwoAtOnce,
}

/// When the answer comes, if it was not there before the kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// No process runs the session.
    NobodyRuns,
    /// The next runner has asked again.
    AskedAgain,
}

/// An answer, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    /// As an argument.
    word: &'static str,
    /// At a prompt.
    key: &'static str,
    allows: bool,
}

const WORDS: [Word; 4] = [
    Word { word: "yes", key: "y", allows: true },
    Word { word: "no", key: "n", allows: false },
    Word { word: "always", key: "a", allows: true },
    Word { word: "never", key: "v", allows: false },
];

impl Word {
    /// The opposite answer.
    fn opposite(self) -> Self {
        WORDS.into_iter().find(|it| it.allows != self.allows).unwrap()
    }
}

/// One cell of the matrix.
struct Cell {
    env: TestEnv,
    asker: Asker,
    kill: Kill,
    /// The answer; with two at once, one of them.
    word: Word,
}

/// Plays every kill and every answer for one kind of question.
fn play(asker: Asker, store: impl Fn(usize) -> Option<String>) {
    let mut number = 0;
    for kill in KILLS {
        for from in [From::Elsewhere, From::TwoAtOnce] {
            for when in [When::NobodyRuns, When::AskedAgain] {
                if kill == Kill::BeforeTaken && when == When::AskedAgain {
                    continue;
                }
                // Each kill has every answer.
                let word = WORDS[number % WORDS.len()];
                number += 1;
                println!("{asker:?} {kill:?} {from:?} {when:?} {}", word.word);
                let cell = Cell { env: TestEnv::new(asker, store(number)), asker, kill, word };
                let (session, allowed) = cell.play_elsewhere(from, when);
                cell.check(&session, allowed);
            }
        }
    }
}

impl Cell {
    /// Kills the runner, and lets another process answer.
    fn play_elsewhere(&self, from: From, when: When) -> (SessionId, bool) {
        let person = match self.kill {
            Kill::BeforeShown => Person::DiesUnshown,
            Kill::WhileItWaits => Person::DiesShown,
            Kill::BeforeTaken => Person::Watches,
        };
        let (mut runner, session) = self.env.start(self.asker, person);
        let mut taken = None;
        if self.kill == Kill::BeforeTaken {
            assert!(matches!(runner.next(), Some(Said::Shown { .. })));
            // It is suspended, but alive.
            runner.signal(Signal::STOP);
            taken = Some(self.answer(from, || {
                runner.signal(Signal::KILL);
                assert_eq!(runner.last_words(), []);
            }));
        } else {
            let shown = usize::from(self.kill == Kill::WhileItWaits);
            assert_eq!(runner.last_words().len(), shown);
            if when == When::NobodyRuns {
                taken = Some(self.answer(from, || {}));
            }
        }
        let mut next = Program::start(self.env.stepwell(&["resume", session.as_str(), "--wait"]));
        let allowed = taken.unwrap_or_else(|| {
            next.until_it_waits();
            self.answer(from, || {})
        });
        // After an answer no question is asked.
        assert_eq!(next.end().waited, usize::from(taken.is_none()));
        (session, allowed)
    }

    /// Kills the runner, and answers at its own terminal: before the kill, or after the session is
    /// resumed there.
    fn play_at_terminal(&self) -> (SessionId, bool) {
        let mut terminal = Terminal::open();
        let session = match self.kill {
            Kill::BeforeShown => {
                let (runner, session) = self.env.start(self.asker, Person::DiesUnshown);
                assert_eq!(runner.last_words(), []);
                session
            }
            Kill::WhileItWaits => {
                let mut runner = terminal.run(self.env.begin(self.asker));
                self.reach_question(&mut terminal);
                runner.kill().unwrap();
                assert!(was_killed(runner.wait().unwrap()));
                self.env.begun()
            }
            Kill::BeforeTaken => {
                let runner = self.env.starting(self.asker, Person::DiesAnswering);
                let mut runner = terminal.run(runner);
                self.reach_question(&mut terminal);
                terminal.type_line(self.word.key);
                assert!(was_killed(runner.wait().unwrap()));
                self.env.begun()
            }
        };
        let next = terminal.run(self.env.stepwell(&["resume", session.as_str()]));
        let asks = self.kill != Kill::BeforeTaken;
        if asks {
            terminal.until_asked(1);
            terminal.type_line(self.word.key);
        }
        terminal.until_it_ends(next, usize::from(asks));
        (session, self.word.allows)
    }

    /// Waits until the command is asked about. The start of a subagent needs an approval first.
    fn reach_question(&self, terminal: &mut Terminal) {
        terminal.until_asked(1);
        if self.asker == Asker::Subagent {
            terminal.type_line("y");
            terminal.until_asked(2);
        }
    }

    /// Answers from elsewhere; `on_record` runs as soon as an answer is recorded. Returns whether
    /// the answer that counts allows the command.
    fn answer(&self, from: From, on_record: impl FnOnce()) -> bool {
        let (asked_in, gate) = self.env.gate();
        let words = match from {
            From::TwoAtOnce => vec![self.word, self.word.opposite()],
            From::Elsewhere => vec![self.word],
        };
        let answering = |word: &Word| Program::start(self.env.answering(word.word));
        let programs: Vec<Program> = words.iter().map(answering).collect();
        self.env.wait_for_answer(&asked_in, &gate);
        on_record();
        let ends: Vec<_> = programs.into_iter().map(Program::end).collect();
        let mut first = None;
        for (word, end) in words.iter().zip(&ends) {
            match end.code {
                Some(0) => assert_eq!(first.replace(word.allows), None, "{ends:?}"),
                _ => end.is_too_late(self.env.place()),
            }
        }
        first.unwrap_or_else(|| panic!("one answer counts: {ends:?}"))
    }

    /// Compares the effects with the first answer.
    fn check(&self, session: &SessionId, allowed: bool) {
        // A run whose calls were all denied did not do its work. A parent's subagent did answer.
        let status = match allowed || self.asker == Asker::Subagent {
            true => Status::Success,
            false => Status::Partial,
        };
        assert_eq!(self.env.well().info(session).unwrap().head.status, status);
        assert_eq!(self.env.ran(), usize::from(allowed));
        let (asked_in, gate) = self.env.gate();
        let answers = self.env.events(|event| match event.event {
            Event::GateAnswered(it) if it.id == gate => Some(it.answer.allows()),
            _ => None,
        });
        let its: Vec<bool> =
            answers.into_iter().filter(|it| it.0 == asked_in).map(|it| it.1).collect();
        assert_eq!(its, [allowed]);
        // A later answer gets the first one reported, too.
        let late = Program::start(self.env.answering(self.word.opposite().word)).end();
        late.is_too_late(self.env.place());
    }
}

#[test]
fn an_agents_question_is_answered_once_whatever_is_killed() {
    play(Asker::Agent, |_| None);
}

#[test]
fn a_flows_question_is_answered_once_whatever_is_killed() {
    play(Asker::Flow, |_| None);
}

#[test]
fn a_subagents_question_is_answered_once_whatever_is_killed() {
    play(Asker::Subagent, |_| None);
}

#[test]
fn a_question_in_a_shared_store_is_answered_once_from_another_machine() {
    let server = Server::start(Disk::Lazy);
    for asker in Asker::ALL {
        play(asker, |number| {
            let namespace = format!("{asker:?}-{number}").to_lowercase();
            Some(format!("{}?namespace={namespace}", server.url()))
        });
    }
}

#[test]
fn a_question_is_answered_once_at_the_terminal_of_a_runner_that_is_killed() {
    for (row, asker) in Asker::ALL.into_iter().enumerate() {
        for (column, kill) in KILLS.into_iter().enumerate() {
            let word = WORDS[(row + column) % WORDS.len()];
            println!("{asker:?} {kill:?} {}", word.word);
            let cell = Cell { env: TestEnv::new(asker, None), asker, kill, word };
            let (session, allowed) = cell.play_at_terminal();
            cell.check(&session, allowed);
        }
    }
}
