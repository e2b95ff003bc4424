//! What changes a store.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use stepwell::log::Timeline;
use stepwell::model::{
    Attachment, Change, Checkpoint, Digest, Edited, Epoch, GateAnswered, Kind, Origin, Restored,
    Rewound, Scope, Source, Step, Undone,
};
use stepwell::store::{Append, Create, Expected, Prune, Span, Write, Written};
use stepwell::{Created, Error, Event, Lane, NewEvent, Seq, SessionId, Stepwell};

use crate::convert::{Events, GivenWrite, read, session};
use crate::errors::invalid;
use crate::given::{Natural, Text};
use crate::well::{Hold, Well};

#[pymethods]
impl Well {
    /// Does several writes, all or none, and stores the bytes that they name. What is given is
    /// kept byte for byte. Returns the first and last seq of each.
    #[pyo3(signature = (writes, attachments = Vec::new()))]
    fn batch(
        &self,
        py: Python<'_>,
        writes: Text<'_>,
        attachments: Vec<PyBackedBytes>,
    ) -> PyResult<Vec<(u64, u64)>> {
        let given: Vec<GivenWrite> = read("writes", &writes)?;
        let writes = given.into_iter().map(|write| self.store_write(write, &attachments));
        let writes = writes.collect::<PyResult<Vec<Write>>>()?;
        self.run(py, |well| Ok(well.store().batch(writes)?.iter().map(span).collect()))
    }

