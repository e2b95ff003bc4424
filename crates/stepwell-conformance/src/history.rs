//! Random histories, and a plain model that every store must equal.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use stepwell::log::State;
use stepwell::model::{Compacted, Scope, Undone};
use stepwell::sessions::Deps;
use stepwell::store::Span;
use stepwell::store::query::{Filter, Query, TrashScope};
use stepwell::{Event, Lane, Message, Seq, Session, SessionId, Stepwell, Store, View};

/// An operation of a user. Numbers are fractions of what exists, in 1/256.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum Op {
    Append { session: u8, texts: Vec<String> },
    Fork { session: u8, at: u8 },
    Rewind { session: u8, to: u8, scope: Scope },
    UndoRewind { session: u8, which: u8 },
    Compact { session: u8, from: u8, to: u8 },
    UndoCompaction { session: u8, which: u8 },
    Trash { session: u8 },
    Restore { session: u8 },
    Purge { session: u8 },
}

/// Any operation.
pub fn op() -> impl Strategy<Value = Op> {
    let scope = prop::sample::select(vec![Scope::Chat, Scope::Files, Scope::Both]);
    prop_oneof![
        8 => (any::<u8>(), prop::collection::vec("[a-z]{1,4}", 1..4))
            .prop_map(|(session, texts)| Op::Append { session, texts }),
        2 => any::<[u8; 2]>().prop_map(|[session, at]| Op::Fork { session, at }),
        2 => (any::<[u8; 2]>(), scope)
            .prop_map(|([session, to], scope)| Op::Rewind { session, to, scope }),
        2 => any::<[u8; 2]>().prop_map(|[session, which]| Op::UndoRewind { session, which }),
        2 => any::<[u8; 3]>().prop_map(|[session, from, to]| Op::Compact { session, from, to }),
        2 => any::<[u8; 2]>().prop_map(|[session, which]| Op::UndoCompaction { session, which }),
        1 => any::<u8>().prop_map(|session| Op::Trash { session }),
        1 => any::<u8>().prop_map(|session| Op::Restore { session }),
        1 => any::<u8>().prop_map(|session| Op::Purge { session }),
    ]
}

/// The view at one moment: its live messages, and its live compactions in order, each with its
/// range and summary.
#[derive(Clone, Debug, Default)]
struct Moment {
    live: Vec<(u64, String)>,
    compactions: Vec<(u64, (u64, u64), String)>,
}

/// The plain model of a session, which keeps every moment.
#[derive(Clone, Debug)]
struct Plain {
    id: SessionId,
    /// The moment after each event; the first is before any.
    moments: Vec<Moment>,
    /// Rewinds that are not undone on the live branch, with their targets.
    rewinds: Vec<u64>,
    trashed: bool,
}

impl Plain {
    fn seq(&self) -> u64 {
        self.moments.len() as u64 - 1
    }

    fn now(&self) -> Moment {
        self.moments.last().unwrap().clone()
    }

    fn push(&mut self, moment: Moment) {
        self.moments.push(moment);
    }

    /// What the model would be sent.
    fn shown(&self) -> Vec<String> {
        let Moment { live, compactions } = self.now();
        let mut items: Vec<(u64, String)> = live;
        // A compaction covers the messages and summaries that existed when it was made.
        for (made, (from, to), summary) in &compactions {
            let covered = |item: &(u64, String)| (*from..=*to).contains(&item.0) && item.0 < *made;
            if let Some(first) = items.iter().position(covered) {
                items.retain(|item| !covered(item));
                items.insert(first, (*to, summary.clone()));
            }
        }
        items.into_iter().map(|(_, text)| text).collect()
    }
}

struct ModelTest {
    well: Stepwell,
    plain: Vec<Plain>,
    sessions: BTreeMap<SessionId, Session>,
}

impl ModelTest {
    fn new(well: Stepwell) -> Self {
        let mut test = Self { well, plain: Vec::new(), sessions: BTreeMap::new() };
        let session = test.well.create(test.well.draft("root")).unwrap();
        test.adopt(session, vec![Moment::default(); 2]);
        test
    }

