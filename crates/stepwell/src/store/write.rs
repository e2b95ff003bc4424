//! Creating sessions, appending to them, and their leases.

use std::collections::HashMap;
use std::time::Duration;

use super::admit::{Writer, admit, check_edit};
use super::prune;
use super::read::{self, find};
use super::record::{check_epoch, check_expected, record, refuse_damaged};
use super::rows::{Base, LeaseRow, Rows, SessionRow, TxnContext};
use super::{Append, Create, LeaseRequest, Scrub, Write, Written};
use crate::error::{Error, Result};
use crate::failpoint::failpoint;
use crate::log::codec::{self, Bodies, Body};
use crate::log::{MAX_SCOPE_BYTES, State};
use crate::model::{
    Created, Digest, Driver, Epoch, Erased, Event, EventId, NewEvent, Origin, Recorded, Restored,
    Rewound, Scope, Scrubbed, Seq, SessionId, StopAsked, Undone, WorkAsked,
};
use crate::store::lease::{Lease, LeaseInfo};

/// The most bytes of an agent's, model's, provider's or workspace's name, which the head repeats.
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;

/// Applies one write of a batch.
pub fn write(rows: &dyn Rows, world: TxnContext<'_>, write: Write) -> Result<Written> {
    match write {
        Write::Create(create) => make(rows, world, create),
        Write::Append(append) => extend(rows, world, append),
        Write::Prune(prune) => prune::prune(rows, world, prune),
    }
}

fn make(rows: &dyn Rows, world: TxnContext<'_>, create: Create) -> Result<Written> {
    let Create { created, event_id, at, claim } = create;
    if let Some(row) = rows.session(&created.id)? {
        return repeated_create(rows, &row, event_id, claim.as_ref());
    }
    check_description(&created)?;
    let (base, before) = match &created.origin {
        Origin::Root => (None, None),
        Origin::Subagent { parent } => {
            if find(rows, parent)?.trashed_at.is_some() {
                return Err(Error::Trashed(parent.clone()));
            }
            (None, None)
        }
        Origin::Fork { parent, at } => {
            let (base, state, chain) = branch_off(rows, parent, *at, &created.id)?;
            refuse_shared_id(rows, &created, event_id)?;
            (Some(base), Some((state, chain)))
        }
    };
    let (seq, prev) = before
        .as_ref()
        .map_or((Seq::FIRST, Digest::GENESIS), |(state, chain)| (state.head.seq.next(), *chain));
    let id = created.id.clone();
    let event = Recorded { seq, at: at.unwrap_or(world.now), id: event_id, event: created.into() };
    let state = match before {
        None => State::fold([&event]).expect("the event is a created one"),
        Some((mut state, _)) => {
            state.apply(&event);
            state
        }
    };
    let sealed = codec::seal(&event, Body::of(&event.event)?, &prev);
    let mut row = SessionRow {
        key: 0,
        head: state.head,
        chain: sealed.row.chain,
        base,
        trashed_at: None,
        damage: None,
        bytes: 0,
        lane: None,
        lease: None,
    };
    row.key = rows.insert_session(&row)?;
    for (lane, state) in &state.lanes {
        rows.put_lane(row.key, lane, state)?;
    }
    row.bytes = rows.insert_event(row.key, &sealed)?;
    rows.update_session(&row)?;
    let lease = match claim {
        Some(claim) => Some(hold(rows, row.key, &id, Epoch::FIRST, &claim, world)?),
        None => None,
    };
    Ok(Written { first: seq, last: seq, lease })
}

