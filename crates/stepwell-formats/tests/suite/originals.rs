//! A session that nobody touched is written as it came.

use std::path::{Path, PathBuf};

use stepwell::store::query::Query;
use stepwell::{Event, Message, SessionId, Stepwell};
use stepwell_formats::{
    Became, Destination, Existing, Format, Found, Mode, Shape, take_in, write_to,
};

use crate::mirror::{found, taken, written};
use crate::seeds::{files, fixtures, lay_out};
use crate::support::log;

fn format(name: &str) -> Format {
    name.parse().unwrap()
}

/// The formats that are both read and written, but for Stepwell's own archive.
fn both_ways() -> impl Iterator<Item = Format> {
    let own = [Format::JSON, Format::JSONL];
    Format::all()
        .filter(move |it| it.reader().is_some() && it.writer().is_some() && !own.contains(it))
}

/// The same JSON in other bytes, as no writer here would lay it out.
fn laid_out_otherwise(path: &Path, bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    match path.extension().and_then(|it| it.to_str()) {
        Some("jsonl") => {
            let lines = text.lines().map(|line| line.replacen('{', "{  ", 1));
            lines.collect::<Vec<_>>().join("\n\n").into_bytes()
        }
        Some("json") => (text.replacen('{', "{  ", 1) + "\n \n").into_bytes(),
        _ => bytes.to_owned(),
    }
}

/// The files of what lies at a path, by their names from the folder that it is in.
fn files_of(path: &Path, shape: Shape) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = path.parent().unwrap();
    let below = |path: &Path| path.strip_prefix(folder).unwrap().to_owned();
    if shape == Shape::Folder {
        let name = below(path);
        return files(path).into_iter().map(|(file, bytes)| (name.join(file), bytes)).collect();
    }
    let mut all = vec![(below(path), std::fs::read(path).unwrap())];
    let beside = path.with_extension("");
    if beside.is_dir() {
        let name = below(&beside);
        all.extend(files(&beside).into_iter().map(|(file, bytes)| (name.join(file), bytes)));
    }
    all
}

#[test]
fn every_form_that_nobody_touched_is_written_byte_for_byte() {
    for format in both_ways() {
        let fixture = fixtures(format).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let strange: Vec<_> = files(&fixture)
            .into_iter()
            .map(|(path, bytes)| (path.clone(), laid_out_otherwise(&path, &bytes)))
            .collect();
        lay_out(folder.path(), &strange);
        let shape = format.writer().unwrap().shape();
        let mut compared = 0;
        for Found { path, format: of } in found(folder.path()) {
            if of != format {
                continue;
            }
            let well = Stepwell::in_memory();
            let report = take_in(&well, Mode::Write, format, &path);
            let root = if shape == Shape::Folder && path.is_file() {
                path.parent().unwrap()
            } else {
                &*path
            };
            // Of several sessions, the one that the file or the folder is called by.
            let is_called_so = |id: &SessionId| {
                path.display().to_string().contains(id.as_str()) || report.sessions.len() == 1
            };
            let mut ids = report.sessions.iter().map(|it| &it.id);
            let Some(main) = ids.find(|id| kept(&well, id) > 0 && is_called_so(id)) else {
                continue;
            };
            let name = root.file_name().unwrap().to_str().unwrap();
            let (_folder, back) = written(&well, main, format, name);
            let original = files_of(root, shape);
            for (file, bytes) in files_of(&back, shape) {
                let was = original.iter().find(|(path, _)| *path == file);
                let was = was.unwrap_or_else(|| panic!("{format}: {} is new", file.display()));
                assert!(was.1 == bytes, "{format}: {} differs", file.display());
                compared += 1;
            }
        }
        assert!(compared > 0, "{format}: nothing was compared");
    }
}

/// A rollout of so many turns.
fn rollout(turns: usize) -> String {
    let id = "0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a42";
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"type":"{kind}", "timestamp":"2026-05-04T07:15:00Z","payload":{payload}}}"#)
            + "\n"
    };
    let mut text = line("session_meta", &format!(r#"{{"id":"{id}","cwd":"/w"}}"#));
    for n in 0..turns {
        let said = |role: &str, kind: &str| {
            format!(
                r#"{{"role":"{role}","type":"message","content":[{{"text":"turn {n}","type":"{kind}"}}]}}"#
            )
        };
        text += &line("response_item", &said("user", "input_text"));
        text += &line("response_item", &said("assistant", "output_text"));
    }
    text
}

/// How many bytes of files are kept with a session.
fn kept(well: &Stepwell, id: &SessionId) -> usize {
    let records = log(well, id).into_iter().filter_map(|it| match it.event {
        Event::Record(record) => Some(record.blobs),
        _ => None,
    });
    records.flatten().map(|blob| well.store().blob(&blob).unwrap().len()).sum()
}

#[test]
fn a_transcript_that_grows_is_kept_once_and_written_as_it_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let name = "rollout-2026-05-04T07-15-00-0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a42.jsonl";
    let path = folder.path().join(name);
    let well = Stepwell::in_memory();
    for turns in [1, 2, 5, 5, 9] {
        std::fs::write(&path, rollout(turns)).unwrap();
        let id = taken(&well, &path).remove(0).id;
        assert_eq!(kept(&well, &id), rollout(turns).len(), "{turns}");
        let (_folder, back) = written(&well, &id, format("codex"), name);
        assert_eq!(std::fs::read_to_string(back).unwrap(), rollout(turns));
    }
}

