//! How flows stop and resume: every failure that has cost other systems paid work.

use std::sync::Arc;
use std::time::Duration;

use stepwell::model::NodeState;
use stepwell::{Event, Status, StopReason};
use stepwell_agent::run::{Allowed, Measure, Notice, OpenGate};
use stepwell_flow::{Ended, NOBODY, Over};

use crate::harness::{Harness, id};
use crate::samples::{self, Sample};

/// A flow in its own folder.
struct Fixture {
    _dir: tempfile::TempDir,
    harness: Harness,
    script: String,
}

impl Fixture {
    fn new(sample: &Sample) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let harness = Harness::new(dir.path(), &sample.spec, &sample.script);
        Self { harness, script: sample.script.clone(), _dir: dir }
    }

    /// The same, with a person who answers.
    fn answering(self, gate: &str, answer: &str) -> Self {
        Self { harness: self.harness.answering(gate, answer), ..self }
    }

    /// The model fails instead of giving this answer.
    fn failing_at(self, answer: &str) -> Self {
        let line = format!("{{text: {answer},");
        assert!(self.script.contains(&line), "{answer} is an answer");
        let script = self
            .script
            .replace(&line, &format!("{{fail: [refused], forever: true, text: {answer},"));
        Self { harness: self.harness.with_script(&script), ..self }
    }

    /// The model no longer fails.
    fn repaired(self) -> Self {
        let script = self.script.clone();
        Self { harness: self.harness.with_script(&script), ..self }
    }

    fn run(&self) -> Ended {
        self.harness.run().unwrap()
    }

    /// Runs the flow, and also returns the calls that it made.
    fn calls(&self) -> (Ended, Vec<String>) {
        self.harness.calls();
        let ended = self.run();
        (ended, self.harness.calls())
    }
}

#[test]
fn a_routing_step_that_failed_is_the_only_one_that_runs_again() {
    let fixture = Fixture::new(&samples::routing()).answering("*", "approved").failing_at("second");
    let ended = fixture.run();
    assert_eq!(ended.status, Status::Failed);
    assert_eq!(ended.error.as_ref().unwrap().node, "route/billing/1");
    let fixture = fixture.repaired();
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "second".into()));
    assert_eq!(calls, ["billing/handler 1"], "neither the router nor the first step is paid again");
    let head = fixture.harness.well().info(&id()).unwrap().head;
    assert_eq!(head.error, None, "a failure that was overcome is no longer an error");
}

#[test]
fn a_router_that_names_no_route_is_asked_again_up_to_max_retries() {
    let mut sample = samples::routing();
    sample.script = sample.script.replace("{\\\"route\\\": \\\"billing\\\"}", "still no idea");
    sample.script = sample.script.replace(r#"{"route": "billing"}"#, "still no idea");
    let fixture = Fixture::new(&sample).answering("*", "approved");
    let (ended, calls) = fixture.calls();
    assert_eq!(ended.status, Status::Failed);
    let what = ended.error.unwrap().to_string();
    assert!(what.contains("router/1") && what.contains("billing, tech"), "{what}");
    assert_eq!(calls.len(), 2, "max_retries is 1");
}

#[test]
fn a_reviewer_can_choose_another_route_and_is_asked_again_after_nonsense() {
    let mut sample = samples::routing();
    sample.script.push_str("  tech/handler: [{text: repaired}]\n");
    let fixture =
        Fixture::new(&sample).answering("review/1", "whatever").answering("review/2", "route:tech");
    let ended = fixture.run();
    assert_eq!((ended.status, ended.output), (Status::Success, "repaired".into()));
}

#[test]
fn only_a_failed_branch_runs_again_and_a_gate_pauses_only_its_branch() {
    let fixture = Fixture::new(&samples::parallel()).failing_at("d1");
    let (ended, calls) = fixture.calls();
    assert_eq!(ended.status, Status::Failed, "a failure outranks a question");
    assert_eq!(calls, ["docs/x 0", "docs/x 1", "web/w 0"], "the other branch reached its gate");
    let fixture = fixture.repaired();
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, ended.reason), (Status::Paused, Some(StopReason::Gate)));
    assert_eq!(calls, ["docs/x 1"]);
    assert_eq!(ended.open[0].id, "branch/web/1");
    let (ended, calls) = fixture.calls();
    assert_eq!(
        (ended.status, calls.len()),
        (Status::Paused, 0),
        "without an answer it stays paused"
    );
    fixture.harness.answer("branch/web/1", "fine");
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "both".into()));
    assert_eq!(calls, ["reduce 0", "web/w 1"]);
}

