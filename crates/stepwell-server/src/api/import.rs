//! Importing the sessions of the other agents of this machine.

use schemars::JsonSchema;
use serde::Deserialize;
use stepwell_formats::{Format, Mode};
use stepwell_runtime::command::import::Silent;
use stepwell_runtime::command::{Folder, ImportRequest};
use stepwell_wire::ImportReport;

use crate::problem::{Problem, Result};
use crate::site::Act;

/// What is imported of the folders in which the agents of this machine keep their sessions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Import {
    /// Only this agent's sessions, by the name of their format.
    from: Option<String>,
    /// Is it only counted what would be imported?
    #[serde(default)]
    dry_run: bool,
}

pub(super) fn import(act: &Act<'_>, import: Import) -> Result<ImportReport> {
    // They lie in the home folder of the user whose server this is.
    if !act.look.caller.is_user {
        return Err(Problem::denied("only the user of this machine imports from its agents"));
    }
    let wrong =
        |error: stepwell_formats::UnknownFormat| Problem::invalid(error.to_string()).at("from");
    let from = import.from.map(|name| name.parse::<Format>().map_err(wrong)).transpose()?;
    let mode = if import.dry_run { Mode::Look } else { Mode::Write };
    let request = ImportRequest { paths: Vec::new(), folder: Folder::Workspace, from, mode };
    Ok((&act.acting().naming_event(None).import(&request, &mut Silent)?).into())
}
