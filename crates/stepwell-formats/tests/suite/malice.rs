//! Files that were made to do harm: bounded, told clearly, and nothing is written outside.

use std::os::unix::fs::symlink;

use stepwell::Stepwell;
use stepwell_formats::{
    Destination, Error, Existing, Format, MAX_FILE_BYTES, Mode, find, take_in, write_to,
};

use crate::mirror::{found, said, shown, taken};
use crate::support::names;
use crate::transcript::{ID, Transcript};

fn format(name: &str) -> Format {
    name.parse().unwrap()
}

#[test]
fn names_that_lead_elsewhere_lead_nowhere() {
    let well = Stepwell::in_memory();
    let mut file = Transcript::new();
    file.user("../../u", "", "hello").text("/etc/a", "../../u", "../m", "hi");
    file.lines.push(r#"{"type":"x","toolResultFile":"../../evil","text":"harm"}"#.to_owned());
    file.lines.push(r#"{"type":"x","toolResultFile":"/tmp/evil","text":"harm"}"#.to_owned());
    let path = file.folder().join("odd name.jsonl");
    std::fs::write(&path, file.lines.join("\n").replace(ID, "../../../etc/passwd")).unwrap();
    let taken = taken(&well, &path);
    assert!(!taken[0].id.as_str().contains('/'), "{}", taken[0].id);
    assert_eq!(well.info(&taken[0].id).unwrap().head.source.unwrap().id, "../../../etc/passwd");
    for name in ["claude", "codex", "json"] {
        let there = tempfile::tempdir().unwrap();
        let inner = there.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let out = inner.join("out.jsonl");
        write_to(
            &Destination::new(&out, Existing::Keep),
            format(name).writer().unwrap(),
            &well,
            &taken[0].id,
        )
        .unwrap();
        let outside: Vec<_> = std::fs::read_dir(there.path()).unwrap().collect();
        assert_eq!(outside.len(), 1, "{name}");
        assert!(std::fs::read_dir(&inner).unwrap().count() <= 2, "{name}");
    }
}

#[test]
fn links_pipes_and_loops_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = Transcript::new();
    file.user("u1", "", "secret");
    let outside = file.write();
    symlink(&outside, folder.path().join("link.jsonl")).unwrap();
    symlink(file.folder(), folder.path().join("folder")).unwrap();
    symlink(folder.path(), folder.path().join("loop")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.path().join("pipe.jsonl"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let mut all = 0;
    let mut found = |_| {
        all += 1;
        Ok(())
    };
    find(folder.path(), None, &mut found, &mut |error| panic!("{error}")).unwrap();
    assert_eq!(all, 0);
    // A link beside a transcript is not read either.
    let results = file.folder().join(ID).join("tool-results");
    std::fs::create_dir_all(&results).unwrap();
    symlink("/etc/passwd", results.join("x.txt")).unwrap();
    let well = Stepwell::in_memory();
    let id = taken(&well, &outside).remove(0).id;
    let log = format!("{:?}", crate::support::log(&well, &id));
    assert!(!log.contains("root:x:"));
    // One that the user names is.
    assert_eq!(taken(&Stepwell::in_memory(), &folder.path().join("link.jsonl")).len(), 1);
}

#[test]
fn ten_thousand_levels_are_left_out_or_kept_as_they_are() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let mut file = Transcript::new();
    file.user("u1", "", "hello");
    file.line("user", "u2", "u1", &format!(r#""message":{{"role":"user","content":{deep}}}"#));
    file.line(
        "user",
        "u3",
        "u2",
        &format!(r#""deep":{deep},"message":{{"role":"user","content":"bye"}}"#),
    );
    file.lines.push(deep.clone());
    let well = Stepwell::in_memory();
    let path = file.write();
    let report = take_in(&well, Mode::Write, format("claude"), &path);
    assert!(report.fault.is_none(), "{:?}", report.fault);
    assert_eq!(report.warnings.len(), 1);
    let id = &report.sessions[0].id;
    assert!(said(&shown(&well, id)).iter().any(|it| it.contains("bye")));
    assert!(well.store().maintain().verify(id).unwrap().is_sound());
    let export = file.folder().join("goose.json");
    std::fs::write(&export, format!(r#"{{"id":"g","working_dir":"/w","session_type":"user","conversation":[{{"role":"user","created":1,"content":{deep}}}]}}"#)).unwrap();
    let report = take_in(&well, Mode::Write, format("goose"), &export);
    assert!(report.fault.is_none(), "{:?}", report.fault);
}

#[test]
fn bytes_that_are_no_text_cost_their_line_and_no_more() {
    let mut file = Transcript::new();
    file.user("u1", "", "hello").user("u2", "u1", "BAD").user("u3", "u2", "bye");
    let path = file.write();
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(3).position(|it| it == b"BAD").unwrap();
    bytes[at] = 0xff;
    std::fs::write(&path, &bytes).unwrap();
    let well = Stepwell::in_memory();
    let report = take_in(&well, Mode::Write, format("claude"), &path);
    assert!(report.warnings[0].place.ends_with("line 2"), "{:?}", report.warnings);
    assert!(report.warnings[0].what.contains("UTF-8"));
    assert_eq!(shown(&well, &report.sessions[0].id).len(), 2);
}

#[test]
fn of_keys_that_come_twice_the_last_counts() {
    let mut file = Transcript::new();
    file.user("u1", "", "first");
    file.lines[0] =
        file.lines[0].replace("\"role\":\"user\",", "\"role\":\"user\",\"content\":\"never\",");
    let well = Stepwell::in_memory();
    let id = taken(&well, &file.write()).remove(0).id;
    assert_eq!(said(&shown(&well, &id)), [r#"User: ["text first"]"#]);
}

/// A line of exactly so many bytes.
fn long_line(file: &mut Transcript, bytes: usize) {
    file.user("u2", "u1", "");
    let line = file.lines.pop().unwrap();
    let fill = "x".repeat(bytes - line.len());
    file.lines.push(line.replace(r#""content":"""#, &format!(r#""content":"{fill}""#)));
}

#[test]
fn the_longest_line_is_read_and_one_byte_more_is_not() {
    let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
    assert_eq!(limit, 52_428_800);
    for (bytes, messages) in [(limit, 2), (limit + 1, 1)] {
        let mut file = Transcript::new();
        file.user("u1", "", "hello");
        long_line(&mut file, bytes);
        let well = Stepwell::in_memory();
        let report = take_in(&well, Mode::Write, format("claude"), &file.write());
        assert!(report.fault.is_none(), "{:?}", report.fault);
        assert_eq!(well.info(&report.sessions[0].id).unwrap().head.messages, messages);
        assert_eq!(report.warnings.len() as u64, 2 - messages);
    }
}

#[test]
fn the_largest_file_is_read_and_one_byte_more_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.json");
    let text = r#"{"id":"g","working_dir":"/w","session_type":"user","conversation":[]"#;
    let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
    for bytes in [limit, limit + 1] {
        let fill = " ".repeat(bytes - text.len() - 1);
        std::fs::write(&path, format!("{text}{fill}}}")).unwrap();
        let report = take_in(&Stepwell::in_memory(), Mode::Write, format("goose"), &path);
        match (bytes == limit, report.fault) {
            (true, None) | (false, Some(Error::FileTooLarge { .. })) => {}
            (_, fault) => panic!("{bytes} bytes: {fault:?}"),
        }
    }
}

#[test]
fn a_folder_of_a_hundred_thousand_files_is_searched() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..100_000 {
        std::fs::File::create(folder.path().join(format!("{n}.jsonl"))).unwrap();
    }
    let mut file = Transcript::new();
    file.user("u1", "", "the one");
    std::fs::copy(file.write(), folder.path().join("needle.jsonl")).unwrap();
    let well = Stepwell::in_memory();
    taken(&well, folder.path());
    assert_eq!(names(&well), [ID]);
}

#[test]
fn nothing_is_written_to_what_is_read() {
    let folder = crate::seeds::built(&crate::seeds::all());
    let before = crate::seeds::files(folder.path());
    let well = Stepwell::in_memory();
    // One of them is damaged, which is no reason to touch it.
    for it in found(folder.path()) {
        drop(take_in(&well, Mode::Write, it.format, &it.path));
    }
    assert!(names(&well).len() > 10);
    assert!(crate::seeds::files(folder.path()) == before, "something was changed");
}