#[test]
fn a_gate_in_reduce_shows_all_branches_and_its_answer_is_the_result() {
    let mut sample = samples::parallel();
    let (front, _) = sample.spec.split_once("    reduce:").unwrap();
    sample.spec = format!(
        "{front}    reduce: {{type: hitl, prompt: 'Both?', context_display: '{{{{ branches.web.response }}}}+{{{{ branches.docs.response }}}}'}}\n"
    );
    let fixture = Fixture::new(&sample).answering("branch/web/1", "ok");
    let ended = fixture.run();
    assert_eq!(ended.status, Status::Paused);
    assert_eq!(ended.open[0].prompt, "Both?\n\nw1+d1");
    fixture.harness.answer("reduce", "good as it is");
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "good as it is".into()));
    assert_eq!(calls.len(), 0);
}

#[test]
fn an_evaluator_loop_that_failed_in_revise_resumes_there() {
    let fixture = Fixture::new(&samples::evaluator()).answering("*", "better").failing_at("d2");
    let ended = fixture.run();
    assert_eq!(ended.error.unwrap().node, "revise/1");
    let (ended, calls) = fixture.repaired().calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "d3".into()));
    assert_eq!(calls, ["evaluator 1", "evaluator 2", "producer 1", "producer 2"]);
}

#[test]
fn an_orchestrator_that_failed_in_its_write_up_runs_only_that() {
    let fixture =
        Fixture::new(&samples::orchestrator()).answering("*", "approved").failing_at("written");
    let ended = fixture.run();
    assert_eq!(ended.error.unwrap().node, "writeup");
    let (ended, calls) = fixture.repaired().calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "written".into()));
    assert_eq!(calls, ["writeup 0"]);
}

#[test]
fn a_chain_that_ends_in_a_gate_ends_with_its_answer() {
    let mut sample = samples::chain();
    let (front, _) = sample.spec.split_once("      - {agent: critic").unwrap();
    sample.spec =
        format!("{front}outputs: {{artifacts: [{{path: r, from: '{{{{ last_response }}}}'}}]}}\n");
    let fixture = Fixture::new(&sample);
    let ended = fixture.run();
    assert_eq!(ended.status, Status::Paused);
    assert_eq!(ended.open[0].prompt, "Good?\n\na draft");
    fixture.harness.answer("step/1", "yes, very");
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "yes, very".into()));
    assert_eq!(calls.len(), 0);
    assert_eq!(fixture.harness.outcome().files["r"], "yes, very");
    let done = fixture.harness.events().into_iter().find_map(|event| match event.event {
        Event::Node(node) if node.key == "step/1" && node.state == NodeState::Done => node.output,
        _ => None,
    });
    assert_eq!(done.unwrap()["who"], "a colleague");
}

fn timed(default: &str) -> Sample {
    let mut sample = samples::chain();
    sample.spec = sample
        .spec
        .replace("prompt: 'Good?',", &format!("prompt: 'Good?', timeout_seconds: 1{default},"));
    sample
}

#[test]
fn a_gate_that_times_out_uses_its_default_also_in_a_run_that_waits() {
    let mut fixture = Fixture::new(&timed(", default: 'go on'"));
    fixture.harness.patience = stepwell_flow::Patience::Wait;
    let ended = fixture.run();
    assert_eq!((ended.status, ended.output), (Status::Success, "the end".into()));
    let outcome = fixture.harness.outcome();
    assert_eq!(outcome.nodes["step/1"]["response"], "go on");
    assert_eq!(outcome.nodes["step/1"]["who"], NOBODY);
}

#[test]
fn a_gate_that_times_out_without_a_default_fails_and_can_still_be_answered() {
    let mut fixture = Fixture::new(&timed(""));
    fixture.harness.patience = stepwell_flow::Patience::Wait;
    let ended = fixture.run();
    assert_eq!(ended.status, Status::Failed);
    assert!(ended.error.unwrap().what.contains("the question timed out"));
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, calls.len()), (Status::Failed, 0));
    fixture.harness.answer("step/1", "sorry, was away");
    let (ended, _) = fixture.calls();
    assert_eq!(ended.status, Status::Success);
}

/// Sets what the person does when asked.
fn set_person(
    fixture: &Fixture,
    person: impl Fn(&OpenGate) -> Option<String> + Send + Sync + 'static,
) {
    fixture.harness.responder.lock().unwrap().person = Some(Arc::new(person));
}

#[test]
fn waiting_ends_when_the_question_times_out() {
    let mut fixture = Fixture::new(&timed(", default: 'go on'"));
    fixture.harness.patience = stepwell_flow::Patience::Wait;
    assert_eq!(fixture.run().status, Status::Success);
    assert_eq!(fixture.harness.outcome().nodes["step/1"]["who"], NOBODY);
}

