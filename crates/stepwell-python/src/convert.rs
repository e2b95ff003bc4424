//! What goes in and out, as JSON and as plain values.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use stepwell::{
    Created, Digest, EventId, Filter, InScope, NewEvent, Order, Page, Query, Recorded, SessionId,
    SessionInfo, Sort, Status, Time, TrashScope,
};

use crate::errors::invalid;

/// The digest under which Stepwell keeps some bytes.
#[pyfunction]
pub(crate) fn digest<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, Digest::blake3(data).as_column())
}

/// The event id that stands for some bytes.
#[pyfunction]
pub(crate) fn derived_id(data: &[u8]) -> String {
    EventId::derived(data).to_string()
}

/// A session's name.
pub(crate) fn session(id: &str) -> PyResult<SessionId> {
    id.parse().map_err(|error: stepwell::InvalidName| invalid(error.to_string()))
}

/// What a method was given as JSON.
pub(crate) fn read<'a, T: Deserialize<'a>>(what: &str, json: &'a str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| invalid(format!("{what}: {error}")))
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
        /// Which.
        session: SessionId,
        /// The seq that it must be at.
        #[serde(default)]
        expected: Option<u64>,
        /// What to record.
        events: Events,
    },
    /// Empties events of one.
    Prune {
        /// Which.
        session: SessionId,
        /// Which events.
        seqs: Vec<u64>,
        /// Why.
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
    system: Option<String>,
    scope: Option<String>,
    scope_prefix: Option<String>,
    prefix: Option<String>,
    since: Option<Time>,
    until: Option<Time>,
    trash: bool,
    sort: Option<String>,
    oldest_first: bool,
    limit: Option<usize>,
    after: Option<stepwell::Cursor>,
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
            system: self.system,
            scope: self.scope.map(InScope::Is).or(front),
            prefix: self.prefix,
            since: self.since,
            until: self.until,
            place: if self.trash { TrashScope::Trash } else { TrashScope::Kept },
            ..Filter::default()
        }
    }
}

/// How a session stands, as JSON.
pub(crate) fn info(info: &SessionInfo) -> Value {
    let mut value = serde_json::to_value(&info.head).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        let held = info.held.as_ref().map(|held| {
            json!({ "holder": held.holder.to_string(), "expires": held.expires,
                    "epoch": held.epoch })
        });
        fields.insert("held".to_owned(), held.into());
        fields.insert("trashed_at".to_owned(), json!(info.trashed_at));
        let damage = info.damage.as_ref();
        let damage = damage.map(|it| json!({ "seq": it.seq, "what": it.what }));
        fields.insert("damage".to_owned(), damage.into());
        fields.insert("bytes".to_owned(), info.bytes.into());
        fields.insert("own_from".to_owned(), json!(info.own_from));
    }
    value
}

/// A page of sessions, as JSON.
pub(crate) fn page(page: &Page) -> Value {
    let sessions: Vec<Value> = page.sessions.iter().map(info).collect();
    json!({ "sessions": sessions, "next": page.next })
}
