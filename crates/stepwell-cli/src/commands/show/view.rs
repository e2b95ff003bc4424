//! What a model would be shown of a session, and how large it is.

use std::collections::HashSet;

use serde::Serialize;
use stepwell::{
    Event, Head, Kind, Lane, Made, Message, Pins, Seq, SessionId, Span, Stepwell, Timeline, View,
};
use stepwell_agent::context::window::{Entry, Window, is_request};

use super::{parts, role};
use crate::app::{App, Well};
use crate::failure::{Exit, Result};
use crate::output::Style;
use crate::runner::Gauge;
use crate::text::{grouped, indented, one_line};

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a SessionId,
    model: Option<&'a str>,
    /// What would be sent, in all.
    tokens: u64,
    /// How many fit the model.
    context: Option<u64>,
    /// Above how many it is compacted.
    limit: Option<u64>,
    instructions: Instructions<'a>,
    tools: Tools<'a>,
    messages: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Instructions<'a> {
    text: &'a str,
    tokens: u64,
}

#[derive(Serialize)]
struct Tools<'a> {
    names: Vec<&'a str>,
    tokens: u64,
}

#[derive(Serialize)]
struct Shown<'a> {
    seq: Seq,
    made: &'static str,
    pinned: bool,
    tokens: u64,
    #[serde(flatten)]
    message: &'a Message,
}

/// How large the whole of what would be sent is, if the model were asked now.
pub(crate) fn tokens(well: &Stepwell, id: &SessionId, app: &App) -> Result<u64> {
    let head = well.standing(id)?.head;
    let gauge = Gauge::of(&head, app);
    Ok(whole(&window(well, head, &gauge)?, &gauge))
}

fn whole(window: &Window, gauge: &Gauge) -> u64 {
    let tools = gauge.context.counter().tools(&gauge.tools);
    gauge.context.calibration.estimate(window.tokens() + window.fixed() + tools)
}

/// What the model would be shown of a session.
fn window(well: &Stepwell, head: Head, gauge: &Gauge) -> Result<Window> {
    let events = well.store().events(&head.id, Span::ALL)?.intact(&head.id)?;
    let timeline = Timeline::at(head.seq, events.iter());
    let said = |message: &Message| message.lane == Lane::main() && is_request(message);
    let first = events.iter().find(|event| {
        timeline.contains(event.seq) && matches!(&event.event, Event::Message(it) if said(it))
    });
    let first = first.map(|event| event.seq);
    let view = View::of(&Lane::main(), events);
    let window = Window::new(Lane::main(), gauge.context.counter());
    Ok(window.of(view, first, |_| false).with_goal(head.goal))
}

/// Prints what would be sent if the model were asked now.
pub(super) fn print(well: &Well, id: &SessionId, app: &mut App) -> Result<Exit> {
    let head = well.standing(id)?.head;
    let gauge = Gauge::of(&head, app);
    let pins = Pins::of(&well.store().facts(id, &[Kind::Edited])?);
    let window = window(well, head, &gauge)?;
    let estimate = |counted: u64| gauge.context.calibration.estimate(counted);
    let tools = gauge.context.counter().tools(&gauge.tools);
    // A call and its results are pinned together, whichever of them was named.
    let is_pinned = |entry: &&Entry| {
        let named = entry.answers.iter().flatten().chain([&entry.seq]);
        named.into_iter().any(|seq| pins.contains(*seq))
    };
    let pinned: HashSet<Seq> =
        window.entries().iter().filter(is_pinned).map(|entry| entry.seq).collect();
    let messages = window.messages().iter().zip(window.entries()).map(|(message, entry)| Shown {
        seq: entry.seq,
        made: match entry.made {
            Made::Summary => "summary",
            Made::Results => "results",
            Made::Recorded | Made::Aside => "message",
        },
        pinned: pinned.contains(&entry.seq),
        tokens: estimate(entry.tokens),
        message,
    });
    let answer = Answer {
        id,
        model: gauge.model.as_deref(),
        tokens: whole(&window, &gauge),
        context: gauge.context.length,
        limit: gauge.context.limit().filter(|_| gauge.context.policy.auto),
        instructions: Instructions {
            text: window.instructions(),
            tokens: estimate(window.fixed()),
        },
        tools: Tools {
            names: gauge.tools.iter().map(|tool| tool.name.as_str()).collect(),
            tokens: estimate(tools),
        },
        messages: messages.collect(),
    };
    if app.out.is_json() {
        app.out.object(&answer)?;
    } else {
        text(&answer, app)?;
    }
    Ok(Exit::Done)
}

fn text(answer: &Answer<'_>, app: &mut App) -> Result<()> {
    let paint = app.out.paint;
    let title = |text: &str, tokens: u64, app: &mut App| {
        let title = paint.paint(Style::Bold, text);
        app.out.line(format_args!("{title} {}", paint.paint(Style::Dim, &tokens_of(tokens))))
    };
    if !answer.instructions.text.is_empty() {
        title("instructions", answer.instructions.tokens, app)?;
        app.out.line(indented(answer.instructions.text, "  "))?;
        app.out.line("")?;
    }
    if !answer.tools.names.is_empty() {
        title("tools", answer.tools.tokens, app)?;
        app.out.line(format_args!("  {}", one_line(&answer.tools.names.join(", "))))?;
        app.out.line("")?;
    }
    for shown in &answer.messages {
        let who = if shown.made == "summary" { "summary" } else { role(shown.message.role) };
        let pinned = if shown.pinned { ", pinned" } else { "" };
        title(&format!("{} {who}{pinned}", shown.seq), shown.tokens, app)?;
        for part in parts(shown.message) {
            app.out.line(indented(&part, "  "))?;
        }
        app.out.line("")?;
    }
    let of = answer.context.map(|n| format!(" of {}", grouped(n))).unwrap_or_default();
    let limit = answer.limit.map(|n| format!("; compacted above {}", grouped(n)));
    let model = answer.model.map(|name| format!(" for {}", one_line(name))).unwrap_or_default();
    let (all, limit) = (tokens_of(answer.tokens), limit.unwrap_or_default());
    app.out.line(format_args!("{} messages, {all}{of}{model}{limit}", answer.messages.len()))
}

fn tokens_of(tokens: u64) -> String {
    format!("about {} tokens", grouped(tokens))
}
