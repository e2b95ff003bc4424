use stepwell::model::Change;
use stepwell_runtime::command::SessionCommand;

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
    let change = match &args.label {
        Some(label) => Change::Set(label.clone()),
        None if args.clear => Change::Clear,
        None => Change::Keep,
    };
    app.do_to(&args.session, SessionCommand::Label(change))
}
