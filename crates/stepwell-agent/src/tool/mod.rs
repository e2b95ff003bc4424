//! Tools: what a model can do, and how each may be treated after a crash.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use stepwell::{Effect, Outcome, ToolTarget};

use crate::provider::ToolSpec;

/// A tool.
pub trait Tool: fmt::Debug + Send + Sync {
    /// How the model is told of it.
    fn spec(&self) -> &ToolSpec;

    /// How it may be treated after a crash.
    fn effect(&self) -> Effect;

    /// What it would do, in one line for a person who is asked to allow it.
    fn preview(&self, arguments: &Value) -> String;

    /// What it would change, before anything is changed. For idempotent tools this is on
    /// disk before they run: it tells a change that was made from one that was not. Errors
    /// are the model's: wrong arguments, a path outside of the workspace.
    fn plan(&self, arguments: &Value, place: &Place) -> Result<Plan, String>;

    /// Does it. Dropping the future stops it, with all that it started.
    fn run<'a>(&'a self, arguments: &'a Value, place: &'a Place) -> BoxFuture<'a, Done>;
}

/// Where tools work.
#[derive(Clone, Debug)]
pub struct Place {
    /// The workspace's root, without symbolic links. No file tool leaves it, nor enters
    /// `.stepwell` in it.
    pub root: PathBuf,
    /// How long a command may take, unless it asks for less.
    pub command_timeout: Duration,
    /// How many bytes of a tool's output a model is shown.
    pub output_limit: usize,
    /// The program that watches over commands: `stepwell` itself, with the arguments that
    /// make it do so. Without one, a command dies with this process only.
    pub supervisor: Option<(PathBuf, Vec<String>)>,
}

/// What a tool would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Files, by their path relative to the workspace.
    pub targets: Vec<ToolTarget>,
}

/// What a tool did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// How it ended.
    pub outcome: Outcome,
    /// What the model is told.
    pub text: String,
    /// Files that it changed.
    pub changed: Vec<Changed>,
}

impl Done {
    /// It did what it was asked.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::Done, text: text.into(), changed: Vec::new() }
    }

    /// It failed, and the model is told why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed, text: text.into(), changed: Vec::new() }
    }
}

/// A file that a tool changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Where, relative to the workspace.
    pub path: String,
    /// What stood there.
    pub before: Content,
    /// What stands there.
    pub after: Content,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Symlink(String),
    /// A file whose bytes are not kept, and why.
    NotKept(String),
}
