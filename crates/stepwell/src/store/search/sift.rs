//! Removes duplicates from search hits: each message is found once.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::log::Redactor;
use crate::model::{Event, Kind, Origin, Part, Role};
use crate::store::query::{Found, Hit, Search, SystemPrompts};
use crate::store::{Span, Store};

/// How many events after a session's first are read to find the message that repeats its task. A
/// system prompt and a few attributes may come before it.
const FIRST_EVENTS: usize = 16;

/// Searches a store, and leaves out hits that repeat others.
pub(crate) fn sifted(store: &dyn Store, search: &Search, redactor: &Redactor) -> Result<Found> {
    // An index cannot continue where it stopped, so it is asked for more until enough hits are
    // left.
    let mut asked = search.limit.saturating_mul(2).max(search.limit);
    loop {
        let found = store.search(&Search { limit: asked, ..search.clone() }, redactor)?;
        let exhausted = found.hits.len() < asked;
        let mut kept = Vec::new();
        let mut failures = BTreeSet::new();
        let said = said(&found.hits);
        for hit in found.hits {
            if kept.len() == search.limit {
                break;
            }
            // A node's result that an agent's message repeats is found in the message.
            if hit.kind == Kind::Node.as_str() && said.contains(&key(&hit)) {
                continue;
            }
            if is_wanted(store, search, &hit, &mut failures)? {
                // A session that was purged in between is still a hit.
                let head = store.info(&hit.session).map(|info| info.head).ok();
                let source = head.and_then(|head| head.system().cloned());
                kept.push(Hit { source, ..hit });
            }
        }
        if exhausted || kept.len() == search.limit {
            return Ok(Found { hits: kept, unseen: found.unseen });
        }
        asked = asked.saturating_mul(4);
    }
}

/// The found messages, by their excerpts.
fn said(hits: &[Hit]) -> BTreeSet<(String, String)> {
    hits.iter().filter(|hit| hit.kind == Kind::Message.as_str()).map(key).collect()
}

fn key(hit: &Hit) -> (String, String) {
    (hit.session.to_string(), hit.snippet.text.clone())
}

fn is_wanted(
    store: &dyn Store,
    search: &Search,
    hit: &Hit,
    failures: &mut BTreeSet<(String, String)>,
) -> Result<bool> {
    let is = |kind: Kind| hit.kind == kind.as_str();
    if hit.role == Some(Role::System) {
        return Ok(search.system == SystemPrompts::Searched);
    }
    if is(Kind::Created) {
        return Ok(!is_repeated(store, hit)?);
    }
    // A failure is recorded as an error, and again with the status it caused.
    if is(Kind::Error) || is(Kind::Status) {
        return Ok(failures.insert(key(hit)));
    }
    Ok(true)
}

/// Is a session's task found elsewhere: in the message that states it, or in the session's parent?
fn is_repeated(store: &dyn Store, hit: &Hit) -> Result<bool> {
    let span = Span { from: hit.seq, limit: FIRST_EVENTS, ..Span::ALL };
    let mut events = store.events(&hit.session, span)?.events.into_iter().map(|it| it.event);
    let Some(Event::Created(created)) = events.next() else { return Ok(false) };
    if matches!(created.origin, Origin::Fork { .. }) {
        return Ok(true);
    }
    let states_it = |event: Event| match event {
        Event::Message(message) if message.role == Role::User => {
            message.parts.iter().any(|part| match part {
                Part::Text(text) => text.text.contains(created.task.trim()),
                _ => false,
            })
        }
        _ => false,
    };
    Ok(events.any(states_it))
}
