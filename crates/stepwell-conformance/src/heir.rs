//! Claims about forks of removed parents: a shared prefix lives as long as its last user.

use stepwell::log::Redactor;
use stepwell::store::Span;
use stepwell::store::query::Search;
use stepwell::{Seq, Status};

use crate::claims::claims;
use crate::harness::{claim, event_id, id, say, targets, texts};
use crate::{Fixture, Harness};

claims! { $ heir = heir_claims for Fixture:
    a_fork_outlives_its_parent,
    sibling_forks_with_other_points_outlive_their_parent,
    forks_outlive_a_parent_whatever_was_indexed,
    what_only_the_parent_had_is_gone,
    shared_words_are_found_in_a_fork_after_the_parent_is_gone,
    a_fork_of_a_fork_outlives_both,
    a_chain_of_forks_outlives_its_middle,
    the_root_outlives_its_forks,
    the_last_user_takes_the_prefix_with_it,
    a_fork_can_still_be_forked_in_the_shared_prefix,
    a_fork_far_into_a_long_parent_outlives_it,
    a_fork_that_ran_on_outlives_its_parent,
    a_running_fork_does_not_protect_its_parent,
    a_fork_of_a_purged_subagent_lives,
    a_purged_parent_does_not_mind_ids_that_forks_used_again,
    facts_and_retries_work_after_the_parent_is_gone,
    parent_and_fork_can_go_together,
}

/// a: created, "a 1" ..= "a 5"; without a lease.
fn parent<F: Fixture>(w: &Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "a", 5);
    w.release(&lease);
}

/// A fork with its own events, without a lease.
fn fork<F: Fixture>(w: &Harness<F>, parent: &str, at: u64, name: &str) {
    w.tick();
    let lease = w.fork(parent, at, name);
    w.chat(&lease, name, 2);
    w.release(&lease);
}

fn purge<F: Fixture>(w: &Harness<F>, name: &str) {
    let removal = w.store().maintain().purge(&targets(&[name])).unwrap();
    assert!(removal.left.is_empty(), "{removal:?}");
    assert!(!w.has(name));
}

/// Purges `gone` and checks that each of `left` can be read, verified and continued as before.
fn outlive<F: Fixture>(w: &mut Harness<F>, gone: &str, left: &[&str]) {
    let before: Vec<_> = left.iter().map(|name| w.log(name)).collect();
    purge(w, gone);
    w.reopen();
    for (name, before) in left.iter().zip(before) {
        assert_eq!(w.log(name), before, "{name}");
        w.assert_folded(name);
        assert_eq!(w.head(name).status, Status::Interrupted);
        let lease = w.store().acquire(&id(name), &claim(1)).unwrap();
        let word = format!("after-{gone}-{name}");
        w.add(&lease, say(&word));
        w.release(&lease);
        w.assert_folded(name);
        let found = w.hits(&word);
        assert_eq!(found.len(), 1, "{word}: {found:?}");
        assert_eq!(found[0].0, *name);
    }
}

fn a_fork_outlives_its_parent<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    fork(w, "a", 4, "f");
    outlive(w, "a", &["f"]);
    let down = w.store().events(&id("f"), Span::last(usize::MAX)).unwrap();
    assert_eq!(down.events.len(), 8);
    assert_eq!(texts(&w.log("f"))[..5], ["a 1", "a 2", "a 3", "f 1", "f 2"]);
}

fn sibling_forks_with_other_points_outlive_their_parent<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    let points = [(3, "f"), (6, "g"), (1, "h"), (3, "i"), (6, "j")];
    for (at, name) in points {
        fork(w, "a", at, name);
    }
    outlive(w, "a", &["f", "g", "h", "i", "j"]);
    // The session that inherited the prefix is purged as well, one after another.
    outlive(w, "g", &["f", "h", "i", "j"]);
    outlive(w, "j", &["f", "h", "i"]);
    outlive(w, "f", &["h", "i"]);
    outlive(w, "i", &["h"]);
}

