use std::path::{Path, PathBuf};

use stepwell::log::Redactor;
use stepwell_terminal::table::{Column, Table, left};
use stepwell_terminal::text::visible;
use stepwell_terminal::wording;
use stepwell_wire::{Setting, SettingUnset};
use stepwell_workspace::config::{KEYS, Key, counts_in_workspace, near, put, take_out};
use stepwell_workspace::{CONFIG_FILE, store_info};
use toml_edit::Value;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
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

const COLUMNS: &[Column] = &[left("KEY"), left("VALUE"), left("FROM")];

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match self.action {
            None | Some(Action::List | Action::Get { .. }) => Reach::Reads,
            Some(Action::Set { .. } | Action::Unset { .. }) => Reach::Widens,
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match args.action.as_ref().unwrap_or(&Action::List) {
        Action::List => list(app),
        Action::Get { key } => get(known(key)?, app),
        Action::Set { key, value, user } => {
            let key = known(key)?;
            if !*user && !counts_in_workspace(&app.workspace.host, key, value)? {
                let message = format!("{} = … counts only in your own configuration", key.name);
                let hint = format!("stepwell config set --user {} …", key.name);
                return Err(Failure::new(Exit::Usage, message).hint(hint));
            }
            set(key, value, &file(*user, app)?, app)
        }
        Action::Unset { key, user } => unset(known(key)?, &file(*user, app)?, app),
    }
}

/// The file that is changed.
fn file(user: bool, app: &App) -> Result<PathBuf> {
    if !user {
        return Ok(app.workspace.place.root.join(CONFIG_FILE));
    }
    let message = "there is no home folder to keep your settings in";
    app.workspace.host.user_config().ok_or_else(|| Failure::new(Exit::Absent, message))
}

fn known(name: &str) -> Result<&'static Key> {
    Key::find(name).ok_or_else(|| {
        let near = near(name).map(|near| format!("did you mean {near}?"));
        Failure::new(Exit::Absent, format_args!("unknown key {name}"))
            .hint(near.unwrap_or_else(|| "stepwell config list shows them all".to_owned()))
    })
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Boolean(it) => (*it.value()).into(),
        Value::Integer(it) => (*it.value()).into(),
        Value::Float(it) => (*it.value()).into(),
        other => other.as_str().unwrap_or_default().into(),
    }
}

fn setting(key: &Key, value: &Value, source: String) -> Setting {
    Setting { key: key.name.to_owned(), value: json(value), source }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn list(app: &mut App) -> Result<Exit> {
    let mut table = Table::new(COLUMNS);
    for key in KEYS {
        let value = app.workspace.config.settings.shown(key);
        let source = wording::source(&store_info::setting_source(&app.workspace, key));
        if app.out.is_json() {
            app.out.object(&setting(key, &value, source))?;
        } else {
            table.push(vec![key.name.into(), plain(&value).into(), visible(&source).into()]);
        }
    }
    // They are the user's own: a workspace's file cannot name any.
    let source =
        app.workspace.host.user_config().map(|path| path.display().to_string()).unwrap_or_default();
    let hidden = Redactor::new([]);
    for (name, server) in app.workspace.config.mcp.clone() {
        let key = format!("mcp.{name}");
        if app.out.is_json() {
            let value = serde_json::to_string(&server.shown()).unwrap_or_default();
            let value = serde_json::from_str(&hidden.redact(&value)).unwrap_or_default();
            app.out.object(&Setting { key, value, source: source.clone() })?;
        } else {
            let line = visible(&hidden.redact(&server.line()));
            table.push(vec![key.into(), line.into(), visible(&source).into()]);
        }
    }
    if !app.out.is_json() {
        app.print(&table)?;
    }
    Ok(Exit::Done)
}

fn get(key: &Key, app: &mut App) -> Result<Exit> {
    let value = app.workspace.config.settings.shown(key);
    let source = wording::source(&store_info::setting_source(&app.workspace, key));
    let object = setting(key, &value, source);
    app.out.answer(&object, plain(&value))?;
    Ok(Exit::Done)
}

fn set(key: &Key, text: &str, path: &Path, app: &mut App) -> Result<Exit> {
    let value = put(path, key, text)?;
    let source = path.display().to_string();
    let line = format!("{} = {} in {}", key.name, plain(&value), visible(&source));
    app.out.answer(&setting(key, &value, source), line)?;
    Ok(Exit::Done)
}

fn unset(key: &Key, path: &Path, app: &mut App) -> Result<Exit> {
    let unset = take_out(path, key)?;
    let source = path.display().to_string();
    let line = match unset {
        true => format!("{} is no longer set in {}", key.name, visible(&source)),
        false => format!("{} is not set in {}", key.name, visible(&source)),
    };
    app.out.answer(&SettingUnset { key: key.name.to_owned(), unset, source }, line)?;
    Ok(Exit::Done)
}
