//! Where sessions are written, and what of the user's is never replaced.

use std::path::{Path, PathBuf};

use stepwell::{Message, SessionId, Stepwell};
use stepwell_formats::{Error, Existing, Exported, Format, Result, write_to};

use crate::support::{id, root, say, subagent};

/// A session with a subagent, which does not fit into one file.
fn family() -> Stepwell {
    let well = Stepwell::in_memory();
    say(&mut root(&well, "parent"), &["begin"]);
    let child = subagent(&well, "parent", "child");
    child.append(Message::user("look")).unwrap();
    well
}

fn written(well: &Stepwell, path: &Path, format: &str, existing: Existing) -> Result<Exported> {
    let format: Format = format.parse().unwrap();
    let parent: SessionId = id("parent");
    write_to(path, existing, format.writer().unwrap(), (well, &parent))
}

/// All that is below a folder.
fn all(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn a_folder_that_nobody_named_is_never_replaced() {
    let (well, folder) = (family(), tempfile::tempdir().unwrap());
    std::fs::create_dir_all(folder.path().join("proj/src")).unwrap();
    std::fs::write(folder.path().join("proj/src/main.rs"), "mine").unwrap();
    let before = all(folder.path());
    for existing in [Existing::Keep, Existing::Replace] {
        let error = written(&well, &folder.path().join("proj.jsonl"), "claude", existing);
        assert!(
            matches!(&error, Err(Error::InTheWay { path, .. }) if path.ends_with("proj")),
            "{error:?}"
        );
        assert_eq!(all(folder.path()), before);
    }
}

#[test]
fn a_folder_beside_a_file_is_replaced_only_if_it_is_the_rest_of_a_session() {
    let (well, folder) = (family(), tempfile::tempdir().unwrap());
    let path = folder.path().join("out.jsonl");
    written(&well, &path, "claude", Existing::Keep).unwrap();
    std::fs::remove_file(&path).unwrap();
    let error = written(&well, &path, "claude", Existing::Keep).unwrap_err();
    assert!(matches!(&error, Error::ExistsBeside { path, .. } if path.ends_with("out")), "{error}");
    let before = all(folder.path());
    written(&well, &path, "claude", Existing::Replace).unwrap();
    assert_eq!(all(folder.path()).len(), before.len() + 1);
}

#[test]
fn a_name_without_an_ending_leaves_no_room_for_a_folder_and_nothing_is_lost() {
    let (well, folder) = (family(), tempfile::tempdir().unwrap());
    let path = folder.path().join("out");
    let error = written(&well, &path, "claude", Existing::Keep).unwrap_err();
    assert!(matches!(error, Error::NoEnding { ending: "jsonl", .. }), "{error}");
    assert!(all(folder.path()).is_empty());
    std::fs::write(&path, "mine").unwrap();
    written(&well, &path, "claude", Existing::Replace).unwrap_err();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(all(folder.path()), [path]);
}

#[test]
fn a_named_folder_is_replaced_only_if_it_is_a_session() {
    for format in ["strands-sdk", "m31a"] {
        let (well, folder) = (family(), tempfile::tempdir().unwrap());
        let path = folder.path().join("important");
        std::fs::create_dir(&path).unwrap();
        // An empty one holds nothing that could be lost.
        written(&well, &path, format, Existing::Replace).unwrap();
        written(&well, &path, format, Existing::Replace).unwrap();
        std::fs::write(path.join("thesis.md"), "mine").unwrap();
        let before = all(folder.path());
        for existing in [Existing::Keep, Existing::Replace] {
            let error = written(&well, &path, format, existing).unwrap_err();
            assert!(matches!(error, Error::NotReplaced { .. }), "{error}");
            assert_eq!(all(folder.path()), before);
        }
    }
}

#[test]
fn a_folder_in_the_place_of_a_file_stays() {
    let (well, folder) = (family(), tempfile::tempdir().unwrap());
    let path = folder.path().join("notes.json");
    std::fs::create_dir(&path).unwrap();
    for format in ["json", "claude", "markdown"] {
        let error = written(&well, &path, format, Existing::Replace).unwrap_err();
        assert!(matches!(error, Error::NotReplaced { .. }), "{error}");
        assert_eq!(all(folder.path()), std::slice::from_ref(&path));
    }
}
