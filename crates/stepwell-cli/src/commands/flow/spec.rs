//! Reading a spec from a file, and telling what is wrong with it.

use std::path::Path;

use stepwell_flow::Error;
use stepwell_flow::spec::{Reading, Spec, SpecError};
use stepwell_terminal::note;

use crate::failure::{Failure, Result};

/// Reads a spec; what is wrong with it ends the command.
pub(crate) fn load(path: &Path) -> Result<Reading> {
    Ok(Spec::load(path, &path.display().to_string())?.1)
}

/// Tells what does not do what one might think.
pub(crate) fn warn(path: &Path, reading: &Reading) {
    for warning in &reading.warnings {
        note(format_args!("warning: {}:{warning}", path.display()));
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Error::from(error).into()
    }
}
