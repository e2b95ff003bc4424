//! How flows stop, and go on: each failure that cost other systems paid work, by name.

use std::sync::Arc;
use std::time::Duration;

use stepwell::{Event, NodeState, Status, StopReason};
use stepwell_agent::run::Allowed;
use stepwell_flow::{Ended, NOBODY, Over};

use crate::shop::{Shop, id};
use crate::small::{self, Small};

/// A flow in a folder of its own.
struct Place {
    _dir: tempfile::TempDir,
    shop: Shop,
    script: String,
}

impl Place {
    fn new(small: &Small) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let shop = Shop::new(dir.path(), &small.spec, &small.script);
        Self { shop, script: small.script.clone(), _dir: dir }
    }

    /// The same, with someone who answers.
    fn answering(self, gate: &str, answer: &str) -> Self {
        Self { shop: self.shop.answering(gate, answer), ..self }
    }

    /// The model fails where it would say this.
    fn failing_at(self, said: &str) -> Self {
        let line = format!("{{text: {said},");
        assert!(self.script.contains(&line), "{said} is said somewhere");
        let script =
            self.script.replace(&line, &format!("{{fail: [refused], forever: true, text: {said},"));
        Self { shop: self.shop.with_script(&script), ..self }
    }

    /// The model no longer fails.
    fn mended(self) -> Self {
        let script = self.script.clone();
        Self { shop: self.shop.with_script(&script), ..self }
    }

    fn run(&self) -> Ended {
        self.shop.run().unwrap()
    }

    /// Runs, and says which calls were made.
    fn calls(&self) -> (Ended, Vec<String>) {
        self.shop.calls();
        let ended = self.run();
        (ended, self.shop.calls())
    }
}

#[test]
fn a_routing_step_that_failed_is_the_only_one_that_runs_again() {
    let place = Place::new(&small::routing()).answering("*", "approved").failing_at("second");
    let ended = place.run();
    assert_eq!(ended.status, Status::Failed);
    assert_eq!(ended.error.as_ref().unwrap().node, "route/billing/1");
    let place = place.mended();
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "second".into()));
    assert_eq!(calls, ["billing/handler 1"], "neither the router nor the first step is paid again");
    let head = place.shop.well().standing(&id()).unwrap().head;
    assert_eq!(head.error, None, "what was overcome is no error any more");
}

#[test]
fn a_router_that_names_no_route_is_asked_again_so_often_and_no_more() {
    let mut small = small::routing();
    small.script = small.script.replace("{\\\"route\\\": \\\"billing\\\"}", "still no idea");
    small.script = small.script.replace(r#"{"route": "billing"}"#, "still no idea");
    let place = Place::new(&small).answering("*", "approved");
    let (ended, calls) = place.calls();
    assert_eq!(ended.status, Status::Failed);
    let what = ended.error.unwrap().to_string();
    assert!(what.contains("router/1") && what.contains("billing, tech"), "{what}");
    assert_eq!(calls.len(), 2, "max_retries is 1");
}

#[test]
fn a_reviewer_takes_another_route_and_is_asked_again_after_nonsense() {
    let mut small = small::routing();
    small.script.push_str("  tech/handler: [{text: repaired}]\n");
    let place =
        Place::new(&small).answering("review/1", "whatever").answering("review/2", "route:tech");
    let ended = place.run();
    assert_eq!((ended.status, ended.output), (Status::Success, "repaired".into()));
}

#[test]
fn in_parallel_only_the_branch_that_failed_runs_again_and_gates_wait_in_a_branch() {
    let place = Place::new(&small::parallel()).failing_at("d1");
    let (ended, calls) = place.calls();
    assert_eq!(ended.status, Status::Failed, "a failure weighs more than a question");
    assert_eq!(calls, ["docs/x 0", "docs/x 1", "web/w 0"], "the other branch came to its gate");
    let place = place.mended();
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, ended.reason), (Status::Paused, Some(StopReason::Gate)));
    assert_eq!(calls, ["docs/x 1"]);
    assert_eq!(ended.open[0].id, "branch/web/1");
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, calls.len()), (Status::Paused, 0), "without an answer it waits on");
    place.shop.answer("branch/web/1", "fine");
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "both".into()));
    assert_eq!(calls, ["reduce 0", "web/w 1"]);
}

