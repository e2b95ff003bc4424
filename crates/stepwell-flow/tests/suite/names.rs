//! The names that strands-cli has for what happened: each pattern offers its own.

use stepwell::Status;

use crate::shop::Shop;
use crate::small::{self, Small};

/// The same flow, with something else in its spec.
fn with(small: Small, from: &str, to: &str) -> Small {
    assert!(small.spec.contains(from), "{from} is in the spec");
    Small { spec: small.spec.replace(from, to), ..small }
}

/// Runs a flow to its first question, and tells it.
#[track_caller]
fn question(small: &Small) -> String {
    let dir = tempfile::tempdir().unwrap();
    let ended = Shop::new(dir.path(), &small.spec, &small.script).run().unwrap();
    assert_eq!(ended.status, Status::Paused, "{:?}", ended.error);
    ended.open[0].prompt.clone()
}

/// Runs a flow to its end, everything answered with this, and tells what it wrote.
#[track_caller]
fn report(small: &Small, answer: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let shop = Shop::new(dir.path(), &small.spec, &small.script).answering("*", answer);
    let ended = shop.run().unwrap();
    assert_eq!(ended.status, Status::Success, "{:?}", ended.error);
    shop.outcome().files["report.md"].clone()
}

const ARTIFACT: &str = "{{ last_response }} on {{ topic }}";

#[test]
fn a_review_of_a_draft_sees_all_drafts_and_what_is_wanted() {
    let asks = "{{ iteration_index }} {{ iterations[-1].draft_preview }} {{ iterations[-1].score }}\
                /{{ min_score }} {{ max_iters }} {{ iterations[0].evaluation.score }} \
                {{ current_draft }} {{ current_evaluation.score }} {{ name }}";
    assert_eq!(question(&with(small::evaluator(), "Go on?", asks)), "0 d1 40/90 3 40 d1 40 small");
}

#[test]
fn an_artifact_sees_how_many_drafts_there_were_and_each_of_them() {
    let from = "{{ iterations }} {{ history[1].draft }} {{ final_score }} \
                {{ last_evaluation.score }}";
    let small = with(small::evaluator(), ARTIFACT, from);
    assert_eq!(report(&small, "continue"), "3 d2 95 95");
}

#[test]
fn stop_takes_a_draft_as_it_is() {
    let small = with(small::evaluator(), ARTIFACT, "{{ iterations }} {{ last_response }}");
    assert_eq!(report(&small, "stop"), "1 d1");
}

#[test]
fn a_review_of_a_plan_sees_it() {
    let asks = "{{ task_count }} {{ subtasks[1].task }} {{ orchestrator_response }}";
    let asked = question(&with(small::orchestrator(), "This plan?", asks));
    assert_eq!(
        asked,
        "2 beta [\n  {\n    \"task\": \"alpha\"\n  },\n  {\n    \"task\": \"beta\"\n  }\n]"
    );
}

#[test]
fn what_workers_did_is_counted() {
    let from = "{{ worker_count }} {{ num_workers }} {{ round_count }} {{ name }}";
    let small = with(small::orchestrator(), ARTIFACT, from);
    assert_eq!(report(&small, "approve"), "2 2 2 small");
}

#[test]
fn a_graph_counts_its_visits() {
    let from = "{{ iteration_counts.write }} {{ total_steps }} {{ terminal_node }}";
    assert_eq!(report(&with(small::graph(), ARTIFACT, from), "yes"), "2 6 send");
}

#[test]
fn a_variable_goes_before_a_name_that_is_only_offered() {
    let small = with(small::evaluator(), "topic: string", "topic: string, min_score: string");
    let small = with(small, "Go on?", "{{ min_score }} {{ iteration_index }}");
    let dir = tempfile::tempdir().unwrap();
    let mut shop = Shop::new(dir.path(), &small.spec, &small.script);
    shop.variables.set("min_score", "mine");
    assert_eq!(shop.run().unwrap().open[0].prompt, "mine 0");
}
