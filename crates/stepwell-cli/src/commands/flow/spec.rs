//! Reading a spec from a file, and telling what is wrong with it.

use std::path::Path;

use stepwell_flow::Error;
use stepwell_flow::spec::{BadVariable, Reading, Spec, SpecError};

use crate::failure::{Exit, Failure, Result};
use crate::output::note;

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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::new(Exit::Absent, &error);
        match &error {
            Error::Spec(SpecError::Invalid { .. }) => {
                failure.hint("docs/flows.md describes specs; stepwell flow schema helps an editor")
            }
            Error::Variable(BadVariable::Missing { name, .. }) => {
                failure.hint(format_args!("add --var {name}=TEXT"))
            }
            Error::Variable(_) => failure.hint("stepwell flow plan SPEC lists the variables"),
            _ => failure,
        }
    }
}
