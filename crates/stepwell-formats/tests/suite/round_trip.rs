//! What is exported is imported as it was.

use std::io::{BufReader, Read};

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::Value;
use stepwell::model::{
    Change, Checkpoint, Digest, Edited, EventId, FileChanged, FileState, Kind, Origin, Time,
    Unknown,
};
use stepwell::store::{Scrub, Span};
use stepwell::{Event, Message, NewEvent, Seq, Session, SessionId, Status, Stepwell, StopReason};
use stepwell_conformance::generate;
use stepwell_formats::{Error, Format, Imported, export, import};

use crate::support::{
    ARCHIVES, assert_same, exported, id, imported, log, names, root, say, subagent, text,
};

/// Something that happens to sessions. Numbers are shares of what there is, in 1/256.
#[derive(Clone, Debug)]
enum Op {
    Append { session: u8, events: Vec<Event> },
    File { session: u8, bytes: Vec<u8> },
    Fork { session: u8, at: u8 },
    Spawn { session: u8 },
    Scrub { session: u8, at: u8 },
    Purge { session: u8 },
}

fn op() -> impl Strategy<Value = Op> {
    let events = prop::collection::vec(generate::event(), 1..4);
    let bytes = prop::collection::vec(any::<u8>(), 0..3);
    prop_oneof![
        6 => (any::<u8>(), events).prop_map(|(session, events)| Op::Append { session, events }),
        2 => (any::<u8>(), bytes).prop_map(|(session, bytes)| Op::File { session, bytes }),
        3 => any::<[u8; 2]>().prop_map(|[session, at]| Op::Fork { session, at }),
        1 => any::<u8>().prop_map(|session| Op::Spawn { session }),
        1 => any::<[u8; 2]>().prop_map(|[session, at]| Op::Scrub { session, at }),
        2 => any::<u8>().prop_map(|session| Op::Purge { session }),
    ]
}

/// A well in which all of that happened, with the sessions that are left.
struct RandomWell {
    well: Stepwell,
    sessions: Vec<Session>,
    count: usize,
}

impl RandomWell {
    fn after(ops: &[Op]) -> Self {
        let well = Stepwell::in_memory();
        let first = root(&well, "s0");
        let mut random = Self { well, sessions: vec![first], count: 1 };
        ops.iter().for_each(|op| random.apply(op));
        random
    }

    fn apply(&mut self, op: &Op) {
        let (Op::Append { session, .. }
        | Op::File { session, .. }
        | Op::Fork { session, .. }
        | Op::Spawn { session }
        | Op::Scrub { session, .. }
        | Op::Purge { session }) = op;
        let index = usize::from(*session) * self.sessions.len() / 256;
        let Some(session) = self.sessions.get_mut(index) else { return };
        let last = session.info().unwrap().head.seq.get();
        let share = |part: u8| Seq::new(1 + u64::from(part) * last / 256);
        let name = format!("s{}", self.count);
        match op {
            // The store refuses what cannot be; the rest makes the history.
            Op::Append { events, .. } => {
                for (event, n) in events.iter().zip(last..) {
                    let at = Time::from_micros(i64::try_from(n).unwrap() * 1_000_001);
                    let event_id = EventId::derived(format!("{}{n}", session.id()).as_bytes());
                    let event = NewEvent {
                        id: Some(event_id),
                        at: Some(at),
                        ..NewEvent::from(event.clone())
                    };
                    session.append(event).ok();
                }
            }
            Op::File { bytes, .. } => {
                let blob = self.well.store().put_blob(bytes).unwrap();
                session.append(file("a.rs", blob)).unwrap();
            }
            Op::Fork { at, .. } => {
                let origin = Origin::Fork { parent: session.id().clone(), at: share(*at) };
                self.sessions.push(crate::support::begin(&self.well, &name, origin));
                self.count += 1;
            }
            Op::Spawn { .. } => {
                let parent = session.id().to_string();
                self.sessions.push(subagent(&self.well, &parent, &name));
                self.count += 1;
            }
            Op::Scrub { at, .. } => {
                let lease = session.lease().clone();
                let replacements = vec![(share(*at), Message::user("[erased]").into())];
                let (session, epoch, rule) = (lease.session, lease.epoch, "secrets".to_owned());
                self.well
                    .store()
                    .maintain()
                    .scrub(Scrub { session, epoch: Some(epoch), rule, replacements })
                    .ok();
            }
            Op::Purge { .. } => {
                let session = self.sessions.remove(index);
                let id = session.id().clone();
                drop(session);
                // One whose subagents run is left.
                if self.well.purge(&id).is_err() {
                    let lease = self.well.store().acquire(&id, &self.well.claim()).unwrap();
                    self.sessions.push(self.well.adopt(lease));
                }
            }
        }
    }
}

