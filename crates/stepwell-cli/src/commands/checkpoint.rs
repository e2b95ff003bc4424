use serde_json::Value;
use stepwell::work::is_numbered;
use stepwell_runtime::command::SessionCommand;

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::typed::entry;

/// Lists a session's checkpoints, or names its present point, to fork or rewind to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The checkpoint's name; a later one of the same name takes its place. Without one, the
    /// session's checkpoints are listed: those that were asked for, those of phases, and those
    /// that are taken every few steps and before a rewind.
    name: Option<String>,
    /// Remembers something with it; `K:=JSON` remembers any value.
    #[arg(long = "meta", value_name = "K=V", value_parser = entry, requires = "name")]
    metadata: Vec<(String, Value)>,
    /// Lists them, as without a name.
    #[arg(long, conflicts_with = "name", hide = true)]
    list: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(name) = &args.name else {
        return app.do_to(&args.session, SessionCommand::Checkpoints);
    };
    let metadata = args.metadata.iter().cloned().collect();
    let made = SessionCommand::Checkpoint { name: name.clone(), metadata };
    app.do_to(&args.session, made).map_err(|failure| match is_numbered(name) {
        true => {
            let session = &args.session;
            failure.hint(format_args!("stepwell checkpoint {session} at{name}"))
        }
        false => failure,
    })
}
