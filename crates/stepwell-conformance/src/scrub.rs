//! Claims about erasing the content of events, visibly.

use stepwell::log::SPILL_BYTES;
use stepwell::model::{Change, Digest, Edited, Epoch, Erased, Money, Origin, Scrubbed, Usage};
use stepwell::store::{Lease, Scrub, Span};
use stepwell::{Created, Error, Event, Message, Seq};

use crate::blob::written;
use crate::claims::claims;
use crate::harness::{claim, event_id, id, say, targets, texts};
use crate::{Fixture, Harness};

claims! { $ scrub = scrub_claims for Fixture:
    a_scrubbed_event_says_what_it_was_told_to,
    a_scrub_is_recorded_with_its_rule,
    a_scrubbed_session_verifies_and_says_how_much_was_replaced,
    a_slice_says_how_much_of_it_was_replaced,
    scrubbed_words_are_found_no_longer,
    a_scrub_removes_a_spilled_text,
    a_scrub_that_keeps_a_files_bytes_keeps_its_blob,
    a_scrub_removes_a_file_events_blob,
    a_scrub_changes_the_head_that_showed_it,
    a_scrub_changes_the_lanes_share,
    an_event_can_be_scrubbed_twice,
    a_retry_of_a_scrubbed_append_is_still_answered,
    a_scrub_keeps_seq_time_and_id,
    a_scrub_needs_the_lease,
    a_scrub_cannot_change_a_kind,
    a_scrub_can_change_a_task_but_not_a_name_or_an_origin,
    a_scrub_of_no_event_is_refused_and_leaves_nothing,
    a_scrub_of_a_shared_event_is_refused_in_the_fork,
    a_fork_shows_what_was_scrubbed_in_its_parent,
    a_forks_head_does_not_show_what_was_scrubbed_in_its_parent,
    a_fork_of_a_long_scrubbed_session_does_not_show_it,
    a_scrub_survives_reopening,
    a_scrub_in_the_trash_needs_no_lease,
    a_scrub_elsewhere_needs_one,
    a_log_that_was_scrubbed_elsewhere_can_be_recorded,
    a_scrub_that_names_no_earlier_event_cannot_be_recorded,
    recording_a_scrub_needs_the_lease,
}

fn scrub(lease: &Lease, replacements: Vec<(u64, Event)>) -> Scrub {
    Scrub {
        session: lease.session.clone(),
        epoch: Some(lease.epoch),
        rule: "tokens".to_owned(),
        replacements: replacements.into_iter().map(|(seq, event)| (Seq::new(seq), event)).collect(),
    }
}

fn blank() -> Event {
    Message::user("[erased]").into()
}

/// a: 2 "before", 3 "secret swordfish", 4 "after".
fn leaked<F: Fixture>(w: &Harness<F>) -> Lease {
    let lease = w.begin("a");
    w.add(&lease, say("before"));
    w.add(&lease, say("secret swordfish").with_id(event_id("s")));
    w.add(&lease, say("after"));
    lease
}

fn erase<F: Fixture>(w: &Harness<F>, lease: &Lease, seq: u64) -> Seq {
    w.store().maintain().scrub(scrub(lease, vec![(seq, blank())])).unwrap()
}

fn a_scrubbed_event_says_what_it_was_told_to<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    assert_eq!(erase(w, &lease, 3), Seq::new(5));
    assert_eq!(texts(&w.log("a")), ["before", "[erased]", "after"]);
    w.add(&lease, say("it goes on"));
    w.assert_folded("a");
}

fn a_scrub_is_recorded_with_its_rule<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    erase(w, &lease, 3);
    let log = w.log("a");
    let Event::Scrubbed(scrubbed) = &log[4].event else { panic!("{:?}", log[4]) };
    assert_eq!(scrubbed.rule, "tokens");
    let seqs: Vec<_> = scrubbed.erased.iter().map(|one| one.seq.get()).collect();
    assert_eq!(seqs, [3]);
    assert_eq!(w.head("a").seq, Seq::new(5));
}

