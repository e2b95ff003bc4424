//! Guided work: from a goal to a commit, through the phases of the workflow set.

use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::Deserialize;
use stepwell::model::Money;

use super::name::Name;
use super::runtime::dollars;
use crate::template::Template;
use crate::text::{deceives, first_line};

/// The most bytes of a command line of a plan: a person has to read it.
const MAX_COMMAND_BYTES: usize = 1_000;

/// Guided work: discuss, plan, execute, verify, run and ship.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guided {
    /// What is to be reached.
    pub goal: Template,
    /// The agent that asks about what is unclear.
    pub discuss: Name,
    /// The agent that plans.
    pub plan: Name,
    /// The agent that works on tasks.
    pub execute: Name,
    /// The agent that reviews what was done. Give it tools that only read.
    pub review: Name,
    /// The agent that proposes the commit message.
    pub ship: Name,
    /// Phases in which no person is asked.
    #[serde(default)]
    pub yes: Vec<YesPhase>,
    /// How many questions a discussion has at most. The default is 5.
    #[serde(default)]
    pub max_questions: Option<u32>,
    /// How many rounds of verification there are before the work ends with what is left. The
    /// default is 3.
    #[serde(default)]
    pub rounds: Option<NonZeroU32>,
    /// Has tasks done by this many subagents at once, each in a git worktree whose changes are
    /// merged into the files when its task is done. Without it, tasks are done in the workspace, one after the other.
    #[serde(default)]
    pub parallel: Option<NonZeroU32>,
    /// What becomes of a task whose attempt failed. The default is `ask`.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// How much each task may use.
    #[serde(default)]
    pub task_budget: TaskBudget,
    /// Commands that must succeed, besides those of the plan.
    #[serde(default)]
    pub checks: Vec<String>,
    /// How the program is started and looked at. Overrides the plan's.
    #[serde(default)]
    pub run: Option<TryProgram>,
    /// Whether the work is committed. The default is `ask`.
    #[serde(default)]
    pub commit: Commit,
}

/// A phase in which no person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum YesPhase {
    /// Questions are skipped.
    Discuss,
    /// The first plan is approved.
    Plan,
    /// A task that failed is repaired, and given up after three attempts.
    Execute,
    /// The work is committed.
    Ship,
}

/// What becomes of a task whose attempt failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// A person says.
    #[default]
    Ask,
    /// It is tried again from the start, up to three times; then it is given up.
    Retry,
    /// Its agent is told what failed and goes on, up to three times; then it is given up.
    Repair,
    /// It is skipped.
    Skip,
    /// It is given up, with all tasks that come after it.
    GiveUp,
}

/// Whether the work is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// A person says.
    #[default]
    Ask,
    /// Never.
    Never,
}

/// How much each task may use, all of its attempts in one conversation together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskBudget {
    /// The maximum number of tokens, sent and received.
    pub max_tokens: Option<NonZeroU64>,
    /// The maximum cost in US dollars.
    #[serde(deserialize_with = "dollars")]
    #[schemars(with = "Option<f64>")]
    pub max_cost_usd: Option<Money>,
}

/// How a program is started and looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TryProgram {
    /// The command line.
    pub command: String,
    /// An address of this machine that must answer, such as `http://127.0.0.1:8080/healthz`.
    pub url: Option<String>,
    /// A text that must occur in the answer, or, without an address, in the output.
    pub expect: Option<String>,
    /// How many seconds it has. The default is 10.
    pub seconds: Option<NonZeroU32>,
}

impl Guided {
    /// Whether no person is asked in a phase.
    #[must_use]
    pub fn says_yes(&self, phase: YesPhase) -> bool {
        self.yes.contains(&phase)
    }

    /// The agents, each with its key.
    #[must_use]
    pub fn agents(&self) -> [(&'static str, &Name); 5] {
        [
            ("discuss", &self.discuss),
            ("plan", &self.plan),
            ("execute", &self.execute),
            ("review", &self.review),
            ("ship", &self.ship),
        ]
    }
}

/// Whether a program can be tried.
pub(crate) fn check_program(run: &TryProgram) -> Result<(), String> {
    check_command(run.command.trim())?;
    if run.expect.as_ref().is_some_and(|text| text.len() > MAX_COMMAND_BYTES) {
        return Err(format!("what the program must write has more than {MAX_COMMAND_BYTES} bytes"));
    }
    match &run.url {
        Some(url) => stepwell_agent::tool::check_local_url(url).map(drop),
        None => Ok(()),
    }
}

pub(crate) fn check_command(line: &str) -> Result<(), String> {
    if line.is_empty() {
        return Err("a command line is empty".to_owned());
    }
    let shown = first_line(line, 60);
    if line.len() > MAX_COMMAND_BYTES {
        return Err(format!("the command {shown:?} has more than {MAX_COMMAND_BYTES} bytes"));
    }
    if line.contains(['\n', '\r']) {
        return Err(format!("the command {shown:?} has more than one line; join them with &&"));
    }
    if line.chars().any(char::is_control) || deceives(line) {
        return Err(format!("the command {shown:?} has characters that a person cannot see"));
    }
    Ok(())
}