#[test]
fn a_gate_in_reduce_shows_all_branches_and_its_answer_is_the_result() {
    let mut small = small::parallel();
    let (front, _) = small.spec.split_once("    reduce:").unwrap();
    small.spec = format!(
        "{front}    reduce: {{type: hitl, prompt: 'Both?', context_display: '{{{{ branches.web.response }}}}+{{{{ branches.docs.response }}}}'}}\n"
    );
    let place = Place::new(&small).answering("branch/web/1", "ok");
    let ended = place.run();
    assert_eq!(ended.status, Status::Paused);
    assert_eq!(ended.open[0].prompt, "Both?\n\nw1+d1");
    place.shop.answer("reduce", "good as it is");
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "good as it is".into()));
    assert_eq!(calls.len(), 0);
}

#[test]
fn an_evaluator_loop_that_failed_in_revise_goes_on_there() {
    let place = Place::new(&small::evaluator()).answering("*", "better").failing_at("d2");
    let ended = place.run();
    assert_eq!(ended.error.unwrap().node, "revise/1");
    let (ended, calls) = place.mended().calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "d3".into()));
    assert_eq!(calls, ["evaluator 1", "evaluator 2", "producer 1", "producer 2"]);
}

#[test]
fn an_orchestrator_that_failed_in_its_write_up_runs_only_that() {
    let place = Place::new(&small::orchestrator()).answering("*", "approved").failing_at("written");
    let ended = place.run();
    assert_eq!(ended.error.unwrap().node, "writeup");
    let (ended, calls) = place.mended().calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "written".into()));
    assert_eq!(calls, ["writeup 0"]);
}

#[test]
fn a_chain_that_ends_in_a_gate_ends_with_its_answer() {
    let mut small = small::chain();
    let (front, _) = small.spec.split_once("      - {agent: critic").unwrap();
    small.spec =
        format!("{front}outputs: {{artifacts: [{{path: r, from: '{{{{ last_response }}}}'}}]}}\n");
    let place = Place::new(&small);
    let ended = place.run();
    assert_eq!(ended.status, Status::Paused);
    assert_eq!(ended.open[0].prompt, "Good?\n\na draft");
    place.shop.answer("step/1", "yes, very");
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, ended.output), (Status::Success, "yes, very".into()));
    assert_eq!(calls.len(), 0);
    assert_eq!(place.shop.outcome().files["r"], "yes, very");
    let done = place.shop.events().into_iter().find_map(|event| match event.event {
        Event::Node(node) if node.key == "step/1" && node.state == NodeState::Done => node.output,
        _ => None,
    });
    assert_eq!(done.unwrap()["who"], "a colleague");
}

fn timed(default: &str) -> Small {
    let mut small = small::chain();
    small.spec = small
        .spec
        .replace("prompt: 'Good?',", &format!("prompt: 'Good?', timeout_seconds: 1{default},"));
    small
}

#[test]
fn a_gate_whose_time_is_up_takes_its_default_also_in_a_run_that_waits() {
    let mut place = Place::new(&timed(", default: 'go on'"));
    place.shop.patience = stepwell_flow::Patience::Wait;
    let ended = place.run();
    assert_eq!((ended.status, ended.output), (Status::Success, "the end".into()));
    let outcome = place.shop.outcome();
    assert_eq!(outcome.nodes["step/1"]["response"], "go on");
    assert_eq!(outcome.nodes["step/1"]["who"], NOBODY);
}

#[test]
fn a_gate_whose_time_is_up_without_a_default_fails_and_can_still_be_answered() {
    let mut place = Place::new(&timed(""));
    place.shop.patience = stepwell_flow::Patience::Wait;
    let ended = place.run();
    assert_eq!(ended.status, Status::Failed);
    assert!(ended.error.unwrap().what.contains("nobody answered in time"));
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, calls.len()), (Status::Failed, 0));
    place.shop.answer("step/1", "sorry, was away");
    let (ended, _) = place.calls();
    assert_eq!(ended.status, Status::Success);
}

/// Has someone asked who does this.
fn asking(
    place: &Place,
    person: impl Fn(&dyn Fn() -> bool) -> Option<String> + Send + Sync + 'static,
) {
    place.shop.room.lock().unwrap().person = Some(Arc::new(person));
}

/// Sits there until no answer is wanted any more.
fn sit(is_over: &dyn Fn() -> bool) {
    let look = |_| {
        std::thread::park_timeout(Duration::from_millis(10));
        is_over()
    };
    assert!((0..2_000).any(look), "it is asked for ever");
}

