//! Resources: sessions, and parts of them, by URI.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use rmcp::model::ResourceTemplate;
use stepwell::store::query::{Family, Filter, Query};

use crate::error::{Error, Result};
use crate::input::{Direction, Limit};
use crate::outgoing::{ListedResource, Outgoing, Quoted};
use crate::stores::{Purpose, Stores};
use crate::tool::{
    DiffInput, EventInput, FileInput, Form, ReadInput, file_at, read_event, read_session,
    session_diff,
};

/// The prefix of every URI.
const SCHEME: &str = "stepwell://session/";

/// How many sessions are listed. The tools find the others.
const LISTED: usize = 50;

/// The most values of a completion, by the protocol.
const MOST_COMPLETIONS: usize = 100;

/// The most characters of a task in a title.
const TITLE_CHARS: usize = 80;

/// The characters that a URI escapes.
const ENCODED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?');

/// The newest sessions.
pub(crate) fn list(stores: &Stores) -> Result<Vec<ListedResource>> {
    let mut listed = Vec::new();
    for open in stores.all(Purpose::Read)? {
        let filter = Filter { family: Family::Roots, ..Filter::default() };
        let query = Query { filter, limit: LISTED, ..Query::default() };
        listed.extend(open.well.list(&query)?.sessions);
    }
    listed.sort_by_key(|info| std::cmp::Reverse(info.head.updated_at));
    listed.truncate(LISTED);
    let resource = |info: stepwell::SessionInfo| {
        // Redacted before it is cut: half a secret would not be recognised.
        let head = info.head.redacted(&stores.redactor);
        let title = head.label.unwrap_or_else(|| front(&head.task));
        let steps = stepwell::model::counted(head.steps, "step");
        let description = format!("{}, {steps}, {}", head.status, front(&head.task));
        ListedResource { uri: uri(head.id.as_str()), name: head.id.to_string(), title, description }
    };
    Ok(listed.into_iter().map(resource).collect())
}

fn front(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS).collect()
}

/// A session's URI.
fn uri(id: &str) -> String {
    format!("{SCHEME}{}", utf8_percent_encode(id, ENCODED))
}

/// Ids and labels with this prefix, newest first; and whether there are, or may be, more.
pub(crate) fn ids(stores: &Stores, begun: &str) -> Result<(Vec<String>, bool)> {
    let (mut names, mut has_more) = (Vec::new(), false);
    for open in stores.all(Purpose::Read)? {
        let query = Query { limit: 1_000, ..Query::default() };
        let listed = open.well.list(&query)?;
        has_more |= listed.next.is_some();
        for info in listed.sessions {
            let head = info.head;
            let both = [Some(head.id.to_string()), head.label];
            names.extend(both.into_iter().flatten().filter(|name| name.starts_with(begun)));
        }
    }
    has_more |= names.len() > MOST_COMPLETIONS;
    names.truncate(MOST_COMPLETIONS);
    let names = names.iter().map(|name| stores.redactor.redact(name).into_owned());
    Ok((names.collect(), has_more))
}

/// The URI templates.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |form: &str, name: &str, about: &str| {
        ResourceTemplate::new(format!("{SCHEME}{form}"), name)
            .with_description(about)
            .with_mime_type("application/json")
    };
    vec![
        template("{id}", "session", "A session: its status, and its last turns"),
        template("{id}/view", "view", "What a model would be sent of a session"),
        template("{id}/events", "events", "The first events of a session"),
        template("{id}/event/{seq}", "event", "One event of a session"),
        template("{id}/diff", "diff", "A session's file changes"),
        template("{id}/file/{+path}", "file", "A file as a session left it"),
    ]
}

/// Reads the resource at a URI.
pub(crate) fn read(stores: &Stores, uri: &str) -> Result<Outgoing> {
    let unknown = || Error::NoResource(uri.chars().take(200).collect());
    let path = uri.strip_prefix(SCHEME).ok_or_else(unknown)?;
    let path = percent_decode_str(path).decode_utf8().map_err(|_| unknown())?;
    let mut parts = path.splitn(3, '/');
    let session = parts.next().filter(|id| !id.is_empty()).ok_or_else(unknown)?.to_owned();
    let out = &stores.redactor;
    match (parts.next(), parts.next()) {
        (None, _) => page(stores, session, Form::Turns, Direction::Newest),
        (Some("view"), None) => page(stores, session, Form::View, Direction::Oldest),
        (Some("events"), None) => page(stores, session, Form::Events, Direction::Oldest),
        (Some("event"), Some(seq)) => {
            let seq = seq.parse().map_err(|_| unknown())?;
            let input = EventInput { session, store: None, seq, offset: 0 };
            Outgoing::new(out, &Quoted::new(read_event(stores, input)?))
        }
        (Some("diff"), None) => {
            let (from, to, path) = (None, None, None);
            let (offset, limit, cursor) = (0, None, 0);
            let input = DiffInput { session, store: None, from, to, path, offset, limit, cursor };
            Outgoing::new(out, &Quoted::new(session_diff(stores, input)?))
        }
        (Some("file"), Some(path)) => {
            let path = path.to_owned();
            let input = FileInput { session, store: None, path, at: None, offset: 0 };
            Outgoing::new(out, &Quoted::new(file_at(stores, input)?))
        }
        _ => Err(unknown()),
    }
}

/// A page of a session.
pub(crate) fn page(
    stores: &Stores,
    session: String,
    form: Form,
    order: Direction,
) -> Result<Outgoing> {
    let (store, at, lane, cursor) = (None, None, None, None);
    let limit: Option<Limit> = None;
    let input = ReadInput { session, store, form, at, lane, order, limit, cursor };
    Outgoing::new(&stores.redactor, &Quoted::new(read_session(stores, input)?))
}
