//! A subagent's question: its own session asks it, and so do the sessions above.
//!
//! An answer to one of them answers all. Only the subagent's own question counts; the others follow
//! it.

use stepwell::log::Head;
use stepwell::model::Origin;
use stepwell::work::{Asked, Gates};
use stepwell::{Error, Result, Seq, SessionId, Store};

/// A question where it is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedIn {
    /// The session.
    pub session: SessionId,
    /// The question, with its answer.
    pub asked: Asked,
    /// The last rewind of the session's view.
    moved: Option<Seq>,
}

/// The sessions that ask a question: first the one where it arose, then each session above it.
/// Empty if the session has no question of that name.
pub fn asked_in(store: &dyn Store, session: &SessionId, gate: &str) -> Result<Vec<AskedIn>> {
    let Some(mut first) = AskedIn::find(store, session, gate)? else { return Ok(Vec::new()) };
    for child in path_to_asker(store, &first)? {
        match below(store, &child, &first.asked)? {
            Some(below) => first = below,
            None => break,
        }
    }
    let mut all = vec![first];
    while let Some(above) = all.last().map(|last| last.above(store)).transpose()?.flatten() {
        all.push(above);
    }
    Ok(all)
}

/// Are all of a session's open questions also open in a session above? Then lists show them there,
/// once, because a paused subagent continues when that session is resumed.
pub fn waits_above(store: &dyn Store, session: &SessionId) -> Result<bool> {
    if !matches!(store.info(session)?.head.origin, Origin::Subagent { .. }) {
        return Ok(false);
    }
    let waiting = Gates::waiting(store, session)?;
    for asked in waiting.open() {
        let all = asked_in(store, session, &asked.gate.id)?;
        let mut above = all.iter().skip_while(|it| it.session != *session).skip(1);
        if !above.any(|it| it.asked.answer.is_none()) {
            return Ok(false);
        }
    }
    Ok(waiting.open().next().is_some())
}

/// A child's question, found by its name in the parent.
pub fn asked_below(
    store: &dyn Store,
    child: &SessionId,
    parent: &SessionId,
    name: &str,
) -> Result<Option<Asked>> {
    let Some(above) = AskedIn::find(store, parent, name)? else { return Ok(None) };
    let head = store.info(child)?.head;
    Ok(below(store, &head, &above.asked)?.map(|it| it.asked))
}

/// The name of a child's question in its parent's session. It changes after a rewind of the child,
/// because an earlier answer may have been about another call of the same name.
#[must_use]
pub fn name_above(call: &str, gate: &str, moved: Option<Seq>) -> String {
    match moved {
        Some(moved) => format!("{call}/{gate}@{moved}"),
        None => format!("{call}/{gate}"),
    }
}

impl AskedIn {
    /// The last question of a name.
    fn find(store: &dyn Store, session: &SessionId, gate: &str) -> Result<Option<Self>> {
        let Gates { mut asked, moved } = Gates::named(store, session, gate)?;
        let session = session.clone();
        Ok(asked.pop().map(|asked| Self { session, asked, moved }))
    }

    /// The same question in the session above.
    fn above(&self, store: &dyn Store) -> Result<Option<Self>> {
        let head = store.info(&self.session)?.head;
        let (Origin::Subagent { parent }, Some(record)) = (&head.origin, &head.facts.subagent)
        else {
            return Ok(None);
        };
        let name = name_above(&record.call, &self.asked.gate.id, self.moved);
        let above = found(Self::find(store, parent, &name))?;
        Ok(above.filter(|above| is_copy(&above.asked, &self.asked)))
    }
}

/// A child's question that its parent asks too.
fn below(store: &dyn Store, child: &Head, above: &Asked) -> Result<Option<AskedIn>> {
    let Some(subagent) = &child.facts.subagent else { return Ok(None) };
    let ours = above.gate.id.as_str();
    let Some(name) = ours.strip_prefix(&subagent.call).and_then(|rest| rest.strip_prefix('/'))
    else {
        return Ok(None);
    };
    // The name itself may end like one that was asked after a rewind.
    let plain = name.rsplit_once('@').map(|(plain, _)| plain);
    for name in std::iter::once(name).chain(plain) {
        let found = AskedIn::find(store, &child.id, name)?;
        let is_it = |it: &AskedIn| {
            name_above(&subagent.call, name, it.moved) == ours && is_copy(above, &it.asked)
        };
        if let Some(found) = found.filter(is_it) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Is this question a copy of the other? After the child asked again, with other words perhaps, the
/// old copy no longer counts.
fn is_copy(above: &Asked, below: &Asked) -> bool {
    above.at >= below.at
}

/// The sessions between a question and the subagent that asks it, from above. A fork does not have
/// the subagents of its parent.
fn path_to_asker(store: &dyn Store, from: &AskedIn) -> Result<Vec<Head>> {
    let mut path = Vec::new();
    let mut next = from.asked.gate.asker.clone().filter(|asker| *asker != from.session);
    while let Some(id) = next {
        let Some(info) = found(store.info(&id).map(Some))? else { return Ok(Vec::new()) };
        let Origin::Subagent { parent } = info.head.origin.clone() else { return Ok(Vec::new()) };
        path.insert(0, info.head);
        next = (parent != from.session).then_some(parent);
    }
    Ok(path)
}

/// A purged session counts as missing.
fn found<T>(looked: Result<Option<T>>) -> Result<Option<T>> {
    match looked {
        Err(Error::NoSession(_)) => Ok(None),
        looked => looked,
    }
}
