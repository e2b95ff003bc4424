//! Claims about other programs' records: found by key, kept with their blobs, pruned.

use stepwell::model::{Attachment, Digest, Driver, Origin, Record};
use stepwell::store::query::{KeyRange, Newest, NewestQuery, RecordQuery};
use stepwell::store::{Append, Expected, Order, Prune, Span, Write, Written};
use stepwell::{Created, Error, Event, Lane, Message, NewEvent, Recorded, Result, Seq, View};

use crate::claims::claims;
use crate::harness::{claim, create, created, id, say, seqs, targets};
use crate::{Fixture, Harness};

claims! { $ record = record_claims for Fixture:
    records_are_found_by_key_front_and_range_in_order,
    a_limit_takes_the_first_in_the_order_asked_for,
    under_one_key_records_come_by_age,
    records_of_a_fork_include_the_shared_ones_up_to_its_point,
    records_of_no_session_are_an_error,
    the_newest_record_comes_with_those_beside_it,
    what_is_known_is_not_read_again_until_something_is_written,
    an_attachment_is_stored_with_its_event,
    an_attachment_that_the_event_does_not_name_is_refused,
    a_text_that_is_attached_is_kept_once_and_found,
    an_append_that_fails_leaves_no_attachment,
    several_blobs_are_read_at_once,
    a_prune_empties_records_and_the_chain_verifies,
    a_prune_takes_blobs_and_words_along,
    a_prune_and_an_append_are_one,
    a_prune_never_reaches_into_a_fork,
    a_prune_in_a_fork_never_reaches_into_what_it_shares,
    what_a_fork_kept_goes_when_it_is_gone,
    a_pruned_message_leaves_the_head_as_it_was_and_the_view_whole,
    what_was_pruned_is_pruned_once,
    a_write_that_expects_what_was_pruned_is_refused,
    a_prune_is_refused_when_the_session_moved_on,
    a_prune_refuses_what_it_must_keep,
    a_prune_needs_a_lease_where_an_append_does,
    a_pruned_session_lives_on,
}

fn external(name: &str) -> Created {
    Created { driver: Driver::External, ..created(name) }
}

fn record(key: &str) -> Record {
    let (system, topic) = ("langgraph".to_owned(), "checkpoint".to_owned());
    Record { system, topic, key: key.to_owned(), data: format!("<{key}>"), ..Record::default() }
}

fn path(key: &str) -> String {
    format!("langgraph/checkpoint/{key}")
}

fn add<F: Fixture>(w: &Harness<F>, name: &str, events: Vec<NewEvent>) -> Result<Written> {
    let append = Append { session: id(name), epoch: None, expected: None, events: events.into() };
    w.store().write(Write::Append(append))
}

/// A session with a record under each key.
fn filled<F: Fixture>(w: &Harness<F>, name: &str, keys: &[&str]) {
    w.make(external(name));
    if !keys.is_empty() {
        add(w, name, keys.iter().map(|key| record(key).into()).collect()).unwrap();
    }
}

fn prune(name: &str, seqs: &[u64]) -> Write {
    let seqs = seqs.iter().copied().map(Seq::new).collect();
    Write::Prune(Prune {
        session: id(name),
        epoch: None,
        expected: None,
        seqs,
        rule: "old".to_owned(),
    })
}

fn asked<F: Fixture>(w: &Harness<F>, name: &str, query: &RecordQuery) -> Vec<Recorded> {
    w.store().records(&id(name), query).unwrap()
}

fn all(front: &str) -> RecordQuery {
    RecordQuery::of(KeyRange::StartsWith(path(front)))
}

