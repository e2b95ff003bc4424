//! The spec of a flow: its types, their positions in the file, and its problems.
//!
//! A spec is YAML or JSON. Its keys are those of strands-cli. A key that has no effect in
//! Stepwell is accepted with a warning; any other unknown key is an error.

mod agent;
mod check;
mod dag;
mod either;
mod extras;
mod files;
pub(crate) mod guided;
mod inputs;
mod name;
mod pattern;
mod problem;
mod read;
mod runtime;
mod step;
mod tree;

use std::cell::LazyCell;
use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::template::Template;
use tree::Tree;

pub use agent::{Agent, Inference, Prompt};
pub use dag::{Dag, Predecessors};
pub use extras::{
    Artifact, CompactionPolicy, ContextPolicy, Env, Guardrails, HttpExecutor, McpServer, Notes,
    NotesFormat, Otel, Outputs, PythonTool, Retrieval, Secret, SecretSource, Security, Skill,
    Telemetry, TelemetryRedact, Tools,
};
pub use files::{Files, Folder};
pub use guided::{Commit, Guided, OnFailure, TaskBudget, TryProgram, YesPhase};
pub use inputs::{BadVariable, Input, InputType, Inputs};
pub use name::Name;
pub use pattern::{
    Accept, Branch, Chain, Choice, Edge, EdgeTarget, Evaluator, EvaluatorOptimizer, Graph,
    Orchestrator, OrchestratorLimits, OrchestratorWorkers, Parallel, Pattern, Producer, Route,
    Router, Routing, Task, WorkerTemplate, Workflow,
};
pub use problem::{Path, Position, Problem, Segment, SpecError};
pub use runtime::{Backoff, Budgets, FailurePolicy, MAX_PARALLEL, Runtime};
pub use step::{AgentStep, AnswerPattern, Gate, Review, Step, Validation};
pub use tree::MAX_SPEC_BYTES;

/// A flow of agents.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A flow of Stepwell")]
pub struct Spec {
    /// The version of the spec format: 0.
    pub version: Version,
    /// The flow's name.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Tags of the flow's sessions, to find them by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Models, limits and retries. Agents may override the model.
    #[serde(default)]
    pub runtime: Runtime,
    /// Its agents.
    pub agents: IndexMap<Name, Agent>,
    /// Its variables.
    #[serde(default)]
    pub inputs: Inputs,
    /// How its agents work together.
    pub pattern: Pattern,
    /// What is written when the flow succeeds.
    #[serde(default)]
    pub outputs: Outputs,
    /// How the context of agents is managed.
    #[serde(default)]
    pub context_policy: Option<ContextPolicy>,
    /// What the flow needs from the environment.
    #[serde(default)]
    pub env: Env,
    /// Tools for agents, in addition to the built-in ones.
    #[serde(default)]
    pub tools: Tools,
    /// Ignored: Stepwell sends no telemetry.
    #[serde(default)]
    pub telemetry: Option<Telemetry>,
    /// Ignored: Stepwell has no skills.
    #[serde(default)]
    pub skills: Vec<Skill>,
    /// Restrictions for agents.
    #[serde(default)]
    pub security: Security,
}

/// The version of the spec format: 0, as a number or a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version;

impl JsonSchema for Version {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": [0, "0"] })
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if value == 0 || value == "0" {
            return Ok(Self);
        }
        Err(serde::de::Error::custom(format!("unknown version {value}; expected 0")))
    }
}

/// A valid spec, and the warnings about it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The spec.
    pub spec: Spec,
    /// Parts without the effect that one might expect, in the order of the file.
    pub warnings: Vec<Problem>,
    /// MCP servers that agents use and the spec does not define, each with the problem to report
    /// if the configuration does not define it either.
    pub servers: Vec<(String, Problem)>,
}

impl Spec {
    /// Parses and checks a spec. `file` is its name in errors. `files` are the files that its
    /// prompts may refer to.
    pub fn parse(text: &str, file: &str, files: &dyn Files) -> Result<Reading, SpecError> {
        let invalid = |problems| SpecError::Invalid { file: file.to_owned(), problems };
        let tree = Tree::parse(text).map_err(|problem| invalid(vec![problem]))?;
        // Only problems need positions, and finding them is expensive.
        let positions = LazyCell::new(|| Tree::with_positions(text).ok());
        let mut spec: Self = read::read(&tree).map_err(|problem| {
            let again = positions.as_ref().and_then(|tree| read::read::<Self>(tree).err());
            invalid(vec![again.unwrap_or(problem)])
        })?;
        let position = |mut problem: Problem| {
            let position = || positions.as_ref()?.position_of(&problem.path);
            problem.position = problem.position.or_else(position);
            problem
        };
        let positioned = |problems: Vec<Problem>| {
            let mut problems: Vec<_> = problems.into_iter().map(position).collect();
            problems.sort_by_key(|problem| problem.position);
            problems
        };
        let mut problems = spec.read_prompts(files);
        problems.extend(check::errors(&spec));
        if !problems.is_empty() {
            return Err(invalid(positioned(problems)));
        }
        let servers = check::servers(&spec).into_iter();
        let servers = servers.map(|(server, problem)| (server, position(problem))).collect();
        Ok(Reading { warnings: positioned(check::warnings(&spec)), servers, spec })
    }

    /// Reads and checks a spec's file. Also returns its text, byte for byte. `shown` is its name
    /// in errors.
    pub fn load(file: &std::path::Path, shown: &str) -> Result<(String, Reading), SpecError> {
        let unreadable = |why| SpecError::Unreadable { file: shown.to_owned(), why };
        let text = files::text(file).map_err(unreadable)?;
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = Folder(parent.unwrap_or(std::path::Path::new(".")).to_owned());
        let reading = Self::parse(&text, shown, &folder)?;
        Ok((text, reading))
    }

    /// The texts of the files that it refers to, by the names it uses.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, String> {
        let prompts = self.agents.values().map(|agent| &agent.prompt);
        let of_file =
            |prompt: &Prompt| Some((prompt.file.clone()?, prompt.template.source().to_owned()));
        prompts.filter_map(of_file).collect()
    }

    fn read_prompts(&mut self, files: &dyn Files) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, agent) in &mut self.agents {
            let Some(file) = &agent.prompt.file else { continue };
            let read = files
                .read(file)
                .and_then(|text| Template::parse(text).map_err(|error| error.to_string()));
            match read {
                Ok(template) => agent.prompt.template = template,
                Err(why) => {
                    let path = Path::root().at("agents").at(name.as_str());
                    problems.push(Problem::new(path, format!("prompt file {file:?}: {why}")));
                }
            }
        }
        problems
    }
}

/// The JSON Schema of specs, generated from the types that specs are parsed into.
#[must_use]
pub fn schema() -> serde_json::Value {
    let generator = stepwell::schema::settings().into_generator();
    generator.into_root_schema_for::<Spec>().to_value()
}

/// The text of the shipped file `docs/flow.schema.json`.
#[must_use]
pub fn schema_text() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).expect("a schema is JSON");
    text.push('\n');
    text
}