fn file(path: &str, blob: Digest) -> FileChanged {
    let after = FileState::File { blob, mode: 0o644 };
    FileChanged { path: path.to_owned(), before: FileState::Absent, after, renamed_from: None }
}

/// How many random cases each property sees; `PROPTEST_CASES` may ask for more than its usual.
const CASES: u32 = 100;

fn config() -> Config {
    let usual = Config::default();
    let cases = if usual.cases > 256 { usual.cases } else { CASES };
    Config { cases, failure_persistence: None, ..usual }
}

#[test]
fn random_histories_come_back_as_they_were() {
    proptest!(config(), |(ops in prop::collection::vec(op(), 1..25), form in 0_usize..2)| {
        let RandomWell { well, sessions, .. } = RandomWell::after(&ops);
        for session in &sessions {
            let parent = well.info(session.id()).unwrap().head.origin;
            if matches!(parent, Origin::Subagent { .. }) {
                continue;
            }
            let there = Stepwell::in_memory();
            let archive = exported(&well, session.id().as_str(), ARCHIVES[form]);
            let done = imported(&there, &archive).unwrap();
            assert_eq!(&done.made[0], session.id());
            done.made.iter().for_each(|id| assert_same(&well, &there, id));
            // Nothing else is there: no stand-in, no mark.
            let mut made: Vec<_> = done.made.iter().map(ToString::to_string).collect();
            made.sort();
            assert_eq!(names(&there), made);
            let again = imported(&there, &archive).unwrap();
            assert_eq!(again, Imported { already_there: done.made, ..Imported::default() });
        }
    });
}

#[test]
fn random_families_come_back_into_one_store_in_any_order() {
    proptest!(config(), |(ops in prop::collection::vec(op(), 1..25), turn in any::<usize>())| {
        let RandomWell { well, mut sessions, .. } = RandomWell::after(&ops);
        let count = sessions.len().max(1);
        sessions.rotate_left(turn % count);
        let there = Stepwell::in_memory();
        let subagent = |session: &Session| {
            let origin = well.info(session.id()).unwrap().head.origin;
            matches!(origin, Origin::Subagent { .. })
        };
        for session in sessions.iter().filter(|session| !subagent(session)) {
            imported(&there, exported(&well, session.id().as_str(), Format::JSONL)).unwrap();
        }
        assert_eq!(names(&well), names(&there));
        sessions.iter().for_each(|session| assert_same(&well, &there, session.id()));
    });
}

