use stepwell::{
    Access, Driver, Error, Family, Filter, GateAnswered, Kind, Query, SessionId, Status,
};

use super::run::{refuse_external, refuse_unsaved};
use crate::app::{App, Go, Well, each_session};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::runner::{Flags, Prepared, Words, drive};

/// Takes a session up again, exactly where it stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session; without one, the newest here that can be resumed.
    session: Option<String>,
    /// Allows what the session waits for.
    #[arg(long, conflicts_with = "deny")]
    approve: bool,
    /// Does not allow it.
    #[arg(long)]
    deny: bool,
    /// Why not, for the model.
    #[arg(long, value_name = "TEXT", requires = "deny")]
    reason: Option<String>,
    /// Follows a session that runs elsewhere, without taking it over.
    #[arg(long)]
    attach: bool,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    refuse_unsaved(app)?;
    let (well, id) = match &args.session {
        Some(name) => {
            app.go_to_session(name)?;
            app.session(name, Access::Write)?
        }
        None => {
            let well = app.existing(Access::Write)?;
            let id = newest(&well)?;
            note(format_args!("Resuming {id}"));
            (well, id)
        }
    };
    if args.attach {
        return super::log::follow(&well, &id, app);
    }
    let head = well.standing(&id)?.head;
    refuse_external(&head)?;
    if head.status == Status::Abandoned {
        let message = format!("{id} was abandoned");
        return Err(Failure::new(Exit::Failed, message)
            .hint(format_args!("stepwell run \"TASK\" --session {id} goes on with it")));
    }
    let prepared = Prepared::new(&args.flags, Some(&head), app)?;
    // Known before anything is recorded: a session that is done stays done.
    let answer =
        if args.approve || args.deny { Some(answer(args, &prepared, &well, &id)?) } else { None };
    let session = well.resume(&id).map_err(|error| match error {
        Error::Held { .. } => Failure::from(error).hint(format_args!(
            "stepwell resume {id} --attach follows it; stepwell stop {id} stops it"
        )),
        error => error.into(),
    })?;
    if let Some(answer) = answer {
        well.answer(&id, answer)?;
    }
    well.edit(&id, prepared.remembered())?;
    drive(session, &prepared, &Words::Nothing, Some(head.seq.get()), app)
}

/// The newest session here that can be resumed.
fn newest(well: &Well) -> Result<SessionId> {
    let status = vec![Status::Interrupted, Status::Partial, Status::Paused, Status::Failed];
    let filter =
        Filter { status, family: Family::Roots, driver: Some(Driver::Own), ..Filter::default() };
    let mut found = None;
    each_session(well, Query { filter, limit: 1, ..Query::default() }, |standing| {
        found = Some(standing.head.id);
        Ok(Go::Stop)
    })?;
    found.ok_or_else(|| {
        Failure::new(Exit::Absent, "there is no session here to resume")
            .hint("stepwell run \"TASK\" begins one")
    })
}

/// The answer to the question that the session waits with.
fn answer(args: &Args, prepared: &Prepared, well: &Well, id: &SessionId) -> Result<GateAnswered> {
    let facts = well.store().facts(id, &[Kind::Gate, Kind::GateAnswered])?;
    let mut open = None;
    for fact in &facts {
        match &fact.event {
            stepwell::Event::Gate(gate) => open = Some(gate.id.clone()),
            stepwell::Event::GateAnswered(answer) if open.as_ref() == Some(&answer.id) => {
                open = None;
            }
            _ => {}
        }
    }
    let Some(gate) = open else {
        return Err(Failure::new(Exit::Failed, format_args!("{id} does not wait for an answer")));
    };
    let word = if args.approve { "approve" } else { "deny" };
    let answer = match &args.reason {
        Some(reason) => format!("{word}: {}", prepared.redactor().redact(reason)),
        None => word.to_owned(),
    };
    Ok(GateAnswered { id: gate, answer, who: "the user".to_owned() })
}