fn keys(found: &[Recorded]) -> Vec<&str> {
    found
        .iter()
        .map(|found| match &found.event {
            Event::Record(record) => record.key.as_str(),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn records_are_found_by_key_front_and_range_in_order<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["b2", "a1", "c", "b1", "b", "a10"]);
    let other = Record { topic: "writes".to_owned(), ..record("b1") };
    add(w, "a", vec![other.into(), Message::user("b1").into()]).unwrap();
    assert_eq!(keys(&asked(w, "a", &all(""))), ["a1", "a10", "b", "b1", "b2", "c"]);
    assert_eq!(keys(&asked(w, "a", &all("b"))), ["b", "b1", "b2"]);
    let is = RecordQuery::of(KeyRange::Is(path("b")));
    assert_eq!(keys(&asked(w, "a", &is)), ["b"]);
    let between = |from, to| KeyRange::Between { from: path(from), to: path(to) };
    assert_eq!(keys(&asked(w, "a", &RecordQuery::of(between("a10", "b2")))), ["a10", "b", "b1"]);
    assert!(asked(w, "a", &RecordQuery::of(between("b2", "a"))).is_empty());
    let writes = KeyRange::StartsWith("langgraph/writes/".to_owned());
    assert_eq!(seqs(&asked(w, "a", &RecordQuery::of(writes))), [8]);
    let Event::Record(found) = &asked(w, "a", &is)[0].event else { panic!() };
    assert_eq!(*found, record("b"));
}

fn a_limit_takes_the_first_in_the_order_asked_for<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["3", "1", "2"]);
    let query = |order, limit| RecordQuery { order, limit, ..all("") };
    assert_eq!(keys(&asked(w, "a", &query(Order::Oldest, 2))), ["1", "2"]);
    assert_eq!(keys(&asked(w, "a", &query(Order::Newest, 2))), ["3", "2"]);
    assert!(asked(w, "a", &query(Order::Newest, 0)).is_empty());
    let last = RecordQuery::last(KeyRange::StartsWith(path("")), 1);
    assert_eq!(keys(&asked(w, "a", &last)), ["3"]);
}

fn under_one_key_records_come_by_age<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["k", "j", "k", "k"]);
    let is = RecordQuery::of(KeyRange::Is(path("k")));
    assert_eq!(seqs(&asked(w, "a", &is)), [2, 4, 5]);
    assert_eq!(seqs(&asked(w, "a", &RecordQuery { order: Order::Newest, ..is })), [5, 4, 2]);
}

fn records_of_a_fork_include_the_shared_ones_up_to_its_point<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "3", "5"]);
    let lease = w.fork("a", 3, "b");
    w.add(&lease, record("2"));
    w.add(&lease, record("4"));
    let again = w.fork("b", 5, "c");
    w.add(&again, record("0"));
    assert_eq!(keys(&asked(w, "b", &all(""))), ["1", "2", "3", "4"]);
    assert_eq!(keys(&asked(w, "c", &all(""))), ["0", "1", "2", "3"]);
    let last = RecordQuery::last(KeyRange::StartsWith(path("")), 2);
    assert_eq!(keys(&asked(w, "c", &last)), ["3", "2"]);
    assert_eq!(keys(&asked(w, "a", &last)), ["5", "3"]);
}

fn records_of_no_session_are_an_error<F: Fixture>(w: &mut Harness<F>) {
    let error = w.store().records(&id("a"), &all("")).unwrap_err();
    assert!(matches!(error, Error::NoSession(_)), "{error}");
}

/// The newest checkpoint's record and the writes with the same key.
fn newest<F: Fixture>(w: &Harness<F>, name: &str, known: Option<Digest>) -> Newest {
    let beside = |found: &Recorded| {
        let key = found.event.key().unwrap_or_default().replace("/checkpoint/", "/writes/");
        KeyRange::Is(key)
    };
    let query = NewestQuery { keys: &KeyRange::StartsWith(path("")), beside: &beside, known };
    w.store().newest_record(&id(name), query).unwrap()
}

fn the_newest_record_comes_with_those_beside_it<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &[]);
    assert!(matches!(newest(w, "a", None), Newest::Absent));
    add(w, "a", vec![record("2").into(), record("1").into()]).unwrap();
    let writes = |key| NewEvent::from(Record { topic: "writes".to_owned(), ..record(key) });
    add(w, "a", vec![writes("1"), writes("2"), writes("2"), writes("3")]).unwrap();
    let Newest::Found { record, beside, .. } = newest(w, "a", None) else { panic!() };
    assert_eq!((record.seq.get(), seqs(&beside)), (2, vec![5, 6]));
    let query = NewestQuery { keys: &KeyRange::Is(path("x")), beside: &|_| panic!(), known: None };
    let error = w.store().newest_record(&id("b"), query).unwrap_err();
    assert!(matches!(error, Error::NoSession(_)), "{error}");
}

fn what_is_known_is_not_read_again_until_something_is_written<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1"]);
    let Newest::Found { chain: known, .. } = newest(w, "a", None) else { panic!() };
    assert!(matches!(newest(w, "a", known), Newest::Unchanged) == known.is_some());
    w.store().write(prune("a", &[2])).unwrap();
    assert!(matches!(newest(w, "a", known), Newest::Absent));
    filled(w, "b", &["1"]);
    assert!(matches!(newest(w, "b", known), Newest::Found { .. }));
    // A fork's shared events may be erased without a trace in its own chain.
    w.fork("b", 2, "c");
    let Newest::Found { chain, .. } = newest(w, "c", None) else { panic!() };
    assert_eq!(chain, None);
}

