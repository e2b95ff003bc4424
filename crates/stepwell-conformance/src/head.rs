//! Claims about the head: it is the fold of all events.

use std::collections::BTreeMap;

use stepwell::model::{
    About, Artifact, Change, Checkpoint, CheckpointReason, Compacted, Digest, Edited, Effect,
    Elsewhere, Failure, FileChanged, FileState, Foreign, Gate, GateAnswered, Kind, Mode, Money,
    Node, NodeState, Outcome, Permission, Phase, PhaseChanged, PhaseSet, Question, Record,
    Restored, Rewinding, Rewound, Said, Scope, Settings, StatusChanged, Step, StopAsked, Task,
    ToolFinished, ToolStarted, Undone, Usage, WorkAsked, WorkChange,
};
use stepwell::store::Scrub;
use stepwell::{Created, Event, Lane, Message, Seq, Status, StopReason};

use crate::claims::claims;
use crate::harness::{created, id, say};
use crate::{Fixture, Harness};

claims! { $ head = head_claims for Fixture:
    the_head_is_the_fold_after_every_kind,
    the_head_is_the_fold_after_hundreds_of_events,
    money_adds_up_exactly,
    each_lane_has_its_own_share,
    the_heads_model_is_the_main_lanes_last,
    a_stopped_session_says_why,
    a_resumed_session_counts_it,
    edits_change_what_they_name_and_nothing_else,
    what_was_done_elsewhere_counts_once_however_often_it_is_told,
    an_edit_beyond_the_limits_is_refused,
    numbers_in_metadata_are_read_back_as_they_were,
    a_long_task_is_cut_in_the_head_only,
    bytes_of_a_session_grow_with_its_events,
}

fn kinds(blob: Digest) -> Vec<Event> {
    let main = Lane::main;
    let usage = Usage { input: 5, output: 2, cached: 1, cache_written: 2, reasoning: 1 };
    let file = FileState::File { blob, mode: 0o644 };
    vec![
        Message::assistant("hi").calling("c", "sh", "{}").spending(usage, None).into(),
        ToolStarted {
            lane: main(),
            call_id: "c".into(),
            tool: "sh".into(),
            effect: Effect::Unsafe,
            arguments: Digest::of(b"{}"),
            targets: Vec::new(),
            child: None,
        }
        .into(),
        ToolFinished { lane: main(), call_id: "c".into(), outcome: Outcome::Done, duration_ms: 3 }
            .into(),
        Step { lane: main(), n: 1 }.into(),
        StatusChanged { status: Status::Paused, reason: Some(StopReason::Gate), error: None }
            .into(),
        PhaseChanged { from: Phase::Initializing, to: Phase::Planning }.into(),
        FileChanged {
            path: "src/x.rs".into(),
            before: FileState::Absent,
            after: file,
            renamed_from: None,
        }
        .into(),
        Node {
            key: "n".into(),
            state: NodeState::Done,
            output: Some(serde_json::json!({ "x": [1, 2.5] })),
            usage: None,
            error: None,
        }
        .into(),
        Gate::new("g", "?").into(),
        GateAnswered::new("g", "y", "ann").into(),
        Checkpoint { name: "c".into(), reason: CheckpointReason::Phase, metadata: BTreeMap::new() }
            .into(),
        Compacted {
            pinned: vec![Seq::new(2)],
            tokens_before: 9,
            tokens_after: 1,
            usage: Some(usage),
            cost: Some(Money::from_picos(1)),
            model: Some("m".into()),
            ..Compacted::new(main(), Seq::new(2), Seq::new(3))
        }
        .into(),
        Rewound { to: Seq::new(5), scope: Scope::Both, restored: Restored::default() }.into(),
        Undone::Rewind { of: Seq::new(14), scope: Scope::Both, restored: Restored::default() }
            .into(),
        Rewinding::Begun { to: Seq::new(5), scope: Scope::Files, undoes: None, files: 0 }.into(),
        Permission::new("sh", true).into(),
        Settings { mode: Some(Mode::Yolo), who: "ann".into(), ..Settings::default() }.into(),
        Said { text: "x".into(), lane: Lane::main(), who: "ann".into(), now: true }.into(),
        StopAsked { epoch: stepwell::model::Epoch::FIRST, who: "ann".into(), reason: None }.into(),
        WorkAsked {
            epoch: stepwell::model::Epoch::FIRST,
            who: "ann".into(),
            change: WorkChange::Checkpoint { name: "c".into(), metadata: BTreeMap::new() },
        }
        .into(),
        Record { system: "s".into(), topic: "t".into(), key: "k".into(), ..Record::default() }
            .into(),
        Artifact { path: "out.txt".into(), digest: Digest::of(b"x") }.into(),
        Task { id: "t".into(), ..Task::default() }.into(),
        Question::new("q", "why").into(),
        Failure { message: "broke".into() }.into(),
        Edited { tag: ["x".into()].into(), ..Edited::default() }.into(),
        Foreign { system: "acme".into(), about: About::Itself, data: "{}".into() }.into(),
    ]
}

