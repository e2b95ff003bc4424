//! Claims about erasing sessions for good.

use stepwell::model::Epoch;
use stepwell::store::query::{Filter, TrashScope};
use stepwell::store::{Span, Target};
use stepwell::{Created, Error, Seq};

use crate::claims::claims;
use crate::harness::{claim, created, id, say, taken, targets};
use crate::{Fixture, Harness};

claims! { $ purge = purge_claims for Fixture:
    a_purged_session_is_gone_everywhere,
    a_purge_needs_no_trash_first,
    a_purge_from_the_trash_is_final,
    a_purge_survives_reopening,
    subagents_are_purged_with_their_parent,
    a_running_session_is_not_purged,
    a_running_subagent_keeps_its_ancestors_from_a_purge,
    a_session_that_moved_on_is_not_purged,
    a_purge_touches_no_other_session,
    a_purge_of_several_takes_each,
    a_purged_name_is_free_again,
    a_purge_gives_its_bytes_back,
    a_lease_of_a_purged_session_writes_nowhere,
    an_id_that_is_used_again_goes_on_with_its_epochs,
    forks_that_go_with_what_they_share_inherit_nothing,
}

fn stopped<F: Fixture>(w: &Harness<F>, name: &str) {
    let lease = w.begin(name);
    w.chat(&lease, name, 3);
    w.release(&lease);
}

fn a_purged_session_is_gone_everywhere<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    let removal = w.store().maintain().purge(&targets(&["a"])).unwrap();
    assert_eq!((taken(&removal), removal.left.len()), (vec!["a"], 0));
    assert!(!w.has("a"));
    let anywhere = Filter { place: TrashScope::Anywhere, ..Filter::default() };
    assert!(w.listed(anywhere).is_empty());
    let gone = [
        w.store().events(&id("a"), Span::ALL).map(drop),
        w.store().info(&id("a")).map(drop),
        w.store().lanes(&id("a")).map(drop),
        w.store().maintain().verify(&id("a")).map(drop),
        w.store().maintain().repair(&id("a")).map(drop),
        w.store().acquire(&id("a"), &claim(1)).map(drop),
        w.store().wait_after(&id("a"), Seq::ZERO, std::time::Duration::ZERO).map(drop),
    ];
    for answer in gone {
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::NoSession(_)), "{error}");
    }
}

fn a_purge_needs_no_trash_first<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    assert!(!w.has("a"));
}

fn a_purge_from_the_trash_is_final<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    w.store().maintain().trash(&targets(&["a"])).unwrap();
    let removal = w.store().maintain().purge(&targets(&["a"])).unwrap();
    assert_eq!(taken(&removal), ["a"]);
    let removal = w.store().maintain().restore(&[id("a")]).unwrap();
    assert!(matches!(removal.left[0].1, Error::NoSession(_)));
}

fn a_purge_survives_reopening<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    w.reopen();
    assert!(!w.has("a"));
}

fn subagents_are_purged_with_their_parent<F: Fixture>(w: &mut Harness<F>) {
    for lease in [
        w.begin("root"),
        w.subagent("root", "child"),
        w.subagent("child", "grandchild"),
        w.begin("other"),
    ] {
        w.release(&lease);
    }
    let removal = w.store().maintain().purge(&targets(&["root"])).unwrap();
    assert_eq!(taken(&removal), ["child", "grandchild", "root"]);
    assert!(!w.has("child") && !w.has("grandchild") && w.has("other"));
}

fn a_running_session_is_not_purged<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let removal = w.store().maintain().purge(&targets(&["a"])).unwrap();
    assert!(removal.taken.is_empty());
    assert!(matches!(removal.left[0].1, Error::Held { .. }));
    w.add(&lease, say("goes on"));
    w.assert_folded("a");
}

fn a_running_subagent_keeps_its_ancestors_from_a_purge<F: Fixture>(w: &mut Harness<F>) {
    let root = w.begin("root");
    w.subagent("root", "child");
    w.release(&root);
    let removal = w.store().maintain().purge(&targets(&["root"])).unwrap();
    assert!(removal.taken.is_empty());
    assert!(w.has("root") && w.has("child"));
}

