//! What a store has acknowledged, and whether it still has it.

use std::collections::{BTreeMap, BTreeSet};

use stepwell::log::Redactor;
use stepwell::model::Digest;
use stepwell::store::query::Search;
use stepwell::store::{
    Append, Create, LEASE_TTL, Lease, LeaseRequest, Processes, Span, SystemProcesses, Write,
};
use stepwell::{Created, Event, Recorded, Seq, SessionId, Store};
use stepwell_torture::{Line, Load, Shape, bytes_of, word_of};

/// Returns an error from a check unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($what:tt)*) => {
        if !$holds {
            return Err(format!($($what)*));
        }
    };
}

/// The result of a check, with a message.
pub(crate) type Check = Result<(), String>;

/// What was acknowledged, and what was only requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    sessions: BTreeMap<SessionId, Kept>,
    gone: BTreeSet<SessionId>,
    blobs: BTreeSet<u64>,
    /// Blobs that a check has found since they were acknowledged.
    seen: BTreeSet<u64>,
    /// The operation in progress, which may or may not have happened.
    in_flight: Option<Line>,
    /// Sessions that may exist.
    made: BTreeSet<SessionId>,
    /// Appends that may have happened: their answer was lost, or was an error that leaves it
    /// open.
    maybe: Vec<(SessionId, Load)>,
}

/// A session's appends, in order.
#[derive(Clone, Debug, Default)]
struct Kept {
    appends: Vec<(Load, Seq, Seq)>,
    /// Whether it was written to since the last check.
    touched: bool,
}

/// How much of a store a check reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The sessions that were written to since the last check.
    Touched,
    /// Everything, the file's own pages included.
    Whole,
}

impl Ledger {
    /// Records a line of the process.
    pub(crate) fn record(&mut self, line: &Line) {
        match line {
            Line::Creating(_) | Line::Appending(..) | Line::Putting(_) | Line::Purging(_) => {
                self.in_flight = Some(line.clone());
                return;
            }
            Line::Created(session) => {
                self.sessions.entry(session.clone()).or_default().touched = true;
                self.gone.remove(session);
            }
            Line::Appended(session, load, first, last) => {
                let kept = self.sessions.get_mut(session).unwrap();
                // A repeated request gets the same answer.
                if kept.appends.iter().all(|(known, ..)| known != load) {
                    kept.appends.push((load.clone(), *first, *last));
                }
                self.maybe.retain(|(_, maybe)| maybe != load);
                kept.touched = true;
            }
            Line::Put(token) => {
                self.blobs.insert(*token);
            }
            Line::Purged(session) => {
                self.sessions.remove(session);
                self.gone.insert(session.clone());
            }
            Line::Refused(refusal) if refusal.kind == "Io" => self.mark_unknown(),
            _ => {}
        }
        self.in_flight = None;
    }

    /// The outcome of the operation in progress will never be known.
    pub(crate) fn mark_unknown(&mut self) {
        match self.in_flight.take() {
            Some(Line::Creating(session)) => {
                self.made.insert(session);
            }
            Some(Line::Appending(session, load)) => self.maybe.push((session, load)),
            Some(Line::Purging(session)) => {
                // If it exists, it is complete.
                self.made.insert(session);
            }
            _ => {}
        }
    }

    /// Checks that the store has everything that was acknowledged, and nothing that was not
    /// requested. Afterwards the outcome of operations in flight is known.
    pub(crate) fn check(&mut self, store: &dyn Store, depth: Depth) -> Check {
        self.mark_unknown();
        ensure!(self.maybe.len() <= 1, "{} appends are in flight", self.maybe.len());
        for session in std::mem::take(&mut self.made) {
            if store.exists(&session).map_err(text)? {
                self.sessions.entry(session).or_default().touched = true;
            } else {
                self.sessions.remove(&session);
                self.gone.insert(session);
            }
        }
        for session in &self.gone {
            let exists = store.exists(session).map_err(text)?;
            ensure!(!exists, "{session} was purged or never created, but exists");
        }
        let mut maybe = std::mem::take(&mut self.maybe);
        for (session, kept) in &mut self.sessions {
            if depth == Depth::Touched && !kept.touched && maybe.iter().all(|(s, _)| s != session) {
                continue;
            }
            check_session(store, session, kept, &mut maybe)
                .map_err(|what| format!("{session}: {what}"))?;
            kept.touched = false;
        }
        for token in &self.blobs {
            if depth == Depth::Touched && self.seen.contains(token) {
                continue;
            }
            let bytes = bytes_of(*token);
            let there = store.blob(&Digest::of(&bytes)).map_err(text)?;
            ensure!(there == bytes, "blob {token} has other content");
        }
        self.seen = self.blobs.clone();
        if depth == Depth::Whole {
            let wrong = store.maintain().integrity().map_err(text)?;
            ensure!(wrong.is_empty(), "the file: {wrong:?}");
        }
        Ok(())
    }