#[test]
fn the_first_answer_counts_whoever_gives_it() {
    for typed in ["theirs", "mine"] {
        let fixture = Fixture::new(&samples::chain());
        let root = fixture.harness.root.clone();
        let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        set_person(&fixture, move |_| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            // Another process answers first.
            Harness::new(&root, "", "").answer("step/1", "theirs");
            Some(typed.to_owned())
        });
        let ended = fixture.run();
        assert_eq!(ended.status, Status::Success, "{ended:?}");
        let node = fixture.harness.outcome().nodes["step/1"].clone();
        assert_eq!((&node["response"], &node["who"]), (&"theirs".into(), &"a colleague".into()));
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1, "nobody is asked twice");
    }
}

#[test]
fn a_person_who_has_no_answer_now_has_the_flow_pause() {
    let fixture = Fixture::new(&samples::chain());
    set_person(&fixture, |_| None);
    assert_eq!(fixture.run().status, Status::Paused);
    fixture.harness.answer("step/1", "ok");
    fixture.harness.responder.lock().unwrap().person = None;
    assert_eq!(fixture.run().status, Status::Success);
}

#[test]
fn waiting_for_a_person_does_not_count_as_running_time() {
    let mut sample = timed(", default: 'go on'");
    sample.spec = sample.spec.replace("timeout_seconds: 1", "timeout_seconds: 4");
    let mut fixture = Fixture::new(&sample);
    fixture.harness.patience = stepwell_flow::Patience::Wait;
    // Less than the question's timeout.
    let max = Duration::from_secs(3);
    let until = tokio::time::Instant::now() + max;
    fixture.harness.allowed = Allowed { until: Some(until), ..Allowed::default() };
    let (ended, calls) = fixture.calls();
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    assert_eq!(calls.len(), 4);
    let ran = stepwell_flow::History::of(fixture.harness.events()).ran();
    assert!(ran < max, "{ran:?}");
}

#[test]
fn an_empty_answer_means_the_default_or_is_rejected() {
    let sample = samples::chain();
    let gate = stepwell::model::Gate::new("step/1", "?");
    let now = stepwell::model::Time::EPOCH;
    let accept =
        |gate: &stepwell::model::Gate, text: &str| stepwell_flow::accept(gate, None, text, now);
    assert_eq!(accept(&gate, " \n"), Err(stepwell_flow::NoAnswer::Empty));
    let with = stepwell::model::Gate { default: Some("fine".to_owned()), ..gate };
    assert_eq!(accept(&with, ""), Ok("fine".to_owned()));
    let late = stepwell::model::Gate { deadline: Some(now), ..with };
    assert!(matches!(accept(&late, "yes"), Err(stepwell_flow::NoAnswer::Late { .. })));
    // Without an answer the flow pauses.
    let fixture = Fixture::new(&sample);
    assert_eq!(fixture.run().status, Status::Paused);
}

#[test]
fn a_budget_stops_every_pattern_before_the_call_that_would_exceed_it() {
    for (name, sample) in samples::all() {
        let review = if name == "evaluator" { "better" } else { "approved" };
        let mut fixture =
            Fixture::new(&sample).answering("*", "approved").answering("review/1", review);
        fixture.harness.allowed = Allowed { calls: Some(2), ..Allowed::default() };
        let (ended, calls) = fixture.calls();
        assert_eq!(
            (ended.status, ended.reason, calls.len()),
            (Status::Partial, Some(StopReason::MaxSteps), 2),
            "{name}"
        );
        let (ended, calls) = fixture.calls();
        assert_eq!(
            (ended.status, calls.len()),
            (Status::Partial, 0),
            "{name}: the budget stays used up"
        );
    }
}

/// The notices of the flow.
fn notices(fixture: &Fixture) -> Vec<Notice> {
    fixture.harness.responder.lock().unwrap().notices.lock().unwrap().clone()
}

#[test]
fn a_token_budget_counts_used_tokens_and_warns_once() {
    let mut fixture = Fixture::new(&samples::chain()).answering("*", "ok");
    let warned = |fixture: &Fixture| {
        let notices = notices(fixture);
        notices.iter().filter(|it| matches!(it, Notice::NearlySpent { .. })).count()
    };
    // The maximum of a call is reserved beforehand, so not even one call fits.
    let allowed = |tokens| Allowed { tokens: Some(tokens), warn_at: Some(1), ..Allowed::default() };
    fixture.harness.allowed = allowed(10);
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, ended.reason), (Status::Partial, Some(StopReason::BudgetExceeded)));
    assert_eq!((calls.len(), warned(&fixture)), (0, 0));
    let why = notices(&fixture).last().cloned().unwrap();
    assert!(matches!(why, Notice::TokensSpent { used: 0, most: 10, .. }), "{why:?}");
    fixture.harness.allowed = allowed(10_000);
    let ended = fixture.run();
    assert_eq!((ended.status, warned(&fixture)), (Status::Success, 1));
}

