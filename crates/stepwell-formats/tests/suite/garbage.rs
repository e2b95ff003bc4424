//! Every reader against bytes that nobody wrote: it says what is wrong, within bounds, and
//! the store stays sound.
//!
//! `STEPWELL_FUZZ=10000 cargo test -p stepwell-formats garbage` runs so many cases.

use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stepwell::Stepwell;
use stepwell::store::query::{Filter, Query, TrashScope};
use stepwell_formats::{Format, Mode, Probe, take_in};

use crate::seeds::{built, files, fixtures, lay_out};

/// How many cases each reader is given.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says how long")]
fn cases() -> u32 {
    std::env::var("STEPWELL_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(16)
}

/// What is done to a genuine file.
#[derive(Clone, Debug)]
enum Harm {
    /// It is cut off.
    Cut(prop::sample::Index),
    /// A stretch of it is replaced.
    Write(prop::sample::Index, Vec<u8>),
    /// A stretch of it is there twice.
    Repeat(prop::sample::Index, prop::sample::Index),
    /// It is other bytes altogether.
    Other(Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    let json = prop::sample::select(vec![
        &b"null"[..],
        b"{}",
        b"[]",
        b"\"\"",
        b"-1",
        b"1e999",
        b"\\ud800",
        b"\xff\xfe",
        b"\n",
        b"[[[[",
        b"true",
        b"\"0001-01-01T00:00:00Z\"",
        b"\"../../x\"",
        b"99999999999999999999",
    ]);
    let bytes =
        prop_oneof![json.prop_map(<[u8]>::to_vec), proptest::collection::vec(any::<u8>(), 0..20),];
    prop_oneof![
        1 => any::<prop::sample::Index>().prop_map(Harm::Cut),
        4 => (any::<prop::sample::Index>(), bytes).prop_map(|(at, bytes)| Harm::Write(at, bytes)),
        1 => any::<(prop::sample::Index, prop::sample::Index)>().prop_map(|(a, b)| Harm::Repeat(a, b)),
        1 => proptest::collection::vec(any::<u8>(), 0..300).prop_map(Harm::Other),
    ]
}

fn harmed(mut bytes: Vec<u8>, harm: &Harm) -> Vec<u8> {
    if bytes.is_empty() {
        return bytes;
    }
    match harm {
        Harm::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Harm::Write(at, new) => {
            let from = at.index(bytes.len());
            let to = (from + new.len()).min(bytes.len());
            drop(bytes.splice(from..to, new.iter().copied()));
        }
        Harm::Repeat(from, to) => {
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            let stretch = bytes[from.min(to)..from.max(to)].to_vec();
            drop(bytes.splice(from..from, stretch));
        }
        Harm::Other(other) => bytes.clone_from(other),
    }
    bytes
}

#[test]
fn no_reader_is_broken_by_what_it_reads() {
    for format in Format::all() {
        let (Some(folder), Some(reader)) = (fixtures(format), format.reader()) else { continue };
        let home = built(&folder);
        let folder = home.path();
        let genuine = files(folder);
        // What is read is found in the genuine files, and read again in the harmed ones.
        let mut roots: Vec<PathBuf> = Vec::new();
        for (name, _) in &genuine {
            for path in folder.join(name).ancestors().take_while(|path| *path != folder) {
                let probe = Probe::of(path).unwrap().unwrap();
                if let Some(root) = reader.recognise(&probe) {
                    roots.push(root.strip_prefix(folder).unwrap().to_owned());
                }
            }
        }
        roots.sort();
        roots.dedup();
        assert!(!roots.is_empty(), "{format} recognises none of its fixtures");
        let harms = proptest::collection::vec((any::<prop::sample::Index>(), harm()), 1..4);
        let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
        let run = TestRunner::new(config).run(&harms, |harms| {
            let mut files = genuine.clone();
            for (which, harm) in &harms {
                let (_, bytes) = &mut files[which.index(genuine.len())];
                *bytes = harmed(std::mem::take(bytes), harm);
            }
            let there = tempfile::tempdir().unwrap();
            lay_out(there.path(), &files);
            let well = Stepwell::in_memory();
            for root in &roots {
                // Twice: what was read badly once must still be found again.
                let first = take_in(&well, Mode::Write, format, &there.path().join(root));
                let again = take_in(&well, Mode::Write, format, &there.path().join(root));
                prop_assert_eq!(first.fault.is_some(), again.fault.is_some());
            }
            let filter = Filter { place: TrashScope::Anywhere, ..Filter::default() };
            for session in well.list(&Query { filter, ..Query::default() }).unwrap().sessions {
                let verdict = well.store().maintain().verify(&session.head.id).unwrap();
                prop_assert!(verdict.is_sound(), "{}: {verdict:?}", session.head.id);
                prop_assert!(session.held.is_none());
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{format}: {error}"));
    }
}
