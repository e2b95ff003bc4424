//! A run killed at every append, and before and after each call of the model and each tool: after a
//! resume it ends as if nothing had happened.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use stepwell::model::{FileState, Money, Outcome, Role};
use stepwell::store::Span;
use stepwell::{Event, Lane, Message, Recorded, Status, Stepwell, View};
use stepwell_agent::provider::{Request, Turn};

use crate::context::both_vendors_take;

const RUNNER: &str = env!("CARGO_BIN_EXE_stepwell-test-runner");

/// Twelve steps with tools that read, change files, and have effects that cannot be undone.
fn script() -> String {
    let mut answers = String::new();
    for n in 1..=11 {
        let calls = match n % 3 {
            1 => format!(
                "[{{tool: write_file, arguments: {{path: f{n}.txt, content: 'text {n}'}}}}, \
                 {{tool: run_command, arguments: {{command: 'echo step-{n} >> log.txt'}}}}]"
            ),
            2 => format!(
                "[{{tool: edit_file, arguments: {{path: f{}.txt, old_text: text, new_text: changed}}}}, \
                 {{tool: read_file, arguments: {{path: f{}.txt}}}}]",
                n - 1,
                n - 1
            ),
            _ => format!(
                "[{{tool: tasks, arguments: {{action: add, tasks: [{{description: 'plan {n}'}}, \
                 {{description: 'check {n}'}}]}}}}, \
                 {{tool: run_command, arguments: {{command: 'echo tick >> ticks.txt'}}}}]"
            ),
        };
        answers.push_str(&format!(
            "  - {{text: 'Step {n}.', calls: {calls}, usage: {{input: {n}00, output: {n}}}}}\n"
        ));
    }
    format!(
        "prices: {{input: '3', output: '15'}}\nanswers:\n{answers}  \
         - {{text: Done., usage: {{input: 1200, output: 12}}}}\n"
    )
}

