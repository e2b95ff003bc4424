//! One session, with its lease.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::log::{LaneState, Redactor, View};
use crate::model::{
    Checkpoint, Created, Digest, Driver, Kind, Lane, Message, NewEvent, Origin, Phase,
    PhaseChanged, Recorded, Restored, Rewound, Scope, Seq, SessionId, Status, StatusChanged, Step,
    StopAsked, StopReason, Time, Undone,
};
use crate::model::{Epoch, Event};
use crate::sessions::options::ForkAt;
use crate::sessions::options::NewSession;
use crate::sessions::well::Stepwell;
use crate::store::{Append, Lease, SessionInfo, Slice, Span, Write, Written};
use crate::trust::{self, Note, given_at};

/// A session and its lease. Dropping it releases the lease; a session that was not
/// [finished](Session::finish) then reads as interrupted.
#[derive(Debug)]
pub struct Session {
    well: Stepwell,
    lease: Lease,
    /// Completed steps of each lane; only this runner adds to them.
    steps: Mutex<HashMap<Lane, u64>>,
    /// Was the lease released?
    closed: AtomicBool,
}

impl Stepwell {
    /// Creates a session and acquires its lease. The [events](NewSession) are recorded with it, all
    /// or none.
    pub fn create(&self, new: impl Into<NewSession>) -> Result<Session> {
        let NewSession { created, events } = new.into();
        let id = created.id.clone();
        let mut writes = vec![Write::Create(self.beginning(created, Some(self.claim())))];
        let events = self.redacted(events);
        let given = given_at(Seq::FIRST.next(), &events);
        if !events.is_empty() {
            let (session, epoch, events) = (id.clone(), Some(Epoch::FIRST), events.into());
            writes.push(Write::Append(Append { session, epoch, expected: None, events }));
        }
        // The notes are written first. If the process dies in between, they point at a session that
        // does not exist; written later, they could be missing for one that does. An existing
        // session's notes stay unchanged.
        let is_new = !given.is_empty() && !self.store().exists(&id)?;
        let mut notebook = is_new.then(|| self.notes().open(&id));
        if let Some(notebook) = &mut notebook {
            notebook.add(&given);
        }
        let written = self.store().batch(writes).inspect_err(|_| {
            if let Some(notebook) = &mut notebook {
                notebook.take_back();
            }
        })?;
        drop(notebook);
        let lease = written.into_iter().find_map(|written| written.lease);
        tracing::info!(session = %id, "session_created");
        let lost = || Error::Fenced { session: id.clone(), epoch: Epoch::FIRST, current: None };
        Ok(self.adopt(lease.ok_or_else(lost)?))
    }

    /// Resumes a session, whatever its status: acquires its lease and records that it runs. If a
    /// dead process left it `running`, that is first recorded as `interrupted`.
    /// [`resume_decision`](Self::resume_decision) says whether to resume.
    pub fn resume(&self, id: &SessionId) -> Result<Session> {
        let session = self.lock(id)?;
        session.mark_running()?;
        Ok(session)
    }

    /// Acquires a session's lease to record something without running it.
    pub fn lock(&self, id: &SessionId) -> Result<Session> {
        let lease = self.store().acquire(id, &self.claim())?;
        Ok(self.adopt(lease))
    }

    /// The session of a lease that was acquired through the [store](Self::store). The lease is
    /// renewed until the session is dropped; nothing is recorded.
    #[must_use]
    pub fn adopt(&self, lease: Lease) -> Session {
        Session::open(self.clone(), lease)
    }

    /// Creates a session that shares another one's events up to a seq, or all of them.
    pub fn fork(&self, parent: &SessionId, fork: impl Into<ForkAt>) -> Result<Session> {
        let ForkAt { at, begins } = fork.into();
        let head = self.store().info(parent)?.head;
        let at = at.unwrap_or(head.seq);
        // A fork's own first event describes it, not its parent's.
        let begun = match head.origin {
            Origin::Fork { at, .. } => at.next(),
            _ => Seq::FIRST,
        };
        let first = Span { from: begun, to: begun, ..Span::ALL };
        let mut events = self.store().events(parent, first)?.intact(parent)?;
        let Some(Event::Created(created)) = events.pop().map(|event| event.event) else {
            return Err(Error::NoSession(parent.clone()));
        };
        let origin = Origin::Fork { parent: parent.clone(), at };
        let created = Created { id: self.new_id(), origin, source: None, ..*created }
            .with_model(head.model_provider(), &head.model);
        // A fork may do no more than its parent may now.
        let facts = self.store().keyed_events(parent, &[Kind::Settings, Kind::Permission])?;
        let events = trust::carried_over(&facts, at).into_iter().chain(begins).collect();
        self.share_notes(parent, &created.id, at);
        self.create(NewSession { created, events })
    }

