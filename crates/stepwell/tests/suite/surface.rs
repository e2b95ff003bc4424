//! The API of `Stepwell` and `Session`, from a caller's view.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use stepwell::model::{
    Change, CheckpointReason, Edited, EventId, Gate, GateAnswered, IdFormat, Kind, Phase, PhaseSet,
};
use stepwell::sessions::{Deps, ResumeLimits, ResumeReason};
use stepwell::sqlite::SqliteStore;
use stepwell::store::query::{Filter, Query, Search, SystemPrompts};
use stepwell::store::{Append, Span, Write};
use stepwell::upkeep::Policy;
use stepwell::{
    Created, Error, Event, Lane, Message, NewEvent, Recorded, Seq, Session, SessionId, Status,
    Stepwell, StopReason, Store,
};

fn named(name: &str) -> Created {
    Created::new(name.parse().unwrap(), format!("task of {name}"))
}

fn finished(well: &Stepwell, name: &str) -> SessionId {
    let session = well.create(named(name)).unwrap();
    let id = session.id().clone();
    session.finish(Status::Success, Some(StopReason::LlmDone)).unwrap();
    id
}

fn edit(well: &Stepwell, id: &SessionId, edited: Edited) {
    well.edit(id, edited).unwrap();
}

fn pin() -> Edited {
    Edited { pinned: Some(true), ..Edited::default() }
}

fn everything() -> Policy {
    Policy { keep_last: Some(0), ..Policy::default() }
}

#[test]
fn a_store_is_found_from_any_folder_below_it() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    assert_eq!(Stepwell::discover(&deep), None);
    let place = folder.path().join(stepwell::store::STORE_FOLDER);
    drop(Stepwell::open(&place).unwrap());
    assert_eq!(Stepwell::discover(&deep).as_deref(), Some(&*place));
    assert_eq!(Stepwell::discover(folder.path()), Some(place));
    // A relative path is relative to the process's folder.
    assert_eq!(Stepwell::discover("nowhere/at/all".as_ref()), Stepwell::discover(".".as_ref()));
}

#[test]
fn a_unique_part_names_a_session_and_the_random_end_has_precedence() {
    let well = Stepwell::in_memory();
    let first = finished(&well, "20260302-101500-a3f9c1");
    let second = finished(&well, "20260302-101530-0f2026");
    let third = finished(&well, "20260302-101545-2026aa");
    assert_eq!(well.find("a3f").unwrap(), first);
    assert_eq!(well.find("f9c1").unwrap(), first);
    assert_eq!(well.find("101530").unwrap(), second);
    // All three ids start with this, and one has it in the middle: only the start of the ending
    // counts.
    assert_eq!(well.find("2026").unwrap(), third);
    let error = well.find("20260302").unwrap_err();
    assert!(matches!(&error, Error::Ambiguous { candidates, .. } if candidates.len() == 3));
    assert!(matches!(well.find("zzz").unwrap_err(), Error::NoMatch(_)));
    let ids = [first, second, third];
    let parts = well.sufficient_parts(&ids).unwrap();
    for (id, part) in ids.iter().zip(parts) {
        assert_eq!(&well.find(&id.as_str()[part]).unwrap(), id);
    }
}

#[test]
fn a_session_has_precedence_over_subagents_with_its_name() {
    let well = Stepwell::in_memory();
    let parent = finished(&well, "3f6c1b52-5a1f0c7e9d21");
    for name in ["3f6c1b52-5a1f0c7e9d21-agent-1", "3f6c1b52-5a1f0c7e9d21-agent-2"] {
        let origin = stepwell::model::Origin::Subagent { parent: parent.clone() };
        drop(well.create(Created { origin, ..named(name) }).unwrap());
    }
    for part in ["3f6c", "5a1f0c7e9d21", "9d21"] {
        assert_eq!(well.find(part).unwrap(), parent, "{part}");
    }
}

