//! Dry runs: what a flow would do next.

use std::collections::BTreeMap;

use stepwell::Seq;
use stepwell::log::Redactor;
use stepwell_flow::spec::Spec;
use stepwell_flow::{DryRun, History, Upcoming, next_nodes};

use crate::harness::{Harness, id};
use crate::{guided, samples};

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

/// The keys of what is next, each with whether an agent is asked.
fn next_keys(harness: &Harness) -> Vec<(String, bool)> {
    let next = upcoming(harness).into_iter();
    next.map(|node| (node.key, node.agent.is_some())).collect()
}

#[test]
fn guided_work_that_stands_at_a_question_shows_it_and_what_follows_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    guided::project(&root);
    let harness = guided::work(&root, "", &guided::script());
    harness.create();
    assert_eq!(next_keys(&harness), [("work/discuss/1".to_owned(), true)]);
    for (gate, answer, next) in [
        ("work/question/1", "no", "work/discuss/2"),
        ("work/approve/1", "refine: check it too", "work/plan/2"),
        ("work/approve/2", "approve", "attempt/1/1"),
        ("decide/2/1", "repair: with an example", "attempt/2/2"),
        ("work/ship/1", "commit", "work/commit/1"),
    ] {
        harness.run().unwrap();
        let before = last(&harness);
        let open = upcoming(&harness);
        assert_eq!(next_keys(&harness), [(gate.to_owned(), false)]);
        assert!(open[0].asks.as_ref().is_some_and(|asks| !asks.is_empty()), "{open:?}");
        harness.answer(gate, answer);
        assert_eq!(next_keys(&harness), [(next.to_owned(), true)], "after {gate}");
        assert_eq!(last(&harness), before.next(), "only the answer was recorded");
    }
    harness.run().unwrap();
    assert_eq!(upcoming(&harness), []);
}

#[test]
fn guided_work_in_a_dry_run_goes_on_without_a_task_that_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    guided::project(&root);
    let mut script = guided::script();
    script["lanes"]["plan"] = serde_json::json!([guided::says(guided::plan(&["sh test.sh"]))]);
    let harness = guided::work(&root, "    yes: [discuss, plan]\n", &script);
    harness.run().unwrap();
    assert_eq!(next_keys(&harness), [("decide/2/1".to_owned(), false)]);
    harness.answer("decide/2/1", "skip");
    assert_eq!(next_keys(&harness), [("check/1/0".to_owned(), true)]);
}
