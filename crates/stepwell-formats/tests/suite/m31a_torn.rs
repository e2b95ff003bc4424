//! M31A sessions of which a part is damaged or missing.

use serde_json::json;
use stepwell::model::Phase;
use stepwell::{Status, Stepwell};
use stepwell_formats::{MAX_FILE_BYTES, Mode, take_in};

use crate::m31a::{ZERO, conversation, exported, imported, load, m31a, message, project, session};
use crate::mirror::{said, shown};
use crate::seeds::lay_out;
use crate::sheet::{self, one, took, warned};

#[test]
fn broken_or_missing_messages_are_taken_from_the_copy_with_a_warning() {
    let text = session(&json!({})).to_string();
    let other = json!([message("user", "newer", &json!({}))]).to_string();
    for (spoken, messages, warning) in [
        (Some(other.as_str()), 1, ""),
        (Some("[{\"role\""), 3, "the copy in session.json is read"),
        (Some("{}"), 3, "the copy in session.json is read"),
        (Some(""), 3, "the copy in session.json is read"),
        (None, 3, "is not there"),
    ] {
        let mut files = vec![("session.json", text.as_str())];
        files.extend(spoken.map(|spoken| ("messages.json", spoken)));
        let (well, report) = imported(&files);
        assert_eq!(well.info(&one(&report)).unwrap().head.messages, messages);
        let warned = warned(&report);
        assert!(warned.contains(warning) && warned.is_empty() == warning.is_empty(), "{warned}");
    }
}

#[test]
fn a_corrupt_session_yields_to_its_backup_and_to_what_was_recovered() {
    let backup = session(&json!({"id": "f10c0000", "workflow_phase": "ship"})).to_string();
    let recovery = json!({
        "session_id": "c4de0000", "current_phase": "plan", "phase_history": ["idle", "plan"],
        "plan_markdown": "# Plan", "plan_version": 2, "messages": conversation(),
        "goal": "allergens", "timestamp": "2026-05-09T14:20:00Z",
    })
    .to_string();
    for broken in [
        "{\"id\": \"9f".to_owned(),
        String::new(),
        "null".to_owned(),
        session(&json!({"id": ""})).to_string(),
        session(&json!({"started_at": ZERO})).to_string(),
        session(&json!({"workflow_phase": "dancing"})).to_string(),
    ] {
        let (well, report) = imported(&[("session.json", &broken), ("session.json.bak", &backup)]);
        assert_eq!(one(&report).as_str(), "f10c0000");
        assert!(warned(&report).contains("the session before it, f10c0000"), "{report:?}");
        assert_eq!(well.info(&one(&report)).unwrap().head.status, Status::Success);
        let files = [
            ("session.json", broken.as_str()),
            ("session.json.bak", backup.as_str()),
            ("recovery.json", recovery.as_str()),
        ];
        let (well, report) = imported(&files);
        let ids: Vec<_> = report.sessions.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["c4de0000", "f10c0000"]);
        let head = well.info(&"c4de0000".parse().unwrap()).unwrap().head;
        assert_eq!((head.phase, head.goal.as_deref()), (Some(Phase::Plan), Some("allergens")));
        let (_, report) = imported(&[("session.json", &broken), ("session.json.bak", "{}")]);
        assert!(report.sessions.is_empty());
        assert!(report.fault.unwrap().to_string().contains("session.json"));
    }
    // A session that is sound is read, and not the one before it.
    let (_, report) = imported(&[
        ("session.json", &session(&json!({})).to_string()),
        ("session.json.bak", &backup),
    ]);
    assert_eq!(one(&report).as_str(), "c4de0000");
}

#[test]
fn the_conversation_beside_a_torn_session_is_read() {
    let whole = session(&json!({"label": "allergens", "workflow_phase": "verify"})).to_string();
    let spoken = conversation().to_string();
    // Torn in the copy of the conversation: what stands before it is known.
    let torn = "{\"id\":\"c4de0000\",\"label\":\"allergens\",\"model\":\"qwen3-coder\",\
        \"started_at\":\"2026-05-09T11:00:00.9-03:00\",\"message_count\":3,\
        \"workflow_phase\":\"verify\",\"schema_version\":1,\"messages\":[{\"role\":\"user\",\"con";
    let (well, report) = imported(&[("session.json", torn), ("messages.json", &spoken)]);
    let head = well.info(&one(&report)).unwrap().head;
    assert_eq!((head.id.as_str(), head.messages), ("c4de0000", 3));
    assert_eq!((head.label.as_deref(), head.phase), (Some("allergens"), Some(Phase::Verify)));
    assert_eq!((head.model.as_str(), head.status), ("qwen3-coder", Status::Interrupted));
    let told = warned(&report);
    assert!(told.contains("read from messages.json: 3 messages, as c4de0000"), "{told}");
    assert_eq!(told.matches("session.json").count(), 0, "the place is said once: {told}");
    // The file is whole again when it is written.
    let (_out, path) = exported(&well, &one(&report));
    let (again, _) = load(&path);
    assert_eq!((&again["id"], &again["label"]), (&json!("c4de0000"), &json!("allergens")));
    // Once M31A has written it anew, it is the same session.
    let folder = project(&[("session.json", &whole), ("messages.json", &spoken)]);
    assert_eq!(one(&took(&well, folder.path())).as_str(), "c4de0000");
}

