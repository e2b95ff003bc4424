//! An import that is killed can be repeated, whatever the kill left behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use stepwell::clock::SystemClock;
use stepwell::model::Owner;
use stepwell::sessions::Deps;
use stepwell::sqlite::{SqliteOptions, SqliteStore};
use stepwell::store::{Liveness, Processes};
use stepwell::{Message, Stepwell};
use stepwell_conformance::TestProcesses;
use stepwell_formats::Format;

use crate::mortal::{Death, Mortal};
use crate::support::{assert_same, exported, fork, id, imported, log, names, root, say, subagent};

/// Sessions whose import takes every turn: a fork from below its parent's own events, of
/// a fork of a subagent, longer than a chunk, with a subagent of its own.
fn tangled() -> Stepwell {
    let well = Stepwell::in_memory();
    drop(root(&well, "a"));
    say(&mut subagent(&well, "a", "b"), &["b1", "b2"]);
    say(&mut fork(&well, "b", 2, "c"), &["c1", "c2"]);
    say(&mut fork(&well, "c", 4, "d"), &["d1"]);
    let e = fork(&well, "d", 3, "e");
    e.append_all((0..600).map(|n| Message::user(format!("e{n}")).into()).collect()).unwrap();
    drop(e);
    say(&mut subagent(&well, "e", "f"), &["f1"]);
    well
}

/// A well, and the processes that its store sees.
pub(crate) struct WatchfulWell {
    pub(crate) well: Stepwell,
    pub(crate) processes: Arc<TestProcesses>,
}

/// A well in memory that sees which processes die.
pub(crate) fn watchful() -> WatchfulWell {
    let processes = Arc::new(TestProcesses::default());
    let (clock, seen) = (Arc::new(SystemClock), Arc::clone(&processes));
    let store = Arc::new(
        SqliteStore::in_memory_with(SqliteOptions {
            clock,
            processes: seen,
            ..SqliteOptions::default()
        })
        .unwrap(),
    );
    WatchfulWell { well: Stepwell::with(store, Deps::default()), processes }
}

/// The process that dies at its write of that number.
#[derive(Clone, Copy, Debug)]
struct Doomed(u32);

impl Processes for Doomed {
    fn this(&self) -> Owner {
        TestProcesses::holder(100 + self.0)
    }

    fn pulse(&self, _: &Owner) -> Liveness {
        Liveness::Alive
    }
}

/// Works until the process dies at a write; is the work done?
pub(crate) fn until_death(
    there: &WatchfulWell,
    writes: u32,
    death: Death,
    work: &dyn Fn(&Stepwell),
) -> bool {
    let mortal = Mortal::after(Arc::clone(there.well.store()), writes.into(), death);
    let deps = Deps { processes: Arc::new(Doomed(writes)), ..Deps::default() };
    let well = Stepwell::with(Arc::new(mortal), deps);
    let done = catch_unwind(AssertUnwindSafe(|| work(&well))).is_ok();
    there.processes.mark_gone(&Doomed(writes).this());
    done
}

/// Imports until the process dies; is the import done?
fn import_until_death(there: &WatchfulWell, writes: u32, death: Death, archive: &[u8]) -> bool {
    until_death(there, writes, death, &|well| drop(imported(well, archive).unwrap()))
}

#[test]
fn an_import_that_is_killed_at_any_write_can_be_repeated() {
    let well = tangled();
    let archive = exported(&well, "e", Format::JSONL);
    for death in [Death::Before, Death::After] {
        let mut writes = 0;
        loop {
            let watchful = watchful();
            let there = &watchful.well;
            if import_until_death(&watchful, writes, death, &archive) {
                break;
            }
            imported(there, &archive).unwrap();
            assert_eq!(names(there), ["e", "f"], "killed {death:?} write {writes}");
            assert_same(&well, there, &id("e"));
            assert_same(&well, there, &id("f"));
            writes += 1;
        }
        assert!(writes > 10, "the import took {writes} writes");
    }
}

#[test]
fn an_import_can_be_killed_again_and_again() {
    let well = tangled();
    let archive = exported(&well, "e", Format::JSON);
    let watchful = watchful();
    let there = &watchful.well;
    let mut writes = 0;
    while !import_until_death(&watchful, writes, Death::After, &archive) {
        writes += 1;
        assert!(writes < 100, "it gets no further");
    }
    assert_eq!(names(there), ["e", "f"]);
    assert_same(&well, there, &id("e"));
}

#[test]
fn ancestors_are_imported_over_what_a_kill_left_of_them() {
    let well = tangled();
    let archive = exported(&well, "e", Format::JSONL);
    for writes in 0.. {
        let watchful = watchful();
        let there = &watchful.well;
        let done = import_until_death(&watchful, writes, Death::After, &archive);
        imported(there, exported(&well, "a", Format::JSON)).unwrap();
        imported(there, exported(&well, "c", Format::JSON)).unwrap();
        imported(there, exported(&well, "d", Format::JSON)).unwrap();
        imported(there, &archive).unwrap();
        assert_eq!(names(there), ["a", "b", "c", "d", "e", "f"], "killed at write {writes}");
        for name in ["a", "b", "c", "d", "e", "f"] {
            assert_same(&well, there, &id(name));
        }
        if done {
            break;
        }
    }
}

#[test]
fn work_on_what_a_kill_left_behind_is_not_lost() {
    let well = Stepwell::in_memory();
    say(&mut root(&well, "a"), &["a1", "a2"]);
    say(&mut fork(&well, "a", 3, "b"), &["b1"]);
    let archive = exported(&well, "b", Format::JSONL);
    let watchful = watchful();
    let there = &watchful.well;
    // Killed when the parent's stand-in is complete.
    assert!(!import_until_death(&watchful, 1, Death::After, &archive));
    assert!(names(there).contains(&"a".to_owned()));
    say(&mut there.resume(&id("a")).unwrap(), &["my own work"]);
    let mine = log(there, &id("a"));
    imported(there, &archive).unwrap();
    assert_same(&well, there, &id("b"));
    assert_eq!(log(there, &id("a")), mine);
}