#[test]
fn whoever_is_asked_is_left_alone_when_the_time_is_up() {
    for typed in [None, Some("too late".to_owned())] {
        let place = Place::new(&timed(", default: 'go on'"));
        let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        asking(&place, move |is_over| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            sit(is_over);
            typed.clone()
        });
        assert_eq!(place.run().status, Status::Success);
        assert_eq!(place.shop.outcome().nodes["step/1"]["who"], NOBODY);
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
}

#[test]
fn whoever_is_asked_is_left_alone_when_someone_else_answered() {
    for typed in [None, Some("mine".to_owned())] {
        let place = Place::new(&small::chain());
        let root = place.shop.root.clone();
        asking(&place, move |is_over| {
            Shop::new(&root, "", "").answer("step/1", "theirs");
            if typed.is_none() {
                sit(is_over);
            }
            typed.clone()
        });
        let ended = place.run();
        assert_eq!(ended.status, Status::Success, "{ended:?}");
        let node = place.shop.outcome().nodes["step/1"].clone();
        assert_eq!((&node["response"], &node["who"]), (&"theirs".into(), &"a colleague".into()));
    }
}

#[test]
fn time_in_which_a_person_is_waited_for_is_none_in_which_it_ran() {
    let mut small = timed(", default: 'go on'");
    small.spec = small.spec.replace("timeout_seconds: 1", "timeout_seconds: 4");
    let mut place = Place::new(&small);
    place.shop.patience = stepwell_flow::Patience::Wait;
    // Less than the question waits for.
    let most = Duration::from_secs(3);
    let until = tokio::time::Instant::now() + most;
    place.shop.allowed = Allowed { until: Some(until), ..Allowed::default() };
    let (ended, calls) = place.calls();
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    assert_eq!(calls.len(), 4);
    let ran = stepwell_flow::History::of(place.shop.events()).ran();
    assert!(ran < most, "{ran:?}");
}

#[test]
fn an_empty_answer_is_the_default_or_none() {
    let small = small::chain();
    let gate = stepwell::Gate {
        id: "step/1".to_owned(),
        prompt: "?".to_owned(),
        default: None,
        deadline: None,
    };
    let now = stepwell::Time::EPOCH;
    let accept = |gate: &stepwell::Gate, text: &str| stepwell_flow::accept(gate, None, text, now);
    assert_eq!(accept(&gate, " \n"), Err(stepwell_flow::NoAnswer::Empty));
    let with = stepwell::Gate { default: Some("fine".to_owned()), ..gate };
    assert_eq!(accept(&with, ""), Ok("fine".to_owned()));
    let late = stepwell::Gate { deadline: Some(now), ..with };
    assert!(matches!(accept(&late, "yes"), Err(stepwell_flow::NoAnswer::Late { .. })));
    // Nobody is asked twice by an answer that says nothing.
    let place = Place::new(&small);
    assert_eq!(place.run().status, Status::Paused);
}

#[test]
fn a_budget_stops_every_pattern_before_the_call_that_would_break_it() {
    for (name, small) in small::all() {
        let review = if name == "evaluator" { "better" } else { "approved" };
        let mut place = Place::new(&small).answering("*", "approved").answering("review/1", review);
        place.shop.allowed = Allowed { calls: Some(2), ..Allowed::default() };
        let (ended, calls) = place.calls();
        assert_eq!(
            (ended.status, ended.reason, calls.len()),
            (Status::Partial, Some(StopReason::MaxSteps), 2),
            "{name}"
        );
        let (ended, calls) = place.calls();
        assert_eq!((ended.status, calls.len()), (Status::Partial, 0), "{name}: it is still spent");
    }
}

#[test]
fn a_token_budget_counts_what_was_used_and_warns_once() {
    let mut place = Place::new(&small::chain()).answering("*", "ok");
    let warned = |place: &Place| {
        let notices = place.shop.room.lock().unwrap().notices.clone();
        notices.iter().filter(|text| text.contains("tokens are used")).count()
    };
    // The most that a call may take is reserved, so that the second one does not fit.
    let allowed = |tokens| Allowed { tokens: Some(tokens), warn_at: Some(1), ..Allowed::default() };
    place.shop.allowed = allowed(10);
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, ended.reason), (Status::Partial, Some(StopReason::BudgetExceeded)));
    assert_eq!((calls.len(), warned(&place)), (0, 0));
    let why = place.shop.room.lock().unwrap().notices.last().cloned().unwrap();
    assert!(why.contains("max_output") && why.ends_with("0 of at most 10 are used"), "{why}");
    place.shop.allowed = allowed(10_000);
    let ended = place.run();
    assert_eq!((ended.status, warned(&place)), (Status::Success, 1));
}