#[test]
fn a_search_finds_each_message_once_and_no_system_prompt() {
    let well = Stepwell::in_memory();
    let session = well.create(Created::new("first".parse().unwrap(), "dig a well")).unwrap();
    session.append(Message::system("You dig wells.")).unwrap();
    session.append(Message::user("dig a well")).unwrap();
    session.append(Message::assistant("The well is dug.")).unwrap();
    drop(session);
    let fork = well.fork(&"first".parse().unwrap(), None).unwrap();
    fork.append(Message::user("a deeper well")).unwrap();
    drop(fork);
    // No message states this session's task.
    drop(well.create(Created::new("silent".parse().unwrap(), "a silent well")).unwrap());
    let seen = |search: &Search| -> Vec<(String, u64)> {
        let hits = well.search(search).unwrap().hits;
        let mut seen: Vec<_> = hits.iter().map(|hit| (hit.kind.clone(), hit.seq.get())).collect();
        seen.sort();
        seen
    };
    let message = |seq| ("message".to_owned(), seq);
    let created = |seq| ("created".to_owned(), seq);
    let asked = Search::new("well");
    assert_eq!(seen(&asked), [created(1), message(3), message(4), message(6)]);
    let all = Search { system: SystemPrompts::Searched, ..Search::new("wel") };
    assert_eq!(seen(&all), [created(1), message(2), message(3), message(4), message(6)]);
    // Hits that are left out do not count.
    for limit in 0..5 {
        let few = Search { limit, ..Search::new("well") };
        assert_eq!(seen(&few).len(), limit.min(4));
    }
}

#[test]
fn a_name_is_an_id_then_a_label_then_a_unique_prefix() {
    let well = Stepwell::in_memory();
    let (a, ab) = (finished(&well, "alpha"), finished(&well, "alpha-beta"));
    let labelled = finished(&well, "gamma");
    let label = Edited { label: Change::Set("al".into()), ..Edited::default() };
    edit(&well, &labelled, label);
    assert_eq!(well.find("alpha").unwrap(), a);
    assert_eq!(well.find("alpha-").unwrap(), ab);
    assert_eq!(well.find("al").unwrap(), labelled);
    let error = well.find("alp").unwrap_err();
    assert_eq!(error.to_string(), "\"alp\" fits several sessions: alpha-beta, alpha");
    assert_eq!(well.find("delta").unwrap_err().to_string(), "no session matches \"delta\"");
    assert!(well.find("").is_err() && well.find("../x").is_err());
}

#[test]
fn last_is_the_session_that_a_user_started_last() {
    let well = Stepwell::in_memory();
    let parent = well.create(named("parent")).unwrap();
    let child = parent.spawn(named("child")).unwrap();
    child.append(Message::user("later")).unwrap();
    assert_eq!(&well.find("@last").unwrap(), parent.id());
    let label = Edited { label: Change::Set("@last".into()), ..Edited::default() };
    assert!(well.edit(parent.id(), label).is_err());
}

#[test]
fn new_ids_are_free_even_when_they_are_short() {
    let surroundings = Deps { id_format: IdFormat::Hex(4), ..Deps::default() };
    let well = Stepwell::with(Arc::new(SqliteStore::in_memory().unwrap()), surroundings);
    for _ in 0..2_000 {
        drop(well.create(well.draft("t")).unwrap());
    }
}

#[test]
fn steps_are_numbered_by_lane_over_resumes() {
    let well = Stepwell::in_memory();
    let critic: Lane = "critic".parse().unwrap();
    let session = well.create(named("a")).unwrap();
    session.step([Message::assistant("1")]).unwrap();
    session.step_in(&critic, [Message::assistant("1")]).unwrap();
    session.step([Message::assistant("2")]).unwrap();
    let id = session.id().clone();
    drop(session);
    let session = well.resume(&id).unwrap();
    session.step([Message::assistant("3")]).unwrap();
    let events = session.events(Span::ALL).unwrap().intact(&id).unwrap();
    let steps = events.iter().filter_map(|event| match &event.event {
        Event::Step(step) => Some(format!("{}{}", step.lane, step.n)),
        _ => None,
    });
    assert_eq!(steps.collect::<Vec<_>>(), ["main1", "critic1", "main2", "main3"]);
    // The log shows one dead process.
    assert_eq!(well.info(&id).unwrap().head.resumes, 1);
}