fn with_blob(key: &str, bytes: &[u8]) -> NewEvent {
    let attachment = Attachment::new(bytes);
    let blobs = vec![attachment.digest];
    NewEvent::from(Record { blobs, ..record(key) }).with([attachment])
}

fn an_attachment_is_stored_with_its_event<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &[]);
    let before = w.store().info(&id("a")).unwrap().bytes;
    let large = vec![7; 200_000];
    let both = [Attachment::new(large.clone()), Attachment::new("small")];
    let names: Vec<Digest> = both.iter().map(|one| one.digest).collect();
    let event = NewEvent::from(Record { blobs: names.clone(), ..record("k") }).with(both);
    add(w, "a", vec![event.clone(), with_blob("l", b"small")]).unwrap();
    assert_eq!(w.store().blobs(&names).unwrap(), [large.as_slice(), b"small"]);
    let Event::Record(found) = &w.log("a")[1].event else { panic!() };
    assert_eq!((&found.blobs, found.data.as_str()), (&names, "<k>"));
    assert!(w.store().info(&id("a")).unwrap().bytes > before);
    w.assert_folded("a");
    // A blob that is already stored need not be sent again.
    let named = Record { blobs: names, ..record("m") };
    add(w, "a", vec![named.into()]).unwrap();
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    let gone = w.store().blob(&Digest::of(b"small")).unwrap_err();
    assert!(matches!(gone, Error::NoBlob(_)), "{gone}");
}

fn an_attachment_that_the_event_does_not_name_is_refused<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &[]);
    let event = NewEvent::from(record("k")).with([Attachment::new("stray")]);
    add(w, "a", vec![event]).unwrap_err();
    assert_eq!(w.head("a").seq, Seq::FIRST);
}

/// A record and a message with the same text: the text is one blob, which both refer to.
fn a_text_that_is_attached_is_kept_once_and_found<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &[]);
    let text = format!("the cistern {}", "is full ".repeat(100));
    let said = say(&text).with([Attachment::new(text.clone())]);
    add(w, "a", vec![said.clone(), with_blob("k", text.as_bytes())]).unwrap();
    assert_eq!(w.log("a")[1].event, said.event);
    assert_eq!(w.store().blob(&Digest::of(text.as_bytes())).unwrap(), text.as_bytes());
    assert_eq!(w.hits("cistern"), [("a".to_owned(), 2)]);
    w.assert_folded("a");
    assert!(w.store().maintain().verify(&id("a")).unwrap().is_sound());
    // The message keeps its text when the record is gone.
    w.store().write(prune("a", &[3])).unwrap();
    assert_eq!(w.log("a")[1].event, said.event);
    w.store().write(prune("a", &[2])).unwrap();
    let gone = w.store().blob(&Digest::of(text.as_bytes())).unwrap_err();
    assert!(matches!(gone, Error::NoBlob(_)), "{gone}");
}

fn an_append_that_fails_leaves_no_attachment<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &[]);
    let append = Append {
        session: id("a"),
        epoch: None,
        expected: Some(Expected::At(Seq::new(9))),
        events: vec![with_blob("k", b"bytes")].into(),
    };
    let error = w.store().write(Write::Append(append)).unwrap_err();
    assert!(matches!(error, Error::UnexpectedSeq { .. }), "{error}");
    let error = w.store().blob(&Digest::of(b"bytes")).unwrap_err();
    assert!(matches!(error, Error::NoBlob(_)), "{error}");
}

fn several_blobs_are_read_at_once<F: Fixture>(w: &mut Harness<F>) {
    let names = [b"x", b"y"].map(|bytes| w.store().put_blob(bytes).unwrap());
    let asked = [names[1], names[0], names[1]];
    assert_eq!(w.store().blobs(&asked).unwrap(), [b"y", b"x", b"y"]);
    assert!(w.store().blobs(&[]).unwrap().is_empty());
    let error = w.store().blobs(&[names[0], Digest::of(b"none")]).unwrap_err();
    assert!(matches!(error, Error::NoBlob(_)), "{error}");
}

