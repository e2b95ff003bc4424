//! The front end of a run: it watches the run and answers its questions.

use stepwell::model::Money;
use tokio::sync::watch;

use super::event::EventSink;

/// What a run does after it asks a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// It ends as paused, and continues when it is resumed.
    #[default]
    Pause,
    /// It waits for the answer.
    Wait,
}

/// The front end of a run.
#[derive(Clone, Debug, Default)]
pub struct FrontEnd {
    /// The receiver of the events.
    pub events: EventSink,
    /// What the run does after it asks a question.
    pub patience: Patience,
    /// Requests of the front end to the run.
    pub wishes: Wishes,
}

impl FrontEnd {
    /// Without a person: a run that asks pauses.
    #[must_use]
    pub fn nobody() -> Self {
        Self::default()
    }

    /// Receives events only: a run that asks pauses.
    #[must_use]
    pub fn watching(events: EventSink) -> Self {
        Self { events, ..Self::default() }
    }

    /// The front end of a subagent's run.
    pub(super) fn child(&self, session: &stepwell::SessionId) -> Self {
        let wishes = Wishes { is_child: true, ..self.wishes.clone() };
        Self { events: self.events.child(session), wishes, patience: self.patience }
    }
}

/// Requests to a run, beside answers and messages, which are in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wish {
    /// No answer will come now: pause instead of waiting.
    pause: bool,
    /// How often the model was to be interrupted for a new message.
    hurry: u64,
    /// The new budget of the whole session.
    budget: Option<Money>,
}

/// Sends requests to a run.
#[derive(Clone, Debug)]
pub struct Wisher(watch::Sender<Wish>);

/// The run's side of its front end's requests.
#[derive(Clone, Debug)]
pub struct Wishes {
    now: watch::Receiver<Wish>,
    /// How many requests to interrupt the model were handled.
    heeded: u64,
    /// Is this a subagent's run? Its parent sets its budget.
    is_child: bool,
}

impl Wisher {
    /// A connected pair without requests.
    #[must_use]
    pub fn new() -> (Self, Wishes) {
        let (tell, now) = watch::channel(Wish::default());
        (Self(tell), Wishes { now, heeded: 0, is_child: false })
    }

    /// From now on the run pauses instead of waiting for answers.
    pub fn pause(&self) {
        self.0.send_modify(|wish| wish.pause = true);
    }

    /// Interrupts the model's answer, so that a new message comes first.
    pub fn hurry(&self) {
        self.0.send_modify(|wish| wish.hurry += 1);
    }

    /// Sets the budget of the whole session, from the next call of the model on.
    pub fn set_budget(&self, most: Money) {
        self.0.send_modify(|wish| wish.budget = Some(most));
    }
}

impl Default for Wishes {
    fn default() -> Self {
        Wisher::new().1
    }
}

impl Wishes {
    /// Must the run pause instead of waiting?
    #[must_use]
    pub fn wants_pause(&self) -> bool {
        self.now.borrow().pause
    }

    /// Returns when the run must pause instead of waiting.
    pub async fn pause(&mut self) {
        if self.now.wait_for(|wish| wish.pause).await.is_err() {
            // The sender is gone, so no request can come.
            std::future::pending::<()>().await;
        }
    }

    /// The new budget of the whole session, if one was set during this run.
    pub(super) fn budget(&self) -> Option<Money> {
        self.now.borrow().budget.filter(|_| !self.is_child)
    }

    /// Marks all requests so far as handled.
    pub(super) fn heed(&mut self) {
        self.heeded = self.now.borrow().hurry;
    }

    /// Returns when the model must be interrupted.
    pub(super) async fn hurry(&mut self) {
        let heeded = self.heeded;
        if self.now.wait_for(|wish| wish.hurry > heeded).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
