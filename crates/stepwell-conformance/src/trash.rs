//! Claims about the trash: what is deleted with a session, what prevents it, what is restored.

use stepwell::store::Target;
use stepwell::store::changes::Wait;
use stepwell::{Error, Seq, Status};

use crate::claims::claims;
use crate::harness::{claim, created, id, say, taken, targets};
use crate::{Fixture, Harness, TestProcesses};

claims! { $ trash = trash_claims for Fixture:
    a_trashed_session_says_when_and_can_still_be_read,
    a_trashed_session_comes_back_as_it_was,
    trash_survives_reopening,
    subagents_go_with_their_parent_and_come_back_with_it,
    a_subagent_that_was_in_the_trash_before_stays_there,
    a_fork_stays_when_its_parent_goes,
    a_running_session_is_left,
    a_running_subagent_protects_its_ancestors,
    a_dead_runner_protects_nothing,
    a_session_that_moved_on_is_left,
    a_session_that_did_not_move_on_goes,
    a_session_in_the_trash_is_left_where_it_is,
    a_session_that_is_gone_is_told,
    what_is_left_does_not_keep_the_others,
    what_is_named_twice_goes_once,
    restoring_what_is_not_in_the_trash_is_told,
    nothing_asked_for_is_nothing_done,
}

fn stopped<F: Fixture>(w: &Harness<F>, name: &str) {
    let lease = w.begin(name);
    w.add(&lease, say("x"));
    w.release(&lease);
}

fn trashed<F: Fixture>(w: &Harness<F>, name: &str) -> bool {
    w.store().info(&id(name)).unwrap().trashed_at.is_some()
}

/// root > child > grandchild, all without a lease.
fn family<F: Fixture>(w: &Harness<F>) {
    for lease in [w.begin("root"), w.subagent("root", "child"), w.subagent("child", "grandchild")] {
        w.release(&lease);
    }
}

fn a_trashed_session_says_when_and_can_still_be_read<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    let (log, head) = (w.log("a"), w.head("a"));
    w.tick();
    let removal = w.store().maintain().trash(&targets(&["a"])).unwrap();
    assert_eq!((taken(&removal), removal.left.len()), (vec!["a"], 0));
    let info = w.store().info(&id("a")).unwrap();
    assert_eq!(info.trashed_at, Some(w.now()));
    assert_eq!(info.head, head);
    assert_eq!(w.log("a"), log);
    assert!(w.has("a"));
    w.assert_folded("a");
}

fn a_trashed_session_comes_back_as_it_was<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    let before = w.store().info(&id("a")).unwrap();
    w.store().maintain().trash(&targets(&["a"])).unwrap();
    w.tick();
    let removal = w.store().maintain().restore(&[id("a")]).unwrap();
    assert_eq!(taken(&removal), ["a"]);
    assert_eq!(w.store().info(&id("a")).unwrap(), before);
    let lease = w.store().acquire(&id("a"), &claim(1)).unwrap();
    w.add(&lease, say("it goes on"));
    w.assert_folded("a");
}

fn trash_survives_reopening<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    w.store().maintain().trash(&targets(&["a"])).unwrap();
    w.reopen();
    assert!(trashed(w, "a"));
    w.store().maintain().restore(&[id("a")]).unwrap();
    w.reopen();
    assert!(!trashed(w, "a"));
}

fn subagents_go_with_their_parent_and_come_back_with_it<F: Fixture>(w: &mut Harness<F>) {
    family(w);
    stopped(w, "other");
    let removal = w.store().maintain().trash(&targets(&["root"])).unwrap();
    assert_eq!(taken(&removal), ["child", "grandchild", "root"]);
    assert!(trashed(w, "grandchild") && !trashed(w, "other"));
    let removal = w.store().maintain().restore(&[id("root")]).unwrap();
    assert_eq!(taken(&removal), ["child", "grandchild", "root"]);
    assert!(!trashed(w, "root") && !trashed(w, "grandchild"));
}

fn a_subagent_that_was_in_the_trash_before_stays_there<F: Fixture>(w: &mut Harness<F>) {
    family(w);
    let removal = w.store().maintain().trash(&targets(&["grandchild"])).unwrap();
    assert_eq!(taken(&removal), ["grandchild"]);
    w.tick();
    let removal = w.store().maintain().trash(&targets(&["root"])).unwrap();
    assert_eq!(taken(&removal), ["child", "root"]);
    let removal = w.store().maintain().restore(&[id("root")]).unwrap();
    assert_eq!(taken(&removal), ["child", "root"]);
    assert!(trashed(w, "grandchild"));
}

fn a_fork_stays_when_its_parent_goes<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    let fork = w.fork("a", 2, "f");
    let removal = w.store().maintain().trash(&targets(&["a"])).unwrap();
    assert_eq!(taken(&removal), ["a"]);
    assert!(!trashed(w, "f"));
    w.add(&fork, say("on its own"));
    w.assert_folded("f");
}

fn a_running_session_is_left<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let removal = w.store().maintain().trash(&targets(&["a"])).unwrap();
    assert!(removal.taken.is_empty());
    let [(left, error)] = &removal.left[..] else { panic!("{removal:?}") };
    assert_eq!(left, &id("a"));
    assert!(
        matches!(error, Error::Held { holder, .. } if **holder == TestProcesses::holder(1)),
        "{error}"
    );
    assert!(!trashed(w, "a"));
    w.add(&lease, say("goes on"));
}

