//! What a model would be shown of a session, and how large it is.

use std::collections::HashSet;

use stepwell::{
    Driver, Event, Head, Kind, Lane, Made, Message, Part, Pins, Role, Seq, SessionId, Span,
    Stepwell, Timeline, View,
};
use stepwell_agent::context::window::{Entry, Window, is_request};
use stepwell_wire::{ModelView, ViewInstructions, ViewMessage, ViewMessageKind, ViewTools};

use super::{parts, role};
use crate::app::{App, Well};
use crate::failure::{Exit, Result};
use crate::output::Style;
use stepwell_runtime::Gauge;

use crate::runner;
use crate::text::{grouped, indented, one_line};

/// How large the whole of what would be sent is, if the model were asked now.
pub(crate) fn tokens(well: &Stepwell, id: &SessionId, app: &App) -> Result<u64> {
    let head = well.standing(id)?.head;
    let gauge = Gauge::of(&head, &runner::runtime(app));
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
    let started: Vec<(Seq, String)> = events
        .iter()
        .filter(|event| timeline.contains(event.seq))
        .filter_map(|event| match &event.event {
            Event::ToolStarted(it) => Some((event.seq, it.call_id.clone())),
            _ => None,
        })
        .collect();
    let mut view = View::of(&Lane::main(), events);
    mark_not_run(&mut view, &started);
    // A session of which only the beginning counts begins with its task.
    let is_bare = view.messages.iter().all(|it| it.message.role == Role::System);
    if is_bare && head.driver == Driver::Own && head.flow.is_none() {
        let (seq, made, answers) = (head.seq.next(), Made::Recorded, Vec::new());
        let message = Message::user(&*head.task);
        view.messages.push(stepwell::Shown { seq, place: seq, made, answers, message });
    }
    let window = Window::new(Lane::main(), gauge.context.counter());
    Ok(window.of(view, first, |_| false).with_goal(head.goal))
}

/// What stands in for the result of a call that nobody began to run. It is run before the model
/// is asked, or answered otherwise, if someone says something else first.
const NOT_RUN: &str = "not run yet";

/// Tells calls that were never begun from those that were cut off. Only the last ones can be such.
fn mark_not_run(view: &mut View, started: &[(Seq, String)]) {
    let Some(last) = view.messages.last_mut().filter(|it| it.made == Made::Results) else { return };
    for (part, answer) in last.message.parts.iter_mut().zip(&last.answers) {
        let (Part::ToolResult(result), None) = (part, answer) else { continue };
        // An id that was used before has a suffix in the view.
        let is_its = |id: &String| {
            let rest = result.call_id.strip_prefix(id.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        if !started.iter().any(|(seq, id)| *seq > last.seq && is_its(id)) {
            NOT_RUN.clone_into(&mut result.text);
        }
    }
}

/// Prints what would be sent if the model were asked now.
pub(super) fn print(well: &Well, id: &SessionId, app: &mut App) -> Result<Exit> {
    let head = well.standing(id)?.head;
    let gauge = Gauge::of(&head, &runner::runtime(app));
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
    let messages =
        window.messages().iter().zip(window.entries()).map(|(message, entry)| ViewMessage {
            seq: entry.seq,
            made: match entry.made {
                Made::Summary => ViewMessageKind::Summary,
                Made::Results => ViewMessageKind::Results,
                Made::Recorded | Made::Aside => ViewMessageKind::Message,
            },
            pinned: pinned.contains(&entry.seq),
            tokens: estimate(entry.tokens),
            message: message.clone(),
        });
    let answer = ModelView {
        id: id.clone(),
        model: gauge.model.clone(),
        tokens: whole(&window, &gauge),
        context: gauge.context.length,
        limit: gauge.context.limit().filter(|_| gauge.context.policy.auto),
        instructions: ViewInstructions {
            text: window.instructions().to_owned(),
            tokens: estimate(window.fixed()),
        },
        tools: ViewTools {
            names: gauge.tools.iter().map(|tool| tool.name.clone()).collect(),
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

fn text(answer: &ModelView, app: &mut App) -> Result<()> {
    let paint = app.out.paint;
    let title = |text: &str, tokens: u64, app: &mut App| {
        let title = paint.paint(Style::Bold, text);
        app.out.line(format_args!("{title} {}", paint.paint(Style::Dim, &tokens_of(tokens))))
    };
    if !answer.instructions.text.is_empty() {
        title("instructions", answer.instructions.tokens, app)?;
        app.out.line(indented(&answer.instructions.text, "  "))?;
        app.out.line("")?;
    }
    if !answer.tools.names.is_empty() {
        title("tools", answer.tools.tokens, app)?;
        app.out.line(format_args!("  {}", one_line(&answer.tools.names.join(", "))))?;
        app.out.line("")?;
    }
    for shown in &answer.messages {
        let who = match shown.made {
            ViewMessageKind::Summary => "summary",
            _ => role(shown.message.role),
        };
        let pinned = if shown.pinned { ", pinned" } else { "" };
        title(&format!("{} {who}{pinned}", shown.seq), shown.tokens, app)?;
        for part in parts(&shown.message) {
            app.out.line(indented(&part, "  "))?;
        }
        app.out.line("")?;
    }
    let of = answer.context.map(|n| format!(" of {}", grouped(n))).unwrap_or_default();
    let limit = answer.limit.map(|n| format!("; compacted above {}", grouped(n)));
    let model =
        answer.model.as_ref().map(|name| format!(" for {}", one_line(name))).unwrap_or_default();
    let (all, limit) = (tokens_of(answer.tokens), limit.unwrap_or_default());
    app.out.line(format_args!("{} messages, {all}{of}{model}{limit}", answer.messages.len()))
}

fn tokens_of(tokens: u64) -> String {
    format!("about {} tokens", grouped(tokens))
}
