//! Claims about rewinding the view, and undoing that.

use stepwell::log::Timeline;
use stepwell::model::{
    Change, Compacted, Edited, Gate, Kind, Money, Phase, PhaseChanged, PhaseSet, Question,
    Restored, Rewinding, Rewound, Scope, Task, TaskStatus, Undone, Usage,
};
use stepwell::store::Lease;
use stepwell::work::Work;
use stepwell::{Created, Error, Event, Lane, Message, Seq};

use crate::claims::claims;
use crate::harness::{created, id, say};
use crate::{Fixture, Harness};

claims! { $ rewind = rewind_claims for Fixture:
    a_rewind_brings_back_phase_goal_and_gates,
    a_rewind_of_files_brings_back_nothing,
    a_rewind_never_takes_back_cost_steps_errors_or_history,
    a_rewind_says_what_it_restored,
    what_the_client_claims_to_restore_does_not_count,
    undoing_a_rewind_brings_back_what_was_before_it,
    undoing_a_rewind_repeats_its_scope,
    an_undoing_is_undone_in_turn,
    a_rewind_over_a_rewind_restores_the_live_branch,
    a_rewind_to_no_event_is_refused,
    what_is_about_to_be_moved_changes_nothing_and_is_found_again,
    undoing_what_is_no_rewind_is_refused,
    a_rewind_is_undone_once,
    a_compaction_is_undone_once,
    a_compaction_of_no_range_is_refused,
    a_rewind_in_a_fork_may_go_into_the_shared_prefix,
    a_rewind_in_a_fork_with_other_phases_stays_in_its_own,
    the_limit_on_going_back_to_discuss_is_rewound_too,
    a_rewind_takes_tasks_and_questions_back_also_in_a_fork,
}

fn rewind(to: u64, scope: Scope) -> Rewound {
    Rewound { to: Seq::new(to), scope, restored: Restored::default() }
}

fn undo(of: u64) -> Undone {
    Undone::Rewind { of: Seq::new(of), scope: Scope::Files, restored: Restored::default() }
}

fn goal(text: &str) -> Edited {
    Edited { goal: Change::Set(text.to_owned()), ..Edited::default() }
}

fn go(from: Phase, to: Phase) -> PhaseChanged {
    PhaseChanged { from, to }
}

fn gate(name: &str) -> Gate {
    Gate::new(name, String::new())
}

fn stand<F: Fixture>(w: &Harness<F>, name: &str) -> (Option<Phase>, Option<String>, u64) {
    let head = w.head(name);
    (head.phase, head.goal, head.open_gates)
}

/// 2: goal one, 3: planning, 4: gate g, 5: goal two, 6: executing.
fn history<F: Fixture>(w: &Harness<F>) -> Lease {
    let lease = w.begin_as(Created { phases: Some(PhaseSet::Lifecycle), ..created("a") });
    w.edit("a", goal("one"));
    w.add(&lease, go(Phase::Initializing, Phase::Planning));
    w.add(&lease, gate("g"));
    w.edit("a", goal("two"));
    w.add(&lease, go(Phase::Planning, Phase::Executing));
    lease
}

fn a_rewind_brings_back_phase_goal_and_gates<F: Fixture>(w: &mut Harness<F>) {
    for (to, phase, goal, gates) in [
        (6, Phase::Executing, Some("two"), 1),
        (5, Phase::Planning, Some("two"), 1),
        (4, Phase::Planning, Some("one"), 1),
        (3, Phase::Planning, Some("one"), 0),
        (2, Phase::Initializing, Some("one"), 0),
        (1, Phase::Initializing, None, 0),
    ] {
        let lease = match w.has("a") {
            false => history(w),
            true => w.begin_as(Created {
                origin: stepwell::model::Origin::Fork { parent: id("a"), at: Seq::new(6) },
                phases: Some(PhaseSet::Lifecycle),
                ..created(&format!("f{to}"))
            }),
        };
        let name = lease.session.as_str();
        w.add(&lease, rewind(to, Scope::Both));
        let expected = (Some(phase), goal.map(str::to_owned), gates);
        assert_eq!(stand(w, name), expected, "back at {to}");
        assert_eq!(w.head(name).ready, phase == Phase::Planning);
        w.assert_folded(name);
    }
}

fn a_rewind_of_files_brings_back_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    let before = stand(w, "a");
    w.add(&lease, rewind(2, Scope::Files));
    assert_eq!(stand(w, "a"), before);
    w.assert_folded("a");
}

fn a_rewind_never_takes_back_cost_steps_errors_or_history<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let cost: Money = "0.25".parse().unwrap();
    let usage = Usage { input: 7, output: 3, ..Usage::default() };
    w.add(&lease, Message::assistant("x").spending(usage, Some(cost)));
    let step = stepwell::model::Step { lane: Lane::main(), n: 1 };
    w.add(&lease, step);
    let failure = stepwell::model::Failure { message: "oops".to_owned() };
    w.add(&lease, failure);
    w.add(&lease, rewind(1, Scope::Both));
    let head = w.head("a");
    assert_eq!((head.spent.cost, head.spent.calls), (cost, 1));
    assert_eq!((head.steps, head.messages, head.errors), (1, 1, 1));
    assert_eq!(w.log("a").len(), 5);
}

