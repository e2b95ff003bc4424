//! What is asked of a store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use stepwell::log::{MessageOrigin, Timeline};
use stepwell::model::{Digest, Kind};
use stepwell::sessions::ResumeLimits;
use stepwell::store::query::{
    KeyRange, Newest, NewestQuery, Page, Query, Rank, RecordQuery, Search, SystemPrompts,
};
use stepwell::store::{Excerpt, LOOK_BACK, Order, Span};
use stepwell::{ErrorKind, Event, Lane, Message, Recorded, Seq, SessionId, Stepwell, View};
use stepwell_formats::Format;

use crate::convert::{GivenQuery, info, page, read, session};
use crate::errors::{invalid, raised_format};
use crate::given::{Natural, Text};
use crate::packing::Unpacker;
use crate::well::Well;

/// A record: its seq, key, data, blobs, and its event id.
type RecordRow<'py> = (u64, String, String, Vec<Bound<'py, PyBytes>>);

/// Where a session's chain ends; a record, and those beside it.
type NewestRow<'py> = (Option<Bound<'py, PyBytes>>, Option<(RecordRow<'py>, Vec<RecordRow<'py>>)>);

#[pymethods]
impl Well {
    /// The id of the session that a name means: an id, a label, a unique part.
    fn find(&self, py: Python<'_>, name: Text<'_>) -> PyResult<String> {
        Ok(self.run(py, |well| well.find(&name))?.to_string())
    }

    /// Is there such a session?
    fn exists(&self, py: Python<'_>, id: Text<'_>) -> PyResult<bool> {
        let id = session(&id)?;
        self.run(py, |well| well.store().exists(&id))
    }

    /// How a session stands, as JSON.
    fn info(&self, py: Python<'_>, id: Text<'_>) -> PyResult<String> {
        let id = session(&id)?;
        self.run(py, |well| Ok(info(&well.store().info(&id)?)))
    }

    /// Where a session's log ends.
    fn last_seq(&self, py: Python<'_>, id: Text<'_>) -> PyResult<u64> {
        let id = session(&id)?;
        self.run(py, |well| Ok(well.store().info(&id)?.head.seq.get()))
    }

    /// One page of sessions, as JSON.
    fn sessions(&self, py: Python<'_>, query: Text<'_>) -> PyResult<String> {
        let query = read::<GivenQuery>("query", &query)?;
        let (ready, query) = (query.ready, query.into_query()?);
        self.run(py, |well| {
            if !ready {
                return Ok(page(&well.list(&query)?));
            }
            // Whether one can be resumed, its log says: they are looked at one by one.
            let mut found = Page::default();
            for info in well.sessions(Query { limit: usize::MAX, ..query.clone() }) {
                let info = info?;
                let decided = well.decide_resume(Some(&info), ResumeLimits::default())?;
                if decided.should_resume && found.sessions.len() < query.limit {
                    found.sessions.push(info);
                }
            }
            Ok(page(&found))
        })
    }

    /// All sessions that a query means, as JSON; each with its records of those from `first` to
    /// before `end`, and the last event of a kind.
    fn listed(
        &self,
        py: Python<'_>,
        query: Text<'_>,
        first: Text<'_>,
        end: Text<'_>,
        kind: Text<'_>,
    ) -> PyResult<String> {
        let query = read::<GivenQuery>("query", &query)?.into_query()?;
        let kind = Kind::ALL.iter().copied().find(|it| it.as_str() == &*kind);
        let kind = kind.ok_or_else(|| invalid("no such kind of event"))?;
        let records =
            RecordQuery { keys: key_range(&first, &end), order: Order::Oldest, limit: usize::MAX };
        self.run(py, |well| {
            Ok(serde_json::to_string(&listed(well, &query, &records, kind)?).unwrap_or_default())
        })
    }

