//! What Claude Code's and Codex's files have no place for is kept in them, and named.

use std::path::{Path, PathBuf};

use stepwell::model::{Change, Checkpoint, Edited, Opaque, Origin, Part, Role, Text, ToolResult};
use stepwell::{Event, Message, SessionId, Stepwell};
use stepwell_formats::{Destination, Existing, Exported, Format, Outlet, write_to};

use crate::mirror::{assert_returns, found, said, shown, taken};
use crate::seeds::{files, fixtures};
use crate::support::{id, log, root, subagent};

fn format(name: &str) -> Format {
    name.parse().unwrap()
}

fn put(well: &Stepwell, session: &SessionId, to: &str, path: &Path) -> Exported {
    write_to(&Destination::new(path, Existing::Keep), format(to).writer().unwrap(), well, session)
        .unwrap()
}

/// The lines of a file that the other agent passes over.
fn kept(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let is_kept = |line: &&str| line.contains(r#""type":"stepwell""#);
    text.lines().filter(is_kept).map(str::to_owned).collect()
}

/// The session of Claude Code's with a subagent, thinking and a label.
fn crumb_shop() -> (Stepwell, SessionId) {
    let well = Stepwell::in_memory();
    let all = taken(&well, &fixtures(format("claude")).unwrap());
    let is_root = |id: &SessionId| well.info(id).unwrap().head.origin == Origin::Root;
    let first = all.into_iter().map(|it| it.id).find(is_root).unwrap();
    (well, first)
}

fn rollout(folder: &Path) -> PathBuf {
    folder.join("rollout-2026-05-04T07-15-00-0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11.jsonl")
}

#[test]
fn a_session_of_claude_codes_leaves_nothing_behind_on_its_way_to_codex() {
    let (here, session) = crumb_shop();
    let folder = tempfile::tempdir().unwrap();
    let path = rollout(folder.path());
    let exported = put(&here, &session, "codex", &path);
    let warning = exported.losses.to_string();
    for words in [
        "other systems' own data (21: claude-code)",
        "attributes of the session (1: label)",
        "thinking of other agents (1)",
    ] {
        assert!(warning.contains(words), "{warning}");
    }
    assert!(!warning.contains("subagents"), "{warning}");
    let below = path.with_extension("").join("subagents");
    let child = files(&below).remove(0).0;
    let lines = [kept(&path), kept(&below.join(child))].concat();
    let foreign = lines.iter().filter(|it| it.contains(r#""kind":"foreign""#));
    assert_eq!(foreign.count(), 21, "{lines:#?}");
    let there = Stepwell::in_memory();
    let back = taken(&there, folder.path());
    assert_eq!(back.len(), 2, "{back:?}");
    assert_eq!(exported.sessions, 2);
    // The thinking is where it was, with its signature.
    let thought = |well: &Stepwell, id: &SessionId| -> Vec<Part> {
        let messages = log(well, id).into_iter().filter_map(|it| match it.event {
            Event::Message(message) => Some(message.parts),
            _ => None,
        });
        messages.flatten().filter(|part| matches!(part, Part::Thinking(_))).collect()
    };
    let original = thought(&here, &session);
    assert!(!original.is_empty());
    assert_eq!(thought(&there, &back[0].id), original);
    assert_eq!(said(&shown(&there, &back[0].id)).len(), said(&shown(&here, &session)).len());
    // The subagent is below its parent.
    let child = there.info(&back[1].id).unwrap().head;
    assert_eq!(child.origin, Origin::Subagent { parent: back[0].id.clone() });
    let original = here.subagents(&session).unwrap().remove(0).head;
    assert_eq!(said(&shown(&there, &back[1].id)), said(&shown(&here, &original.id)));
    assert_returns(format("codex"), &path, path.file_name().unwrap().to_str().unwrap());
}

#[test]
fn what_is_kept_does_not_grow_from_file_to_file() {
    let (mut well, mut session) = crumb_shop();
    let mut sizes = Vec::new();
    for n in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let to = ["codex", "claude"][n % 2];
        let path = match to {
            "codex" => rollout(folder.path()),
            _ => folder.path().join("0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11.jsonl"),
        };
        put(&well, &session, to, &path);
        sizes.push(files(folder.path()).iter().map(|(_, bytes)| bytes.len()).sum::<usize>());
        well = Stepwell::in_memory();
        session = taken(&well, folder.path()).remove(0).id;
    }
    // Each file adds what is its own; wrapped again and again all of it would double.
    assert!(sizes[5] - sizes[3] < 2 * (sizes[3] - sizes[1]), "{sizes:?}");
}

#[test]
fn a_stream_has_no_room_for_subagents_and_names_them() {
    let well = Stepwell::in_memory();
    drop(root(&well, "parent"));
    for name in ["helper-one", "helper-two"] {
        subagent(&well, "parent", name).append(Message::user("look")).unwrap();
    }
    for to in ["codex", "claude"] {
        let mut bytes = Vec::new();
        let mut outlet = Outlet::stream(&mut bytes);
        let writer = format(to).writer().unwrap();
        let exported = writer.write(&well, &id("parent"), &mut outlet).unwrap();
        let warning = exported.losses.to_string();
        let words = "sessions of subagents (2: helper-one, helper-two)";
        assert!(warning.contains(words), "{to}: {warning}");
    }
}

/// Thinking that only its provider can read again.
fn thinking(text: &str) -> Part {
    let opaque = Some(Opaque { provider: "openai".to_owned(), data: "gAAA".to_owned() });
    Part::Thinking(Text { text: text.to_owned(), opaque })
}

#[test]
fn thinking_comes_back_to_its_place_from_both() {
    for (to, name) in [
        ("codex", "rollout-2026-05-04T07-15-00-0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11.jsonl"),
        ("claude", "0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11.jsonl"),
    ] {
        let here = Stepwell::in_memory();
        let session = root(&here, "a");
        session.append(Message::user("begin")).unwrap();
        let parts = vec![thinking("first"), Part::text("one"), thinking("then"), Part::text("two")];
        session.append(Message::new(Role::Assistant, parts.clone())).unwrap();
        session.append(Message::user("go on")).unwrap();
        session.append(Message::new(Role::Assistant, vec![thinking("only")])).unwrap();
        session.append(Message::user("end")).unwrap();
        drop(session);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        put(&here, &id("a"), to, &path);
        let there = Stepwell::in_memory();
        let back = taken(&there, &path);
        let (one, other) = (shown(&here, &id("a")), shown(&there, &back[0].id));
        assert_eq!(said(&one), said(&other), "{to}");
        assert_eq!(other[1].parts, parts, "{to}");
        assert_returns(format(to), &path, name);
    }
}

#[test]
fn what_a_message_is_written_without_is_kept_behind_it() {
    let here = Stepwell::in_memory();
    let session = root(&here, "a");
    session.append(Message::user("begin")).unwrap();
    session.append(Message::assistant("").calling("c1", "shell", "no json")).unwrap();
    let failed = ToolResult {
        call_id: "c1".to_owned(),
        text: "boom".to_owned(),
        is_error: true,
        ..ToolResult::default()
    };
    session.append(Message::new(Role::Tool, vec![Part::ToolResult(failed)])).unwrap();
    session.append(Checkpoint { name: "before".to_owned(), ..Checkpoint::default() }).unwrap();
    let goal = Change::Set("ship".to_owned());
    session.append(Edited { goal, ..Edited::default() }).unwrap();
    drop(session);
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("codex", "marks of results that are errors (1)", r#""is_error":true"#),
        ("claude", "arguments that are no JSON object (1)", r#""arguments":"no json""#),
    ];
    for (to, words, line) in cases {
        let path = folder.path().join(format!("{to}.jsonl"));
        let warning = put(&here, &id("a"), to, &path).losses.to_string();
        for words in [words, "checkpoints (1: before)", "attributes of the session (1: goal)"] {
            assert!(warning.contains(words), "{to}: {warning}");
        }
        let lines = kept(&path);
        assert!(lines.iter().any(|it| it.contains(line)), "{to}: {lines:#?}");
        assert_eq!(found(&path).len(), 1);
        assert_returns(format(to), &path, &format!("{to}.jsonl"));
    }
}

#[test]
fn subagents_of_subagents_come_back_below_each_other() {
    let here = Stepwell::in_memory();
    drop(root(&here, "a"));
    for (parent, child) in [("a", "b"), ("b", "c"), ("c", "d"), ("a", "e")] {
        subagent(&here, parent, child).append(Message::user(child)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = rollout(folder.path());
    let exported = put(&here, &id("a"), "codex", &path);
    let losses = exported.losses.to_string();
    assert_eq!((exported.sessions, losses.contains("subagents")), (5, false), "{losses}");
    let there = Stepwell::in_memory();
    // Whichever file is named, all of them are read.
    let any = files(&path.with_extension("")).remove(0).0;
    let back = taken(&there, &path.with_extension("").join(any));
    assert_eq!(back.len(), 5, "{back:?}");
    let depth = |id: &SessionId| {
        let mut depth = 0;
        let mut at = id.clone();
        while let Origin::Subagent { parent } = there.info(&at).unwrap().head.origin {
            (at, depth) = (parent, depth + 1);
        }
        depth
    };
    let mut depths: Vec<_> = back.iter().map(|it| depth(&it.id)).collect();
    depths.sort_unstable();
    assert_eq!(depths, [0, 1, 1, 2, 3]);
    let again = taken(&there, folder.path());
    assert!(again.iter().all(|it| it.became == stepwell_formats::Became::Unchanged), "{again:?}");
}