#[test]
fn phases_move_and_gates_are_answered_by_anyone() {
    let well = Stepwell::in_memory();
    let session = well.create(named("a").with_phases(PhaseSet::Workflow)).unwrap();
    session.enter(Phase::Initialize).unwrap();
    session.enter(Phase::Initialize).unwrap();
    let error = session.enter(Phase::Ship).unwrap_err();
    assert!(error.to_string().contains("expected one of: discuss, execute, idle"), "{error}");
    let gate = Gate::new("g", "go?");
    session.append(gate).unwrap();
    let answer = GateAnswered::new("g", "yes", "me");
    well.answer(session.id(), answer.clone()).unwrap();
    let error = well.answer(session.id(), answer).unwrap_err();
    assert!(error.to_string().contains("was answered by me"), "{error}");
    assert!(session.enter(Phase::Discuss).is_ok());
    // Each move makes a checkpoint; staying makes none.
    let reason = |fact: Recorded| match fact.event {
        Event::Checkpoint(it) => (it.name, it.reason),
        other => panic!("{other:?}"),
    };
    let taken: Vec<_> =
        session.keyed_events(&[Kind::Checkpoint]).unwrap().into_iter().map(reason).collect();
    let phase = |name: &str| (name.to_owned(), CheckpointReason::Phase);
    assert_eq!(taken, [phase("phase-initialize"), phase("phase-discuss")]);
    let plain = well.create(named("b")).unwrap();
    let plain: Session = plain;
    assert!(plain.enter(Phase::Plan).unwrap_err().to_string().contains("has no phases"));
}

#[test]
fn resuming_an_external_session_leaves_its_status_to_its_phase() {
    let well = Stepwell::in_memory();
    let created = named("a").with_phases(PhaseSet::Lifecycle).driven_externally();
    let session = well.create(created).unwrap();
    session.enter(Phase::Approval).unwrap();
    let id = session.id().clone();
    drop(session);
    assert_eq!(well.info(&id).unwrap().head.status, Status::Paused);
    drop(well.resume(&id).unwrap());
    assert_eq!(well.info(&id).unwrap().head.status, Status::Paused);
    let decision = well.resume_decision(&id, ResumeLimits::default()).unwrap();
    assert!(decision.should_resume);
    let none = well.resume_decision(&"none".parse().unwrap(), ResumeLimits::default()).unwrap();
    assert_eq!(none.reason, ResumeReason::NotFound);
}

#[test]
fn a_fork_is_described_by_its_parent_not_by_its_first_ancestor() {
    let well = Stepwell::in_memory();
    let first = well.create(named("a").with_agent("planner")).unwrap();
    let fork = well.fork(first.id(), None).unwrap();
    assert_eq!(well.info(fork.id()).unwrap().head.agent, "planner");
    let origin = stepwell::model::Origin::Fork { parent: fork.id().clone(), at: Seq::FIRST };
    let coder = well.create(Created { origin, ..named("b").with_agent("coder") }).unwrap();
    let coder = coder;
    let mut answer = Message::assistant("hi");
    answer.model = Some("other-model".into());
    coder.append(answer).unwrap();
    let again = well.fork(coder.id(), None).unwrap();
    let head = well.info(again.id()).unwrap().head;
    assert_eq!((&*head.agent, &*head.task, &*head.model), ("coder", "task of b", "other-model"));
}

