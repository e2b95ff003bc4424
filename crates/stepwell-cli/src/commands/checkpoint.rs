use serde::Serialize;
use stepwell::{Access, CheckpointReason, Event, Kind, Seq, Time};
use stepwell_agent::files::rewind::Foreign;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::files::settle;
use crate::housekeeping::tidy;
use crate::output::note;
use crate::point::is_numbered;
use crate::table::{Align, Column, Table};
use crate::text::{one_line, second, visible};
use crate::wire::word;

/// Names the present point of a session, to fork or rewind to, or lists such points.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, its label, or @last.
    session: String,
    /// The checkpoint's name; a later one of the same name takes its place.
    name: Option<String>,
    /// Lists the session's checkpoints: those that were asked for, those of phases, and those
    /// that are taken every few steps and before a rewind.
    #[arg(long, conflicts_with = "name")]
    list: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    checkpoint: &'a str,
    seq: u64,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.list {
        return list(args, app);
    }
    let (well, id) = app.session(&args.session, Access::Write)?;
    if let Some(name) = &args.name
        && (name.trim().is_empty() || name.chars().any(char::is_control))
    {
        let message = "a checkpoint's name is not empty and has no control characters";
        return Err(Failure::new(Exit::Failed, message));
    }
    if let Some(name) = args.name.as_deref().filter(|name| is_numbered(name)) {
        let message = format!("{name:?} is no checkpoint's name: it means a seq, or steps back");
        return Err(Failure::new(Exit::Failed, message)
            .hint(format_args!("stepwell checkpoint {id} at{name}")));
    }
    let mut session = well.hold(&id)?;
    settle(&mut session, Foreign::Refused, app)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => format!("checkpoint-{}", session.facts(&[Kind::Checkpoint])?.len() + 1),
    };
    let seq = session.checkpoint(name.as_str())?;
    let answer = Answer { id: id.as_str(), checkpoint: &name, seq: seq.get() };
    app.out.answer(&answer, format_args!("{id}: {} is seq {seq}", visible(&name)))?;
    drop(session);
    tidy(app, &well)?;
    Ok(Exit::Done)
}

/// A checkpoint as it is listed.
#[derive(Serialize)]
struct Listed {
    name: String,
    seq: Seq,
    at: Time,
    reason: CheckpointReason,
}

const COLUMNS: &[Column] = &[
    Column { name: "SEQ", align: Align::Right },
    Column { name: "WHEN", align: Align::Left },
    Column { name: "REASON", align: Align::Left },
    Column { name: "NAME", align: Align::Left },
];

fn list(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Read)?;
    let facts = well.store().facts(&id, &[Kind::Checkpoint])?.into_iter();
    let listed = facts.filter_map(|fact| match fact.event {
        Event::Checkpoint(it) => {
            Some(Listed { name: it.name, seq: fact.seq, at: fact.at, reason: it.reason })
        }
        _ => None,
    });
    if app.out.is_json() {
        listed.into_iter().try_for_each(|it| app.out.object(&it))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(COLUMNS);
    let mut none = true;
    for it in listed {
        none = false;
        let (seq, at, reason) = (it.seq.to_string(), second(it.at), word(it.reason));
        table.push(vec![seq.into(), at.into(), reason.into(), one_line(&it.name).into()]);
    }
    match none {
        true => {
            note(format_args!("{id} has no checkpoints; stepwell checkpoint {id} NAME makes one."));
        }
        false => app.print(&table)?,
    }
    Ok(Exit::Done)
}
