//! What a store has acknowledged, and whether it is there.

use std::collections::{BTreeMap, BTreeSet};

use stepwell::{
    Append, Claim, Create, Created, Digest, Event, LEASE_TTL, Lease, Processes, Recorded, Search,
    Seq, SessionId, Span, SqliteStore, Store, SystemProcesses, Write,
};
use stepwell_torture::{Line, Load, Shape, bytes_of, word_of};

/// Ends a check with what is wrong.
macro_rules! ensure {
    ($holds:expr, $($what:tt)*) => {
        if !$holds {
            return Err(format!($($what)*));
        }
    };
}

/// What is wrong, in words.
pub(crate) type Check = Result<(), String>;

/// What was acknowledged, and what was only asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    sessions: BTreeMap<SessionId, Kept>,
    gone: BTreeSet<SessionId>,
    blobs: BTreeSet<u64>,
    /// Blobs that were seen to be there since they were acknowledged.
    seen: BTreeSet<u64>,
    /// What is being done and may or may not have happened.
    in_flight: Option<Line>,
    /// Sessions that may have been made.
    made: BTreeSet<SessionId>,
    /// Appends that may have happened: their answer was lost, or said that nobody
    /// knows.
    maybe: Vec<(SessionId, Load)>,
}

/// A session's appends, in order.
#[derive(Clone, Debug, Default)]
struct Kept {
    appends: Vec<(Load, Seq, Seq)>,
    /// Was it written to since it was last checked?
    touched: bool,
}

/// How much of a store is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The sessions that were written to since the last check.
    Touched,
    /// Everything, the file's own pages included.
    Whole,
}

impl Ledger {
    /// Writes down what the process said.
    pub(crate) fn hear(&mut self, line: &Line) {
        match line {
            Line::Creating(_) | Line::Trying(..) | Line::Putting(_) | Line::Purging(_) => {
                self.in_flight = Some(line.clone());
                return;
            }
            Line::Created(session) => {
                self.sessions.entry(session.clone()).or_default().touched = true;
                self.gone.remove(session);
            }
            Line::Kept(session, load, first, last) => {
                let kept = self.sessions.get_mut(session).unwrap();
                // Asked again, the store answers again.
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
            Line::Refused(refusal) if refusal.kind == "Io" => self.give_up(),
            _ => {}
        }
        self.in_flight = None;
    }

    /// Nobody will say how what is being done ended.
    pub(crate) fn give_up(&mut self) {
        match self.in_flight.take() {
            Some(Line::Creating(session)) => {
                self.made.insert(session);
            }
            Some(Line::Trying(session, load)) => self.maybe.push((session, load)),
            Some(Line::Purging(session)) => {
                // If it is there, it is whole.
                self.made.insert(session);
            }
            _ => {}
        }
    }

    /// Is everything there that was acknowledged, and nothing that was not asked
    /// for? Afterwards the ledger knows what became of what was in flight.
    pub(crate) fn check(&mut self, store: &SqliteStore, depth: Depth) -> Check {
        self.give_up();
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
            let there = store.exists(session).map_err(text)?;
            ensure!(!there, "{session} was purged or never made, and is there");
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
            let there = store.blob(&Digest::blake3(&bytes)).map_err(text)?;
            ensure!(there == bytes, "blob {token} says something else");
        }
        self.seen = self.blobs.clone();
        if depth == Depth::Whole {
            let wrong = store.integrity().map_err(text)?;
            ensure!(wrong.is_empty(), "the file: {wrong:?}");
        }
        Ok(())
    }

