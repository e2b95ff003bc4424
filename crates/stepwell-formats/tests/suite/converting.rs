//! From one format into another, without a store.

use std::path::{Path, PathBuf};

use stepwell::Stepwell;
use stepwell::model::Origin;
use stepwell_formats::{
    Conversion, Converted, Error, Existing, Format, Length, Result, Shape, Wishes, convert,
};

use crate::mirror::{said, shown, taken};
use crate::seeds::fixtures;
use crate::support::{exported, id, root, say, subagent};

/// An archive of a session and its subagent's.
fn family(folder: &Path) -> PathBuf {
    let well = Stepwell::in_memory();
    say(&mut root(&well, "a-parent"), &["begin"]);
    say(&mut subagent(&well, "a-parent", "b-child"), &["look"]);
    let path = folder.join("family.json");
    std::fs::write(&path, exported(&well, "a-parent", Format::JSON)).unwrap();
    path
}

/// An archive of two sessions that have nothing to do with each other.
fn strangers(folder: &Path) -> PathBuf {
    let well = Stepwell::in_memory();
    let from = folder.join("from");
    std::fs::create_dir(&from).unwrap();
    for name in ["one", "two"] {
        say(&mut root(&well, name), &["begin"]);
        std::fs::write(from.join(format!("{name}.json")), exported(&well, name, Format::JSON))
            .unwrap();
    }
    from
}

fn converted(from: &Path, out: &Path, to: &str) -> Result<Converted> {
    over(Existing::Keep, from, out, to)
}

fn over(existing: Existing, from: &Path, out: &Path, to: &str) -> Result<Converted> {
    let wishes = Wishes { length: Length::Whole, ..Wishes::default() };
    let to = to.parse().unwrap();
    convert(from, out, Conversion { from: None, to, existing, wishes })
}

#[test]
fn where_each_session_names_its_parent_children_are_written_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let done = converted(&family(folder.path()), &out, "m31a").unwrap();
    assert_eq!(done.written.len(), 2);
    for (id, _, exported) in &done.written {
        assert!(exported.losses.iter().all(|(what, _)| !what.contains("subagents")), "{id}");
    }
    let there = Stepwell::in_memory();
    assert_eq!(taken(&there, &out).len(), 2);
    let child = there.info(&id("b-child")).unwrap().head;
    assert_eq!(child.origin, Origin::Subagent { parent: id("a-parent") });
}

#[test]
fn several_sessions_lie_as_their_system_lays_them() {
    let folder = tempfile::tempdir().unwrap();
    let from = strangers(folder.path());
    // What it begins and ends with, and how long it is.
    let uuid = 36;
    let patterns = [
        ("strands-sdk", "session_", "", "session_one".len()),
        ("gaia", "", "/state.json", "one/state.json".len()),
        ("codex", "2", ".jsonl", "2026/05/04/rollout-2026-05-04T06-30-00-.jsonl".len() + uuid),
        ("claude", "", ".jsonl", ".jsonl".len() + uuid),
        ("architect", "", ".json", "one.json".len()),
        ("m31a", "", "", "one".len()),
    ];
    for (format, front, end, length) in patterns {
        let out = folder.path().join(format);
        let done = converted(&from, &out, format).unwrap();
        assert_eq!(done.written.len(), 2, "{format}: {:?}", done.unwritten);
        for (_, path, _) in &done.written {
            let below = path.strip_prefix(&out).unwrap().to_str().unwrap();
            let fits = below.starts_with(front) && below.ends_with(end);
            assert!(fits && below.len() == length, "{format}: {below}");
        }
        // What a loader finds there is what was written.
        assert_eq!(taken(&Stepwell::in_memory(), &out).len(), 2, "{format}");
    }
}

