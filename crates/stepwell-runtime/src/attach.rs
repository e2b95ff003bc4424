//! A run that goes on elsewhere, as it shows in its log.

mod below;
mod pieces;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stepwell::model::{Outcome, Spent};
use stepwell::sessions::{Subscription, WakeOnDrop};
use stepwell::store::Span;
use stepwell::{Event, Lane, Recorded, Seq, SessionId, SessionInfo, Status, Stepwell, StopReason};
use stepwell_agent::run::{GateAnswer, OpenGate, RunEvent};

use crate::error::{Error, Result};
use crate::handle::{EventStream, Listeners};
use crate::live::{Listening, listen};
use crate::runtime::Runtime;
use below::Below;
use pieces::Pieces;

/// A run that goes on elsewhere: its log, as events. Letting go of it does not stop the run.
#[derive(Debug)]
pub struct Attached {
    session: SessionId,
    listeners: Arc<Listeners>,
    /// The first stream. It is there before anything is told: pieces that nobody hears are lost.
    first: Mutex<Option<EventStream>>,
    _let_go: std::sync::mpsc::Sender<()>,
    /// Behind `_let_go`: the thread looks at it when it wakes.
    _wake: WakeOnDrop,
}

impl Runtime {
    /// Watches a session that somebody else runs, from a seq on. If the same user runs it on this
    /// machine, the model's words come as it speaks; else when they are complete. What its
    /// subagents ask and say comes as [`RunEvent::Child`]. The last event is [`RunEvent::Ended`].
    ///
    /// # Errors
    /// If there is no such session.
    pub fn attach(&self, id: &SessionId, from: Seq) -> Result<Attached> {
        let well = self.workspace().open_existing(stepwell::sqlite::Access::Read)?;
        well.info(id)?;
        well.refuse_altered(id)?;
        let listeners = Arc::new(Listeners::default());
        let first = Mutex::new(Some(listeners.listen()));
        let (let_go, held) = std::sync::mpsc::channel();
        // Subscribed before anything is read, so that nothing falls between.
        let changes = well.subscribe()?;
        let wake = changes.wake_on_drop();
        let (told, session, runtime) = (Arc::clone(&listeners), id.clone(), self.clone());
        let named = std::thread::Builder::new().name("stepwell-attach".to_owned());
        let follow = move || {
            let (last, to) = (from.prev(), Arc::clone(&told));
            let pieces = Pieces::new(session.clone(), Stepwell::clone(&well), last, to);
            let pieces = Arc::new(pieces);
            let heard = Arc::clone(&pieces);
            let live = listen(runtime.workspace(), &well, &session, move |piece| heard.hear(piece));
            let mut reader = Reader::new(session, &told, &pieces);
            reader.follow(&well, from, &held, (&live, &changes));
            drop(live);
            told.close();
        };
        named.spawn(follow).map_err(Error::Thread)?;
        Ok(Attached { session: id.clone(), listeners, first, _let_go: let_go, _wake: wake })
    }
}

impl Attached {
    /// The session.
    #[must_use]
    pub const fn id(&self) -> &SessionId {
        &self.session
    }

    /// What happens in the run. The first stream begins with what was asked for, and has what was
    /// said so far of an answer that is on its way.
    #[must_use]
    pub fn events(&self) -> EventStream {
        let first = self.first.lock().take();
        first.unwrap_or_else(|| self.listeners.listen())
    }

    /// The questions that wait, as far as they were seen.
    #[must_use]
    pub fn open_gates(&self) -> Vec<OpenGate> {
        self.listeners.open_gates()
    }
}

/// Turns what is recorded into what happened.
struct Reader<'a> {
    session: SessionId,
    to: &'a Listeners,
    pieces: &'a Pieces,
    /// Calls by their ids: the tool, and its arguments.
    calls: HashMap<String, (String, String)>,
    outcomes: HashMap<String, Outcome>,
    steps: u64,
    /// What the session spent, up to an event.
    spent: Spent,
    spent_to: Seq,
}

