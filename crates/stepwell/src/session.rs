//! One session, held by its runner.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{
    Append, Checkpoint, Created, Digest, Driver, Error, Kind, Lane, LaneState, Lease, Message,
    NewEvent, NewSession, Origin, Phase, PhaseChanged, Pins, Recorded, Redacted, Restored, Result,
    Rewound, Scope, Seq, SessionId, SessionInfo, Slice, Span, Status, StatusChanged, Step,
    Stepwell, StopAsked, StopReason, Time, Undone, View, Work, Write, Written,
};

/// A session and the right to write to it. Dropping it gives the lease back; a
/// session that was not [finished](Session::finish) then reads as interrupted.
#[derive(Debug)]
pub struct Session {
    well: Stepwell,
    lease: Lease,
    /// Steps that each lane has completed; only this runner adds to them.
    steps: Mutex<HashMap<Lane, u64>>,
    /// Was the lease given back already?
    closed: AtomicBool,
}

impl Session {
    pub(crate) fn open(well: Stepwell, lease: Lease) -> Self {
        well.keeper().keep(lease.clone());
        Self { well, lease, steps: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.lease.session
    }

    /// Now, by the well's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.well.now()
    }

    /// Its lease.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Has a function told, once, when somebody asks this session's runner to stop: at the next
    /// renewal of the lease at the latest. A request that names an earlier lease is ignored.
    pub fn on_stop(&self, tell: impl Fn(&StopAsked) + Send + Sync + 'static) {
        self.well.keeper().watch_stops(&self.lease, Arc::new(tell));
    }

    /// How it stands.
    pub fn info(&self) -> Result<SessionInfo> {
        self.well.store().info(self.id())
    }

    /// Records that it runs again and, if a process died with it, that too. Whoever
    /// [locks](Stepwell::lock) it can look first whether it should.
    pub fn mark_running(&self) -> Result<()> {
        let change = |status, reason| StatusChanged { status, reason, error: None };
        let head = self.info()?.head;
        // The status of a session that Stepwell does not run follows its phase.
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

    /// Records an event. When this returns, it is durable.
    pub fn append(&self, event: impl Into<NewEvent>) -> Result<Seq> {
        Ok(self.append_all(vec![event.into()])?.last)
    }

    /// Records several events, all or none.
    pub fn append_all(&self, events: Vec<NewEvent>) -> Result<Written> {
        self.write(self.well.redacted(events))
    }

    /// Records several events from which a redactor of the caller's took the secrets, all or none.
    pub fn append_redacted(&self, events: Vec<Redacted>) -> Result<Written> {
        self.write(events.into_iter().map(Redacted::into_new).collect())
    }

    fn write(&self, events: Vec<NewEvent>) -> Result<Written> {
        let written = self.well.write_noted(self.id(), events, |events| {
            let (session, epoch) = (self.id().clone(), Some(self.lease.epoch));
            let append = Append { session, epoch, expected: None, events };
            self.well.store().write(Write::Append(append))
        })?;
        tracing::info!(session = %self.id(), seq = %written.last, "session_saved");
        Ok(written)
    }

    /// Records a step of the main lane: the model's answer, its tools' results, and
    /// that the step is complete, all or none.
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

    /// What each lane did and spent.
    pub fn lanes(&self) -> Result<BTreeMap<Lane, LaneState>> {
        self.well.store().lanes(self.id())
    }

    /// Stores a file's bytes under their SHA-256 digest, by which files are known, for an
    /// event that will name them.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<Digest> {
        let digest = Digest::of(bytes);
        self.keep_blobs(&[(digest, bytes)])?;
        Ok(digest)
    }

    /// Stores bytes under digests that were taken of them, for events that will name them.
    pub fn keep_blobs(&self, blobs: &[(Digest, &[u8])]) -> Result<()> {
        self.well.store().keep_blobs(blobs)
    }

    /// The bytes of a blob.
    pub fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        self.well.store().blob(digest)
    }

    /// The events of these kinds that have a key: tasks, files, nodes, gates,
    /// checkpoints.
    pub fn keyed_events(&self, kinds: &[Kind]) -> Result<Vec<Recorded>> {
        self.well.store().keyed_events(self.id(), kinds)
    }

    /// How its work stands: what is planned, and what was asked.
    pub fn work(&self) -> Result<Work> {
        self.well.work(self.id())
    }

    /// The messages that its user pinned.
    pub fn pins(&self) -> Result<Pins> {
        Ok(Pins::of(&self.keyed_events(&[Kind::Edited])?))
    }

    /// What a model would be shown of a lane.
    pub fn view(&self, lane: &Lane) -> Result<View> {
        let events = self.events(Span::ALL)?.intact(self.id())?;
        Ok(View::of(lane, events))
    }

    /// Moves the work to a phase, and takes a checkpoint there. Being there already is no
    /// move.
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

    /// Names the present point. A whole [`Checkpoint`] remembers something with it.
    pub fn checkpoint(&self, checkpoint: impl Into<Checkpoint>) -> Result<Seq> {
        let checkpoint = checkpoint.into();
        checkpoint.check()?;
        self.append(checkpoint)
    }

    /// Moves the view back to an event. Files are the caller's to move.
    pub fn rewind(&self, to: Seq, scope: Scope) -> Result<Seq> {
        self.append(Rewound { to, scope, restored: Restored::default() })
    }

    /// Takes a rewind back.
    pub fn undo_rewind(&self, of: Seq) -> Result<Seq> {
        // The store fills in what it moved and what comes back.
        self.append(Undone::Rewind { of, scope: Scope::Chat, restored: Restored::default() })
    }

    /// Makes a session for a subagent. It goes with this one.
    pub fn spawn(&self, new: impl Into<NewSession>) -> Result<Self> {
        let NewSession { created, events } = new.into();
        let origin = Origin::Subagent { parent: self.id().clone() };
        self.well.create(NewSession { created: Created { origin, ..created }, events })
    }

    /// The well that it belongs to.
    #[must_use]
    pub fn well(&self) -> &Stepwell {
        &self.well
    }

    /// Gives the session up: it stays, and is not resumed.
    pub fn abandon(self) -> Result<()> {
        let head = self.info()?.head;
        match (head.driver, head.phase) {
            // The status of an agent that Stepwell does not run follows its phase.
            (Driver::External, Some(_)) => self.enter(Phase::Abandoned),
            _ => self.finish(Status::Abandoned, Some(StopReason::Abandoned)),
        }
    }

    /// Ends the run: records how it stands and gives the lease back.
    pub fn finish(self, status: Status, reason: Option<StopReason>) -> Result<()> {
        self.append(StatusChanged { status, reason, error: None })?;
        self.close()
    }

    /// Gives the lease back, and tells if that fails. Dropping the session does the same, and
    /// only logs a failure.
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
            // The lease ends by itself, with this process or in time.
            tracing::warn!(session = %self.lease.session, %error, "lease_not_released");
        }
    }
}