fn forks_outlive_a_parent_whatever_was_indexed<F: Fixture>(w: &mut Harness<F>) {
    for indexed in 0..4 {
        let (a, f) = (format!("a{indexed}"), format!("f{indexed}"));
        let lease = w.begin(&a);
        w.add(&lease, say("early"));
        if indexed & 1 == 1 {
            w.hits("early");
        }
        w.add(&lease, say("later"));
        fork(w, &a, 3, &f);
        w.add(&lease, say("parent's"));
        w.release(&lease);
        if indexed & 2 == 2 {
            w.hits("early");
        }
        purge(w, &a);
        assert_eq!(w.hits("early later"), []);
        for (word, seq) in [("early", 2), ("later", 3)] {
            assert_eq!(w.hits(word), [(f.clone(), seq)], "{indexed}");
        }
        assert!(w.hits("parent").is_empty());
        assert_eq!(w.hits(&format!("\"{f} 2\"")), [(f.clone(), 6)], "{indexed}");
        purge(w, &f);
        assert!(w.hits("early").is_empty());
    }
}

fn what_only_the_parent_had_is_gone<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    fork(w, "a", 2, "f");
    let lease = w.store().acquire(&id("a"), &claim(1)).unwrap();
    w.add(&lease, say("parents-secret"));
    w.release(&lease);
    assert_eq!(w.hits("secret").len(), 1);
    purge(w, "a");
    assert!(w.hits("secret").is_empty());
    assert_eq!(texts(&w.log("f")), ["a 1", "f 1", "f 2"]);
}

fn shared_words_are_found_in_a_fork_after_the_parent_is_gone<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    fork(w, "a", 3, "f");
    fork(w, "a", 5, "g");
    purge(w, "a");
    for (word, seq) in [("\"a 1\"", 2), ("\"a 2\"", 3), ("\"a 4\"", 5)] {
        let found = w.hits(word);
        assert_eq!(found.len(), 1, "{word}");
        assert_eq!(found[0].1, seq);
    }
    assert!(w.hits("\"a 5\"").is_empty());
    let found = w.store().search(&Search::new("\"a 1\""), &Redactor::default()).unwrap();
    assert_eq!(found.hits[0].snippet.text(), "a 1");
    assert_eq!(w.hits("\"f 1\""), [("f".to_owned(), 5)]);
    assert_eq!(w.hits("\"g 1\""), [("g".to_owned(), 7)]);
}

fn a_fork_of_a_fork_outlives_both<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    fork(w, "a", 3, "f");
    fork(w, "f", 5, "g");
    outlive(w, "a", &["f", "g"]);
    outlive(w, "f", &["g"]);
    assert_eq!(texts(&w.log("g"))[..3], ["a 1", "a 2", "f 1"]);
}

fn a_chain_of_forks_outlives_its_middle<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    fork(w, "a", 3, "f");
    fork(w, "f", 5, "g");
    fork(w, "f", 2, "h");
    fork(w, "f", 6, "i");
    outlive(w, "f", &["a", "g", "h", "i"]);
    outlive(w, "a", &["g", "h", "i"]);
    outlive(w, "i", &["g", "h"]);
    outlive(w, "g", &["h"]);
}

fn the_root_outlives_its_forks<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    fork(w, "a", 3, "f");
    fork(w, "f", 4, "g");
    outlive(w, "g", &["a", "f"]);
    outlive(w, "f", &["a"]);
}

fn the_last_user_takes_the_prefix_with_it<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    fork(w, "a", 3, "f");
    fork(w, "a", 5, "g");
    for name in ["a", "g", "f"] {
        assert!(w.store().maintain().disk_use().unwrap().events > 0);
        purge(w, name);
    }
    assert_eq!(w.store().maintain().disk_use().unwrap().events, 0);
    assert!(w.hits("a").is_empty());
}

