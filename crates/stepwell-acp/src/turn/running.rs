//! A run on its way: what happens goes out, what the client wants comes in, and whoever waits for
//! its end is told.

use std::collections::BTreeSet;
use std::sync::Arc;

use stepwell::StopReason;
use stepwell::model::Answer;
use stepwell_agent::permission::Rule;
use stepwell_agent::provider::Fault;
use stepwell_runtime::{
    Attached, Error, ErrorKind, EventStream, Interrupt, OpenGate, RunHandle, RunReport,
};
use tokio::sync::{mpsc, oneshot};

use super::advice::{CHOOSE_MODEL, explained, sentences};
use super::conversation::{Begin, Begun, Conversation};
use super::reporter::{Reporter, Sink};
use super::{Chunk, Prompt, TurnEvent};

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// The model is done, or waits for an answer.
    Done,
    /// A limit on steps, money or time was reached.
    Limit,
    /// The conversation no longer fits the model.
    Full,
    /// The model refused.
    Refused,
    /// The client cancelled it.
    Cancelled,
    /// It failed.
    Failed {
        /// In words.
        message: String,
        /// Were the credentials refused?
        credentials: bool,
    },
}

/// Waits for the end of a turn.
pub(crate) type Waiter = oneshot::Sender<TurnEnd>;

/// What a client wants of a run.
#[derive(Debug)]
pub(crate) enum Input {
    /// Something for the model.
    Say(String, Waiter),
    /// The answer to a question.
    Answer(Box<OpenGate>, Answer, Option<Rule>),
    /// Nobody answers here: a run of ours pauses.
    Leave,
    /// Stop; of a run elsewhere, only whoever waits here does.
    Cancel,
    /// The client goes: a run of ours pauses at its question, or is interrupted.
    Go,
}

impl Input {
    /// Does nobody wait for it any more?
    fn is_withdrawn(&self) -> bool {
        matches!(self, Self::Say(_, waiter) if waiter.is_closed())
    }
}

/// A run on its way.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    inputs: mpsc::UnboundedSender<Input>,
    interrupt: Interrupt,
    is_here: bool,
    reporter: Reporter,
}

impl Running {
    /// Starts a task for a run. The first waiter is told of its end, if one is given.
    pub(crate) fn start(
        conversation: Arc<Conversation>,
        begin: Begin,
        waiter: Option<Waiter>,
        sink: Sink,
    ) -> Self {
        let (inputs, wanted) = mpsc::unbounded_channel();
        let interrupt = Interrupt::default();
        let is_here = matches!(begin, Begin::Prompt(_));
        let reporter = Reporter::new(sink);
        let task = Task {
            conversation,
            interrupt: interrupt.clone(),
            waiters: waiter.into_iter().collect(),
            reporter: reporter.clone(),
            cancelled: false,
        };
        tokio::spawn(task.run(begin, wanted));
        Self { inputs, interrupt, is_here, reporter }
    }

    /// Tells everything anew, up to what was said so far of an answer that is on its way.
    pub(crate) fn retell(&self, conversation: &Conversation) -> Result<(), Error> {
        self.reporter.retell(conversation)
    }

    /// Is it over?
    pub(crate) fn is_over(&self) -> bool {
        self.inputs.is_closed()
    }

    /// Tells it what the client wants. What comes after its end is dropped, with its waiter.
    pub(crate) fn send(&self, input: Input) {
        if self.is_here && matches!(input, Input::Cancel) {
            // Also while it begins.
            self.interrupt.ask();
        }
        let _ = self.inputs.send(input);
    }

    /// Returns when it is over.
    pub(crate) async fn over(&self) {
        self.inputs.closed().await;
    }
}

struct Task {
    conversation: Arc<Conversation>,
    interrupt: Interrupt,
    waiters: Vec<Waiter>,
    reporter: Reporter,
    cancelled: bool,
}

impl Task {
    async fn run(mut self, begin: Begin, mut wanted: mpsc::UnboundedReceiver<Input>) {
        let end = match self.begin(begin).await {
            Ok(Begun::Here(handle)) => self.here(handle, &mut wanted).await,
            Ok(Begun::Elsewhere(there)) => self.elsewhere(&there, &mut wanted).await,
            Err(error) => failed(&error),
        };
        let end = if self.cancelled { TurnEnd::Cancelled } else { end };
        if let Some(told) = self.reporter.told() {
            self.conversation.set_told(told);
        }
        // Nothing more is taken: what was not taken is begun anew by whoever sent it.
        wanted.close();
        for waiter in self.waiters {
            let _ = waiter.send(end.clone());
        }
    }

