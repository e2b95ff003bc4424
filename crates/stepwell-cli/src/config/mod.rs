//! Configuration: typed settings, read from files, the environment and flags, each
//! with where its value came from.

mod fields;
mod load;
mod mcp;
mod settings;
mod value;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use stepwell_agent::agent::Agent;
use stepwell_agent::mcp::ServerName;
use stepwell_agent::price::PriceChange;

pub(crate) use load::user_file;
pub(crate) use mcp::{McpConfig, McpReach, WORKSPACE};
pub(crate) use settings::{KEYS, Key, Settings, nearest};
pub(crate) use value::IdStyle;
pub(crate) use write::{beside, commented, put, replace};

/// The settings in force, and where each came from.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    /// By the place of their key in [`KEYS`].
    sources: Vec<Source>,
    /// The user's own agents, by name.
    pub(crate) agents: BTreeMap<String, Agent>,
    /// The user's own prices, by `provider/model`.
    pub(crate) prices: BTreeMap<String, PriceChange>,
    /// The user's own providers, by name.
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    /// The user's MCP servers, by name.
    pub(crate) mcp: BTreeMap<ServerName, McpConfig>,
}

/// A provider of the user's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ProviderConfig {
    /// Where it answers.
    pub(crate) base_url: Option<String>,
    /// Whose words it speaks: openai, anthropic or gemini.
    pub(crate) protocol: Option<String>,
    /// The variable that holds its key.
    pub(crate) key_env: Option<String>,
    /// The command that prints its key.
    pub(crate) key_command: Option<String>,
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

/// Where a value came from. Later ones win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(PathBuf),
    Variable(String),
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag => f.write_str("--config"),
        }
    }
}

impl Config {
    /// Where the value of a key came from.
    pub(crate) fn source(&self, key: &Key) -> &Source {
        let place = KEYS.iter().position(|other| other.name == key.name);
        place.map_or(&Source::Default, |place| &self.sources[place])
    }
}
