//! Questions and answers, whatever is killed in between: the command that is asked about runs once
//! or not at all, as the first answer says; it is asked once; and who is slower is told.

use rustix::process::Signal;
use stepwell::{Event, SessionId, Status};
use stepwell_cluster::{Disk, Server};
use stepwell_torture::{Asker, Person, Said, Task};

use crate::talker::Desk;

/// When the runner is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kill {
    /// The question is on record, and nobody was shown it.
    BeforeShown,
    /// It waits for an answer.
    WhileItWaits,
    /// The answer is on record, and the run has not taken it.
    BeforeTaken,
}

const KILLS: [Kill; 3] = [Kill::BeforeShown, Kill::WhileItWaits, Kill::BeforeTaken];

/// Where the answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// Whoever holds the run.
    Handle,
    /// Another process. On a server, that is another connection.
    Process,
    /// Two other processes at once: one allows it, the other does not.
    TwoAtOnce,
}

/// One cell of the matrix.
struct Cell {
    desk: Desk,
    asker: Asker,
    kill: Kill,
    from: From,
    /// Is it allowed? Of two at once, one does.
    yes: bool,
}

/// Plays every way to kill and to answer for one who asks.
fn play(asker: Asker, froms: &[From], store: impl Fn(usize) -> Option<String>) {
    let mut number = 0;
    for (row, kill) in KILLS.into_iter().enumerate() {
        for (column, from) in froms.iter().enumerate() {
            number += 1;
            let desk = Desk::new(asker, store(number));
            // Every row and every column has both answers.
            let yes = (row + column) % 2 == 1;
            let cell = Cell { desk, asker, kill, from: *from, yes };
            println!("{asker:?} {kill:?} {from:?} {yes}");
            cell.play();
        }
    }
}

impl Cell {
    fn play(&self) {
        let (session, taken) = self.play_first_run();
        let (words, allowed) = match taken {
            // Nothing is asked any more.
            Some(allowed) => (self.desk.resume(&session, Person::Watches).rest(), allowed),
            None => self.answer_in_second_run(&session),
        };
        let shown = words.iter().filter(|it| matches!(it, Said::Shown { .. })).count();
        assert_eq!(shown, usize::from(taken.is_none()), "{words:?}");
        // A run that was denied everything did not do its work. A parent's subagent did answer.
        let status = match allowed || self.asker == Asker::Subagent {
            true => Status::Success,
            false => Status::Partial,
        };
        assert_eq!(words.last(), Some(&Said::Ended(status)), "{words:?}");
        assert_eq!(self.desk.ran(), usize::from(allowed));
        let (asked_in, gate) = self.desk.gate();
        let answers = self.desk.events(|event| match event.event {
            Event::GateAnswered(it) if it.id == gate => Some(it.answer.allows()),
            _ => None,
        });
        let its: Vec<bool> =
            answers.into_iter().filter(|it| it.0 == asked_in).map(|it| it.1).collect();
        assert_eq!(its, [allowed]);
    }

    /// Runs it until it is killed. The answer, if it came before that or before the next run.
    fn play_first_run(&self) -> (SessionId, Option<bool>) {
        let person = match (self.kill, self.from) {
            (Kill::BeforeShown, _) => Person::DiesUnshown,
            (Kill::WhileItWaits, _) => Person::DiesShown,
            (Kill::BeforeTaken, From::Handle) => Person::DiesAnswering { yes: self.yes },
            (Kill::BeforeTaken, _) => Person::Watches,
        };
        let (mut runner, session) = self.desk.start(self.asker, person);
        let shown = usize::from(self.kill != Kill::BeforeShown);
        if person == Person::Watches {
            assert!(matches!(runner.next(), Some(Said::Shown { .. })));
            // It does nothing more, but lives.
            runner.signal(Signal::STOP);
            let allowed = self.answer(&session, || {
                runner.signal(Signal::KILL);
                assert_eq!(runner.last_words(), []);
            });
            return (session, Some(allowed));
        }
        assert_eq!(runner.last_words().len(), shown);
        let allowed = match (self.kill, self.from) {
            (Kill::BeforeTaken, _) => Some(self.yes),
            // Answered while nobody runs it.
            (Kill::WhileItWaits, From::Process | From::TwoAtOnce) => {
                Some(self.answer(&session, || {}))
            }
            _ => None,
        };
        (session, allowed)
    }

    /// Goes on with it, and answers what it shows.
    fn answer_in_second_run(&self, session: &SessionId) -> (Vec<Said>, bool) {
        if self.from == From::Handle {
            let person = Person::Answers { yes: self.yes };
            return (self.desk.resume(session, person).rest(), self.yes);
        }
        let mut runner = self.desk.resume(session, Person::Watches);
        let shown = runner.next().unwrap();
        let allowed = self.answer(session, || {});
        (std::iter::once(shown).chain(runner.rest()).collect(), allowed)
    }

    /// Answers from elsewhere; something happens as soon as an answer is on record. Which one
    /// counts?
    fn answer(&self, session: &SessionId, on_record: impl FnOnce()) -> bool {
        let (asked_in, gate) = self.desk.gate();
        let answers: &[bool] = match (self.from, self.yes) {
            (From::TwoAtOnce, _) => &[true, false],
            (_, true) => &[true],
            (_, false) => &[false],
        };
        let answering = |yes: &bool| {
            let (session, gate) = (session.clone(), gate.clone());
            let mut talker = self.desk.talker(Task::Answer { session, gate, yes: *yes });
            assert_eq!(talker.next(), Some(Said::Ready));
            talker
        };
        let mut talkers: Vec<_> = answers.iter().map(answering).collect();
        talkers.iter_mut().for_each(crate::talker::Talker::go);
        self.desk.wait_for_answer(&asked_in, &gate);
        on_record();
        let said: Vec<Said> = talkers.into_iter().flat_map(crate::talker::Talker::rest).collect();
        let taken: Vec<usize> =
            (0..said.len()).filter(|number| said[*number] == Said::Taken).collect();
        assert_eq!(taken.len(), 1, "one answer counts: {said:?}");
        for loser in said.iter().filter(|it| **it != Said::Taken) {
            let Said::Beaten { who, at } = loser else { panic!("{loser:?}") };
            assert!(who.contains('@') && at.starts_with("20"), "{loser:?}");
        }
        answers[taken[0]]
    }
}

const HERE: [From; 3] = [From::Handle, From::Process, From::TwoAtOnce];

#[test]
fn an_agents_question_is_answered_once_whatever_is_killed() {
    play(Asker::Agent, &HERE, |_| None);
}

#[test]
fn a_flows_question_is_answered_once_whatever_is_killed() {
    play(Asker::Flow, &HERE, |_| None);
}

#[test]
fn a_subagents_question_is_answered_once_whatever_is_killed() {
    play(Asker::Subagent, &HERE, |_| None);
}

#[test]
fn a_question_in_a_shared_store_is_answered_once_from_another_connection() {
    let server = Server::start(Disk::Lazy);
    for asker in Asker::ALL {
        let elsewhere = [From::Process, From::TwoAtOnce];
        play(asker, &elsewhere, |number| {
            let namespace = format!("{asker:?}-{number}").to_lowercase();
            Some(format!("{}?namespace={namespace}", server.url()))
        });
    }
}