    async fn begin(&self, begin: Begin) -> Result<Begun, Error> {
        let (conversation, interrupt) = (Arc::clone(&self.conversation), self.interrupt.clone());
        let reporter = self.reporter.clone();
        let begun = tokio::task::spawn_blocking(move || {
            if matches!(begin, Begin::Prompt(_)) {
                // What others did meanwhile comes before what is done now.
                conversation.catch_up()?.into_iter().for_each(|event| reporter.tell(event));
            }
            let told = conversation.told();
            let begun = conversation.begin(&begin, &interrupt)?;
            let head = conversation.head()?;
            reporter.begin(told, |told| conversation.narrator(head.as_ref(), told));
            if let Begin::Prompt(Prompt(text)) = begin {
                reporter.knows(&text);
            }
            Ok(begun)
        });
        begun.await.unwrap_or(Err(Error::Panicked))
    }

    async fn here(
        &mut self,
        handle: RunHandle,
        wanted: &mut mpsc::UnboundedReceiver<Input>,
    ) -> TurnEnd {
        let (mut events, mut late) = (handle.events(), Vec::new());
        while let Some(next) = next(&mut events, wanted).await {
            match next {
                Next::Event(event) => self.reporter.see(*event, |_| false),
                // The turn that was cancelled takes nothing more in: it begins the next one.
                Next::Input(Input::Say(_, waiter)) if self.cancelled => late.push(waiter),
                Next::Input(input) if input.is_withdrawn() => {}
                Next::Input(input) => {
                    if let Input::Say(text, _) = &input {
                        self.reporter.knows(text);
                    }
                    self.here_wants(&handle, input);
                }
            }
        }
        let joined = tokio::task::spawn_blocking(move || handle.join()).await;
        match joined.unwrap_or(Err(Error::Panicked)) {
            Ok(report) => {
                for gate in &report.waiting {
                    self.reporter.tell(TurnEvent::Text(Chunk::question(gate)));
                }
                ended(&report)
            }
            Err(error) => failed(&error),
        }
    }

    fn here_wants(&mut self, handle: &RunHandle, input: Input) {
        match input {
            Input::Say(text, waiter) => {
                self.waiters.push(waiter);
                // What cannot be saved ends the run, which says so.
                let _ = tokio::task::block_in_place(|| handle.say(text, false));
            }
            Input::Answer(open, answer, rule) => {
                let who = handle.who().clone();
                let answer = || {
                    handle.answer_remembering(&open.gate.id, answer, rule.as_ref(), who).map(drop)
                };
                refused(tokio::task::block_in_place(answer));
            }
            Input::Leave => handle.pause(),
            Input::Cancel => {
                self.cancelled = true;
                handle.interrupt();
            }
            Input::Go => {
                self.cancelled = true;
                // The question stays for whoever answers it later.
                match handle.open_gates().is_empty() {
                    true => handle.interrupt(),
                    false => handle.pause(),
                }
            }
        }
    }

    async fn elsewhere(
        &mut self,
        there: &Attached,
        wanted: &mut mpsc::UnboundedReceiver<Input>,
    ) -> TurnEnd {
        // What was asked before the watching began does not come; what is told anew may.
        let mut asked: BTreeSet<String> = BTreeSet::new();
        for open in tokio::task::block_in_place(|| self.asked_elsewhere()) {
            asked.insert(open.gate.id.clone());
            self.reporter.tell(TurnEvent::Ask(Box::new(open)));
        }
        let (mut events, mut reason, mut late) = (there.events(), None, Vec::new());
        while let Some(next) = next(&mut events, wanted).await {
            match next {
                Next::Event(event) => self.reporter.see(*event, |event| match event {
                    TurnEvent::Ask(open) => asked.remove(&open.gate.id),
                    TurnEvent::Ended { reason: why } => {
                        reason = *why;
                        false
                    }
                    _ => false,
                }),
                Next::Input(Input::Go) => return TurnEnd::Cancelled,
                Next::Input(input) if input.is_withdrawn() => {}
                // Nobody would hear it: it is said anew when all of this run was told.
                Next::Input(Input::Say(_, waiter)) if !self.is_held() => late.push(waiter),
                Next::Input(input) => {
                    if let Input::Say(text, _) = &input {
                        self.reporter.knows(text);
                    }
                    self.elsewhere_wants(input);
                }
            }
        }
        if reason == Some(StopReason::Gate) {
            // It paused there, and whoever is here may answer.
            let open = tokio::task::block_in_place(|| self.conversation.open_gates());
            for open in open.unwrap_or_default() {
                self.reporter.tell(TurnEvent::Text(Chunk::question(&open.gate)));
            }
        }
        by_reason(reason)
    }

