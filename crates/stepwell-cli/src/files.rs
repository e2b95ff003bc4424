//! A session's files, as several commands need them: contents, and a rewind that was cut off.

use stepwell::{FileState, Session, SessionId, Standing, Stepwell};
use stepwell_files::diff::Side;
use stepwell_files::rewind::Foreign;
use stepwell_runtime::{Runtime, files};

pub(crate) use stepwell_runtime::files::{root, site};

use crate::app::Well;
use crate::failure::Result;
use crate::output::note;

/// Finishes a rewind that was cut off, if there is one, and says so. Whoever holds a session
/// to write to it does this first. Tells whether there was one.
pub(crate) fn settle(session: &mut Session, foreign: Foreign, runtime: &Runtime) -> Result<bool> {
    Ok(files::settle(session, foreign, runtime)?)
}

/// Finishes a rewind of a session that was cut off, if there is one and its files can be had: who
/// forks it shares them.
pub(crate) fn settle_of(well: &Well, id: &SessionId, runtime: &Runtime) -> Result<()> {
    let standing = well.standing(id)?;
    if standing.head.rewinding.is_none() {
        return Ok(());
    }
    if root(&standing.head, runtime).is_err() {
        tell_of_half(&standing);
        return Ok(());
    }
    if standing.held.is_some() {
        standing.refuse_half_rewound()?;
    }
    settle(&mut well.hold(id)?, Foreign::Refused, runtime).map(drop)
}

/// Says that a session's files are half moved, if they are.
pub(crate) fn tell_of_half(standing: &Standing) {
    let head = &standing.head;
    if let (Some(began), None) = (head.rewinding, &standing.held) {
        let id = &head.id;
        note(format_args!(
            "warning: a rewind of {id} was cut off at seq {began}; its files may be half moved\n\
             hint: stepwell rewind {id} --finish finishes it; so does the next run here"
        ));
    }
}

/// What a recorded state was, with its content.
pub(crate) fn side(well: &Stepwell, state: &FileState) -> Result<Side> {
    Ok(match state {
        FileState::Absent => Side::Absent,
        FileState::File { blob, mode } => {
            Side::File { bytes: well.store().blob(blob)?, mode: *mode }
        }
        FileState::Symlink { target } => Side::Link(target.clone()),
        FileState::NotCaptured { why, .. } => Side::Unknown(why.clone()),
    })
}