#[test]
fn a_cleanup_skips_sessions_pinned_after_its_plan() {
    for pinned in ["parent", "child"] {
        let well = Stepwell::in_memory();
        let parent = well.create(named("parent")).unwrap();
        parent.spawn(named("child")).unwrap().finish(Status::Success, None).unwrap();
        parent.finish(Status::Success, None).unwrap();
        let plan = well.plan_cleanup(&everything()).unwrap();
        assert_eq!(plan.take.len(), 1);
        edit(&well, &pinned.parse().unwrap(), pin());
        let removal = well.clean_up(&plan).unwrap();
        assert!(removal.taken.is_empty(), "{pinned}: {removal:?}");
        assert_eq!(removal.left.len(), 1);
    }
}

#[test]
fn a_cleanup_deletes_only_unchanged_sessions_and_the_trash_restores_them() {
    let well = Stepwell::in_memory();
    let (a, b) = (finished(&well, "a"), finished(&well, "b"));
    let plan = well.plan_cleanup(&everything()).unwrap();
    drop(well.resume(&b).unwrap());
    let removal = well.clean_up(&plan).unwrap();
    assert_eq!((removal.taken, removal.left.len()), (vec![a.clone()], 1));
    assert_eq!(well.restore(&a).unwrap().len(), 1);
    assert_eq!(well.delete(&a).unwrap().len(), 1);
    assert!(matches!(well.delete(&a), Err(Error::Trashed(_))));
    assert!(well.empty_trash(Duration::from_secs(3_600)).unwrap().taken.is_empty());
    assert_eq!(well.empty_trash(Duration::ZERO).unwrap().taken, std::slice::from_ref(&a));
    assert!(matches!(well.info(&a), Err(Error::NoSession(_))));
}

#[test]
fn a_subagents_session_is_restored_only_with_its_parent() {
    let well = Stepwell::in_memory();
    let parent = well.create(named("parent")).unwrap();
    parent.spawn(named("child")).unwrap().finish(Status::Success, None).unwrap();
    parent.finish(Status::Success, None).unwrap();
    let (parent, child) = ("parent".parse().unwrap(), "child".parse().unwrap());
    well.delete(&parent).unwrap();
    let alone = well.restore(&child);
    assert!(matches!(alone, Err(Error::Trashed(id)) if id == parent));
    // No session can be created below one in the trash.
    let origin = stepwell::model::Origin::Subagent { parent: parent.clone() };
    let late = well.create(Created { origin, ..named("late") });
    assert!(matches!(late, Err(Error::Trashed(_))));
    assert_eq!(well.restore(&parent).unwrap(), [parent.clone(), child.clone()]);
    well.delete(&child).unwrap();
    well.restore(&child).unwrap();
    assert!(well.empty_trash(Duration::ZERO).unwrap().taken.is_empty());
    assert!(well.info(&child).is_ok());
}

#[test]
fn metadata_too_deep_to_read_back_is_refused() {
    let well = Stepwell::in_memory();
    let id = finished(&well, "a");
    let nest = |depth| (0..depth).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let deep = |depth| Edited {
        metadata: BTreeMap::from([("k".to_owned(), nest(depth))]),
        ..Edited::default()
    };
    let error = well.edit(&id, deep(200)).unwrap_err();
    assert!(error.to_string().contains("could not be read back"), "{error}");
    well.edit(&id, deep(100)).unwrap();
    assert!(well.store().maintain().verify(&id).unwrap().is_sound());
    // At any depth, a session that accepted the metadata can be read.
    for depth in 101..130 {
        let _ = well.edit(&id, deep(depth));
        assert!(well.store().maintain().verify(&id).unwrap().is_sound(), "{depth}");
        assert!(well.resume(&id).is_ok(), "{depth}");
    }
}

