//! Configuration: typed settings, read from files, the environment and flags, each
//! with where its value came from.

mod fields;
mod load;
mod mcp;
mod settings;
mod value;
mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use stepwell_catalog::agent::Agent;
use stepwell_catalog::price::PriceChange;
use stepwell_catalog::server::ServerName;

use crate::error::ConfigPlace;

pub use mcp::{McpConfig, McpReach, ShownMcp, WORKSPACE};
pub use settings::{KEYS, Key, STORE_URL, Settings, near, nearest};
pub use value::{AgentIds, Folders, IdStyle, Number, Setting, Share, StoreUrl, TalkFrom};
pub use write::{commented, counts_in_workspace, put, take_out};

/// The settings in force, and where each came from.
#[derive(Clone, Debug)]
pub struct Config {
    /// The settings in force.
    pub settings: Settings,
    /// By the place of their key in [`KEYS`].
    sources: Vec<Source>,
    /// The user's own agents, by name.
    pub agents: BTreeMap<String, Agent>,
    /// The user's own prices, by `provider/model`.
    pub prices: BTreeMap<String, PriceChange>,
    /// The user's own providers, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The user's MCP servers, by name.
    pub mcp: BTreeMap<ServerName, McpConfig>,
}

/// A provider of the user's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// Where it answers.
    pub base_url: Option<String>,
    /// Whose words it speaks: openai, anthropic or gemini.
    pub protocol: Option<String>,
    /// The variable that holds its key.
    pub key_env: Option<String>,
    /// The command that prints its key.
    pub key_command: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            sources: vec![Source::Default; KEYS.len()],
            agents: BTreeMap::new(),
            prices: BTreeMap::new(),
            providers: BTreeMap::new(),
            mcp: BTreeMap::new(),
        }
    }
}

/// A setting that is given for one time, over everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The setting, such as `agent.mode`.
    pub key: String,
    /// Its value, as a variable would say it.
    pub value: String,
}

/// Where a value came from. Later ones win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
    /// It was given for this one time.
    Override,
    /// A workspace's file asks for less care than its user does, and does not count.
    Ignored {
        /// The file.
        file: PathBuf,
        /// What it asks for.
        asked: String,
        /// Where the value came from instead.
        counts: Box<Source>,
    },
    /// It does not count: the team's store has a rule of its own.
    StoreDecides,
}

impl Source {
    /// The place of a value that is wrong.
    #[must_use]
    pub fn place(&self) -> ConfigPlace {
        match self {
            Self::File(path) => ConfigPlace::File { path: path.clone(), line: None },
            Self::Variable(name) => ConfigPlace::Variable(name.clone()),
            Self::Ignored { counts, .. } => counts.place(),
            Self::Default | Self::Override | Self::StoreDecides => ConfigPlace::Override,
        }
    }
}

impl Config {
    /// Where the value of a key came from.
    #[must_use]
    pub fn source(&self, key: &Key) -> &Source {
        let place = KEYS.iter().position(|other| other.name == key.name);
        place.map_or(&Source::Default, |place| &self.sources[place])
    }
}
