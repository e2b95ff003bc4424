//! Forks are imported whether or not the store has what they grew out of.

use stepwell::store::Scrub;
use stepwell::store::query::Search;
use stepwell::{Event, Message, Seq, Stepwell};
use stepwell_formats::{Error, Format};

use crate::support::{
    ARCHIVES, assert_same, exported, fork, id, imported, log, names, root, say, subagent,
};

/// a: 4 events; b forks a at 3 and says one thing; c forks b at 5 and says one.
fn line_of_forks() -> Stepwell {
    let well = Stepwell::in_memory();
    say(&mut root(&well, "a"), &["a1", "a2", "a3"]);
    say(&mut fork(&well, "a", 3, "b"), &["b1"]);
    say(&mut fork(&well, "b", 5, "c"), &["c1"]);
    well
}

#[test]
fn a_fork_of_a_fork_is_imported_without_its_ancestors() {
    let well = line_of_forks();
    for form in ARCHIVES {
        let there = Stepwell::in_memory();
        assert_eq!(imported(&there, exported(&well, "c", form)).unwrap().made, [id("c")]);
        assert_same(&well, &there, &id("c"));
        assert_eq!(names(&there), ["c"]);
    }
}

#[test]
fn a_fork_of_purged_sessions_is_imported() {
    let well = line_of_forks();
    well.purge(&id("a")).unwrap();
    well.purge(&id("b")).unwrap();
    let there = Stepwell::in_memory();
    imported(&there, exported(&well, "c", Format::JSON)).unwrap();
    assert_same(&well, &there, &id("c"));
    assert_eq!(names(&there), ["c"]);
}

#[test]
fn a_fork_shares_what_the_store_has_of_its_parent() {
    let well = line_of_forks();
    for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"], ["c", "a", "b"]] {
        let there = Stepwell::in_memory();
        for name in order {
            assert_eq!(
                imported(&there, exported(&well, name, Format::JSON)).unwrap().made.len(),
                1
            );
        }
        for name in order {
            assert_same(&well, &there, &id(name));
        }
        assert_eq!(names(&there), ["a", "b", "c"]);
    }
}

#[test]
fn a_fork_from_below_its_parents_own_events_is_imported() {
    // The log of d has events of a only, though it was forked from b.
    let well = line_of_forks();
    say(&mut fork(&well, "b", 2, "d"), &["d1"]);
    for have in [&[][..], &["a"], &["b"], &["a", "b"]] {
        let there = Stepwell::in_memory();
        for name in have {
            imported(&there, exported(&well, name, Format::JSONL)).unwrap();
        }
        imported(&there, exported(&well, "d", Format::JSONL)).unwrap();
        assert_same(&well, &there, &id("d"));
        have.iter().for_each(|name| assert_same(&well, &there, &id(name)));
        assert_eq!(names(&there).len(), have.len() + 1, "{have:?}");
    }
}

#[test]
fn a_fork_of_a_subagent_is_imported_without_the_family() {
    let well = Stepwell::in_memory();
    drop(root(&well, "a"));
    say(&mut subagent(&well, "a", "b"), &["b1"]);
    say(&mut fork(&well, "b", 2, "c"), &["c1"]);
    let there = Stepwell::in_memory();
    imported(&there, exported(&well, "c", Format::JSON)).unwrap();
    assert_same(&well, &there, &id("c"));
    assert_eq!(names(&there), ["c"]);
    // The name of the subagent's parent is free again.
    imported(&there, exported(&well, "a", Format::JSON)).unwrap();
    assert_eq!(names(&there), ["a", "b", "c"]);
    ["a", "b", "c"].iter().for_each(|name| assert_same(&well, &there, &id(name)));
}

#[test]
fn a_name_may_come_twice_in_a_line_of_forks() {
    let well = Stepwell::in_memory();
    say(&mut root(&well, "a"), &["old"]);
    say(&mut fork(&well, "a", 2, "b"), &["b1"]);
    well.purge(&id("a")).unwrap();
    say(&mut fork(&well, "b", 4, "a"), &["new"]);
    let there = Stepwell::in_memory();
    imported(&there, exported(&well, "a", Format::JSON)).unwrap();
    assert_same(&well, &there, &id("a"));
    assert_eq!(names(&there), ["a"]);
}

#[test]
fn a_parent_that_differs_is_named_and_stays_as_it_is() {
    let well = line_of_forks();
    for (name, taken) in [("b", "a"), ("c", "b"), ("c", "a")] {
        let there = Stepwell::in_memory();
        say(&mut root(&there, taken), &["something else"]);
        let before = log(&there, &id(taken));
        let error = imported(&there, exported(&well, name, Format::JSON)).unwrap_err();
        let Error::Differs { session, .. } = &error else { panic!("{error}") };
        assert_eq!(*session, id(taken));
        assert_eq!(log(&there, &id(taken)), before);
        assert_eq!(names(&there), [taken]);
    }
}

