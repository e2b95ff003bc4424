//! Dry runs: what a flow would do next.

use std::collections::BTreeMap;

use stepwell::Seq;
use stepwell_agent::redact::Redactor;
use stepwell_flow::spec::Spec;
use stepwell_flow::{DryRun, History, Upcoming, next_nodes};

use crate::harness::{Harness, id};
use crate::samples;

fn upcoming(harness: &Harness) -> Vec<Upcoming> {
    let spec = Spec::parse(&harness.spec, "spec.yaml", &BTreeMap::new()).unwrap().spec;
    let well = harness.well();
    let session = well.lock(&id()).unwrap();
    let history = History::read(&session).unwrap();
    let redactor = Redactor::new([]);
    let variables = harness.variables.clone();
    let dry_run =
        DryRun { session: &session, history, spec: &spec, variables, redactor: &redactor };
    let next = next_nodes(dry_run);
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(next).unwrap()
}

fn last(harness: &Harness) -> Seq {
    harness.events().last().unwrap().seq
}

#[test]
fn a_dry_run_shows_the_next_node_with_its_prompt_and_records_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let flow = samples::chain();
    let harness = Harness::new(folder.path(), &flow.spec, &flow.script);
    harness.run().unwrap();
    harness.calls();
    let before = last(&harness);
    let gate = Upcoming { key: "step/1".into(), agent: None, asks: Some("Good?".into()) };
    assert_eq!(upcoming(&harness), [gate]);
    harness.answer("step/1", "yes");
    let next = Upcoming {
        key: "step/2".into(),
        agent: Some("critic".into()),
        asks: Some("a draft / yes".into()),
    };
    assert_eq!(upcoming(&harness), [next]);
    // Only the answer was recorded, and no agent was asked.
    assert_eq!(last(&harness), before.next());
    assert!(harness.calls().is_empty());
    assert!(!folder.path().join("out").exists());
}

#[test]
fn all_branches_are_next() {
    let folder = tempfile::tempdir().unwrap();
    let flow = samples::parallel();
    let harness = Harness::new(folder.path(), &flow.spec, &flow.script);
    harness.create();
    assert!(upcoming(&harness).len() > 1, "{:?}", upcoming(&harness));
}