fn a_prune_empties_records_and_the_chain_verifies<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "2", "3", "4"]);
    let before = w.store().info(&id("a")).unwrap().bytes;
    let written = w.store().write(prune("a", &[2, 3, 5])).unwrap();
    assert_eq!((written.first, written.last), (Seq::new(6), Seq::new(6)));
    assert_eq!(keys(&asked(w, "a", &all(""))), ["3"]);
    assert_eq!(
        seqs(&w.store().keyed_events(&id("a"), &[stepwell::model::Kind::Record]).unwrap()),
        [4]
    );
    let log = w.log("a");
    let Event::Scrubbed(scrubbed) = &log[5].event else { panic!("{:?}", log[5]) };
    let ranges: Vec<_> = scrubbed.pruned.iter().map(|(a, b)| (a.get(), b.get())).collect();
    assert_eq!((scrubbed.rule.as_str(), ranges), ("old", vec![(2, 3), (5, 5)]));
    assert!(scrubbed.hidden.is_empty());
    let Event::Record(emptied) = &log[1].event else { panic!("{:?}", log[1]) };
    let (system, topic) = ("langgraph".to_owned(), "checkpoint".to_owned());
    assert_eq!(*emptied, Record { system, topic, ..Record::default() });
    assert!(w.store().info(&id("a")).unwrap().bytes < before + 200);
    let verdict = w.store().maintain().verify(&id("a")).unwrap();
    assert!(verdict.is_sound());
    assert_eq!((verdict.intact, verdict.pruned, verdict.scrubbed), (6, 3, 0));
    w.assert_folded("a");
}

fn a_prune_takes_blobs_and_words_along<F: Fixture>(w: &mut Harness<F>) {
    w.make(external("a"));
    let searched = Record { text: Some("aardvark".to_owned()), ..record("1") };
    let kept = Record { text: Some("aardvark".to_owned()), ..record("2") };
    let large = Record { data: "x".repeat(100_000), ..record("5") };
    let events = vec![
        searched.into(),
        kept.into(),
        with_blob("3", b"gone"),
        with_blob("4", b"shared"),
        large.into(),
        with_blob("6", b"shared"),
    ];
    add(w, "a", events).unwrap();
    assert_eq!(w.hits("aardvark").len(), 2);
    let before = w.store().info(&id("a")).unwrap().bytes;
    w.store().write(prune("a", &[2, 4, 5, 6])).unwrap();
    assert_eq!(w.hits("aardvark"), [("a".to_owned(), 3)]);
    let gone = |bytes: &[u8]| w.store().blob(&Digest::of(bytes)).is_err();
    assert!(gone(b"gone") && gone("x".repeat(100_000).as_bytes()));
    assert!(!gone(b"shared"), "another event names it");
    assert!(w.store().info(&id("a")).unwrap().bytes < before);
    w.assert_folded("a");
}

fn a_prune_and_an_append_are_one<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "2"]);
    let residue = |expected| {
        Write::Append(Append {
            session: id("a"),
            epoch: None,
            expected,
            events: vec![record("residue").into()].into(),
        })
    };
    let refused = vec![prune("a", &[2]), residue(Some(Expected::At(Seq::new(99))))];
    w.store().batch(refused).unwrap_err();
    assert_eq!(keys(&asked(w, "a", &all(""))), ["1", "2"]);
    let written = w.store().batch(vec![residue(None), prune("a", &[2, 3])]).unwrap();
    assert_eq!(written[1].last, Seq::new(5));
    assert_eq!(keys(&asked(w, "a", &all(""))), ["residue"]);
    w.assert_folded("a");
}

fn a_prune_never_reaches_into_a_fork<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "2", "3"]);
    let lease = w.fork("a", 3, "b");
    w.release(&lease);
    let of_fork = w.log("b");
    w.store().write(prune("a", &[2, 3, 4])).unwrap();
    assert!(asked(w, "a", &all("")).is_empty());
    assert!(w.store().keyed_events(&id("a"), &[stepwell::model::Kind::Record]).unwrap().is_empty());
    assert_eq!(w.log("b"), of_fork);
    assert_eq!(keys(&asked(w, "b", &all(""))), ["1", "2"]);
    let log = w.log("a");
    let Event::Scrubbed(scrubbed) = &log[4].event else { panic!("{:?}", log[4]) };
    assert_eq!((scrubbed.pruned.count(), scrubbed.hidden.count()), (1, 2));
    add(w, "a", vec![record("4").into()]).unwrap();
    assert_eq!(keys(&asked(w, "a", &RecordQuery { limit: 1, ..all("") })), ["4"]);
    for name in ["a", "b"] {
        w.assert_folded(name);
    }
    // Events that were hidden at the time of the fork stay hidden in a later fork.
    w.fork("a", 6, "c");
    assert_eq!(keys(&asked(w, "c", &all(""))), ["4"]);
}

