use stepwell::{Access, Kind};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::housekeeping::tidy;
use crate::text::visible;

/// Names the present point of a session, to fork or rewind to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, its label, or @last.
    session: String,
    /// The checkpoint's name; a later one of the same name takes its place.
    name: Option<String>,
}

#[derive(serde::Serialize)]
struct Answer<'a> {
    id: &'a str,
    checkpoint: &'a str,
    seq: u64,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Write)?;
    if let Some(name) = &args.name
        && (name.trim().is_empty() || name.chars().any(char::is_control))
    {
        let message = "a checkpoint's name is not empty and has no control characters";
        return Err(Failure::new(Exit::Failed, message));
    }
    let mut session = well.hold(&id)?;
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
