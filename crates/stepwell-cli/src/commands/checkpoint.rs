use serde_json::Value;
use stepwell::model::{Checkpoint, CheckpointReason};
use stepwell::sqlite::Access;
use stepwell::work::is_numbered;
use stepwell_files::rewind::Foreign;
use stepwell_runtime::files::finish_rewind;
use stepwell_terminal::note;
use stepwell_terminal::table::{Column, Table, left, right};
use stepwell_terminal::text::{cut, one_line, second, visible, word};
use stepwell_wire::{CheckpointInfo, CheckpointMade};
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::typed::entry;

/// Lists a session's checkpoints, or names its present point, to fork or rewind to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The checkpoint's name; a later one of the same name takes its place. Without one, the
    /// session's checkpoints are listed: those that were asked for, those of phases, and those
    /// that are taken every few steps and before a rewind.
    name: Option<String>,
    /// Remembers something with it; `K:=JSON` remembers any value.
    #[arg(long = "meta", value_name = "K=V", value_parser = entry, requires = "name")]
    metadata: Vec<(String, Value)>,
    /// Lists them, as without a name.
    #[arg(long, conflicts_with = "name", hide = true)]
    list: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(name) = &args.name else { return list(args, app) };
    let (well, id) = app.workspace.open_session(&args.session, Access::Write)?;
    // What is recorded while files are half moved would be set aside.
    if well.info(&id)?.head.rewinding.is_some() {
        finish_rewind(&mut well.lock(&id)?, Foreign::Refused, &app.runtime())?;
    }
    let (reason, metadata) = (CheckpointReason::Manual, args.metadata.iter().cloned().collect());
    let made = well.checkpoint(&id, Checkpoint { name: name.clone(), reason, metadata });
    let seq = made.map_err(|error| match is_numbered(name) {
        true => Failure::from(error).hint(format_args!("stepwell checkpoint {id} at{name}")),
        false => error.into(),
    })?;
    let answer = CheckpointMade { id: id.clone(), checkpoint: name.clone(), seq };
    app.out.answer(&answer, format_args!("{id}: {} is seq {seq}", visible(name)))?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

/// A checkpoint's name, and what is remembered with it. What keeps a flow's spec is too long to
/// show.
fn line(checkpoint: &CheckpointInfo) -> String {
    let short = |(key, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key}={}", cut(&one_line(&value), 40))
    };
    let known: Vec<String> = checkpoint.metadata.iter().map(short).collect();
    match known.is_empty() {
        true => one_line(&checkpoint.name),
        false => format!("{} ({})", one_line(&checkpoint.name), known.join(", ")),
    }
}

const COLUMNS: &[Column] = &[right("SEQ"), left("WHEN"), left("REASON"), left("NAME")];

fn list(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
    let listed = well.checkpoints(&id)?.into_iter().map(CheckpointInfo::from);
    if app.out.is_json() {
        listed.into_iter().try_for_each(|it| app.out.object(&it))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(COLUMNS);
    let mut none = true;
    for it in listed {
        none = false;
        let (seq, at, reason) = (it.seq.to_string(), second(it.at), word(it.reason));
        table.push(vec![seq.into(), at.into(), reason.into(), line(&it).into()]);
    }
    match none {
        true => {
            note(format_args!("{id} has no checkpoints; stepwell checkpoint {id} NAME makes one."));
        }
        false => app.print(&table)?,
    }
    Ok(Exit::Done)
}