/// Runs until the end, or until the process dies at the given point.
fn run(root: &Path, script: &Path, kind: &str, n: usize) -> Option<i32> {
    let mut command = Command::new(RUNNER);
    command.arg(root).arg(script).arg(kind).arg(n.to_string());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let code = output.status.code();
    assert!(code.is_none() || code == Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    code
}

/// The workspace's files.
fn files(root: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(root).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

/// What a finished run shows.
struct Seen {
    files: BTreeMap<String, String>,
    answers: usize,
    steps: u64,
    cost: Money,
    /// Calls with an unknown outcome.
    unknown: usize,
    /// The planned tasks, each time that they were recorded.
    planned: Vec<(String, String)>,
    /// The summary of each compaction.
    summaries: Vec<Option<String>>,
    /// The model's final conversation.
    shown: Vec<String>,
}

/// Both vendors accept the model's conversation before each of its answers.
fn every_request_was_valid(events: &[Recorded]) {
    let is_answer = |event: &&Recorded| matches!(&event.event, Event::Message(message) if message.role == Role::Assistant);
    for answer in events.iter().filter(is_answer) {
        let before: Vec<Recorded> =
            events.iter().filter(|event| event.seq < answer.seq).cloned().collect();
        let shown = View::of(&Lane::main(), before).messages;
        let messages: Vec<Message> = shown.into_iter().map(|shown| shown.message).collect();
        let request = Request {
            model: "m",
            system: "",
            messages: &messages,
            tools: &[],
            max_output: 100,
            turn: Turn::default(),
        };
        both_vendors_take(request, &answer.seq);
    }
}

fn look(root: &Path) -> Seen {
    let well = Stepwell::open(root.join(".stepwell")).unwrap();
    let id = "run".parse().unwrap();
    let head = well.info(&id).unwrap().head;
    assert_eq!(head.status, Status::Success);
    assert!(well.store().maintain().verify(&id).unwrap().is_sound());
    let events = well.store().events(&id, Span::ALL).unwrap().events;
    let answers = events.iter().filter(
        |event| matches!(&event.event, Event::Message(message) if message.role == Role::Assistant),
    );
    let unknown = events.iter().filter(
        |event| matches!(&event.event, Event::ToolFinished(it) if it.outcome == Outcome::Unknown),
    );
    every_request_was_valid(&events);
    // Wherever the process died, the content that a file tool replaced is kept for a rewind.
    let lost = events.iter().filter(|event| match &event.event {
        Event::File(file) => match &file.before {
            FileState::NotCaptured { why, .. } => why == "the run was interrupted",
            _ => false,
        },
        _ => false,
    });
    assert_eq!(lost.count(), 0);
    let planned = events.iter().filter_map(|event| match &event.event {
        Event::Task(task) => Some((task.id.clone(), task.description.clone())),
        _ => None,
    });
    let summaries = events.iter().filter_map(|event| match &event.event {
        Event::Compacted(it) => Some(it.summary.clone()),
        _ => None,
    });
    let summaries = summaries.collect();
    let view = View::of(&Lane::main(), events.clone());
    let shown = view.messages.iter().map(|it| format!("{:?}", it.message.parts)).collect();
    Seen {
        planned: planned.collect(),
        summaries,
        shown,
        files: files(root),
        answers: answers.count(),
        steps: head.steps,
        cost: head.spent.cost,
        unknown: unknown.count(),
    }
}

/// Eleven steps that read a file, in a context with room for a few.
fn growing_script() -> String {
    let text = "what the file says, line by line ".repeat(12);
    let mut answers = format!(
        "  - {{text: Begin., calls: [{{tool: write_file, arguments: {{path: f.txt, content: '{text}'}}}}]}}\n"
    );
    for n in 2..=11 {
        answers.push_str(&format!(
            "  - {{text: 'Step {n}.', calls: [{{tool: read_file, arguments: {{path: f.txt}}}}]}}\n"
        ));
    }
    let summaries: String = (1..=9)
        .map(|n| {
            format!(
                "  - {{text: \"## Done\\n- part {n}\", usage: {{input: {n}00, output: {n}}}}}\n"
            )
        })
        .collect();
    format!(
        "prices: {{input: '3', output: '15'}}\ncontext: 2940\nanswers:\n{answers}  - {{text: Done.}}\n\
         summaries:\n{summaries}"
    )
}

/// A compaction happens completely or not at all: it is one event, wherever the process died before
/// it.
#[test]
fn a_run_that_is_killed_while_it_shrinks_ends_as_one_that_was_not() {
    let top = tempfile::tempdir().unwrap();
    let top = std::fs::canonicalize(top.path()).unwrap();
    let script_path = top.join("script.yaml");
    std::fs::write(&script_path, growing_script()).unwrap();
    let place = |name: &str| {
        let root = top.join(name);
        std::fs::create_dir(&root).unwrap();
        root
    };
    let whole = place("whole");
    assert_eq!(run(&whole, &script_path, "never", 0), Some(0));
    let expected = look(&whole);
    assert_eq!((expected.answers, expected.steps), (12, 12));
    assert!(expected.summaries.len() >= 3, "{:?}", expected.summaries);
    assert!(expected.cost > Money::ZERO && expected.shown.len() < 15);

    let mut killed = 0;
    for kind in ["append", "ask_summary", "summarised"] {
        for n in 1.. {
            let root = place(&format!("{kind}-{n}"));
            if run(&root, &script_path, kind, n).is_some() {
                break;
            }
            killed += 1;
            assert_eq!(run(&root, &script_path, "never", 0), Some(0), "{kind} {n}");
            let seen = look(&root);
            assert_eq!(seen.summaries, expected.summaries, "{kind} {n}");
            assert_eq!(seen.shown, expected.shown, "{kind} {n}");
            assert_eq!((seen.answers, seen.cost), (expected.answers, expected.cost), "{kind} {n}");
            std::fs::remove_dir_all(&root).unwrap();
        }
    }
    assert!(killed > 40, "{killed}");
}

#[test]
fn a_run_that_is_killed_anywhere_ends_as_one_that_was_not() {
    let top = tempfile::tempdir().unwrap();
    let top = std::fs::canonicalize(top.path()).unwrap();
    let script_path = top.join("script.yaml");
    std::fs::write(&script_path, script()).unwrap();
    let place = |name: &str| {
        let root = top.join(name);
        std::fs::create_dir(&root).unwrap();
        root
    };
    let whole = place("whole");
    assert_eq!(run(&whole, &script_path, "never", 0), Some(0));
    let expected = look(&whole);
    assert_eq!((expected.answers, expected.steps, expected.unknown), (12, 12, 0));
    assert_eq!(expected.files["f1.txt"], "changed 1");
    assert_eq!(expected.files["log.txt"].lines().count(), 4);
    let last = expected.planned.last().unwrap();
    assert_eq!((expected.planned.len(), last.0.as_str(), last.1.as_str()), (6, "6", "check 9"));

    let mut killed = 0;
    for kind in ["append", "ask", "answered", "tool", "ran"] {
        for n in 1.. {
            let root = place(&format!("{kind}-{n}"));
            if run(&root, &script_path, kind, n).is_some() {
                // The run ended before that point.
                break;
            }
            killed += 1;
            assert_eq!(run(&root, &script_path, "never", 0), Some(0), "{kind} {n}");
            let seen = look(&root);
            // Each answered call is present and paid for once.
            assert_eq!(seen.answers, expected.answers, "{kind} {n}");
            assert_eq!(seen.steps, expected.steps, "{kind} {n}");
            assert_eq!(seen.cost, expected.cost, "{kind} {n}");
            assert_eq!(seen.planned, expected.planned, "{kind} {n}");
            assert!(seen.unknown <= 1, "{kind} {n}");
            for (name, text) in &expected.files {
                let here = seen.files.get(name).map_or("", String::as_str);
                let (lines, ran) = (text.lines().count(), here.lines().count());
                if seen.unknown == 1 && (name == "log.txt" || name == "ticks.txt") {
                    // An interrupted command ran once or not at all, never twice.
                    assert!(ran == lines || ran + 1 == lines, "{kind} {n}: {name}: {here}");
                } else {
                    assert_eq!(here, text, "{kind} {n}: {name}");
                }
            }
            assert!(seen.files.keys().all(|name| expected.files.contains_key(name)), "{kind} {n}");
            std::fs::remove_dir_all(&root).unwrap();
        }
    }
    assert!(killed > 100, "{killed}");
}
