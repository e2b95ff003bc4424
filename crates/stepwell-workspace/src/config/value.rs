//! The kinds of values that settings have, and how each reads and shows.

use std::time::Duration;

use stepwell::model::Mode;
use stepwell::trust::AnswersFrom;
use stepwell_postgres::Address;
use toml_edit::Value;

use crate::duration::{parse_duration, show_duration};

/// A kind of value.
pub trait Setting: Sized {
    /// Reads it from a flag or a variable.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Reads it from a file.
    fn from_toml(value: &Value) -> Result<Self, String>;

    /// As a file would say it.
    fn to_toml(&self) -> Value;

    /// As it is shown, without what is secret in it.
    fn shown(&self) -> Value {
        self.to_toml()
    }
}

impl Setting for bool {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "not true or false".to_owned())
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| "not true or false".to_owned())
    }

    fn to_toml(&self) -> Value {
        (*self).into()
    }
}

/// A whole number between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Number<MIN, MAX> {
    pub(crate) const fn new(n: u32) -> Self {
        assert!(MIN <= n && n <= MAX);
        Self(n)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    fn within(n: i64) -> Result<Self, String> {
        let number = u32::try_from(n).ok().filter(|n| (MIN..=MAX).contains(n));
        number.map(Self).ok_or_else(Self::wrong)
    }

    fn wrong() -> String {
        match MAX {
            u32::MAX => format!("not a whole number of {MIN} or more"),
            _ => format!("not a whole number from {MIN} to {MAX}"),
        }
    }
}

impl<const MIN: u32, const MAX: u32> Setting for Number<MIN, MAX> {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| Self::wrong()).and_then(Self::within)
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        value.as_integer().ok_or_else(Self::wrong).and_then(Self::within)
    }

    fn to_toml(&self) -> Value {
        i64::from(self.0).into()
    }
}

/// A share of one: above 0, at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub(crate) f64);

impl Share {
    /// The share.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    fn within(share: f64) -> Result<Self, String> {
        if share > 0.0 && share <= 1.0 { Ok(Self(share)) } else { Err(Self::wrong()) }
    }

    fn wrong() -> String {
        "not a number above 0 and up to 1".to_owned()
    }
}

impl Setting for Share {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| Self::wrong()).and_then(Self::within)
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
        number.ok_or_else(Self::wrong).and_then(Self::within)
    }

    fn to_toml(&self) -> Value {
        self.0.into()
    }
}

impl Setting for Duration {
    fn from_text(text: &str) -> Result<Self, String> {
        parse_duration(text)
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        let text =
            value.as_str().ok_or_else(|| "not a length of time such as \"30m\"".to_owned())?;
        parse_duration(text)
    }

    fn to_toml(&self) -> Value {
        show_duration(*self).into()
    }
}

impl Setting for String {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        value.as_str().map(ToOwned::to_owned).ok_or_else(|| "not a text".to_owned())
    }

    fn to_toml(&self) -> Value {
        self.as_str().into()
    }
}

impl Setting for Mode {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        value.as_str().unwrap_or_default().parse()
    }

    fn to_toml(&self) -> Value {
        self.as_str().into()
    }
}

/// The address of a team's store; none, if it is empty.
#[derive(Clone, Debug, Default)]
pub struct StoreUrl(Option<TeamAddress>);

/// An address as it was written, and as it was understood.
#[derive(Clone)]
struct TeamAddress {
    text: String,
    address: Address,
}

impl std::fmt::Debug for TeamAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

impl StoreUrl {
    /// Where the team's store is.
    #[must_use]
    pub fn address(&self) -> Option<&Address> {
        self.0.as_ref().map(|team| &team.address)
    }
}

