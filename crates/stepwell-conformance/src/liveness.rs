//! Claims about sessions whose runner is gone: they read as interrupted everywhere.

use stepwell::model::{Driver, PhaseSet, StatusChanged, StopAsked};
use stepwell::store::query::{Filter, Query, Search};
use stepwell::{Created, Status, StopReason};

use crate::claims::claims;
use crate::harness::{claim, created, id, say};
use crate::{Fixture, Harness, TestProcesses};

claims! { $ liveness = liveness_claims for Fixture:
    a_session_whose_holder_lives_runs,
    a_session_whose_process_is_gone_is_interrupted_everywhere,
    a_session_whose_lease_expired_is_interrupted_everywhere,
    a_session_whose_lease_was_released_while_running_is_interrupted_everywhere,
    a_session_whose_holder_cannot_be_judged_runs_until_it_expires,
    an_interrupted_session_reads_as_crashed_and_keeps_its_log,
    a_run_that_died_after_it_was_asked_to_stop_reads_as_stopped,
    an_interrupted_session_that_is_taken_over_runs_again,
    a_stopped_session_does_not_become_interrupted,
    an_external_session_runs_without_a_holder,
    reading_the_info_changes_nothing,
}

/// The status of `a` in every answer that has one. They must agree.
fn status<F: Fixture>(w: &Harness<F>) -> Status {
    let status = w.head("a").status;
    for other in Status::ALL {
        let filter = Filter { status: vec![other], ..Filter::default() };
        let listed = w.listed(filter.clone()).contains(&"a".to_owned());
        assert_eq!(listed, other == status, "{other} in the list");
        let counted = w.store().count(&filter).unwrap();
        assert_eq!(counted.total(), u64::from(other == status));
        let search = Search { filter, ..Search::new("task") };
        let found = w.found(&search).len();
        assert_eq!(found, usize::from(other == status), "{other} in search");
    }
    let counts = w.store().count(&Filter::default()).unwrap();
    assert_eq!(counts.by_status, [(status, 1)].into());
    let page = w.store().list(&Query::default()).unwrap();
    assert_eq!(page.sessions[0].head.status, status);
    assert_eq!(page.sessions[0].head, w.head("a"));
    status
}

fn a_session_whose_holder_lives_runs<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    assert_eq!(status(w), Status::Running);
    assert_eq!(w.head("a").stop_reason, None);
}

fn a_session_whose_process_is_gone_is_interrupted_everywhere<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    w.processes.mark_gone(&TestProcesses::holder(1));
    assert_eq!(status(w), Status::Interrupted);
    assert_eq!(w.store().info(&id("a")).unwrap().held, None);
}

fn a_session_whose_lease_expired_is_interrupted_everywhere<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.processes.mark_unknown(&TestProcesses::holder(1));
    w.clock.set(lease.expires.minus(std::time::Duration::from_micros(1)));
    assert_eq!(status(w), Status::Running);
    w.clock.set(lease.expires);
    assert_eq!(status(w), Status::Interrupted);
    assert_eq!(w.store().info(&id("a")).unwrap().held, None);
}

fn a_session_whose_lease_was_released_while_running_is_interrupted_everywhere<F: Fixture>(
    w: &mut Harness<F>,
) {
    let lease = w.begin("a");
    w.release(&lease);
    assert_eq!(status(w), Status::Interrupted);
}

fn a_session_whose_holder_cannot_be_judged_runs_until_it_expires<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.processes.mark_unknown(&TestProcesses::holder(1));
    assert_eq!(status(w), Status::Running);
    w.clock.set(lease.expires);
    assert_eq!(status(w), Status::Interrupted);
}

fn an_interrupted_session_reads_as_crashed_and_keeps_its_log<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let log = w.log("a");
    w.processes.mark_gone(&TestProcesses::holder(1));
    assert_eq!(w.head("a").stop_reason, Some(StopReason::Crashed));
    assert_eq!(w.log("a"), log);
    w.assert_folded("a");
}

fn a_run_that_died_after_it_was_asked_to_stop_reads_as_stopped<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.tell("a", StopAsked { epoch: lease.epoch, who: "ann@laptop".into(), reason: None }).unwrap();
    w.processes.mark_gone(&TestProcesses::holder(1));
    assert_eq!(w.head("a").stop_reason, Some(StopReason::UserInterrupt));
    w.reopen();
    assert_eq!(w.head("a").stop_reason, Some(StopReason::UserInterrupt));
    w.assert_folded("a");
}

fn an_interrupted_session_that_is_taken_over_runs_again<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    w.processes.mark_gone(&TestProcesses::holder(1));
    assert_eq!(status(w), Status::Interrupted);
    let lease = w.store().acquire(&id("a"), &claim(2)).unwrap();
    assert_eq!(status(w), Status::Running);
    w.add(&lease, say("back"));
    w.assert_folded("a");
}

fn a_stopped_session_does_not_become_interrupted<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for stopped in Status::ALL {
        if stopped == Status::Running {
            continue;
        }
        let change =
            StatusChanged { status: stopped, reason: Some(StopReason::LlmDone), error: None };
        w.add(&lease, change);
        w.processes.mark_gone(&TestProcesses::holder(1));
        assert_eq!(status(w), stopped);
        assert_eq!(w.head("a").stop_reason, Some(StopReason::LlmDone));
        w.processes.mark_alive(&TestProcesses::holder(1));
    }
}

fn an_external_session_runs_without_a_holder<F: Fixture>(w: &mut Harness<F>) {
    w.make(Created { driver: Driver::External, phases: Some(PhaseSet::Lifecycle), ..created("a") });
    assert_eq!(status(w), Status::Running);
    let lease = w.store().acquire(&id("a"), &claim(1)).unwrap();
    w.processes.mark_gone(&TestProcesses::holder(1));
    w.clock.set(lease.expires);
    assert_eq!(status(w), Status::Running);
    assert_eq!(w.head("a").stop_reason, None);
}

fn reading_the_info_changes_nothing<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    w.processes.mark_gone(&TestProcesses::holder(1));
    assert_eq!(status(w), Status::Interrupted);
    w.processes.mark_alive(&TestProcesses::holder(1));
    assert_eq!(status(w), Status::Running);
}
