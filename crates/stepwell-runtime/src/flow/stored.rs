//! What a flow's session holds of it: what it did, and the spec to go on with.

use stepwell::log::Head;
use stepwell::model::Digest;
use stepwell::{SessionId, Stepwell};
use stepwell_flow::History;
use stepwell_flow::spec::Spec;

use super::change::{self, Began, Current};
use crate::error::{Error, Result};
use crate::runtime::Runtime;

/// What a flow did so far; one that is finished is refused.
pub(super) fn read(well: &Stepwell, head: &Head) -> Result<History> {
    let history = History::judged(well, &head.id)?;
    refuse_finished(&history, &head.id)?;
    Ok(history)
}

/// The spec to go on with, what is new in it, and the digest of the stored one.
pub(super) fn settled_spec(
    history: &History,
    head: &Head,
    current: &Current,
    runtime: &Runtime,
) -> Result<(Spec, change::Accepted, Digest)> {
    let no_flow = || stepwell_flow::Error::NoFlow(head.id.clone());
    let stored = history.stored.as_ref().ok_or_else(no_flow)?;
    let began = Began { session: &head.id, stored, memo: &history.memo };
    let (spec, accepted) = began.decide(stored.read()?.spec, current, runtime)?;
    Ok((spec, accepted, stored.digest()))
}

pub(super) fn refuse_finished(history: &History, id: &SessionId) -> Result<()> {
    match history.finished {
        true => Err(Error::Finished { session: id.clone() }),
        false => Ok(()),
    }
}
