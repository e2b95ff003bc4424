//! Sessions and their events, as the terminal shows them.

use std::time::Duration;

use stepwell::log::{Head, Redactor};
use stepwell::model::{Money, Role, Time};
use stepwell::{Event, Recorded, SessionInfo, Status, Stepwell, StopReason};
use stepwell_runtime::{Runtime, model_name};
use stepwell_terminal::text;
use stepwell_workspace::{Estimates, OtherSession};

use crate::clean::Clean;
use crate::effect::PointsFor;
use crate::session::{Foreign, Point, SessionCard, SessionRow};

/// How much of a text is in a list.
const FRONT: usize = 300;

/// How long ago something was.
pub(super) fn ago(then: Time, now: Time) -> Clean {
    Clean::new(&text::ago(then, now))
}

/// A session in a list. Only what is shown is looked through for secrets: a list is made at each
/// key.
pub(super) fn row(info: &SessionInfo, now: Time, redactor: &Redactor) -> SessionRow {
    let plain = |text: &str| Clean::line(&redactor.redact(text));
    let head = &info.head;
    SessionRow {
        id: head.id.clone(),
        store: None,
        label: head.label.as_deref().map(plain),
        task: Clean::line(front(&redactor.redact(&head.task))),
        status: head.status,
        cut_off: head.stop_reason == Some(StopReason::Crashed),
        rests: rests(head),
        // What a person stopped waits until somebody goes on with it.
        waiting: if head.was_stopped() { 0 } else { head.open_gates },
        used_at: head.updated_at,
        when: ago(head.updated_at, now),
        agent: plain(&head.agent),
        tags: head.tags.iter().map(|tag| plain(tag)).collect(),
        pinned: head.pinned,
        hits: Vec::new(),
        foreign: None,
    }
}

/// Was it forked or taken back, and not run since? Nobody stopped it then, and nothing did.
pub(super) fn rests(head: &Head) -> bool {
    head.status == Status::Interrupted && head.stop_reason.is_none()
}

/// A session of another agent that was not imported, in a list. One whose name is none here cannot
/// be listed.
pub(super) fn foreign_row(session: &OtherSession, now: Time) -> Option<SessionRow> {
    let about = format!("{}\n\nin {}", session.prompt, session.folder);
    let title = if session.title.is_empty() { &session.prompt } else { &session.title };
    Some(SessionRow {
        id: session.id.parse().ok()?,
        store: None,
        label: None,
        task: Clean::line(title),
        status: Status::Idle,
        cut_off: false,
        rests: false,
        waiting: 0,
        used_at: session.used_at(),
        when: ago(session.used_at(), now),
        agent: Clean::line(&session.system),
        tags: Vec::new(),
        pinned: false,
        hits: Vec::new(),
        foreign: Some(Foreign {
            system: Clean::line(&session.system),
            path: session.path.display().to_string(),
            about: Clean::new(&about),
        }),
    })
}

/// The session that is open.
pub(super) fn card(
    well: &Stepwell,
    head: &Head,
    used: Option<u64>,
    runtime: &Runtime,
) -> SessionCard {
    let head = &head.clone().redacted(&runtime.workspace().redactor().with_own_count());
    let gauge = stepwell_runtime::ContextUsage::of(head, runtime);
    let model = gauge.model.unwrap_or_else(|| model_name(head.model_provider(), &head.model));
    let next = runtime.next_run_in(well, head, &stepwell_runtime::RunOptions::default());
    let length = gauge.context.length;
    let context = used.zip(length.filter(|length| *length > 0));
    let left = head.budget.map(|budget| budget.minus(head.spent.cost).max(Money::ZERO));
    SessionCard {
        id: head.id.clone(),
        title: Clean::line(head.label.as_deref().unwrap_or_else(|| front(&head.task))),
        status: head.status,
        model: Clean::line(&model),
        mode: next.ok().map(|next| next.mode),
        phase: head.phase.map(|phase| Clean::line(&phase.to_string())),
        cost: Clean::line(
            &head.spent.price_or(Estimates::new(runtime.workspace()).of(head, &head.spent)),
        ),
        left: left.map(|left| Clean::line(&format!("${left:.2}"))),
        context: context.map(|(used, length)| (used.min(length) * 100 / length) as u8),
        is_flow: head.flow.is_some(),
        is_guided: head.flow.as_ref().is_some_and(|flow| flow.pattern == "guided"),
    }
}

/// An event as a point to go back to; none, if it is not one.
pub(super) fn point(event: &Recorded, purpose: PointsFor, now: Time) -> Option<Point> {
    let at = |seq, kind, text: &str| {
        Some(Point { seq, kind, when: ago(event.at, now), text: Clean::new(text) })
    };
    let timeline = purpose == PointsFor::Timeline;
    match &event.event {
        // Going back to what was said takes it back, to be said otherwise.
        Event::Message(message) if message.is_from_user() => {
            let seq = if timeline { event.seq } else { event.seq.prev() };
            at(seq, "you", &message.text())
        }
        Event::Checkpoint(checkpoint) => at(event.seq, "checkpoint", &checkpoint.name),
        Event::Phase(phase) => at(event.seq, "phase", &phase.to.to_string()),
        _ if !timeline => None,
        Event::Step(step) => at(event.seq, "step", &format!("step {}", step.n)),
        Event::Message(message) if message.role == Role::Assistant => {
            let calls: Vec<_> =
                message.calls().map(|call| format!("{} {}", call.name, call.arguments)).collect();
            at(event.seq, "agent", format!("{}\n{}", message.text(), calls.join("\n")).trim())
        }
        Event::Message(message) if message.role == Role::Tool => {
            let results: Vec<_> = message.results().map(|result| result.text.clone()).collect();
            at(event.seq, "tool", &results.join("\n"))
        }
        Event::File(file) => at(event.seq, "file", &file.path),
        Event::Status(status) => at(event.seq, "status", status.status.as_str()),
        Event::Gate(gate) => at(event.seq, "question", &gate.prompt),
        Event::GateAnswered(answer) => {
            at(event.seq, "answer", &format!("{}: {}", answer.who, answer.answer))
        }
        Event::Error(failure) => at(event.seq, "error", &failure.message),
        Event::Compacted(_) => at(event.seq, "compacted", "the conversation was made shorter"),
        _ => None,
    }
}

fn front(text: &str) -> &str {
    let end = text.char_indices().nth(FRONT).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// A conversation's last messages as Markdown, for a preview.
pub(super) fn preview(events: &[Recorded]) -> Clean {
    let mut text = String::new();
    for event in events {
        let Event::Message(message) = &event.event else { continue };
        let who = match message.role {
            Role::User if !message.is_from_user() => continue,
            Role::User => "you",
            Role::Assistant => "agent",
            Role::System | Role::Tool => continue,
        };
        let said = message.text();
        if !said.trim().is_empty() {
            text.push_str(&format!("**{who}**: {}\n\n", front(said.trim())));
        }
    }
    Clean::new(&text)
}

/// How long files that were listed are good for: what is completed need not be newer.
pub(super) const FILES_KEPT: Duration = Duration::from_secs(10);
