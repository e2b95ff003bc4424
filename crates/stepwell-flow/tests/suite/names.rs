//! The names that templates of strands-cli use: each pattern sets its own.

use stepwell::Status;

use crate::harness::Harness;
use crate::samples::{self, Sample};

/// The same flow with one change of its spec.
fn with(sample: Sample, from: &str, to: &str) -> Sample {
    assert!(sample.spec.contains(from), "{from} is in the spec");
    Sample { spec: sample.spec.replace(from, to), ..sample }
}

/// Runs a flow to its first question, and returns the question.
#[track_caller]
fn question(sample: &Sample) -> String {
    let dir = tempfile::tempdir().unwrap();
    let ended = Harness::new(dir.path(), &sample.spec, &sample.script).run().unwrap();
    assert_eq!(ended.status, Status::Paused, "{:?}", ended.error);
    ended.open[0].prompt.clone()
}

/// Runs a flow to its end with this answer to every question, and returns what it wrote.
#[track_caller]
fn report(sample: &Sample, answer: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let harness = Harness::new(dir.path(), &sample.spec, &sample.script).answering("*", answer);
    let ended = harness.run().unwrap();
    assert_eq!(ended.status, Status::Success, "{:?}", ended.error);
    harness.outcome().files["report.md"].clone()
}

const ARTIFACT: &str = "{{ last_response }} on {{ topic }}";

#[test]
fn a_review_of_a_draft_sees_all_drafts_and_the_accepted_score() {
    let asks = "{{ iteration_index }} {{ iterations[-1].draft_preview }} {{ iterations[-1].score }}\
                /{{ min_score }} {{ max_iters }} {{ iterations[0].evaluation.score }} \
                {{ current_draft }} {{ current_evaluation.score }} {{ name }}";
    assert_eq!(
        question(&with(samples::evaluator(), "Go on?", asks)),
        "0 d1 40/90 3 40 d1 40 sample"
    );
}

#[test]
fn an_artifact_sees_the_number_of_drafts_and_each_of_them() {
    let from = "{{ iterations }} {{ history[1].draft }} {{ final_score }} \
                {{ last_evaluation.score }}";
    let sample = with(samples::evaluator(), ARTIFACT, from);
    assert_eq!(report(&sample, "continue"), "3 d2 95 95");
}

#[test]
fn stop_accepts_a_draft_as_it_is() {
    let sample = with(samples::evaluator(), ARTIFACT, "{{ iterations }} {{ last_response }}");
    assert_eq!(report(&sample, "stop"), "1 d1");
}

#[test]
fn a_review_of_a_plan_sees_the_plan() {
    let asks = "{{ task_count }} {{ subtasks[1].task }} {{ orchestrator_response }}";
    let asked = question(&with(samples::orchestrator(), "This plan?", asks));
    assert_eq!(
        asked,
        "2 beta [\n  {\n    \"task\": \"alpha\"\n  },\n  {\n    \"task\": \"beta\"\n  }\n]"
    );
}

#[test]
fn workers_and_rounds_are_counted() {
    let from = "{{ worker_count }} {{ num_workers }} {{ round_count }} {{ name }}";
    let sample = with(samples::orchestrator(), ARTIFACT, from);
    assert_eq!(report(&sample, "approve"), "2 2 2 sample");
}

#[test]
fn a_graph_counts_its_visits() {
    let from = "{{ iteration_counts.write }} {{ total_steps }} {{ terminal_node }}";
    assert_eq!(report(&with(samples::graph(), ARTIFACT, from), "yes"), "2 6 send");
}

#[test]
fn a_variable_overrides_a_name_of_strands_cli() {
    let sample = with(samples::evaluator(), "topic: string", "topic: string, min_score: string");
    let sample = with(sample, "Go on?", "{{ min_score }} {{ iteration_index }}");
    let dir = tempfile::tempdir().unwrap();
    let mut harness = Harness::new(dir.path(), &sample.spec, &sample.script);
    harness.variables.set("min_score", "mine");
    assert_eq!(harness.run().unwrap().open[0].prompt, "mine 0");
}
