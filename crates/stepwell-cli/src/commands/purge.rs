use stepwell::{Access, Place};

use super::sessions::task;
use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Result};
use crate::output::note;
use crate::text::bytes;

/// Erases a session for good, with its subagents' sessions.
///
/// What forks share of it lives on in them. It may be in the trash or not.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, its label, or @last.
    session: String,
    #[command(flatten)]
    consent: Consent,
}

#[derive(serde::Serialize)]
struct Line<'a> {
    erased: &'a str,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    // Asked before the store is opened for writing: a person may think about it.
    let id = {
        let well = app.existing(Access::Read)?;
        let id = app.find_in(&well, Place::Anywhere, &args.session)?;
        let standing = well.standing(&id)?;
        let (events, size) = (standing.head.seq, bytes(standing.bytes));
        note(format_args!("{id}: {}", task(&standing)));
        let question = format!("Erase its {events} events ({size}) for good?");
        args.consent.ask(app, &question, Unasked::Refuse)?;
        id
    };
    let well = app.existing(Access::Write)?;
    for id in well.purge(&id)? {
        app.out.answer(&Line { erased: id.as_str() }, format_args!("Erased {id}"))?;
    }
    Ok(Exit::Done)
}
