//! Claude Code's transcripts, and what bites in them.

use proptest::prelude::*;
use stepwell::{SessionId, Status, Stepwell};
use stepwell_formats::{Became, Format};

use crate::generate::{record, turns};
use crate::mirror::{assert_returns, became, said, shown, taken, written};
use crate::seeds::samples;

const ID: &str = "3f6c1b52-8a0e-4d0b-9b53-5a1f0c7e9d21";

fn claude() -> Format {
    "claude".parse().unwrap()
}

#[test]
fn the_sample_comes_in_with_its_subagent_once() {
    let well = Stepwell::in_memory();
    let folder = samples(claude()).unwrap();
    let first = taken(&well, &folder);
    assert_eq!(became(&first, Became::Imported), 2, "{first:?}");
    let id: SessionId = ID.parse().unwrap();
    let head = well.standing(&id).unwrap().head;
    assert_eq!(head.task, "Add idempotency keys to POST /orders");
    assert_eq!(head.workspace, "/home/dev/shop_api");
    assert_eq!(head.label.as_deref(), Some("orders-idempotency"));
    assert_eq!(head.status, Status::Interrupted);
    // Four calls of the model, whose usage stands on six lines.
    assert_eq!(head.spent.calls, 4);
    assert_eq!(head.spent.usage.output, 214 + 3 * 97);
    assert_eq!(well.subagents(&id).unwrap().len(), 1);
    let said = said(&shown(&well, &id));
    assert!(said[0].contains("This session is being continued"), "{said:#?}");
    assert!(!said.iter().any(|it| it.contains("Redis")), "{said:#?}");
    assert!(said.last().unwrap().contains("interrupted, outcome unknown"), "{said:#?}");
    let again = taken(&well, &folder);
    assert_eq!(became(&again, Became::Unchanged), 2, "{again:?}");
    assert_eq!(well.standing(&id).unwrap().head.seq, head.seq);
}

#[test]
fn the_sample_returns_with_all_that_is_not_understood() {
    let main = samples(claude()).unwrap().join(format!("projects/-home-dev-shop-api/{ID}.jsonl"));
    assert_returns(claude(), &main, &format!("{ID}.jsonl"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_was_said_here_is_said_there(turns in turns()) {
        let (here, there) = (Stepwell::in_memory(), Stepwell::in_memory());
        let id = record(&here, "20260223-143022-a1b2c3", &turns);
        let (_folder, path) = written(&here, &id, claude(), &format!("{ID}.jsonl"));
        let taken = taken(&there, &path);
        prop_assert_eq!(taken.len(), 1);
        prop_assert_eq!(said(&shown(&here, &id)), said(&shown(&there, &taken[0].id)));
        let spent = |well: &Stepwell, id| well.standing(id).unwrap().head.spent.usage;
        prop_assert_eq!(spent(&here, &id), spent(&there, &taken[0].id));
        assert_returns(claude(), &path, &format!("{ID}.jsonl"));
    }
}