#[test]
fn a_conversation_that_no_session_names_gets_a_name_and_never_that_of_another() {
    let spoken = conversation().to_string();
    let other = session(&json!({"id": "f10c0000",
        "messages": [message("user", "something else", &json!({}))]}))
    .to_string();
    let (well, report) =
        imported(&[("session.json", ""), ("messages.json", &spoken), ("session.json.bak", &other)]);
    let ids: Vec<_> = report.sessions.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["recovered-20260509-140001", "f10c0000"], "{report:?}");
    let head = well.info(&report.sessions[0].id).unwrap().head;
    assert_eq!((head.messages, head.status), (3, Status::Interrupted));
    // What began as the backup does is the backup's session, gone on with.
    let begun = session(&json!({"messages": [conversation()[0]]})).to_string();
    let (well, report) = imported(&[
        ("session.json", "{\"id\": \"c4"),
        ("messages.json", &spoken),
        ("session.json.bak", &begun),
    ]);
    let head = well.info(&one(&report)).unwrap().head;
    assert_eq!((head.id.as_str(), head.messages), ("c4de0000", 3));
    // A conversation that cannot be read either is told of.
    let (_, report) = imported(&[
        ("session.json", ""),
        ("messages.json", "[{\"ro"),
        ("session.json.bak", &other),
    ]);
    assert_eq!(one(&report).as_str(), "f10c0000");
    assert!(warned(&report).contains("cannot be read as the conversation"), "{report:?}");
}

#[test]
fn a_torn_session_is_the_one_that_came_in_before_and_so_is_the_mended_one() {
    let spoken = conversation().to_string();
    let whole = session(&json!({"label": "allergens", "workflow_phase": "verify"})).to_string();
    let folder = project(&[("session.json", &whole), ("messages.json", &spoken)]);
    let write =
        |text: &str| std::fs::write(folder.path().join(".m31a/session.json"), text).unwrap();
    let well = Stepwell::in_memory();
    assert_eq!(one(&took(&well, folder.path())).as_str(), "c4de0000");
    // Nothing in the folder names it any more.
    for torn in ["", "{\"i", "{\"id\": \"c4"] {
        write(torn);
        let report = took(&well, folder.path());
        assert_eq!(one(&report).as_str(), "c4de0000", "{torn:?}: {report:?}");
        assert!(!warned(&report).contains("recovered-"), "{report:?}");
    }
    std::fs::remove_file(folder.path().join(".m31a/session.json")).unwrap();
    assert_eq!(one(&took(&well, folder.path())).as_str(), "c4de0000");
    let head = well.info(&"c4de0000".parse().unwrap()).unwrap().head;
    assert_eq!((head.messages, head.label.as_deref()), (3, Some("allergens")));
    // The other way about: it came in while it was torn.
    let well = Stepwell::in_memory();
    write("");
    let first = one(&took(&well, folder.path()));
    assert_eq!(first.as_str(), "recovered-20260509-140001");
    write(&whole);
    assert_eq!(one(&took(&well, folder.path())), first);
    assert_eq!(well.info(&first).unwrap().head.phase, Some(Phase::Verify));
    // Another conversation in the same folder is another session, and so is the same one elsewhere.
    let other = project(&[("session.json", &whole), ("messages.json", &spoken)]);
    assert_eq!(one(&took(&well, other.path())).as_str(), "c4de0000");
    let changed = json!([message("user", "bake", &json!({"created_at": "2026-05-10T11:00:00Z"}))]);
    let changed = changed.to_string();
    std::fs::write(folder.path().join(".m31a/messages.json"), changed).unwrap();
    write("");
    assert_eq!(one(&took(&well, folder.path())).as_str(), "recovered-20260510-110000");
}