#[test]
fn a_known_first_event_does_not_acknowledge_a_different_append() {
    let well = Stepwell::in_memory();
    let session = well.create(named("a")).unwrap();
    let known = NewEvent::from(Message::user("A")).with_id(EventId::derived(b"A"));
    let append = |events: Vec<NewEvent>| {
        let (id, epoch) = (session.id().clone(), Some(session.lease().epoch));
        well.store().write(Write::Append(Append {
            session: id,
            epoch,
            expected: None,
            events: events.into(),
        }))
    };
    append(vec![known.clone(), Message::user("B").into()]).unwrap();
    let again = append(vec![known.clone(), Message::user("B").into()]).unwrap();
    assert_eq!((again.first, again.last), (Seq::new(2), Seq::new(3)));
    let other = append(vec![known.clone(), Message::user("C").into()]);
    assert!(matches!(other, Err(Error::EventIdReused { .. })), "{other:?}");
    let longer = append(vec![known, Message::user("B").into(), Message::user("D").into()]);
    assert!(matches!(longer, Err(Error::EventIdReused { .. })), "{longer:?}");
}

#[test]
fn a_huge_model_name_leaves_the_head_small() {
    let well = Stepwell::in_memory();
    let session = well.create(named("a")).unwrap();
    let mut message = Message::assistant("x");
    message.model = Some("m".repeat(1 << 20));
    session.append(message).unwrap();
    let head = session.info().unwrap().head;
    assert!(serde_json::to_vec(&head).unwrap().len() < 10_000);
}

#[test]
fn a_dropped_handle_does_not_stop_the_renewal_of_the_next() {
    // Long enough for a renewal on a busy machine.
    let ttl = Duration::from_secs(1);
    let surroundings = Deps { lease_ttl: ttl, ..Deps::default() };
    let well = Stepwell::with(Arc::new(SqliteStore::in_memory().unwrap()), surroundings);
    let old = well.create(named("a")).unwrap();
    let id = old.id().clone();
    // Another process releases the lease, as after a suspended machine woke up too late.
    well.store().release(old.lease()).unwrap();
    let new = well.resume(&id).unwrap();
    drop(old);
    let seq = well.info(&id).unwrap().head.seq;
    // Nothing is recorded in this time, in which a lease without renewal would expire twice.
    assert_eq!(well.store().wait_after(&id, seq, ttl * 2).unwrap(), seq);
    assert_eq!(well.info(&id).unwrap().head.status, Status::Running);
    assert!(matches!(well.resume(&id), Err(Error::Held { .. })));
    new.append(Message::user("still here")).unwrap();
}

#[test]
fn a_backup_is_whole_and_never_replaces_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("one")).unwrap();
    let path = store.path().to_owned();
    let copy_folder = folder.path().join("two");
    fs::create_dir(&copy_folder).unwrap();
    let copy = copy_folder.join("stepwell.db");
    let store = Arc::new(store);
    let well = Stepwell::with(store.clone(), Deps::default());
    let session = well.create(named("a")).unwrap();
    session.append(Message::user("kept")).unwrap();
    store.maintain().backup(&copy).unwrap();
    for taken in [&path, &copy] {
        let error = store.maintain().backup(taken).unwrap_err();
        assert!(error.to_string().contains("File exists"), "{error}");
    }
    session.append(Message::user("later")).unwrap();
    let copied = SqliteStore::open(&copy_folder).unwrap();
    let copied: &dyn Store = &copied;
    assert_eq!(copied.events(session.id(), Span::ALL).unwrap().events.len(), 2);
    assert!(copied.maintain().verify(session.id()).unwrap().is_sound());
    assert_eq!(session.events(Span::ALL).unwrap().events.len(), 3);
    assert_eq!(
        fs::read_dir(&copy_folder)
            .unwrap()
            .filter_map(Result::ok)
            .filter(|entry| { entry.file_name().to_string_lossy().contains(".new-") })
            .count(),
        0
    );
}