fn the_head_is_the_fold_after_every_kind<F: Fixture>(w: &mut Harness<F>) {
    let blob = w.store().put_blob(b"fn main() {}").unwrap();
    let lease = w.begin_as(Created { phases: Some(PhaseSet::Lifecycle), ..created("a") });
    let mut seen = vec!["created".to_owned(), "scrubbed".to_owned()];
    for event in kinds(blob) {
        w.tick();
        seen.push(event.kind().to_owned());
        w.add(&lease, event);
        w.assert_folded("a");
    }
    let scrub = Scrub {
        session: id("a"),
        epoch: Some(lease.epoch),
        rule: "test".to_owned(),
        replacements: vec![(Seq::new(2), Message::assistant("").into())],
    };
    w.store().maintain().scrub(scrub).unwrap();
    w.assert_folded("a");
    for kind in Kind::ALL {
        assert!(seen.iter().any(|name| name == kind.as_str()), "{kind:?}");
    }
}

fn the_head_is_the_fold_after_hundreds_of_events<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for _ in 0..6 {
        w.chat(&lease, "x", 100);
    }
    w.reopen();
    assert_eq!(w.head("a").messages, 600);
    w.assert_folded("a");
}

fn money_adds_up_exactly<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let cost: Money = "0.1".parse().unwrap();
    let paid = Message::assistant("x").spending(Usage::default(), Some(cost));
    let free = Message::assistant("x").spending(Usage::default(), None);
    let mut events = vec![paid.into(); 10];
    events.push(free.into());
    w.try_add(&lease, events).unwrap();
    let spent = w.head("a").spent;
    assert_eq!(spent.cost, "1".parse().unwrap());
    assert_eq!((spent.calls, spent.unpriced), (11, 1));
}

fn each_lane_has_its_own_share<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let side: Lane = "side".parse().unwrap();
    let usage = Usage { input: 10, ..Usage::default() };
    w.add(&lease, say("main"));
    let paid = Message::assistant("x").spending(usage, None);
    w.add(&lease, paid.clone().in_lane(side.clone()));
    w.add(&lease, paid.in_lane(side.clone()));
    let step = Step { lane: side.clone(), n: 1 };
    w.add(&lease, step);
    let lanes = w.store().lanes(&id("a")).unwrap();
    assert_eq!(lanes.len(), 2);
    assert_eq!((lanes[&Lane::main()].messages, lanes[&Lane::main()].steps), (1, 0));
    assert_eq!((lanes[&side].messages, lanes[&side].steps), (2, 1));
    assert_eq!(lanes[&side].spent.usage.input, 20);
    assert_eq!(w.head("a").messages, 3);
    w.reopen();
    w.assert_folded("a");
}

fn the_heads_model_is_the_main_lanes_last<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let by = |model: &str| Message { model: Some(model.to_owned()), ..Message::assistant("x") };
    w.add(&lease, by("large"));
    w.add(&lease, by("small").in_lane("side".parse().unwrap()));
    assert_eq!(w.head("a").model, "large");
}

fn a_stopped_session_says_why<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let stopped = StatusChanged {
        status: Status::Failed,
        reason: Some(StopReason::LlmError),
        error: Some("429".to_owned()),
    };
    w.add(&lease, stopped);
    w.release(&lease);
    let head = w.head("a");
    assert_eq!(head.status, Status::Failed);
    assert_eq!(head.stop_reason, Some(StopReason::LlmError));
    assert_eq!(head.error.as_deref(), Some("429"));
    w.assert_folded("a");
}

fn a_resumed_session_counts_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let status = |status| StatusChanged { status, reason: None, error: None };
    w.add(&lease, status(Status::Running));
    assert_eq!(w.head("a").resumes, 0);
    w.add(&lease, status(Status::Partial));
    w.add(&lease, status(Status::Running));
    assert_eq!(w.head("a").resumes, 1);
}

