//! Tools: what a model can do, and how each may be treated after a crash.

mod blocking;
mod command;
pub(crate) mod dispatch;
mod edit_tools;
pub(crate) mod environment;
pub(crate) mod guard;
mod inside_run;
mod list;
mod orphans;
pub(crate) mod output;
mod phase;
mod program;
mod read;
mod search;
mod stopping;
pub(crate) mod supervise;
mod tail;
mod tasks;
pub(crate) mod walk;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stepwell::SessionId;
use stepwell::model::{Effect, Outcome, PhaseChanged, PhaseSet, Task, ToolTarget};
use stepwell::work::Tasks;

pub use stepwell_files::safe_fs::Content;
use stepwell_files::safe_path::Root;

pub use self::dispatch::{Isolation, Order, is_read_only};
pub use self::environment::{IN_RUN, is_private_variable};
pub use self::inside_run::is_inside_run;
pub use self::program::check_local_url;
pub use self::supervise::{Watched, supervise};
use crate::phases::PhaseState;
use crate::provider::ToolSpec;
pub use stopping::Stopping;
pub use tail::Tail;

/// A tool.
pub trait Tool: fmt::Debug + Send + Sync {
    /// How the model is told of it.
    fn spec(&self) -> &ToolSpec;

    /// How it may be treated after a crash.
    fn effect(&self) -> Effect;

    /// What it would do, in one line for a person who is asked to allow it.
    fn preview(&self, arguments: &Value) -> String;

    /// What it would change, line by line, for a person who is asked to allow it.
    fn detail(&self, _arguments: &Value, _place: &ToolEnv) -> Option<String> {
        None
    }

    /// What it would change, before anything is changed. For idempotent tools this is on
    /// disk before they run: it tells a change that was made from one that was not. Errors
    /// are the model's: wrong arguments, a path outside of the workspace.
    fn plan(&self, arguments: &Value, place: &ToolEnv) -> Result<Plan, String>;

    /// What it does, if it touches nothing but the session's own record, given what is planned
    /// there. What it changes is recorded together with its result, in one append: however
    /// often it is cut off, it happens once. A tool that acts on the world has no such answer,
    /// and is run.
    fn decide(&self, _arguments: &Value, _place: &ToolEnv, _tasks: &Tasks) -> Option<Done> {
        None
    }

    /// The same for a tool that moves the session's work from phase to phase.
    fn enter(&self, _arguments: &Value, _state: Option<PhaseState>) -> Option<Done> {
        None
    }

    /// Does it. Dropping the future stops it, with all that it started.
    fn run<'a>(&'a self, arguments: &'a Value, place: &'a ToolEnv) -> BoxFuture<'a, Done>;
}

/// Where tools work.
#[derive(Clone, Debug)]
pub struct ToolEnv {
    /// The workspace's root, without symbolic links. No file tool leaves it, nor enters
    /// `.stepwell` in it.
    pub root: PathBuf,
    /// The store's folder, without symbolic links: no file tool enters it, whatever its name.
    pub store: Option<PathBuf>,
    /// The store's folder for subagents' worktrees, where that is not `store`: whoever works in
    /// a worktree works in the store.
    pub grounds: Option<PathBuf>,
    /// Folders besides the workspace, without symbolic links, that tools may look into.
    pub also: Vec<PathBuf>,
    /// Variables that the programs we start do not inherit. Whoever knows the environment names
    /// those of [`is_private_variable`] and those that hold a key by another name.
    pub withheld: BTreeSet<String>,
    /// How long a command may take, unless it asks for less.
    pub command_timeout: Duration,
    /// How many bytes of a tool's output a model is shown.
    pub output_limit: usize,
    /// The program that watches over commands: `stepwell` itself, with the arguments that
    /// make it do so. Without one, a command dies with this process only.
    pub supervisor: Option<Supervisor>,
    /// What the command that runs wrote last.
    pub tail: Tail,
    /// Commands that were cut off and have not ended yet.
    pub stopping: Stopping,
}

/// The program that ends what a command started, if Stepwell itself is killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supervisor {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, before the command.
    pub arguments: Vec<String>,
}

