use stepwell::{Access, Event, Kind, Seq, SessionId};

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::housekeeping::tidy;
use crate::text::one_line;

/// Makes a session that shares another one's past, and prints its id.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, its label, or @last.
    session: String,
    /// The last event that is shared: a seq, or a checkpoint's name.
    #[arg(long, value_name = "SEQ|CHECKPOINT")]
    at: Option<String>,
}

#[derive(serde::Serialize)]
struct Answer<'a> {
    id: &'a str,
    parent: &'a str,
    at: u64,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, parent) = app.session(&args.session, Access::Write)?;
    let last = well.standing(&parent)?.head.seq;
    let at = match &args.at {
        Some(name) => point(&well, &parent, name, last)?,
        None => last,
    };
    let session = well.fork(&parent, Some(at))?;
    let id = session.id().clone();
    drop(session);
    let answer = Answer { id: id.as_str(), parent: parent.as_str(), at: at.get() };
    app.out.answer(&answer, &id)?;
    tidy(app, &well)?;
    Ok(Exit::Done)
}

/// The seq that a number or a checkpoint's name means; the latest of that name.
fn point(well: &Well, id: &SessionId, name: &str, last: Seq) -> Result<Seq> {
    let checkpoints = well.store().facts(id, &[Kind::Checkpoint])?;
    let named = checkpoints.iter().rev().find(
        |fact| matches!(&fact.event, Event::Checkpoint(checkpoint) if checkpoint.name == name),
    );
    if let Some(checkpoint) = named {
        return Ok(checkpoint.seq);
    }
    match name.parse() {
        Ok(n) if n >= 1 && n <= last.get() => Ok(Seq::new(n)),
        Ok(n) => Err(Failure::new(
            Exit::Failed,
            format_args!("{id} has the events 1 to {last}, not {n}"),
        )),
        Err(_) => {
            let message = format!("{id} has no checkpoint {name:?}");
            let names: Vec<_> = checkpoints
                .iter()
                .filter_map(|fact| fact.event.key().map(|key| one_line(&key)))
                .collect();
            Err(Failure::new(Exit::Failed, message).hint(match names.is_empty() {
                true => format!("stepwell checkpoint {id} NAME makes one"),
                false => format!("it has {}", names.join(", ")),
            }))
        }
    }
}