impl<'a> Reader<'a> {
    fn new(session: SessionId, to: &'a Listeners, pieces: &'a Pieces) -> Self {
        let (calls, outcomes) = (HashMap::new(), HashMap::new());
        let (spent, spent_to) = (Spent::default(), Seq::ZERO);
        Self { session, to, pieces, calls, outcomes, steps: 0, spent, spent_to }
    }

    /// Reads until the session stops, or nobody wants it any more.
    fn follow(
        &mut self,
        well: &Stepwell,
        from: Seq,
        held: &std::sync::mpsc::Receiver<()>,
        (live, changes): (&Listening, &Subscription),
    ) {
        let mut last = from.prev();
        let Ok(mut below) = Below::new(self.session.clone(), well) else { return };
        loop {
            // Looked at before the events, so that none that was recorded since is missed.
            let info = well.store().info(&self.session);
            if let Ok(info) = &info {
                (self.spent, self.spent_to) = (info.head.spent, info.head.seq);
            }
            let ended = ended(info);
            let Ok(slice) = well.store().events(&self.session, Span::after(last)) else { return };
            for event in slice.events {
                last = event.seq;
                self.read(well, event);
                live.nudge();
            }
            if below.tell(well, &|event| self.to.tell(event)).is_err() {
                return;
            }
            if let Some((status, reason)) = ended {
                return self.to.tell(RunEvent::Ended { status, reason });
            }
            // Nothing is ever sent: only letting go ends the channel.
            if matches!(held.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected)) {
                return;
            }
            if below.wait(well, changes).is_err() {
                return;
            }
        }
    }

    fn read(&mut self, well: &Stepwell, recorded: Recorded) {
        let (seq, at) = (recorded.seq, recorded.at);
        let event = recorded.event.clone();
        self.pieces.record(recorded);
        match event {
            Event::Message(message) => {
                for call in message.calls() {
                    let known = (call.name.clone(), call.arguments.clone());
                    self.calls.insert(call.id.clone(), known);
                }
                if let Some(usage) = message.usage.filter(|_| seq > self.spent_to) {
                    self.spent.count(usage, message.cost);
                }
                let results: Vec<_> =
                    message.results().map(|it| (it.call_id.clone(), it.text.clone())).collect();
                for (call, told) in results {
                    let (tool, _) = self.calls.get(&call).cloned().unwrap_or_default();
                    let outcome = self.outcomes.remove(&call).unwrap_or(Outcome::Done);
                    self.to.tell(RunEvent::ToolFinished { call, tool, outcome, told });
                }
            }
            Event::ToolStarted(started) => {
                let (call, tool) = (started.call_id, started.tool);
                let arguments = self.calls.get(&call).map(|(_, arguments)| arguments.clone());
                let preview = format!("{tool} {}", arguments.unwrap_or_default());
                self.to.tell(RunEvent::ToolStarted { call, tool, preview });
            }
            Event::ToolFinished(finished) => {
                self.outcomes.insert(finished.call_id, finished.outcome);
            }
            Event::Step(step) if step.lane == Lane::main() => {
                self.steps = step.n;
                self.to.tell(RunEvent::Step { steps: self.steps, spent: self.spent });
            }
            Event::Gate(gate) => {
                let session = self.session.clone();
                let open = OpenGate::new(&**well.store(), session, gate, (seq, at));
                self.to.tell(RunEvent::Approval(Box::new(open)));
            }
            Event::GateAnswered(answer) => {
                let (session, gate) = (self.session.clone(), answer.id);
                let (answer, who) = (answer.answer, answer.who);
                self.to.tell(RunEvent::Answered(GateAnswer { session, gate, answer, who, at }));
            }
            _ => {}
        }
    }
}

/// How a session stands, if nobody runs it. One that waits for an answer in its runner goes on.
fn ended(info: stepwell::Result<SessionInfo>) -> Option<(Status, Option<StopReason>)> {
    match info {
        Ok(info) if info.held.is_some() && info.trashed_at.is_none() => None,
        Ok(info) => Some((info.head.status, info.head.stop_reason)),
        Err(_) => Some((Status::Interrupted, None)),
    }
}