fn a_prune_in_a_fork_never_reaches_into_what_it_shares<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "2"]);
    let lease = w.fork("a", 3, "b");
    w.add(&lease, record("3"));
    let seqs = [2, 5].map(Seq::new).to_vec();
    let (session, epoch, rule) = (id("b"), Some(lease.epoch), "old".to_owned());
    w.store().write(Write::Prune(Prune { session, epoch, expected: None, seqs, rule })).unwrap();
    assert_eq!(keys(&asked(w, "b", &all(""))), ["2"]);
    assert_eq!(keys(&asked(w, "a", &all(""))), ["1", "2"]);
    for name in ["a", "b"] {
        w.assert_folded(name);
    }
}

fn what_a_fork_kept_goes_when_it_is_gone<F: Fixture>(w: &mut Harness<F>) {
    w.make(external("a"));
    add(w, "a", vec![with_blob("1", b"bytes"), record("2").into()]).unwrap();
    let lease = w.fork("a", 3, "b");
    w.release(&lease);
    w.store().write(prune("a", &[2])).unwrap();
    assert!(w.store().blob(&Digest::of(b"bytes")).is_ok());
    w.store().maintain().purge(&targets(&["b"])).unwrap();
    w.store().write(prune("a", &[3])).unwrap();
    assert!(w.store().blob(&Digest::of(b"bytes")).is_err());
    assert_eq!(w.store().maintain().verify(&id("a")).unwrap().pruned, 2);
    w.assert_folded("a");
}

fn a_pruned_message_leaves_the_head_as_it_was_and_the_view_whole<F: Fixture>(w: &mut Harness<F>) {
    w.make(external("a"));
    let call = Message::assistant("I look.").calling("c", "read", "{}");
    let events =
        vec![say("first"), call.into(), Message::tool_result("c", "found").into(), say("last")];
    add(w, "a", events).unwrap();
    let before = w.head("a");
    w.store().write(prune("a", &[2, 3])).unwrap();
    let after = w.head("a");
    assert_eq!((before.messages, before.spent), (after.messages, after.spent));
    let view = View::of(&Lane::main(), w.log("a"));
    View::check(view.messages.iter().map(|shown| &shown.message)).unwrap();
    let texts: Vec<String> = view.messages.iter().map(|shown| shown.message.text()).collect();
    assert!(texts.contains(&"last".to_owned()) && !texts.contains(&"first".to_owned()));
    w.assert_folded("a");
    // A fork keeps its messages, although the view here hides them.
    add(w, "a", vec![say("more")]).unwrap();
    w.fork("a", 7, "b");
    w.store().write(prune("a", &[7])).unwrap();
    let shown = |name| View::of(&Lane::main(), w.log(name)).messages.len();
    assert_eq!(shown("b"), shown("a") + 1);
}

fn what_was_pruned_is_pruned_once<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "2"]);
    w.store().write(prune("a", &[2])).unwrap();
    let again = w.store().write(prune("a", &[2])).unwrap();
    assert_eq!(again.last, Seq::new(4));
    assert_eq!(w.head("a").seq, Seq::new(4));
    w.store().write(prune("a", &[])).unwrap();
    assert_eq!(w.head("a").seq, Seq::new(4));
    w.store().write(prune("a", &[2, 3])).unwrap();
    let log = w.log("a");
    let Event::Scrubbed(scrubbed) = &log[4].event else { panic!("{:?}", log[4]) };
    assert!(scrubbed.pruned.count() == 1 && scrubbed.pruned.contains(Seq::new(3)));
}

