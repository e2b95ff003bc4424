//! Which question somebody means who types a name. Names repeat from session to session, and
//! whoever is late must not answer another question than the one that they saw.

use std::time::Duration;

use stepwell::error::{GateChoice, Listing};
use stepwell::model::Time;
use stepwell::store::query::Query;
use stepwell::work::{Asked, Gates};
use stepwell::{Remedy, SessionId, Stepwell};
use stepwell_workspace::{Opening, Workspace, known_stores};

use super::gates::all_with_gates;
use crate::ask_again::answered_in_vain;
use crate::error::{Error, ErrorKind, Result};
use crate::gate_answer::{LastAnswer, last_answer};

/// In how many of the sessions that changed last an answer is looked for.
const LATELY: usize = 100;

/// How long after an answer a bare name may still mean the question that it was given to.
const STILL_MEANT: Duration = Duration::from_secs(120);

/// The question that a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeantGate {
    /// The session that asks.
    pub session: SessionId,
    /// The question's name there.
    pub gate: String,
    /// Is it in another store than this workspace's?
    pub elsewhere: bool,
}

/// A question that waits, and that what was typed fits.
struct Candidate {
    session: SessionId,
    gate: String,
    prompt: String,
    at: Time,
    /// Was a part of the session's id typed too?
    by_session: bool,
}

/// The question that somebody means who types its name, or `SESSION/NAME` with a part of the
/// session's id. In another store only the latter means one.
///
/// # Errors
/// If it was answered lately, several have that name, or none has it.
pub fn meant_gate(workspace: &Workspace, typed: &str) -> Result<MeantGate> {
    if let Some(well) = workspace.open_if_present()? {
        let mut here = candidates(&well, typed)?;
        if here.len() > 1 {
            let why = format!("{typed:?} waits in {} sessions", here.len());
            return Err(Error::usage(why).helped_by(Remedy::Answer(choices(&here))));
        }
        let before = answered(&well, typed, here.first())?;
        match (here.pop(), before) {
            (None, None) => {}
            (None, Some(before)) => return Err(before.into_error(&well)?),
            (Some(one), Some(before)) => {
                let why = before.into_error(&well)?.to_string();
                let refused = Error::refused(ErrorKind::Busy, why);
                return Err(refused.helped_by(Remedy::Answer(choices(&[one]))));
            }
            (Some(one), None) => {
                return Ok(MeantGate { session: one.session, gate: one.gate, elsewhere: false });
            }
        }
    }
    meant_elsewhere(workspace, typed)
}

/// The same in the user's other stores.
fn meant_elsewhere(workspace: &Workspace, typed: &str) -> Result<MeantGate> {
    let wells = known_stores::open_all(workspace, Opening::Read);
    let mut found = Vec::new();
    for store in &wells {
        found.extend(candidates(&store.well, typed)?);
    }
    let named = found.iter().filter(|one| one.by_session).count();
    if named == 1 {
        found.retain(|one| one.by_session);
    }
    match found.pop() {
        Some(one) if named == 1 => {
            Ok(MeantGate { session: one.session, gate: one.gate, elsewhere: true })
        }
        Some(one) => {
            found.push(one);
            let why = match found.len() {
                1 => format!("{typed:?} waits in another of your stores, not here"),
                n => format!("{typed:?} waits in other stores of yours, {n} times, not here"),
            };
            Err(Error::usage(why).helped_by(Remedy::Answer(choices(&found))))
        }
        None => {
            let mut last: Option<(LastAnswer, &Stepwell)> = None;
            for store in &wells {
                let well: &Stepwell = &store.well;
                if let Some(before) = answered(well, typed, None)?
                    && last.as_ref().is_none_or(|(last, _)| *last < before)
                {
                    last = Some((before, well));
                }
            }
            match last {
                Some((before, well)) => Err(before.into_error(well)?),
                None => Err(Error::config(format!("no question {typed:?} waits"))
                    .helped_by(Remedy::List(Listing::Gates))),
            }
        }
    }
}

/// What waits in a store that a name fits.
fn candidates(well: &Stepwell, typed: &str) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    for session in all_with_gates(well)? {
        let names = std::iter::once((typed, false));
        let names = names.chain(below(&session, typed).map(|gate| (gate, true)));
        for (name, by_session) in names {
            let gates = Gates::named(&**well.store(), &session, name)?;
            let mut open: Vec<Asked> = gates.open().cloned().collect();
            if open.is_empty() && !gates.asked.is_empty() {
                open = answered_in_vain(well, &session)?;
                open.retain(|asked| asked.gate.id == name);
            }
            found.extend(open.into_iter().map(|asked| Candidate {
                session: session.clone(),
                gate: asked.gate.id,
                prompt: asked.gate.prompt,
                at: asked.at,
                by_session,
            }));
        }
    }
    Ok(found)
}

/// The question's name, if what stands before it means a session.
fn below<'a>(session: &SessionId, typed: &'a str) -> Option<&'a str> {
    let (part, gate) = typed.split_once('/')?;
    let id = session.as_str();
    let fits = !part.is_empty() && (id.starts_with(part) || id.ends_with(part));
    fits.then_some(gate)
}

/// The last answer to what a name means, if that is not the question that waits: whoever types
/// only its name may have seen the one that was answered.
fn answered(well: &Stepwell, typed: &str, waits: Option<&Candidate>) -> Result<Option<LastAnswer>> {
    if waits.is_some_and(|one| one.by_session) {
        return Ok(None);
    }
    let mut last = None;
    for info in well.sessions(Query::default()).take(LATELY) {
        let id = info?.head.id;
        if waits.is_some_and(|one| one.session == id) {
            continue;
        }
        last = last.max(last_answer(well, &id, typed)?);
        if let Some(gate) = below(&id, typed) {
            last = last.max(last_answer(well, &id, gate)?);
        }
    }
    let Some(one) = waits else { return Ok(last) };
    let now = well.now();
    Ok(last.filter(|last| last.at >= one.at || now.since(last.at) < STILL_MEANT))
}

/// What to type for each of some questions: as much of the session's id as tells them apart.
fn choices(all: &[Candidate]) -> Vec<GateChoice> {
    let choice = |one: &Candidate| {
        let id = one.session.as_str();
        let end = id.rsplit('-').next().unwrap_or(id);
        let fits = all.iter().filter(|it| it.session != one.session);
        let fits = fits.filter(|it| below(&it.session, &format!("{end}/")).is_some()).count();
        let part = if fits == 0 { end } else { id };
        GateChoice { typed: format!("{part}/{}", one.gate), prompt: one.prompt.clone() }
    };
    all.iter().map(choice).collect()
}