fn a_scrubbed_session_verifies_and_says_how_much_was_replaced<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    let replacements = vec![(2, blank()), (3, blank())];
    w.store().maintain().scrub(scrub(&lease, replacements)).unwrap();
    let verdict = w.store().maintain().verify(&id("a")).unwrap();
    assert!(verdict.is_sound(), "{verdict:?}");
    assert_eq!((verdict.intact, verdict.scrubbed), (5, 2));
}

fn a_slice_says_how_much_of_it_was_replaced<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    erase(w, &lease, 3);
    let count = |span| w.store().events(&id("a"), span).unwrap().scrubbed;
    assert_eq!(count(Span::ALL), 1);
    assert_eq!(count(Span::last(usize::MAX)), 1);
    assert_eq!(count(Span::after(Seq::new(3))), 0);
}

fn scrubbed_words_are_found_no_longer<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    assert_eq!(w.hits("swordfish").len(), 1);
    erase(w, &lease, 3);
    assert!(w.hits("swordfish").is_empty());
    assert!(w.hits("secret").is_empty());
    assert_eq!(w.hits("erased"), [("a".to_owned(), 3)]);
    assert_eq!(w.hits("after").len(), 1);
    assert_eq!(w.hits("before").len(), 1);
}

fn a_scrub_removes_a_spilled_text<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let long = "swordfish ".repeat(SPILL_BYTES);
    w.add(&lease, say(&long));
    assert!(w.store().maintain().disk_use().unwrap().blobs > 0);
    erase(w, &lease, 2);
    assert_eq!(w.store().maintain().disk_use().unwrap().blobs, 0);
    assert!(w.store().blob(&Digest::of(long.as_bytes())).is_err());
    w.assert_folded("a");
}

fn a_scrub_that_keeps_a_files_bytes_keeps_its_blob<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let blob = w.store().put_blob(b"harmless").unwrap();
    w.add(&lease, written("swordfish.txt", blob));
    let renamed = written("[erased].txt", blob);
    let replacements = vec![(2, renamed.clone().into())];
    w.store().maintain().scrub(scrub(&lease, replacements)).unwrap();
    assert_eq!(w.log("a")[1].event, Event::File(renamed));
    assert_eq!(w.store().blob(&blob).unwrap(), b"harmless");
    assert!(w.hits("swordfish").is_empty());
    w.assert_folded("a");
}

fn a_scrub_removes_a_file_events_blob<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let blob = w.store().put_blob(b"swordfish").unwrap();
    w.add(&lease, written("x", blob));
    let erased = stepwell::model::FileChanged {
        after: stepwell::model::FileState::NotCaptured { digest: None, why: "a secret".to_owned() },
        ..written("x", blob)
    };
    let replacements = vec![(2, erased.into())];
    w.store().maintain().scrub(scrub(&lease, replacements)).unwrap();
    let error = w.store().blob(&blob).unwrap_err();
    assert!(matches!(error, Error::NoBlob(_)), "{error}");
    w.assert_folded("a");
}

fn goal(text: &str) -> Edited {
    Edited {
        goal: Change::Set(text.to_owned()),
        label: Change::Set(text.to_owned()),
        ..Edited::default()
    }
}

fn a_scrub_changes_the_head_that_showed_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.edit("a", goal("swordfish"));
    let replacements = vec![(2, goal("[erased]").into())];
    w.store().maintain().scrub(scrub(&lease, replacements)).unwrap();
    let head = w.head("a");
    assert_eq!(head.goal.as_deref(), Some("[erased]"));
    assert_eq!(head.label.as_deref(), Some("[erased]"));
    let by = |label: &str| {
        w.listed(stepwell::store::query::Filter {
            label: Some(label.to_owned()),
            ..stepwell::store::query::Filter::default()
        })
    };
    assert!(by("swordfish").is_empty());
    assert_eq!(by("[erased]"), ["a"]);
    w.assert_folded("a");
}

fn a_scrub_changes_the_lanes_share<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let cost: Money = "1".parse().unwrap();
    let paid = Message::assistant("swordfish").spending(Usage::default(), Some(cost));
    w.add(&lease, paid);
    erase(w, &lease, 2);
    w.assert_folded("a");
    w.add(&lease, say("it goes on"));
    w.assert_folded("a");
}