    fn adopt(&mut self, session: Session, moments: Vec<Moment>) {
        let id = session.id().clone();
        self.sessions.insert(id.clone(), session);
        self.plain.push(Plain { id, moments, rewinds: Vec::new(), trashed: false });
    }

    /// The session at a fraction, if there is one, with its model.
    fn pick(&mut self, share: u8) -> Option<(usize, Session)> {
        let count = self.plain.len();
        let index = usize::from(share) * count / 256;
        let plain = self.plain.get(index)?;
        if plain.trashed {
            return None;
        }
        let id = plain.id.clone();
        let session = match self.sessions.remove(&id) {
            Some(session) => session,
            None => self.well.resume(&id).unwrap(),
        };
        // A resume records that the session runs.
        let seq = session.info().unwrap().head.seq.get();
        let plain = &mut self.plain[index];
        while plain.seq() < seq {
            plain.push(plain.now());
        }
        Some((index, session))
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Append { session, texts } => self.with(*session, |plain, session| {
                let events = texts.iter().map(|text| Message::user(text.clone()).into());
                session.append_all(events.collect()).unwrap();
                for text in texts {
                    let mut moment = plain.now();
                    moment.live.push((plain.seq() + 1, text.clone()));
                    plain.push(moment);
                }
            }),
            Op::Fork { session, at } => {
                let Some((index, parent)) = self.pick(*session) else { return };
                let plain = self.plain[index].clone();
                let at = 1 + u64::from(*at) * plain.seq() / 256;
                let fork = self.well.fork(parent.id(), Some(Seq::new(at))).unwrap();
                self.sessions.insert(plain.id, parent);
                let mut moments = plain.moments[..=usize::try_from(at).unwrap()].to_vec();
                moments.push(moments.last().unwrap().clone());
                self.adopt(fork, moments);
            }
            Op::Rewind { session, to, scope } => self.with(*session, |plain, session| {
                let to = 1 + u64::from(*to) * plain.seq() / 256;
                let seq = session.rewind(Seq::new(to), *scope).unwrap();
                let moved = if *scope == Scope::Files { plain.seq() } else { to };
                plain.rewinds.push(seq.get());
                plain.push(plain.moments[usize::try_from(moved).unwrap()].clone());
            }),
            Op::UndoRewind { session, which } => self.with(*session, |plain, session| {
                let count = plain.rewinds.len();
                let Some(of) = plain.rewinds.get(usize::from(*which) * count / 256).copied() else {
                    return;
                };
                // A second undo on the same branch is refused, and changes nothing.
                if session.undo_rewind(Seq::new(of)).is_err() {
                    return;
                }
                let events = session.events(Span::last(1)).unwrap().events;
                let Event::Undone(Undone::Rewind { scope, .. }) = &events[0].event else {
                    panic!("the last event is {:?}", events[0]);
                };
                let back = if *scope == Scope::Files { plain.seq() } else { of - 1 };
                plain.rewinds.push(events[0].seq.get());
                plain.push(plain.moments[usize::try_from(back).unwrap()].clone());
            }),
            Op::Compact { session, from, to } => self.with(*session, |plain, session| {
                let share = |part: u8| 1 + u64::from(part) * plain.seq() / 256;
                let (from, to) = (share(*from.min(to)), share(*from.max(to)));
                let summary = format!("summary {from}..{to}");
                let seq = session.append(compacted(from, to, &summary)).unwrap().get();
                let mut moment = plain.now();
                moment.compactions.push((seq, (from, to), summary));
                plain.push(moment);
            }),
            Op::UndoCompaction { session, which } => self.with(*session, |plain, session| {
                let mut moment = plain.now();
                let count = moment.compactions.len();
                let index = usize::from(*which) * count / 256;
                let Some((of, ..)) = moment.compactions.get(index).cloned() else { return };
                session.undo_compaction(Seq::new(of)).unwrap();
                moment.compactions.remove(index);
                plain.push(moment);
            }),
            Op::Trash { session } => {
                let Some((index, open)) = self.pick(*session) else { return };
                drop(open);
                let id = self.plain[index].id.clone();
                self.well.delete(&id).unwrap();
                self.plain[index].trashed = true;
            }
            Op::Restore { session } => {
                let index = usize::from(*session) * self.plain.len() / 256;
                let Some(plain) = self.plain.get_mut(index).filter(|plain| plain.trashed) else {
                    return;
                };
                self.well.restore(&plain.id).unwrap();
                plain.trashed = false;
            }
            Op::Purge { session } => {
                // The root stays, so that there is always a session.
                let Some((index, open)) = self.pick(*session) else { return };
                if index == 0 {
                    self.sessions.insert(open.id().clone(), open);
                    return;
                }
                drop(open);
                let plain = self.plain.remove(index);
                self.well.purge(&plain.id).unwrap();
            }
        }
    }

    fn with(&mut self, share: u8, work: impl FnOnce(&mut Plain, &mut Session)) {
        if let Some((index, mut session)) = self.pick(share) {
            work(&mut self.plain[index], &mut session);
            self.sessions.insert(session.id().clone(), session);
        }
    }

    /// Compares everything with the model.
    fn check(&self) {
        let store = self.well.store();
        for plain in &self.plain {
            let id = &plain.id;
            let events = store.events(id, Span::ALL).unwrap().intact(id).unwrap();
            let seqs: Vec<u64> = events.iter().map(|event| event.seq.get()).collect();
            assert_eq!(seqs, (1..=plain.seq()).collect::<Vec<_>>(), "{id}");
            let backwards = store.events(id, Span::last(usize::MAX)).unwrap().intact(id).unwrap();
            assert!(backwards.iter().rev().eq(&events), "{id}");
            let state = State::fold(&events).unwrap();
            assert_eq!(store.lanes(id).unwrap(), state.lanes, "{id}");
            let info = store.info(id).unwrap();
            let folded = if info.held.is_some() { state.head } else { state.head.without_runner() };
            assert_eq!(info.head, folded, "{id}");
            assert_eq!(info.trashed_at.is_some(), plain.trashed, "{id}");
            assert!(store.maintain().verify(id).unwrap().is_sound(), "{id}");
            let view = View::of(&Lane::main(), events);
            let texts: Vec<String> =
                view.messages.iter().map(|shown| shown.message.text()).collect();
            assert_eq!(texts, plain.shown(), "{id}");
        }
    }

    fn listed(&self, place: TrashScope) -> Vec<SessionId> {
        let query = Query { filter: Filter { place, ..Filter::default() }, ..Query::default() };
        let page = self.well.list(&query).unwrap();
        page.sessions.into_iter().map(|info| info.head.id).collect()
    }

    fn check_lists(&self, before: &[SessionId]) {
        for (place, trashed) in [(TrashScope::Kept, false), (TrashScope::Trash, true)] {
            let mut listed = self.listed(place);
            listed.retain(|id| !before.contains(id));
            let mut known: Vec<_> =
                self.plain.iter().filter(|p| p.trashed == trashed).map(|p| p.id.clone()).collect();
            listed.sort();
            known.sort();
            assert_eq!(listed, known);
        }
    }
}

fn compacted(from: u64, to: u64, summary: &str) -> Compacted {
    Compacted {
        summary: Some(summary.to_owned()),
        ..Compacted::new(Lane::main(), Seq::new(from), Seq::new(to))
    }
}

fn well(store: Arc<dyn Store>) -> Stepwell {
    Stepwell::with(store, Deps::default())
}

/// Applies a history to a store and to the model, and compares them. Earlier content of the store
/// stays untouched.
pub fn histories(store: &Arc<dyn Store>, ops: &[Op]) {
    let well = well(Arc::clone(store));
    let everywhere = Query {
        filter: Filter { place: TrashScope::Anywhere, ..Filter::default() },
        ..Query::default()
    };
    let before: Vec<_> =
        well.list(&everywhere).unwrap().sessions.into_iter().map(|s| s.head.id).collect();
    let mut test = ModelTest::new(well);
    ops.iter().for_each(|op| test.apply(op));
    test.check();
    test.check_lists(&before);
}
