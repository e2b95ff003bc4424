//! Builds the spec of guided work from the options that front ends offer.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use serde_json::{Value, json};
use stepwell::model::Money;

use crate::spec::{Commit, OnFailure, Reading, Spec, SpecError, TryProgram, YesPhase};

/// The options of guided work, where they differ from the defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// The model: `provider/name`.
    pub model: Option<String>,
    /// Models of phases, which override that one.
    pub models: BTreeMap<WorkAgent, String>,
    /// Phases without questions to a person.
    pub yes: Vec<YesPhase>,
    /// The most questions in the discussion.
    pub max_questions: Option<u32>,
    /// The most verification rounds.
    pub rounds: Option<NonZeroU32>,
    /// How many subagents work on tasks at once, in worktrees; `None` for no subagents.
    pub parallel: Option<NonZeroU32>,
    /// How to handle a failed task.
    pub on_failure: OnFailure,
    /// The most dollars of a task.
    pub task_budget: Option<Money>,
    /// The most tokens of a task.
    pub task_tokens: Option<NonZeroU64>,
    /// Commands that must succeed, in addition to the plan's.
    pub checks: Vec<String>,
    /// How to start the program and check it.
    pub run: Option<TryProgram>,
    /// Commit the work?
    pub commit: Commit,
}

/// An agent of guided work, by its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkAgent {
    /// Asks questions about unclear points.
    Discuss,
    /// Makes the plan.
    Plan,
    /// Executes tasks.
    Execute,
    /// Reviews the changes.
    Verify,
    /// Proposes the commit message.
    Ship,
}

impl WorkAgent {
    /// All of them. The first one's model is the session's.
    pub const ALL: [Self; 5] = [Self::Execute, Self::Discuss, Self::Plan, Self::Verify, Self::Ship];

    /// The phase of this agent.
    #[must_use]
    pub const fn phase(self) -> &'static str {
        match self {
            Self::Discuss => "discuss",
            Self::Plan => "plan",
            Self::Execute => "execute",
            Self::Verify => "verify",
            Self::Ship => "ship",
        }
    }

    /// The agent of a phase.
    #[must_use]
    pub fn of_phase(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.phase() == name)
    }

    /// Its name in the spec.
    const fn name(self) -> &'static str {
        match self {
            Self::Verify => "review",
            other => other.phase(),
        }
    }

    const fn prompt(self) -> &'static str {
        match self {
            Self::Discuss => {
                "You find out what a user wants before anything is planned. You look at the project \
                 yourself, and ask only what it does not answer."
            }
            Self::Plan => {
                "You plan changes to a software project. You look at the project first. Your plans \
                 are short, in steps that can be checked."
            }
            Self::Execute => {
                "You work on one task of a plan in a software project. You change what the task \
                 needs and nothing else, in the style of the project, and look at the result."
            }
            Self::Verify => {
                "You review changes to a software project. You read the files that were changed, \
                 and say what must be changed before they are shipped. You change nothing."
            }
            Self::Ship => "You write commit messages: short, precise, in the imperative.",
        }
    }

    const fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Discuss | Self::Plan | Self::Verify => &["list_files", "read_file", "search"],
            Self::Execute => &[
                "list_files",
                "read_file",
                "search",
                "write_file",
                "edit_file",
                "delete_file",
                "run_command",
            ],
            Self::Ship => &[],
        }
    }
}

/// The variable for the goal. The goal is not part of the spec, because it may contain a secret.
pub const GOAL: &str = "goal";

impl Outline {
    /// The spec, as JSON.
    #[must_use]
    pub fn text(&self) -> String {
        let agents = WorkAgent::ALL.into_iter().map(|agent| {
            let mut described = json!({ "prompt": agent.prompt(), "tools": agent.tools() });
            if let Some(model) = self.models.get(&agent) {
                described["model_id"] = json!(model);
            }
            format!("{:?}: {described}", agent.name())
        });
        // In this order, because the first one's model is the session's.
        let agents: Vec<String> = agents.collect();
        let mut runtime = json!({});
        if let Some(model) = &self.model {
            runtime["model_id"] = json!(model);
        }
        if let Some(parallel) = self.parallel {
            runtime["max_parallel"] = json!(parallel);
        }
        let (inputs, config) = (json!({ "required": { GOAL: "string" } }), self.config());
        format!(
            "{{\"version\": 0, \"name\": \"work\",\n\"inputs\": {inputs},\n\"runtime\": {runtime},\n\
             \"agents\": {{\n{}}},\n\"pattern\": {{\"type\": \"guided\", \"config\": {config}}}}}\n",
            agents.join(",\n")
        )
    }