fn an_event_can_be_scrubbed_twice<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    erase(w, &lease, 3);
    let again = vec![(3, Message::user("[gone]").into())];
    w.store().maintain().scrub(scrub(&lease, again)).unwrap();
    assert_eq!(texts(&w.log("a"))[1], "[gone]");
    let verdict = w.store().maintain().verify(&id("a")).unwrap();
    assert_eq!((verdict.is_sound(), verdict.scrubbed), (true, 1));
}

fn a_retry_of_a_scrubbed_append_is_still_answered<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    erase(w, &lease, 3);
    let again = w.add(&lease, say("secret swordfish").with_id(event_id("s")));
    assert_eq!((again.first, again.last), (Seq::new(3), Seq::new(3)));
    assert_eq!(w.log("a").len(), 5);
}

fn a_scrub_keeps_seq_time_and_id<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    let before = w.log("a")[2].clone();
    w.tick();
    erase(w, &lease, 3);
    let after = w.log("a")[2].clone();
    assert_eq!(after.event, blank());
    assert_eq!((after.seq, after.at, after.id), (before.seq, before.at, before.id));
}

fn a_scrub_needs_the_lease<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    let forged = Lease { epoch: Epoch::new(9), ..lease.clone() };
    let refused = w.store().maintain().scrub(scrub(&forged, vec![(3, blank())]));
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
    w.release(&lease);
    let refused = w.store().maintain().scrub(scrub(&lease, vec![(3, blank())]));
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
    assert_eq!(texts(&w.log("a"))[1], "secret swordfish");
}

fn a_scrub_cannot_change_a_kind<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    let replacements = vec![(3, Edited::default().into())];
    let error = w.store().maintain().scrub(scrub(&lease, replacements)).unwrap_err();
    assert!(matches!(error, Error::Illegal { .. }), "{error}");
    assert_eq!(texts(&w.log("a"))[1], "secret swordfish");
}

fn a_scrub_can_change_a_task_but_not_a_name_or_an_origin<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin_as(Created::new(id("a"), "find swordfish"));
    w.begin("b");
    let origin = Origin::Subagent { parent: id("b") };
    for created in [Created::new(id("c"), ""), Created { origin, ..Created::new(id("a"), "") }] {
        let refused = w.store().maintain().scrub(scrub(&lease, vec![(1, created.into())]));
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Illegal { .. }), "{error}");
    }
    let created = Created::new(id("a"), "[erased]");
    w.store().maintain().scrub(scrub(&lease, vec![(1, created.into())])).unwrap();
    assert_eq!(w.head("a").task, "[erased]");
    assert!(w.hits("swordfish").is_empty());
    w.assert_folded("a");
}

fn a_scrub_of_no_event_is_refused_and_leaves_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    let log = w.log("a");
    for seq in [0, 5, 99] {
        let replacements = vec![(3, blank()), (seq, blank())];
        let error = w.store().maintain().scrub(scrub(&lease, replacements)).unwrap_err();
        assert!(matches!(error, Error::Illegal { .. }), "{error}");
        assert_eq!(w.log("a"), log);
    }
    assert_eq!(w.hits("swordfish").len(), 1);
    w.assert_folded("a");
}

fn a_scrub_of_a_shared_event_is_refused_in_the_fork<F: Fixture>(w: &mut Harness<F>) {
    leaked(w);
    let fork = w.fork("a", 3, "f");
    let refused = w.store().maintain().scrub(scrub(&fork, vec![(3, blank())]));
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::Illegal { .. }), "{error}");
    w.add(&fork, say("own"));
    w.store().maintain().scrub(scrub(&fork, vec![(5, blank())])).unwrap();
    w.assert_folded("f");
}

fn a_fork_shows_what_was_scrubbed_in_its_parent<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    w.fork("a", 3, "f");
    erase(w, &lease, 3);
    assert_eq!(texts(&w.log("f")), ["before", "[erased]"]);
    w.assert_folded("f");
    let verdict = w.store().maintain().verify(&id("f")).unwrap();
    assert_eq!((verdict.is_sound(), verdict.scrubbed), (true, 1));
}