impl ToolEnv {
    /// A workspace, with nothing else settled: no store in it, no supervisor.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            store: None,
            grounds: None,
            also: Vec::new(),
            withheld: BTreeSet::new(),
            command_timeout: Duration::from_secs(600),
            output_limit: 32 << 10,
            supervisor: None,
            tail: Tail::default(),
            stopping: Stopping::default(),
        }
    }

    /// Where a call that only looks is meant, and with which arguments: an absolute path in one of
    /// the folders besides the workspace is relative to that.
    pub(crate) fn looked_into(&self, arguments: &Value) -> Option<(Self, Value)> {
        let path = Path::new(arguments.get("path")?.as_str()?);
        let folder = self.also.iter().find(|folder| path.starts_with(folder))?;
        let within = path.strip_prefix(folder).ok()?.to_str()?;
        let mut arguments = arguments.clone();
        arguments["path"] = Value::from(if within.is_empty() { "." } else { within });
        Some((Self { root: folder.clone(), store: None, ..self.clone() }, arguments))
    }

    /// The folder that file tools stay in.
    #[must_use]
    pub fn files(&self) -> Root {
        Root { path: self.root.clone(), store: self.store.clone() }
    }
}

/// What a tool would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Files, by their path relative to the workspace.
    pub targets: Vec<ToolTarget>,
    /// The subagent's session that it would start.
    pub child: Option<SessionId>,
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
    /// Tasks that it planned or changed, as they stand now.
    pub tasks: Vec<Task>,
    /// The phase that it moved the work to.
    pub phase: Option<PhaseChanged>,
}

impl Done {
    /// It did what it was asked.
    pub fn ok(text: impl Into<String>) -> Self {
        let (changed, tasks) = (Vec::new(), Vec::new());
        Self { outcome: Outcome::Done, text: text.into(), changed, tasks, phase: None }
    }

    /// It failed, and the model is told why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed, ..Self::ok(text) }
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

/// The tools that every agent can be given.
#[must_use]
pub fn builtin() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(read::read_file()),
        Arc::new(edit_tools::write_file()),
        Arc::new(edit_tools::edit_file()),
        Arc::new(edit_tools::delete_file()),
        Arc::new(list::list_files()),
        Arc::new(search::search()),
        Arc::new(command::run_command()),
        Arc::new(tasks::tasks()),
        Arc::new(dispatch::dispatch_subagent()),
    ]
}

/// The tool that starts a program and looks at it.
#[must_use]
pub fn try_program() -> Arc<dyn Tool> {
    Arc::new(program::try_program())
}

/// The tool by which an agent moves a session's work through the phases of a set.
#[must_use]
pub fn phases(set: PhaseSet) -> Arc<dyn Tool> {
    Arc::new(phase::phase(set))
}

/// A tool's description, whose arguments are these properties and no others.
fn spec(name: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters }
}

/// A tool's arguments, or what the model should know about them.
fn parse<T: DeserializeOwned>(tool: &str, arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("wrong arguments for {tool}: {error}"))
}

/// An argument in a preview: one line, not too long, whatever the model gave.
fn word(arguments: &Value, name: &str) -> String {
    /// What a person can take in at a glance.
    const LONG: usize = 200;
    let Some(text) = arguments[name].as_str() else { return "?".to_owned() };
    let shown: String = text.chars().take(LONG).flat_map(visible).collect();
    if text.chars().nth(LONG).is_some() { format!("{shown} …") } else { shown }
}

/// A character as a person may safely be shown it: what moves the cursor, or turns the
/// direction of the text, could hide what is about to run.
pub(crate) fn visible(character: char) -> Vec<char> {
    match character {
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            character.escape_unicode().collect()
        }
        character if character.is_control() => character.escape_default().collect(),
        character => vec![character],
    }
}

/// As much of a text as fits, cut between characters.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    let cut = &text[..text.floor_char_boundary(limit)];
    // Half a word may be half a secret, which nobody recognises.
    let last =
        cut.rfind(char::is_whitespace).filter(|at| text.len() > limit && cut.len() - at < 256);
    &cut[..last.map_or(cut.len(), |at| at + 1)]
}