fn restored<F: Fixture>(w: &Harness<F>, at: usize) -> Restored {
    match &w.log("a")[at - 1].event {
        Event::Rewound(rewound) => rewound.restored.clone(),
        Event::Undone(Undone::Rewind { restored, .. }) => restored.clone(),
        event => panic!("{event:?}"),
    }
}

fn a_rewind_says_what_it_restored<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    w.add(&lease, rewind(4, Scope::Chat));
    let expected = Restored {
        phase: Some(Phase::Planning),
        discuss_returns: 0,
        goal: Some("one".to_owned()),
        open_gates: 1,
    };
    assert_eq!(restored(w, 7), expected);
}

fn what_the_client_claims_to_restore_does_not_count<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    let forged = Rewound {
        restored: Restored {
            phase: Some(Phase::Completed),
            goal: Some("mine".to_owned()),
            open_gates: 9,
            discuss_returns: 9,
        },
        ..rewind(3, Scope::Chat)
    };
    w.add(&lease, forged);
    let expected = (Some(Phase::Planning), Some("one".to_owned()), 0);
    assert_eq!(stand(w, "a"), expected);
}

fn undoing_a_rewind_brings_back_what_was_before_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    let before = stand(w, "a");
    w.add(&lease, rewind(2, Scope::Chat));
    w.edit("a", goal("three"));
    w.add(&lease, undo(7));
    assert_eq!(stand(w, "a"), before);
    w.assert_folded("a");
}

fn undoing_a_rewind_repeats_its_scope<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    w.add(&lease, rewind(2, Scope::Both));
    w.add(&lease, undo(7));
    let last = w.log("a").pop().unwrap();
    assert!(
        matches!(last.event, Event::Undone(Undone::Rewind { scope: Scope::Both, .. })),
        "{last:?}"
    );
}

fn an_undoing_is_undone_in_turn<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    let before = stand(w, "a");
    w.add(&lease, rewind(2, Scope::Both)); // 7
    let rewound = stand(w, "a");
    w.add(&lease, undo(7)); // 8
    w.add(&lease, undo(8)); // 9
    assert_eq!(stand(w, "a"), rewound);
    refuses(w, &lease, undo(9 + 1));
    w.add(&lease, undo(9)); // 10
    assert_eq!(stand(w, "a"), before);
    let scope =
        |event: &Event| matches!(event, Event::Undone(Undone::Rewind { scope: Scope::Both, .. }));
    assert!(w.log("a").iter().skip(7).all(|it| scope(&it.event)));
    w.assert_folded("a");
}

fn a_rewind_over_a_rewind_restores_the_live_branch<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    w.add(&lease, rewind(2, Scope::Chat)); // 7
    w.edit("a", goal("three")); // 8
    w.edit("a", goal("four")); // 9
    w.add(&lease, rewind(8, Scope::Chat)); // 10
    let expected = (Some(Phase::Initializing), Some("three".to_owned()), 0);
    assert_eq!(stand(w, "a"), expected);
    // Back to the branch that the first rewind left.
    w.add(&lease, rewind(6, Scope::Chat)); // 11
    let expected = (Some(Phase::Executing), Some("two".to_owned()), 1);
    assert_eq!(stand(w, "a"), expected);
    w.assert_folded("a");
    let log = w.log("a");
    let live = Timeline::at(Seq::new(11), log.iter());
    let live: Vec<_> = (1..=11).filter(|n| live.contains(Seq::new(*n))).collect();
    assert_eq!(live, [1, 2, 3, 4, 5, 6, 11]);
}

fn refuses<F: Fixture>(w: &Harness<F>, lease: &Lease, event: impl Into<stepwell::NewEvent>) {
    let before = w.log("a").len();
    let error = w.try_add(lease, vec![event.into()]).unwrap_err();
    assert!(matches!(error, Error::Illegal { .. }), "{error}");
    assert_eq!(w.log("a").len(), before);
}

fn a_rewind_to_no_event_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    refuses(w, &lease, rewind(0, Scope::Chat));
    refuses(w, &lease, rewind(7, Scope::Chat));
    refuses(w, &lease, rewind(u64::MAX, Scope::Files));
}

fn what_is_about_to_be_moved_changes_nothing_and_is_found_again<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    let begun =
        |to| Rewinding::Begun { to: Seq::new(to), scope: Scope::Both, undoes: None, files: 0 };
    refuses(w, &lease, begun(0));
    refuses(w, &lease, begun(7));
    let before = stand(w, "a");
    w.add(&lease, begun(2));
    w.add(&lease, Rewinding::Dropped { of: Seq::new(7), why: "no room".to_owned() });
    assert_eq!(stand(w, "a"), before);
    let facts = w.store().keyed_events(&id("a"), &[Kind::Rewinding]).unwrap();
    assert_eq!(facts.iter().map(|fact| fact.seq.get()).collect::<Vec<_>>(), [7, 8]);
    w.assert_folded("a");
}

