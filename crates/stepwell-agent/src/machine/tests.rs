mod never_rules;

use stepwell::model::{
    Digest, Edited, Elsewhere, Failure, Gate, GateAnswered, Permission, Source, Step, Time,
    ToolFinished, ToolStarted, Usage,
};
use stepwell::{Created, Seq};

use super::*;
use crate::permission::Mode;

/// A run's state, and the seq of its next event.
pub(super) struct Told(State, u64);

impl Told {
    pub(super) fn new() -> Self {
        Self(State::new(Lane::main()), 0)
    }

    pub(super) fn then(mut self, event: impl Into<Event>) -> Self {
        self.1 += 1;
        let (seq, event) = (Seq::new(self.1), event.into());
        self.0.apply(&Recorded { seq, at: Time::EPOCH, id: None, event });
        self
    }

    pub(super) fn next(&self, rules: &Rules) -> Move {
        self.0.next(rules, &Baseline::default(), &Estimate::default())
    }
}

pub(super) fn rules(mode: Mode) -> Rules {
    let effects = [("look", Effect::Pure), ("write", Effect::Idempotent), ("run", Effect::Unsafe)];
    let effects = effects.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
    Rules { mode, retry_unsafe: false, effects, limits: Limits::default() }
}

fn asks(calls: &[(&str, &str)]) -> Message {
    let message = Message::assistant("hm");
    calls.iter().fold(message, |message, (id, tool)| message.calling(*id, *tool, "{}"))
}

fn started(id: &str, effect: Effect, targets: Vec<ToolTarget>) -> ToolStarted {
    let (lane, call_id, tool) = (Lane::main(), id.to_owned(), String::new());
    let (arguments, child) = (Digest::of(b""), None);
    ToolStarted { lane, call_id, tool, effect, arguments, targets, child }
}