#[test]
fn both_forms_hold_the_same_entries_one_a_line() {
    let well = Stepwell::in_memory();
    let mut session = root(&well, "a");
    say(&mut session, &["one", "two"]);
    let blob = well.store().put_blob(b"bytes").unwrap();
    session.append(file("a.rs", blob)).unwrap();
    session.append(file("b.rs", blob)).unwrap();
    say(&mut subagent(&well, "a", "b"), &["three"]);
    let json = text(&well, "a", Format::JSON);
    serde_json::from_str::<Value>(&json).unwrap();
    let lines = text(&well, "a", Format::JSONL);
    let entries = |text: &str| -> Vec<String> {
        let entry = |line: &&str| line.starts_with("{\"seq\"") || line.starts_with("{\"blob\"");
        text.lines().filter(entry).map(|line| line.trim_end_matches(',').to_owned()).collect()
    };
    assert_eq!(entries(&json), entries(&lines));
    // Five events, two, and the blob that is named four times, once.
    assert_eq!(entries(&lines).len(), 5 + 2 + 1);
    for line in lines.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

#[test]
fn a_body_of_many_lines_stays_on_its_line_and_to_the_byte() {
    let well = Stepwell::in_memory();
    let session = root(&well, "a");
    let body = "{\"a\":\n\n [1.0,  2]\r\n}".to_owned();
    session
        .append(Event::Unknown(Unknown { kind: "telepathy".to_owned(), version: 7, body }))
        .unwrap();
    drop(session);
    for form in ARCHIVES {
        let there = Stepwell::in_memory();
        let archive = text(&well, "a", form);
        if form == Format::JSONL {
            archive.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap()));
        }
        imported(&there, archive).unwrap();
        assert_same(&well, &there, &id("a"));
    }
}

#[test]
fn a_long_session_is_written_and_read_in_pieces() {
    let well = Stepwell::in_memory();
    let session = root(&well, "a");
    let many = (0..3_000).map(|n| Message::user(format!("message {n}")).into()).collect();
    session.append_all(many).unwrap();
    session.append(Message::user("long ".repeat(1 << 19))).unwrap();
    session.finish(Status::Success, Some(StopReason::LlmDone)).unwrap();
    let mut archive = Vec::new();
    let done = export(&well, &id("a"), Format::JSON, &mut archive).unwrap();
    assert_eq!((done.sessions, done.events), (1, 3_003));
    let there = Stepwell::in_memory();
    imported(&there, archive).unwrap();
    assert_same(&well, &there, &id("a"));
}

#[test]
fn a_running_session_is_interrupted_where_it_is_imported() {
    let well = Stepwell::in_memory();
    let session = root(&well, "a");
    let there = Stepwell::in_memory();
    imported(&there, exported(&well, "a", Format::JSON)).unwrap();
    assert_eq!(session.info().unwrap().head.status, Status::Running);
    assert_eq!(there.info(&id("a")).unwrap().head.status, Status::Interrupted);
    there.resume(&id("a")).unwrap();
}

#[test]
fn a_session_on_disk_comes_back_with_its_blobs() {
    let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let well = Stepwell::open(here.path()).unwrap();
    let session = root(&well, "a");
    let blob = well.store().put_blob(b"fn main() {}").unwrap();
    session.append(file("main.rs", blob)).unwrap();
    session.append(Checkpoint { name: "done".to_owned(), ..Checkpoint::default() }).unwrap();
    drop(session);
    for form in ARCHIVES {
        let there = Stepwell::open(elsewhere.path().join(form.as_str())).unwrap();
        imported(&there, exported(&well, "a", form)).unwrap();
        assert_eq!(there.store().blob(&blob).unwrap(), b"fn main() {}");
        assert_eq!(there.store().keyed_events(&id("a"), &[Kind::Checkpoint]).unwrap().len(), 1);
        assert_same(&well, &there, &id("a"));
    }
}

#[test]
fn subagents_come_along_parents_first_and_forks_do_not() {
    let well = Stepwell::in_memory();
    drop(root(&well, "a"));
    drop(subagent(&well, "a", "b"));
    drop(subagent(&well, "b", "c"));
    drop(subagent(&well, "a", "d"));
    drop(crate::support::fork(&well, "a", 1, "f"));
    let there = Stepwell::in_memory();
    let done = imported(&there, exported(&well, "a", Format::JSONL)).unwrap();
    assert_eq!(done.made, ["a", "b", "d", "c"].map(id));
    done.made.iter().for_each(|id| assert_same(&well, &there, id));
}

#[test]
fn a_deleted_subagent_stays_behind_unless_all_of_it_is_deleted() {
    let well = Stepwell::in_memory();
    drop(root(&well, "a"));
    drop(subagent(&well, "a", "b"));
    well.delete(&id("b")).unwrap();
    let made = |well: &Stepwell| {
        let there = Stepwell::in_memory();
        imported(&there, exported(well, "a", Format::JSON)).unwrap().made.len()
    };
    assert_eq!(made(&well), 1);
    well.delete(&id("a")).unwrap();
    assert_eq!(made(&well), 2);
}