#[test]
fn a_file_that_is_rewritten_with_a_little_more_is_kept_with_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("20260507-051500-ba4e42.json");
    let well = Stepwell::in_memory();
    let text = |messages: usize, updated: usize| {
        let said: Vec<_> = (0..messages)
            .map(|n| format!(r#"{{"role": "user", "content": "{} {n}"}}"#, "dough ".repeat(200)))
            .collect();
        format!(
            r#"{{"session_id": "20260507-051500-ba4e42", "task": "t", "agent": "a", "model": "m", "status": "partial", "steps_completed": 0, "messages": [{}], "files_modified": [], "total_cost": 0, "started_at": 1778130900.0, "updated_at": {}.0, "stop_reason": null, "metadata": {{}}}}"#,
            said.join(", "),
            1_778_130_900 + updated
        )
    };
    std::fs::write(&path, text(20, 1)).unwrap();
    let id = taken(&well, &path).remove(0).id;
    std::fs::write(&path, text(21, 2)).unwrap();
    assert_eq!(taken(&well, &path)[0].became, Became::Updated);
    let more = kept(&well, &id) - text(20, 1).len();
    assert!(more < text(2, 1).len(), "{more}");
    let (_folder, back) = written(&well, &id, format("architect"), "a.json");
    assert_eq!(std::fs::read_to_string(back).unwrap(), text(21, 2));
}

#[test]
fn a_session_that_was_gone_on_with_is_written_with_what_was_said_here() {
    let folder = tempfile::tempdir().unwrap();
    let name = "rollout-2026-05-04T07-15-00-0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a42.jsonl";
    let path = folder.path().join(name);
    std::fs::write(&path, rollout(1)).unwrap();
    let well = Stepwell::in_memory();
    let id = taken(&well, &path).remove(0).id;
    well.resume(&id).unwrap().append(Message::user("and the salt?")).unwrap();
    let (_folder, back) = written(&well, &id, format("codex"), name);
    assert!(std::fs::read_to_string(&back).unwrap().contains("and the salt?"));
    // It is no longer the file that it came from.
    std::fs::write(&path, rollout(2)).unwrap();
    let destination = Destination::new(&back, Existing::Replace);
    write_to(&destination, format("codex").writer().unwrap(), &well, &id).unwrap();
    assert!(std::fs::read_to_string(&back).unwrap().contains("and the salt?"));
}

#[test]
fn a_byte_order_mark_hides_no_session_and_is_written_back() {
    let mut read = 0;
    for format in both_ways() {
        let fixture = fixtures(format).unwrap();
        let marked = |(path, bytes): (PathBuf, Vec<u8>)| {
            let is_text =
                matches!(path.extension().and_then(|it| it.to_str()), Some("json" | "jsonl"));
            let mark: &[u8] = if is_text { "\u{feff}".as_bytes() } else { b"" };
            (path, [mark, &bytes].concat())
        };
        let files: Vec<_> = files(&fixture).into_iter().map(marked).collect();
        let folder = tempfile::tempdir().unwrap();
        lay_out(folder.path(), &files);
        let (plain, well) = (Stepwell::in_memory(), Stepwell::in_memory());
        for found in found(&fixture) {
            take_in(&plain, Mode::Write, found.format, &found.path);
        }
        for found in found(folder.path()) {
            take_in(&well, Mode::Write, found.format, &found.path);
        }
        let sessions = |well: &Stepwell| well.list(&Query::default()).unwrap().sessions;
        for info in sessions(&plain) {
            let id = &info.head.id;
            let known = well.info(id).unwrap_or_else(|error| panic!("{format}: {error}"));
            assert_eq!(known.head.messages, info.head.messages, "{format}: {id}");
            read += 1;
        }
    }
    assert!(read > 10, "{read} sessions");
    // Its bytes are kept as they came.
    let folder = tempfile::tempdir().unwrap();
    let name = "rollout-2026-05-04T07-15-00-0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a42.jsonl";
    let path = folder.path().join(name);
    let text = format!("\u{feff}{}", rollout(3));
    std::fs::write(&path, &text).unwrap();
    let well = Stepwell::in_memory();
    let id = taken(&well, &path)[0].id.clone();
    let (_folder, back) = written(&well, &id, format("codex"), name);
    assert_eq!(std::fs::read_to_string(back).unwrap(), text);
}