/// Is the text anywhere in the store's files?
fn on_disk(folder: &std::path::Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().filter_map(Result::ok).any(|entry| {
        let bytes = fs::read(entry.path()).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn purged_and_scrubbed_text_is_gone_from_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let well = Stepwell::open(folder.path()).unwrap();
    let session = well.create(named("a")).unwrap();
    let other = well.create(named("b")).unwrap();
    session.append(Message::user("the word is xylophonist")).unwrap();
    let seq = other.append(Message::user("the word is zymologist")).unwrap();
    assert_eq!(well.search(&Search::new("word")).unwrap().hits.len(), 2);
    assert!(on_disk(folder.path(), "xylophonist") && on_disk(folder.path(), "zymologist"));
    let id = session.id().clone();
    drop(session);
    well.purge(&id).unwrap();
    assert!(!on_disk(folder.path(), "xylophonist"));
    let scrub = stepwell::store::Scrub {
        session: other.id().clone(),
        epoch: Some(other.lease().epoch),
        rule: "words".into(),
        replacements: vec![(seq, Message::user("the word is gone").into())],
    };
    well.store().maintain().scrub(scrub).unwrap();
    assert!(!on_disk(folder.path(), "zymologist"));
    assert!(well.search(&Search::new("zymologist")).unwrap().hits.is_empty());
    assert_eq!(well.search(&Search::new("gone")).unwrap().hits.len(), 1);
}

#[test]
fn one_damaged_head_does_not_fail_lists() {
    let folder = tempfile::tempdir().unwrap();
    {
        let well = Stepwell::open(folder.path()).unwrap();
        for name in ["a", "b"] {
            let id = finished(&well, name);
            let tagged = Edited { tag: ["t".into()].into(), ..Edited::default() };
            edit(&well, &id, tagged);
        }
    }
    let conn = rusqlite::Connection::open(folder.path().join("stepwell.db")).unwrap();
    conn.execute("UPDATE sessions SET head = '{' WHERE id = 'a'", []).unwrap();
    conn.close().unwrap();
    let well = Stepwell::open(folder.path()).unwrap();
    let filters = [
        Filter { tags: vec!["t".into()], ..Filter::default() },
        Filter { task: Some("of b".into()), ..Filter::default() },
        Filter { status: vec![Status::Success], ..Filter::default() },
    ];
    for filter in filters {
        well.store().count(&filter).unwrap();
        let page = well.list(&Query { filter, ..Query::default() }).unwrap();
        assert!(page.sessions.iter().any(|info| info.head.id.as_str() == "b"));
    }
    assert_eq!(well.search(&Search::new("\"task of b\"")).unwrap().hits.len(), 1);
}

#[test]
fn a_long_log_reads_whole_in_both_orders_and_up_to_its_damage() {
    const COUNT: usize = 5_000;
    let folder = tempfile::tempdir().unwrap();
    let well = Stepwell::open(folder.path()).unwrap();
    let session = well.create(named("a")).unwrap();
    let text =
        |n: usize| if n % 1_000 == 7 { "long ".repeat(20_000) } else { format!("message {n}") };
    session.append_all((0..COUNT).map(|n| Message::user(text(n)).into()).collect()).unwrap();
    let read = |span| session.events(span).unwrap();
    let up = read(Span::ALL);
    assert_eq!((up.events.len(), &up.damage), (COUNT + 1, &None));
    for (event, n) in up.events[1..].iter().zip(0..) {
        assert_eq!(event.event, Message::user(text(n)).into(), "{n}");
    }
    let down = read(Span::last(usize::MAX));
    assert!(down.damage.is_none() && down.events.iter().rev().eq(&up.events));
    for limit in [1, 255, 256, 2_048, 2_049, 4_999] {
        assert_eq!(read(Span::last(limit)).events, down.events[..limit]);
        assert_eq!(read(Span { limit, ..Span::ALL }).events, up.events[..limit]);
    }
    let conn = rusqlite::Connection::open(folder.path().join("stepwell.db")).unwrap();
    let sql =
        "UPDATE events SET body = replace(body, '3300', '3301') WHERE pos & 4294967295 = 3302";
    assert_eq!(conn.execute(sql, []).unwrap(), 1);
    let (up, down) = (read(Span::ALL), read(Span::last(usize::MAX)));
    assert_eq!((up.events.len(), up.damage.unwrap().seq), (3_301, Seq::new(3_302)));
    assert_eq!((down.events.len(), down.damage.unwrap().seq), (COUNT + 1 - 3_302, Seq::new(3_302)));
}

#[test]
fn oversized_names_are_refused() {
    let well = Stepwell::in_memory();
    let session = well.create(named("a")).unwrap();
    let digest = stepwell::model::Digest::of(b"");
    let path = |bytes| stepwell::model::Artifact { path: "p".repeat(bytes), digest };
    session.append(path(4 << 10)).unwrap();
    assert!(session.append(path((4 << 10) + 1)).is_err());
    let kind = |bytes| {
        let (kind, body) = ("k".repeat(bytes), "{}".to_owned());
        Event::Unknown(stepwell::model::Unknown { kind, version: 2, body })
    };
    session.append(kind(128)).unwrap();
    assert!(session.append(kind(129)).is_err());
    // A scrub cannot exceed the limits of an edit.
    let seq = session.append(Edited::default()).unwrap();
    let label = Edited { label: Change::Set("two\nlines".into()), ..Edited::default() };
    let scrub = stepwell::store::Scrub {
        session: session.id().clone(),
        epoch: Some(session.lease().epoch),
        rule: "r".into(),
        replacements: vec![(seq, label.into())],
    };
    assert!(matches!(well.store().maintain().scrub(scrub), Err(Error::Illegal { .. })));
}

#[test]
fn many_lanes_do_not_make_snapshots_outgrow_the_events() {
    let folder = tempfile::tempdir().unwrap();
    let well = Stepwell::open(folder.path()).unwrap();
    let session = well.create(named("a")).unwrap();
    let lane = |n: usize| format!("lane-{n}").parse::<Lane>().unwrap();
    let lanes = (0..500).map(|n| Message::user("x").in_lane(lane(n)).into());
    session.append_all(lanes.collect()).unwrap();
    for _ in 0..10 {
        session
            .append_all((0..500).map(|_| Message::user("y".repeat(100)).into()).collect())
            .unwrap();
    }
    let conn = rusqlite::Connection::open(folder.path().join("stepwell.db")).unwrap();
    let sum = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let snapshots = sum("SELECT coalesce(sum(length(state)), 0) FROM snapshots");
    let bodies = sum("SELECT sum(length(body)) FROM events");
    assert!(snapshots < bodies, "{snapshots} bytes of snapshots beside {bodies} of events");
    // The state at an old seq is still found, with all its lanes.
    let fork = well.fork(session.id(), Some(Seq::new(3_000))).unwrap();
    assert_eq!(well.store().lanes(fork.id()).unwrap().len(), 501);
    assert!(well.store().maintain().verify(fork.id()).unwrap().is_sound());
}

#[test]
fn only_the_stores_own_folder_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let above = folder.path().join("project");
    let plain = folder.path().join("plain");
    fs::create_dir(&plain).unwrap();
    drop(Stepwell::open(above.join(".stepwell")).unwrap());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&above), mode(&plain));
    assert_eq!(mode(&above.join(".stepwell")), 0o700);
}

