//! Tools, and their effect classes, which say how to treat a call after a crash.

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
    /// The description for the model.
    fn spec(&self) -> &ToolSpec;

    /// Its effect class.
    fn effect(&self) -> Effect;

    /// What a call would do, in one line for the person who approves it.
    fn preview(&self, arguments: &Value) -> String;

    /// What a call would change, line by line, for the person who approves it.
    fn detail(&self, _arguments: &Value, _place: &ToolEnv) -> Option<String> {
        None
    }

    /// The files that a call would change. For idempotent tools the plan is on disk before they
    /// run, so that a later run can tell whether the change was made. Errors go to the model: wrong
    /// arguments, a path outside of the workspace.
    fn plan(&self, arguments: &Value, place: &ToolEnv) -> Result<Plan, String>;

    /// The result of a tool that only changes the session's record, given the planned tasks. Its
    /// changes are recorded together with the result, in one append, so they happen once however
    /// often it is interrupted. Other tools return `None`, and are run.
    fn decide(&self, _arguments: &Value, _place: &ToolEnv, _tasks: &Tasks) -> Option<Done> {
        None
    }

    /// The same for a tool that changes the session's phase.
    fn enter(&self, _arguments: &Value, _state: Option<PhaseState>) -> Option<Done> {
        None
    }

    /// Performs a call. Dropping the future stops it and everything that it started.
    fn run<'a>(&'a self, arguments: &'a Value, place: &'a ToolEnv) -> BoxFuture<'a, Done>;
}

/// Where tools work.
#[derive(Clone, Debug)]
pub struct ToolEnv {
    /// The workspace's root, with symbolic links resolved. File tools cannot leave it, nor enter
    /// its `.stepwell`.
    pub root: PathBuf,
    /// The store's folder, with symbolic links resolved: file tools cannot enter it, whatever its
    /// name.
    pub store: Option<PathBuf>,
    /// The store's folder for subagents' worktrees, if it differs from `store`: a worktree lies
    /// inside the store.
    pub grounds: Option<PathBuf>,
    /// Further folders, with symbolic links resolved, that read-only tools may enter.
    pub also: Vec<PathBuf>,
    /// Environment variables that started programs do not inherit. The caller, who knows the
    /// environment, lists those of [`is_private_variable`] and others that hold keys.
    pub withheld: BTreeSet<String>,
    /// The default time limit of a command.
    pub command_timeout: Duration,
    /// How many bytes of a tool's output a model receives.
    pub output_limit: usize,
    /// The program that supervises commands: `stepwell` itself, with the arguments for that.
    /// Without one, a command is ended only if this process ends normally.
    pub supervisor: Option<Supervisor>,
    /// The last output of the running command.
    pub tail: Tail,
    /// Interrupted commands that have not ended yet.
    pub stopping: Stopping,
}

/// The program that ends a command's processes if Stepwell itself is killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supervisor {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, before the command's.
    pub arguments: Vec<String>,
}

impl ToolEnv {
    /// A workspace with defaults: no store, no supervisor.
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

    /// The environment and arguments of a read-only call: an absolute path in one of the further
    /// folders becomes relative to that folder.
    pub(crate) fn looked_into(&self, arguments: &Value) -> Option<(Self, Value)> {
        let path = Path::new(arguments.get("path")?.as_str()?);
        let folder = self.also.iter().find(|folder| path.starts_with(folder))?;
        let within = path.strip_prefix(folder).ok()?.to_str()?;
        let mut arguments = arguments.clone();
        arguments["path"] = Value::from(if within.is_empty() { "." } else { within });
        Some((Self { root: folder.clone(), store: None, ..self.clone() }, arguments))
    }

    /// The folder that file tools cannot leave.
    #[must_use]
    pub fn files(&self) -> Root {
        Root { path: self.root.clone(), store: self.store.clone() }
    }
}

/// The planned changes of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Files, relative to the workspace.
    pub targets: Vec<ToolTarget>,
    /// The subagent's session that it would start.
    pub child: Option<SessionId>,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// How it ended.
    pub outcome: Outcome,
    /// The result for the model.
    pub text: String,
    /// The files that it changed.
    pub changed: Vec<Changed>,
    /// The planned tasks that it added or changed, in their new state.
    pub tasks: Vec<Task>,
    /// The phase that it moved to.
    pub phase: Option<PhaseChanged>,
}

impl Done {
    /// A success.
    pub fn ok(text: impl Into<String>) -> Self {
        let (changed, tasks) = (Vec::new(), Vec::new());
        Self { outcome: Outcome::Done, text: text.into(), changed, tasks, phase: None }
    }

    /// A failure, with the reason for the model.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed, ..Self::ok(text) }
    }
}

/// A file that a tool changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Relative to the workspace.
    pub path: String,
    /// The content before.
    pub before: Content,
    /// The content after.
    pub after: Content,
}

/// The tools that every agent can have.
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

/// The tool that starts a program and checks it.
#[must_use]
pub fn try_program() -> Arc<dyn Tool> {
    Arc::new(program::try_program())
}

/// The tool that moves a session's work through a set of phases.
#[must_use]
pub fn phases(set: PhaseSet) -> Arc<dyn Tool> {
    Arc::new(phase::phase(set))
}

/// A tool's description, with exactly these arguments.
fn spec(name: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters }
}

/// Parses a tool's arguments. The error is for the model.
fn parse<T: DeserializeOwned>(tool: &str, arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("wrong arguments for {tool}: {error}"))
}

/// An argument in a preview: one line, shortened, safe for display.
fn word(arguments: &Value, name: &str) -> String {
    /// The most characters that a person takes in at a glance.
    const LONG: usize = 200;
    let Some(text) = arguments[name].as_str() else { return "?".to_owned() };
    let shown: String = text.chars().take(LONG).flat_map(visible).collect();
    if text.chars().nth(LONG).is_some() { format!("{shown} …") } else { shown }
}

/// A character made safe for display: one that moves the cursor or reverses the text direction
/// could hide what is about to run.
pub(crate) fn visible(character: char) -> Vec<char> {
    match character {
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            character.escape_unicode().collect()
        }
        character if character.is_control() => character.escape_default().collect(),
        character => vec![character],
    }
}

/// The longest prefix within the limit, cut between characters.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    let cut = &text[..text.floor_char_boundary(limit)];
    // A cut word may be half a secret, which the redactor would not recognise.
    let last =
        cut.rfind(char::is_whitespace).filter(|at| text.len() > limit && cut.len() - at < 256);
    &cut[..last.map_or(cut.len(), |at| at + 1)]
}
