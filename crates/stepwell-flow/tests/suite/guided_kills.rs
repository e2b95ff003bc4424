//! Kills guided work (kill -9) before and after calls of the model and after every write. However
//! it is cut off, it comes to the same end; no command runs twice, and nothing is asked twice.
//!
//! Two cases are left in which nobody knows what came of a command. An agent's command whose start
//! is recorded is not run again, whether it ran or not. A check runs again if it ran, and the
//! process died before it could record the result; that happens only before a write.
//!
//! By default every seventh point is tried, so that it takes some seconds; with
//! `STEPWELL_FLOW_KILLS=all`, every one.

use std::path::Path;

use stepwell::Event;

use crate::guided::{Came, calculator, came, ran_checks, ran_commands};
use crate::kills::{KINDS, Kill, NEVER, is_long, run, run_after, without};

/// How many points are skipped between two by default.
const STRIDE: usize = 7;

struct Expected {
    calls: Vec<String>,
    came: Came,
}

fn check(kill: Kill<'_>, expected: &Expected) {
    let dir = tempfile::tempdir().unwrap();
    let ended = run(dir.path(), "guided", kill);
    let harness = calculator(dir.path());
    let mut expected_end = expected.came.clone();
    if !ended {
        let begun = harness.root.join(".stepwell").exists()
            && harness.well().store().exists(&crate::harness::id()).unwrap();
        let answered = if begun { harness.answered() } else { Vec::new() };
        let events = if begun { harness.events() } else { Vec::new() };
        let recorded = Recorded::of(&events);
        let lost = ran_checks(&harness) - recorded.ended_checks;
        assert!(lost <= usize::from(kill.kind == "write.before_begin"), "killed at {kill}");
        expected_end.checks += lost;
        if recorded.open_commands > 0 {
            expected_end.commands = ran_commands(&harness);
        }
        harness.calls();
        assert!(run_after(dir.path(), "guided", NEVER, kill), "killed at {kill}");
        let missing = without(&expected.calls, &models(answered));
        assert_eq!(harness.calls(), missing, "killed at {kill}: exactly the missing calls");
    }
    assert_eq!(came(&harness), expected_end, "killed at {kill}");
}

/// The commands in a log.
#[derive(Default)]
struct Recorded {
    /// Checks with a result.
    ended_checks: usize,
    /// Commands of agents that started and have no result.
    open_commands: usize,
}

impl Recorded {
    fn of(events: &[stepwell::Recorded]) -> Self {
        let mut recorded = Self::default();
        for event in events {
            let Event::ToolStarted(begun) = &event.event else { continue };
            let is_end = |other: &stepwell::Recorded| {
                matches!(&other.event, Event::ToolFinished(it)
                    if it.lane == begun.lane && it.call_id == begun.call_id)
            };
            let ended = events.iter().any(is_end);
            let check = begun.lane.as_str().starts_with("check-");
            recorded.ended_checks += usize::from(check && ended);
            recorded.open_commands += usize::from(!check && !ended && begun.tool == "run_command");
        }
        recorded
    }
}

/// Without the plan's own calls, which no model answers.
fn models(calls: Vec<String>) -> Vec<String> {
    calls
        .into_iter()
        .filter(|call| !call.starts_with("check-") && !call.starts_with("runtime-"))
        .collect()
}

#[test]
fn guided_work_survives_a_kill_at_every_point() {
    let dir = tempfile::tempdir().unwrap();
    assert!(run(dir.path(), "guided", NEVER));
    let harness = calculator(dir.path());
    let expected = Expected { came: came(&harness), calls: harness.calls() };
    assert_eq!(expected.calls, models(harness.answered()));
    let seen = std::fs::read_to_string(Path::new(dir.path()).join("seen")).unwrap();
    let counts: Vec<usize> = seen.split(' ').map(|n| n.parse().unwrap()).collect();
    assert!(counts[0] >= 15 && counts[3] > 80, "{counts:?}");
    for (kind, count) in KINDS.into_iter().zip(counts) {
        if kind == "write.before_begin" && !is_long() {
            continue;
        }
        let step = if is_long() { 1 } else { STRIDE };
        for n in (1..=count).step_by(step) {
            check(Kill { kind, n }, &expected);
            println!("{kind} {n} of {count}");
        }
    }
}