fn edits_change_what_they_name_and_nothing_else<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    w.edit(
        "a",
        Edited {
            label: Change::Set("l".into()),
            tag: ["x".into(), "y".into()].into(),
            metadata: [("k".into(), 1.into()), ("m".into(), 2.into())].into(),
            goal: Change::Set("g".into()),
            budget: Change::Set("2.5".parse().unwrap()),
            pinned: Some(true),
            ..Edited::default()
        },
    );
    w.edit(
        "a",
        Edited {
            label: Change::Clear,
            untag: ["x".into()].into(),
            metadata: [("k".into(), serde_json::Value::Null)].into(),
            ..Edited::default()
        },
    );
    let head = w.head("a");
    assert_eq!(head.label, None);
    assert_eq!(head.tags, ["y".to_owned()].into());
    assert_eq!(head.metadata, [("m".to_owned(), 2.into())].into());
    assert_eq!(head.goal.as_deref(), Some("g"));
    assert_eq!(head.budget, Some("2.5".parse().unwrap()));
    assert!(head.pinned);
    w.assert_folded("a");
}

fn what_was_done_elsewhere_counts_once_however_often_it_is_told<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, Step { lane: Lane::main(), n: 1 });
    for (steps, cost, errors) in [(5, "0", 2), (7, "0.75", 3)] {
        let cost: Money = cost.parse().unwrap();
        let last_error = Some(format!("error {errors}"));
        let usage = Usage { input: 10 * steps, output: steps, ..Usage::default() };
        let elsewhere = Some(Elsewhere { steps, cost, usage, errors, last_error });
        w.edit("a", Edited { elsewhere, ..Edited::default() });
    }
    let head = w.head("a");
    assert_eq!((head.steps, head.errors), (8, 3));
    assert_eq!(head.spent.cost, "0.75".parse().unwrap());
    assert_eq!((head.spent.usage.input, head.spent.usage.output), (70, 7));
    assert_eq!((head.spent.calls, head.spent.unpriced), (0, 0));
    assert_eq!(head.last_error.unwrap().message, "error 3");
    w.assert_folded("a");
}

fn an_edit_beyond_the_limits_is_refused<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let label = |text: String| Edited { label: Change::Set(text), ..Edited::default() };
    let tags = (0..65).map(|n| n.to_string()).collect();
    let edits = [
        label(String::new()),
        label("x".repeat(129)),
        label("a\nb".to_owned()),
        Edited { tag: tags, ..Edited::default() },
        Edited { goal: Change::Set("g".repeat(70_000)), ..Edited::default() },
        Edited { pin_messages: [Seq::new(2)].into(), ..Edited::default() },
        Edited { unpin_messages: [Seq::ZERO].into(), ..Edited::default() },
        Edited { metadata: [("k".into(), "v".repeat(70_000).into())].into(), ..Edited::default() },
    ];
    for edit in edits {
        let error = w.tell("a", edit).unwrap_err();
        assert!(matches!(error, stepwell::Error::Illegal { .. }), "{error}");
    }
    assert_eq!(w.log("a").len(), 1);
}

fn numbers_in_metadata_are_read_back_as_they_were<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let numbers = [31.245270191439438, 121.48791951161945, 0.1, 1e300, 5e-324];
    let edit = Edited {
        metadata: [
            ("floats".into(), serde_json::json!(numbers)),
            ("large".into(), u64::MAX.into()),
            ("small".into(), i64::MIN.into()),
        ]
        .into(),
        ..Edited::default()
    };
    w.edit("a", edit.clone());
    assert_eq!(w.log("a")[1].event, Event::Edited(edit.clone()));
    assert_eq!(w.head("a").metadata, edit.metadata);
    w.assert_folded("a");
}

fn a_long_task_is_cut_in_the_head_only<F: Fixture>(w: &mut Harness<F>) {
    let task = "é".repeat(40_000);
    w.make(Created::new(id("a"), task.clone()));
    let head = w.head("a");
    assert!(head.task.len() <= stepwell::log::PREVIEW_BYTES);
    assert!(!head.task.is_empty() && task.starts_with(&head.task));
    let Event::Created(stored) = &w.log("a")[0].event else { panic!("it does not begin") };
    assert_eq!(stored.task, task);
    w.assert_folded("a");
}

fn bytes_of_a_session_grow_with_its_events<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let before = w.store().info(&id("a")).unwrap().bytes;
    let total = w.store().maintain().disk_use().unwrap();
    assert!(before > 0);
    w.add(&lease, say(&"x".repeat(1_000)));
    let after = w.store().info(&id("a")).unwrap().bytes;
    assert!(after >= before + 1_000 && after < before + 2_000, "{before} {after}");
    let used = w.store().maintain().disk_use().unwrap();
    assert!(used.events >= total.events + 1_000);
    assert!(used.total >= used.events);
}
