//! Random histories against a plain model, round trips, and views that stay valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::Config;
use stepwell::{
    Compacted, Event, Filter, Lane, MemoryStore, Message, Place, Query, Recorded, Restored,
    Rewound, Role, Scope, Seq, Session, SessionId, Span, SqliteStore, State, Stepwell, Store,
    Surroundings, Time, Undone, View,
};
use stepwell_conformance::generate;

/// How many random cases each property sees at least; `PROPTEST_CASES` asks for more.
const CASES: u32 = 1_000;

fn config() -> Config {
    let usual = Config::default();
    Config { cases: usual.cases.max(CASES), failure_persistence: None, ..usual }
}

/// Something that a user does. Numbers are shares of what there is, in 1/256.
#[derive(Clone, Debug)]
enum Op {
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

fn op() -> impl Strategy<Value = Op> {
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

/// What a session is shown at one moment: its live messages, and its live compactions
/// in order, each with its range and summary.
#[derive(Clone, Debug, Default)]
struct Moment {
    live: Vec<(u64, String)>,
    compactions: Vec<(u64, (u64, u64), String)>,
}

/// A session, the plain way: every moment that it went through is kept whole.
#[derive(Clone, Debug)]
struct Plain {
    id: SessionId,
    /// The moment after each event; the first is before any.
    moments: Vec<Moment>,
    /// Rewinds that were not taken back on the live branch, with their targets.
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

    /// What the model would be shown.
    fn shown(&self) -> Vec<String> {
        let Moment { live, compactions } = self.now();
        let mut items: Vec<(u64, String)> = live;
        // A compaction sees the messages and summaries that were there when it was made.
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

struct World {
    well: Stepwell,
    plain: Vec<Plain>,
    sessions: BTreeMap<SessionId, Session>,
}

impl World {
    fn new(well: Stepwell) -> Self {
        let mut world = Self { well, plain: Vec::new(), sessions: BTreeMap::new() };
        let session = world.well.create(world.well.draft("root")).unwrap();
        world.adopt(session, vec![Moment::default(); 2]);
        world
    }

    fn adopt(&mut self, session: Session, moments: Vec<Moment>) {
        let id = session.id().clone();
        self.sessions.insert(id.clone(), session);
        self.plain.push(Plain { id, moments, rewinds: Vec::new(), trashed: false });
    }

    /// The session that a share means, if there is one, with its model.
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
        // Taking a session up records that it runs.
        let seq = session.standing().unwrap().head.seq.get();
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
                // Taking one back twice on the same branch is refused; then nothing changes.
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
                // The root stays, so that there is always something to do.
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

    /// Everything that can be asked equals what the model says.
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
            let standing = store.standing(id).unwrap();
            let folded =
                if standing.held.is_some() { state.head } else { state.head.without_runner() };
            assert_eq!(standing.head, folded, "{id}");
            assert_eq!(standing.trashed_at.is_some(), plain.trashed, "{id}");
            assert!(store.verify(id).unwrap().is_sound(), "{id}");
            let view = View::of(&Lane::main(), events);
            let texts: Vec<String> =
                view.messages.iter().map(|shown| shown.message.text()).collect();
            assert_eq!(texts, plain.shown(), "{id}");
        }
    }

    fn listed(&self, place: Place) -> Vec<SessionId> {
        let query = Query { filter: Filter { place, ..Filter::default() }, ..Query::default() };
        let page = self.well.list(&query).unwrap();
        page.sessions.into_iter().map(|standing| standing.head.id).collect()
    }

    fn check_lists(&self, before: &[SessionId]) {
        for (place, trashed) in [(Place::Kept, false), (Place::Trash, true)] {
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
    Stepwell::with(store, Surroundings::default())
}

fn histories(store: &Arc<dyn Store>, ops: &[Op]) {
    let well = well(Arc::clone(store));
    let everywhere = Query {
        filter: Filter { place: Place::Anywhere, ..Filter::default() },
        ..Query::default()
    };
    let before: Vec<_> =
        well.list(&everywhere).unwrap().sessions.into_iter().map(|s| s.head.id).collect();
    let mut world = World::new(well);
    ops.iter().for_each(|op| world.apply(op));
    world.check();
    world.check_lists(&before);
}

#[test]
fn random_histories_in_memory_equal_the_plain_model() {
    proptest!(config(), |(ops in prop::collection::vec(op(), 1..40))| {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        histories(&store, &ops);
    });
}

#[test]
fn random_histories_on_disk_equal_the_plain_model() {
    // Cases share a store until it is full of sessions, so that they also meet each other's.
    let mut shared: Option<(tempfile::TempDir, Arc<dyn Store>, u32)> = None;
    let mut runner = proptest::test_runner::TestRunner::new(config());
    let shared = std::cell::RefCell::new(&mut shared);
    runner
        .run(&prop::collection::vec(op(), 1..30), |ops| {
            let mut shared = shared.borrow_mut();
            if shared.as_ref().is_none_or(|(_, _, uses)| *uses >= 25) {
                let folder = tempfile::tempdir().unwrap();
                let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
                **shared = Some((folder, store, 0));
            }
            let (_, store, uses) = shared.as_mut().unwrap();
            *uses += 1;
            histories(store, &ops);
            Ok(())
        })
        .unwrap();
}

fn recorded(seq: u64, event: Event) -> Recorded {
    Recorded { seq: Seq::new(seq), at: Time::EPOCH, id: None, event }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_event_survives_json(event in generate::event()) {
        let before = recorded(7, event);
        let text = serde_json::to_string(&before).unwrap();
        let after: Recorded = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(after, before);
    }

    #[test]
    fn every_message_survives_a_store(messages in prop::collection::vec(generate::message(), 1..5)) {
        let well = Stepwell::in_memory();
        let session = well.create(well.draft("t")).unwrap();
        session.append_all(messages.iter().cloned().map(Into::into).collect()).unwrap();
        let read = session.events(Span::after(Seq::FIRST)).unwrap().intact(session.id()).unwrap();
        let read: Vec<Event> = read.into_iter().map(|event| event.event).collect();
        let written: Vec<Event> = messages.into_iter().map(Event::from).collect();
        prop_assert_eq!(read, written);
    }

    #[test]
    fn a_view_is_always_a_valid_conversation(events in prop::collection::vec(turn(), 0..40)) {
        let events: Vec<Recorded> =
            events.into_iter().zip(1..).map(|(event, seq)| recorded(seq, bounded(event, seq))).collect();
        let view = View::of(&Lane::main(), events.clone());
        let valid = View::check(view.messages.iter().map(|shown| &shown.message));
        prop_assert!(valid.is_ok(), "{:?}\n{:#?}", valid, view);
        // A view of any prefix is valid too: a run may be cut off anywhere.
        let cut = events.len() / 2;
        let view = View::of(&Lane::main(), events[..cut].to_vec());
        prop_assert!(View::check(view.messages.iter().map(|shown| &shown.message)).is_ok());
    }

    #[test]
    fn costs_add_up_exactly_whatever_their_order(costs in prop::collection::vec(generate::money(), 0..50)) {
        let forward: stepwell::Money = costs.iter().copied().sum();
        let backward: stepwell::Money = costs.iter().rev().copied().sum();
        let picos: i128 = costs.iter().map(|cost| cost.as_picos()).sum();
        prop_assert_eq!(forward, backward);
        prop_assert_eq!(forward.as_picos(), picos);
    }
}

/// A turn of a conversation, with calls and results out of a few ids, so that they
/// meet, miss and repeat each other.
fn turn() -> impl Strategy<Value = Event> {
    let id = || "[abc]";
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    let message = (
        role,
        prop::option::of(" {0,2}[a-z]{0,3}"),
        prop::collection::vec(id(), 0..3),
        prop::collection::vec(id(), 0..3),
    )
        .prop_map(|(role, text, calls, results)| {
            let mut message = Message::new(role, vec![]);
            message.parts.extend(text.map(stepwell::Part::text));
            for id in results {
                message.parts.extend(Message::tool_result(id, "r").parts);
            }
            calls.into_iter().fold(message, |m, id| m.calling(id, "t", "{}")).into()
        });
    let seq = || (1_u64..60).prop_map(Seq::new);
    prop_oneof![
        10 => message,
        1 => (seq(), seq(), prop::option::of("[a-z ]{0,3}")).prop_map(|(from, to, summary)| {
            Compacted { summary, ..compacted(from.get(), to.get(), "") }.into()
        }),
        1 => seq().prop_map(|to| {
            Rewound { to, scope: Scope::Chat, restored: Restored::default() }.into()
        }),
        1 => seq().prop_map(|of| {
            Undone::Rewind { of, scope: Scope::Chat, restored: Restored::default() }.into()
        }),
        1 => seq().prop_map(|of| Undone::Compaction { of }.into()),
    ]
}

/// A move can only go back.
fn bounded(event: Event, seq: u64) -> Event {
    let last = Seq::new(seq - 1);
    match event {
        Event::Rewound(mut rewound) => {
            rewound.to = rewound.to.min(last);
            rewound.into()
        }
        Event::Undone(Undone::Rewind { of, scope, restored }) => {
            Undone::Rewind { of: of.min(last), scope, restored }.into()
        }
        other => other,
    }
}