    /// Hits of a search, as JSON.
    fn search(
        &self,
        py: Python<'_>,
        text: Text<'_>,
        query: Text<'_>,
        by_rank: bool,
    ) -> PyResult<String> {
        let query = read::<GivenQuery>("query", &query)?.into_query()?;
        let rank = if by_rank { Rank::Relevance } else { Rank::Newest };
        let search = Search {
            text: (*text).to_owned(),
            limit: query.limit,
            filter: query.filter,
            rank,
            system: SystemPrompts::Skipped,
        };
        self.run(py, |well| {
            let hit = |hit: &stepwell::store::query::Hit| {
                json!({ "session": hit.session, "seq": hit.seq, "at": hit.at, "kind": hit.kind,
                        "role": hit.role, "source": hit.source,
                        "snippet": hit.snippet.text() })
            };
            let found = well.search(&search)?;
            Ok(Value::from(found.hits.iter().map(hit).collect::<Vec<_>>()).to_string())
        })
    }

    /// Events of a session, as JSON. With `live`, only those that count after rewinds.
    #[pyo3(signature = (id, *, after = None, to = None, newest = false, limit = None, live = false))]
    fn events(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        after: Option<Natural>,
        to: Option<Natural>,
        newest: bool,
        limit: Option<Natural>,
        live: bool,
    ) -> PyResult<String> {
        let id = session(&id)?;
        let span = Span {
            from: Seq::new(after.map_or(0, |after| after.0)).next(),
            to: to.map_or(Seq::MAX, |to| Seq::new(to.0)),
            order: if newest { Order::Newest } else { Order::Oldest },
            limit: limit.map_or(usize::MAX, Natural::count),
        };
        self.run(py, |well| {
            let mut events = well.store().events(&id, span)?.intact(&id)?;
            if live {
                keep_live(well, &id, &mut events)?;
            }
            Ok(serde_json::to_string(&events).unwrap_or_default())
        })
    }

    /// Events of some kinds that have a key, as JSON; of one key or any.
    #[pyo3(signature = (id, kinds, key = None))]
    fn keyed(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        kinds: Vec<String>,
        key: Option<Text<'_>>,
    ) -> PyResult<String> {
        let id = session(&id)?;
        let known = |kind: &String| Kind::ALL.iter().copied().find(|it| it.as_str() == kind);
        let kinds: Option<Vec<Kind>> = kinds.iter().map(known).collect();
        let kinds = kinds.ok_or_else(|| invalid("no such kind of event"))?;
        self.run(py, |well| {
            let facts =
                stepwell::store::Facts { kinds: &kinds, key: key.as_deref(), from: Seq::FIRST };
            let events = well.store().keyed(&id, facts)?;
            Ok(serde_json::to_string(&events).unwrap_or_default())
        })
    }

    /// The event that bears a client's id, as JSON.
    fn event(&self, py: Python<'_>, id: Text<'_>, event: Text<'_>) -> PyResult<Option<String>> {
        let (id, event) = (session(&id)?, read("event id", &Value::from(&*event).to_string())?);
        self.run(py, |well| {
            let found = well.store().event(&id, &event)?;
            Ok(found.map(|event| serde_json::to_string(&event).unwrap_or_default()))
        })
    }

    /// The conversation of a lane as a model would be shown it, as JSON.
    fn view(&self, py: Python<'_>, id: Text<'_>, lane: Text<'_>) -> PyResult<String> {
        let id = session(&id)?;
        let lane: Lane = lane.parse().map_err(|error| invalid(format!("{error}")))?;
        self.run(py, |well| {
            let events = well.store().events(&id, Span::ALL)?.intact(&id)?;
            let shown = |shown: &stepwell::log::ViewMessage| {
                let made = match shown.made {
                    MessageOrigin::Recorded => "recorded",
                    MessageOrigin::Summary => "summary",
                    MessageOrigin::Results => "results",
                    MessageOrigin::Aside => "aside",
                };
                json!({ "seq": shown.seq, "made": made, "message": shown.message })
            };
            let view = View::of(&lane, events);
            Ok(Value::from(view.messages.iter().map(shown).collect::<Vec<_>>()).to_string())
        })
    }

