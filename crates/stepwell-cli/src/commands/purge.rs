use stepwell::{Access, Family, Filter, Origin, Place, Query, SessionId, Standing};
use stepwell_wire::Erased;

use super::sessions::task;
use crate::app::{App, Go, Well, each_session};
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Result};
use crate::files::refuse_removal;
use crate::output::note;
use crate::text::{bytes, count};

/// Erases a session for good, with its subagents' sessions.
///
/// What forks share of it lives on in them. It may be in the trash or not.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    #[command(flatten)]
    consent: Consent,
}

/// A session and the sessions of its subagents, which go with it.
pub(super) fn family(well: &Well, id: &SessionId) -> Result<Vec<Standing>> {
    let mut all = vec![well.standing(id)?];
    let mut next = 0;
    while let Some(parent) = all.get(next).map(|standing| standing.head.id.clone()) {
        let (family, place) = (Family::ChildrenOf(parent), Place::Anywhere);
        let filter = Filter { family, place, ..Filter::default() };
        each_session(well, Query { filter, ..Query::default() }, |child| {
            if matches!(child.head.origin, Origin::Subagent { .. }) {
                all.push(child);
            }
            Ok(Go::On)
        })?;
        next += 1;
    }
    Ok(all)
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    // Asked before the store is opened for writing: a person may think about it.
    let id = {
        let (well, id) = app.session_in(Place::Anywhere, &args.session, Access::Read)?;
        let (mut events, mut size) = (0, 0);
        let all = family(&well, &id)?;
        all.iter().try_for_each(|standing| refuse_removal(standing, app))?;
        for standing in &all {
            let place = if standing.trashed_at.is_some() { " (in the trash)" } else { "" };
            note(format_args!("{}{place}: {}", standing.head.id, task(standing)));
            events += standing.head.seq.get();
            size += standing.bytes;
        }
        let question = format!(
            "Erase {} with {} ({}) for good?",
            count(all.len(), "session"),
            count(usize::try_from(events).unwrap_or(usize::MAX), "event"),
            bytes(size)
        );
        args.consent.ask(app, &question, Unasked::Refuse)?;
        id
    };
    let well = app.existing(Access::Write)?;
    for id in well.purge(&id)? {
        let line = format!("Erased {id}");
        app.out.answer(&Erased { erased: id }, line)?;
    }
    Ok(Exit::Done)
}