    /// Appends events to a session, all or none; secrets are taken out of them first if
    /// `redact` says so. Under a hold it is its holder who writes. `expected` is the seq that the
    /// session must be at, `intact` that of an event that must not have been pruned.
    #[pyo3(signature = (id, events, *, attachments = Vec::new(), expected = None, intact = None,
                        hold = None, redact = false))]
    fn append(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        events: Text<'_>,
        attachments: Vec<PyBackedBytes>,
        expected: Option<Natural>,
        intact: Option<Natural>,
        hold: Option<&Hold>,
        redact: bool,
    ) -> PyResult<(u64, u64)> {
        let (id, given) = (session(&id)?, read::<Events>("events", &events)?);
        let epoch = self.epoch(py, &id, hold)?;
        let events = complete(given, &attachments)?;
        let expected = at(expected).or(intact.map(|seq| Seq::new(seq.0)).map(Expected::Intact));
        self.run(py, |well| {
            let events = if redact { redacted(well, events) } else { events };
            let append = Append { session: id, epoch, expected, events: events.into() };
            Ok(span(&well.store().write(Write::Append(append))?))
        })
    }

    /// Makes a session that nobody holds and that begins with these events; secrets are taken
    /// out of all of it.
    fn create(&self, py: Python<'_>, created: Text<'_>, events: Text<'_>) -> PyResult<String> {
        let mut fields: serde_json::Map<String, serde_json::Value> = read("created", &created)?;
        let unnamed = !fields.contains_key("id");
        if unnamed {
            // A place holder, until the store is asked which names are free.
            fields.insert("id".to_owned(), "unnamed".into());
        }
        let fields = serde_json::Value::from(fields).to_string();
        let mut created: Created = read("created", &fields)?;
        let events = complete(read::<Events>("events", &events)?, &[])?;
        self.run(py, move |well| {
            if unnamed {
                created.id = well.new_id();
            }
            let id = created.id.to_string();
            well.create_unheld(created, events)?;
            Ok(id)
        })
    }

    /// Records that a step of a lane is complete, behind these messages.
    #[pyo3(signature = (id, messages, lane, *, hold = None, redact = true))]
    fn step(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        messages: Text<'_>,
        lane: Text<'_>,
        hold: Option<&Hold>,
        redact: bool,
    ) -> PyResult<(u64, u64)> {
        let (id, given) = (session(&id)?, read::<Events>("messages", &messages)?);
        let lane: Lane = lane.parse().map_err(|error| invalid(format!("{error}")))?;
        let epoch = self.epoch(py, &id, hold)?;
        let events = complete(given, &[])?;
        self.run(py, |well| {
            let events = if redact { redacted(well, events) } else { events };
            let events = step(well, &id, lane, events)?.into();
            let append = Append { session: id, epoch, expected: None, events };
            Ok(span(&well.store().write(Write::Append(append))?))
        })
    }

    /// Stores bytes. Returns their digests.
    fn put_blobs<'py>(
        &self,
        py: Python<'py>,
        blobs: Vec<PyBackedBytes>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let named: Vec<Digest> = blobs.iter().map(|bytes| Digest::of(bytes)).collect();
        let pairs = named.iter().copied().zip(blobs.iter().map(|bytes| &**bytes));
        let pairs: Vec<(Digest, &[u8])> = pairs.collect();
        self.run(py, |well| well.store().keep_blobs(&pairs))?;
        Ok(named.iter().map(|digest| PyBytes::new(py, digest.as_bytes().as_slice())).collect())
    }

    /// Makes a session that shares another one's events, and that nobody holds.
    #[pyo3(signature = (id, *, at = None, name = None, source = None, scope = None))]
    fn fork(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        at: Option<Natural>,
        name: Option<Text<'_>>,
        source: Option<(String, String)>,
        scope: Option<String>,
    ) -> PyResult<String> {
        let parent = session(&id)?;
        let name = name.as_deref().map(session).transpose()?;
        let source = source.map(|(system, id)| Source { system, id, started_at: None });
        let fork = Fork { name, source, scope };
        self.run(py, |well| fork.make(well, &parent, at.map(|at| Seq::new(at.0))))
    }

    /// Moves the view back to an event. Returns the seq of the move.
    #[pyo3(signature = (id, to, *, expected = None, hold = None))]
    fn rewind(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        to: Natural,
        expected: Option<Natural>,
        hold: Option<&Hold>,
    ) -> PyResult<u64> {
        let id = session(&id)?;
        let epoch = self.epoch(py, &id, hold)?;
        let (to, scope) = (Seq::new(to.0), Scope::Chat);
        let rewound = Rewound { to, scope, restored: Restored::default() };
        let append = Append {
            session: id,
            epoch,
            expected: at(expected),
            events: vec![rewound.into()].into(),
        };
        self.run(py, |well| Ok(well.store().write(Write::Append(append))?.last.get()))
    }

    /// Takes the last rewind or compaction back that counts. Returns the seq of that.
    #[pyo3(signature = (id, *, hold = None))]
    fn undo(&self, py: Python<'_>, id: Text<'_>, hold: Option<&Hold>) -> PyResult<u64> {
        let id = session(&id)?;
        let epoch = self.epoch(py, &id, hold)?;
        self.run(py, |well| undo(well, &id, epoch))
    }

    /// Names a session for people, or takes its name away.
    fn label(&self, py: Python<'_>, id: Text<'_>, label: Option<Text<'_>>) -> PyResult<u64> {
        let id = session(&id)?;
        let label = label.map_or(Change::Clear, |label| Change::Set((*label).to_owned()));
        self.run(py, |well| Ok(well.edit(&id, Edited { label, ..Edited::default() })?.get()))
    }

    /// Names the present point of a session. Returns its seq.
    #[pyo3(signature = (id, name, *, hold = None))]
    fn checkpoint(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        name: Text<'_>,
        hold: Option<&Hold>,
    ) -> PyResult<u64> {
        let id = session(&id)?;
        let epoch = self.epoch(py, &id, hold)?;
        let checkpoint = Checkpoint::from(&*name);
        self.run(py, |well| {
            let Some(epoch) = epoch else { return Ok(well.checkpoint(&id, checkpoint)?.get()) };
            checkpoint.check()?;
            let events = vec![checkpoint.into()];
            let append =
                Append { session: id, epoch: Some(epoch), expected: None, events: events.into() };
            Ok(well.store().write(Write::Append(append))?.last.get())
        })
    }

    /// Answers a gate. Returns the seq of the answer.
    fn answer(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        gate: Text<'_>,
        answer: Text<'_>,
    ) -> PyResult<u64> {
        let id = session(&id)?;
        self.run(py, |well| {
            let answer = stepwell::model::Answer::read(&answer);
            let answered = GateAnswered::new(&*gate, answer, well.claim().holder.who());
            Ok(well.answer(&id, answered)?.get())
        })
    }

    /// Erases sessions for good, with their subagents'. Those that are not there are no error.
    fn purge(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<String>> {
        let ids = ids.iter().map(|id| session(id)).collect::<PyResult<Vec<_>>>()?;
        self.run(py, |well| {
            let targets: Vec<_> = ids.into_iter().map(stepwell::store::Target::from).collect();
            let removal = well.store().maintain().purge(&targets)?;
            let absent = |error: &Error| matches!(error, Error::NoSession(_));
            match removal.left.into_iter().find(|(_, error)| !absent(error)) {
                Some((_, error)) => Err(error),
                None => Ok(removal.taken.iter().map(SessionId::to_string).collect()),
            }
        })
    }

    /// Moves a session to the trash.
    fn trash(&self, py: Python<'_>, id: Text<'_>) -> PyResult<()> {
        let id = session(&id)?;
        self.run(py, |well| well.delete(&id).map(drop))
    }

    /// Brings a session back from the trash.
    fn restore(&self, py: Python<'_>, id: Text<'_>) -> PyResult<()> {
        let id = session(&id)?;
        self.run(py, |well| well.restore(&id).map(drop))
    }
}

/// Events with their attachments: a record names them, of another event they are texts.
fn complete(Events(given): Events, attachments: &[PyBackedBytes]) -> PyResult<Vec<NewEvent>> {
    let one = |(mut new, attach): (NewEvent, Vec<usize>)| {
        for number in attach {
            let bytes = attachments.get(number);
            let bytes = bytes.ok_or_else(|| invalid("an event names an attachment too many"))?;
            let attachment = Attachment::new(&**bytes);
            if let Event::Record(record) = &mut new.event {
                record.blobs.push(attachment.digest);
            }
            new.attachments.push(attachment);
        }
        Ok(new)
    };
    given.into_iter().map(one).collect()
}