    /// Continues where a killed process stopped: acquires its lease, repeats the append that may
    /// be lost, and appends something new. Returns whether the append in flight had landed.
    pub(crate) fn resume(
        &mut self,
        store: &dyn Store,
        session: &SessionId,
        token: u64,
    ) -> Result<bool, String> {
        let asked = match &self.in_flight {
            Some(Line::Appending(to, load)) if to == session => Some(load.clone()),
            _ => None,
        };
        let before = self.events();
        self.check(store, Depth::Touched)?;
        let landed = self.events() > before;
        let lease = if self.sessions.contains_key(session) {
            let lease = store.acquire(session, &claim()).map_err(text)?;
            self.record(&Line::Leased(session.clone(), lease.epoch));
            lease
        } else {
            let lease = create(store, session).map_err(text)?;
            self.record(&Line::Created(session.clone()));
            lease
        };
        // The same ids: an append that landed gets the same answer, another is recorded now.
        if let Some(load) = asked {
            // Its blob was acknowledged before.
            self.append(store, &lease, load)?;
        }
        let load =
            Load { token, shape: Shape::One, by: "the test".to_owned(), epoch: lease.epoch.get() };
        self.append(store, &lease, load)?;
        store.release(&lease).map_err(text)?;
        self.check(store, Depth::Touched)?;
        Ok(landed)
    }

    fn append(&mut self, store: &dyn Store, lease: &Lease, load: Load) -> Check {
        let session = lease.session.clone();
        let known = self.sessions[&session].appends.iter();
        let known = known
            .filter(|(known, ..)| *known == load)
            .map(|&(_, first, last)| (first, last))
            .next();
        let written = store
            .write(Write::Append(Append {
                session: session.clone(),
                epoch: Some(lease.epoch),
                expected: None,
                events: load.events().into(),
            }))
            .map_err(text)?;
        if let Some(range) = known {
            ensure!(
                range == (written.first, written.last),
                "repeated {load:?}, which is at {range:?}: {written:?}"
            );
        }
        self.record(&Line::Appended(session, load, written.first, written.last));
        Ok(())
    }

    /// The number of acknowledged events that still exist.
    pub(crate) fn events(&self) -> u64 {
        self.sessions
            .values()
            .map(|kept| kept.appends.last().map_or(1, |(_, _, last)| last.get()))
            .sum()
    }
}

fn check_session(
    store: &dyn Store,
    session: &SessionId,
    kept: &mut Kept,
    maybe: &mut Vec<(SessionId, Load)>,
) -> Check {
    let verdict = store.maintain().verify(session).map_err(text)?;
    ensure!(verdict.is_sound(), "{verdict:?}");
    let events = store.events(session, Span::ALL).map_err(text)?;
    let events = events.intact(session).map_err(text)?;
    let found = loads_of(&events)?;
    let mut acknowledged = kept.appends.iter();
    let mut next = acknowledged.next();
    for load in &found {
        if next == Some(load) {
            next = acknowledged.next();
            continue;
        }
        let asked = maybe.iter().position(|m| m.0 == *session && m.1 == load.0);
        let Some(asked) = asked else {
            return Err(format!("found {load:?}, expected {next:?}"));
        };
        maybe.remove(asked);
    }
    ensure!(next.is_none(), "{next:?} is lost");
    let head = store.info(session).map_err(text)?;
    ensure!(head.damage.is_none(), "{:?}", head.damage);
    ensure!(
        head.head.seq.get() == events.len() as u64,
        "the head is at {}, but the log ends at {}",
        head.head.seq,
        events.len()
    );
    if let Some((load, first, _)) = found.last() {
        let hits = store.search(&Search::new(word_of(load.token)), &Redactor::default());
        let hits = hits.map_err(text)?.hits;
        ensure!(
            hits.iter().any(|h| h.session == *session && h.seq == *first),
            "a search does not find {load:?}: {hits:?}"
        );
    }
    kept.appends = found;
    Ok(())
}

/// The appends of a log, each complete, with its first and last seq.
pub(crate) fn loads_of(events: &[Recorded]) -> Result<Vec<(Load, Seq, Seq)>, String> {
    for (event, seq) in events.iter().zip(1..) {
        ensure!(event.seq == Seq::new(seq), "event {seq} has seq {}", event.seq);
    }
    let Some((first, mut rest)) = events.split_first() else {
        return Err("the session has no events".to_owned());
    };
    ensure!(matches!(first.event, Event::Created(_)), "the first event is {first:?}");
    let mut loads = Vec::new();
    while let Some(begin) = rest.first() {
        let Some(load) = Load::from_first_event(&begin.event) else {
            return Err(format!("event {} does not start an append", begin.seq));
        };
        let expected = load.events();
        let complete = rest.len() >= expected.len()
            && rest
                .iter()
                .zip(&expected)
                .all(|(is, should)| is.event == should.event && is.id == should.id);
        ensure!(complete, "{load:?} at {} is incomplete", begin.seq);
        let (done, left) = rest.split_at(expected.len());
        let last = done.last().map_or(begin.seq, |event| event.seq);
        loads.push((load, begin.seq, last));
        rest = left;
    }
    Ok(loads)
}

pub(crate) fn claim() -> LeaseRequest {
    LeaseRequest { holder: SystemProcesses.this(), ttl: LEASE_TTL }
}

pub(crate) fn create(store: &dyn Store, session: &SessionId) -> stepwell::Result<Lease> {
    let written = store.write(Write::Create(Create {
        created: Created::new(session.clone(), "torture"),
        event_id: None,
        at: None,
        claim: Some(claim()),
    }))?;
    Ok(written.lease.unwrap())
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err by name")]
pub(crate) fn text(error: stepwell::Error) -> String {
    format!("{error} ({error:?})")
}