#[test]
fn a_parent_further_up_that_differs_is_named() {
    // The log of e: two events of a, then d, which was forked from b.
    let well = line_of_forks();
    say(&mut fork(&well, "b", 2, "d"), &["d1"]);
    say(&mut fork(&well, "d", 4, "e"), &["e1"]);
    let archive = exported(&well, "e", Format::JSONL);
    let there = Stepwell::in_memory();
    imported(&there, exported(&well, "b", Format::JSON)).unwrap();
    imported(&there, &archive).unwrap();
    assert_same(&well, &there, &id("e"));
    assert_eq!(names(&there), ["b", "e"]);
    let there = Stepwell::in_memory();
    say(&mut root(&there, "b"), &["something else"]);
    let error = imported(&there, &archive).unwrap_err();
    assert!(matches!(&error, Error::Differs { session, .. } if *session == id("b")), "{error}");
    assert_eq!(names(&there), ["b"]);
}

#[test]
fn an_ancestor_that_was_scrubbed_here_differs() {
    let well = line_of_forks();
    say(&mut fork(&well, "c", 7, "d"), &["d1"]);
    let there = Stepwell::in_memory();
    imported(&there, exported(&well, "b", Format::JSON)).unwrap();
    let session = there.resume(&id("b")).unwrap();
    let replacements = vec![(Seq::new(2), Message::user("[erased]").into())];
    let (epoch, rule) = (session.lease().epoch, "tokens".to_owned());
    there
        .store()
        .maintain()
        .scrub(Scrub { session: id("b"), epoch: Some(epoch), rule, replacements })
        .unwrap();
    let error = imported(&there, exported(&well, "d", Format::JSON)).unwrap_err();
    let Error::Differs { session, seq } = &error else { panic!("{error}") };
    assert_eq!((session, *seq), (&id("b"), Seq::new(2)));
    assert_eq!(names(&there), ["b"]);
}

#[test]
fn a_parent_that_is_not_whole_yet_is_not_called_different() {
    let (well, there) = (Stepwell::in_memory(), Stepwell::in_memory());
    let mut parent = root(&well, "a");
    say(&mut parent, &["one"]);
    // As an import that was cut off leaves it.
    imported(&there, exported(&well, "a", Format::JSON)).unwrap();
    say(&mut parent, &["two", "three"]);
    drop(fork(&well, "a", 4, "b"));
    let forked = exported(&well, "b", Format::JSON);
    let error = imported(&there, forked.clone()).unwrap_err();
    assert!(matches!(&error, Error::NotWhole { session, .. } if *session == id("a")), "{error}");
    assert_eq!(names(&there), ["a"]);
    assert_eq!(log(&there, &id("a")).len(), 2);
    let whole = imported(&there, exported(&well, "a", Format::JSON)).unwrap();
    assert_eq!(whole.completed, [id("a")]);
    assert_eq!(imported(&there, forked).unwrap().made, [id("b")]);
    assert_same(&well, &there, &id("b"));
}

#[test]
fn an_orphaned_subagent_is_refused_by_the_name_of_its_parent() {
    let (well, there) = (Stepwell::in_memory(), Stepwell::in_memory());
    drop(root(&well, "a"));
    say(&mut subagent(&well, "a", "b"), &["b1"]);
    let archive = exported(&well, "b", Format::JSONL);
    let error = imported(&there, &archive).unwrap_err();
    assert_eq!(error.to_string(), "session b belongs to session a, which is not in the store");
    assert_eq!(error.kind(), stepwell::ErrorKind::Absent);
    assert!(names(&there).is_empty());
    imported(&there, exported(&well, "a", Format::JSONL)).unwrap();
    assert_eq!(imported(&there, &archive).unwrap().already_there, [id("b")]);
}

#[test]
fn a_fork_can_go_on_where_it_was_imported() {
    let well = line_of_forks();
    let there = Stepwell::in_memory();
    imported(&there, exported(&well, "c", Format::JSON)).unwrap();
    let mut session = there.resume(&id("c")).unwrap();
    say(&mut session, &["and on"]);
    drop(session);
    let events = log(&there, &id("c"));
    assert!(matches!(&events.last().unwrap().event, Event::Message(m) if m.text() == "and on"));
    assert!(there.store().maintain().verify(&id("c")).unwrap().is_sound());
    let again = there.fork(&id("c"), None).unwrap();
    assert!(there.store().maintain().verify(again.id()).unwrap().is_sound());
}

#[test]
fn on_disk_a_fork_takes_over_the_events_of_its_stand_ins() {
    let well = line_of_forks();
    say(&mut fork(&well, "b", 2, "d"), &["d1"]);
    let folder = tempfile::tempdir().unwrap();
    let there = Stepwell::open(folder.path()).unwrap();
    for name in ["d", "c"] {
        imported(&there, exported(&well, name, Format::JSON)).unwrap();
        assert_same(&well, &there, &id(name));
    }
    assert_eq!(names(&there), ["c", "d"]);
    // What came over from a stand-in is found in the fork.
    let found = there.search(&Search::new("a1")).unwrap();
    let mut hits: Vec<&str> = found.hits.iter().map(|hit| hit.session.as_str()).collect();
    hits.sort_unstable();
    assert_eq!(hits, ["c", "d"]);
}
