//! MCP servers as a user names them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stepwell_catalog::KeySource;

use crate::duration::parse_duration;

/// Stands for the workspace in a server's arguments, variables and folder: one configuration
/// serves them all.
pub const WORKSPACE: &str = "{workspace}";

/// A server.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct McpConfig {
    /// How it is reached.
    pub reach: McpReach,
    /// How long it has to be ready.
    pub start_timeout: Option<Duration>,
    /// How long one call may take.
    pub timeout: Option<Duration>,
}

/// How it is reached.
#[derive(Clone, Debug)]
pub enum McpReach {
    /// A program that is started.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables, with their values.
        env: BTreeMap<String, String>,
        /// Variables of ours that it gets although they look like keys.
        env_from: Vec<String>,
        /// The folder that it is started in.
        cwd: Option<String>,
    },
    /// A server that is asked over HTTP.
    Address {
        /// Where it answers.
        url: String,
        /// What each request says besides.
        headers: BTreeMap<String, String>,
        /// Where its key comes from.
        key: KeySource,
    },
}

/// A server as it is written.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    env_from: Vec<String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    key_env: Option<String>,
    key_command: Option<String>,
    start_timeout: Option<String>,
    timeout: Option<String>,
}

impl TryFrom<Written> for McpConfig {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let length = |key: &str, text: &Option<String>| match text {
            Some(text) => parse_duration(text).map(Some).map_err(|why| format!("{key}: {why}")),
            None => Ok(None),
        };
        let start_timeout = length("start_timeout", &written.start_timeout)?;
        let timeout = length("timeout", &written.timeout)?;
        let reach = match (&written.command, &written.url) {
            (Some(_), None) => written.program()?,
            (None, Some(_)) => written.address()?,
            (None, None) => return Err("it needs a command, or a url".to_owned()),
            (Some(_), Some(_)) => return Err("it has a command and a url; use one".to_owned()),
        };
        Ok(Self { reach, start_timeout, timeout })
    }
}

impl Written {
    fn program(self) -> Result<McpReach, String> {
        let others = [
            ("headers", !self.headers.is_empty()),
            ("key_env", self.key_env.is_some()),
            ("key_command", self.key_command.is_some()),
        ];
        belongs(others, "a url, not for a command; use env or env_from")?;
        let command = self.command.unwrap_or_default();
        let several = command.contains(' ') && !command.contains('/');
        if command.trim().is_empty() || several {
            return Err("command is one program; its arguments belong in args".to_owned());
        }
        let placed = |cwd: &String| cwd.starts_with('/') || cwd.starts_with(WORKSPACE);
        if let Some(cwd) = self.cwd.as_ref().filter(|cwd| !placed(cwd)) {
            return Err(format!("cwd = {cwd:?}: use an absolute path, or {WORKSPACE}"));
        }
        let Self { args, env, env_from, cwd, .. } = self;
        Ok(McpReach::Program { command, args, env, env_from, cwd })
    }

    fn address(self) -> Result<McpReach, String> {
        let others = [
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
            ("env_from", !self.env_from.is_empty()),
            ("cwd", self.cwd.is_some()),
        ];
        belongs(others, "a command, not for a url")?;
        let url = self.url.unwrap_or_default();
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        if host.is_none_or(|host| host.is_empty() || host.starts_with('/')) {
            return Err("url is no address such as https://host/mcp".to_owned());
        }
        let key = match (self.key_command, self.key_env) {
            (Some(_), Some(_)) => return Err("use key_env or key_command, not both".to_owned()),
            (Some(command), None) => KeySource::Command(command),
            (None, Some(variable)) => KeySource::Variable(variable),
            (None, None) => KeySource::Nowhere,
        };
        Ok(McpReach::Address { url, headers: self.headers, key })
    }
}

fn belongs<const N: usize>(others: [(&str, bool); N], to: &str) -> Result<(), String> {
    match others.into_iter().find(|(_, set)| *set) {
        Some((key, _)) => Err(format!("{key} is for {to}")),
        None => Ok(()),
    }
}

/// A server as it is shown: names of variables and headers, not what they hold.
#[derive(Debug, Serialize)]
pub struct ShownMcp<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    args: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_env: Option<&'a str>,
}

impl McpConfig {
    /// As it may be printed.
    #[must_use]
    pub fn shown(&self) -> ShownMcp<'_> {
        fn names(map: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
            map.keys().map(String::as_str)
        }
        let nothing = ShownMcp {
            command: None,
            args: &[],
            env: Vec::new(),
            cwd: None,
            url: None,
            headers: Vec::new(),
            key_env: None,
        };
        match &self.reach {
            McpReach::Program { command, args, env, env_from, cwd } => ShownMcp {
                command: Some(command),
                args,
                env: names(env).chain(env_from.iter().map(String::as_str)).collect(),
                cwd: cwd.as_deref(),
                ..nothing
            },
            McpReach::Address { url, headers, key } => ShownMcp {
                url: Some(url),
                headers: names(headers).collect(),
                key_env: match key {
                    KeySource::Variable(name) => Some(name),
                    _ => None,
                },
                ..nothing
            },
        }
    }

    /// In one line: what is started, or asked.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.reach {
            McpReach::Program { command, args, .. } => {
                let words = std::iter::once(command).chain(args);
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            McpReach::Address { url, .. } => url.clone(),
        }
    }
}
