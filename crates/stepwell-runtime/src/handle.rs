//! A run, as whoever started it holds it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Mutex, MutexGuard};
use stepwell::model::{Answer, GateAnswered, Money, Permission, Said, Who};
use stepwell::store::Lease;
use stepwell::{Lane, SessionId, Stepwell};
use stepwell_agent::permission::Rule;
use stepwell_agent::run::{OpenGate, RunEvent, Wisher};
use stepwell_flow::spec::Spec;
use tokio::sync::mpsc;

use crate::error::{Error, Result};
use crate::gate_answer::{Answered, Fitting, NewAnswer, record};
use crate::report::RunReport;
use crate::request::Interrupt;

/// A run, as whoever started it holds it. Dropping it interrupts the run.
#[derive(Debug)]
pub struct RunHandle {
    steering: Steering,
    listeners: Arc<Listeners>,
    thread: Option<JoinHandle<Result<RunReport>>>,
}

/// What a run is talked to with.
#[derive(Clone, Debug)]
pub(crate) struct Steering {
    pub(crate) well: Stepwell,
    pub(crate) lease: Lease,
    pub(crate) wisher: Wisher,
    pub(crate) interrupt: Interrupt,
    /// The spec, if it is a flow: it says which answers fit.
    pub(crate) spec: Option<Arc<Spec>>,
    /// Who sits before it.
    pub(crate) who: Who,
    /// Did a run's command start this process? Then no person sits before it.
    pub(crate) in_run: bool,
    /// What the session may have cost in the end.
    pub(crate) budget: Option<Money>,
}

/// What whoever holds a run knows about it.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// The spec, if it is a flow.
    pub(crate) spec: Option<Arc<Spec>>,
    /// What the session may have cost in the end.
    pub(crate) budget: Option<Money>,
}

impl Steering {
    /// Answers a question of the run; a rule has the same choice made for later calls that it fits.
    fn answer(
        &self,
        open: &OpenGate,
        answer: Answer,
        rule: Option<&Rule>,
        who: Who,
    ) -> Result<Answered> {
        if self.in_run {
            return Err(Error::OnlyPeople { what: "answering" });
        }
        let spec = self.spec.as_deref();
        let fitting = Fitting { session: &open.session, gate: &open.gate, spec };
        let answer = fitting.answer(answer, self.well.now())?;
        let redactor = self.well.redactor().with_own_count();
        if rule.is_some_and(|rule| redactor.holds_secret(rule.to_string().as_bytes()).is_some()) {
            let (session, gate) = (open.session.clone(), open.gate.id.clone());
            let why = "the pattern holds a secret, which is not stored; put * in its place, or \
                       answer only this call";
            return Err(Error::BadAnswer { session, gate, why: why.to_owned(), is_late: false });
        }
        let remembered = rule.map(|rule| Permission {
            who: Some(who.clone()),
            ..Permission::new(rule.to_string(), answer.allows())
        });
        let answer = GateAnswered::new(open.gate.id.as_str(), answer, who).having_seen(open.seq);
        let lease = open.here.as_ref().map(|here| &here.lease);
        let seq = record(&self.well, lease, &open.session, NewAnswer { answer, remembered })?;
        let (session, gate) = (open.session.clone(), open.gate.id.clone());
        let resume = self.lease.session.clone();
        let (goes_on, asked_again, stopped) = (true, false, false);
        Ok(Answered { session, gate, seq, goes_on, asked_again, stopped, resume })
    }
}

/// What may be told to a run.
#[derive(Clone, Debug)]
pub enum RunCommand {
    /// Something for the model, taken in before its next call.
    Say {
        /// What is said.
        text: String,
        /// Does the current call of the model end for it?
        now: bool,
    },
    /// The answer to a question.
    Answer {
        /// The question's name.
        gate: String,
        /// The answer.
        answer: Answer,
        /// Who gives it.
        who: Who,
    },
    /// Where the run waits for an answer, it pauses instead.
    Pause,
    /// Stop cleanly.
    Interrupt,
}

impl RunHandle {
    pub(crate) fn new(
        steering: Steering,
        listeners: Arc<Listeners>,
        thread: JoinHandle<Result<RunReport>>,
    ) -> Self {
        Self { steering, listeners, thread: Some(thread) }
    }

