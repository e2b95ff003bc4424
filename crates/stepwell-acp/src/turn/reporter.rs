//! Who tells of a run, shared between the run's task and whoever is told everything anew.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stepwell::Seq;
use stepwell_runtime::{Error, RunEvent};

use super::{Conversation, Narrator, TurnEvent};

/// Where a run's events go. It is called on the run's own task, in order.
pub(crate) type Sink = Arc<dyn Fn(TurnEvent) + Send + Sync>;

/// Who tells of a run. Whatever is told, is told while it is held, so that nothing is told twice
/// or out of order. Cloning is cheap.
#[derive(Clone)]
pub(super) struct Reporter {
    inside: Arc<Mutex<Inside>>,
    sink: Sink,
}

#[derive(Default)]
struct Inside {
    /// Absent, until the run has begun.
    narrator: Option<Narrator>,
    /// What was told anew before that.
    retold: Seq,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").finish_non_exhaustive()
    }
}

impl Reporter {
    pub(super) fn new(sink: Sink) -> Self {
        Self { inside: Arc::default(), sink }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock()
    }

    /// Tells something that no run told.
    pub(super) fn tell(&self, event: TurnEvent) {
        (self.sink)(event);
    }

    /// The run begins. `narrator` makes who tells what comes behind an event: behind `told`, or
    /// behind what was told anew meanwhile.
    pub(super) fn begin(&self, told: Seq, narrator: impl FnOnce(Seq) -> Narrator) {
        let mut inside = self.inside();
        let told = told.max(inside.retold);
        inside.narrator = Some(narrator(told));
    }

    /// Tells what an event of the run comes to, but for what the caller keeps.
    pub(super) fn see(&self, event: RunEvent, mut keeps: impl FnMut(&TurnEvent) -> bool) {
        let mut inside = self.inside();
        let Some(narrator) = inside.narrator.as_mut() else { return };
        for event in narrator.see(event) {
            if !keeps(&event) {
                (self.sink)(event);
            }
        }
    }

    /// Notes what the client said itself: it is not told that again.
    pub(super) fn knows(&self, text: &str) {
        if let Some(narrator) = self.inside().narrator.as_mut() {
            narrator.knows(text);
        }
    }

    /// The last event that was told; none, if the run never began.
    pub(super) fn told(&self) -> Option<Seq> {
        self.inside().narrator.as_ref().map(Narrator::told)
    }

    /// Tells everything anew: what is on record, as far as it was told, and what came of the
    /// answer that is on its way.
    pub(super) fn retell(&self, conversation: &Conversation) -> Result<(), Error> {
        let mut inside = self.inside();
        let to = inside.narrator.as_ref().map_or(Seq::MAX, Narrator::told);
        let (mut events, last) = conversation.history(to)?;
        match &inside.narrator {
            Some(narrator) => events.extend(narrator.so_far()),
            None => inside.retold = last,
        }
        events.into_iter().for_each(|event| (self.sink)(event));
        Ok(())
    }
}