#[test]
fn what_is_written_does_not_depend_on_how_many_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let from = strangers(folder.path());
    let file = from.join("one.json");
    // A folder's sessions go into a folder, as do those of a file if there is one to go into.
    let alone = folder.path().join("alone");
    std::fs::create_dir(&alone).unwrap();
    std::fs::copy(&file, alone.join("one.json")).unwrap();
    for format in ["codex", "claude", "architect", "strands-sdk", "m31a"] {
        let shape = format.parse::<Format>().unwrap().writer().unwrap().shape();
        let place = |out: &Path, from: &Path| {
            let done = converted(from, out, format).unwrap();
            assert_eq!(done.written.len(), 1, "{format}: {:?}", done.unwritten);
            done.written[0].1.clone()
        };
        let out = folder.path().join(format!("{format}-of-folder"));
        let in_folder = place(&out, &alone);
        assert!(in_folder != out && in_folder.starts_with(&out), "{}", in_folder.display());
        let empty = folder.path().join(format!("{format}-empty"));
        std::fs::create_dir(&empty).unwrap();
        let in_empty = place(&empty, &file);
        assert!(in_empty != empty && in_empty.starts_with(&empty), "{}", in_empty.display());
        let named = folder.path().join(format!("{format}-named"));
        assert_eq!(place(&named, &file), named);
        assert_eq!(named.is_dir(), shape == Shape::Folder);
        // A folder that is a session stands for itself, both ways.
        if shape == Shape::Folder {
            let error = converted(&file, &named, format).unwrap_err();
            assert!(matches!(error, Error::Exists { .. }), "{error}");
            let out = folder.path().join(format!("{format}-back.json"));
            let done = converted(&named, &out, "architect").unwrap();
            assert_eq!(done.written[0].1, out);
        }
    }
    let slash = folder.path().join("slash/");
    let done = converted(&file, &slash, "claude").unwrap();
    assert!(done.written[0].1.parent().unwrap().ends_with("slash"), "{done:?}");
}

#[test]
fn one_that_cannot_be_written_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (from, out) = (strangers(folder.path()), folder.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("one.json"), "mine").unwrap();
    let done = converted(&from, &out, "architect").unwrap();
    assert_eq!(done.unwritten.len(), 1);
    assert_eq!(done.unwritten[0].0, id("one"));
    assert_eq!(done.written.len(), 1);
    assert_eq!(std::fs::read_to_string(out.join("one.json")).unwrap(), "mine");
    assert!(out.join("two.json").is_file());
}

#[test]
fn a_rollout_that_goes_on_from_another_one_is_written_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let from = fixtures("codex".parse().unwrap()).unwrap();
    let before = Stepwell::in_memory();
    taken(&before, &from);
    for existing in [Existing::Keep, Existing::Replace] {
        let out = folder.path().join("out");
        let done = over(existing, &from, &out, "codex").unwrap();
        assert!(done.unwritten.is_empty(), "{:?}", done.unwritten);
        assert_eq!(done.written.len(), 3);
        let after = Stepwell::in_memory();
        for it in taken(&after, &out) {
            let (was, is) = (before.info(&it.id).unwrap(), after.info(&it.id).unwrap());
            assert_eq!(was.head.source, is.head.source);
            assert_eq!(said(&shown(&before, &it.id)), said(&shown(&after, &it.id)));
        }
        for (_, path, _) in &done.written {
            let name = path.file_name().unwrap();
            let original = from.join(path.strip_prefix(&out).unwrap());
            let original = original.to_str().unwrap().replace("/2026/", "/sessions/2026/");
            assert!(Path::new(&original).is_file(), "{}", name.display());
        }
    }
}

#[test]
fn what_a_conversion_wrote_it_does_not_replace() {
    let folder = tempfile::tempdir().unwrap();
    let from = strangers(folder.path());
    // A session of that name, of another system, that does not say where it was written.
    converted(&from.join("one.json"), &from.join("session_one"), "strands-sdk").unwrap();
    std::fs::remove_file(from.join("session_one/stepwell.jsonl")).unwrap();
    let out = folder.path().join("out");
    let done = over(Existing::Replace, &from, &out, "strands-sdk").unwrap();
    assert_eq!((done.written.len(), done.unwritten.len()), (2, 1), "{done:?}");
    let (id, error) = &done.unwritten[0];
    assert_eq!(id.as_str(), "one-2");
    assert!(matches!(error, Error::Twice { .. }), "{error}");
}
