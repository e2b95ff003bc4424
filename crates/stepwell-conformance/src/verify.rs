//! Claims about verifying and repairing intact data.

use stepwell::Error;
use stepwell::model::Edited;
use stepwell::store::{Derived, Verdict};

use crate::claims::claims;
use crate::harness::{claim, created, id, say};
use crate::{Fixture, Harness};

claims! { $ verify = verify_claims for Fixture:
    a_sound_session_verifies,
    a_long_session_verifies,
    a_trashed_session_verifies,
    an_interrupted_session_verifies,
    verifying_no_session_is_an_error,
    a_repair_of_a_sound_session_changes_nothing,
    a_repair_of_a_fork_changes_nothing,
    a_repaired_session_goes_on,
    a_repaired_session_is_found_once,
    a_repaired_session_can_be_forked_far_back,
}

fn sound(intact: u64) -> Verdict {
    Verdict { intact, scrubbed: 0, pruned: 0, damage: None, derived: Derived::Right }
}

fn a_sound_session_verifies<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    assert_eq!(w.store().maintain().verify(&id("a")).unwrap(), sound(1));
    w.chat(&lease, "x", 9);
    w.edit("a", Edited::default());
    let verdict = w.store().maintain().verify(&id("a")).unwrap();
    assert_eq!(verdict, sound(11));
    assert!(verdict.is_sound());
}

fn a_long_session_verifies<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for _ in 0..21 {
        w.chat(&lease, "x", 100);
    }
    assert_eq!(w.store().maintain().verify(&id("a")).unwrap(), sound(2_101));
}

fn a_trashed_session_verifies<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    w.store().maintain().trash(&[id("a").into()]).unwrap();
    assert_eq!(w.store().maintain().verify(&id("a")).unwrap(), sound(1));
}

fn an_interrupted_session_verifies<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.run_out(&lease, 1);
    assert_eq!(w.store().maintain().verify(&id("a")).unwrap(), sound(1));
}

fn verifying_no_session_is_an_error<F: Fixture>(w: &mut Harness<F>) {
    for answer in [w.store().maintain().verify(&id("a")), w.store().maintain().repair(&id("a"))] {
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::NoSession(_)), "{error}");
    }
}

fn a_repair_of_a_sound_session_changes_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "x", 300);
    let before = (w.log("a"), w.store().info(&id("a")).unwrap());
    let lanes = w.store().lanes(&id("a")).unwrap();
    for _ in 0..3 {
        assert_eq!(w.store().maintain().repair(&id("a")).unwrap(), sound(301));
        let after = (w.log("a"), w.store().info(&id("a")).unwrap());
        assert_eq!(after, before);
        assert_eq!(w.store().lanes(&id("a")).unwrap(), lanes);
    }
}

fn a_repair_of_a_fork_changes_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "x", 4);
    let fork = w.fork("a", 3, "f");
    w.chat(&fork, "y", 2);
    let before = (w.log("f"), w.store().info(&id("f")).unwrap());
    assert_eq!(w.store().maintain().repair(&id("f")).unwrap(), sound(6));
    let after = (w.log("f"), w.store().info(&id("f")).unwrap());
    assert_eq!(after, before);
    w.assert_folded("a");
}

fn a_repaired_session_goes_on<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.store().maintain().repair(&id("a")).unwrap();
    w.add(&lease, say("under the same lease"));
    w.release(&lease);
    w.store().maintain().repair(&id("a")).unwrap();
    let lease = w.store().acquire(&id("a"), &claim(2)).unwrap();
    w.add(&lease, say("under the next"));
    w.assert_folded("a");
}

fn a_repaired_session_is_found_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("well"));
    let fork = w.fork("a", 2, "f");
    w.add(&fork, say("well, forked"));
    assert_eq!(w.hits("well").len(), 2);
    for name in ["a", "f"] {
        w.store().maintain().repair(&id(name)).unwrap();
        assert_eq!(w.hits("well").len(), 2, "{name}");
    }
    w.add(&lease, say("well, again"));
    assert_eq!(w.hits("well").len(), 3);
}

fn a_repaired_session_can_be_forked_far_back<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for _ in 0..6 {
        w.chat(&lease, "x", 100);
    }
    w.store().maintain().repair(&id("a")).unwrap();
    w.fork("a", 300, "f");
    w.assert_folded("f");
}