    /// Goes on where a dead process stopped: takes its lease, asks again for what may
    /// be lost, and appends something new. Had what was in flight landed?
    pub(crate) fn go_on(
        &mut self,
        store: &SqliteStore,
        session: &SessionId,
        token: u64,
    ) -> Result<bool, String> {
        let asked = match &self.in_flight {
            Some(Line::Trying(to, load)) if to == session => Some(load.clone()),
            _ => None,
        };
        let before = self.events();
        self.check(store, Depth::Touched)?;
        let landed = self.events() > before;
        let lease = if self.sessions.contains_key(session) {
            let lease = store.acquire(session, &claim()).map_err(text)?;
            self.hear(&Line::Leased(session.clone(), lease.epoch));
            lease
        } else {
            let lease = create(store, session).map_err(text)?;
            self.hear(&Line::Created(session.clone()));
            lease
        };
        // The same ids: what landed is answered again, what did not is recorded now.
        if let Some(load) = asked {
            // The blob that it names was acknowledged before.
            self.append(store, &lease, load)?;
        }
        let load =
            Load { token, shape: Shape::One, by: "the test".to_owned(), epoch: lease.epoch.get() };
        self.append(store, &lease, load)?;
        store.release(&lease).map_err(text)?;
        self.check(store, Depth::Touched)?;
        Ok(landed)
    }

    fn append(&mut self, store: &SqliteStore, lease: &Lease, load: Load) -> Check {
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
                events: load.events(),
            }))
            .map_err(text)?;
        if let Some(place) = known {
            ensure!(
                place == (written.first, written.last),
                "asked again for {load:?}, which stands at {place:?}: {written:?}"
            );
        }
        self.hear(&Line::Kept(session, load, written.first, written.last));
        Ok(())
    }

    /// How many events were acknowledged and are kept.
    pub(crate) fn events(&self) -> u64 {
        self.sessions
            .values()
            .map(|kept| kept.appends.last().map_or(1, |(_, _, last)| last.get()))
            .sum()
    }
}

fn check_session(
    store: &SqliteStore,
    session: &SessionId,
    kept: &mut Kept,
    maybe: &mut Vec<(SessionId, Load)>,
) -> Check {
    let verdict = store.verify(session).map_err(text)?;
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
            return Err(format!("found {load:?}, where {next:?} should stand"));
        };
        maybe.remove(asked);
    }
    ensure!(next.is_none(), "{next:?} is lost");
    let head = store.standing(session).map_err(text)?;
    ensure!(head.damage.is_none(), "{:?}", head.damage);
    ensure!(
        head.head.seq.get() == events.len() as u64,
        "its head is at {}, its log ends at {}",
        head.head.seq,
        events.len()
    );
    if let Some((load, first, _)) = found.last() {
        let hits = store.search(&Search::new(word_of(load.token)));
        let hits = hits.map_err(text)?.hits;
        ensure!(
            hits.iter().any(|h| h.session == *session && h.seq == *first),
            "a search does not find {load:?}: {hits:?}"
        );
    }
    kept.appends = found;
    Ok(())
}

/// The appends of a log, each whole, with where it stands.
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
        let Some(load) = Load::begun_by(&begin.event) else {
            return Err(format!("event {} begins no append", begin.seq));
        };
        let expected = load.events();
        let whole = rest.len() >= expected.len()
            && rest
                .iter()
                .zip(&expected)
                .all(|(is, should)| is.event == should.event && is.id == should.id);
        ensure!(whole, "{load:?} at {} is not whole", begin.seq);
        let (done, left) = rest.split_at(expected.len());
        let last = done.last().map_or(begin.seq, |event| event.seq);
        loads.push((load, begin.seq, last));
        rest = left;
    }
    Ok(loads)
}

pub(crate) fn claim() -> Claim {
    Claim { holder: SystemProcesses.this(), ttl: LEASE_TTL }
}

pub(crate) fn create(store: &SqliteStore, session: &SessionId) -> stepwell::Result<Lease> {
    let written = store.write(Write::Create(Create {
        created: Created::new(session.clone(), "torture"),
        event_id: None,
        at: None,
        claim: Some(claim()),
    }))?;
    Ok(written.lease.unwrap())
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err by name")]
pub(crate) fn text(error: stepwell::Error) -> String {
    format!("{error} ({error:?})")
}
