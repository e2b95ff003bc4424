use std::collections::HashSet;

use stepwell::{
    Access, Compacted, Event, Lane, MessageOrigin, Recorded, Session, SessionId, Span, Undone,
    View, ViewMessage,
};
use stepwell_agent::context::plan::Why;
use stepwell_agent::run::Shrunk;
use stepwell_runtime::inspect;
use stepwell_wire::{Compaction, CompactionDiff, CompactionUndone, ViewMove};

use super::resume::refuse_external;
use super::show;
use stepwell_workspace::housekeeping::tidy;

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Style, note};
use crate::runner;
use crate::text::{grouped, indented};

/// Shortens a conversation: a summary replaces old messages.
///
/// The goal, instructions, pinned messages, the latest request and calls without results stay
/// as they are, and so does the newest (compaction.keep_tokens). The log keeps everything.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Leaves old messages out, without asking a model for a summary.
    #[arg(long)]
    truncate: bool,
    /// Shows what the model no longer sees, and what stands in its place.
    #[arg(long, conflicts_with = "truncate")]
    diff: bool,
    /// Takes the last compaction back: the model is shown the originals again.
    #[arg(long, conflicts_with_all = ["truncate", "diff"])]
    undo: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.diff {
        let (well, id) = app.session(&args.session, Access::Read)?;
        return diff(&well, &id, app);
    }
    let (well, id) = app.session(&args.session, Access::Write)?;
    refuse_external(&well.info(&id)?.head)?;
    let mut session = well.hold_whole(&id)?;
    let exit = match args.undo {
        true => undo(&well, &mut session, app)?,
        false => {
            app.config.settings.truncation |= args.truncate;
            compact(&mut session, app)?
        }
    };
    drop(session);
    tidy(app, &well);
    Ok(exit)
}

fn compact(session: &mut Session, app: &mut App) -> Result<Exit> {
    let shrunk = runner::runtime(app).compact_held(session, &runner::interrupt())?;
    let id = session.id();
    let compacted = match &shrunk {
        Shrunk::Done(compacted) => Some(&**compacted),
        Shrunk::AsShortAsItGets => None,
        Shrunk::Interrupted => return Ok(Exit::Interrupted),
    };
    // Why there is no summary, if one was wanted.
    if let Some(it) = compacted.filter(|it| it.fault.is_some()) {
        let (style, line) = runner::told_of_compaction(it, Why::Asked);
        note(app.out.paint.paint(style, &format!("  {line}")));
    }
    let line = match compacted {
        Some(it) => {
            let how = if it.is_truncation() { "truncated" } else { "compacted" };
            let (before, after) = (grouped(it.tokens_before), grouped(it.tokens_after));
            format!("{id} was {how}, from {before} to {after} tokens")
        }
        None => format!("{id} is as short as it gets"),
    };
    let truncated = compacted.is_some_and(Compacted::is_truncation);
    let answer = Compaction { id: id.clone(), compacted: compacted.cloned(), truncated };
    app.out.answer(&answer, line)?;
    match compacted {
        Some(_) => note(format_args!("hint: stepwell compact {id} --diff, or --undo")),
        None => note(format_args!(
            "The newest {} tokens stay as they are (compaction.keep_tokens), and so does what is \
             protected.",
            grouped(app.config.settings.compaction_keep.get().into())
        )),
    }
    Ok(Exit::Done)
}

fn undo(well: &Well, session: &mut Session, app: &mut App) -> Result<Exit> {
    let id = session.id();
    // As show --view counts: more may have been said since the compaction.
    let tokens_before = inspect::tokens(&runner::runtime(app), well, id)?;
    let Some(seq) = session.undo_last_compaction()? else {
        let message = format!("{id} has no compaction to take back");
        return Err(Failure::new(Exit::Failed, message)
            .hint(format_args!("stepwell show {id} --view shows what the model sees")));
    };
    let tokens_after = inspect::tokens(&runner::runtime(app), well, id)?;
    let answer = CompactionUndone { id: id.clone(), undone: seq, tokens_before, tokens_after };
    let (before, after) = (grouped(tokens_before), grouped(tokens_after));
    let line = format!("{id}: the compaction at {seq} is undone, from {before} to {after} tokens");
    app.out.answer(&answer, line)?;
    Ok(Exit::Done)
}

fn diff(well: &Well, id: &SessionId, app: &mut App) -> Result<Exit> {
    let events = well.store().events(id, Span::ALL)?.intact(id)?;
    let lane = Lane::main();
    let is_compaction = |event: &Recorded| {
        matches!(event.event, Event::Compacted(_) | Event::Undone(Undone::Compaction { .. }))
    };
    let originals = events.iter().filter(|event| !is_compaction(event)).cloned().collect();
    let whole = View::of(&lane, originals).messages;
    let now = View::of(&lane, events).messages;
    let key = |shown: &ViewMessage| (shown.seq, shown.made == MessageOrigin::Results);
    let kept: HashSet<_> = now.iter().map(key).collect();
    let hidden: Vec<&ViewMessage> = whole.iter().filter(|it| !kept.contains(&key(it))).collect();
    let summaries: Vec<&ViewMessage> =
        now.iter().filter(|it| it.made == MessageOrigin::Summary).collect();
    if app.out.is_json() {
        let moved = |it: &ViewMessage| ViewMove { seq: it.seq, message: it.message.clone() };
        let hidden = hidden.into_iter().map(moved).collect();
        let summaries = summaries.into_iter().map(moved).collect();
        app.out.object(&CompactionDiff { id: id.clone(), hidden, summaries })?;
        return Ok(Exit::Done);
    }
    if hidden.is_empty() && summaries.is_empty() {
        app.out.line(format_args!("{id}: the model sees everything"))?;
        return Ok(Exit::Done);
    }
    // Both views in the order of the log; a summary stands where it is shown.
    let mut rest = now.iter().peekable();
    for original in &whole {
        while let Some(summary) = rest.next_if(|it| it.made == MessageOrigin::Summary) {
            print(app, Style::Green, "+", summary)?;
        }
        if kept.contains(&key(original)) {
            rest.next_if(|it| key(it) == key(original));
            let line = format!("  {} {}", original.seq, show::gist(&original.message));
            app.out.line(app.cut(&line))?;
        } else {
            print(app, Style::Red, "-", original)?;
        }
    }
    for summary in rest.filter(|it| it.made == MessageOrigin::Summary) {
        print(app, Style::Green, "+", summary)?;
    }
    Ok(Exit::Done)
}

fn print(app: &mut App, style: Style, mark: &str, shown: &ViewMessage) -> Result<()> {
    let who = match shown.made {
        MessageOrigin::Summary => "summary",
        _ => show::role(shown.message.role),
    };
    let title = format!("{mark} {} {who}", shown.seq);
    app.out.line(app.out.paint.paint(style, &title))?;
    for part in show::parts(&shown.message) {
        let text = indented(&part, &format!("{mark} "));
        app.out.line(app.out.paint.paint(style, &text))?;
    }
    Ok(())
}
