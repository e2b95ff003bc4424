//! Random histories against a plain model, round trips, and views that stay valid.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::Config;
use stepwell::model::{Compacted, Restored, Rewound, Role, Scope, Time, Undone};
use stepwell::sqlite::SqliteStore;
use stepwell::store::Span;
use stepwell::{Event, Lane, Message, Recorded, Seq, Stepwell, Store, View};
use stepwell_conformance::generate;
use stepwell_conformance::history::{histories, op};

/// The fewest random cases of each property; `PROPTEST_CASES` can ask for more.
const CASES: u32 = 1_000;

fn config() -> Config {
    let usual = Config::default();
    Config { cases: usual.cases.max(CASES), failure_persistence: None, ..usual }
}

#[test]
fn random_histories_on_disk_equal_the_plain_model() {
    // Cases share a store until it is full of sessions, so that their sessions also meet.
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
        // A view of any prefix must be valid, too: a run may be interrupted anywhere.
        let cut = events.len() / 2;
        let view = View::of(&Lane::main(), events[..cut].to_vec());
        prop_assert!(View::check(view.messages.iter().map(|shown| &shown.message)).is_ok());
    }

    #[test]
    fn costs_add_up_exactly_whatever_their_order(costs in prop::collection::vec(generate::money(), 0..50)) {
        let forward: stepwell::model::Money = costs.iter().copied().sum();
        let backward: stepwell::model::Money = costs.iter().rev().copied().sum();
        let picos: i128 = costs.iter().map(|cost| cost.as_picos()).sum();
        prop_assert_eq!(forward, backward);
        prop_assert_eq!(forward.as_picos(), picos);
    }
}

/// A turn of a conversation, with calls and results out of a few ids, so that they match, miss and
/// repeat each other.
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
            message.parts.extend(text.map(stepwell::model::Part::text));
            for id in results {
                message.parts.extend(Message::tool_result(id, "r").parts);
            }
            calls.into_iter().fold(message, |m, id| m.calling(id, "t", "{}")).into()
        });
    let seq = || (1_u64..60).prop_map(Seq::new);
    prop_oneof![
        10 => message,
        1 => (seq(), seq(), prop::option::of("[a-z ]{0,3}")).prop_map(|(from, to, summary)| {
            Compacted { summary, ..Compacted::new(Lane::main(), from, to) }.into()
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

/// Rewinds can only go back.
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