impl Setting for StoreUrl {
    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        let address = Address::of_store(text).map_err(|error| error.to_string())?;
        let address = address
            .ok_or_else(|| "not an address such as postgres://user@host/database".to_owned())?;
        Ok(Self(Some(TeamAddress { text: text.to_owned(), address })))
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        Self::from_text(value.as_str().ok_or_else(|| "not a text".to_owned())?)
    }

    fn to_toml(&self) -> Value {
        self.0.as_ref().map_or("", |team| team.text.as_str()).into()
    }

    fn shown(&self) -> Value {
        self.address().map(ToString::to_string).unwrap_or_default().into()
    }
}

/// Folders within the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders(Vec<String>);

impl Default for Folders {
    fn default() -> Self {
        Self(vec![".".to_owned()])
    }
}

impl Folders {
    /// Their paths, below the workspace's root.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.clone()
    }

    fn within(names: Vec<String>) -> Result<Self, String> {
        let inside = |name: &String| {
            !name.is_empty()
                && !name.starts_with(['/', '~'])
                && name.split('/').all(|it| it != "..")
        };
        if names.is_empty() {
            return Err("no folder: nothing that commands change would be captured".to_owned());
        }
        match names.iter().all(inside) {
            true => Ok(Self(names)),
            false => Err(Self::wrong()),
        }
    }

    fn wrong() -> String {
        "not folders within the workspace, such as [\"src\", \"lib\"]".to_owned()
    }
}

impl Setting for Folders {
    fn from_text(text: &str) -> Result<Self, String> {
        // As it stands in a file.
        if text.trim_start().starts_with('[') {
            let list = text.trim().parse().map_err(|_| Self::wrong())?;
            return Self::from_toml(&list);
        }
        Self::within(text.split(',').map(|name| name.trim().to_owned()).collect())
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        let Some(array) = value.as_array() else {
            return Self::from_text(value.as_str().unwrap_or_default());
        };
        let names = array.iter().map(|it| it.as_str().unwrap_or_default().to_owned());
        Self::within(names.collect())
    }

    fn to_toml(&self) -> Value {
        match &self.0[..] {
            [one] => one.as_str().into(),
            several => several.iter().map(String::as_str).collect::<toml_edit::Array>().into(),
        }
    }
}

/// How new ids of agents look that Stepwell does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentIds {
    /// As those of other sessions.
    Sessions,
    /// As GAIA-OPS names its agents.
    Agent,
}

impl Setting for AgentIds {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "sessions" => Ok(Self::Sessions),
            "agent" => Ok(Self::Agent),
            _ => Err("not sessions or agent".to_owned()),
        }
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        Self::from_text(value.as_str().unwrap_or_default())
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Sessions => "sessions".into(),
            Self::Agent => "agent".into(),
        }
    }
}

/// Whose answers and words a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TalkFrom {
    /// Its user's.
    Own,
    /// Those of everyone who may write to the store.
    Store,
}

impl From<TalkFrom> for AnswersFrom {
    fn from(from: TalkFrom) -> Self {
        match from {
            TalkFrom::Own => Self::Own,
            TalkFrom::Store => Self::Store,
        }
    }
}

impl Setting for TalkFrom {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "own" => Ok(Self::Own),
            "store" => Ok(Self::Store),
            _ => Err("not own or store".to_owned()),
        }
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        Self::from_text(value.as_str().unwrap_or_default())
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Own => "own".into(),
            Self::Store => "store".into(),
        }
    }
}

/// How new ids look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdStyle {
    /// When the session began, and some random digits.
    Timestamp,
    /// Random digits.
    Hex,
    /// A random UUID.
    Uuid,
}

impl IdStyle {
    const ALL: [(&'static str, Self); 3] =
        [("timestamp", Self::Timestamp), ("hex", Self::Hex), ("uuid", Self::Uuid)];
}

impl Setting for IdStyle {
    fn from_text(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, style)| style).ok_or_else(|| "not timestamp, hex or uuid".to_owned())
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        Self::from_text(value.as_str().unwrap_or_default())
    }

    fn to_toml(&self) -> Value {
        let name = Self::ALL.into_iter().find(|(_, style)| style == self);
        name.map_or("", |(name, _)| name).into()
    }
}