fn a_forks_head_does_not_show_what_was_scrubbed_in_its_parent<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.edit("a", goal("swordfish"));
    let f = w.fork("a", 2, "f");
    w.add(&f, say("own"));
    w.fork("f", 4, "g");
    let replacements = vec![(2, goal("[erased]").into())];
    w.store().maintain().scrub(scrub(&lease, replacements)).unwrap();
    for name in ["a", "f", "g"] {
        assert_eq!(w.head(name).goal.as_deref(), Some("[erased]"), "{name}");
        w.assert_folded(name);
    }
}

fn a_fork_of_a_long_scrubbed_session_does_not_show_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.edit("a", goal("swordfish"));
    w.chat(&lease, "x", 600);
    let f = w.fork("a", 300, "f");
    w.chat(&f, "y", 300);
    let replacements = vec![(2, goal("[erased]").into())];
    w.store().maintain().scrub(scrub(&lease, replacements)).unwrap();
    w.fork("a", 530, "g");
    w.fork("f", 530, "h");
    for name in ["a", "f", "g", "h"] {
        assert_eq!(w.head(name).goal.as_deref(), Some("[erased]"), "{name}");
        w.assert_folded(name);
    }
}

fn a_scrub_survives_reopening<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    w.hits("swordfish");
    erase(w, &lease, 3);
    w.reopen();
    assert_eq!(texts(&w.log("a"))[1], "[erased]");
    assert!(w.hits("swordfish").is_empty());
    w.release(&lease);
    w.store().acquire(&id("a"), &claim(2)).unwrap();
    w.assert_folded("a");
}

fn a_scrub_in_the_trash_needs_no_lease<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    w.release(&lease);
    w.store().maintain().trash(&targets(&["a"])).unwrap();
    let unleased = Scrub { epoch: None, ..scrub(&lease, vec![(3, blank())]) };
    w.store().maintain().scrub(unleased).unwrap();
    w.store().maintain().restore(&[id("a")]).unwrap();
    assert_eq!(texts(&w.log("a")), ["before", "[erased]", "after"]);
    w.assert_folded("a");
}

fn a_scrub_elsewhere_needs_one<F: Fixture>(w: &mut Harness<F>) {
    let lease = leaked(w);
    w.release(&lease);
    let unleased = Scrub { epoch: None, ..scrub(&lease, vec![(3, blank())]) };
    assert!(matches!(w.store().maintain().scrub(unleased), Err(Error::NeedsLease { .. })));
    assert_eq!(texts(&w.log("a")), ["before", "secret swordfish", "after"]);
}

/// A scrub as an imported log records it.
fn told(seqs: &[u64]) -> Scrubbed {
    let erased = |seq: &u64| Erased { seq: Seq::new(*seq), body: Digest::of(b"[erased]") };
    Scrubbed {
        rule: "tokens".to_owned(),
        erased: seqs.iter().map(erased).collect(),
        ..Scrubbed::default()
    }
}

fn a_log_that_was_scrubbed_elsewhere_can_be_recorded<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, blank());
    w.add(&lease, told(&[1, 2]));
    w.add(&lease, told(&[]));
    w.add(&lease, say("it goes on"));
    assert_eq!(w.log("a")[2].event, told(&[1, 2]).into());
    // No body was replaced here: the chain covers the imported bytes.
    let verdict = w.store().maintain().verify(&id("a")).unwrap();
    assert_eq!((verdict.is_sound(), verdict.intact, verdict.scrubbed), (true, 5, 0));
    w.assert_folded("a");
}

fn a_scrub_that_names_no_earlier_event_cannot_be_recorded<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, blank());
    for seq in [0, 3, 4] {
        let error = w.try_add(&lease, vec![told(&[2, seq]).into()]).unwrap_err();
        assert!(matches!(error, Error::Illegal { .. }), "{error}");
    }
    assert_eq!(w.log("a").len(), 2);
}

fn recording_a_scrub_needs_the_lease<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let error = w.tell("a", told(&[1])).unwrap_err();
    assert!(matches!(error, Error::NeedsLease { .. }), "{error}");
}