/// The session exists. If it began with the same event, the answer to an earlier request was lost,
/// and is given again.
fn repeated_create(
    rows: &dyn Rows,
    row: &SessionRow,
    event_id: Option<EventId>,
    claim: Option<&LeaseRequest>,
) -> Result<Written> {
    let first = row.own_from();
    let same = match event_id {
        Some(id) => rows.event_by_id(row.key, &id)?.is_some_and(|event| event.seq == first),
        None => false,
    };
    if !same {
        return Err(Error::Exists(row.head.id.clone()));
    }
    let held = row.held().filter(|held| claim.is_some_and(|claim| claim.holder == held.holder));
    let lease = held.map(|LeaseInfo { epoch, expires, .. }| {
        let session = row.head.id.clone();
        Lease { session, epoch, expires, stop_asked: false }
    });
    Ok(Written { first, last: first, lease })
}

/// The start of a fork: the rows it shares, and the state there.
fn branch_off(
    rows: &dyn Rows,
    parent: &SessionId,
    at: Seq,
    fork: &SessionId,
) -> Result<(Base, State, Digest)> {
    let row = find(rows, parent)?;
    if at == Seq::ZERO || at > row.head.seq {
        let why = format!("{parent} has no event {at}; its events are 1..{}", row.head.seq);
        return Err(Error::Illegal { session: fork.clone(), kind: "created".to_owned(), why });
    }
    refuse_damaged(&row, at)?;
    let state = read::state_at(rows, &row, at)?;
    let chain = read::chain_at(rows, &row, at)?;
    // The rows may be a grandparent's. Then the fork shares them there, not through its parent.
    let owner = read::stretches(rows, &row, at)?.last().map_or(row.key, |stretch| stretch.key);
    Ok((Base { key: owner, at }, state, chain))
}

/// An event id is unique within a session, including shared events.
fn refuse_shared_id(rows: &dyn Rows, created: &Created, event_id: Option<EventId>) -> Result<()> {
    let (Some(id), Origin::Fork { parent, at }) = (event_id, &created.origin) else {
        return Ok(());
    };
    match read::event_by_id(rows, &find(rows, parent)?, *at, &id)? {
        None => Ok(()),
        Some(other) => {
            let session = created.id.clone();
            Err(Error::EventIdReused { session, id, seq: other.seq })
        }
    }
}

fn check_description(created: &Created) -> Result<()> {
    let flow = created.flow.as_ref();
    let texts = [
        ("agent", created.agent.len()),
        ("model", created.model.len()),
        ("provider", created.provider.len()),
        ("workspace", created.workspace.len()),
        ("flow name", flow.map_or(0, |flow| flow.name.len() + flow.pattern.len())),
        ("source", created.source.as_ref().map_or(0, |s| s.system.len() + s.id.len())),
    ];
    let scope = created.scope.as_ref().map_or(0, String::len);
    if scope > MAX_SCOPE_BYTES {
        return Err(Error::TooLarge {
            what: format!("the scope of session {}", created.id),
            size: scope as u64,
            limit: MAX_SCOPE_BYTES as u64,
        });
    }
    match texts.into_iter().find(|(_, size)| *size > MAX_DESCRIPTION_BYTES) {
        None => Ok(()),
        Some((what, size)) => Err(Error::TooLarge {
            what: format!("the {what} of session {}", created.id),
            size: size as u64,
            limit: MAX_DESCRIPTION_BYTES as u64,
        }),
    }
}

fn extend(rows: &dyn Rows, world: TxnContext<'_>, append: Append) -> Result<Written> {
    let Append { session, epoch, expected, events } = append;
    let (events, bodies) = events.into_parts()?;
    let mut row = find(rows, &session)?;
    if let Some(written) = repeated_append(rows, &row, &events, &bodies)? {
        return Ok(written);
    }
    if events.is_empty() {
        let why = "there is nothing to append".to_owned();
        return Err(Error::Illegal { session, kind: "an empty append".to_owned(), why });
    }
    if row.trashed_at.is_some() {
        return Err(Error::Trashed(session));
    }
    refuse_damaged(&row, row.head.seq)?;
    match epoch {
        Some(epoch) => check_epoch(&row, epoch)?,
        None => check_without_lease(world, &row, &events)?,
    }
    check_expected(rows, &row, expected)?;
    let first = row.head.seq.next();
    let writer = if epoch.is_some() { Writer::Owner } else { Writer::Anyone };
    refuse_known_ids(rows, &row, &events)?;
    let (bytes, places) = bodies.parts();
    for (event, place) in events.into_iter().zip(places) {
        let event = NewEvent { event: complete(rows, &row, writer, event.event)?, ..event };
        // An event that the store completed has a new body.
        let completed = is_completed(&event.event);
        let body = if completed { Body::of(&event.event)? } else { place.body(&bytes) };
        record(rows, world, &mut row, event, body)?;
        failpoint("append.between_events");
    }
    rows.update_session(&row)?;
    Ok(Written { first, last: row.head.seq, lease: None })
}

