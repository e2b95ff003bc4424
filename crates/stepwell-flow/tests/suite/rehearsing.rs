//! What a flow would do next, found without doing it.

use std::collections::BTreeMap;

use stepwell::Seq;
use stepwell_agent::redact::Redactor;
use stepwell_flow::spec::Spec;
use stepwell_flow::{History, Upcoming, rehearse};

use crate::shop::{Shop, id};
use crate::small;

fn upcoming(shop: &Shop) -> Vec<Upcoming> {
    let spec = Spec::parse(&shop.spec, "spec.yaml", &BTreeMap::new()).unwrap().spec;
    let well = shop.well();
    let session = well.hold(&id()).unwrap();
    let history = History::read(&session).unwrap();
    let redactor = Redactor::new([]);
    let asked = rehearse((&session, history), (&spec, shop.variables.clone()), &redactor);
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(asked).unwrap()
}

fn last(shop: &Shop) -> Seq {
    shop.events().last().unwrap().seq
}

#[test]
fn a_rehearsal_names_what_is_next_with_what_it_would_be_asked_and_records_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let flow = small::chain();
    let shop = Shop::new(folder.path(), &flow.spec, &flow.script);
    shop.run().unwrap();
    shop.calls();
    let before = last(&shop);
    let gate = Upcoming { key: "step/1".into(), agent: None, asks: Some("Good?".into()) };
    assert_eq!(upcoming(&shop), [gate]);
    shop.answer("step/1", "yes");
    let next = Upcoming {
        key: "step/2".into(),
        agent: Some("critic".into()),
        asks: Some("a draft / yes".into()),
    };
    assert_eq!(upcoming(&shop), [next]);
    // Only the answer was recorded, and nobody was asked.
    assert_eq!(last(&shop), before.next());
    assert!(shop.calls().is_empty());
    assert!(!folder.path().join("out").exists());
}

#[test]
fn of_tasks_that_depend_on_nothing_all_are_next() {
    let folder = tempfile::tempdir().unwrap();
    let flow = small::parallel();
    let shop = Shop::new(folder.path(), &flow.spec, &flow.script);
    shop.begin();
    assert!(upcoming(&shop).len() > 1, "{:?}", upcoming(&shop));
}