fn undoing_what_is_no_rewind_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    w.add(&lease, rewind(2, Scope::Chat));
    for of in [0, 1, 2, 6, 8, 99] {
        refuses(w, &lease, undo(of));
    }
    refuses(w, &lease, Undone::Compaction { of: Seq::new(7) });
}

fn a_rewind_is_undone_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = history(w);
    w.add(&lease, rewind(2, Scope::Chat));
    w.add(&lease, undo(7));
    refuses(w, &lease, undo(7));
}

fn compact(from: u64, to: u64) -> Compacted {
    Compacted {
        summary: Some("in short".to_owned()),
        ..Compacted::new(Lane::main(), Seq::new(from), Seq::new(to))
    }
}

fn a_compaction_is_undone_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "x", 3);
    w.add(&lease, compact(2, 3));
    let undo = Undone::Compaction { of: Seq::new(5) };
    w.add(&lease, undo.clone());
    refuses(w, &lease, undo);
    w.assert_folded("a");
}

fn a_compaction_of_no_range_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "x", 3);
    refuses(w, &lease, compact(0, 2));
    refuses(w, &lease, compact(3, 2));
    refuses(w, &lease, compact(2, 5));
}

fn a_rewind_in_a_fork_may_go_into_the_shared_prefix<F: Fixture>(w: &mut Harness<F>) {
    history(w);
    let lease = w.begin_as(Created {
        origin: stepwell::model::Origin::Fork { parent: id("a"), at: Seq::new(5) },
        phases: Some(PhaseSet::Lifecycle),
        ..created("f")
    });
    w.add(&lease, say("on its own"));
    w.add(&lease, rewind(2, Scope::Chat));
    let expected = (Some(Phase::Initializing), Some("one".to_owned()), 0);
    assert_eq!(stand(w, "f"), expected);
    w.assert_folded("f");
}

fn a_rewind_in_a_fork_with_other_phases_stays_in_its_own<F: Fixture>(w: &mut Harness<F>) {
    history(w);
    let lease = w.begin_as(Created {
        origin: stepwell::model::Origin::Fork { parent: id("a"), at: Seq::new(5) },
        phases: Some(PhaseSet::Workflow),
        ..created("f")
    });
    w.add(&lease, go(Phase::Idle, Phase::Initialize));
    w.add(&lease, rewind(6, Scope::Chat));
    assert_eq!(w.head("f").phase, Some(Phase::Idle));
    w.add(&lease, go(Phase::Idle, Phase::Initialize));
    w.assert_folded("f");
}

fn the_limit_on_going_back_to_discuss_is_rewound_too<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin_as(Created { phases: Some(PhaseSet::Workflow), ..created("a") });
    w.add(&lease, go(Phase::Idle, Phase::Initialize));
    w.add(&lease, go(Phase::Initialize, Phase::Discuss));
    w.add(&lease, go(Phase::Discuss, Phase::Plan)); // 4
    w.add(&lease, go(Phase::Plan, Phase::Discuss));
    assert_eq!(w.head("a").discuss_returns, 1);
    w.add(&lease, rewind(4, Scope::Chat));
    assert_eq!(w.head("a").discuss_returns, 0);
    w.assert_folded("a");
}

/// The tasks with their status, and the number of questions.
fn work<F: Fixture>(w: &Harness<F>, name: &str) -> (Vec<(String, TaskStatus)>, usize) {
    let facts = w.store().keyed_events(&id(name), &Work::KINDS).unwrap();
    let work = Work::at(w.head(name).seq, facts);
    let tasks = work.tasks.iter().map(|task| (task.id.clone(), task.status)).collect();
    (tasks, work.questions.len())
}

fn a_rewind_takes_tasks_and_questions_back_also_in_a_fork<F: Fixture>(w: &mut Harness<F>) {
    use TaskStatus::{Done, Pending};
    let task = |name: &str, status| Task { id: name.into(), status, ..Task::default() };
    let one = |status| ("one".to_owned(), status);
    let two = || ("two".to_owned(), Pending);
    let lease = w.begin("a");
    w.add(&lease, task("one", Pending)); // 2
    w.add(&lease, task("two", Pending));
    w.add(&lease, task("one", Done));
    w.add(&lease, Question { id: "q".into(), ..Question::default() }); // 5
    assert_eq!(work(w, "a"), (vec![one(Done), two()], 1));
    w.add(&lease, rewind(3, Scope::Chat)); // 6
    assert_eq!(work(w, "a"), (vec![one(Pending), two()], 0));
    w.add(&lease, rewind(3, Scope::Files));
    w.add(&lease, undo(6));
    assert_eq!(work(w, "a"), (vec![one(Done), two()], 1));
    let origin = stepwell::model::Origin::Fork { parent: id("a"), at: Seq::new(5) };
    let fork = w.begin_as(Created { origin, ..created("f") });
    assert_eq!(work(w, "f"), (vec![one(Done), two()], 1));
    w.add(&fork, rewind(2, Scope::Both));
    assert_eq!(work(w, "f"), (vec![one(Pending)], 0));
    assert_eq!(work(w, "a"), (vec![one(Done), two()], 1));
}
