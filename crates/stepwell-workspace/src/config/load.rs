//! Reading the configuration: defaults, the user's file, the workspace's file, the
//! environment, flags. Later ones win, and unknown keys are errors.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use stepwell::Remedy;
use stepwell::error::Listing;
use stepwell_catalog::agent::builtin;
use toml_edit::{Document, Item, TableLike, Value};

use super::settings::{KEYS, Key, Raw, Settings, near, nearest};
use super::{Config, Override, Source, fields};
use crate::error::{ConfigPlace, Error, Result};
use crate::host::{Host, OURS};
use crate::location::CONFIG_FILE;

impl Config {
    /// Reads the configuration of a workspace: its root's file over the user's own, then the
    /// variables of the environment, then what was given for this one time.
    ///
    /// # Errors
    /// If a file cannot be read, names a setting that is none, or gives one a value of another
    /// kind.
    pub fn load(host: &Host, root: &Path, overrides: &[Override]) -> Result<Self> {
        let mut config = Self::of_user(host)?;
        // A project may ask for more care than its user, never for less: whoever opens it
        // has not read its file yet.
        let (users, agents) = (config.settings.clone(), std::mem::take(&mut config.agents));
        let sources = config.sources.clone();
        config.read_file(&root.join(CONFIG_FILE), Whose::Workspaces)?;
        config.keep_careful(&users, sources);
        let mode = users.mode;
        for agent in config.agents.values_mut() {
            agent.mode = agent.mode.map(|asked| asked.min(mode));
        }
        for (name, agent) in agents {
            config.agents.entry(name).or_insert(agent);
        }
        let careful = config.settings.clone();
        config.read_variables(host)?;
        for Override { key, value } in overrides {
            let key = known(key, ConfigPlace::Override)?;
            config.put(key, Raw::Text(value), Source::Override, ConfigPlace::Override)?;
        }
        // A run's own command may ask for more care than the files do, never for less.
        if host.environment.is_in_run() {
            config.settings.keep_careful(&careful);
        }
        Ok(config)
    }

    /// What the user's own file says.
    pub(super) fn of_user(host: &Host) -> Result<Self> {
        let mut config = Self::default();
        if let Some(path) = host.user_config() {
            config.read_file(&path, Whose::Users)?;
        }
        Ok(config)
    }

    /// Takes back what is less careful than the user's own settings, which came from `sources`.
    fn keep_careful(&mut self, users: &Settings, sources: Vec<Source>) {
        let asked = self.settings.clone();
        self.settings.keep_careful(users);
        for ((key, now), before) in KEYS.iter().zip(&mut self.sources).zip(sources) {
            let Source::File(file) = &*now else { continue };
            let asked = asked.get(key).to_string();
            if asked != self.settings.get(key).to_string() {
                *now = Source::Ignored { file: file.clone(), asked, counts: Box::new(before) };
            }
        }
    }

    fn put(&mut self, key: &Key, raw: Raw<'_>, source: Source, at: ConfigPlace) -> Result<()> {
        self.settings.put(key, raw).map_err(|why| {
            let shown = if key.is_secret() { "…".to_owned() } else { raw.shown() };
            wrong(at, format!("{} = {shown}: {why}", key.name))
        })?;
        if let Some(place) = KEYS.iter().position(|other| other.name == key.name) {
            self.sources[place] = source;
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, whose: Whose) -> Result<()> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // A folder on the way that is none: there is no such file either.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(()),
            Err(error) => {
                let at = ConfigPlace::File { path: path.to_owned(), line: None };
                return Err(wrong(at, error.to_string()));
            }
        };
        let at = |place: usize| {
            let line = text[..place.min(text.len())].matches('\n').count() + 1;
            ConfigPlace::File { path: path.to_owned(), line: Some(line) }
        };
        let document = Document::parse(text.as_str()).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            wrong(at(start), error.message().to_owned())
        })?;
        self.read_named(document.as_table(), whose, &at)?;
        for (name, value, place) in values(document.as_table(), "") {
            let key = known(&name, at(place))?;
            let Some(value) = value else {
                return Err(wrong(at(place), format!("{name} is a table, not a value")));
            };
            self.put(key, Raw::Toml(value), Source::File(path.to_owned()), at(place))?;
        }
        Ok(())
    }

    /// The tables whose names are the user's. A later file's entry takes an earlier one's
    /// place.
    fn read_named(
        &mut self,
        table: &dyn TableLike,
        whose: Whose,
        at: &dyn Fn(usize) -> ConfigPlace,
    ) -> Result<()> {
        named(table, "agents", &mut self.agents, at)?;
        if whose == Whose::Workspaces {
            // A project must not send the user's key elsewhere, make a budget worthless, start
            // programs unasked, or speak for the agents that its user knows.
            for (section, what) in OWN {
                // One that says nothing, as init writes it, is nobody's wish.
                let says = |item: &&Item| item.as_table_like().is_none_or(|it| !it.is_empty());
                if let Some(item) = table.get(section).filter(says) {
                    let why = format!("{what} belong in your own configuration, not here");
                    return Err(wrong(at(item.span().map_or(0, |span| span.start)), why));
                }
            }
            if let Some(name) = builtin().keys().find(|name| self.agents.contains_key(*name)) {
                let why = format!("agents.{name} is built in; name it otherwise");
                return Err(wrong(at(0), why));
            }
        }
        named(table, "prices", &mut self.prices, at)?;
        named(table, "providers", &mut self.providers, at)?;
        named(table, "mcp", &mut self.mcp, at)
    }

    /// Variables that name a key. Others that begin with one of its sections are
    /// misspelt; the rest are not about the configuration.
    fn read_variables(&mut self, host: &Host) -> Result<()> {
        for (name, value) in host.own_variables() {
            if let Some(key) = KEYS.iter().find(|key| key.variable() == name) {
                let (source, at) = (Source::Variable(name.clone()), ConfigPlace::Variable(name));
                self.put(key, Raw::Text(&value), source, at)?;
                continue;
            }
            let rest = name.trim_start_matches(OURS).to_lowercase();
            let section = |key: &&Key| {
                let section = key.name.split('.').next().unwrap_or(key.name);
                rest.strip_prefix(section).is_some_and(|key| key.starts_with('_'))
            };
            if KEYS.iter().any(|key| section(&key)) {
                let near = Key::find(nearest(&rest.replacen('_', ".", 1))).map(Key::variable);
                let (at, why) = (ConfigPlace::Environment, format!("unknown {name}"));
                let remedies = near.map(|near| Remedy::Choose(vec![near])).into_iter().collect();
                return Err(Error::Config { at, why, remedies });
            }
        }
        Ok(())
    }
}