    /// The user's grants in a session also count in its fork, for the events that both share.
    fn share_notes(&self, parent: &SessionId, fork: &SessionId, at: Seq) {
        let notes = self.notes();
        let given = notes.given(parent);
        let shared: Vec<Note> = given.notes().filter(|note| note.seq <= at).collect();
        if !shared.is_empty() {
            notes.open(fork).add(&shared);
        }
    }
}

impl Session {
    fn open(well: Stepwell, lease: Lease) -> Self {
        well.keeper().keep(lease.clone());
        Self { well, lease, steps: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.lease.session
    }

    /// The present moment, by the well's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.well.now()
    }

    /// Its lease.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Registers a callback, called once when someone asks this session's runner to stop, at the
    /// next renewal of the lease at the latest. A request to the runner of an earlier lease is
    /// ignored.
    pub fn on_stop(&self, tell: impl Fn(&StopAsked) + Send + Sync + 'static) {
        self.well.keeper().watch_stops(&self.lease, Arc::new(tell));
    }

    /// Registers a callback, called each time renewals of the lease begin to fail: before half of
    /// its time to live has passed.
    pub fn on_doubt(&self, tell: impl Fn(&Error) + Send + Sync + 'static) {
        self.well.keeper().watch_doubts(&self.lease, Arc::new(tell));
    }

    /// The session's info.
    pub fn info(&self) -> Result<SessionInfo> {
        self.well.store().info(self.id())
    }

    /// Records that it runs again and, if it was left running by a dead process, that it was
    /// interrupted. A caller can [lock](Stepwell::lock) the session and check it first.
    pub fn mark_running(&self) -> Result<()> {
        let change = |status, reason| StatusChanged { status, reason, error: None };
        let head = self.info()?.head;
        // The status of an external agent's session follows its phase.
        if head.driver == Driver::Own {
            let mut events = vec![change(Status::Running, None).into()];
            if head.status == Status::Running {
                events.insert(0, change(Status::Interrupted, Some(StopReason::Crashed)).into());
            }
            self.append_all(events)?;
        }
        tracing::info!(session = %self.id(), "session_resumed");
        Ok(())
    }

    /// Records an event. It is durable when this returns.
    pub fn append(&self, event: impl Into<NewEvent>) -> Result<Seq> {
        Ok(self.append_all(vec![event.into()])?.last)
    }

    /// Records several events: all or none.
    pub fn append_all(&self, events: Vec<NewEvent>) -> Result<Written> {
        self.well.append_held(&self.lease, events)
    }

    /// Redacts several events with the caller's redactor and records them: all or none. Returns
    /// them as recorded.
    pub fn record(&self, redactor: &Redactor, events: Vec<Event>) -> Result<Vec<Recorded>> {
        let at = self.now();
        let redacted = |event| NewEvent::from(event).at(at).redacted(redactor);
        let events: Vec<NewEvent> = events.into_iter().map(redacted).collect();
        let (session, epoch) = (self.id().clone(), Some(self.lease.epoch));
        let append = Append { session, epoch, expected: None, events: events.clone().into() };
        let first = self.well.append(append)?.first.get();
        let recorded = |(event, seq): (NewEvent, u64)| Recorded {
            seq: Seq::new(seq),
            at,
            id: None,
            event: event.event,
        };
        Ok(events.into_iter().zip(first..).map(recorded).collect())
    }

    /// Records a step of the main lane: the model's answer, the results of its tool calls, and the
    /// end of the step; all or none.
    pub fn step(&self, messages: impl IntoIterator<Item = Message>) -> Result<Written> {
        self.step_in(&Lane::main(), messages)
    }

