use stepwell::compactions::{self, Extent};
use stepwell::{Access, Change, Driver, Edited, Event, NewEvent, Status, StatusChanged};
use stepwell_wire::Forked;

use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::files::settle_of;
use crate::point::FORMS;
use crate::runner;

/// Makes a session that shares another one's past, and prints its id.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The last event that is shared: a seq, a checkpoint's name, or -N for N steps back.
    #[arg(long, value_name = FORMS, allow_hyphen_values = true)]
    at: Option<String>,
    /// Gives the fork a label, which names it from then on.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, parent) = app.session(&args.session, Access::Write)?;
    if let Some(label) = &args.label {
        well.refuse_taken_label(label, None)?;
    }
    settle_of(&well, &parent, &runner::runtime(app))?;
    let at = match &args.at {
        Some(text) => well.point(&parent, text)?,
        None => well.standing(&parent)?.head.seq,
    };
    // Nobody ran it yet: it was cut off nowhere. How an agent of someone else's stands, its
    // phase says.
    let waits = StatusChanged { status: Status::Interrupted, reason: None, error: None };
    let mut begins: Vec<NewEvent> = match well.standing(&parent)?.head.driver {
        Driver::Own => vec![waits.into()],
        Driver::External => Vec::new(),
    };
    // What the metadata says of the view was recorded beside what changed the view.
    let facts = well.store().facts(&parent, &compactions::KINDS)?;
    if facts.iter().any(|fact| matches!(fact.event, Event::Compacted(_))) {
        begins.push(Extent::at(&facts, at).edited().into());
    }
    if let Some(label) = &args.label {
        let label = Change::Set(label.clone());
        begins.push(Edited { label, ..Edited::default() }.into());
    }
    let session = well.fork_with(&parent, Some(at), begins)?;
    let id = session.id().clone();
    drop(session);
    // What was allowed in the user's own session is allowed in its fork.
    if app.is_own(&parent) {
        app.own(&id);
    }
    let answer = Forked { id: id.clone(), parent, at };
    app.out.answer(&answer, &id)?;
    tidy(app, &well)?;
    Ok(Exit::Done)
}