    fn config(&self) -> Value {
        let mut config = json!({ "goal": format!("{{{{ {GOAL} }}}}") });
        for agent in WorkAgent::ALL {
            config[agent.name()] = json!(agent.name());
        }
        config["yes"] = self.yes.iter().map(|phase| json!(yes_word(*phase))).collect();
        config["on_failure"] = json!(failure_word(self.on_failure));
        config["checks"] = json!(self.checks);
        config["commit"] = json!(if self.commit == Commit::Never { "never" } else { "ask" });
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                config[key] = value;
            }
        };
        set("max_questions", self.max_questions.map(Value::from));
        set("rounds", self.rounds.map(|rounds| json!(rounds)));
        set("parallel", self.parallel.map(|most| json!(most)));
        let dollars = self.task_budget.map(|most| most.to_string().parse::<f64>().unwrap_or(0.0));
        let budget = json!({ "max_tokens": self.task_tokens, "max_cost_usd": dollars });
        set(
            "task_budget",
            (self.task_budget.is_some() || self.task_tokens.is_some()).then_some(budget),
        );
        set(
            "run",
            self.run.as_ref().map(|run| {
                json!({ "command": run.command, "url": run.url, "expect": run.expect,
                    "seconds": run.seconds })
            }),
        );
        config
    }

    /// The parsed and checked spec.
    pub fn read(&self) -> Result<Reading, SpecError> {
        let files: BTreeMap<String, String> = BTreeMap::new();
        Spec::parse(&self.text(), "guided work", &files)
    }
}

const fn yes_word(phase: YesPhase) -> &'static str {
    match phase {
        YesPhase::Discuss => "discuss",
        YesPhase::Plan => "plan",
        YesPhase::Execute => "execute",
        YesPhase::Ship => "ship",
    }
}

const fn failure_word(what: OnFailure) -> &'static str {
    match what {
        OnFailure::Ask => "ask",
        OnFailure::Retry => "retry",
        OnFailure::Repair => "repair",
        OnFailure::Skip => "skip",
        OnFailure::GiveUp => "give_up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Pattern;

    fn guided(outline: &Outline) -> (Spec, crate::spec::Guided) {
        let reading = outline.read().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(reading.warnings, []);
        let Pattern::Guided(guided) = reading.spec.pattern.clone() else { panic!("it is guided") };
        (reading.spec, *guided)
    }

    #[test]
    fn an_outline_is_a_spec_without_warnings() {
        let (spec, guided) = guided(&Outline::default());
        assert_eq!(spec.agents.keys().next().unwrap().as_str(), "execute");
        assert_eq!((guided.rounds, guided.parallel, guided.commit), (None, None, Commit::Ask));
        let review = spec.agents.get("review").unwrap();
        assert!(review.tools.iter().all(|tool| !tool.contains("write") && !tool.contains("run")));
    }

    #[test]
    fn everything_that_an_outline_says_is_in_its_spec() {
        let outline = Outline {
            model: Some("openai/gpt".to_owned()),
            models: BTreeMap::from([(WorkAgent::Plan, "anthropic/claude".to_owned())]),
            yes: vec![YesPhase::Discuss, YesPhase::Ship],
            max_questions: Some(2),
            rounds: NonZeroU32::new(4),
            parallel: NonZeroU32::new(7),
            on_failure: OnFailure::GiveUp,
            task_budget: "0.50".parse().ok(),
            task_tokens: NonZeroU64::new(9_000),
            checks: vec!["echo \"{{ goal }}\"".to_owned()],
            run: Some(TryProgram { command: "serve".to_owned(), ..TryProgram::default() }),
            commit: Commit::Never,
        };
        let (spec, guided) = guided(&outline);
        assert_eq!(spec.runtime.model_id.as_deref(), Some("openai/gpt"));
        assert_eq!(spec.runtime.max_parallel().get(), 7);
        assert_eq!(spec.agents["plan"].model_id.as_deref(), Some("anthropic/claude"));
        assert_eq!((guided.yes, guided.max_questions), (outline.yes, Some(2)));
        assert_eq!((guided.rounds, guided.parallel), (outline.rounds, outline.parallel));
        assert_eq!((guided.on_failure, guided.commit), (OnFailure::GiveUp, Commit::Never));
        assert_eq!(guided.task_budget.max_cost_usd, outline.task_budget);
        assert_eq!(guided.task_budget.max_tokens, outline.task_tokens);
        assert_eq!((guided.checks, guided.run), (outline.checks, outline.run));
    }

    #[test]
    fn a_program_elsewhere_and_an_empty_check_are_refused() {
        let url = Some("http://example.com".to_owned());
        let run = TryProgram { command: "serve".to_owned(), url, ..TryProgram::default() };
        assert!(Outline { run: Some(run), ..Outline::default() }.read().is_err());
        assert!(Outline { checks: vec![" ".to_owned()], ..Outline::default() }.read().is_err());
    }
}