#[test]
fn a_scrubbed_session_comes_back_scrubbed() {
    let well = Stepwell::in_memory();
    let mut session = root(&well, "a");
    say(&mut session, &["secret swordfish", "after"]);
    let replacements = vec![(Seq::new(2), Message::user("[erased]").into())];
    let epoch = session.lease().epoch;
    let scrub =
        Scrub { session: id("a"), epoch: Some(epoch), rule: "tokens".to_owned(), replacements };
    well.store().maintain().scrub(scrub).unwrap();
    drop(session);
    for form in ARCHIVES {
        let archive = text(&well, "a", form);
        assert!(archive.contains("\"scrubbed\":1") && !archive.contains("swordfish"));
        let there = Stepwell::in_memory();
        imported(&there, archive).unwrap();
        assert_same(&well, &there, &id("a"));
    }
}

#[test]
fn a_session_that_has_gone_on_here_is_not_touched() {
    let well = Stepwell::in_memory();
    say(&mut root(&well, "a"), &["one"]);
    let archive = exported(&well, "a", Format::JSON);
    say(&mut well.resume(&id("a")).unwrap(), &["two"]);
    let before = log(&well, &id("a"));
    let done = imported(&well, archive).unwrap();
    assert_eq!(done, Imported { already_there: vec![id("a")], ..Imported::default() });
    assert_eq!(log(&well, &id("a")), before);
}

#[test]
fn a_newer_archive_completes_what_an_older_one_made() {
    let (well, there) = (Stepwell::in_memory(), Stepwell::in_memory());
    let mut session = root(&well, "a");
    say(&mut session, &["one"]);
    imported(&there, exported(&well, "a", Format::JSON)).unwrap();
    say(&mut session, &["two", "three"]);
    let done = imported(&there, exported(&well, "a", Format::JSON)).unwrap();
    assert_eq!(done, Imported { completed: vec![id("a")], ..Imported::default() });
    assert_same(&well, &there, &id("a"));
}

#[test]
fn a_session_that_differs_is_named_and_nothing_is_made() {
    let (well, there) = (Stepwell::in_memory(), Stepwell::in_memory());
    drop(root(&well, "a"));
    say(&mut subagent(&well, "a", "b"), &["here"]);
    drop(root(&there, "b"));
    let before = log(&there, &id("b"));
    let error = imported(&there, exported(&well, "a", Format::JSONL)).unwrap_err();
    assert!(error.to_string().contains("session b is in the store already"), "{error}");
    assert_eq!(names(&there), ["b"]);
    assert_eq!(there.store().events(&id("b"), Span::ALL).unwrap().events, before);
}

#[test]
fn an_edit_that_comes_between_does_not_shift_the_log() {
    // Edits need no lease, so one can reach a session while it is imported.
    let (well, there) = (Stepwell::in_memory(), Stepwell::in_memory());
    say(&mut root(&well, "a"), &["one", "two"]);
    let archive = text(&well, "a", Format::JSONL);
    let (front, rest) = archive.split_at(archive.find("{\"end\"").unwrap());
    let edit = Edits { well: there.clone(), id: id("a"), rest: rest.as_bytes() };
    let mut from = front.as_bytes().chain(BufReader::new(edit));
    let error = import(&there, &mut from).unwrap_err();
    assert!(matches!(&error, Error::Refused { seq, .. } if *seq == Seq::new(2)), "{error:?}");
}

/// A reader at which somebody edits the session that is being imported.
struct Edits<'a> {
    well: Stepwell,
    id: SessionId,
    rest: &'a [u8],
}

impl Read for Edits<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let label = Change::Set("mine".to_owned());
        self.well.edit(&self.id, Edited { label, ..Edited::default() }).unwrap();
        self.rest.read(to)
    }
}