/// Every value of a document with its dotted name and its place; tables that a key
/// names have none.
fn values<'a>(table: &'a dyn TableLike, prefix: &str) -> Vec<(String, Option<&'a Value>, usize)> {
    let mut found = Vec::new();
    for (name, item) in table.iter() {
        if prefix.is_empty() && NAMED.contains(&name) {
            continue;
        }
        let name = format!("{prefix}{name}");
        let place = item.span().map_or(0, |span| span.start);
        match (item, item.as_table_like()) {
            (_, Some(_)) if Key::find(&name).is_some() => found.push((name, None, place)),
            (_, Some(table)) if table.is_empty() && !is_section(&name) => {
                found.push((name, None, place));
            }
            (_, Some(table)) => found.extend(values(table, &format!("{name}."))),
            (Item::Value(value), None) => found.push((name, Some(value), place)),
            _ => found.push((name, None, place)),
        }
    }
    found
}

/// Whose a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Users,
    Workspaces,
}

/// Sections whose entries' names are the user's.
const NAMED: [&str; 4] = ["agents", "mcp", "prices", "providers"];

/// Those among them that only the user's own file may have.
const OWN: [(&str, &str); 7] = [
    ("providers", "providers"),
    ("prices", "prices"),
    ("mcp", "MCP servers"),
    ("store", "addresses of stores"),
    ("talk", "the settings of talk"),
    ("notify", "commands that notify you"),
    ("other_agents", "the settings of other agents' sessions"),
];

/// Reads the entries of such a section.
fn named<N, T>(
    table: &dyn TableLike,
    section: &str,
    into: &mut BTreeMap<N, T>,
    at: &dyn Fn(usize) -> ConfigPlace,
) -> Result<()>
where
    N: FromStr<Err: Display> + Ord,
    T: DeserializeOwned,
{
    let Some(entries) = table.get(section) else { return Ok(()) };
    let place = |item: &Item| at(item.span().map_or(0, |span| span.start));
    let no_table = || wrong(place(entries), format!("{section} is no table"));
    for (name, item) in entries.as_table_like().ok_or_else(no_table)?.iter() {
        let fault = |why: &str| wrong(place(item), format!("{section}.{name}: {why}"));
        let entry = item.as_table_like().ok_or_else(|| fault("it is no table"))?;
        let known = fields::of::<T>();
        if let Some((key, item)) = entry.iter().find(|(key, _)| !known.contains(key)) {
            let near = fields::nearest(key, known).unwrap_or_default();
            let why = format!("unknown key {section}.{name}.{key}; did you mean {near}?");
            return Err(wrong(place(item), why));
        }
        let entry = json(entry).map_err(|why| fault(&why))?;
        let entry = serde_json::from_value(entry).map_err(|error| fault(&error.to_string()))?;
        let name = name.parse().map_err(|why: N::Err| fault(&why.to_string()))?;
        into.insert(name, entry);
    }
    Ok(())
}

/// A table as JSON, for those who read it into a type of their own.
fn json(table: &dyn TableLike) -> Result<serde_json::Value, String> {
    let entries = table.iter().map(|(name, item)| {
        let value = match (item, item.as_table_like()) {
            (_, Some(table)) => json(table)?,
            (Item::Value(value), None) => plain(value)?,
            _ => return Err(format!("{name} is no value")),
        };
        Ok((name.to_owned(), value))
    });
    entries.collect::<Result<serde_json::Map<_, _>, String>>().map(Into::into)
}

fn plain(value: &Value) -> Result<serde_json::Value, String> {
    Ok(match value {
        Value::String(it) => it.value().clone().into(),
        Value::Integer(it) => (*it.value()).into(),
        Value::Float(it) => (*it.value()).into(),
        Value::Boolean(it) => (*it.value()).into(),
        Value::Array(it) => it.iter().map(plain).collect::<Result<Vec<_>, _>>()?.into(),
        other => return Err(format!("{} is of no use here", other.type_name())),
    })
}

fn is_section(name: &str) -> bool {
    let of_it = |key: &Key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    KEYS.iter().any(of_it)
}

/// The key of a name, or why it is none.
fn known(name: &str, at: ConfigPlace) -> Result<&'static Key> {
    Key::find(name).ok_or_else(|| match near(name) {
        Some(near) => wrong(at, format!("unknown key {name}; did you mean {near}?")),
        None => wrong(at, format!("unknown key {name}")).helped_by(Remedy::List(Listing::Settings)),
    })
}

const fn wrong(at: ConfigPlace, why: String) -> Error {
    Error::Config { at, why, remedies: Vec::new() }
}
