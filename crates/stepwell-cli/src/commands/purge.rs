use stepwell::sqlite::Access;
use stepwell::store::query::TrashScope;
use stepwell_runtime::files::root;
use stepwell_terminal::note;
use stepwell_terminal::text::{bytes, count};
use stepwell_wire::Erased;
use stepwell_workspace::housekeeping::purge;

use super::sessions::task;
use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Result};

/// Erases a session for good, with its subagents' sessions.
///
/// Forks keep the events that they share with it. It need not be in the trash.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    // Asked before the store is opened for writing: a person may think about it.
    let id = {
        let (well, id) =
            app.workspace.open_session_in(TrashScope::Anywhere, &args.session, Access::Read)?;
        let (mut events, mut size) = (0, 0);
        let all =
            well.removable(std::slice::from_ref(&id), &|head| root(head, &app.workspace).is_ok())?;
        for info in &all {
            let place = if info.trashed_at.is_some() { " (in the trash)" } else { "" };
            note(format_args!("{}{place}: {}", info.head.id, task(info)));
            events += info.head.seq.get();
            size += info.bytes;
        }
        let question = format!(
            "Erase {} with {} ({}) for good?",
            count(all.len(), "session"),
            count(usize::try_from(events).unwrap_or(usize::MAX), "event"),
            bytes(size)
        );
        args.consent.ask(app.terminal, &question, Unasked::Refuse)?;
        id
    };
    let well = app.workspace.open_existing(Access::Write)?;
    for id in purge(&app.workspace, &well, &id, &|head| root(head, &app.workspace).is_ok())? {
        let line = format!("Erased {id}");
        app.out.answer(&Erased { erased: id }, line)?;
    }
    Ok(Exit::Done)
}
