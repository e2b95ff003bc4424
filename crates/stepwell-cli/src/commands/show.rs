use stepwell::log::Timeline;
use stepwell::sqlite::Access;
use stepwell::store::{Damage, Span};
use stepwell::{Event, Recorded, SessionId, Stepwell};
use stepwell_runtime::command::{Reply, SessionCommand, SessionPage};
use stepwell_runtime::inspect::Depth;
use stepwell_terminal::events::{detail, parts, speaker};
use stepwell_terminal::reply::{Rendered, words};
use stepwell_terminal::text::{indented, second, visible};
use stepwell_terminal::{Style, note};
use stepwell_wire::{Messages, RecordedMessage, SessionDetails};
use stepwell_workspace::doctor;

use crate::app::App;
use crate::failure::{Exit, Failure, Result, exit_of_run};

/// Shows a session: what it is, what it spent, its files, its last messages.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Shows the whole conversation.
    #[arg(long)]
    messages: bool,
    /// Shows every event on a line.
    #[arg(long)]
    events: bool,
    /// Shows the sessions that grew out of it.
    #[arg(long)]
    tree: bool,
    /// Shows what the model would be sent now, and about how many tokens each message has. Calls
    /// that are run first, and instructions that changed since the last run, are not in it yet.
    #[arg(long, conflicts_with_all = ["messages", "events", "tree"])]
    view: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.view {
        return app.do_to(&args.session, SessionCommand::Context);
    }
    let depth = if args.tree { Depth::Family } else { Depth::Alone };
    let mut reply = app.of_session(&args.session, SessionCommand::Show(depth))?;
    let Reply::Details(page) = &mut reply else { return Ok(Exit::Done) };
    if args.messages || args.events {
        // All of them are shown below.
        page.last.clear();
        page.damage.clone_from(&page.details.info.damage);
    }
    let (well, id) =
        app.workspace.open_session(page.details.info.head.id.as_str(), Access::Read)?;
    if app.out.is_json() {
        whole(args, page, &well, app)?;
    }
    let Rendered { lines, .. } = words(&reply, &app.style());
    let Reply::Details(page) = &mut reply else { return Ok(Exit::Done) };
    if !app.out.is_json() {
        lines.into_iter().try_for_each(|line| app.out.line(line))?;
        let log = Log { well: &well, id: &id, timeline: &page.details.timeline };
        let mut damage = None;
        if args.events {
            damage = events(log, app)?;
        }
        if args.messages {
            damage = messages(log, app)?.or(damage);
        }
        page.damage = damage.or(page.damage.take());
    }
    if page.damage.is_some() {
        doctor::note_damage(&app.workspace, &id);
    }
    let is_damaged = page.damage.is_some();
    let Rendered { notes, hints, refused, .. } = words(&reply, &app.style());
    notes.into_iter().for_each(note);
    if !app.out.is_json() {
        hints.into_iter().for_each(note);
    }
    match refused {
        _ if is_damaged => Ok(Exit::Damaged),
        Some(refusal) => Err(Failure::explained(refusal.why, exit_of_run(refusal.kind))),
        None => Ok(Exit::Done),
    }
}

/// A session's log, and which of its events count.
#[derive(Clone, Copy)]
struct Log<'a> {
    well: &'a Stepwell,
    id: &'a SessionId,
    timeline: &'a Timeline,
}

impl Log<'_> {
    fn each(self, look: impl FnMut(Recorded) -> Result<()>) -> Result<Option<Damage>> {
        self.well.log(self.id, Span::ALL).each(look)
    }
}

/// The whole answer as one object.
fn whole(args: &Args, page: &mut SessionPage, well: &Stepwell, app: &mut App) -> Result<()> {
    let id = page.details.info.head.id.clone();
    let mut all = Vec::new();
    if args.messages || args.events {
        let log = Log { well, id: &id, timeline: &page.details.timeline };
        let damage = log.each(|event| {
            all.push(event);
            Ok(())
        })?;
        page.damage = damage.or(page.damage.take());
    }
    let answer: &mut SessionDetails = &mut page.details.answer;
    if args.messages {
        let is_message = |event: &&Recorded| matches!(event.event, Event::Message(_));
        let message = |recorded: Recorded| RecordedMessage {
            rewound: !page.details.timeline.contains(recorded.seq),
            recorded,
        };
        let messages = all.iter().filter(is_message).cloned().map(message).collect();
        answer.session.messages = Messages::All(messages);
    }
    if args.events {
        answer.events = Some(all);
    } else if !args.messages {
        answer.last_messages = Some(page.last.clone());
    }
    app.out.object(answer)
}

fn events(log: Log<'_>, app: &mut App) -> Result<Option<Damage>> {
    app.out.line("")?;
    app.out.line(app.out.paint.paint(Style::Bold, "Events"))?;
    log.each(|event| {
        let says = detail(&event.event);
        let (seq, at, kind) = (event.seq, second(event.at), visible(event.event.kind()));
        let live = rewound(log.timeline, &event);
        let line = format!("  {seq:>5} {at} {kind:<13} {says}{live}");
        app.out.line(app.cut(&line).trim_end())
    })
}

/// Says of an event that it no longer counts.
fn rewound(timeline: &Timeline, event: &Recorded) -> &'static str {
    if timeline.contains(event.seq) { "" } else { " (rewound)" }
}

fn messages(log: Log<'_>, app: &mut App) -> Result<Option<Damage>> {
    log.each(|event| {
        let Event::Message(message) = &event.event else { return Ok(()) };
        let live = rewound(log.timeline, &event);
        let lane = match message.lane.as_str() {
            "main" => String::new(),
            lane => format!(" in {lane}"),
        };
        let title = format!("{} {}{lane}{live}", event.seq, speaker(message));
        app.out.line("")?;
        app.out.line(app.out.paint.paint(Style::Bold, &title))?;
        parts(message).iter().try_for_each(|part| app.out.line(indented(part, "  ")))
    })
}
