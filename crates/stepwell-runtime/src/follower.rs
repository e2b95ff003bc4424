//! What others want of a run: stops, words that cannot wait, and requests, as they are recorded in its
//! session and in those of its subagents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use stepwell::model::{Kind, WorkAsked};
use stepwell::store::{Facts, Lease};
use stepwell::{Event, Recorded, Seq, SessionId, Stepwell};
use stepwell_agent::run::{RunEvent, Wisher};

use crate::request::Interrupt;

/// How often a run's log is looked at for what others want of it.
const LOOK: Duration = Duration::from_millis(200);

/// The subagents of a run, and how far the log of each was looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subagents(Arc<Mutex<BTreeMap<SessionId, Seq>>>);

impl Subagents {
    /// Notes a subagent of which something is told.
    pub(crate) fn note(&self, event: &RunEvent) {
        match event {
            RunEvent::Child { session, event } => {
                let mut all = self.all();
                if !all.contains_key(session) {
                    all.insert(session.clone(), Seq::ZERO);
                }
                drop(all);
                self.note(event);
            }
            RunEvent::Within { event, .. } => self.note(event),
            _ => {}
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionId, Seq>> {
        self.0.lock()
    }
}

/// A run, as it is followed.
pub(crate) struct Followed {
    pub(crate) well: Stepwell,
    pub(crate) lease: Lease,
    pub(crate) subagents: Subagents,
    pub(crate) wisher: Wisher,
    pub(crate) interrupt: Interrupt,
}

/// Looks now and then whether somebody asked a run to stop, or said something that cannot wait:
/// both are in the log, from whichever process or machine they came.
pub(crate) struct Follower {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Follower {
    pub(crate) fn start(run: Followed) -> Option<Self> {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let until = Arc::clone(&over);
        let named = std::thread::Builder::new().name("stepwell-follow".to_owned());
        let thread = named.spawn(move || {
            let (well, lease) = (&run.well, &run.lease);
            let mut seen = well.store().info(&lease.session).map_or(Seq::ZERO, |it| it.head.seq);
            run.note_seen();
            // A wish may have come since the lease was taken; earlier ones name another lease.
            run.carry_out(Seq::FIRST, seen);
            let (over, ended) = &*until;
            let mut is_over = over.lock();
            while !*is_over {
                ended.wait_for(&mut is_over, LOOK);
                if !*is_over {
                    seen = run.look(lease, seen);
                    run.look_below();
                    run.note_seen();
                }
            }
            run.note_seen();
        });
        // Without the thread the lease's keeper sees a stop, and words wait for the next call.
        Some(Self { over, thread: Some(thread.ok()?) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let (over, ended) = &*self.over;
        *over.lock() = true;
        ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // It is at its last look; a panic there is its own.
            let _ = thread.join();
        }
    }
}

/// What others record for whoever runs a session.
const KINDS: [Kind; 3] = [Kind::Said, Kind::StopAsked, Kind::WorkAsked];

impl Followed {
    /// Notes how far the log goes. A later resume on this machine misses what was removed since, also
    /// if this run dies.
    fn note_seen(&self) {
        if let Err(error) = self.well.note_seen(&self.lease.session) {
            tracing::debug!(%error, "what_was_seen_is_not_noted");
        }
    }

    /// Looks at what came to a session after a seq; the answer is how far it looked.
    fn look(&self, lease: &Lease, seen: Seq) -> Seq {
        // What cannot be read now is looked at again.
        let Some(events) = self.since(&lease.session, seen) else { return seen };
        self.heed(lease, &events, seen)
    }

    fn since(&self, session: &SessionId, seen: Seq) -> Option<Vec<Recorded>> {
        let facts = Facts { from: seen.next(), ..Facts::of(&KINDS) };
        self.well.store().keyed(session, facts).ok()
    }

    fn heed(&self, lease: &Lease, events: &[Recorded], seen: Seq) -> Seq {
        for event in events {
            match &event.event {
                Event::StopAsked(stop) if stop.epoch == lease.epoch => self.interrupt.ask(),
                // Words that do not count break off no call, which is paid for.
                Event::Said(said) if said.now && self.counts(lease, event) => self.wisher.hurry(),
                Event::WorkAsked(asked) if asked.epoch == lease.epoch => {
                    self.do_as_asked(lease, asked);
                }
                _ => {}
            }
        }
        events.last().map_or(seen, |last| last.seq)
    }

    /// The same for subagents. Who stops one stops the run, as a signal to its process does.
    fn look_below(&self) {
        let all: Vec<(SessionId, Seq)> =
            self.subagents.all().iter().map(|(id, seen)| (id.clone(), *seen)).collect();
        for (id, seen) in all {
            let Some(events) = self.since(&id, seen).filter(|events| !events.is_empty()) else {
                continue;
            };
            let Ok(info) = self.well.info(&id) else { continue };
            // One that has ended has no runner: nothing is done for it.
            let Some(held) = info.held else { continue };
            let (session, epoch, expires) = (id.clone(), held.epoch, held.expires);
            let lease = Lease { session, epoch, expires, stop_asked: false };
            let seen = self.heed(&lease, &events, seen);
            self.subagents.all().insert(id, seen);
        }
    }

    /// Does what was asked of a session's work between two seqs.
    fn carry_out(&self, from: Seq, to: Seq) {
        let facts = Facts { from, ..Facts::of(&[Kind::WorkAsked]) };
        let asked = self.well.store().keyed(&self.lease.session, facts).unwrap_or_default();
        for event in asked.into_iter().filter(|event| event.seq <= to) {
            if let Event::WorkAsked(asked) = event.event
                && asked.epoch == self.lease.epoch
            {
                self.do_as_asked(&self.lease, &asked);
            }
        }
    }

    fn counts(&self, lease: &Lease, said: &Recorded) -> bool {
        self.well.judge(&lease.session).is_ok_and(|judge| judge.hears(said).is_none())
    }

    fn do_as_asked(&self, lease: &Lease, asked: &WorkAsked) {
        // Whoever asked looks at what became of it, and says why it could not be.
        if let Err(error) = self.well.carry_out(lease, asked) {
            tracing::debug!(session = %lease.session, %error, "wish_not_carried_out");
        }
    }
}
