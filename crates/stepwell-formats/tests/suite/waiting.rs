//! Calls that wait for approval, and sessions that cannot be read, are reported as such.

use std::fs::{File, FileTimes};

use stepwell::log::INTERRUPTED;
use stepwell::model::Gate;
use stepwell::{Created, Message, SessionId, Stepwell};
use stepwell_formats::{
    Became, Destination, Existing, Format, Mode, NOT_BEGUN, Purpose, Wishes, search, take_in,
    write_to,
};

use crate::mirror::taken;

#[test]
fn a_call_that_only_reads_and_waits_behind_a_question_was_not_run() {
    let well = Stepwell::in_memory();
    let id: SessionId = "20260223-143022-a1b2c3".parse().unwrap();
    let session = well.create(Created::new(id.clone(), "t")).unwrap();
    session.append(Message::user("sell the scales")).unwrap();
    let both = Message::assistant("I sell.").calling("c1", "run_command", r#"{"command":"sell"}"#);
    session.append(both.calling("c2", "read_file", r#"{"path":"a"}"#)).unwrap();
    session.append(Gate::new("c1", "sell?")).unwrap();
    drop(session);
    for (name, file) in [
        ("codex", "a.jsonl"),
        ("claude", "a.jsonl"),
        ("strands", "session_a"),
        ("qwen", "a.jsonl"),
        ("pi", "a.jsonl"),
    ] {
        let format: Format = name.parse().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        let wishes = Wishes { purpose: Purpose::Continue, ..Wishes::default() };
        let place = Destination { wishes, ..Destination::new(&path, Existing::Keep) };
        write_to(&place, format.writer().unwrap(), &well, &id).unwrap();
        let there = Stepwell::in_memory();
        let back = taken(&there, &path).remove(0).id;
        let shown = crate::mirror::said(&crate::mirror::shown(&there, &back)).join("\n");
        assert_eq!(shown.matches(NOT_BEGUN).count(), 2, "{name}: {shown}");
        assert!(!shown.contains(INTERRUPTED), "{name}: {shown}");
    }
}

#[test]
fn a_broken_session_of_strands_is_named_wherever_it_lies() {
    for (folder, text) in [
        ("till", r#"{"session_id": "till", "session_ty"#),
        ("session_till", ""),
        ("oven", r#"{"metadata": {"session_id": "oven", "workflow_name": "bake", "spec_h"#),
    ] {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("session.json"), text).unwrap();
        for path in [place.path(), &folder, &folder.join("session.json")] {
            let searched = search(path, None).unwrap();
            assert_eq!(searched.found.len(), 1, "{text}: {searched:?}");
            let found = &searched.found[0];
            let well = Stepwell::in_memory();
            let report = take_in(&well, Mode::Write, found.format, &found.path);
            let told = report.fault.is_some() || !report.warnings.is_empty();
            assert!(told, "{text}: {report:?}");
        }
    }
}

#[test]
fn a_file_that_changes_within_one_tick_of_the_clock_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("20260507-051500-ba4e43.json");
    let well = Stepwell::in_memory();
    let write = |word: &str| {
        let text = format!(
            r#"{{"session_id": "20260507-051500-ba4e43", "task": "t", "agent": "a", "model": "m", "status": "partial", "steps_completed": 0, "messages": [{{"role": "user", "content": "{word}"}}], "files_modified": [], "total_cost": 0, "started_at": 1778130900.0, "updated_at": 1778130900.0, "stop_reason": null, "metadata": {{}}}}"#
        );
        std::fs::write(&path, text).unwrap();
    };
    write("flour");
    let before = path.metadata().unwrap().modified().unwrap();
    assert_eq!(taken(&well, &path)[0].became, Became::Imported);
    assert_eq!(taken(&well, &path)[0].became, Became::Unchanged);
    write("water");
    let file = File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_modified(before)).unwrap();
    assert_eq!(taken(&well, &path)[0].became, Became::Updated);
}