    /// The messages that a lane's view is made of, as if the session ended at a seq: where each is
    /// recorded, and the digest of what it says.
    #[pyo3(signature = (id, lane, at = None))]
    fn shown(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        lane: Text<'_>,
        at: Option<Natural>,
    ) -> PyResult<Vec<(u64, String)>> {
        let id = session(&id)?;
        let lane: Lane = lane.parse().map_err(|error| invalid(format!("{error}")))?;
        let span = Span { to: at.map_or(Seq::MAX, |at| Seq::new(at.0)), ..Span::ALL };
        self.run(py, |well| {
            let events = well.store().events(&id, span)?.intact(&id)?;
            let shown = View::recorded(&lane, events).into_iter();
            Ok(shown.map(|(seq, message)| (seq.get(), digest_of(&message))).collect())
        })
    }

    /// The messages that no lane shows any more, and whose texts are still there.
    fn unshown(&self, py: Python<'_>, id: Text<'_>) -> PyResult<Vec<u64>> {
        let id = session(&id)?;
        self.run(py, |well| {
            let mut events = well.store().events(&id, Span::ALL)?.intact(&id)?;
            events.retain(|event| !matches!(event.event, Event::Record(_)));
            let mut left: BTreeMap<Seq, Lane> = BTreeMap::new();
            for event in &events {
                if let Event::Message(message) = &event.event
                    && !message.parts.is_empty()
                {
                    left.insert(event.seq, message.lane.clone());
                }
            }
            let lanes: BTreeSet<Lane> = left.values().cloned().collect();
            for lane in lanes {
                for (seq, _) in View::recorded(&lane, events.clone()) {
                    left.remove(&seq);
                }
            }
            Ok(left.into_keys().map(Seq::get).collect())
        })
    }

    /// What each lane did and spent, as JSON.
    fn lanes(&self, py: Python<'_>, id: Text<'_>) -> PyResult<String> {
        let id = session(&id)?;
        self.run(py, |well| {
            let lanes = well.store().lanes(&id)?;
            let lanes = lanes
                .iter()
                .map(|(lane, state)| (lane.to_string(), json!({ "steps": state.steps })));
            Ok(Value::from(lanes.collect::<serde_json::Map<_, _>>()).to_string())
        })
    }

