//! Showing and changing settings.

use std::path::PathBuf;

use stepwell::Remedy;
use stepwell::error::Listing;
use stepwell::log::Redactor;
use stepwell_workspace::config::{KEYS, Key, Source, counts_in_workspace, near, put, take_out};
use stepwell_workspace::{CONFIG_FILE, store_info};

use super::asked::{ConfigCommand, SettingsFile};
use super::reply::{Reply, SettingReply, SettingShown};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::Runtime;

impl Runtime {
    pub(super) fn configure(&self, command: ConfigCommand) -> Result<Reply> {
        Ok(Reply::Setting(match command {
            ConfigCommand::List => return Ok(Reply::Settings(self.settings())),
            ConfigCommand::Get(key) => SettingReply::Is(self.setting(known(&key)?)),
            ConfigCommand::Set { key, value, file } => {
                let key = known(&key)?;
                let host = &self.workspace().host;
                if file == SettingsFile::Workspace && !counts_in_workspace(host, key, &value)? {
                    SettingReply::OnlyUsers(key)
                } else {
                    let path = self.settings_file(file)?;
                    let value = put(&path, key, &value)?;
                    SettingReply::Set(shown(key, &value, Source::File(path)))
                }
            }
            ConfigCommand::Unset { key, file } => {
                let (key, file) = (known(&key)?, self.settings_file(file)?);
                let was_set = take_out(&file, key)?;
                SettingReply::Unset { key: key.name.to_owned(), was_set, file }
            }
        }))
    }

    fn settings_file(&self, file: SettingsFile) -> Result<PathBuf> {
        match file {
            SettingsFile::Workspace => Ok(self.workspace().place.root.join(CONFIG_FILE)),
            SettingsFile::User => {
                self.workspace().host.user_config().ok_or_else(|| {
                    Error::config("there is no home folder to keep your settings in")
                })
            }
        }
    }

    fn setting(&self, key: &Key) -> SettingShown {
        let value = self.workspace().config.settings.shown(key);
        shown(key, &value, store_info::setting_source(self.workspace(), key))
    }

    /// Every setting, and the user's MCP servers.
    fn settings(&self) -> Vec<SettingShown> {
        let mut all: Vec<_> = KEYS.iter().map(|key| self.setting(key)).collect();
        let source = Source::File(self.workspace().host.user_config().unwrap_or_default());
        let hidden = Redactor::new([]);
        for (name, server) in &self.workspace().config.mcp {
            let value = serde_json::to_string(&server.shown()).unwrap_or_default();
            all.push(SettingShown {
                key: format!("mcp.{name}"),
                value: serde_json::from_str(&hidden.redact(&value)).unwrap_or_default(),
                text: hidden.redact(&server.line()).into_owned(),
                // A workspace's file cannot name any.
                source: source.clone(),
            });
        }
        all
    }
}

fn known(name: &str) -> Result<&'static Key> {
    Key::find(name).ok_or_else(|| {
        let remedy = match near(name) {
            Some(near) => Remedy::Choose(vec![near.to_owned()]),
            None => Remedy::List(Listing::Settings),
        };
        Error::refused(ErrorKind::Config, format!("unknown key {name}")).helped_by(remedy)
    })
}

fn shown(key: &Key, value: &toml_edit::Value, source: Source) -> SettingShown {
    use toml_edit::Value;
    let json = match value {
        Value::Boolean(it) => (*it.value()).into(),
        Value::Integer(it) => (*it.value()).into(),
        Value::Float(it) => (*it.value()).into(),
        other => other.as_str().unwrap_or_default().into(),
    };
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    SettingShown { key: key.name.to_owned(), value: json, text, source }
}
