//! Who watches a run and answers it, as the run sees them.

use stepwell::model::Money;
use tokio::sync::watch;

use super::event::EventSink;

/// What a run does when it asks a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// It pauses: it ends, and goes on when it is resumed.
    #[default]
    Pause,
    /// It waits until someone answers.
    Wait,
}

/// Who watches a run and answers it.
#[derive(Clone, Debug, Default)]
pub struct FrontEnd {
    /// Where events go.
    pub events: EventSink,
    /// What the run does when it asks a person.
    pub patience: Patience,
    /// What the front end wants of the run.
    pub wishes: Wishes,
}

impl FrontEnd {
    /// One that nobody stands behind: a run that asks pauses.
    #[must_use]
    pub fn nobody() -> Self {
        Self::default()
    }

    /// One that only watches: a run that asks pauses.
    #[must_use]
    pub fn watching(events: EventSink) -> Self {
        Self { events, ..Self::default() }
    }

    /// The same, as a subagent's run has it.
    pub(super) fn child(&self, session: &stepwell::SessionId) -> Self {
        let wishes = Wishes { is_child: true, ..self.wishes.clone() };
        Self { events: self.events.child(session), wishes, patience: self.patience }
    }
}

/// What a front end wants of a run, beside answers and words, which are on record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wish {
    /// Nobody will answer now: pause in place of waiting.
    pause: bool,
    /// How often the model was to stop speaking because something was said.
    hurry: u64,
    /// What the whole session may cost from now on.
    budget: Option<Money>,
}

/// Tells a run what is wanted of it.
#[derive(Clone, Debug)]
pub struct Wisher(watch::Sender<Wish>);

/// What is wanted of a run, as the run sees it.
#[derive(Clone, Debug)]
pub struct Wishes {
    now: watch::Receiver<Wish>,
    /// How many wishes to hurry were seen to.
    heeded: u64,
    /// Is it a subagent's run? What that may cost, its parent says.
    is_child: bool,
}

impl Wisher {
    /// Someone who wants nothing yet, and the run's side of it.
    #[must_use]
    pub fn new() -> (Self, Wishes) {
        let (tell, now) = watch::channel(Wish::default());
        (Self(tell), Wishes { now, heeded: 0, is_child: false })
    }

    /// A run that waits for an answer pauses instead, now and from here on.
    pub fn pause(&self) {
        self.0.send_modify(|wish| wish.pause = true);
    }

    /// The model stops speaking, so that what was said is taken in first.
    pub fn hurry(&self) {
        self.0.send_modify(|wish| wish.hurry += 1);
    }

    /// The whole session may cost so much, from the next call of the model on.
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
    /// Is the run to pause where it would wait?
    #[must_use]
    pub fn wants_pause(&self) -> bool {
        self.now.borrow().pause
    }

    /// Returns when the run is to pause where it would wait.
    pub async fn pause(&mut self) {
        if self.now.wait_for(|wish| wish.pause).await.is_err() {
            // Whoever could wish is gone: nobody will.
            std::future::pending::<()>().await;
        }
    }

    /// What the whole session may cost, if that was said since the run began.
    pub(super) fn budget(&self) -> Option<Money> {
        self.now.borrow().budget.filter(|_| !self.is_child)
    }

    /// Whatever was said up to now is about to be taken in.
    pub(super) fn heed(&mut self) {
        self.heeded = self.now.borrow().hurry;
    }

    /// Returns when the model is to stop speaking.
    pub(super) async fn hurry(&mut self) {
        let heeded = self.heeded;
        if self.now.wait_for(|wish| wish.hurry > heeded).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