/// Set for the copy of this test that changes its folder.
const ELSEWHERE: &str = "STEPWELL_TEST_RELATIVE_PATH";

#[test]
#[expect(clippy::disallowed_methods, reason = "the test talks to itself across processes")]
fn a_relative_path_means_the_same_store_after_the_process_moves() {
    if let Some(folder) = std::env::var_os(ELSEWHERE) {
        let folder = std::path::Path::new(&folder);
        let well = Stepwell::open("one").unwrap();
        std::env::set_current_dir(folder.join("two")).unwrap();
        let session = well.create(named("a")).unwrap();
        assert_eq!(well.list(&Query::default()).unwrap().sessions.len(), 1);
        assert_eq!(session.events(Span::ALL).unwrap().events.len(), 1);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("two")).unwrap();
    // A process has one current folder, so another process changes its own.
    let name = "surface::a_relative_path_means_the_same_store_after_the_process_moves";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact"])
        .env(ELSEWHERE, folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn adopting_a_lease_records_nothing() {
    let well = Stepwell::in_memory();
    let id = finished(&well, "a");
    let lease = well.store().acquire(&id, &well.claim()).unwrap();
    let session = well.adopt(lease);
    assert!(matches!(well.resume(&id), Err(Error::Held { .. })));
    assert_eq!(session.append(Message::user("later")).unwrap(), Seq::new(3));
    drop(session);
    assert_eq!(well.info(&id).unwrap().head.status, Status::Success);
    assert!(well.info(&id).unwrap().held.is_none());
}

#[test]
fn only_databases_are_restored_and_nothing_is_left_beside_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (text, backup) = (folder.path().join("x.db"), folder.path().join("b.db"));
    fs::write(&text, "a text that is longer than the front of a database").unwrap();
    let error = SqliteStore::restore_from(&text, &folder.path().join("to")).unwrap_err();
    assert!(matches!(&error, Error::NotAStore { path, .. } if *path == text), "{error}");
    let well = Stepwell::open(folder.path().join("from")).unwrap();
    finished(&well, "one");
    well.store().maintain().backup(&backup).unwrap();
    // A damaged backup is refused, and nothing is left beside it either.
    let mut bytes = fs::read(&backup).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    let damaged = folder.path().join("d.db");
    fs::write(&damaged, bytes).unwrap();
    let error = SqliteStore::restore_from(&damaged, &folder.path().join("to")).unwrap_err();
    assert!(matches!(&error, Error::DamagedStore { path, .. } if *path == damaged), "{error}");
    SqliteStore::restore_from(&backup, &folder.path().join("to")).unwrap();
    let names = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["b.db", "d.db", "from", "to", "x.db"]);
}

