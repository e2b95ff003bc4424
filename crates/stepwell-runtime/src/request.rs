//! What a front end asks for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell::SessionId;
use stepwell::error::Action;
use stepwell::model::{Answer, Money, PhaseSet};
use stepwell_agent::mcp::{KeptServers, Server};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::remote::Effort;
use stepwell_agent::run::Patience;
use stepwell_flow::spec::{Reading, Spec};
use tokio::sync::watch;

use crate::error::{Error, Result};
use crate::trust::Trust;

/// How a run works, where it is not as the configuration says.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The agent.
    pub agent: Option<String>,
    /// The model: `provider/name`, or `script:FILE`.
    pub model: Option<String>,
    /// When a person is asked.
    pub mode: Option<Mode>,
    /// The loosest mode that it may have, whatever was chosen before or is configured.
    pub loosest_mode: Option<Mode>,
    /// How long the model thinks; absent, as its provider has it.
    pub effort: Option<Effort>,
    /// The most dollars of this run.
    pub budget: Option<Money>,
    /// The most dollars of the session; kept for later runs.
    pub budget_total: Option<Money>,
    /// The most tokens of this run.
    pub max_tokens: Option<u64>,
    /// The most steps of this run.
    pub max_steps: Option<u64>,
    /// How long this run may take.
    pub timeout: Option<Duration>,
    /// Does a tool that would change something only say so?
    pub dry_run: bool,
    /// Does a command that was cut off run again, though nobody knows what it did?
    pub retry_unsafe: bool,
    /// The file that a script is written to that replays the model's answers.
    pub record_script: Option<PathBuf>,
    /// What the run does when it asks a person: pause, or wait for an answer.
    pub patience: Patience,
    /// MCP servers of the front end's, besides those of the configuration. Neither they nor their
    /// variables are recorded.
    pub servers: Vec<Server>,
    /// The same, of those that go on when the run ends.
    pub kept_servers: Option<Arc<KeptServers>>,
    /// Folders besides the workspace that may be looked into, and not changed.
    pub folders: Vec<PathBuf>,
}

impl RunOptions {
    /// When a person is asked: as these options say, or else as usual; never less than they allow.
    #[must_use]
    pub fn mode_or(&self, usual: impl FnOnce() -> Mode) -> Mode {
        let mode = self.mode.unwrap_or_else(usual);
        self.loosest_mode.map_or(mode, |loosest| mode.min(loosest))
    }

    /// May the run change files?
    #[must_use]
    pub const fn touch(&self) -> Touch {
        if self.dry_run { Touch::Nothing } else { Touch::Files }
    }
}

/// May a run change files?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It may.
    Files,
    /// It may not: it is a dry run.
    Nothing,
}

/// Asks for a new run of an agent.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// What to do.
    pub task: String,
    /// The id of its session; absent, a new one is made.
    pub session: Option<SessionId>,
    /// The phases that its work goes through.
    pub phases: Option<PhaseSet>,
    /// How it works.
    pub options: RunOptions,
    /// Stops it, also before it has begun.
    pub interrupt: Interrupt,
}

impl RunRequest {
    /// A run for a task, as the configuration says.
    pub fn new(task: impl Into<String>) -> Self {
        Self { task: task.into(), ..Self::default() }
    }
}

/// Asks for a session to be resumed, be it an agent's or a flow's.
#[derive(Clone, Debug)]
pub struct ResumeRequest {
    /// The session.
    pub session: SessionId,
    /// Whether what its log allows was allowed by this user.
    pub trust: Trust,
    /// What to do next, if it is not what it did.
    pub say: Option<String>,
    /// The answer to the question that it waits with.
    pub answer: Option<Given>,
    /// How it works.
    pub options: RunOptions,
    /// What is for flows only.
    pub flow: FlowOptions,
    /// Stops it, also before it has begun.
    pub interrupt: Interrupt,
}

