use serde_json::Value;
use stepwell::Error;
use stepwell::sqlite::Access;
use stepwell_terminal::note;
use stepwell_terminal::text::one_line;
use stepwell_wire::Metadata;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::typed::entry;

/// Shows or sets metadata of your own on a session, also while it runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Remembers a text; `K:=JSON` remembers any value, and null forgets the key.
    #[arg(value_name = "K=V", value_parser = entry)]
    entries: Vec<(String, Value)>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let access = if args.entries.is_empty() { Access::Read } else { Access::Write };
    let (well, id) = app.workspace.open_session(&args.session, access)?;
    if !args.entries.is_empty() {
        let redactor = app.runtime().typed_redactor()?;
        let plain = |value: &Value| match value {
            Value::String(text) => Value::from(redactor.redact(text).into_owned()),
            other => other.clone(),
        };
        let entries = args.entries.iter().map(|(key, value)| (key.clone(), plain(value)));
        well.set_metadata(&id, entries.collect()).map_err(|error| match error {
            Error::Illegal { why, .. } => Failure::new(Exit::Usage, why),
            error => error.into(),
        })?;
    }
    let metadata = well.info(&id)?.head.metadata;
    if app.out.is_json() {
        app.out.object(&Metadata { id: id.clone(), metadata })?;
    } else {
        for (key, value) in &metadata {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            app.out.line(one_line(&format!("{key} = {value}")))?;
        }
        if metadata.is_empty() {
            note(format_args!("{id} has no metadata; stepwell meta {id} K=V sets it."));
        }
    }
    if access == Access::Write {
        tidy(&app.workspace, &well);
    }
    Ok(Exit::Done)
}