fn a_fork_can_still_be_forked_in_the_shared_prefix<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    fork(w, "a", 5, "f");
    fork(w, "a", 3, "g");
    purge(w, "a");
    fork(w, "f", 2, "h");
    fork(w, "g", 2, "i");
    fork(w, "g", 4, "j");
    assert_eq!(texts(&w.log("h")), ["a 1", "h 1", "h 2"]);
    for name in ["f", "g", "h", "i", "j"] {
        w.assert_folded(name);
    }
    outlive(w, "f", &["g", "h", "i", "j"]);
    outlive(w, "g", &["h", "i", "j"]);
}

fn a_fork_far_into_a_long_parent_outlives_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for _ in 0..6 {
        w.chat(&lease, "long", 100);
    }
    w.release(&lease);
    fork(w, "a", 550, "f");
    fork(w, "a", 300, "g");
    outlive(w, "a", &["f", "g"]);
    fork(w, "f", 280, "h");
    fork(w, "f", 520, "i");
    w.assert_folded("h");
    w.assert_folded("i");
    assert_eq!(w.head("i").seq, Seq::new(523));
}

fn a_fork_that_ran_on_outlives_its_parent<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    let lease = w.fork("a", 4, "f");
    for _ in 0..3 {
        w.chat(&lease, "own", 100);
    }
    w.release(&lease);
    outlive(w, "a", &["f"]);
    fork(w, "f", 200, "g");
    fork(w, "f", 290, "h");
    w.assert_folded("g");
    w.assert_folded("h");
}

fn a_running_fork_does_not_protect_its_parent<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    let lease = w.fork("a", 4, "f");
    purge(w, "a");
    w.add(&lease, say("goes on"));
    w.assert_folded("f");
}

fn a_fork_of_a_purged_subagent_lives<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    let child = w.subagent("a", "child");
    w.chat(&child, "child", 3);
    w.release(&child);
    fork(w, "child", 3, "f");
    purge(w, "a");
    assert!(!w.has("child"));
    assert_eq!(texts(&w.log("f")), ["child 1", "child 2", "f 1", "f 2"]);
    w.assert_folded("f");
}

fn a_purged_parent_does_not_mind_ids_that_forks_used_again<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let f = w.fork("a", 1, "f");
    let g = w.fork("a", 1, "g");
    for lease in [&lease, &f, &g] {
        w.add(lease, say("same").with_id(event_id("same")));
        w.release(lease);
    }
    fork(w, "a", 2, "h");
    outlive(w, "a", &["f", "g", "h"]);
}

fn facts_and_retries_work_after_the_parent_is_gone<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let task = stepwell::model::Task { id: "t".to_owned(), ..stepwell::model::Task::default() };
    w.add(&lease, task);
    let event = say("x").with_id(event_id("x"));
    let first = w.add(&lease, event.clone());
    w.release(&lease);
    fork(w, "a", 3, "f");
    fork(w, "a", 3, "g");
    purge(w, "a");
    for name in ["f", "g"] {
        let lease = w.store().acquire(&id(name), &claim(1)).unwrap();
        assert_eq!(w.add(&lease, event.clone()), first, "{name}");
        let facts = w.store().keyed_events(&id(name), &[stepwell::model::Kind::Task]);
        assert_eq!(facts.unwrap().len(), 1, "{name}");
        w.assert_folded(name);
    }
}

fn parent_and_fork_can_go_together<F: Fixture>(w: &mut Harness<F>) {
    parent(w);
    fork(w, "a", 4, "f");
    fork(w, "a", 3, "g");
    let removal = w.store().maintain().purge(&targets(&["a", "f"])).unwrap();
    assert_eq!(removal.taken.len(), 2);
    w.assert_folded("g");
    assert_eq!(texts(&w.log("g")), ["a 1", "a 2", "g 1", "g 2"]);
}