    /// The session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.steering.lease.session
    }

    /// Does a flow run, and not a lone agent?
    #[must_use]
    pub fn is_flow(&self) -> bool {
        self.steering.spec.is_some()
    }

    /// Who sits before it, as answers name them.
    #[must_use]
    pub fn who(&self) -> &Who {
        &self.steering.who
    }

    /// What the session may have cost in the end, by the nearest of the limits that the run began
    /// with.
    #[must_use]
    pub fn budget(&self) -> Option<Money> {
        self.steering.budget
    }

    /// What happens in the run. The first stream begins with its beginning; later ones, with now.
    #[must_use]
    pub fn events(&self) -> EventStream {
        self.listeners.listen()
    }

    /// The questions that wait for an answer, in the order in which they were asked.
    #[must_use]
    pub fn open_gates(&self) -> Vec<OpenGate> {
        self.listeners.open_gates()
    }

    /// Tells the run something.
    ///
    /// # Errors
    /// If an answer does not fit, or somebody was quicker; if it cannot be saved.
    pub fn send(&self, command: RunCommand) -> Result<()> {
        match command {
            RunCommand::Say { text, now } => self.say(text, now),
            RunCommand::Answer { gate, answer, who } => self.answer(&gate, answer, who).map(drop),
            RunCommand::Pause => {
                self.pause();
                Ok(())
            }
            RunCommand::Interrupt => {
                self.interrupt();
                Ok(())
            }
        }
    }

    /// Says something to the model: it is taken in before its next call, or, with `now`, in place of
    /// the current one. A run that is over keeps it for the next one.
    ///
    /// # Errors
    /// If it cannot be saved.
    pub fn say(&self, text: impl Into<String>, now: bool) -> Result<()> {
        let (text, who) = (text.into(), self.steering.who.clone());
        self.steering.well.say(self.id(), Said { text, lane: Lane::main(), who, now })?;
        if now {
            self.steering.wisher.hurry();
        }
        Ok(())
    }

    /// Answers a question, be it a subagent's. The first answer counts.
    ///
    /// # Errors
    /// If no such question waits, the answer does not fit it, or somebody was quicker.
    pub fn answer(&self, gate: &str, answer: Answer, who: impl Into<Who>) -> Result<Answered> {
        self.answer_remembering(gate, answer, None, who)
    }

    /// Answers a question about a call, and has the same choice made for later calls that a rule
    /// fits.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn answer_remembering(
        &self,
        gate: &str,
        answer: Answer,
        rule: Option<&Rule>,
        who: impl Into<Who>,
    ) -> Result<Answered> {
        let open = self.listeners.open_gate(gate).ok_or_else(|| {
            let open = self.open_gates().into_iter().map(|open| open.gate).collect();
            Error::NoGate { session: self.id().clone(), name: gate.to_owned(), open }
        })?;
        self.steering.answer(&open, answer, rule, who.into())
    }

    /// Where the run waits for an answer, it pauses instead, now and from here on.
    pub fn pause(&self) {
        self.steering.wisher.pause();
    }

    /// Sets what the whole session may cost, also to more than before: the run keeps to it from its
    /// next call of a model on. Subagents that work keep to what they were given.
    pub fn set_budget(&self, most: Money) {
        self.steering.wisher.set_budget(most);
    }

    /// Stops the run cleanly: it can be resumed.
    pub fn interrupt(&self) {
        self.steering.interrupt.ask();
    }

    /// Is it over?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the run is over.
    ///
    /// # Errors
    /// If what it did could not be saved; the error holds how far it was.
    pub fn join(mut self) -> Result<RunReport> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(report)) => report,
            Some(Err(_)) | None => Err(Error::Panicked),
        }
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.interrupt();
        }
    }
}

/// What happens in a run, as it happens. It ends with the run.
#[derive(Debug)]
pub struct EventStream(mpsc::UnboundedReceiver<RunEvent>);

impl EventStream {
    /// The next event, if there is one now. [`Ended`](RunEvent::Ended) is the last.
    pub fn try_next(&mut self) -> Option<RunEvent> {
        self.0.try_recv().ok()
    }

    /// Is the run over, and was every event taken?
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed() && self.0.is_empty()
    }

    /// The next event, for those who wait with others; none, if the run is over.
    pub async fn recv(&mut self) -> Option<RunEvent> {
        self.0.recv().await
    }
}

impl Iterator for EventStream {
    type Item = RunEvent;

    /// Waits for the next event. Not for threads of an async runtime.
    fn next(&mut self) -> Option<RunEvent> {
        self.0.blocking_recv()
    }
}

/// How many events are kept until somebody listens for the first time.
const BACKLOG: usize = 10_000;

/// Who listens to a run, and which questions are open in it.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    to: Vec<mpsc::UnboundedSender<RunEvent>>,
    /// What nobody has heard yet.
    backlog: VecDeque<RunEvent>,
    listened: bool,
    closed: bool,
    /// Open questions by the session and name, and when they came.
    open: HashMap<(SessionId, String), (u64, OpenGate)>,
    asked: u64,
}

impl Listeners {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock()
    }

    /// Tells of an event; whoever no longer listens is let go.
    pub(crate) fn tell(&self, event: RunEvent) {
        let mut inside = self.inside();
        inside.note(&event);
        match inside.listened {
            true => inside.to.retain(|to| to.send(event.clone()).is_ok()),
            // Each has all of the tail. What a model says comes in pieces, and none may miss.
            false if matches!(event, RunEvent::ToolOutput { .. }) => {}
            false => {
                inside.backlog.push_back(event);
                if inside.backlog.len() > BACKLOG {
                    inside.backlog.pop_front();
                }
            }
        }
    }

    pub(crate) fn listen(&self) -> EventStream {
        let mut inside = self.inside();
        let (to, from) = mpsc::unbounded_channel();
        for event in std::mem::take(&mut inside.backlog) {
            // The other end is here.
            let _ = to.send(event);
        }
        inside.listened = true;
        if !inside.closed {
            inside.to.push(to);
        }
        EventStream(from)
    }

    /// The run is over: every stream ends.
    pub(crate) fn close(&self) {
        let mut inside = self.inside();
        inside.closed = true;
        inside.to.clear();
        inside.open.clear();
    }

    pub(crate) fn open_gates(&self) -> Vec<OpenGate> {
        let mut open: Vec<_> = self.inside().open.values().cloned().collect();
        open.sort_by_key(|(asked, _)| *asked);
        open.into_iter().map(|(_, gate)| gate).collect()
    }

    /// The question of a name: the one that was asked last, should a subagent use the same.
    fn open_gate(&self, name: &str) -> Option<OpenGate> {
        self.open_gates().into_iter().rev().find(|open| open.gate.id == name)
    }
}

impl Inside {
    /// Notes which questions are open.
    fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Approval(open) => {
                self.asked += 1;
                let key = (open.session.clone(), open.gate.id.clone());
                self.open.insert(key, (self.asked, (**open).clone()));
            }
            RunEvent::Answered(answer) => {
                self.open.remove(&(answer.session.clone(), answer.gate.clone()));
            }
            RunEvent::Child { event, .. } | RunEvent::Within { event, .. } => self.note(event),
            _ => {}
        }
    }
}
