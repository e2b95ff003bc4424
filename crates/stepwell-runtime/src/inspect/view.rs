//! What a model would be shown of a session, now or at an earlier point, and how large it is.

use std::collections::HashSet;

use stepwell::log::{Head, ImportedCalls, MessageOrigin, State, Timeline};
use stepwell::model::{Driver, Part, Role};
use stepwell::store::Span;
use stepwell::work::Pins;
use stepwell::{Event, Lane, Message, Recorded, Seq, SessionId, Stepwell, View};
use stepwell_agent::context::window::{Entry, Window, is_request};
use stepwell_wire::{ModelView, ViewInstructions, ViewMessage, ViewMessageKind, ViewTools};

use crate::context_usage::ContextUsage;
use crate::error::Result;
use crate::runtime::Runtime;

/// What is looked at: a conversation, and up to where.
#[derive(Clone, Debug)]
pub struct Viewed {
    /// The conversation.
    pub lane: Lane,
    /// The last event that counts; absent, all do.
    pub at: Option<Seq>,
}

impl Default for Viewed {
    fn default() -> Self {
        Self { lane: Lane::main(), at: None }
    }
}

/// How large the whole of what would be sent is, if the model were asked now.
///
/// # Errors
/// If the session cannot be read.
pub fn tokens(runtime: &Runtime, well: &Stepwell, id: &SessionId) -> Result<u64> {
    let then = Then::of(well, id, None)?;
    let usage = ContextUsage::of(&then.head, runtime);
    Ok(whole(&window(then, &usage, &Lane::main()), &usage))
}

fn whole(window: &Window, usage: &ContextUsage) -> u64 {
    let tools = usage.context.counter().tools(&usage.tools);
    usage.context.calibration.estimate(window.tokens() + window.fixed() + tools)
}

/// A session as it was at a point: with the agent, the model and the goal of then.
struct Then {
    head: Head,
    events: Vec<Recorded>,
}

impl Then {
    fn of(well: &Stepwell, id: &SessionId, at: Option<Seq>) -> Result<Self> {
        let now = well.info(id)?.head;
        let mut events: Vec<Recorded> = well.store().events(id, Span::ALL)?.intact(id)?;
        let Some(at) = at.filter(|at| *at < now.seq) else {
            events.retain(|event| event.seq <= now.seq);
            return Ok(Self { head: now, events });
        };
        events.retain(|event| event.seq <= at);
        // Before its first event it is as it was made.
        let head = State::fold(&events).map_or(Head { seq: at, ..now }, |state| state.head);
        Ok(Self { head, events })
    }

    /// The messages that no compaction could take out of the view then.
    fn pins(&self) -> Pins {
        Pins::of(&self.events)
    }
}

/// What the model would be shown of a session.
fn window(then: Then, usage: &ContextUsage, lane: &Lane) -> Window {
    let Then { head, events } = then;
    let last = head.seq;
    let timeline = Timeline::at(last, events.iter());
    let said = |message: &Message| message.lane == *lane && is_request(message);
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
    let elsewhere = ImportedCalls::of(&events);
    let mut view = View::of(lane, events);
    mark_not_run(&mut view, &started, &elsewhere);
    // A session of which only the beginning counts begins with its task.
    let is_bare = view.messages.iter().all(|it| it.message.role == Role::System);
    if is_bare && head.driver == Driver::Own && head.flow.is_none() {
        let (seq, made, answers) = (last.next(), MessageOrigin::Recorded, Vec::new());
        let message = Message::user(&*head.task);
        view.messages.push(stepwell::log::ViewMessage { seq, place: seq, made, answers, message });
    }
    let window = Window::new(lane.clone(), usage.context.counter());
    window.of(view, first, |_| false).with_goal(head.goal)
}

/// What stands in for the result of a call that nobody began to run. It is run before the model
/// is asked, or answered otherwise, if someone says something else first.
const NOT_RUN: &str = "not run yet";

/// Tells calls that were never begun from those that were cut off, here or elsewhere. Only the last
/// ones can be such.
fn mark_not_run(view: &mut View, started: &[(Seq, String)], elsewhere: &ImportedCalls) {
    let Some(last) = view.messages.last_mut().filter(|it| it.made == MessageOrigin::Results) else {
        return;
    };
    for (part, answer) in last.message.parts.iter_mut().zip(&last.answers) {
        let (Part::ToolResult(result), None) = (part, answer) else { continue };
        // An id that was used before has a suffix in the view.
        let is_its = |id: &str| {
            let rest = result.call_id.strip_prefix(id);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let begun = started.iter().any(|(seq, id)| *seq > last.seq && is_its(id));
        if !begun && !elsewhere.made_at(last.seq).any(is_its) {
            NOT_RUN.clone_into(&mut result.text);
        }
    }
}

/// What would be sent if the model were asked there.
///
/// # Errors
/// If the session cannot be read.
pub fn model_view(
    runtime: &Runtime,
    well: &Stepwell,
    id: &SessionId,
    viewed: &Viewed,
) -> Result<ModelView> {
    let then = Then::of(well, id, viewed.at)?;
    let usage = ContextUsage::of(&then.head, runtime);
    let pins = then.pins();
    let window = window(then, &usage, &viewed.lane);
    let estimate = |counted: u64| usage.context.calibration.estimate(counted);
    let tools = usage.context.counter().tools(&usage.tools);
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
                MessageOrigin::Summary => ViewMessageKind::Summary,
                MessageOrigin::Results => ViewMessageKind::Results,
                MessageOrigin::Recorded | MessageOrigin::Aside => ViewMessageKind::Message,
            },
            pinned: pinned.contains(&entry.seq),
            tokens: estimate(entry.tokens),
            message: message.clone(),
        });
    Ok(ModelView {
        id: id.clone(),
        model: usage.model.clone(),
        tokens: whole(&window, &usage),
        context: usage.context.length,
        limit: usage.context.limit().filter(|_| usage.context.policy.auto),
        instructions: ViewInstructions {
            text: window.instructions().to_owned(),
            tokens: estimate(window.fixed()),
        },
        tools: ViewTools {
            names: usage.tools.iter().map(|tool| tool.name.clone()).collect(),
            tokens: estimate(tools),
        },
        messages: messages.collect(),
    })
}
