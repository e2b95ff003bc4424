use stepwell::{Access, Change, Edited, Filter, Query};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::housekeeping::tidy;
use crate::text::visible;

/// Gives a session a label, which names it from then on; without one, takes it away.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, its label, or @last.
    session: String,
    /// The label.
    label: Option<String>,
}

#[derive(serde::Serialize)]
struct Answer<'a> {
    id: &'a str,
    label: Option<&'a str>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Write)?;
    if let Some(label) = &args.label {
        let filter = Filter { label: Some(label.clone()), ..Filter::default() };
        let bearers = well.list(&Query { filter, limit: 2, ..Query::default() })?.sessions;
        if let Some(other) = bearers.iter().find(|other| other.head.id != id) {
            let other = &other.head.id;
            let message = format!("{other} bears the label {label:?} already");
            return Err(Failure::new(Exit::Failed, message)
                .hint(format_args!("stepwell label {other} takes it away")));
        }
    }
    let change = args.label.clone().map_or(Change::Clear, Change::Set);
    well.edit(&id, Edited { label: change, ..Edited::default() })?;
    let line = match &args.label {
        Some(label) => format!("{id} is labelled {}", visible(label)),
        None => format!("{id} has no label"),
    };
    app.out.answer(&Answer { id: id.as_str(), label: args.label.as_deref() }, line)?;
    tidy(app, &well)?;
    Ok(Exit::Done)
}