    /// The questions of a run that goes on elsewhere, as far as the client was told of what led to
    /// them. Later ones come with the run's events, behind the calls that they are about.
    fn asked_elsewhere(&self) -> Vec<OpenGate> {
        if !self.is_held() {
            return Vec::new();
        }
        let told = self.reporter.told().unwrap_or_default();
        let mut open = self.conversation.open_gates().unwrap_or_default();
        open.retain(|open| open.seq <= told);
        open
    }

    fn is_held(&self) -> bool {
        tokio::task::block_in_place(|| self.conversation.is_held()).unwrap_or_default()
    }

    fn elsewhere_wants(&mut self, input: Input) {
        let conversation = &self.conversation;
        match input {
            Input::Say(text, waiter) => {
                self.waiters.push(waiter);
                if let Err(error) = tokio::task::block_in_place(|| conversation.say(&text)) {
                    let end = failed(&error);
                    self.waiters.pop().map(|waiter| waiter.send(end));
                }
            }
            Input::Answer(open, answer, _) => {
                refused(tokio::task::block_in_place(|| conversation.answer(&open, answer)));
            }
            Input::Leave | Input::Go => {}
            // The run is somebody else's: only the waiting ends.
            Input::Cancel => {
                for waiter in self.waiters.drain(..) {
                    let _ = waiter.send(TurnEnd::Cancelled);
                }
            }
        }
    }
}

enum Next {
    Event(Box<stepwell_runtime::RunEvent>),
    Input(Input),
}

/// What comes next; none, if the run is over.
async fn next(
    events: &mut EventStream,
    wanted: &mut mpsc::UnboundedReceiver<Input>,
) -> Option<Next> {
    tokio::select! {
        biased;
        Some(input) = wanted.recv() => Some(Next::Input(input)),
        event = events.recv() => event.map(|event| Next::Event(Box::new(event))),
    }
}

/// An answer that was not taken: somebody was quicker, or it came too late. The log decides.
fn refused(answered: Result<(), Error>) {
    if let Err(error) = answered {
        tracing::info!(%error, "answer_not_taken");
    }
}

/// How a run ended, as its report says.
fn ended(report: &RunReport) -> TurnEnd {
    match (&report.error, report.reason) {
        (Some(error), _) if error.fault == Some(Fault::ContextFull) => TurnEnd::Full,
        (Some(error), _) if error.fault == Some(Fault::Declined) => TurnEnd::Refused,
        (Some(error), _) if error.fault == Some(Fault::Auth) => {
            TurnEnd::Failed { message: sentences(&error.message, CHOOSE_MODEL), credentials: true }
        }
        (Some(error), _) => TurnEnd::Failed { message: error.message.clone(), credentials: false },
        (None, reason) => by_reason(reason),
    }
}

fn by_reason(reason: Option<StopReason>) -> TurnEnd {
    match reason {
        Some(StopReason::MaxSteps | StopReason::BudgetExceeded | StopReason::Timeout) => {
            TurnEnd::Limit
        }
        Some(StopReason::ContextFull) => TurnEnd::Full,
        Some(StopReason::UserInterrupt) => TurnEnd::Cancelled,
        Some(StopReason::LlmError | StopReason::Crashed) => {
            let message = "the run failed; its log says how".to_owned();
            TurnEnd::Failed { message, credentials: false }
        }
        Some(StopReason::Refusal) => TurnEnd::Refused,
        Some(StopReason::LlmDone | StopReason::Gate | StopReason::Abandoned) | None => {
            TurnEnd::Done
        }
    }
}

/// A run that did not begin, or could not be saved.
fn failed(error: &Error) -> TurnEnd {
    match error.kind() {
        ErrorKind::Interrupted => TurnEnd::Cancelled,
        kind => TurnEnd::Failed {
            message: explained(error),
            credentials: kind == ErrorKind::Credentials,
        },
    }
}