#[test]
fn what_the_last_calls_used_is_warned_of_too() {
    let mut place = Place::new(&small::chain()).answering("*", "ok");
    // Four calls of twelve tokens: only the last one comes so far.
    let (tokens, warn_at) = (Some(46_000), Some(1));
    place.shop.allowed = Allowed { tokens, warn_at, ..Allowed::default() };
    assert_eq!(place.run().status, Status::Success);
    let notices = place.shop.room.lock().unwrap().notices.clone();
    assert_eq!(notices, ["warning: 48 of at most 46000 tokens are used"]);
}

#[test]
fn an_artifact_that_is_in_the_way_fails_the_flow_and_no_agent_runs_again() {
    let mut place = Place::new(&small::graph()).answering("*", "ok");
    std::fs::create_dir(place.shop.root.join("out")).unwrap();
    std::fs::write(place.shop.root.join("out/report.md"), "mine").unwrap();
    let ended = place.run();
    assert_eq!(ended.status, Status::Failed);
    assert!(ended.error.unwrap().what.contains("--force"));
    assert_eq!(place.shop.outcome().files["report.md"], "mine");
    place.shop.over = Over::Replace;
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, calls.len()), (Status::Success, 0));
    assert_eq!(place.shop.outcome().files["report.md"], "sent on wells");
}

#[test]
fn an_interrupted_flow_goes_on_where_it_was() {
    let mut small = small::workflow();
    small.script = small.script.replace("{text: L,", "{delay_ms: 600000, text: L,");
    let place = Place::new(&small).answering("*", "ok");
    let (stop, interrupt) = tokio::sync::watch::channel(false);
    let stop = Arc::new(stop);
    let heard = Arc::clone(&stop);
    let mut shop = place.shop;
    // The slow call is under way, and so is the one beside it.
    shop.meet = Arc::new(move |name| {
        if name == "answered" {
            let _ = heard.send(heard.receiver_count() > 1);
        }
    });
    let ended = shop.run_until(interrupt).unwrap();
    drop(stop);
    assert_eq!(ended.status, Status::Interrupted);
    shop.meet = Arc::new(|_| ());
    let shop = shop.with_script(&small::workflow().script);
    let done = shop.answered();
    shop.calls();
    assert_eq!(shop.run().unwrap().status, Status::Success);
    assert!(shop.calls().iter().all(|call| !done.contains(call)), "nothing is paid twice");
}

#[test]
fn a_tool_that_may_not_run_unasked_pauses_its_lane_and_the_flow_goes_on_when_it_may() {
    let mut small = small::chain();
    small.script = small.script.replace(
        "tool: list_files, arguments: {}",
        "tool: write_file, arguments: {path: new.txt, content: text}",
    );
    let place = Place::new(&small).answering("step/1", "ok");
    let ended = place.run();
    assert_eq!(ended.status, Status::Paused);
    let gate = ended.open[0].clone();
    assert!(gate.prompt.contains("write"), "{gate:?}");
    place.shop.answer(&gate.id, "approve");
    let ended = place.run();
    assert_eq!(ended.status, Status::Success);
    assert_eq!(std::fs::read_to_string(place.shop.root.join("new.txt")).unwrap(), "text");
}

#[test]
fn an_answer_that_does_not_fit_its_schema_is_asked_for_again() {
    let mut small = small::chain();
    small.spec = small.spec.replace(
        "writer: {prompt: 'You are writer.'}",
        "writer: {prompt: W, output_schema: {type: object, required: [n]}}",
    );
    small.spec = small.spec.replace("{{ steps[0].response }} /", "{{ steps[0].response.n }} /");
    small.script = small.script.replace("{text: a draft,", "{text: nope}, {text: '{\"n\": 7}',");
    small.script = small.script.replace("{text: the end,", "{text: '{\"n\": 8}',");
    let place = Place::new(&small).answering("*", "ok");
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, &ended.output["n"]), (Status::Success, &8.into()));
    assert_eq!(calls.len(), 5);
}

#[test]
fn time_in_which_nobody_answers_does_not_run_away_with_the_flow() {
    let place = Place::new(&small::chain());
    let allowed = Allowed {
        until: tokio::time::Instant::now().checked_add(Duration::ZERO),
        ..Allowed::default()
    };
    let mut place = place;
    place.shop.allowed = allowed;
    let (ended, calls) = place.calls();
    assert_eq!((ended.status, ended.reason), (Status::Partial, Some(StopReason::Timeout)));
    assert_eq!(calls.len(), 0);
}
