//! What is wrong with an archive is said with its place, and leaves nothing behind.

use std::io::{self, BufRead, BufReader, Read};

use stepwell::model::{EventId, FileChanged, FileState, Phase, PhaseChanged, Time};
use stepwell::{ErrorKind, Event, Message, NewEvent, Recorded, Seq, Stepwell};
use stepwell_formats::{Error, Format, Mode, import, take_in};

use crate::support::{ARCHIVES, id, imported, names, root, say, subagent, text};

/// a, with a blob; b, its subagent.
fn archive(format: Format) -> String {
    let well = Stepwell::in_memory();
    let mut session = root(&well, "a");
    say(&mut session, &["one", "two"]);
    let blob = well.store().put_blob(b"bytes").unwrap();
    let after = FileState::File { blob, mode: 0o644 };
    let (path, before) = ("a.rs".to_owned(), FileState::Absent);
    session.append(FileChanged { path, before, after, renamed_from: None }).unwrap();
    say(&mut subagent(&well, "a", "b"), &["three"]);
    text(&well, "a", format)
}

/// The error that an archive gives. Nothing of it may be left.
fn error(archive: impl AsRef<[u8]>) -> Error {
    let there = Stepwell::in_memory();
    let error = imported(&there, archive).unwrap_err();
    assert!(names(&there).is_empty(), "{error} left {:?}", names(&there));
    error
}