impl ResumeRequest {
    /// A session that goes on with what it did.
    #[must_use]
    pub fn new(session: SessionId, trust: Trust) -> Self {
        Self {
            session,
            trust,
            say: None,
            answer: None,
            options: RunOptions::default(),
            flow: FlowOptions::default(),
            interrupt: Interrupt::default(),
        }
    }

    /// Refuses an answer that is given to a dry run.
    ///
    /// # Errors
    /// If it has both.
    pub fn refuse_dry_answer(&self) -> Result<()> {
        match self.options.dry_run && self.answer.is_some() {
            true => {
                let session = &self.session;
                let why = format!("a dry run answers nothing: {session} was left as it is");
                Err(Error::usage(why).helped(Action::Respond, session))
            }
            false => Ok(()),
        }
    }
}

/// An answer, as a front end takes it from a person.
#[derive(Clone, Debug)]
pub struct Given {
    /// The question's name; absent, the only one that waits is meant, or an agent's last one.
    pub gate: Option<String>,
    /// The answer. Words that allow or deny do so where that is asked.
    pub answer: Answer,
}

/// Asks for a new run of a flow.
#[derive(Clone, Debug)]
pub struct FlowRequest {
    /// Where the spec is.
    pub path: PathBuf,
    /// Its text, byte for byte.
    pub text: String,
    /// What it says.
    pub reading: Arc<Reading>,
    /// The values of its variables.
    pub variables: BTreeMap<String, Value>,
    /// How its agents work.
    pub options: RunOptions,
    /// What is for flows only.
    pub flow: FlowOptions,
    /// Stops it, also before it has begun.
    pub interrupt: Interrupt,
}

impl FlowRequest {
    /// Reads the spec of a flow, which errors call by a name. Its variables are not set yet.
    ///
    /// # Errors
    /// If it cannot be read, or is wrong.
    pub fn read(path: PathBuf, named: &str) -> Result<Self> {
        let (text, reading) = Spec::load(&path, named).map_err(stepwell_flow::Error::from)?;
        Ok(Self {
            path,
            text,
            reading: Arc::new(reading),
            variables: BTreeMap::new(),
            options: RunOptions::default(),
            flow: FlowOptions::default(),
            interrupt: Interrupt::default(),
        })
    }

    /// Sets its variables, as they are typed.
    ///
    /// # Errors
    /// If one is missing, unknown, or does not fit.
    pub fn with_variables(self, typed: &BTreeMap<String, String>) -> Result<Self> {
        let variables = self.reading.spec.inputs.resolve(typed);
        let variables = variables.map_err(stepwell_flow::Error::from)?;
        Ok(Self { variables, ..self })
    }
}

/// What is for flows only.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowOptions {
    /// The folder that artifacts are written to; absent, where the flow was started.
    pub output: Option<PathBuf>,
    /// Are files replaced that are in the way of artifacts?
    pub force: bool,
    /// Does a resume go on with the spec as it is on disk now?
    pub use_current_spec: bool,
    /// Variables, given again: their secrets are not kept.
    pub variables: BTreeMap<String, String>,
}

/// Stops a run. Clones stop the same one.
#[derive(Clone, Debug)]
pub struct Interrupt {
    asked: Arc<watch::Sender<bool>>,
}

impl Default for Interrupt {
    fn default() -> Self {
        Self { asked: Arc::new(watch::channel(false).0) }
    }
}

impl Interrupt {
    /// Asks the run to stop: it ends cleanly and can be resumed.
    pub fn ask(&self) {
        self.asked.send_replace(true);
    }

    /// Was it asked to?
    #[must_use]
    pub fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Waits until it was asked to.
    pub async fn asked(&self) {
        // The sender lives as long as this does.
        let _ = self.receiver().wait_for(|asked| *asked).await;
    }

    pub(crate) fn receiver(&self) -> watch::Receiver<bool> {
        self.asked.subscribe()
    }
}
