//! Questions about several sessions at once, which a store on a server answers in one round trip.
//! Here is how any other store answers them: one session after the other.

use std::collections::{BTreeMap, BTreeSet};

use super::query::{Family, Filter, Query, Sort, TrashScope};
use super::{Order, SessionInfo, Span, Store};
use crate::{Kind, Origin, Recorded, Result, Seq, SessionId};

/// How many events at the end of a log are looked through for the last one of a kind: labels and
/// tags may have come after it.
pub const LOOK_BACK: usize = 200;

/// Which events of each of several sessions are wanted. The first event of its log and the first
/// that is its own always are.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a> {
    /// All that have a key, of these kinds. Records are not among them.
    pub keyed: &'a [Kind],
    /// The last of these kinds, if it is among the last [`LOOK_BACK`] of the session.
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
        put(store.events(id, Span { from: at, to: at, ..Span::ALL })?.intact(id)?);
    }
    if !wanted.keyed.is_empty() {
        put(store.keyed_events(id, wanted.keyed)?);
    }
    if !wanted.last.is_empty() {
        let events = store.events(id, Span::last(LOOK_BACK))?.events;
        let is_wanted =
            |event: &Recorded| wanted.last.iter().any(|kind| kind.as_str() == event.event.kind());
        put(events.into_iter().find(is_wanted).into_iter().collect());
    }
    Ok(found.into_values().collect())
}

/// The sessions of subagents below some sessions; of one parent's, the oldest first.
pub(crate) fn below<S: Store + ?Sized>(
    store: &S,
    ids: impl IntoIterator<Item = SessionId>,
) -> Result<Vec<SessionInfo>> {
    let (mut found, mut seen): (Vec<SessionInfo>, BTreeSet<SessionId>) = Default::default();
    let mut waiting: Vec<SessionId> = ids.into_iter().collect();
    while let Some(parent) = waiting.pop() {
        let (family, place) = (Family::ChildrenOf(parent), TrashScope::Anywhere);
        let filter = Filter { family, place, ..Filter::default() };
        let (sort, order) = (Sort::Created, Order::Oldest);
        for child in store.list(&Query { filter, sort, order, ..Query::default() })?.sessions {
            let is_subagent = matches!(child.head.origin, Origin::Subagent { .. });
            if is_subagent && seen.insert(child.head.id.clone()) {
                waiting.push(child.head.id.clone());
                found.push(child);
            }
        }
    }
    Ok(found)
}
