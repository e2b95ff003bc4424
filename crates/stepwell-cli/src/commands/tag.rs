use std::collections::BTreeSet;

use stepwell_runtime::command::SessionCommand;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Shows a session's tags, or adds some.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The tags.
    #[arg(value_delimiter = ',')]
    tags: Vec<String>,
}

/// Removes tags from a session.
#[derive(Debug, clap::Args)]
pub(crate) struct UntagArgs {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The tags.
    #[arg(required = true, value_delimiter = ',')]
    tags: Vec<String>,
}

pub(crate) fn tag(args: &Args, app: &mut App) -> Result<Exit> {
    let add = args.tags.iter().cloned().collect();
    app.do_to(&args.session, SessionCommand::Tag { add, remove: BTreeSet::new() })
}

pub(crate) fn untag(args: &UntagArgs, app: &mut App) -> Result<Exit> {
    let remove = args.tags.iter().cloned().collect();
    app.do_to(&args.session, SessionCommand::Tag { add: BTreeSet::new(), remove })
}
