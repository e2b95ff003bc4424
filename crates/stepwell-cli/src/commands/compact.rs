use stepwell::log::ViewMessage;
use stepwell::model::Compacted;
use stepwell::sqlite::Access;
use stepwell::work::compactions::ViewChange;
use stepwell::{Session, SessionId, Stepwell};
use stepwell_agent::context::plan::Why;
use stepwell_agent::run::Shrunk;
use stepwell_runtime::{inspect, refuse_external};
use stepwell_terminal::text::{grouped, indented};
use stepwell_terminal::wording::compacted_later;
use stepwell_terminal::{Style, events, lines, note};
use stepwell_wire::{Compaction, CompactionDiff, CompactionUndone, ViewMove};
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::runner;

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
    /// Undoes the last compaction: the model is shown the originals again.
    #[arg(long, conflicts_with_all = ["truncate", "diff"])]
    undo: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.diff {
        let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
        return diff(&well, &id, app);
    }
    let (well, id) = app.workspace.open_session(&args.session, Access::Write)?;
    let head = well.info(&id)?.head;
    refuse_external(&head)?;
    if !args.undo && !args.truncate && app.runtime().ask_to_compact(&id)? {
        let answer = Compaction { id: id.clone(), compacted: None, truncated: false, asked: true };
        app.out.answer(&answer, compacted_later(&head))?;
        return Ok(Exit::Done);
    }
    let mut session = well.hold_whole(&id)?;
    let exit = match args.undo {
        true => undo(&well, &mut session, app)?,
        false => {
            app.workspace.config.settings.truncation |= args.truncate;
            compact(&mut session, app)?
        }
    };
    drop(session);
    tidy(&app.workspace, &well);
    Ok(exit)
}

fn compact(session: &mut Session, app: &mut App) -> Result<Exit> {
    let shrunk = app.runtime().compact_held(session, &runner::interrupt())?;
    let id = session.id();
    let compacted = match &shrunk {
        Shrunk::Done(compacted) => Some(&**compacted),
        Shrunk::AsShortAsItGets => None,
        Shrunk::Interrupted => return Ok(Exit::Interrupted),
    };
    // Why there is no summary, if one was wanted.
    if let Some(it) = compacted.filter(|it| it.fault.is_some()) {
        let (style, line) = lines::compaction(it, Why::Asked);
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
    let answer =
        Compaction { id: id.clone(), compacted: compacted.cloned(), truncated, asked: false };
    app.out.answer(&answer, line)?;
    match compacted {
        Some(_) => note(format_args!("hint: stepwell compact {id} --diff, or --undo")),
        None => note(format_args!(
            "The newest {} tokens stay as they are (compaction.keep_tokens), and so does what is \
             protected.",
            grouped(app.workspace.config.settings.compaction_keep.get().into())
        )),
    }
    Ok(Exit::Done)
}

fn undo(well: &Stepwell, session: &mut Session, app: &mut App) -> Result<Exit> {
    let id = session.id();
    // As show --view counts: more may have been said since the compaction.
    let tokens_before = inspect::tokens(&app.runtime(), well, id)?;
    let Some(seq) = session.undo_last_compaction()? else {
        let message = format!("{id} has no compaction to take back");
        return Err(Failure::new(Exit::Failed, message)
            .hint(format_args!("stepwell show {id} --view shows what the model sees")));
    };
    let tokens_after = inspect::tokens(&app.runtime(), well, id)?;
    let answer = CompactionUndone { id: id.clone(), undone: seq, tokens_before, tokens_after };
    let (before, after) = (grouped(tokens_before), grouped(tokens_after));
    let line = format!("{id}: the compaction at {seq} is undone, from {before} to {after} tokens");
    app.out.answer(&answer, line)?;
    Ok(Exit::Done)
}

fn diff(well: &Stepwell, id: &SessionId, app: &mut App) -> Result<Exit> {
    let changes = well.compaction_changes(id)?;
    if app.out.is_json() {
        let (mut hidden, mut summaries) = (Vec::new(), Vec::new());
        for change in changes {
            match change {
                ViewChange::Kept(_) => {}
                ViewChange::Hidden(it) => {
                    hidden.push(ViewMove { seq: it.seq, message: it.message });
                }
                ViewChange::Summary(it) => {
                    summaries.push(ViewMove { seq: it.seq, message: it.message });
                }
            }
        }
        app.out.object(&CompactionDiff { id: id.clone(), hidden, summaries })?;
        return Ok(Exit::Done);
    }
    if changes.iter().all(|change| matches!(change, ViewChange::Kept(_))) {
        app.out.line(format_args!("{id}: the model sees everything"))?;
        return Ok(Exit::Done);
    }
    for change in &changes {
        match change {
            ViewChange::Kept(it) => {
                let line = format!("  {} {}", it.seq, events::gist(&it.message));
                app.out.line(app.cut(&line))?;
            }
            ViewChange::Hidden(it) => {
                print(app, &GOES, events::speaker(&it.message), it)?;
            }
            ViewChange::Summary(it) => print(app, &COMES, "summary", it)?,
        }
    }
    Ok(Exit::Done)
}

/// How a line of a comparison looks.
struct Sign {
    style: Style,
    mark: &'static str,
}

const GOES: Sign = Sign { style: Style::Red, mark: "-" };
const COMES: Sign = Sign { style: Style::Green, mark: "+" };

fn print(app: &mut App, sign: &Sign, who: &str, shown: &ViewMessage) -> Result<()> {
    let Sign { style, mark } = *sign;
    let title = format!("{mark} {} {who}", shown.seq);
    app.out.line(app.out.paint.paint(style, &title))?;
    for part in events::parts(&shown.message) {
        let text = indented(&part, &format!("{mark} "));
        app.out.line(app.out.paint.paint(style, &text))?;
    }
    Ok(())
}
