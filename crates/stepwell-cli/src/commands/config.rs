use stepwell_runtime::command::{Command, ConfigCommand, SettingsFile};

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::reach::Reach;

/// Shows and changes settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Shows every setting and where its value came from, and your MCP servers.
    List,
    /// Shows one value.
    Get {
        /// Such as sessions.cleanup_after_days.
        key: String,
    },
    /// Sets a value in the workspace's stepwell.toml.
    Set {
        /// Such as sessions.cleanup_after_days.
        key: String,
        /// The value.
        value: String,
        /// Sets it for all of your workspaces instead.
        #[arg(long)]
        user: bool,
    },
    /// Takes a value out of the workspace's stepwell.toml, so that the default counts again.
    Unset {
        /// Such as sessions.cleanup_after_days.
        key: String,
        /// Takes it out of your own configuration instead.
        #[arg(long)]
        user: bool,
    },
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match self.action {
            None | Some(Action::List | Action::Get { .. }) => Reach::Reads,
            Some(Action::Set { .. } | Action::Unset { .. }) => Reach::Widens,
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let file = |user: bool| if user { SettingsFile::User } else { SettingsFile::Workspace };
    let command = match args.action.as_ref().unwrap_or(&Action::List) {
        Action::List => ConfigCommand::List,
        Action::Get { key } => ConfigCommand::Get(key.clone()),
        Action::Set { key, value, user } => {
            let (key, value) = (key.clone(), value.clone());
            ConfigCommand::Set { key, value, file: file(*user) }
        }
        Action::Unset { key, user } => ConfigCommand::Unset { key: key.clone(), file: file(*user) },
    };
    let reply = app.carry_out(Command::Config(command))?;
    app.answer(&reply)
}
