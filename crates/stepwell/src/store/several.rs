//! Queries over several sessions at once, which a store on a server answers in one round trip. This
//! implementation for other stores reads one session after the other.

use std::collections::BTreeMap;

use super::rows::Facts;
use super::{Selection, Span, Store};
use crate::error::Result;
use crate::model::{Kind, Recorded, Seq, SessionId};

/// How many events at the end of a log are searched for the last one of a kind, since labels and
/// tags may follow it.
pub const LOOK_BACK: usize = 200;

/// Which events of each session to return, besides the first event of its log and its first own
/// event, which are always included.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a> {
    /// All keyed events of these kinds, except records.
    pub keyed: &'a [Kind],
    /// The last event of these kinds, if it is among the last [`LOOK_BACK`] of the session.
    pub last: &'a [Kind],
}

/// One session's excerpt, oldest event first.
pub(super) fn excerpt<S: Store + ?Sized>(
    store: &S,
    id: &SessionId,
    wanted: &Excerpt<'_>,
) -> Result<Vec<Recorded>> {
    let own_from = store.info(id)?.own_from;
    let mut found: BTreeMap<Seq, Recorded> = BTreeMap::new();
    let mut put = |events: Vec<Recorded>| {
        found.extend(events.into_iter().map(|event| (event.seq, event)));
    };
    for at in [Seq::FIRST, own_from] {
        let span = Span { from: at, to: at, ..Span::ALL };
        put(store.select(id, Selection::Span(span))?.intact(id)?);
    }
    if !wanted.keyed.is_empty() {
        put(store.select(id, Selection::Keyed(Facts::of(wanted.keyed)))?.events);
    }
    if !wanted.last.is_empty() {
        let events = store.select(id, Selection::Span(Span::last(LOOK_BACK)))?.events;
        let is_wanted =
            |event: &Recorded| wanted.last.iter().any(|kind| kind.as_str() == event.event.kind());
        put(events.into_iter().find(is_wanted).into_iter().collect());
    }
    Ok(found.into_values().collect())
}