fn a_write_that_expects_what_was_pruned_is_refused<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "2"]);
    let behind = |name: &str, seq| {
        let (events, expected) = (vec![record("n").into()], Some(Expected::Intact(Seq::new(seq))));
        let append = Append { session: id(name), epoch: None, expected, events: events.into() };
        w.store().write(Write::Append(append))
    };
    behind("a", 2).unwrap();
    w.store().write(prune("a", &[2])).unwrap();
    let before = w.head("a").seq;
    let error = behind("a", 2).unwrap_err();
    assert!(matches!(&error, Error::Pruned { seq, .. } if *seq == Seq::new(2)), "{error}");
    assert!(matches!(behind("a", 99).unwrap_err(), Error::Pruned { .. }));
    assert_eq!(w.head("a").seq, before);
    behind("a", 3).unwrap();
    // Shared events are only hidden in the fork.
    let at = w.head("a").seq;
    let origin = Origin::Fork { parent: id("a"), at };
    w.make(Created { origin, ..external("b") });
    behind("b", 3).unwrap();
    w.store().write(prune("b", &[3])).unwrap();
    assert!(matches!(behind("b", 3).unwrap_err(), Error::Pruned { .. }));
    behind("a", 3).unwrap();
}

fn a_prune_is_refused_when_the_session_moved_on<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "2"]);
    let at = |seq| {
        let (session, seqs, rule) = (id("a"), vec![Seq::new(2)], "old".to_owned());
        let expected = Some(Expected::At(Seq::new(seq)));
        w.store().write(Write::Prune(Prune { session, epoch: None, expected, seqs, rule }))
    };
    let error = at(2).unwrap_err();
    assert!(matches!(error, Error::UnexpectedSeq { .. }), "{error}");
    assert_eq!(keys(&asked(w, "a", &all(""))), ["1", "2"]);
    at(3).unwrap();
    assert_eq!(keys(&asked(w, "a", &all(""))), ["2"]);
}

fn a_prune_refuses_what_it_must_keep<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1"]);
    for seqs in [&[1][..], &[0], &[2, 9]] {
        let error = w.store().write(prune("a", seqs)).unwrap_err();
        assert!(matches!(error, Error::Illegal { .. }), "{error}");
    }
    w.store().maintain().trash(&targets(&["a"])).unwrap();
    let error = w.store().write(prune("a", &[2])).unwrap_err();
    assert!(matches!(error, Error::Trashed(_)), "{error}");
    w.store().maintain().restore(&[id("a")]).unwrap();
    assert_eq!(keys(&asked(w, "a", &all(""))), ["1"]);
    // Messages of a run of Stepwell's are its history.
    let lease = w.begin("own");
    w.add(&lease, say("x"));
    let (session, epoch, rule) = (id("own"), Some(lease.epoch), "old".to_owned());
    let prune = Prune { session, epoch, expected: None, seqs: vec![Seq::new(2)], rule };
    let error = w.store().write(Write::Prune(prune)).unwrap_err();
    assert!(matches!(error, Error::Illegal { .. }), "{error}");
}

fn a_prune_needs_a_lease_where_an_append_does<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "2"]);
    let lease = w.store().acquire(&id("a"), &claim(1)).unwrap();
    let error = w.store().write(prune("a", &[2])).unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
    let under = |epoch| {
        let (session, rule) = (id("a"), "old".to_owned());
        Write::Prune(Prune {
            session,
            epoch: Some(epoch),
            expected: None,
            seqs: vec![Seq::new(2)],
            rule,
        })
    };
    let error = w.store().write(under(lease.epoch.next())).unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
    w.store().write(under(lease.epoch)).unwrap();
    assert_eq!(keys(&asked(w, "a", &all(""))), ["2"]);
    let own = w.begin("own");
    w.add(&own, record("1"));
    w.release(&own);
    let error = w.store().write(prune("own", &[2])).unwrap_err();
    assert!(matches!(error, Error::NeedsLease { .. }), "{error}");
}

fn a_pruned_session_lives_on<F: Fixture>(w: &mut Harness<F>) {
    filled(w, "a", &["1", "2", "3"]);
    w.store().write(prune("a", &[2, 3])).unwrap();
    add(w, "a", vec![record("4").into()]).unwrap();
    w.reopen();
    assert_eq!(keys(&asked(w, "a", &all(""))), ["3", "4"]);
    assert!(w.store().maintain().repair(&id("a")).unwrap().is_sound());
    let fork = create(
        Created { origin: Origin::Fork { parent: id("a"), at: Seq::new(6) }, ..external("b") },
        None,
    );
    w.store().write(Write::Create(fork)).unwrap();
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    assert_eq!(keys(&asked(w, "b", &all(""))), ["3", "4"]);
    let slice = w.store().events(&id("b"), Span::ALL).unwrap();
    assert_eq!((slice.pruned, slice.scrubbed), (2, 0));
    w.assert_folded("b");
}
