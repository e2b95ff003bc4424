//! Sessions sent through a format and back: what the format holds must come back.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use stepwell::model::Part;
use stepwell::{Event, Lane, Message, Recorded, SessionId, Stepwell, View};
use stepwell_formats::{
    Became, Destination, Existing, Format, Found, ImportedSession, Mode, Report, find, take_in,
    write_to,
};

use crate::codex::OVEN;
use crate::generate::{record, turns};
use crate::support::log;
use crate::transcript::ID;

/// What is at a path.
pub(crate) fn found(path: &Path) -> Vec<Found> {
    let mut all = Vec::new();
    let mut fault = |error| panic!("{error}");
    let mut found = |it| {
        all.push(it);
        Ok(())
    };
    find(path, None, &mut found, &mut fault).unwrap();
    all
}

/// Takes in everything at a path, without a fault.
pub(crate) fn taken(well: &Stepwell, path: &Path) -> Vec<ImportedSession> {
    let mut all = Vec::new();
    for Found { path, format } in found(path) {
        let Report { sessions, fault, .. } = take_in(well, Mode::Write, format, &path);
        assert!(fault.is_none(), "{}: {fault:?}", path.display());
        all.extend(sessions);
    }
    for it in &all {
        let verdict = well.store().maintain().verify(&it.id).unwrap();
        assert!(verdict.is_sound(), "{}: {verdict:?}", it.id);
        assert!(well.info(&it.id).unwrap().held.is_none(), "{} is held", it.id);
    }
    all
}

/// How many of them became that.
pub(crate) fn became(taken: &[ImportedSession], what: Became) -> usize {
    taken.iter().filter(|it| it.became == what).count()
}

/// What was recorded, without what depends on the file that it came from.
pub(crate) fn told(well: &Stepwell, id: &SessionId) -> Vec<Event> {
    let is_provenance = |event: &Event| match event {
        Event::Edited(edited) => edited.facts.provenance.is_some(),
        // The files that it came in.
        Event::Record(_) => true,
        _ => false,
    };
    let events = log(well, id).into_iter().map(|Recorded { event, .. }| event);
    events.filter(|event| !is_provenance(event)).collect()
}

/// What a model would be shown of the main lane.
pub(crate) fn shown(well: &Stepwell, id: &SessionId) -> Vec<Message> {
    let view = View::of(&Lane::main(), log(well, id));
    View::check(view.messages.iter().map(|shown| &shown.message)).unwrap();
    view.messages.into_iter().map(|shown| shown.message).collect()
}

/// Messages as who said what: without models and what belongs to a provider.
pub(crate) fn said(messages: &[Message]) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text(text) => format!("text {}", text.text),
        Part::Thinking(text) => format!("thinking {}", text.text),
        Part::Image(image) => format!("image {}", image.data),
        Part::ToolCall(call) => format!("call {} {} {}", call.id, call.name, call.arguments),
        Part::ToolResult(result) => format!("result {} {}", result.call_id, result.text),
    };
    messages
        .iter()
        .map(|it| format!("{:?}: {:?}", it.role, it.parts.iter().map(part).collect::<Vec<_>>()))
        .collect()
}

/// Writes a session in a format, into a folder of its own.
pub(crate) fn written(
    well: &Stepwell,
    id: &SessionId,
    format: Format,
    name: &str,
) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write_to(&Destination::new(&path, Existing::Keep), format.writer().unwrap(), well, id).unwrap();
    (folder, path)
}

/// Reads a session, writes it, and reads it again: nothing may have changed. `name` is
/// what the system would call the file or folder.
pub(crate) fn assert_returns(format: Format, from: &Path, name: &str) {
    let (here, there) = (Stepwell::in_memory(), Stepwell::in_memory());
    let first = taken(&here, from);
    let id = &first.first().expect("there is a session").id;
    let (_folder, path) = written(&here, id, format, name);
    let again = taken(&there, &path);
    assert_eq!(again.len(), first.len(), "sessions of {}", path.display());
    for (one, other) in first.iter().zip(&again) {
        let (one, other) = (told(&here, &one.id), told(&there, &other.id));
        for (n, (one, other)) in one.iter().zip(&other).enumerate() {
            assert_eq!(one, other, "event {n}");
        }
        assert_eq!(one.len(), other.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn what_was_said_here_is_said_there(turns in turns()) {
        for (format, name) in [
            ("claude", format!("{ID}.jsonl")),
            ("codex", format!("rollout-2026-05-04T07-15-00-{OVEN}.jsonl")),
            ("strands-sdk", "session_x".to_owned()),
            ("qwen", format!("{ID}.jsonl")),
            ("pi", format!("2026-05-07T05-00-00-000Z_{ID}.jsonl")),
        ] {
            let format: Format = format.parse().unwrap();
            let (here, there) = (Stepwell::in_memory(), Stepwell::in_memory());
            let id = record(&here, "20260223-143022-a1b2c3", &turns);
            let (_folder, path) = written(&here, &id, format, &name);
            let taken = taken(&there, &path);
            prop_assert_eq!(taken.len(), 1, "{}", format);
            let mut all = [said(&shown(&here, &id)), said(&shown(&there, &taken[0].id))];
            if name == "session_x" {
                // In this format a tool that says nothing has no words.
                all.iter_mut().for_each(|said| said.retain(|it| !it.is_empty()));
            }
            prop_assert_eq!(&all[0], &all[1], "{}", format);
            let spent = |well: &Stepwell, id| well.info(id).unwrap().head.spent.usage;
            prop_assert_eq!(spent(&here, &id), spent(&there, &taken[0].id), "{}", format);
            assert_returns(format, &path, &name);
        }
    }
}
