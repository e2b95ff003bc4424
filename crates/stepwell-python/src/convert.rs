//! What goes in and out, as JSON and as plain values.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use stepwell::log::Head;
use stepwell::model::{Digest, Epoch, EventId, Time};
use stepwell::store::Order;
use stepwell::store::query::{Cursor, Filter, InScope, Page, Query, Sort, TrashScope};
use stepwell::{Created, NewEvent, Recorded, Seq, SessionId, SessionInfo, Status};

use crate::errors::invalid;

/// The digest under which Stepwell keeps some bytes.
#[pyfunction]
pub(crate) fn digest<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, Digest::of(data).as_bytes().as_slice())
}

/// The event id that stands for some bytes.
#[pyfunction]
pub(crate) fn derived_id(data: &[u8]) -> String {
    EventId::derived(data).to_string()
}

/// A session's name.
pub(crate) fn session(id: &str) -> PyResult<SessionId> {
    id.parse().map_err(|error: stepwell::model::InvalidName| invalid(error.to_string()))
}

/// What a method was given as JSON.
pub(crate) fn read<'a, T: Deserialize<'a>>(what: &str, json: &'a str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| {
        // Where in the JSON it is, nobody knows who did not write it.
        let error = error.to_string();
        let plain = error.split(" at line ").next().unwrap_or_default();
        invalid(format!("{what}: {plain}"))
    })
}

/// An event as Python says it: its kind, its body, and if it likes a name and a time.
#[derive(Deserialize)]
struct Given {
    kind: String,
    body: Box<RawValue>,
    #[serde(default)]
    version: Option<u32>,
    #[serde(default)]
    id: Option<EventId>,
    #[serde(default)]
    at: Option<Time>,
    /// Which of the call's attachments belong to it.
    #[serde(default)]
    attach: Vec<usize>,
}

/// Events to be recorded, each with the numbers of its attachments.
pub(crate) struct Events(pub(crate) Vec<(NewEvent, Vec<usize>)>);

impl<'de> Deserialize<'de> for Events {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let given = Vec::<Given>::deserialize(from)?;
        let made = given.into_iter().map(Given::into_new).collect::<Result<Vec<_>, _>>();
        made.map(Self).map_err(D::Error::custom)
    }
}

impl Given {
    fn into_new(self) -> Result<(NewEvent, Vec<usize>), serde_json::Error> {
        // A recorded event has a place and a time, which the store will give to this one.
        let line = json!({ "seq": 1, "at": Time::EPOCH, "kind": self.kind,
                           "version": self.version.unwrap_or(1) });
        let mut line = line.to_string();
        line.pop();
        line.push_str(",\"body\":");
        line.push_str(self.body.get());
        line.push('}');
        let event = serde_json::from_str::<Recorded>(&line)?.event;
        let new = NewEvent { id: self.id, at: self.at, ..NewEvent::from(event) };
        Ok((new, self.attach))
    }
}

/// A write of a batch.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GivenWrite {
    /// Makes a session.
    Create {
        /// Its first event.
        created: Box<Created>,
        /// When it began.
        #[serde(default)]
        at: Option<Time>,
    },
    /// Appends to one.
    Append {
        /// The session to append to.
        session: SessionId,
        /// The seq that it must be at.
        #[serde(default)]
        expected: Option<u64>,
        /// What to record.
        events: Events,
    },
    /// Empties events of one.
    Prune {
        /// The session to prune.
        session: SessionId,
        /// The seq that it must be at.
        #[serde(default)]
        expected: Option<u64>,
        /// Which events.
        seqs: Vec<u64>,
        /// The reason, for the log.
        rule: String,
    },
}

/// Which sessions are asked for.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GivenQuery {
    status: Vec<Status>,
    agent: Option<String>,
    model: Option<String>,
    tags: Vec<String>,
    label: Option<String>,
    task: Option<String>,
    workspace: Option<String>,
    source: Option<String>,
    scope: Option<String>,
    scope_prefix: Option<String>,
    prefix: Option<String>,
    since: Option<Time>,
    until: Option<Time>,
    trash: bool,
    /// Only those that can be resumed now.
    pub(crate) ready: bool,
    sort: Option<String>,
    oldest_first: bool,
    limit: Option<usize>,
    after: Option<Cursor>,
}

impl GivenQuery {
    /// The question to a store.
    pub(crate) fn into_query(self) -> PyResult<Query> {
        let sort = match self.sort.as_deref() {
            None | Some("updated") => Sort::Updated,
            Some("created") => Sort::Created,
            Some("cost") => Sort::Cost,
            Some("steps") => Sort::Steps,
            Some(other) => {
                let known = "expected one of: updated, created, cost, steps";
                return Err(invalid(format!("{other:?} is no order of sessions; {known}")));
            }
        };
        let order = if self.oldest_first { Order::Oldest } else { Order::Newest };
        let (limit, after) = (self.limit.unwrap_or(usize::MAX), self.after);
        Ok(Query { sort, order, limit, after, filter: self.into_filter() })
    }

    /// The sessions that are meant.
    pub(crate) fn into_filter(self) -> Filter {
        let front = self.scope_prefix.map(InScope::StartsWith);
        Filter {
            status: self.status,
            agent: self.agent,
            model: self.model,
            tags: self.tags,
            label: self.label,
            task: self.task,
            workspace: self.workspace,
            system: self.source,
            scope: self.scope.map(InScope::Is).or(front),
            prefix: self.prefix,
            since: self.since,
            until: self.until,
            place: if self.trash { TrashScope::Trash } else { TrashScope::Kept },
            ..Filter::default()
        }
    }
}

/// How a session stands, as Python is told it.
#[derive(Serialize)]
struct Info<'a> {
    #[serde(flatten)]
    head: &'a Head,
    held: Option<GivenLease>,
    trashed_at: Option<Time>,
    damage: Option<GivenDamage<'a>>,
    bytes: u64,
    own_from: Seq,
}

#[derive(Serialize)]
struct GivenLease {
    holder: String,
    expires: Time,
    epoch: Epoch,
}

#[derive(Serialize)]
struct GivenDamage<'a> {
    seq: Seq,
    what: &'a str,
}

impl<'a> Info<'a> {
    fn of(info: &'a SessionInfo) -> Self {
        let held = info.held.as_ref().map(|held| GivenLease {
            holder: held.holder.to_string(),
            expires: held.expires,
            epoch: held.epoch,
        });
        let damage = info.damage.as_ref().map(|it| GivenDamage { seq: it.seq, what: &it.what });
        let (trashed_at, bytes) = (info.trashed_at, info.bytes);
        Self { head: &info.head, held, trashed_at, damage, bytes, own_from: info.own_from }
    }
}

#[derive(Serialize)]
struct GivenPage<'a> {
    sessions: Vec<Info<'a>>,
    next: Option<Cursor>,
}

/// How a session stands, as JSON.
pub(crate) fn info(info: &SessionInfo) -> String {
    serde_json::to_string(&Info::of(info)).unwrap_or_default()
}

/// A page of sessions, as JSON.
pub(crate) fn page(page: &Page) -> String {
    let sessions = page.sessions.iter().map(Info::of).collect();
    serde_json::to_string(&GivenPage { sessions, next: page.next }).unwrap_or_default()
}