#[test]
fn the_tokens_of_the_last_call_are_warned_about_too() {
    let mut fixture = Fixture::new(&samples::chain()).answering("*", "ok");
    // Four calls of twelve tokens: only the last one crosses the threshold.
    let (tokens, warn_at) = (Some(46_000), Some(1));
    fixture.harness.allowed = Allowed { tokens, warn_at, ..Allowed::default() };
    assert_eq!(fixture.run().status, Status::Success);
    let what = Measure::Tokens { used: 48, most: 46_000 };
    assert_eq!(notices(&fixture), [Notice::NearlySpent { what }]);
}

#[test]
fn an_existing_file_fails_the_flow_and_no_agent_runs_again() {
    let mut fixture = Fixture::new(&samples::graph()).answering("*", "ok");
    std::fs::create_dir(fixture.harness.root.join("out")).unwrap();
    std::fs::write(fixture.harness.root.join("out/report.md"), "mine").unwrap();
    let ended = fixture.run();
    assert_eq!(ended.status, Status::Failed);
    assert!(ended.error.unwrap().what.contains("--force"));
    assert_eq!(fixture.harness.outcome().files["report.md"], "mine");
    fixture.harness.over = Over::Replace;
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, calls.len()), (Status::Success, 0));
    assert_eq!(fixture.harness.outcome().files["report.md"], "sent on wells");
}

#[test]
fn an_interrupted_flow_resumes_where_it_was() {
    let mut sample = samples::workflow();
    sample.script = sample.script.replace("{text: L,", "{delay_ms: 600000, text: L,");
    let fixture = Fixture::new(&sample).answering("*", "ok");
    let (stop, interrupt) = tokio::sync::watch::channel(false);
    let stop = Arc::new(stop);
    let sender = Arc::clone(&stop);
    let mut harness = fixture.harness;
    // The slow call is in progress, and so is the parallel one.
    harness.hook = Arc::new(move |name| {
        if name == "answered" {
            let _ = sender.send(sender.receiver_count() > 1);
        }
    });
    let ended = harness.run_until(interrupt).unwrap();
    drop(stop);
    assert_eq!(ended.status, Status::Interrupted);
    harness.hook = Arc::new(|_| ());
    let harness = harness.with_script(&samples::workflow().script);
    let done = harness.answered();
    harness.calls();
    assert_eq!(harness.run().unwrap().status, Status::Success);
    assert!(harness.calls().iter().all(|call| !done.contains(call)), "nothing is paid twice");
}

#[test]
fn a_tool_that_needs_approval_pauses_the_flow_until_it_is_approved() {
    let mut sample = samples::chain();
    sample.script = sample.script.replace(
        "tool: list_files, arguments: {}",
        "tool: write_file, arguments: {path: new.txt, content: text}",
    );
    let fixture = Fixture::new(&sample).answering("step/1", "ok");
    let ended = fixture.run();
    assert_eq!(ended.status, Status::Paused);
    let gate = ended.open[0].clone();
    assert!(gate.prompt.contains("write"), "{gate:?}");
    fixture.harness.answer(&gate.id, "approve");
    let ended = fixture.run();
    assert_eq!(ended.status, Status::Success);
    assert_eq!(std::fs::read_to_string(fixture.harness.root.join("new.txt")).unwrap(), "text");
}

#[test]
fn an_agent_is_asked_again_if_its_answer_does_not_match_its_schema() {
    let mut sample = samples::chain();
    sample.spec = sample.spec.replace(
        "writer: {prompt: 'You are writer.'}",
        "writer: {prompt: W, output_schema: {type: object, required: [n]}}",
    );
    sample.spec = sample.spec.replace("{{ steps[0].response }} /", "{{ steps[0].response.n }} /");
    sample.script = sample.script.replace("{text: a draft,", "{text: nope}, {text: '{\"n\": 7}',");
    sample.script = sample.script.replace("{text: the end,", "{text: '{\"n\": 8}',");
    let fixture = Fixture::new(&sample).answering("*", "ok");
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, &ended.output["n"]), (Status::Success, &8.into()));
    assert_eq!(calls.len(), 5);
}

#[test]
fn a_flow_whose_time_is_used_up_makes_no_call() {
    let fixture = Fixture::new(&samples::chain());
    let allowed = Allowed {
        until: tokio::time::Instant::now().checked_add(Duration::ZERO),
        ..Allowed::default()
    };
    let mut fixture = fixture;
    fixture.harness.allowed = allowed;
    let (ended, calls) = fixture.calls();
    assert_eq!((ended.status, ended.reason), (Status::Partial, Some(StopReason::Timeout)));
    assert_eq!(calls.len(), 0);
}