fn call(made: &Move) -> &str {
    match made {
        Move::RunTool(call) | Move::Inspect(call, _) | Move::Settle(call, _) | Move::Ask(call) => {
            &call.id
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_conversation_goes_from_user_to_model_to_tools_and_back() {
    let yolo = rules(Mode::Yolo);
    let told = Told::new().then(Message::user("go"));
    assert_eq!(told.next(&yolo), Move::CallModel);
    let told = told.then(asks(&[("a", "look"), ("b", "run")]));
    assert_eq!(call(&told.next(&yolo)), "a");
    let told = told.then(Message::tool_result("a", "x"));
    assert!(matches!(told.next(&yolo), Move::RunTool(call) if call.id == "b"));
    let told = told.then(Message::tool_result("b", "y"));
    assert_eq!(told.next(&yolo), Move::Seal);
    let told = told.then(Step { lane: Lane::main(), n: 1 });
    assert_eq!(told.next(&yolo), Move::CallModel);
    let told = told.then(Message::assistant("done")).then(Step { lane: Lane::main(), n: 2 });
    let done = Stop { status: Status::Success, reason: StopReason::LlmDone };
    assert_eq!(told.next(&yolo), Move::Stop(done));
    // A new message continues the run.
    assert_eq!(told.then(Message::user("more")).next(&yolo), Move::CallModel);
}

#[test]
fn what_another_program_ended_as_done_is_over_whatever_it_ends_with() {
    let yolo = rules(Mode::Yolo);
    let status = |status| StatusChanged { status, reason: None, error: None };
    let done = Move::Stop(Stop { status: Status::Success, reason: StopReason::LlmDone });
    let asked = || Told::new().then(Message::user("go")).then(asks(&[("a", "run")]));
    let answered = || asked().then(Message::tool_result("a", "x"));
    for told in [Told::new(), asked(), answered()] {
        let told = told.then(status(Status::Success));
        assert!(told.0.is_over() && !told.0.is_unfinished());
        assert_eq!(told.next(&yolo), done);
        // A resume alone changes nothing; a new message does.
        let told = told.then(status(Status::Running));
        assert!(told.0.is_over());
        assert!(!told.then(Message::user("more")).0.is_over());
    }
    let fork = Created::new("b".parse().unwrap(), "go");
    assert!(!answered().then(status(Status::Success)).then(fork).0.is_over());
    // A session continues if it did not end as done, or has open tasks.
    let stopped = answered().then(status(Status::Interrupted));
    let planned = answered()
        .then(Task { id: "t".to_owned(), ..Task::default() })
        .then(status(Status::Success));
    for told in [answered(), stopped, planned] {
        assert!(!told.0.is_over());
        assert_eq!(told.next(&yolo), Move::Seal);
    }
}

#[test]
fn a_call_that_was_cut_off_is_treated_by_its_effect() {
    let cut_off = |tool, effect, targets| {
        let told = Told::new().then(Message::user("go")).then(asks(&[("a", tool)]));
        told.then(started("a", effect, targets))
    };
    let cut = |effect, targets| cut_off("run", effect, targets);
    let yolo = rules(Mode::Yolo);
    let pure = cut_off("look", Effect::Pure, vec![]).next(&yolo);
    assert!(matches!(pure, Move::RunTool(_)));
    // A tool that was pure when the call began, and is unsafe now, is not repeated.
    let changed = cut(Effect::Pure, vec![]).next(&yolo);
    assert!(matches!(changed, Move::Settle(_, Settled::Unknown)));
    let target = ToolTarget { path: "f".into(), before: None, after: Some(Digest::of(b"x")) };
    let inspect = cut(Effect::Idempotent, vec![target.clone()]).next(&yolo);
    assert!(matches!(inspect, Move::Inspect(_, targets) if targets == [target]));
    let unknown = cut(Effect::Unsafe, vec![]).next(&yolo);
    assert!(matches!(unknown, Move::Settle(_, Settled::Unknown)));
    let retry = Rules { retry_unsafe: true, ..rules(Mode::Yolo) };
    assert!(matches!(cut(Effect::Unsafe, vec![]).next(&retry), Move::RunTool(_)));
}

#[test]
fn a_call_that_came_with_an_import_may_have_run_elsewhere() {
    let imported = |calls: &[(&str, &str)]| {
        let (system, name) = ("codex".to_owned(), "a".to_owned());
        let source = Source { system, id: name, started_at: None };
        let mut created = Created::new("a".parse().unwrap(), "go");
        created.source = Some(source);
        let told = Told::new().then(created);
        let (mut state, seq) = (told.0, told.1 + 1);
        let id = Some(stepwell::model::EventId::derived(b"1"));
        let (seq, event) = (Seq::new(seq), asks(calls).into());
        state.apply(&Recorded { seq, at: Time::EPOCH, id, event });
        Told(state, seq.get())
    };
    let yolo = rules(Mode::Yolo);
    for tool in ["run", "write", "shell_of_another_agent"] {
        let told = imported(&[("a", tool)]);
        assert!(matches!(told.next(&yolo), Move::Settle(_, Settled::Unknown)), "{tool}");
        assert!(told.0.is_started("a"), "{tool}");
    }
    // Read-only calls are repeated; so are calls that the user allowed to repeat.
    assert!(matches!(imported(&[("a", "look")]).next(&yolo), Move::RunTool(_)));
    let retry = Rules { retry_unsafe: true, ..rules(Mode::Yolo) };
    assert!(matches!(imported(&[("a", "run")]).next(&retry), Move::RunTool(_)));
    // A call with an open approval did not run.
    let asked = imported(&[("a", "run")]).then(Gate::new("a", "run it?"));
    assert!(!asked.0.is_started("a"));
    // A call that the model makes here is recorded when it begins.
    let here = imported(&[("a", "look")]).then(Message::tool_result("a", "x"));
    let here = here.then(Step { lane: Lane::main(), n: 1 }).then(asks(&[("b", "run")]));
    assert!(matches!(here.next(&yolo), Move::RunTool(_)));
}

#[test]
fn what_a_cut_off_change_did_is_told_by_its_targets() {
    let (old, new) = (Some(Digest::of(b"old")), Some(Digest::of(b"new")));
    let target = |before, after| ToolTarget { path: "f".into(), before, after };
    assert_eq!(inspect(&[target(old, new)], &[new]), Found::Made);
    assert_eq!(inspect(&[target(old, new)], &[old]), Found::Untouched);
    assert_eq!(inspect(&[target(old, new)], &[None]), Found::Other);
    assert_eq!(inspect(&[target(old, None)], &[None]), Found::Made);
    assert_eq!(inspect(&[target(old, new), target(None, new)], &[new, None]), Found::Other);
    assert_eq!(inspect(&[], &[]), Found::Other);
}

#[test]
fn permission_follows_mode_memory_and_gates() {
    let asked = |tool| Told::new().then(Message::user("go")).then(asks(&[("a", tool)]));
    let sensitive = rules(Mode::ConfirmSensitive);
    assert!(matches!(asked("look").next(&sensitive), Move::RunTool(_)));
    assert!(matches!(asked("write").next(&sensitive), Move::Ask(_)));
    assert!(matches!(asked("look").next(&rules(Mode::ConfirmAll)), Move::Ask(_)));
    assert!(matches!(asked("run").next(&rules(Mode::Yolo)), Move::RunTool(_)));
    let nobody = asked("dance").next(&rules(Mode::Yolo));
    assert!(matches!(nobody, Move::Settle(_, Settled::NoSuchTool)));
    let remembered = |allow| asked("run").then(Permission::new("run", allow));
    assert!(matches!(remembered(true).next(&sensitive), Move::RunTool(_)));
    let denied = remembered(false).next(&sensitive);
    assert!(matches!(denied, Move::Settle(_, Settled::Denied(_))));
    let gate = Gate::new("a", "?");
    let waiting = asked("run").then(gate);
    assert!(matches!(waiting.next(&sensitive), Move::Ask(_)));
    assert!(waiting.0.is_asked("a"));
    let answer = |text: &str| GateAnswered::new("a", text, "me");
    let approved = Told(waiting.0.clone(), waiting.1).then(answer("approve"));
    assert!(matches!(approved.next(&sensitive), Move::RunTool(_)));
    let denied = waiting.then(answer("deny: too risky")).next(&sensitive);
    let why = Settled::Denied("too risky".to_owned());
    assert!(matches!(denied, Move::Settle(_, settled) if settled == why));
}

#[test]
fn what_is_never_allowed_is_not_by_yolo_nor_by_what_is_always_allowed() {
    let asked = |command: &str| {
        let arguments = serde_json::json!({ "command": command }).to_string();
        let asks = Message::assistant("hm").calling("a", "run", arguments);
        let told = Told::new().then(Message::user("go")).then(asks);
        told.then(Permission::new("run(rm*)", false)).then(Permission::new("run", true))
    };
    for mode in [Mode::Yolo, Mode::ConfirmSensitive] {
        let next = |command: &str| asked(command).next(&rules(mode));
        for command in ["rm two", "rm three; true", "rm \"$PWD/four\""] {
            assert!(matches!(next(command), Move::Settle(_, Settled::Denied(_))), "{command}");
        }
        assert!(matches!(next("sh clean.sh"), Move::Ask(_)));
        assert!(matches!(next("ls | wc -l"), Move::RunTool(_)));
    }
}

#[test]
fn limits_are_kept_before_the_call_that_would_break_them() {
    let dollars = |text: &str| text.parse::<Money>().ok();
    let usage = Usage { input: 100, output: 10, ..Usage::default() };
    let spent = Message::assistant("x").spending(usage, dollars("0.5"));
    let told = Told::new().then(spent).then(Message::user("go"));
    let told = told.then(Step { lane: Lane::main(), n: 1 });
    let next = |limits: Limits, cost: Option<Money>| {
        let rules = Rules { limits, ..rules(Mode::Yolo) };
        let estimate = Estimate { tokens: 50, cost, ..Estimate::default() };
        told.0.next(&rules, &Baseline::default(), &estimate)
    };
    let stops = |limits, cost| match next(limits, cost) {
        Move::Stop(stop) => Some(stop.reason),
        _ => None,
    };
    let budget = |text| Limits { budget: dollars(text), ..Limits::default() };
    assert_eq!(stops(Limits::default(), None), None);
    assert_eq!(stops(budget("0.6"), dollars("0.1")), None);
    assert_eq!(stops(budget("0.6"), dollars("0.11")), Some(StopReason::BudgetExceeded));
    assert_eq!(stops(budget("0"), dollars("0.01")), Some(StopReason::BudgetExceeded));
    // Without a price, any cost counts as too high.
    assert_eq!(stops(budget("9"), None), Some(StopReason::BudgetExceeded));
    let steps = |n| Limits { steps: Some(n), ..Limits::default() };
    assert_eq!(stops(steps(1), None), Some(StopReason::MaxSteps));
    assert_eq!(stops(steps(2), None), None);
    let tokens = |n| Limits { tokens: Some(n), ..Limits::default() };
    assert_eq!(stops(tokens(160), None), None);
    assert_eq!(stops(tokens(159), None), Some(StopReason::BudgetExceeded));
    // Only the budget of the whole session counts earlier runs.
    let since = Baseline { spent: told.0.spent, steps: told.0.steps };
    let rules = Rules { limits: budget("0.2"), ..rules(Mode::Yolo) };
    let estimate = Estimate { tokens: 50, cost: dollars("0.1"), shrink: None };
    assert_eq!(told.0.next(&rules, &since, &estimate), Move::CallModel);
    let limits = Limits { budget_total: dollars("0.2"), ..Limits::default() };
    let total = Rules { limits, ..rules };
    assert!(matches!(told.0.next(&total, &since, &estimate), Move::Stop(_)));
}

#[test]
fn what_a_session_cost_elsewhere_counts_against_its_whole_budget() {
    let told = |cost: &str| {
        let cost: Money = cost.parse().unwrap();
        let elsewhere = Some(Elsewhere { cost, ..Elsewhere::default() });
        Edited { elsewhere, ..Edited::default() }
    };
    let told = Told::new().then(Message::user("go")).then(told("0.5")).then(told("0.75"));
    assert_eq!(told.0.spent.cost.to_string(), "0.75");
    let budget_total = "0.8".parse().ok();
    let limits = Limits { budget_total, ..Limits::default() };
    let rules = Rules { limits, ..rules(Mode::Yolo) };
    let since = Baseline { spent: told.0.spent, steps: 0 };
    let estimate = |cost: &str| Estimate { cost: cost.parse().ok(), ..Estimate::default() };
    assert_eq!(told.0.next(&rules, &since, &estimate("0.05")), Move::CallModel);
    assert!(matches!(told.0.next(&rules, &since, &estimate("0.06")), Move::Stop(_)));
}

#[test]
fn a_conversation_shrinks_before_the_model_is_asked_and_within_the_budget() {
    let told = Told::new().then(Message::user("go"));
    let next = |limits: Limits, shrink| {
        let rules = Rules { limits, ..rules(Mode::Yolo) };
        let estimate = Estimate { tokens: 50, shrink: Some(shrink), ..Estimate::default() };
        told.0.next(&rules, &Baseline::default(), &estimate)
    };
    let summary = Shrink::Summarise { tokens: 100, cost: "0.1".parse().ok() };
    assert_eq!(next(Limits::default(), summary), Move::Compact(By::Model));
    assert_eq!(next(Limits::default(), Shrink::Truncate), Move::Compact(By::Nobody));
    let budget = |text: &str| Limits { budget: text.parse().ok(), ..Limits::default() };
    assert_eq!(next(budget("0.1"), summary), Move::Compact(By::Model));
    assert_eq!(next(budget("0.09"), summary), Move::Compact(By::Nobody));
    let free = Shrink::Summarise { tokens: 100, cost: None };
    assert_eq!(next(budget("9"), free), Move::Compact(By::Nobody));
    let tokens = Limits { tokens: Some(99), ..Limits::default() };
    assert_eq!(next(tokens, summary), Move::Compact(By::Nobody));
    let steps = Limits { steps: Some(0), ..Limits::default() };
    assert!(matches!(next(steps, summary), Move::Stop(_)));
    // While tools run, the conversation does not shrink.
    let told = told.then(asks(&[("a", "look")]));
    let estimate = Estimate { shrink: Some(summary), ..Estimate::default() };
    let made = told.0.next(&rules(Mode::Yolo), &Baseline::default(), &estimate);
    assert!(matches!(made, Move::RunTool(_)));
}

#[test]
fn a_new_phase_counts_until_the_model_speaks_or_the_conversation_shrinks() {
    use stepwell::model::{Compacted, Phase, PhaseChanged};
    let turn = PhaseChanged { from: Phase::Discuss, to: Phase::Plan };
    let told = Told::new().then(Message::user("go")).then(turn);
    assert!(told.0.turned);
    assert!(!Told(told.0.clone(), told.1).then(Message::assistant("x")).0.turned);
    let compacted = Compacted {
        model: Some("m".into()),
        ..Compacted::new(Lane::main(), Seq::new(1), Seq::new(1))
    };
    let told = told.then(compacted);
    assert!(!told.0.turned);
    assert_eq!((told.0.summaries, told.0.answers), (1, 0));
}

#[test]
fn a_subagent_is_taken_up_where_its_session_stands() {
    let call = Message::assistant("").calling("c", "hand_on", r#"{"task":"x"}"#);
    let started = |child: &str| {
        let child = Some(child.parse().unwrap());
        ToolStarted { child, ..started("c", Effect::Resumable, Vec::new()) }
    };
    let told = Told::new().then(call).then(started("one"));
    let rules = rules(Mode::ConfirmAll);
    assert!(matches!(told.next(&rules), Move::RunTool(call) if call.id == "c"));
    assert_eq!(told.0.child("c").unwrap().as_str(), "one");
    // A fork starts another session for the same call.
    assert_eq!(told.then(started("two")).0.child("c").unwrap().as_str(), "two");
}

#[test]
fn a_subagent_that_only_looks_is_not_asked_about() {
    let mut rules = rules(Mode::ConfirmSensitive);
    rules.effects.insert("hand_on".to_owned(), Effect::Resumable);
    let next = |arguments: &str| {
        let call = Message::assistant("").calling("c", "hand_on", arguments);
        Told::new().then(call).next(&rules)
    };
    assert!(matches!(next(r#"{"task":"x"}"#), Move::RunTool(_)));
    assert!(matches!(next(r#"{"task":"x","workspace":"worktree"}"#), Move::Ask(_)));
}

#[test]
fn what_subagents_spent_counts_against_every_limit() {
    let mut told = Told::new().then(Message::user("go"));
    let usage = Usage { input: 60, output: 40, ..Usage::default() };
    told.0.below.count(usage, Some("0.5".parse().unwrap()));
    let stops = |limits: Limits| {
        let rules = Rules { limits, ..rules(Mode::Yolo) };
        let cost = Some("0.2".parse().unwrap());
        let estimate = Estimate { tokens: 10, cost, ..Estimate::default() };
        matches!(told.0.next(&rules, &Baseline::default(), &estimate), Move::Stop(_))
    };
    let dollars = |text: &str| Some(text.parse().unwrap());
    for (limit, stop) in [("0.6", true), ("0.7", false)] {
        assert_eq!(stops(Limits { budget: dollars(limit), ..Limits::default() }), stop);
        assert_eq!(stops(Limits { budget_total: dollars(limit), ..Limits::default() }), stop);
    }
    assert!(stops(Limits { tokens: Some(109), ..Limits::default() }));
    assert!(!stops(Limits { tokens: Some(110), ..Limits::default() }));
}

#[test]
fn other_events_change_nothing() {
    let told = Told::new().then(Message::user("go")).then(Failure { message: "x".into() });
    assert_eq!(told.next(&rules(Mode::Yolo)), Move::CallModel);
    let other = Message::assistant("elsewhere").in_lane("side".parse().unwrap());
    assert_eq!(told.then(other).next(&rules(Mode::Yolo)), Move::CallModel);
}

#[test]
fn leave_to_write_files_is_no_leave_to_have_them_run() {
    let rules = |mode| {
        let effects = [("write_file".to_owned(), Effect::Idempotent)].into();
        Rules { effects, ..rules(mode) }
    };
    let asked = |path: &str| {
        let arguments = serde_json::json!({ "path": path, "content": "x" }).to_string();
        let asks = Message::assistant("hm").calling("a", "write_file", &arguments);
        let told = Told::new().then(Message::user("go")).then(asks);
        told.then(Permission::new("write_file", true))
    };
    let sensitive = rules(Mode::ConfirmSensitive);
    assert!(matches!(asked("src/main.rs").next(&sensitive), Move::RunTool(_)));
    assert!(matches!(asked(".envrc").next(&sensitive), Move::Ask(_)));
    assert!(matches!(asked("a/.husky/pre-commit").next(&sensitive), Move::Ask(_)));
    assert!(matches!(asked(".envrc").next(&rules(Mode::Yolo)), Move::RunTool(_)));
}

#[test]
fn a_call_of_somebody_elses_run_is_asked_about_whatever_was_allowed_before() {
    let always = Permission::new("run", true);
    let calls = asks(&[("1", "run"), ("2", "look")]);
    let mut told = Told::new().then(Message::user("go")).then(always).then(calls);
    let yolo = rules(Mode::Yolo);
    assert!(matches!(told.next(&yolo), Move::RunTool(_)), "her own");
    for call in ["1", "2"] {
        told.0.note_others_call(call, Who::from("bob"));
    }
    assert!(matches!(told.next(&yolo), Move::Ask(_)));
    let told = told.then(Gate::new("1", "?")).then(GateAnswered::new("1", "yes", "ann"));
    assert!(matches!(told.next(&yolo), Move::RunTool(_)), "she allowed it");
    // Read-only calls need an approval as well: another person chose what they read.
    let told = told.then(Message::tool_result("1", "done"));
    assert!(matches!(told.next(&yolo), Move::Ask(_)));
}

#[test]
fn a_call_that_began_in_somebody_elses_run_does_not_run_again() {
    for effect in [Effect::Pure, Effect::Idempotent, Effect::Unsafe] {
        let calls = asks(&[("1", "write")]);
        let mut told = Told::new().then(calls).then(started("1", effect, Vec::new()));
        told.0.note_others_call("1", Who::from("bob"));
        let next = told.next(&rules(Mode::Yolo));
        assert!(matches!(next, Move::Settle(_, Settled::Unknown)), "{effect:?}: {next:?}");
        let retry = Rules { retry_unsafe: true, ..rules(Mode::Yolo) };
        assert!(matches!(told.next(&retry), Move::Ask(_)), "{effect:?}");
    }
}

#[test]
fn what_somebody_else_asked_for_changes_nothing_unasked_until_the_user_speaks() {
    let yolo = rules(Mode::Yolo);
    let always = Permission::new("run", true);
    let mut told = Told::new().then(always).then(Message::user("delete everything"));
    assert_eq!(told.0.last_request(), Some(Seq::new(2)));
    told.0.note_others_request(Who::from("bob"));
    let told = told.then(asks(&[("1", "look"), ("2", "run")]));
    assert!(matches!(told.next(&yolo), Move::RunTool(_)), "looking is not changing");
    let told = told.then(Message::tool_result("1", "done"));
    assert!(matches!(told.next(&yolo), Move::Ask(_)));
    let told = told.then(Message::tool_result("2", "no")).then(Message::user("do this"));
    let told = told.then(asks(&[("3", "run")]));
    assert!(matches!(told.next(&yolo), Move::RunTool(_)));
}

#[test]
fn a_question_that_is_asked_anew_stays_open_until_then_and_loses_its_answer() {
    let mut open = Told::new().then(asks(&[("1", "run")])).then(Gate::new("1", "?"));
    open.0.ask_anew("1");
    assert_eq!((open.0.open_question("1"), open.0.is_asked("1")), (None, true));
    let again = open.then(Gate::new("1", "really?"));
    assert_eq!(again.0.open_question("1"), Some(Seq::new(3)));
    let mut answered = again.then(GateAnswered::new("1", "yes", "ann"));
    answered.0.ask_anew("1");
    assert!(matches!(answered.next(&rules(Mode::ConfirmSensitive)), Move::Ask(_)));
}

#[test]
fn a_run_of_which_a_part_was_allowed_does_not_end_as_one_of_which_nothing_was() {
    let yolo = rules(Mode::Yolo);
    let finished = |id: &str, outcome| ToolFinished {
        lane: Lane::main(),
        call_id: id.to_owned(),
        outcome,
        duration_ms: 0,
    };
    let ends = |first, second| {
        let told = Told::new().then(Message::user("go")).then(asks(&[("a", "run")]));
        let told = told.then(finished("a", first)).then(Message::tool_result("a", "x"));
        let told = told.then(Step { lane: Lane::main(), n: 1 });
        // The user sends a message while the run works.
        let told = told.then(Message::user("and b")).then(asks(&[("b", "run")]));
        let told = told.then(finished("b", second)).then(Message::tool_result("b", "no"));
        let told = told.then(Step { lane: Lane::main(), n: 2 });
        match told
            .then(Message::assistant("well"))
            .then(Step { lane: Lane::main(), n: 3 })
            .next(&yolo)
        {
            Move::Stop(stop) => stop.status,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ends(Outcome::Done, Outcome::Denied), Status::Success);
    assert_eq!(ends(Outcome::Failed, Outcome::Denied), Status::Success);
    assert_eq!(ends(Outcome::Denied, Outcome::Denied), Status::Partial);
    assert_eq!(ends(Outcome::Denied, Outcome::Done), Status::Success);
}
