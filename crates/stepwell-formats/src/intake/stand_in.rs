//! A session under two names: the one that its files give it, and the one that it has while
//! they give it none.

use std::path::Path;

use stepwell::model::Source;
use stepwell::store::Span;
use stepwell::store::query::{Family, Filter, Query, TrashScope};
use stepwell::{Event, SessionId, Stepwell};

use super::claim::told_by;
use super::name::{Destination, destination};
use crate::Result;
use crate::read::neutral::{Opening, StandIn};

/// How many events are looked through for the first message: only attributes come before it.
const FRONT: usize = 16;

/// The source under which a session is here already; if it is not, its own.
pub(super) fn known_as(
    well: &Stepwell,
    from: &Path,
    opening: &Opening,
    source: Source,
) -> Result<Source> {
    let Some(stand_in) = &opening.stand_in else { return Ok(source) };
    if let Destination::There(_) = destination(well, &source, &[])? {
        return Ok(source);
    }
    let candidates = match stand_in.name == source.id {
        // They may have named it before.
        true => of_system(well, &source.system)?,
        false => {
            let other = Source { id: stand_in.name.clone(), ..source.clone() };
            match destination(well, &other, &[])? {
                Destination::There(id) => vec![id],
                Destination::New(_) => Vec::new(),
            }
        }
    };
    for id in candidates {
        let head = well.store().info(&id)?.head;
        let beside = told_by(&head).is_some_and(|before| is_beside(&before, from));
        if beside && begins_alike(well, &id, stand_in)? {
            return Ok(head.source.unwrap_or(source));
        }
    }
    Ok(source)
}

fn of_system(well: &Stepwell, system: &str) -> Result<Vec<SessionId>> {
    let (system, family, place) = (Some(system.to_owned()), Family::Any, TrashScope::Anywhere);
    let filter = Filter { system, family, place, ..Filter::default() };
    let found = well.sessions(Query { filter, ..Query::default() });
    let ids = found.map(|info| info.map(|it| it.head.id)).collect::<Result<_, _>>()?;
    Ok(ids)
}

/// Is it the same path, or does one lie in the other? A session is read from its folder when its
/// own file is not there.
fn is_beside(one: &Path, other: &Path) -> bool {
    one == other || one.parent() == Some(other) || other.parent() == Some(one)
}

fn begins_alike(well: &Stepwell, id: &SessionId, stand_in: &StandIn) -> Result<bool> {
    let events = well.store().events(id, Span { limit: FRONT, ..Span::ALL })?.events;
    let first = events.iter().find(|it| matches!(it.event, Event::Message(_)));
    let wanted = &stand_in.first;
    Ok(first.is_some_and(|it| it.event == wanted.event && wanted.at.is_none_or(|at| at == it.at)))
}
