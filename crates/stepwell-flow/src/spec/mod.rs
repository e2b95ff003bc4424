//! What a flow's spec says: types, where they stand in the file, and what is wrong with them.
//!
//! A spec is YAML or JSON. Its keys are those of strands-cli; what has no meaning here is
//! read and told as a warning, and a key that is in neither is an error.

mod agent;
mod check;
mod dag;
mod either;
mod error;
mod extras;
mod files;
mod inputs;
mod name;
mod pattern;
mod place;
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
pub use dag::{Before, Dag};
pub use error::SpecError;
pub use extras::{
    Artifact, CompactionPolicy, ContextPolicy, Env, Guardrails, HttpExecutor, McpServer, Notes,
    NotesFormat, Otel, Outputs, PythonTool, Retrieval, Secret, SecretSource, Security, Skill,
    Telemetry, TelemetryRedact, Tools,
};
pub use files::{Files, Folder};
pub use inputs::{BadVariable, Input, InputType, Inputs};
pub use name::Name;
pub use pattern::{
    Accept, Branch, Chain, Choice, Edge, Evaluator, EvaluatorOptimizer, Go, Graph, Orchestrator,
    OrchestratorLimits, OrchestratorWorkers, Parallel, Pattern, Producer, Route, Router, Routing,
    Task, WorkerTemplate, Workflow,
};
pub use place::{Path, Place, Problem, Segment};
pub use runtime::{Backoff, Budgets, FailurePolicy, MAX_PARALLEL, Runtime};
pub use step::{AgentStep, AnswerPattern, Gate, Review, Step, Validation};
pub use tree::MAX_SPEC_BYTES;

/// A flow.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A flow of Stepwell")]
pub struct Spec {
    /// The version of this form of specs: 0.
    pub version: Version,
    /// The flow's name.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Words to find it by; its sessions get them.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What its agents run on, unless they say otherwise.
    #[serde(default)]
    pub runtime: Runtime,
    /// Its agents.
    pub agents: IndexMap<Name, Agent>,
    /// Its variables.
    #[serde(default)]
    pub inputs: Inputs,
    /// How its agents work together.
    pub pattern: Pattern,
    /// What is written once it succeeded.
    #[serde(default)]
    pub outputs: Outputs,
    /// How conversations are kept short.
    #[serde(default)]
    pub context_policy: Option<ContextPolicy>,
    /// What it needs of the environment.
    #[serde(default)]
    pub env: Env,
    /// Tools that its agents can have besides Stepwell's.
    #[serde(default)]
    pub tools: Tools,
    /// Has no meaning here: Stepwell sends nothing to anyone.
    #[serde(default)]
    pub telemetry: Option<Telemetry>,
    /// Have no meaning here.
    #[serde(default)]
    pub skills: Vec<Skill>,
    /// What agents may not do.
    #[serde(default)]
    pub security: Security,
}

/// The version of a spec's form: 0, as a number or a text.
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
        Err(serde::de::Error::custom(format!("version {value} is not known; expected 0")))
    }
}

/// A spec that can run, and what is worth knowing about it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The spec.
    pub spec: Spec,
    /// What does not do what one might think, in the order of the file.
    pub warnings: Vec<Problem>,
    /// Servers that agents have tools of and that the spec does not have, each with what is
    /// wrong if the configuration does not have it either.
    pub servers: Vec<(String, Problem)>,
}

impl Spec {
    /// Reads and checks a spec. `file` is what errors call it; `files` are those beside it,
    /// which prompts may stand in.
    pub fn parse(text: &str, file: &str, files: &dyn Files) -> Result<Reading, SpecError> {
        let invalid = |problems| SpecError::Invalid { file: file.to_owned(), problems };
        let tree = Tree::parse(text).map_err(|problem| invalid(vec![problem]))?;
        // Nobody asks for places unless there is something to tell.
        let places = LazyCell::new(|| Tree::with_places(text).ok());
        let mut spec: Self = read::read(&tree).map_err(|problem| {
            let again = places.as_ref().and_then(|tree| read::read::<Self>(tree).err());
            invalid(vec![again.unwrap_or(problem)])
        })?;
        let place = |mut problem: Problem| {
            let place = || places.as_ref()?.place_of(&problem.path);
            problem.place = problem.place.or_else(place);
            problem
        };
        let placed = |problems: Vec<Problem>| {
            let mut problems: Vec<_> = problems.into_iter().map(place).collect();
            problems.sort_by_key(|problem| problem.place);
            problems
        };
        let mut problems = spec.read_prompts(files);
        problems.extend(check::errors(&spec));
        if !problems.is_empty() {
            return Err(invalid(placed(problems)));
        }
        let servers = check::servers(&spec).into_iter();
        let servers = servers.map(|(server, problem)| (server, place(problem))).collect();
        Ok(Reading { warnings: placed(check::warnings(&spec)), servers, spec })
    }

    /// Reads and checks a spec's file; answers with its text, byte for byte, as well. `shown` is
    /// what errors call it.
    pub fn load(file: &std::path::Path, shown: &str) -> Result<(String, Reading), SpecError> {
        let unreadable = |why| SpecError::Unreadable { file: shown.to_owned(), why };
        let text = files::text(file).map_err(unreadable)?;
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = Folder(parent.unwrap_or(std::path::Path::new(".")).to_owned());
        let reading = Self::parse(&text, shown, &folder)?;
        Ok((text, reading))
    }

    /// The files that it was read from besides its own, by the names that it gives them.
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
                    problems.push(Problem::new(path, format!("the prompt {file:?}: {why}")));
                }
            }
        }
        problems
    }
}