impl Well {
    /// The epoch under which a session is written to: that of a hold, or of the one by which this
    /// store holds the session. Who holds it is not locked out.
    fn epoch(
        &self,
        py: Python<'_>,
        id: &SessionId,
        hold: Option<&Hold>,
    ) -> PyResult<Option<Epoch>> {
        match hold {
            Some(hold) => hold.epoch(py).map(Some),
            None => Ok(self.handle.epoch_of(id)),
        }
    }

    fn store_write(&self, write: GivenWrite, attachments: &[PyBackedBytes]) -> PyResult<Write> {
        Ok(match write {
            GivenWrite::Create { created, at } => {
                Write::Create(Create { created: *created, event_id: None, at, claim: None })
            }
            GivenWrite::Append { session, expected, events } => {
                let (expected, events) =
                    (at(expected.map(Natural)), complete(events, attachments)?);
                let epoch = self.handle.epoch_of(&session);
                Write::Append(Append { session, epoch, expected, events: events.into() })
            }
            GivenWrite::Prune { session, expected, seqs, rule } => {
                let seqs = seqs.into_iter().map(Seq::new).collect();
                let (expected, epoch) = (at(expected.map(Natural)), self.handle.epoch_of(&session));
                Write::Prune(Prune { session, epoch, expected, seqs, rule })
            }
        })
    }
}

/// The seq that a session must be at.
fn at(expected: Option<Natural>) -> Option<Expected> {
    expected.map(|seq| Expected::At(Seq::new(seq.0)))
}

fn redacted(well: &Stepwell, events: Vec<NewEvent>) -> Vec<NewEvent> {
    let by = well.redactor();
    events.into_iter().map(|event| event.redacted(by)).collect()
}

fn span(written: &Written) -> (u64, u64) {
    (written.first.get(), written.last.get())
}

/// The events of a lane's step: what it was made of, and that it is complete.
fn step(
    well: &Stepwell,
    id: &SessionId,
    lane: Lane,
    mut events: Vec<NewEvent>,
) -> stepwell::Result<Vec<NewEvent>> {
    let done = well.store().lanes(id)?.get(&lane).map_or(0, |lane| lane.steps);
    for event in &mut events {
        if let Event::Message(message) = &mut event.event {
            message.lane = lane.clone();
        }
    }
    events.push(Step { lane, n: done + 1 }.into());
    Ok(events)
}

/// What tells a fork from its parent.
struct Fork {
    name: Option<SessionId>,
    source: Option<Source>,
    scope: Option<String>,
}

impl Fork {
    fn make(
        self,
        well: &Stepwell,
        parent: &SessionId,
        at: Option<Seq>,
    ) -> stepwell::Result<String> {
        let info = well.store().info(parent)?;
        let first = Span { from: info.own_from, to: info.own_from, ..Span::ALL };
        let mut events = well.store().events(parent, first)?.intact(parent)?;
        let Some(Event::Created(created)) = events.pop().map(|event| event.event) else {
            return Err(Error::NoSession(parent.clone()));
        };
        let at = at.unwrap_or(info.head.seq);
        let origin = Origin::Fork { parent: parent.clone(), at };
        let Self { name, source, scope } = self;
        let id = name.unwrap_or_else(|| well.new_id());
        let scope = scope.or(created.scope.clone());
        let created = Created { id: id.clone(), origin, source, scope, ..*created }
            .with_model(info.head.model_provider(), &info.head.model);
        let create = Create { created, event_id: None, at: None, claim: None };
        well.store().write(Write::Create(create))?;
        Ok(id.to_string())
    }
}

fn undo(well: &Stepwell, id: &SessionId, epoch: Option<Epoch>) -> stepwell::Result<u64> {
    let facts = well.store().keyed_events(id, &[Kind::Compacted, Kind::Rewound, Kind::Undone])?;
    let at = well.store().info(id)?.head.seq;
    let timeline = Timeline::at(at, facts.iter());
    let taken: Vec<Seq> = facts
        .iter()
        .filter_map(|fact| match &fact.event {
            Event::Undone(Undone::Compaction { of } | Undone::Rewind { of, .. }) => Some(*of),
            _ => None,
        })
        .collect();
    let last = facts.iter().rev().find(|fact| {
        let moves = matches!(fact.event, Event::Compacted(_) | Event::Rewound(_));
        moves && timeline.contains(fact.seq) && !taken.contains(&fact.seq)
    });
    let undone = match last.map(|fact| (fact.seq, &fact.event)) {
        Some((of, Event::Compacted(_))) => Undone::Compaction { of },
        Some((of, _)) => Undone::Rewind { of, scope: Scope::Chat, restored: Restored::default() },
        None => {
            let why = "there is nothing to take back".to_owned();
            return Err(Error::Illegal { session: id.clone(), kind: "undone".to_owned(), why });
        }
    };
    let append =
        Append { session: id.clone(), epoch, expected: None, events: vec![undone.into()].into() };
    Ok(well.store().write(Write::Append(append))?.last.get())
}