/// An archive of one session, made of these lines between its opening and its end.
fn lines(entries: &[String]) -> String {
    let (header, opening) =
        (r#"{"stepwell_archive":1,"sessions":1}"#, r#"{"id":"a","origin":"root"}"#);
    let events = entries.iter().filter(|entry| entry.starts_with("{\"seq\"")).count();
    let end = format!(r#"{{"end":"a","events":{events}}}"#);
    let entries = entries.join("\n");
    format!("{header}\n{opening}\n{entries}\n{end}\n")
}

fn line(seq: u64, event: impl Into<Event>) -> String {
    let event = Recorded { seq: Seq::new(seq), at: Time::EPOCH, id: None, event: event.into() };
    serde_json::to_string(&event).unwrap()
}

fn created(name: &str) -> String {
    line(1, stepwell::Created::new(id(name), "task"))
}

/// A session of a format with that text in its first message.
fn saying(format: &str, text: &str) -> String {
    match format {
        "claude" => format!(
            r#"{{"parentUuid":null,"isSidechain":false,"cwd":"/w","sessionId":"s","type":"user","uuid":"u1","timestamp":"2026-05-04T06:00:00.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        ),
        "pi" => format!(
            r#"{{"type":"session","version":3,"id":"s1","timestamp":"2026-05-04T06:00:00.000Z","cwd":"/w"}}
{{"type":"message","id":"e1","parentId":null,"timestamp":"2026-05-04T06:00:01.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        ),
        "qwen" => format!(
            r#"{{"uuid":"u1","parentUuid":null,"sessionId":"s","cwd":"/w","type":"user","timestamp":"2026-05-04T06:00:00.000Z","message":{{"role":"user","parts":[{{"text":"{text}"}}]}}}}"#
        ),
        "codex" => format!(
            r#"{{"timestamp":"2026-05-04T06:00:00.000Z","type":"session_meta","payload":{{"id":"0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11","timestamp":"2026-05-04T06:00:00.000Z","cwd":"/w","cli_version":"1"}}}}
{{"timestamp":"2026-05-04T06:00:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
        ),
        "goose" => format!(
            r#"{{"working_dir":"/w","description":"d"}}
{{"role":"user","created":1778041200,"content":[{{"type":"text","text":"{text}"}}]}}"#
        ),
        "architect" => format!(
            r#"{{"session_id":"20260223-143022-abcdef","task":"t","agent":"a","model":"m","status":"success","steps_completed":1,"messages":[{{"role":"user","content":"{text}"}}],"files_modified":[],"total_cost":0,"started_at":1771857022.0,"updated_at":1771857023.0,"stop_reason":"llm_done","metadata":{{}}}}"#
        ),
        _ => format!(
            r#"{{"id":"s1","model":"m","provider":"p","started_at":"2026-05-04T06:00:00Z","message_count":1,"workflow_phase":"idle","schema_version":1,"messages":[{{"role":"user","content":"{text}","segments":[],"created_at":"2026-05-04T06:00:00Z"}}],"tasks":[],"project":null}}"#
        ),
    }
}

#[test]
fn half_of_a_character_costs_that_half_and_is_told_of() {
    for format in ["claude", "codex", "goose", "architect", "m31a", "qwen", "pi"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        std::fs::write(&path, saying(format, r"cut \ud83d IMPORTANT \ud83d\ude00") + "\n").unwrap();
        let well = Stepwell::in_memory();
        let found = crate::mirror::found(&path);
        assert_eq!(found[0].format, format.parse().unwrap());
        let report = take_in(&well, Mode::Write, found[0].format, &path);
        assert!(report.fault.is_none(), "{format}: {:?}", report.fault);
        let said = crate::mirror::shown(&well, &report.sessions[0].id);
        assert_eq!(said[0].text(), "cut \u{fffd} IMPORTANT \u{1f600}", "{format}");
        let half = |it: &&stepwell_formats::Warning| it.what.contains("half of a character");
        assert_eq!(report.warnings.iter().filter(half).count(), 1, "{:?}", report.warnings);
    }
}

/// A session of a format with a byte that is no UTF-8 on its first line.
fn broken(format: &str) -> Vec<u8> {
    let word = match format {
        "claude" | "architect" | "m31a" => "caf",
        _ => "/w",
    };
    let mut bytes = saying(format, "caf").into_bytes();
    let at = bytes.windows(word.len()).position(|it| it == word.as_bytes()).unwrap();
    bytes.insert(at + word.len(), 0xe9);
    let last = r#"{"parentUuid":"u1","isSidechain":false,"cwd":"/w","sessionId":"s","type":"user","uuid":"u2","timestamp":"2026-05-04T06:01:00.000Z","message":{"role":"user","content":"caf"}}"#;
    if format == "claude" {
        bytes.extend(format!("\n{last}").bytes());
    }
    bytes.push(b'\n');
    bytes
}

#[test]
fn a_byte_that_is_no_text_on_the_first_line_hides_no_session() {
    for format in ["claude", "codex", "goose", "architect", "m31a", "qwen", "pi"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("session.jsonl"), broken(format)).unwrap();
        let found = crate::mirror::found(folder.path());
        assert_eq!(found.len(), 1, "{format}");
        assert_eq!(found[0].format, format.parse().unwrap());
        let well = Stepwell::in_memory();
        let report = take_in(&well, Mode::Write, found[0].format, &found[0].path);
        if ["architect", "m31a"].contains(&format) {
            // These are read whole or not at all.
            let fault = report.fault.unwrap().to_string();
            assert!(fault.contains("is not UTF-8"), "{format}: {fault}");
            continue;
        }
        assert!(report.fault.is_none(), "{format}: {:?}", report.fault);
        assert_eq!(crate::mirror::shown(&well, &report.sessions[0].id)[0].text(), "caf");
        let told = report.warnings.iter().filter(|it| it.what.contains("it is not UTF-8"));
        let told: Vec<_> = told.map(|it| &it.place).collect();
        assert!(told.len() == 1 && told[0].ends_with("line 1"), "{format}: {told:?}");
    }
}

#[test]
fn an_archive_that_is_cut_anywhere_leaves_nothing() {
    for form in ARCHIVES {
        let whole = archive(form);
        let end = whole.trim_end().len();
        for cut in (0..end).filter(|cut| whole.is_char_boundary(*cut)) {
            let error = error(&whole[..cut]);
            let expected = match &error {
                Error::Truncated { line } => *line <= whole[..cut].lines().count() + 1,
                Error::NotAnArchive { .. } => cut < 22,
                _ => false,
            };
            assert!(expected, "{form}, cut at {cut}: {error:?}");
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
        imported(&Stepwell::in_memory(), &whole[..end]).unwrap();
    }
}

#[test]
fn what_is_no_archive_is_told_from_a_broken_one() {
    let binary: Vec<u8> = (0..=255).cycle().take(4_000).collect();
    let inputs: [&[u8]; 8] =
        [b"", b" \n", b"hello", b"[]", b"{}", b"{\"a\":1}", b"\x89PNG\r\n\x1a\n", &binary];
    for input in inputs {
        let error = error(input);
        assert!(matches!(error, Error::NotAnArchive { .. }), "{input:?}: {error:?}");
    }
}

#[test]
fn a_version_that_is_not_known_is_named() {
    for version in [0, 2, 4_000_000_000_u64] {
        let archive = archive(Format::JSON).replacen(":1,", &format!(":{version},"), 1);
        let error = error(archive);
        assert_eq!(error.kind(), ErrorKind::Incompatible);
        assert!(error.to_string().contains(&format!("version {version}")), "{error}");
    }
    let unnumbered = archive(Format::JSON).replacen(":1,", ":\"one\",", 1);
    assert!(matches!(error(unnumbered), Error::NotAnArchive { .. }));
}

#[test]
fn broken_lines_are_named_by_their_number() {
    let whole = archive(Format::JSONL);
    let count = whole.lines().count();
    for n in 2..=count {
        let broken: Vec<&str> = whole
            .lines()
            .enumerate()
            .map(|(at, line)| if at + 1 == n { "{\"seq\":[}" } else { line })
            .collect();
        let error = error(broken.join("\n"));
        assert!(matches!(error, Error::Malformed { line, .. } if line == n), "{n}: {error:?}");
    }
}

#[test]
fn an_event_that_cannot_be_read_is_named_by_its_line() {
    for form in ARCHIVES {
        let broken = archive(form).replacen("\"role\":\"user\"", "\"role\":\"oracle\"", 1);
        let error = error(broken).to_string();
        let place = "at line 4: ";
        assert!(error.contains(place) && error.contains("oracle"), "{error}");
        assert_eq!(error.matches("line").count(), 1, "{error}");
    }
}

#[test]
fn a_log_that_cannot_be_is_named_by_session_and_seq() {
    let say = |seq| line(seq, Message::user("hm"));
    let cases = [
        (vec![created("a"), say(3)], "seq 2: the archive cannot be right: event 3 stands there"),
        (vec![created("a"), say(1)], "seq 2"),
        (vec![say(1)], "begins with `created`, not with `message`"),
        (vec![say(2)], "seq 1"),
        (vec![created("z")], "it begins session z"),
        (vec![created("a"), created("a").replacen(":1,", ":2,", 1)], "begins there again"),
        (vec![], "it ends before its own first event"),
    ];
    for (entries, expected) in cases {
        let error = error(lines(&entries));
        assert!(matches!(error, Error::Unfit { .. }), "{error:?}");
        assert!(error.to_string().contains("session a"), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn an_opening_that_its_log_belies_is_refused() {
    let forked = lines(&[created("a")]).replacen(
        r#""origin":"root""#,
        r#""origin":{"fork":{"parent":"p","at":7}}"#,
        1,
    );
    let ended = error(forked).to_string();
    assert!(ended.contains("it ends before its own first event"), "{ended}");
    let at_zero = lines(&[created("a")]).replacen(
        r#""origin":"root""#,
        r#""origin":{"fork":{"parent":"p","at":0}}"#,
        1,
    );
    assert!(error(at_zero).to_string().contains("its origin is not the one"));
    let miscounted = lines(&[created("a")]).replace(r#""events":1"#, r#""events":2"#);
    assert!(error(miscounted).to_string().contains("it ends at another event than it says"));
}

#[test]
fn an_event_that_the_store_refuses_is_named_among_many() {
    let mut entries = vec![created("a")];
    entries.extend((2..=300).map(|seq| line(seq, Message::user("hm"))));
    entries.push(line(301, PhaseChanged { from: Phase::Idle, to: Phase::Plan }));
    entries.push(line(302, Message::user("hm")));
    let error = error(lines(&entries));
    let Error::Refused { seq, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*seq, Seq::new(301));
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn an_event_id_that_comes_twice_is_refused() {
    let event = |seq: u64, text: &str| {
        let event = NewEvent::from(Message::user(text)).with_id(EventId::derived(b"one"));
        let (seq, at) = (Seq::new(seq), Time::EPOCH);
        let event = Recorded { seq, at, id: event.id, event: event.event };
        serde_json::to_string(&event).unwrap()
    };
    let between = |seq| line(seq, Message::user("hm"));
    // Right behind it, in another append, and as the same event again.
    for (n, text) in [(3, "other"), (700, "other"), (700, "first")] {
        let mut entries = vec![created("a"), event(2, "first")];
        entries.extend((3..n).map(between));
        entries.push(event(n, text));
        let error = error(lines(&entries));
        let Error::Refused { seq, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*seq, Seq::new(n));
    }
}

#[test]
fn blobs_must_be_what_they_say_and_come_first() {
    for form in ARCHIVES {
        let whole = archive(form);
        let other = whole.replace("Ynl0ZXM=", "Ynl0ZXQ=");
        assert!(matches!(error(other), Error::WrongBlob { .. }));
        let nonsense = whole.replace("Ynl0ZXM=", "no base64!");
        assert!(matches!(error(nonsense), Error::NotBase64 { .. }));
        let without: Vec<&str> =
            whole.lines().filter(|line| !line.starts_with("{\"blob\"")).collect();
        let error = error(without.join("\n"));
        assert!(matches!(&error, Error::Unfit { seq, .. } if *seq == Seq::new(4)), "{error:?}");
    }
}

#[test]
fn a_session_that_comes_twice_is_refused() {
    let once = lines(&[created("a")]);
    let (header, rest) = once.split_once('\n').unwrap();
    let twice = format!("{}\n{rest}{rest}", header.replace("sessions\":1", "sessions\":2"));
    assert!(error(twice).to_string().contains("in the archive twice"));
}

#[test]
fn lines_out_of_place_are_refused() {
    let say = line(2, Message::user("hm"));
    let header = r#"{"stepwell_archive":1,"sessions":1}"#;
    let stray = error(format!("{header}\n{say}\n"));
    assert_eq!(stray.to_string(), "the archive is malformed at line 2: no session has begun here");
    let open = format!("{header}\n{{\"id\":\"a\",\"origin\":\"root\"}}\n{}\n", created("a"));
    let nested = error(format!("{open}{{\"id\":\"b\",\"origin\":\"root\"}}\n"));
    assert!(nested.to_string().contains("line 4: session a has not ended"), "{nested}");
    for form in ARCHIVES {
        let trailing = error(format!("{}{{}}", archive(form)));
        assert!(matches!(trailing, Error::Malformed { .. }), "{trailing:?}");
    }
}

#[test]
fn an_object_whose_keys_come_late_is_refused() {
    let late = r#"{"stepwell_archive":1,"sessions":[{"events":[],"id":"a","origin":"root"}]}"#;
    assert!(error(late).to_string().contains("its id and its origin come first"));
    let none = r#"{"stepwell_archive":1}"#;
    assert!(error(none).to_string().contains("it has no sessions"));
    let names = r#"{"stepwell_archive":1,"sessions":[{"id":"../etc","origin":"root"}]}"#;
    assert!(matches!(error(names), Error::Malformed { .. }));
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let deep = "[".repeat(200_000);
    let header = r#"{"stepwell_archive":1,"#;
    for archive in [
        format!("{header}\"x\":{deep}"),
        format!("{header}\"sessions\":{deep}"),
        format!("{header}\"sessions\":1}}\n{deep}"),
        lines(&[created("a"), line(2, Message::user("hm")).replace("\"hm\"", &deep)]),
        deep.clone(),
    ] {
        assert_eq!(error(archive).kind(), ErrorKind::Invalid);
    }
    let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let edited = format!(
        r#"{{"seq":2,"at":"1970-01-01T00:00:00Z","kind":"edited","version":1,"body":{{"metadata":{{"a":{nested}}}}}}}"#
    );
    assert!(matches!(error(lines(&[created("a"), edited])), Error::Malformed { line: 4, .. }));
}

#[test]
fn a_reader_that_fails_is_no_bad_archive() {
    struct Failing;

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::ConnectionReset, "the line is dead"))
        }
    }

    let there = Stepwell::in_memory();
    let front = archive(Format::JSONL);
    let mut from = front.as_bytes()[..600].chain(BufReader::new(Failing));
    let error = import(&there, &mut from as &mut dyn BufRead).unwrap_err();
    assert!(matches!(&error, Error::Read(e) if e.kind() == io::ErrorKind::ConnectionReset));
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(names(&there).is_empty());
}

#[test]
fn a_bad_end_does_not_take_back_what_was_there_before() {
    let there = Stepwell::in_memory();
    let front = lines(&[created("a")]);
    imported(&there, &front).unwrap();
    let longer = lines(&[created("a"), line(2, Message::user("hm")), line(4, Message::user("hm"))]);
    imported(&there, longer).unwrap_err();
    assert_eq!(names(&there), ["a"]);
    assert!(there.store().maintain().verify(&id("a")).unwrap().is_sound());
}
