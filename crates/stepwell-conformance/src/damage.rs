//! Claims about damaged data: it is reported, and stays in place.

use stepwell::model::{Kind, Task};
use stepwell::store::query::{Filter, Query};
use stepwell::store::{Damage, Excerpt, Span};
use stepwell::{Error, ErrorKind, Seq};

use crate::claims::claims;
use crate::harness::{claim, create, created, event_id, id, say, seqs};
use crate::{Damageable, Harness};

claims! { $ damage = damage_claims for Damageable:
    a_damaged_session_is_read_up_to_the_damage,
    a_damaged_session_is_read_backwards_down_to_the_damage,
    a_range_beyond_the_damage_is_still_read,
    facts_do_not_read_the_rest_of_the_log,
    a_verification_names_the_first_damaged_seq,
    a_damaged_session_lists_as_damaged,
    damage_does_not_touch_other_sessions,
    damage_does_not_keep_others_from_being_found,
    a_damaged_session_takes_no_more_events,
    a_repair_does_not_hide_damage,
    a_fork_before_the_damage_lives,
    a_fork_beyond_the_damage_is_refused,
    a_damaged_session_can_be_purged,
    a_damaged_session_hides_no_other_excerpt,
}

/// a: 10 events, the fifth one damaged; b: sound.
fn damaged<F: Damageable>(w: &mut Harness<F>) -> stepwell::store::Lease {
    let lease = w.begin("a");
    w.chat(&lease, "a", 9);
    let other = w.begin("b");
    w.chat(&other, "b", 3);
    w.fixture().damage(&id("a"), Seq::new(5));
    lease
}

fn at_five(damage: Option<&Damage>) {
    assert_eq!(damage.map(|damage| damage.seq), Some(Seq::new(5)));
}

fn a_damaged_session_is_read_up_to_the_damage<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    let slice = w.store().events(&id("a"), Span::ALL).unwrap();
    assert_eq!(seqs(&slice.events), [1, 2, 3, 4]);
    at_five(slice.damage.as_ref());
    let error = slice.intact(&id("a")).unwrap_err();
    assert!(
        matches!(&error, Error::Damaged { session, seq, .. }
            if *session == id("a") && *seq == Seq::new(5)),
        "{error}"
    );
    assert_eq!(error.kind(), ErrorKind::Damaged);
}

fn a_damaged_session_is_read_backwards_down_to_the_damage<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    let slice = w.store().events(&id("a"), Span::last(usize::MAX)).unwrap();
    assert_eq!(seqs(&slice.events), [10, 9, 8, 7, 6]);
    at_five(slice.damage.as_ref());
}

fn a_range_beyond_the_damage_is_still_read<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    let slice = w.store().events(&id("a"), Span::after(Seq::new(5))).unwrap();
    assert_eq!(seqs(&slice.events), [6, 7, 8, 9, 10]);
    assert_eq!(slice.damage, None);
}

fn facts_do_not_read_the_rest_of_the_log<F: Damageable>(w: &mut Harness<F>) {
    let lease = damaged(w);
    let task = Task { id: "t".to_owned(), ..Task::default() };
    w.add(&lease, task);
    let facts = w.store().keyed_events(&id("a"), &[Kind::Task]).unwrap();
    assert_eq!(seqs(&facts), [11]);
}

fn a_verification_names_the_first_damaged_seq<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    w.fixture().damage(&id("a"), Seq::new(8));
    let verdict = w.store().maintain().verify(&id("a")).unwrap();
    assert!(!verdict.is_sound());
    assert_eq!(verdict.intact, 4);
    at_five(verdict.damage.as_ref());
}

fn a_damaged_session_lists_as_damaged<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    w.store().maintain().verify(&id("a")).unwrap();
    let page = w.store().list(&Query::default()).unwrap();
    assert_eq!(page.sessions.len(), 2);
    for info in &page.sessions {
        let name = info.head.id.as_str();
        assert_eq!(info.damage.is_some(), name == "a", "{name}");
    }
    let counts = w.store().count(&Filter::default()).unwrap();
    assert_eq!((counts.total(), counts.damaged), (2, 1));
    at_five(w.store().info(&id("a")).unwrap().damage.as_ref());
    assert!(w.has("a"));
}

fn damage_does_not_touch_other_sessions<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    w.store().maintain().verify(&id("a")).unwrap();
    w.assert_folded("b");
    let other = w.begin("c");
    w.add(&other, say("x"));
    w.reopen();
    w.assert_folded("b");
    w.assert_folded("c");
}

fn damage_does_not_keep_others_from_being_found<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    assert_eq!(w.hits("b 3").len(), 1);
    assert!(!w.hits("a 9").is_empty());
}

fn a_damaged_session_takes_no_more_events<F: Damageable>(w: &mut Harness<F>) {
    let lease = damaged(w);
    w.store().maintain().verify(&id("a")).unwrap();
    let error = w.try_add(&lease, vec![say("more")]).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    w.release(&lease);
    let error = w.store().acquire(&id("a"), &claim(2)).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

fn a_repair_does_not_hide_damage<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    for _ in 0..2 {
        let verdict = w.store().maintain().repair(&id("a")).unwrap();
        at_five(verdict.damage.as_ref());
        at_five(w.store().info(&id("a")).unwrap().damage.as_ref());
        let slice = w.store().events(&id("a"), Span::ALL).unwrap();
        assert_eq!(seqs(&slice.events), [1, 2, 3, 4]);
    }
}

fn a_fork_before_the_damage_lives<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    w.store().maintain().verify(&id("a")).unwrap();
    let fork = w.fork("a", 4, "f");
    w.add(&fork, say("on its own").with_id(event_id("own")));
    w.assert_folded("f");
}

fn a_fork_beyond_the_damage_is_refused<F: Damageable>(w: &mut Harness<F>) {
    damaged(w);
    w.store().maintain().verify(&id("a")).unwrap();
    for at in [5, 6, 10] {
        let origin = stepwell::model::Origin::Fork { parent: id("a"), at: Seq::new(at) };
        let fork = stepwell::Created { origin, ..created("f") };
        let refused = w.store().write(stepwell::store::Write::Create(create(fork, None)));
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
    assert!(!w.has("f"));
}

fn a_damaged_session_can_be_purged<F: Damageable>(w: &mut Harness<F>) {
    let lease = damaged(w);
    w.store().maintain().verify(&id("a")).unwrap();
    w.release(&lease);
    let removal = w.store().maintain().purge(&[id("a").into()]).unwrap();
    assert_eq!(removal.taken, [id("a")]);
    assert!(!w.has("a"));
    w.assert_folded("b");
}

fn a_damaged_session_hides_no_other_excerpt<F: Damageable>(w: &mut Harness<F>) {
    for name in ["a", "b"] {
        let lease = w.begin(name);
        w.add(&lease, Task { id: "user".to_owned(), ..Task::default() });
    }
    w.fixture().damage(&id("a"), Seq::new(2));
    let wanted = Excerpt { keyed: &[Kind::Task], last: &[] };
    let found = w.store().excerpts(&[id("a"), id("b")], &wanted).unwrap();
    assert!(matches!(found[0], Err(Error::Damaged { .. })), "{found:?}");
    assert_eq!(seqs(found[1].as_ref().unwrap()), [1, 2]);
}