/// Does the store fill in fields of this event?
fn is_completed(event: &Event) -> bool {
    matches!(event, Event::Rewound(_) | Event::Undone(_))
}

fn complete(rows: &dyn Rows, row: &SessionRow, writer: Writer, event: Event) -> Result<Event> {
    if let Event::Message(message) = &event
        && let Some(said) = message.said
    {
        let heard = match &row.lane {
            Some((lane, state)) if *lane == message.lane => state.heard,
            _ => rows.lane(row.key, &message.lane)?.heard,
        };
        if said <= heard {
            let (session, kind) = (row.head.id.clone(), "message".to_owned());
            let why = format!("the message at {said} was already delivered");
            return Err(Error::Illegal { session, kind, why });
        }
    }
    admit(event, &row.head, writer, &mut |facts| read::keyed_events(rows, row, facts))
}

/// The earlier answer, if this append was recorded before.
fn repeated_append(
    rows: &dyn Rows,
    row: &SessionRow,
    events: &[NewEvent],
    bodies: &Bodies,
) -> Result<Option<Written>> {
    let Some(first_id) = events.first().and_then(|event| event.id) else {
        return Ok(None);
    };
    let Some(first) = read::event_by_id(rows, row, row.head.seq, &first_id)? else {
        return Ok(None);
    };
    let mut seq = first.seq;
    for (event, body) in events.iter().zip(bodies.each()) {
        // The events of one append are adjacent; one without an id is known only by its position.
        let recorded = match event.id {
            Some(id) => read::event_by_id(rows, row, row.head.seq, &id)?,
            None => read::row_at(rows, row, seq)?.filter(|found| found.id.is_none()),
        };
        let same =
            recorded.is_some_and(|found| found.seq == seq && says_the_same(&found, event, body));
        if !same {
            let session = row.head.id.clone();
            let id = event.id.unwrap_or(first_id);
            return Err(Error::EventIdReused { session, id, seq });
        }
        seq = seq.next();
    }
    Ok(Some(Written { first: first.seq, last: seq.prev(), lease: None }))
}

/// An event id is used once in a session. The first event's id is new: otherwise this would be a
/// [repeated append](repeated_append).
fn refuse_known_ids(rows: &dyn Rows, row: &SessionRow, events: &[NewEvent]) -> Result<()> {
    let [_, others @ ..] = events else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let reused = |id, seq| Error::EventIdReused { session: row.head.id.clone(), id, seq };
    // Strictly increasing ids are distinct.
    if !events.is_sorted_by(|one, next| one.id.is_some() && one.id < next.id) {
        let mut given = HashMap::with_capacity(events.len());
        for (event, seq) in events.iter().zip(row.head.seq.get() + 1..) {
            let Some(id) = event.id else { continue };
            if let Some(seq) = given.insert(id, Seq::new(seq)) {
                return Err(reused(id, seq));
            }
        }
    }
    let ids: Vec<EventId> = others.iter().filter_map(|event| event.id).collect();
    match read::any_by_id(rows, row, &ids)? {
        None => Ok(()),
        Some((id, seq)) => Err(reused(id, seq)),
    }
}

