//! Kills guided work (kill -9) before and after calls of the model and after every write. However
//! it is cut off, it comes to the same end; no command runs twice, and nothing is asked twice.
//!
//! One case is left, and only before a write: a check ran, and the process died before it could
//! record the result. Nobody knows the result then, so that one check runs again.
//!
//! By default every seventh point is tried, so that it takes some seconds; with
//! `STEPWELL_FLOW_KILLS=all`, every one.

use std::path::Path;

use stepwell::Event;

use crate::guided::{Came, calculator, came, ran_checks};
use crate::harness::Harness;
use crate::kills::{KINDS, Kill, NEVER, is_long, run, without};

/// How many points are left out between two by default.
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
        let checked = if begun { results_of_checks(&harness) } else { 0 };
        let lost = ran_checks(&harness) - checked;
        assert!(lost <= usize::from(kill.kind == "write.before_begin"), "killed at {kill}");
        expected_end.checks += lost;
        harness.calls();
        assert!(run(dir.path(), "guided", NEVER), "killed at {kill}");
        let missing = without(&expected.calls, &models(answered));
        assert_eq!(harness.calls(), missing, "killed at {kill}: exactly the missing calls");
    }
    assert_eq!(came(&harness), expected_end, "killed at {kill}");
}

/// How many checks have a recorded result.
fn results_of_checks(harness: &Harness) -> usize {
    let is_result = |event: &Event| match event {
        Event::ToolFinished(it) => it.lane.as_str().starts_with("check-"),
        _ => false,
    };
    harness.events().iter().filter(|it| is_result(&it.event)).count()
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
        }
    }
}