    /// Records of a session in the order of their keys, of those from `first` to before `end`.
    /// Of records with one key, the earlier comes first (the later, if `newest`).
    #[pyo3(signature = (id, first, end, *, newest = false, limit = None))]
    fn records<'py>(
        &self,
        py: Python<'py>,
        id: Text<'_>,
        first: Text<'_>,
        end: Text<'_>,
        newest: bool,
        limit: Option<Natural>,
    ) -> PyResult<Vec<RecordRow<'py>>> {
        let id = session(&id)?;
        let limit = limit.map_or(usize::MAX, Natural::count);
        let order = if newest { Order::Newest } else { Order::Oldest };
        let query = RecordQuery { keys: key_range(&first, &end), order, limit };
        let found = self.run(py, |well| records(well, &id, &query))?;
        Ok(found.into_iter().map(|found| row(py, found)).collect())
    }

    /// The record with the last key of those from `first` to before `end`, and the records that
    /// have its key behind `beside` in place of `front`. What they say is unpacked. Before them
    /// stands where the session's chain ends. None in place of both, if that is `known`.
    #[pyo3(signature = (id, first, end, front, beside, dictionaries, known = None))]
    fn newest_record<'py>(
        &self,
        py: Python<'py>,
        id: Text<'_>,
        first: Text<'_>,
        end: Text<'_>,
        front: Text<'_>,
        beside: Text<'_>,
        dictionaries: Vec<PyBackedBytes>,
        known: Option<&[u8]>,
    ) -> PyResult<Option<NewestRow<'py>>> {
        let id = session(&id)?;
        let known = known.and_then(Digest::from_slice);
        let found = self.run(py, |well| {
            let beside = |newest: &Recorded| {
                let path = newest.event.key().unwrap_or_default();
                KeyRange::Is(format!("{}{}", &*beside, path.strip_prefix(&*front).unwrap_or(&path)))
            };
            let query = NewestQuery { keys: &key_range(&first, &end), beside: &beside, known };
            let (chain, newest, others) = match well.store().newest_record(&id, query)? {
                Newest::Absent => return Ok(None),
                Newest::Unchanged => return Ok(Some((known, Vec::new()))),
                Newest::Found { chain, record, beside } => (chain, *record, beside),
            };
            let all = [newest].into_iter().chain(others).filter_map(record);
            let mut found: Vec<_> = all.collect();
            let mut unpacker = Unpacker::new(&dictionaries);
            for (_, record) in found.iter_mut().filter(|(_, record)| !record.data.is_empty()) {
                record.data = unpacker.unpacked(record)?;
            }
            Ok(Some((chain, found)))
        })?;
        Ok(found.map(|(chain, found)| {
            let chain = chain.map(|chain| PyBytes::new(py, chain.as_bytes().as_slice()));
            let mut rows = found.into_iter().map(|found| row(py, found));
            (chain, rows.next().map(|newest| (newest, rows.collect())))
        }))
    }

    /// The bytes of blobs, in the order of their digests.
    fn blobs<'py>(
        &self,
        py: Python<'py>,
        digests: Vec<PyBackedBytes>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let named = digests.iter().map(|it| Digest::from_slice(it)).collect::<Option<Vec<_>>>();
        let named = named.ok_or_else(|| invalid("a digest has 32 bytes"))?;
        let found = self.run(py, |well| well.store().blobs(&named))?;
        Ok(found.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// Waits until a session has an event after a seq, or the time is over. Returns its last.
    fn wait_after(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        seq: Natural,
        seconds: f64,
    ) -> PyResult<u64> {
        let id = session(&id)?;
        let patience = Duration::try_from_secs_f64(seconds).map_err(|e| invalid(e.to_string()))?;
        self.run(py, |well| Ok(well.wait_after(&id, Seq::new(seq.0), patience)?.get()))
    }

    /// What a verification found, as JSON.
    fn verify(&self, py: Python<'_>, id: Text<'_>) -> PyResult<String> {
        let id = session(&id)?;
        self.run(py, |well| {
            let verdict = well.store().maintain().verify(&id)?;
            let damage = verdict.damage.as_ref();
            let damage = damage.map(|it| json!({ "seq": it.seq, "what": it.what }));
            Ok(json!({ "sound": verdict.is_sound(), "intact": verdict.intact,
                       "scrubbed": verdict.scrubbed,
                       "pruned": verdict.pruned, "damage": damage })
            .to_string())
        })
    }

    /// A session in one of the formats that are one file.
    fn export<'py>(
        &self,
        py: Python<'py>,
        id: Text<'_>,
        format: Text<'_>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let id = session(&id)?;
        let format: Format = format.parse().map_err(|error| invalid(format!("{error}")))?;
        let work = |well: &Stepwell| {
            let mut written = Vec::new();
            stepwell_formats::export(well, &id, format, &mut written).map(|_| written)
        };
        let written = self.handle.run_for(py, work, |error| raised_format(&error))?;
        Ok(PyBytes::new(py, &written))
    }

    /// Bytes in use: events, blobs, all.
    fn disk_use(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let used = self.run(py, |well| well.store().maintain().disk_use())?;
        Ok((used.events, used.blobs, used.total))
    }
}