#[test]
fn a_store_exists_at_every_moment_of_a_replacement_and_each_old_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (store, backup) = (folder.path().join("store"), folder.path().join("b.db"));
    let well = Stepwell::open(&store).unwrap();
    finished(&well, "one");
    well.store().maintain().backup(&backup).unwrap();
    drop(well);
    // The leftovers of a killed restore do not matter.
    fs::write(store.join("stepwell.db.restoring"), "half").unwrap();
    let (file, done) = (store.join("stepwell.db"), std::sync::atomic::AtomicBool::new(false));
    let order = std::sync::atomic::Ordering::Relaxed;
    let now = stepwell::model::Time::from_micros(0);
    let asides: std::collections::BTreeSet<_> = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut missed = 0;
            while !done.load(order) {
                missed += u32::from(!file.exists());
            }
            missed
        });
        let replace = |_| SqliteStore::restore_over(&backup, &store, now).unwrap();
        let asides = (0..10).map(replace).collect();
        done.store(true, order);
        assert_eq!(watch.join().unwrap(), 0, "moments without a store");
        asides
    });
    assert_eq!(asides.len(), 10);
    assert!(asides.iter().all(|path| path.is_file()));
    // An unusable backup leaves the store unchanged, and nothing beside it.
    let before = fs::read(&file).unwrap();
    assert!(SqliteStore::restore_over(&folder.path().join("none"), &store, now).is_err());
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(!store.join("stepwell.db.restoring").exists());
    assert_eq!(Stepwell::open(&store).unwrap().list(&Query::default()).unwrap().sessions.len(), 1);
}