    /// Records a step of a lane.
    pub fn step_in(
        &self,
        lane: &Lane,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Written> {
        let mut steps = self.steps.lock();
        let done = match steps.get(lane) {
            Some(done) => *done,
            None => self.well.store().lanes(self.id())?.get(lane).map_or(0, |lane| lane.steps),
        };
        let messages = messages.into_iter().map(|message| message.in_lane(lane.clone()).into());
        let step = Step { lane: lane.clone(), n: done + 1 };
        let events = messages.chain([step.into()]).collect();
        let written = self.append_all(self.well.signed(events))?;
        steps.insert(lane.clone(), done + 1);
        Ok(written)
    }

    /// Its events.
    pub fn events(&self, span: Span) -> Result<Slice> {
        self.well.store().events(self.id(), span)
    }

    /// Each lane's part of the session's state.
    pub fn lanes(&self) -> Result<BTreeMap<Lane, LaneState>> {
        self.well.store().lanes(self.id())
    }

    /// Stores bytes under their digest, for an event that will name it.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<Digest> {
        let digest = Digest::of(bytes);
        self.keep_blobs(&[(digest, bytes)])?;
        Ok(digest)
    }

    /// Stores bytes under digests computed before, for events that will name them.
    pub fn keep_blobs(&self, blobs: &[(Digest, &[u8])]) -> Result<()> {
        self.well.store().keep_blobs(blobs)
    }

    /// The bytes of a blob.
    pub fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        self.well.store().blob(digest)
    }

    /// The keyed events of these kinds: tasks, files, nodes, gates, checkpoints, …
    pub fn keyed_events(&self, kinds: &[Kind]) -> Result<Vec<Recorded>> {
        self.well.store().keyed_events(self.id(), kinds)
    }

    /// The view of a lane.
    pub fn view(&self, lane: &Lane) -> Result<View> {
        let events = self.events(Span::ALL)?.intact(self.id())?;
        Ok(View::of(lane, events))
    }

    /// Moves the work to a phase and makes a checkpoint. Does nothing if it is in that phase.
    pub fn enter(&self, phase: Phase) -> Result<()> {
        let current = self.info()?.head.phase;
        match current {
            Some(from) if from == phase && phase != Phase::Plan => Ok(()),
            Some(from) => {
                let change = PhaseChanged { from, to: phase };
                let events = vec![change.into(), Checkpoint::of_phase(phase).into()];
                self.append_all(events).map(drop)
            }
            None => Err(Error::Illegal {
                session: self.id().clone(),
                kind: "phase".to_owned(),
                why: "the session has no phases".to_owned(),
            }),
        }
    }

    /// Makes a checkpoint here, by name or with metadata.
    pub fn checkpoint(&self, checkpoint: impl Into<Checkpoint>) -> Result<Seq> {
        let checkpoint = checkpoint.into();
        checkpoint.check()?;
        self.append(checkpoint)
    }

    /// Rewinds the view to an event. Files are the caller's to move.
    pub fn rewind(&self, to: Seq, scope: Scope) -> Result<Seq> {
        self.append(Rewound { to, scope, restored: Restored::default() })
    }

    /// Undoes a rewind.
    pub fn undo_rewind(&self, of: Seq) -> Result<Seq> {
        // The store fills in the scope and the restored state.
        self.append(Undone::Rewind { of, scope: Scope::Chat, restored: Restored::default() })
    }

    /// Creates a subagent's session, which is deleted with this one.
    pub fn spawn(&self, new: impl Into<NewSession>) -> Result<Self> {
        let NewSession { created, events } = new.into();
        let origin = Origin::Subagent { parent: self.id().clone() };
        self.well.create(NewSession { created: Created { origin, ..created }, events })
    }

    /// The well it belongs to.
    #[must_use]
    pub fn well(&self) -> &Stepwell {
        &self.well
    }

    /// Abandons the session: it is kept, and not resumed.
    pub fn abandon(self) -> Result<()> {
        let head = self.info()?.head;
        match (head.driver, head.phase) {
            // The status of an external agent's session follows its phase.
            (Driver::External, Some(_)) => self.enter(Phase::Abandoned),
            _ => self.finish(Status::Abandoned, Some(StopReason::Abandoned)),
        }
    }

    /// Ends the run: records its status and releases the lease.
    pub fn finish(self, status: Status, reason: Option<StopReason>) -> Result<()> {
        self.append(StatusChanged { status, reason, error: None })?;
        self.close()
    }

    /// Releases the lease and returns an error if that fails. Dropping the session releases it,
    /// too, and only logs a failure.
    pub fn close(self) -> Result<()> {
        self.give_back()
    }

    fn give_back(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.well.keeper().forget(&self.lease);
        self.well.store().release(&self.lease)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Err(error) = self.give_back() {
            // The lease expires on its own.
            tracing::warn!(session = %self.lease.session, %error, "lease_not_released");
        }
    }
}
