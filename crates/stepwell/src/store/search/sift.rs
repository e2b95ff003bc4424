//! Which of an index's hits people want to see: each message once.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::log::Redactor;
use crate::model::{Event, Kind, Origin, Part, Role};
use crate::store::query::{Found, Hit, Search, SystemPrompts};
use crate::store::{Span, Store};

/// How many events after a session's first one are read to find the message that repeats its
/// task. A system prompt and a few attributes may come before it.
const FIRST_EVENTS: usize = 16;

/// Searches a store, and leaves out what repeats something else.
pub(crate) fn sifted(store: &dyn Store, search: &Search, redactor: &Redactor) -> Result<Found> {
    // An index cannot continue where it stopped, so it is asked for more until enough is left.
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
            // What a node came to and an agent said as well is found in what was said.
            if hit.kind == Kind::Node.as_str() && said.contains(&key(&hit)) {
                continue;
            }
            if is_wanted(store, search, &hit, &mut failures)? {
                // A session that is gone since is found all the same.
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

/// The messages that were found, by what is shown of them.
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
    // A failure is recorded by itself, and again with the status that it led to.
    if is(Kind::Error) || is(Kind::Status) {
        return Ok(failures.insert(key(hit)));
    }
    Ok(true)
}

/// Is a session's task found elsewhere: in the message that states it, or in the session that
/// this one was forked from?
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
