//! Short words for what most tests do.

use stepwell::log::Head;
use stepwell::model::Origin;
use stepwell::store::Span;
use stepwell::store::query::{Filter, Query, TrashScope};
use stepwell::{Created, Message, Recorded, Seq, Session, SessionId, Stepwell};
use stepwell_formats::{Format, Imported, Result, export, import};

/// The two forms of an archive.
pub(crate) const ARCHIVES: [Format; 2] = [Format::JSON, Format::JSONL];

pub(crate) fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

pub(crate) fn begin(well: &Stepwell, name: &str, origin: Origin) -> Session {
    let created = Created { origin, ..Created::new(id(name), format!("task of {name}")) };
    well.create(created).unwrap()
}

pub(crate) fn root(well: &Stepwell, name: &str) -> Session {
    begin(well, name, Origin::Root)
}

pub(crate) fn fork(well: &Stepwell, parent: &str, at: u64, name: &str) -> Session {
    begin(well, name, Origin::Fork { parent: id(parent), at: Seq::new(at) })
}

pub(crate) fn subagent(well: &Stepwell, parent: &str, name: &str) -> Session {
    begin(well, name, Origin::Subagent { parent: id(parent) })
}

/// Says some things.
pub(crate) fn say(session: &mut Session, texts: &[&str]) {
    for text in texts {
        session.append(Message::user(*text)).unwrap();
    }
}

pub(crate) fn exported(well: &Stepwell, name: &str, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    export(well, &id(name), format, &mut out).unwrap();
    out
}

pub(crate) fn text(well: &Stepwell, name: &str, format: Format) -> String {
    String::from_utf8(exported(well, name, format)).unwrap()
}

pub(crate) fn imported(well: &Stepwell, archive: impl AsRef<[u8]>) -> Result<Imported> {
    import(well, &mut archive.as_ref())
}

pub(crate) fn log(well: &Stepwell, id: &SessionId) -> Vec<Recorded> {
    well.store().events(id, Span::ALL).unwrap().intact(id).unwrap()
}

/// Every session's name, those in the trash included, sorted.
pub(crate) fn names(well: &Stepwell) -> Vec<String> {
    let filter = Filter { place: TrashScope::Anywhere, ..Filter::default() };
    let page = well.list(&Query { filter, ..Query::default() }).unwrap();
    let mut names: Vec<_> = page.sessions.iter().map(|s| s.head.id.to_string()).collect();
    names.sort();
    names
}

/// A session's head as it reads where nobody runs it.
fn head(well: &Stepwell, id: &SessionId) -> Head {
    well.info(id).unwrap().head.without_runner()
}

/// Fails unless a session is the same in both, event for event, and sound.
pub(crate) fn assert_same(one: &Stepwell, other: &Stepwell, id: &SessionId) {
    assert_eq!(log(one, id), log(other, id), "the log of {id}");
    assert_eq!(head(one, id), head(other, id), "the head of {id}");
    let lanes = |well: &Stepwell| well.store().lanes(id).unwrap();
    assert_eq!(lanes(one), lanes(other), "the lanes of {id}");
    let verdict = other.store().maintain().verify(id).unwrap();
    assert!(verdict.is_sound(), "{id}: {verdict:?}");
    assert!(other.info(id).unwrap().held.is_none(), "{id} is held");
}
