//! Context: the cost of counting a conversation's tokens, and of planning a compaction.
//!
//! `cargo bench -p stepwell-bench --bench context`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]

use std::hint::black_box;

use stepwell::model::Time;
use stepwell::store::Span;
use stepwell::work::Pins;
use stepwell::{Lane, Message, NewEvent, Recorded, Seq, Stepwell, View};
use stepwell_agent::context::plan::{Ask, Keep, Plan, Room, Why};
use stepwell_agent::context::tokens::{Counter, Family};
use stepwell_agent::context::window::Window;
use stepwell_bench::{Table, Times};

const MESSAGES: u64 = 10_000;

/// A megabyte of prose and code.
fn megabyte() -> String {
    let text = concat!(
        include_str!("../../docs/format.md"),
        include_str!("../../docs/run.md"),
        include_str!("../../crates/stepwell/src/log/view.rs"),
        include_str!("../../crates/stepwell/src/sessions/session.rs"),
    );
    text.chars().cycle().take(1 << 20).collect()
}

/// A conversation of this many messages of 1 KB: a request, then calls with their results.
fn conversation() -> Vec<NewEvent> {
    let text = "some text of a file, and what it says ".repeat(27);
    let message = |n: u64| match n {
        0 => Message::user("go"),
        n if n % 2 == 1 => Message::assistant(text.as_str()).calling(format!("c{n}"), "look", "{}"),
        n => Message::tool_result(format!("c{}", n - 1), text.as_str()),
    };
    (0..MESSAGES).map(|n| message(n).into()).collect()
}

fn main() {
    let table = Table::begin();
    let text = megabyte();
    // Unpacked once a process.
    black_box(Counter(Family::O200k).text("warm"));
    let by_vocabulary = || {
        black_box(Counter(Family::O200k).text(black_box(&text)));
    };
    let by_ratio = || {
        black_box(Counter(Family::Claude).text(black_box(&text)));
    };
    let letters = || {
        black_box(black_box(&text).chars().filter(|c| c.is_alphabetic()).count());
    };
    let (exact, read) = Times::of_both(6, 5, by_vocabulary, letters);
    table.row("estimate of 1 MB, OpenAI's vocabulary", &exact, ("its letters counted", &read), "");
    let (ratio, read) = Times::of_both(6, 5, by_ratio, letters);
    table.row("estimate of 1 MB, by ratios", &ratio, ("its letters counted", &read), "");

    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let well = Stepwell::open(folder.path()).unwrap();
    let session = well.create(well.draft("bench")).unwrap();
    session.append_all(conversation()).unwrap();
    let events = || session.events(Span::ALL).unwrap().intact(session.id()).unwrap();
    let log: Vec<Recorded> = events();
    assert!(log.iter().all(|event| event.at > Time::EPOCH));
    let lane = Lane::main();
    let full_view = || {
        black_box(View::of(&lane, events()));
    };
    let read_only = || {
        black_box(events());
    };
    let (view, read) = Times::of_both(6, 3, full_view, read_only);
    table.row("full view of 10,000 messages of 1 KB", &view, ("its events read", &read), "");

    let counter = Counter(Family::Claude);
    let shown = View::of(&lane, log);
    let on_view = || {
        let window = Window::new(lane.clone(), counter);
        black_box(window.of(shown.clone(), Some(Seq::new(2)), |_| false));
    };
    let copied = || {
        black_box(shown.clone());
    };
    let (taken, copy) = Times::of_both(6, 3, on_view, copied);
    table.row("window on that view, each message estimated", &taken, ("a copy of it", &copy), "");

    let window = Window::new(lane.clone(), counter).of(shown.clone(), Some(Seq::new(2)), |_| false);
    let pins: Pins = (1..20).map(|n| Seq::new(n * 100)).collect();
    let room = Room { fixed: 1_000, limit: 108_000, full: 120_000 };
    let keep = Keep { tokens: 8_000, messages: None };
    let plan = Times::of(50, || {
        black_box(Plan::of(&Ask::new(&window, &pins, room, keep, Why::Near)).unwrap());
    });
    table.row("plan of what goes, of 10,000 messages", &plan, ("the window", &taken), "");
}
