//! All moments of an exported file have one form, and come back as precise as it is.

use std::collections::BTreeSet;
use std::time::Duration;

use stepwell::model::{Checkpoint, Failure, Phase, PhaseChanged, PhaseSet, Time};
use stepwell::{Created, Event, Message, NewEvent, SessionId, Stepwell};
use stepwell_formats::Format;

use crate::mirror::{taken, written};
use crate::support::log;

const ID: &str = "20260223-143022-a1b2c3";

/// A session whose events happened at moments of every precision.
fn session(phases: PhaseSet, path: [Phase; 2]) -> Stepwell {
    let well = Stepwell::in_memory();
    let created = Created::new(ID.parse().unwrap(), "clean").with_model("anthropic", "opus");
    let session = well.create(created.with_phases(phases)).unwrap();
    // A whole second, from which the moments go on.
    let start = well.info(session.id()).unwrap().head.created_at.as_micros() / 1_000_000 + 1;
    let mut at = Time::from_micros(start * 1_000_000);
    let mut append = |event: Event, micros: u64| {
        at = at.plus(Duration::from_micros(micros));
        session.append(NewEvent { at: Some(at), ..NewEvent::from(event) }).unwrap();
    };
    for micros in [1_000_000, 500_000, 250_000, 125_000, 37_500, 1_250, 1_100, 1_025, 1_001] {
        append(Message::user(format!("question {micros}")).into(), micros);
        append(Message::assistant(format!("answer {micros}")).into(), micros);
    }
    let [from, to] = path;
    append(PhaseChanged { from, to }.into(), 70_000);
    append(Failure { message: "it broke".to_owned() }.into(), 1_000);
    // At a moment that ends with zeros.
    append(Checkpoint::of_phase(to).into(), 1_000_248);
    drop(session);
    well
}

/// The forms of the moments in a text: each digit as a nine.
fn forms(text: &str) -> BTreeSet<String> {
    let words = text.split(['"', '\\', ' ', '\n']);
    let is_moment = |it: &&str| it.len() > 18 && it.starts_with("20") && it.as_bytes()[10] == b'T';
    words.filter(is_moment).map(|it| it.replace(|c: char| c.is_ascii_digit(), "9")).collect()
}

#[test]
fn all_moments_of_an_exported_file_have_one_form() {
    let id: SessionId = ID.parse().unwrap();
    let workflow = || session(PhaseSet::Workflow, [Phase::Idle, Phase::Initialize]);
    let lifecycle = || session(PhaseSet::Lifecycle, [Phase::Initializing, Phase::Investigating]);
    let uuid = "0196a3f0-0000-7a52-8c3e-000000000009";
    for (format, well, name, form) in [
        ("claude", workflow(), format!("{uuid}.jsonl"), "9999-99-99T99:99:99.999Z"),
        (
            "codex",
            workflow(),
            format!("rollout-2026-02-23T14-30-22-{uuid}.jsonl"),
            "9999-99-99T99:99:99.999Z",
        ),
        ("qwen", workflow(), format!("{uuid}.jsonl"), "9999-99-99T99:99:99.999Z"),
        ("pi", workflow(), format!("{uuid}.jsonl"), "9999-99-99T99:99:99.999Z"),
        ("strands-sdk", workflow(), format!("session_{ID}"), "9999-99-99T99:99:99.999999+99:99"),
        ("m31a", workflow(), ".m31a".to_owned(), "9999-99-99T99:99:99.999999Z"),
        ("gaia", lifecycle(), format!("{ID}.json"), "9999-99-99T99:99:99.999999+99:99"),
        ("json", workflow(), "a.json".to_owned(), "9999-99-99T99:99:99.999999Z"),
        ("jsonl", workflow(), "a.jsonl".to_owned(), "9999-99-99T99:99:99.999999Z"),
    ] {
        let kind: Format = format.parse().unwrap();
        let (folder, _) = written(&well, &id, kind, &name);
        let mut all = BTreeSet::new();
        for (path, bytes) in crate::seeds::files(folder.path()) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let forms = forms(&text);
            assert!(forms.len() <= 1, "{format}: {}: {forms:?}", path.display());
            all.extend(forms);
        }
        assert!(all.contains(form), "{format}: {all:?}");
        // Its files are read by one program.
        assert!(format != "m31a" || all.len() == 1, "{format}: {all:?}");
        // GAIA keeps no messages.
        if format == "gaia" {
            continue;
        }
        let precision = if form.contains(".999Z") { 1_000 } else { 1 };
        let there = Stepwell::in_memory();
        let back = taken(&there, folder.path());
        assert_eq!(
            moments(&there, &back[0].id, precision),
            moments(&well, &id, precision),
            "{format}"
        );
    }
}

/// When each message was said.
fn moments(well: &Stepwell, id: &SessionId, precision: i64) -> Vec<Time> {
    let messages = log(well, id).into_iter().filter(|it| matches!(it.event, Event::Message(_)));
    messages.map(|it| Time::from_micros(it.at.as_micros() / precision * precision)).collect()
}
