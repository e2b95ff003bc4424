//! A session's files, as several commands need them: contents, and a rewind that was cut off.

use stepwell::{Session, SessionInfo};
use stepwell_files::rewind::Foreign;
use stepwell_runtime::{Runtime, files};

pub(crate) use stepwell_runtime::files::{root, site};

use crate::failure::Result;
use crate::output::note;

/// Finishes a rewind that was cut off, if there is one, and says so. Whoever holds a session
/// to write to it does this first. Tells whether there was one.
pub(crate) fn settle(session: &mut Session, foreign: Foreign, runtime: &Runtime) -> Result<bool> {
    Ok(files::settle(session, foreign, runtime)?)
}

/// Says that a session's files are half moved, if they are.
pub(crate) fn tell_of_half(standing: &SessionInfo) {
    let head = &standing.head;
    if let (Some(began), None) = (head.rewinding, &standing.held) {
        let id = &head.id;
        note(format_args!(
            "warning: a rewind of {id} was cut off at seq {began}; its files may be half moved\n\
             hint: stepwell rewind {id} --finish finishes it; so does the next run here"
        ));
    }
}
