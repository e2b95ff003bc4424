//! Claims about phases: which moves a session accepts.

use stepwell::model::{Driver, MAX_DISCUSS_RETURNS, Phase, PhaseChanged, PhaseSet};
use stepwell::{Created, Error, Status};

use crate::claims::claims;
use crate::harness::{created, id};
use crate::{Fixture, Harness};

claims! { $ phase = phase_claims for Fixture:
    a_legal_move_changes_the_phase,
    an_illegal_move_names_the_legal_ones,
    a_final_phase_cannot_be_left,
    a_move_from_another_phase_is_refused,
    a_move_into_the_other_set_is_refused,
    staying_in_a_phase_is_no_error,
    a_session_without_phases_takes_no_move,
    going_back_to_discuss_is_limited,
    a_phase_says_whether_it_can_be_resumed,
    an_external_sessions_status_follows_its_phase,
    an_own_sessions_status_does_not_follow_its_phase,
    moves_in_one_append_see_each_other,
}

fn begin<F: Fixture>(w: &Harness<F>, set: PhaseSet, driver: Driver) -> stepwell::store::Lease {
    w.begin_as(Created { phases: Some(set), driver, ..created("a") })
}

fn go(from: Phase, to: Phase) -> stepwell::NewEvent {
    PhaseChanged { from, to }.into()
}

fn why<F: Fixture>(
    w: &Harness<F>,
    lease: &stepwell::store::Lease,
    from: Phase,
    to: Phase,
) -> String {
    let before = w.log("a").len();
    let error = w.try_add(lease, vec![go(from, to)]).unwrap_err();
    assert_eq!(w.log("a").len(), before);
    match error {
        Error::Illegal { session, kind, why } => {
            assert_eq!((session, &*kind), (id("a"), "phase"));
            why
        }
        error => panic!("{error}"),
    }
}

fn a_legal_move_changes_the_phase<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Workflow, Driver::Own);
    assert_eq!(w.head("a").phase, Some(Phase::Idle));
    w.add(&lease, go(Phase::Idle, Phase::Initialize));
    w.add(&lease, go(Phase::Initialize, Phase::Discuss));
    assert_eq!(w.head("a").phase, Some(Phase::Discuss));
    w.assert_folded("a");
}

fn an_illegal_move_names_the_legal_ones<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Workflow, Driver::Own);
    w.add(&lease, go(Phase::Idle, Phase::Initialize));
    let why = why(w, &lease, Phase::Initialize, Phase::Ship);
    for word in ["initialize", "ship", "discuss", "execute", "idle"] {
        assert!(why.contains(word), "{word} in {why}");
    }
    assert_eq!(w.head("a").phase, Some(Phase::Initialize));
}

fn a_final_phase_cannot_be_left<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Lifecycle, Driver::Own);
    w.add(&lease, go(Phase::Initializing, Phase::Completed));
    let why = why(w, &lease, Phase::Completed, Phase::Planning);
    assert!(why.contains("final"), "{why}");
}

fn a_move_from_another_phase_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Lifecycle, Driver::Own);
    let why = why(w, &lease, Phase::Planning, Phase::Executing);
    assert!(why.contains("initializing"), "{why}");
}

fn a_move_into_the_other_set_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Lifecycle, Driver::Own);
    let why = why(w, &lease, Phase::Initializing, Phase::Ship);
    assert!(why.contains("planning"), "{why}");
}

fn staying_in_a_phase_is_no_error<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Lifecycle, Driver::Own);
    w.add(&lease, go(Phase::Initializing, Phase::Completed));
    w.add(&lease, go(Phase::Completed, Phase::Completed));
    assert_eq!(w.head("a").phase, Some(Phase::Completed));
    w.assert_folded("a");
}

fn a_session_without_phases_takes_no_move<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let why = why(w, &lease, Phase::Idle, Phase::Initialize);
    assert!(why.contains("no phases"), "{why}");
}

fn going_back_to_discuss_is_limited<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Workflow, Driver::Own);
    w.add(&lease, go(Phase::Idle, Phase::Initialize));
    w.add(&lease, go(Phase::Initialize, Phase::Discuss));
    w.add(&lease, go(Phase::Discuss, Phase::Plan));
    for _ in 0..MAX_DISCUSS_RETURNS {
        w.add(&lease, go(Phase::Plan, Phase::Discuss));
        w.add(&lease, go(Phase::Discuss, Phase::Plan));
    }
    assert_eq!(w.head("a").discuss_returns, MAX_DISCUSS_RETURNS);
    let why = why(w, &lease, Phase::Plan, Phase::Discuss);
    assert!(why.contains("execute"), "{why}");
    w.add(&lease, go(Phase::Plan, Phase::Idle));
    assert_eq!(w.head("a").discuss_returns, 0);
    w.assert_folded("a");
}

fn a_phase_says_whether_it_can_be_resumed<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Lifecycle, Driver::Own);
    w.add(&lease, go(Phase::Initializing, Phase::Planning));
    assert!(w.head("a").ready);
    w.add(&lease, go(Phase::Planning, Phase::Executing));
    assert!(!w.head("a").ready);
}

fn an_external_sessions_status_follows_its_phase<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Lifecycle, Driver::External);
    for (from, to, status) in [
        (Phase::Initializing, Phase::Approval, Status::Paused),
        (Phase::Approval, Phase::Executing, Status::Running),
        (Phase::Executing, Phase::Completed, Status::Success),
    ] {
        w.add(&lease, go(from, to));
        assert_eq!(w.head("a").status, status);
    }
    w.assert_folded("a");
}

fn an_own_sessions_status_does_not_follow_its_phase<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Lifecycle, Driver::Own);
    w.add(&lease, go(Phase::Initializing, Phase::Completed));
    assert_eq!(w.head("a").status, Status::Running);
}

fn moves_in_one_append_see_each_other<F: Fixture>(w: &mut Harness<F>) {
    let lease = begin(w, PhaseSet::Workflow, Driver::Own);
    let events = vec![go(Phase::Idle, Phase::Initialize), go(Phase::Initialize, Phase::Execute)];
    w.try_add(&lease, events).unwrap();
    let events = vec![go(Phase::Execute, Phase::Verify), go(Phase::Execute, Phase::Ship)];
    assert!(w.try_add(&lease, events).is_err());
    assert_eq!(w.head("a").phase, Some(Phase::Execute));
}
