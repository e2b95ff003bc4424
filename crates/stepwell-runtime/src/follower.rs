//! Requests to a run from outside: stops, words that cannot wait, and changes of its work. They are
//! recorded in its session and in those of its subagents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use stepwell::model::{Kind, WorkAsked};
use stepwell::sessions::{GUARD, Notice, Subscription, Waker};
use stepwell::store::{Facts, Lease};
use stepwell::{Event, Recorded, Seq, SessionId, Stepwell};
use stepwell_agent::run::{RunEvent, Wisher};

use crate::request::Interrupt;

/// How long the log may be ahead of the note that says how far it goes: a run that records much does
/// not write its note each time.
const NOTED_WITHIN: Duration = Duration::from_millis(200);

/// The subagents of a run, and how far the log of each was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subagents(Arc<Mutex<Below>>);

#[derive(Debug, Default)]
struct Below {
    seen: BTreeMap<SessionId, Seq>,
    /// Reports their changes, while the run is followed.
    news: Option<Arc<Subscription>>,
}

impl Subagents {
    /// Notes the subagent that an event is about.
    pub(crate) fn note(&self, event: &RunEvent) {
        match event {
            RunEvent::Child { session, event } => {
                self.add(session);
                self.note(event);
            }
            RunEvent::Within { event, .. } => self.note(event),
            _ => {}
        }
    }

    fn add(&self, session: &SessionId) {
        let mut below = self.below();
        if below.seen.contains_key(session) {
            return;
        }
        below.seen.insert(session.clone(), Seq::ZERO);
        if let Some(news) = &below.news {
            news.add(session);
            // It may have been written to already.
            news.waker().wake();
        }
    }

    fn follow(&self, news: &Arc<Subscription>) {
        let mut below = self.below();
        below.seen.keys().for_each(|session| news.add(session));
        below.news = Some(Arc::clone(news));
    }

    fn below(&self) -> MutexGuard<'_, Below> {
        self.0.lock()
    }

    /// How far the log of each was read.
    fn seen(&self) -> BTreeMap<SessionId, Seq> {
        self.below().seen.clone()
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

/// Reads the log of a run for requests to stop and for words that cannot wait, whichever process or
/// machine recorded them.
pub(crate) struct Follower {
    over: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Follower {
    pub(crate) fn start(run: Followed) -> Option<Self> {
        // Without a follower the lease's keeper sees a stop, and words wait for the next call.
        let news = Arc::new(run.well.subscribe_to(&run.lease.session).ok()?);
        run.subagents.follow(&news);
        let (waker, over) = (news.waker(), Arc::new(AtomicBool::new(false)));
        let until = Arc::clone(&over);
        let named = std::thread::Builder::new().name("stepwell-follow".to_owned());
        let thread = named.spawn(move || run.follow(&news, &until)).ok()?;
        Some(Self { over, waker, thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // It is at its last look; a panic there is its own.
            let _ = thread.join();
        }
    }
}

/// What others record for whoever runs a session.
const KINDS: [Kind; 3] = [Kind::Said, Kind::StopAsked, Kind::WorkAsked];

impl Followed {
    #[expect(clippy::disallowed_methods, reason = "how often the note is written is real time")]
    fn follow(&self, news: &Subscription, over: &AtomicBool) {
        let top = &self.lease.session;
        let mut seen = self.well.store().info(top).map_or(Seq::ZERO, |it| it.head.seq);
        self.note_seen();
        // A request may have come since the lease was taken; earlier ones name another lease.
        self.carry_out(Seq::FIRST, seen);
        self.look_below();
        let mut ahead: Option<Instant> = None;
        while !over.load(Ordering::Relaxed) {
            let longest = ahead.map_or(GUARD, |since| NOTED_WITHIN.saturating_sub(since.elapsed()));
            match news.next(longest) {
                Ok(Some(Notice::Changed(change))) if change.session != *top => self.look_below(),
                Ok(Some(Notice::Changed(_))) => {
                    seen = self.look(&self.lease, seen);
                    ahead = ahead.or_else(|| Some(Instant::now()));
                }
                Ok(_) => {
                    seen = self.look(&self.lease, seen);
                    self.look_below();
                }
                // The store is away: the next look is not taken at once.
                Err(_) => std::thread::park_timeout(NOTED_WITHIN),
            }
            if ahead.is_some_and(|since| since.elapsed() >= NOTED_WITHIN) {
                self.note_seen();
                ahead = None;
            }
        }
        self.note_seen();
    }

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
        for (id, seen) in self.subagents.seen() {
            let Some(events) = self.since(&id, seen).filter(|events| !events.is_empty()) else {
                continue;
            };
            let Ok(info) = self.well.info(&id) else { continue };
            // One that has ended has no runner: nothing is done for it.
            let Some(held) = info.held else { continue };
            let (session, epoch, expires) = (id.clone(), held.epoch, held.expires);
            let lease = Lease { session, epoch, expires, stop_asked: false };
            let seen = self.heed(&lease, &events, seen);
            self.subagents.below().seen.insert(id, seen);
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
