//! Formats whose lines name each other. Imports of a growing file record each line once, and end
//! with the same session as one import of the whole file.

use std::path::{Path, PathBuf};

use stepwell::{SessionId, Stepwell};
use stepwell_formats::{
    Became, Destination, Existing, Format, Handover, Homes, Purpose, Wishes, write_to,
};

use crate::mirror::{became, said, shown, taken};
use crate::seeds::{files, fixtures};

/// The formats, and the files with a session of each.
fn sessions() -> Vec<(Format, PathBuf)> {
    let mut all = Vec::new();
    for name in ["qwen", "pi"] {
        let format: Format = name.parse().unwrap();
        let folder = fixtures(format).unwrap();
        all.extend(files(&folder).into_iter().map(|(path, _)| (format, folder.join(path))));
    }
    all
}

fn only(well: &Stepwell, path: &Path) -> SessionId {
    taken(well, path).remove(0).id
}

#[test]
fn a_session_that_comes_in_line_by_line_is_what_it_is_at_once() {
    for (format, path) in sessions() {
        let whole = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join(path.file_name().unwrap());
        let well = Stepwell::in_memory();
        let mut ids = Vec::new();
        // Nothing is written before the first question.
        for n in 3..=lines.len() {
            std::fs::write(&copy, lines[..n].join("\n") + "\n").unwrap();
            let at_once = Stepwell::in_memory();
            let fresh = only(&at_once, &copy);
            ids.push(only(&well, &copy));
            let id = ids.last().unwrap();
            let again = taken(&well, &copy);
            assert_eq!(became(&again, Became::Unchanged), 1, "{format}: line {n}");
            let view = said(&shown(&well, id));
            assert_eq!(view, said(&shown(&at_once, &fresh)), "{format}: line {n}");
            let spent = |well: &Stepwell, id| well.info(id).unwrap().head.spent;
            assert_eq!(spent(&well, id), spent(&at_once, &fresh), "{format}: line {n}");
        }
        ids.dedup();
        assert_eq!(ids.len(), 1, "{format}: {ids:?}");
    }
}

#[test]
fn they_are_found_where_their_programs_keep_them_and_handed_over_there() {
    let home = Path::new("/home/ada");
    let unnamed = |_: &str| None;
    let named = |name: &str| match name {
        "QWEN_HOME" => Some(PathBuf::from("/q")),
        "PI_CODING_AGENT_DIR" => Some(PathBuf::from("/p")),
        _ => None,
    };
    let uuid = "0196a3f0-0000-7a52-8c3e-000000000009";
    let well = Stepwell::in_memory();
    let id = crate::support::root(&well, "a").id().clone();
    let head = well.info(&id).unwrap().head;
    for (format, usual, moved, file, command) in [
        (
            "qwen",
            "/home/ada/.qwen/projects",
            "/q/projects",
            format!("-home-ada-crumb-shop/chats/{uuid}.jsonl"),
            "qwen --resume",
        ),
        (
            "pi",
            "/home/ada/.pi/agent/sessions",
            "/p/sessions",
            format!("_{uuid}.jsonl"),
            "pi --session",
        ),
    ] {
        let format: Format = format.parse().unwrap();
        for (variable, place) in
            [(&unnamed as &dyn Fn(&str) -> Option<PathBuf>, usual), (&named, moved)]
        {
            let homes = Homes { home: Some(home), data: None, workspace: None, variable };
            assert_eq!(format.places(&homes), [PathBuf::from(place)]);
            let workspace = Path::new("/home/ada/crumb_shop");
            let session = Handover { head: &head, uuid, workspace };
            let handoff = format.writer().unwrap().handoff(&session, &homes).unwrap();
            assert!(handoff.path.starts_with(place), "{handoff:?}");
            assert!(handoff.path.to_str().unwrap().ends_with(&file), "{handoff:?}");
            assert_eq!(handoff.command.join(" "), format!("{command} {uuid}"));
        }
    }
}

/// Both programs look whether a session is of the folder that they run in.
#[test]
fn a_session_that_goes_on_in_another_folder_says_so() {
    let there = Path::new("/home/ada/elsewhere");
    for (format, path) in sessions() {
        let well = Stepwell::in_memory();
        let id = only(&well, &path);
        let wishes = Wishes { purpose: Purpose::Continue, ..Wishes::default() };
        let folder = tempfile::tempdir().unwrap();
        let file = folder
            .path()
            .join("2026-05-07T05-00-00-000Z_0196a3f0-0000-7a52-8c3e-000000000009.jsonl");
        let place = Destination { wishes, ..Destination::new(&file, Existing::Replace) };
        for (workspace, expected) in
            [(Some(there), "/home/ada/elsewhere"), (None, "/home/mila/crumb_shop")]
        {
            let place = Destination { workspace, ..place };
            write_to(&place, format.writer().unwrap(), &well, &id).unwrap();
            let text = std::fs::read_to_string(&file).unwrap();
            let lines = text.lines().map(serde_json::from_str::<serde_json::Value>);
            let folders: Vec<_> =
                lines.filter_map(|line| Some(line.ok()?["cwd"].as_str()?.to_owned())).collect();
            assert!(!folders.is_empty() && folders.iter().all(|it| it == expected), "{folders:?}");
        }
    }
}