/// Is this the event that was recorded there? If a scrub replaced the body, only the kind is
/// compared.
fn says_the_same(found: &codec::Row<'_>, event: &NewEvent, body: &[u8]) -> bool {
    if found.kind != event.event.kind() {
        return false;
    }
    if found.erased.is_some() {
        return true;
    }
    if is_completed(&event.event) {
        let opened = found.open(&mut |digest| Err(Error::NoBlob(*digest)));
        return opened.is_ok_and(|found| asked(found.event) == asked(event.event.clone()));
    }
    *found.body == *body
}

/// A rewind or its undoing without the fields that the store filled in.
fn asked(event: Event) -> Event {
    match event {
        Event::Rewound(rewound) => Rewound { restored: Restored::default(), ..rewound }.into(),
        Event::Undone(Undone::Rewind { of, .. }) => {
            Undone::Rewind { of, scope: Scope::Both, restored: Restored::default() }.into()
        }
        other => other,
    }
}

/// May these be appended without a lease? A session that another program drives accepts nearly all
/// events while no process holds it.
fn check_without_lease(world: TxnContext<'_>, row: &SessionRow, events: &[NewEvent]) -> Result<()> {
    let session = || row.head.id.clone();
    for NewEvent { event, .. } in events {
        let kind = || event.kind().to_owned();
        if let Event::StopAsked(StopAsked { epoch, .. }) | Event::WorkAsked(WorkAsked { epoch, .. }) =
            event
            && row.held().is_none_or(|held| held.epoch != *epoch)
        {
            let why = format!("no runner holds lease {epoch}");
            return Err(Error::Illegal { session: session(), kind: kind(), why });
        }
        if event.needs_no_lease() {
            continue;
        }
        if row.head.driver != Driver::External || event.always_needs_lease() {
            return Err(Error::NeedsLease { session: session(), kind: kind() });
        }
        if let Some(LeaseInfo { holder, expires, .. }) = row.runner(world) {
            return Err(Error::Held { session: session(), holder: Box::new(holder), expires });
        }
    }
    Ok(())
}

/// Acquires a session's lease, if no live process holds it.
pub fn acquire(
    rows: &dyn Rows,
    world: TxnContext<'_>,
    id: &SessionId,
    claim: &LeaseRequest,
) -> Result<Lease> {
    let row = find(rows, id)?;
    if row.trashed_at.is_some() {
        return Err(Error::Trashed(id.clone()));
    }
    refuse_damaged(&row, row.head.seq)?;
    let epoch = row.lease.as_ref().map_or(Epoch::FIRST, |lease| lease.epoch.next());
    if let Some(LeaseInfo { holder, expires, .. }) = row.runner(world) {
        return Err(Error::Held { session: id.clone(), holder: Box::new(holder), expires });
    }
    hold(rows, row.key, id, epoch, claim, world)
}

fn hold(
    rows: &dyn Rows,
    key: super::rows::Key,
    id: &SessionId,
    epoch: Epoch,
    claim: &LeaseRequest,
    world: TxnContext<'_>,
) -> Result<Lease> {
    let expires = world.now.plus(claim.ttl);
    rows.put_lease(
        key,
        &LeaseRow { epoch, held: Some((claim.holder.clone(), expires)), login: None },
    )?;
    Ok(Lease { session: id.clone(), epoch, expires, stop_asked: false })
}

/// Extends a lease from now.
pub fn renew(
    rows: &dyn Rows,
    world: TxnContext<'_>,
    lease: &Lease,
    ttl: Duration,
) -> Result<Lease> {
    let row = find(rows, &lease.session)?;
    if row.trashed_at.is_some() {
        return Err(Error::Trashed(lease.session.clone()));
    }
    check_epoch(&row, lease.epoch)?;
    let expires = world.now.plus(ttl);
    if let Some(LeaseInfo { epoch, holder, login, .. }) = row.held() {
        rows.put_lease(row.key, &LeaseRow { epoch, held: Some((holder, expires)), login })?;
    }
    let stop_asked = row.head.stop_asked == Some(lease.epoch);
    Ok(Lease { expires, stop_asked, ..lease.clone() })
}