#[test]
fn a_torn_session_takes_nothing_from_what_its_whole_file_told() {
    let mut said = conversation();
    let project_told = json!({"framework": "axum", "answers": {"Which port?": "8080"}});
    let told = json!({"label": "allergens", "project": project_told, "schema_version": 1});
    let whole = session(&told).to_string();
    let folder = project(&[("session.json", &whole), ("messages.json", &said.to_string())]);
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(".m31a").join(name), text).unwrap();
    };
    let well = Stepwell::in_memory();
    let id = one(&took(&well, folder.path()));
    let written = |name: &str| {
        let (_out, path) = exported(&well, &id);
        std::fs::read_to_string(path.join(name)).unwrap()
    };
    let (before, length) = (written("session.json"), well.info(&id).unwrap().head.seq);
    for torn in ["", &whole[..whole.len() / 2], &whole[..whole.len() - 1]] {
        write("session.json", torn);
        assert_eq!(one(&took(&well, folder.path())), id);
        assert_eq!(written("session.json"), before, "after {torn:?}");
    }
    write("session.json", &whole);
    took(&well, folder.path());
    assert_eq!(well.info(&id).unwrap().head.seq, length);
    // What was said since waits for the whole file.
    said.as_array_mut().unwrap().push(message("user", "and nuts", &json!({})));
    write("messages.json", &said.to_string());
    write("session.json", "");
    assert!(warned(&took(&well, folder.path())).contains("it was left out"));
    assert_eq!(well.info(&id).unwrap().head.messages, 3);
    write("session.json", &whole);
    took(&well, folder.path());
    assert_eq!(well.info(&id).unwrap().head.messages, 4);
    assert!(written("session.json").contains("axum"));
}

#[test]
fn a_session_of_fifty_megabytes_is_read_and_one_byte_more_is_not() {
    let bare = session(&json!({"pad": ""})).to_string();
    let room = usize::try_from(MAX_FILE_BYTES).unwrap() - bare.len();
    for (more, fits) in [(0, true), (1, false)] {
        let text =
            bare.replace("\"pad\":\"\"", &format!("\"pad\":\"{}\"", "x".repeat(room + more)));
        let folder = project(&[("session.json", &text), ("messages.json", "[]")]);
        let path = folder.path().join(".m31a/session.json");
        let report = take_in(&Stepwell::in_memory(), Mode::Look, m31a(), &path);
        match report.fault {
            None => assert!(fits),
            Some(fault) => {
                assert!(!fits && fault.to_string().contains("52428801 bytes"), "{fault}");
            }
        }
    }
}

#[test]
fn hostile_projects_are_bounded_and_lead_nowhere() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let text = session(&json!({"id": "../../../etc/x", "parent_id": "../../y", "label": "@last\n", "tags": ["a\0", "ok"]})).to_string();
    let text = text.replace(
        "\"project\":null",
        &format!("\"project\":{{\"answers\":{{\"a\":{deep}}}}},\"odd\":{deep},\"odd\":{deep}"),
    );
    let (well, report) = imported(&[("session.json", &text), ("checkpoint.json", &deep)]);
    let id = one(&report);
    assert!(!id.as_str().contains('/'));
    let head = well.info(&id).unwrap().head;
    assert_eq!((head.label, head.tags.len()), (None, 1));
    let (out, path) = exported(&well, &id);
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1);
    assert!(path.join("session.json").exists());
    // A link to elsewhere is not read through.
    let (_secret, secret) =
        sheet::laid("secret.json", json!([message("user", "secret", &json!({}))]).to_string());
    let folder = project(&[("session.json", &session(&json!({})).to_string())]);
    std::os::unix::fs::symlink(&secret, folder.path().join(".m31a/messages.json")).unwrap();
    let well = Stepwell::in_memory();
    let report = took(&well, folder.path());
    assert!(warned(&report).contains("it is a link"), "{report:?}");
    assert!(!said(&shown(&well, &one(&report))).iter().any(|it| it.contains("secret")));
    let (_secret, secret) = sheet::laid("secret.json", session(&json!({})).to_string());
    let folder = project(&[("messages.json", "[]")]);
    std::os::unix::fs::symlink(&secret, folder.path().join(".m31a/session.json")).unwrap();
    let report = took(&Stepwell::in_memory(), folder.path());
    assert!(
        report.sessions.is_empty() && report.fault.unwrap().to_string().contains("it is a link")
    );
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path(), &[(".m31a/session.json".into(), b"{\"id\": \"\xff\"}".to_vec())]);
    let fault = took(&well, folder.path()).fault.unwrap().to_string();
    assert!(fault.contains("not UTF-8"), "{fault}");
}
