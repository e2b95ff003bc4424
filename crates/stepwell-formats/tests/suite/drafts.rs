//! Where sessions are written, and what of the user's is never replaced.

use std::path::{Path, PathBuf};

use stepwell::model::Origin;
use stepwell::{Message, SessionId, Stepwell};
use stepwell_formats::{
    Destination, Error, Existing, Exported, Format, Mode, Result, take_in, write_to,
};

use crate::mirror::found;
use crate::seeds::{built, fixtures};
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
    write_to(&Destination::new(path, existing), format.writer().unwrap(), well, &parent)
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
            matches!(&error, Err(Error::Stranger { folder, what })
                if folder.ends_with("proj") && what == Path::new("src")),
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
            assert!(
                matches!(&error, Error::Stranger { what, .. } if what == Path::new("thesis.md")),
                "{error}"
            );
            assert_eq!(all(folder.path()), before);
        }
    }
}

/// Puts something of the user's into a session that was written, and fails unless replacing the
/// session is refused with its name and leaves everything.
fn stays(well: &Stepwell, (path, format): (&Path, &str), inside: &Path, strange: &str) {
    let mine = inside.join(strange);
    std::fs::create_dir_all(mine.parent().unwrap()).unwrap();
    std::fs::write(&mine, "mine").unwrap();
    let before = all(path.parent().unwrap());
    let error = written(well, path, format, Existing::Replace).unwrap_err();
    let Error::Stranger { folder, what } = &error else { panic!("{strange}: {error}") };
    assert_eq!(folder, inside);
    assert!(mine.starts_with(folder.join(what)), "{error}");
    assert_eq!(all(path.parent().unwrap()), before, "{strange}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    std::fs::remove_file(&mine).unwrap();
    // Folders that were made for it.
    for folder in mine.ancestors().skip(1).take_while(|it| *it != inside) {
        let _ = std::fs::remove_dir(folder);
    }
}

#[test]
fn what_is_deep_in_a_sessions_folder_and_not_of_it_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let well = family();
    let sdk = folder.path().join("sdk");
    written(&well, &sdk, "strands-sdk", Existing::Keep).unwrap();
    for strange in [
        "agents/notes.md",
        "agents/mine/agent.json",
        "agents/agent_default/notes.md",
        "agents/agent_default/messages/message_draft.json",
        "multi_agents/x/y",
    ] {
        stays(&well, (&sdk, "strands-sdk"), &sdk, strange);
    }
    written(&well, &sdk, "strands-sdk", Existing::Replace).unwrap();

    let claude = folder.path().join("good.jsonl");
    written(&well, &claude, "claude", Existing::Keep).unwrap();
    for strange in ["subagents/mine.txt", "subagents/dir/z", "tool-results/notes.txt", "x"] {
        stays(&well, (&claude, "claude"), &folder.path().join("good"), strange);
    }
    written(&well, &claude, "claude", Existing::Replace).unwrap();
}

#[test]
fn every_folder_that_is_written_can_be_replaced_by_the_same() {
    for format in ["claude-code", "m31a", "strands-cli", "strands-sdk"] {
        let format: Format = format.parse().unwrap();
        let home = built(&fixtures(format).unwrap());
        let well = Stepwell::in_memory();
        // Some of the fixtures are damaged on purpose.
        let all_taken = found(home.path())
            .into_iter()
            .flat_map(|it| take_in(&well, Mode::Write, it.format, &it.path).sessions);
        for session in all_taken {
            let head = well.info(&session.id).unwrap().head;
            if matches!(head.origin, Origin::Subagent { .. }) {
                continue;
            }
            let out = tempfile::tempdir().unwrap();
            let path = out.path().join("out.jsonl");
            let writer = format.writer().unwrap();
            write_to(&Destination::new(&path, Existing::Keep), writer, &well, &session.id).unwrap();
            let before = all(out.path());
            write_to(&Destination::new(&path, Existing::Replace), writer, &well, &session.id)
                .unwrap();
            assert_eq!(all(out.path()), before, "{}", session.id);
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