/// Releases a lease, if it is still held.
pub fn release(rows: &dyn Rows, lease: &Lease) -> Result<()> {
    let Some(row) = rows.session(&lease.session)? else {
        return Ok(());
    };
    match &row.lease {
        Some(found) if found.epoch == lease.epoch => {
            rows.put_lease(row.key, &LeaseRow { epoch: lease.epoch, held: None, login: None })
        }
        _ => Ok(()),
    }
}

/// Replaces bodies, keeps the originals' digests, and records the replacement.
pub fn scrub(rows: &dyn Rows, world: TxnContext<'_>, scrub: Scrub) -> Result<Seq> {
    let mut row = find(rows, &scrub.session)?;
    refuse_damaged(&row, row.head.seq)?;
    match scrub.epoch {
        Some(epoch) => check_epoch(&row, epoch)?,
        None if row.trashed_at.is_some() => {}
        None => {
            let (session, kind) = (scrub.session, "scrubbed".to_owned());
            return Err(Error::NeedsLease { session, kind });
        }
    }
    let own = row.own_from();
    let mut erased = Vec::new();
    for (seq, event) in scrub.replacements {
        let refuse = |why: String| Error::Illegal {
            session: scrub.session.clone(),
            kind: "scrubbed".to_owned(),
            why,
        };
        if seq < own || seq > row.head.seq {
            return Err(refuse(format!(
                "event {seq} is not one of its own events {own}..{}",
                row.head.seq
            )));
        }
        let old = read::own_row(rows, row.key, seq)?
            .ok_or_else(|| refuse(format!("event {seq} is missing")))?;
        if old.kind != event.kind() {
            return Err(refuse(format!("event {seq} is a {}", old.kind)));
        }
        if let Event::Created(created) = &event
            && (created.id != row.head.id || created.origin != row.head.origin)
        {
            return Err(refuse("the id and origin of a session cannot change".to_owned()));
        }
        match &event {
            Event::Created(created) => check_description(created)?,
            Event::Edited(edited) => check_edit(edited, &row.head).map_err(refuse)?,
            _ => {}
        }
        let recorded = Recorded { seq, at: old.at, id: old.id, event };
        let body = Body::of(&recorded.event)?;
        let mut sealed = codec::seal(&recorded, body, &Digest::GENESIS);
        sealed.row.chain = old.chain;
        sealed.row.erased = Some(old.body_digest());
        erased.push(Erased { seq, body: Digest::of(&sealed.row.body) });
        rows.replace_event(row.key, &sealed)?;
    }
    let since = erased.iter().map(|erased| erased.seq).min().unwrap_or(Seq::MAX);
    let event = Event::Scrubbed(Scrubbed { rule: scrub.rule, erased, ..Scrubbed::default() });
    let body = Body::of(&event)?;
    let seq = record(rows, world, &mut row, event.into(), body)?;
    refold(rows, row, since)?;
    Ok(seq)
}

/// Folds a session again after its event `since` was replaced, and every fork that shares that
/// event: their heads and lanes may repeat its text.
fn refold(rows: &dyn Rows, row: SessionRow, since: Seq) -> Result<()> {
    let mut wrong = vec![row];
    while let Some(mut row) = wrong.pop() {
        let read::Reread { verdict, state, .. } = read::reread(rows, &row)?;
        if let Some(State { head, lanes }) = state.filter(|_| verdict.damage.is_none()) {
            row.head = head;
            row.lane = None;
            rows.replace_lanes(row.key, &lanes)?;
        }
        rows.drop_snapshots(row.key)?;
        rows.update_session(&row)?;
        for fork in rows.forks(row.key)?.into_iter().filter(|fork| fork.at >= since) {
            wrong.extend(rows.session_by_key(fork.key)?);
        }
    }
    Ok(())
}
