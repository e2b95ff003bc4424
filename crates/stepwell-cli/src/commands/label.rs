use stepwell::SessionId;
use stepwell::sqlite::Access;
use stepwell_terminal::text::visible;
use stepwell_wire::Label;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Shows a session's label, or gives it one, which names it from then on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The label.
    label: Option<String>,
    /// Removes the label.
    #[arg(long, conflicts_with = "label")]
    clear: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.label.is_none() && !args.clear {
        let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
        let label = well.info(&id)?.head.label;
        return told(&id, label.as_deref(), app).map(|()| Exit::Done);
    }
    let (well, id) = app.workspace.open_session(&args.session, Access::Write)?;
    well.label(&id, args.label.as_deref())?;
    told(&id, args.label.as_deref(), app)?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

fn told(id: &SessionId, label: Option<&str>, app: &mut App) -> Result<()> {
    let line = match label {
        Some(label) => format!("{id} is labelled {}", visible(label)),
        None => format!("{id} has no label"),
    };
    app.out.answer(&Label { id: id.clone(), label: label.map(ToOwned::to_owned) }, line)
}
