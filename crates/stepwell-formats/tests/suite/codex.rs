//! Codex's rollouts, and what bites in them.

use std::path::PathBuf;

use proptest::prelude::*;
use stepwell::{SessionId, Status, Stepwell, StopReason};
use stepwell_formats::{Became, Format};

use crate::generate::{record, turns};
use crate::mirror::{assert_returns, became, said, shown, taken, written};
use crate::seeds::samples;

const FLAKY: &str = "0198c0de-1111-7222-8333-444455556666";
const PAGED: &str = "0198c0de-2222-7222-8333-444455556666";
const GONE_ON: &str = "0198c0de-2222-7222-8333-444455556666_0198c0de-3333-7222-8333-444455556666";

fn codex() -> Format {
    "codex".parse().unwrap()
}

fn rollout(day: &str, name: &str) -> PathBuf {
    samples(codex()).unwrap().join("sessions/2026/08").join(day).join(name)
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

#[test]
fn the_samples_come_in_once() {
    let well = Stepwell::in_memory();
    let folder = samples(codex()).unwrap();
    let first = taken(&well, &folder);
    assert_eq!(became(&first, Became::Imported), 3, "{first:?}");
    let again = taken(&well, &folder);
    assert_eq!(became(&again, Became::Unchanged), 3, "{again:?}");
    let head = well.standing(&id(FLAKY)).unwrap().head;
    assert_eq!((head.task.as_str(), head.model.as_str()), ("Fix the flaky test", "gpt-5.5"));
    assert_eq!(
        (head.status, head.stop_reason),
        (Status::Interrupted, Some(StopReason::UserInterrupt))
    );
    assert_eq!(head.spent.usage.output, 640);
    assert_eq!(head.spent.calls, 1);
}

#[test]
fn a_rolled_back_turn_is_out_of_the_view_and_stays_in_the_log() {
    let well = Stepwell::in_memory();
    taken(&well, &samples(codex()).unwrap());
    let said = said(&shown(&well, &id(FLAKY)));
    assert!(!said.iter().any(|it| it.contains("Fix the flaky test")), "{said:#?}");
    assert!(said[0].contains("Summary of work so far"), "{said:#?}");
    assert!(said.last().unwrap().contains("interrupted, outcome unknown"), "{said:#?}");
}

#[test]
fn a_rollout_that_goes_on_from_another_one_has_its_front() {
    let well = Stepwell::in_memory();
    taken(&well, &samples(codex()).unwrap());
    let paged = said(&shown(&well, &id(PAGED)));
    assert!(paged.last().unwrap().contains("Two entries."), "{paged:#?}");
    // It shares what comes before the third line, which is no message yet.
    assert!(shown(&well, &id(GONE_ON)).is_empty());
    assert_eq!(well.standing(&id(GONE_ON)).unwrap().head.model, "");
}

#[test]
fn the_samples_return_with_all_that_is_not_understood() {
    let one = format!("rollout-2026-08-20T10-00-00-{FLAKY}.jsonl");
    assert_returns(codex(), &rollout("20", &one), &one);
    let other = format!("rollout-2026-08-21T10-00-00-{PAGED}.jsonl");
    assert_returns(codex(), &rollout("21", &other), &other);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_was_said_here_is_said_there(turns in turns()) {
        let (here, there) = (Stepwell::in_memory(), Stepwell::in_memory());
        let id = record(&here, "20260223-143022-a1b2c3", &turns);
        let name = format!("rollout-2026-08-20T10-00-00-{FLAKY}.jsonl");
        let (_folder, path) = written(&here, &id, codex(), &name);
        let taken = taken(&there, &path);
        prop_assert_eq!(taken.len(), 1);
        prop_assert_eq!(said(&shown(&here, &id)), said(&shown(&there, &taken[0].id)));
        let spent = |well: &Stepwell, id| well.standing(id).unwrap().head.spent.usage;
        prop_assert_eq!(spent(&here, &id), spent(&there, &taken[0].id));
        assert_returns(codex(), &path, &name);
    }
}