fn a_running_subagent_protects_its_ancestors<F: Fixture>(w: &mut Harness<F>) {
    family(w);
    w.store().acquire(&id("grandchild"), &claim(7)).unwrap();
    for name in ["root", "child"] {
        let removal = w.store().maintain().trash(&targets(&[name])).unwrap();
        assert!(removal.taken.is_empty(), "{removal:?}");
        let (left, error) = &removal.left[0];
        assert_eq!(left, &id(name));
        assert!(
            matches!(error, Error::Held { session, .. } if *session == id("grandchild")),
            "{error}"
        );
    }
    assert!(!trashed(w, "root") && !trashed(w, "child"));
}

fn a_dead_runner_protects_nothing<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let expired = w.begin("b");
    w.processes.mark_gone(&TestProcesses::holder(1));
    assert_eq!(w.head("a").status, Status::Interrupted);
    assert_eq!(taken(&w.store().maintain().trash(&targets(&["a"])).unwrap()), ["a"]);
    w.run_out(&expired, 1);
    assert_eq!(taken(&w.store().maintain().trash(&targets(&["b"])).unwrap()), ["b"]);
}

fn judged(name: &str, seq: u64) -> [Target; 1] {
    [Target { unless_past: Some(Seq::new(seq)), ..Target::from(id(name)) }]
}

fn a_session_that_moved_on_is_left<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    let removal = w.store().maintain().trash(&judged("a", 1)).unwrap();
    assert!(removal.taken.is_empty());
    let error = &removal.left[0].1;
    assert!(
        matches!(error, Error::UnexpectedSeq { actual, .. } if *actual == Seq::new(2)),
        "{error}"
    );
    assert!(!trashed(w, "a"));
}

fn a_session_that_did_not_move_on_goes<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    let removal = w.store().maintain().trash(&judged("a", 2)).unwrap();
    assert_eq!(taken(&removal), ["a"]);
}

fn a_session_in_the_trash_is_left_where_it_is<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    w.store().maintain().trash(&targets(&["a"])).unwrap();
    let when = w.store().info(&id("a")).unwrap().trashed_at;
    w.tick();
    let removal = w.store().maintain().trash(&targets(&["a"])).unwrap();
    assert!(removal.taken.is_empty());
    assert!(matches!(removal.left[0].1, Error::Trashed(_)));
    assert_eq!(w.store().info(&id("a")).unwrap().trashed_at, when);
}

fn a_session_that_is_gone_is_told<F: Fixture>(w: &mut Harness<F>) {
    for removal in [
        w.store().maintain().trash(&targets(&["x"])).unwrap(),
        w.store().maintain().restore(&[id("x")]).unwrap(),
        w.store().maintain().purge(&targets(&["x"])).unwrap(),
    ] {
        assert!(removal.taken.is_empty());
        assert_eq!(removal.left[0].0, id("x"));
        assert!(matches!(removal.left[0].1, Error::NoSession(_)));
    }
}

fn what_is_left_does_not_keep_the_others<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    w.begin("running");
    stopped(w, "b");
    let names = ["a", "running", "nobody", "b"];
    let removal = w.store().maintain().trash(&targets(&names)).unwrap();
    assert_eq!(taken(&removal), ["a", "b"]);
    let left: Vec<_> = removal.left.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(left, ["running", "nobody"]);
}

fn what_is_named_twice_goes_once<F: Fixture>(w: &mut Harness<F>) {
    family(w);
    stopped(w, "a");
    let mut cursor = w.store().changes(None, Wait::NONE).unwrap().cursor;
    w.tick();
    let names = ["a", "root", "child", "a"];
    let removal = w.store().maintain().trash(&targets(&names)).unwrap();
    assert_eq!(taken(&removal), ["a", "child", "grandchild", "root"]);
    let left: Vec<_> = removal.left.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(left, ["child", "a"]);
    assert!(removal.left.iter().all(|(_, error)| matches!(error, Error::Trashed(_))));
    // A follower of the store is notified of each.
    let mut told = std::collections::BTreeSet::new();
    loop {
        let found = w.store().changes(Some(&cursor), Wait::NONE).unwrap();
        assert!(!found.gap);
        if found.changes.is_empty() {
            break;
        }
        told.extend(found.changes.iter().map(|change| change.session.to_string()));
        cursor = found.cursor;
    }
    assert_eq!(told.into_iter().collect::<Vec<_>>(), ["a", "child", "grandchild", "root"]);
}

fn restoring_what_is_not_in_the_trash_is_told<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let removal = w.store().maintain().restore(&[id("a")]).unwrap();
    assert!(removal.taken.is_empty());
    assert!(matches!(removal.left[0].1, Error::Illegal { .. }));
}

fn nothing_asked_for_is_nothing_done<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    for removal in [
        w.store().maintain().trash(&[]).unwrap(),
        w.store().maintain().restore(&[]).unwrap(),
        w.store().maintain().purge(&[]).unwrap(),
    ] {
        assert!(removal.taken.is_empty() && removal.left.is_empty());
    }
    assert!(!trashed(w, "a"));
}