/// The sessions of a query, each with some of its records and the last event of a kind.
fn listed(
    well: &Stepwell,
    query: &Query,
    wanted: &RecordQuery,
    kind: Kind,
) -> stepwell::Result<Vec<Value>> {
    let page = well.list(query)?;
    let ids: Vec<SessionId> = page.sessions.iter().map(|info| info.head.id.clone()).collect();
    let last = last_events(well, &ids, kind)?;
    let mut listed = Vec::with_capacity(ids.len());
    for ((session, id), last) in page.sessions.iter().zip(&ids).zip(last) {
        let kept = match records(well, id, wanted) {
            Ok(kept) => kept,
            // It was erased meanwhile.
            Err(error) if error.kind() == ErrorKind::Absent => continue,
            Err(error) => return Err(error),
        };
        let rows = kept.into_iter();
        let rows: Vec<_> = rows.map(|(_, record)| json!([record.path(), record.data])).collect();
        listed.push(json!({ "seq": session.head.seq, "source_id": session.head.source.as_ref().map(|it| &it.id), "records": rows, "last": last }));
    }
    Ok(listed)
}

/// The last event of a kind of each session, as far as it is near its end.
fn last_events(
    well: &Stepwell,
    ids: &[SessionId],
    kind: Kind,
) -> stepwell::Result<Vec<Option<Recorded>>> {
    let is_meant = |event: &Recorded| event.event.kind() == kind.as_str();
    if well.store().server().is_some() {
        let wanted = Excerpt { keyed: &[], last: &[kind] };
        let found = well.store().excerpts(ids, &wanted)?.into_iter();
        return Ok(found.map(|events| events.ok()?.into_iter().rfind(is_meant)).collect());
    }
    let last = |id: &SessionId| {
        for limit in [4, LOOK_BACK] {
            let Ok(found) = well.store().events(id, Span::last(limit)) else { break };
            if let Some(found) = found.events.into_iter().find(is_meant) {
                return Some(found);
            }
        }
        None
    };
    Ok(ids.iter().map(last).collect())
}

/// Leaves the events that count where a session stands.
fn keep_live(well: &Stepwell, id: &SessionId, events: &mut Vec<Recorded>) -> stepwell::Result<()> {
    let moves = well.store().keyed_events(id, &[Kind::Rewound, Kind::Undone])?;
    let Some(last) = events.iter().chain(&moves).map(|event| event.seq).max() else {
        return Ok(());
    };
    let timeline = Timeline::at(last, moves.iter());
    events.retain(|event| timeline.contains(event.seq));
    Ok(())
}

/// A name of what a message says.
fn digest_of(message: &Message) -> String {
    let said = serde_json::to_vec(&(message.role, &message.parts)).unwrap_or_default();
    Digest::of(&said).to_string()
}

/// A name of what a message says, by which [`Well::shown`] tells it from others.
#[pyfunction]
pub(crate) fn message_digest(body: &str) -> PyResult<String> {
    Ok(digest_of(&read("message", body)?))
}

/// A record as Python is told it.
fn row(py: Python<'_>, (seq, record): (Seq, stepwell::model::Record)) -> RecordRow<'_> {
    let blobs = record.blobs.iter().map(|blob| PyBytes::new(py, blob.as_bytes().as_slice()));
    (seq.get(), record.path(), record.data, blobs.collect())
}

/// The keys from the first on, up to the end.
pub(crate) fn key_range(first: &str, end: &str) -> KeyRange {
    // An end that no key lies before but the first means that one alone.
    match end.strip_suffix('\0') {
        Some(only) if only == first => KeyRange::Is(first.to_owned()),
        _ => KeyRange::Between { from: first.to_owned(), to: end.to_owned() },
    }
}

/// Records by key.
pub(crate) fn records(
    well: &Stepwell,
    id: &SessionId,
    query: &RecordQuery,
) -> stepwell::Result<Vec<(Seq, stepwell::model::Record)>> {
    Ok(well.store().records(id, query)?.into_iter().filter_map(record).collect())
}

/// A record, and where it is.
fn record(recorded: Recorded) -> Option<(Seq, stepwell::model::Record)> {
    match recorded.event {
        Event::Record(record) => Some((recorded.seq, record)),
        _ => None,
    }
}