fn a_session_that_moved_on_is_not_purged<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    let judged = |seq| Target { unless_past: Some(Seq::new(seq)), ..Target::from(id("a")) };
    let removal = w.store().maintain().purge(&[judged(3)]).unwrap();
    assert!(matches!(removal.left[0].1, Error::UnexpectedSeq { .. }));
    assert!(w.has("a"));
    let removal = w.store().maintain().purge(&[judged(4)]).unwrap();
    assert_eq!(taken(&removal), ["a"]);
}

fn a_purge_touches_no_other_session<F: Fixture>(w: &mut Harness<F>) {
    for name in ["a", "b", "c"] {
        stopped(w, name);
    }
    let before = (w.log("a"), w.log("c"));
    w.store().maintain().purge(&targets(&["b"])).unwrap();
    assert_eq!((w.log("a"), w.log("c")), before);
    w.assert_folded("a");
    w.assert_folded("c");
}

fn a_purge_of_several_takes_each<F: Fixture>(w: &mut Harness<F>) {
    for name in ["a", "b", "c", "d"] {
        stopped(w, name);
    }
    w.begin("running");
    let names = ["a", "running", "c"];
    let removal = w.store().maintain().purge(&targets(&names)).unwrap();
    assert_eq!(taken(&removal), ["a", "c"]);
    assert_eq!(w.listed(Filter::default()), ["b", "d", "running"]);
}

fn a_purged_name_is_free_again<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    w.begin_as(Created::new(id("a"), "another"));
    assert_eq!(w.log("a").len(), 1);
    assert_eq!(w.head("a").task, "another");
    assert!(w.store().lanes(&id("a")).unwrap().is_empty());
    w.assert_folded("a");
}

fn a_purge_gives_its_bytes_back<F: Fixture>(w: &mut Harness<F>) {
    stopped(w, "a");
    let before = w.store().maintain().disk_use().unwrap();
    stopped(w, "b");
    assert!(w.store().maintain().disk_use().unwrap().events > before.events);
    w.store().maintain().purge(&targets(&["b"])).unwrap();
    assert_eq!(w.store().maintain().disk_use().unwrap().events, before.events);
}

fn a_lease_of_a_purged_session_writes_nowhere<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.release(&lease);
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    let error = w.try_add(&lease, vec![say("late")]).unwrap_err();
    assert!(matches!(error, Error::NoSession(_)), "{error}");
}

fn an_id_that_is_used_again_goes_on_with_its_epochs<F: Fixture>(w: &mut Harness<F>) {
    let first = w.begin("a");
    assert_eq!(first.epoch, Epoch::FIRST);
    w.release(&first);
    let second = w.store().acquire(&id("a"), &claim(1)).unwrap();
    w.release(&second);
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    w.reopen();
    // Made with a lease, and made without one.
    let third = w.begin("a");
    assert!(third.epoch > second.epoch, "{third:?}");
    for stale in [&first, &second] {
        let error = w.try_add(stale, vec![say("late")]).unwrap_err();
        assert!(matches!(error, Error::Fenced { .. }), "{error}");
    }
    w.release(&third);
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    w.make(created("a"));
    let fourth = w.store().acquire(&id("a"), &claim(2)).unwrap();
    assert!(fourth.epoch > third.epoch, "{fourth:?}");
    w.add(&fourth, say("mine"));
    w.assert_folded("a");
}

fn forks_that_go_with_what_they_share_inherit_nothing<F: Fixture>(w: &mut Harness<F>) {
    // Both orders, so that the result depends neither on the order nor on the size of the share.
    for (name, order) in [("x", ["x", "x1", "x2"]), ("y", ["y2", "y1", "y"])] {
        stopped(w, name);
        for (n, at) in [(1, 2), (2, 3), (3, 3)] {
            let lease = w.fork(name, at, &format!("{name}{n}"));
            w.release(&lease);
        }
        let removal = w.store().maintain().purge(&targets(&order)).unwrap();
        assert_eq!((removal.taken.len(), removal.left.len()), (3, 0));
        let heir = format!("{name}3");
        assert_eq!(w.log(&heir).len(), 4, "{heir}");
        assert!(w.store().maintain().verify(&id(&heir)).unwrap().is_sound());
    }
}
