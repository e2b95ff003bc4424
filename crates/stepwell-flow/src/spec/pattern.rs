//! How a flow's agents work together.

use std::num::NonZeroU32;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::name::Name;
use super::step::{AgentStep, Gate, Review, Step};
use crate::template::{Condition, Template};

/// How a flow's agents work together.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "by type and config")]
#[schemars(rename = "Pattern", tag = "type", content = "config")]
pub enum Pattern {
    /// One step after the other.
    #[serde(rename = "chain")]
    Chain(Chain),
    /// Tasks, each as soon as what it depends on is done.
    #[serde(rename = "workflow")]
    Workflow(Workflow),
    /// A router chooses one of several ways.
    #[serde(rename = "routing")]
    Routing(Routing),
    /// Branches beside each other, then perhaps one step that takes them together.
    #[serde(rename = "parallel")]
    Parallel(Parallel),
    /// A producer whose draft is scored and revised until it is good enough.
    #[serde(rename = "evaluator_optimizer")]
    EvaluatorOptimizer(EvaluatorOptimizer),
    /// A planner that divides the work, and workers that do it.
    #[serde(rename = "orchestrator_workers")]
    OrchestratorWorkers(Box<OrchestratorWorkers>),
    /// Nodes, and edges that may depend on what was said.
    #[serde(rename = "graph")]
    Graph(Graph),
}

impl Pattern {
    /// Its name in a spec.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Chain(_) => "chain",
            Self::Workflow(_) => "workflow",
            Self::Routing(_) => "routing",
            Self::Parallel(_) => "parallel",
            Self::EvaluatorOptimizer(_) => "evaluator_optimizer",
            Self::OrchestratorWorkers(_) => "orchestrator_workers",
            Self::Graph(_) => "graph",
        }
    }
}

/// One step after the other.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The steps, in order.
    #[schemars(length(min = 1))]
    pub steps: Vec<Step>,
}

/// Tasks, each as soon as what it depends on is done.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// The tasks, in any order.
    #[schemars(length(min = 1))]
    pub tasks: Vec<Task>,
}

/// A task of a workflow.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(from = "WrittenTask")]
#[schemars(with = "WrittenTask")]
pub struct Task {
    /// Its name.
    pub id: Name,
    /// The tasks that are done before it.
    pub deps: Vec<Name>,
    /// What it is for. It is what an agent is asked if there is no `input`.
    pub description: Option<String>,
    /// What is done.
    pub step: Step,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename = "by type")]
#[schemars(rename = "Task", untagged)]
enum WrittenTask {
    #[serde(rename = "agent")]
    Agent(AgentTask),
    #[serde(rename = "hitl")]
    Hitl(#[schemars(with = "WrittenHitlTask")] HitlTask),
}

/// An agent is asked.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentTask {
    /// Its name.
    id: Name,
    /// The tasks that are done before it.
    #[serde(default)]
    deps: Vec<Name>,
    /// What it is for. It is what the agent is asked if there is no `input`.
    #[serde(default)]
    description: Option<String>,
    /// A key of `agents`.
    agent: Name,
    /// What it is asked: a template.
    #[serde(default)]
    input: Option<Template>,
    /// Variables for this task alone, before those of the flow.
    #[serde(default)]
    vars: std::collections::BTreeMap<String, serde_json::Value>,
    /// The tools that it has for this task, in place of its own.
    #[serde(default)]
    tool_overrides: Option<Vec<String>>,
}

/// A human is asked, and the run waits.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HitlTask {
    /// Its name.
    id: Name,
    /// The tasks that are done before it.
    #[serde(default)]
    deps: Vec<Name>,
    /// What it is for.
    #[serde(default)]
    description: Option<String>,
    /// The question: a template.
    prompt: Template,
    /// What it is about: a template.
    #[serde(default)]
    context_display: Option<Template>,
    /// The answer if none comes in time, or an empty one.
    #[serde(default)]
    default: Option<String>,
    /// How long an answer is waited for; 0 or absent, for ever.
    #[serde(default)]
    timeout_seconds: Option<u64>,
    /// What an answer must look like.
    #[serde(default)]
    validation: Option<super::step::Validation>,
}

/// A human is asked, and the run waits.
#[derive(JsonSchema)]
#[schemars(rename = "HumanTask", deny_unknown_fields)]
#[expect(dead_code, reason = "its fields are what the schema is made of")]
struct WrittenHitlTask {
    r#type: super::step::HitlTag,
    #[schemars(flatten)]
    task: HitlTask,
}

impl From<WrittenTask> for Task {
    fn from(task: WrittenTask) -> Self {
        match task {
            WrittenTask::Agent(task) => {
                let AgentTask { agent, input, vars, tool_overrides, .. } = task;
                let step = Step::Agent(AgentStep { agent, input, vars, tool_overrides });
                Self { id: task.id, deps: task.deps, description: task.description, step }
            }
            WrittenTask::Hitl(task) => {
                let HitlTask { prompt, context_display, default, .. } = task;
                let (timeout_seconds, validation) = (task.timeout_seconds, task.validation);
                let gate = Gate { prompt, context_display, default, timeout_seconds, validation };
                let step = Step::Hitl(gate);
                Self { id: task.id, deps: task.deps, description: task.description, step }
            }
        }
    }
}

/// A router chooses one of several ways.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// Who chooses.
    pub router: Router,
    /// The ways, by the names that the router answers.
    pub routes: IndexMap<Name, Route>,
}

/// Who chooses a way. It answers with JSON that has a `route`, or with the route's name.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// A key of `agents`.
    pub agent: Name,
    /// What it is asked: a template.
    #[serde(default)]
    pub input: Option<Template>,
    /// How often it is asked again after an answer that is no route.
    #[serde(default = "router_retries")]
    pub max_retries: u32,
    /// A human who confirms the choice, or makes another.
    #[serde(default)]
    pub review_router: Option<Review>,
}

fn router_retries() -> u32 {
    2
}

/// A way that a router can choose.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// Its steps, in order.
    pub then: Vec<Step>,
}

/// Branches beside each other, then perhaps one step that takes them together.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// The branches.
    #[schemars(length(min = 1))]
    pub branches: Vec<Branch>,
    /// What is done with their results.
    #[serde(default)]
    pub reduce: Option<Step>,
}

/// One of several branches.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Its name.
    pub id: Name,
    /// Its steps, in order.
    #[schemars(length(min = 1))]
    pub steps: Vec<Step>,
}

/// A producer whose draft is scored and revised until it is good enough.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluatorOptimizer {
    /// Who writes the draft.
    pub producer: Producer,
    /// Who scores it.
    pub evaluator: Evaluator,
    /// When it is good enough.
    pub accept: Accept,
    /// What the producer is asked for a better draft: a template.
    #[serde(default)]
    pub revise_prompt: Option<Template>,
    /// A human who looks at each draft and its score before it is revised.
    #[serde(default)]
    pub review_gate: Option<Review>,
}

/// Who writes the draft: an agent's name, or that and what it is asked.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(with = "WrittenProducer")]
pub struct Producer {
    /// A key of `agents`.
    pub agent: Name,
    /// What it is asked for the first draft: a template.
    pub input: Option<Template>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Producer", untagged)]
#[expect(dead_code, reason = "its fields are what the schema is made of")]
enum WrittenProducer {
    /// A key of `agents`.
    Name(Name),
    Full(FullProducer),
}

/// An agent, and what it is asked.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FullProducer {
    /// A key of `agents`.
    agent: Name,
    /// What it is asked for the first draft: a template.
    #[serde(default)]
    input: Option<Template>,
}

impl<'de> Deserialize<'de> for Producer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bare = |agent| FullProducer { agent, input: None };
        let written = super::either::text_or(deserializer, "an agent's name or a mapping", bare)?;
        Ok(Self { agent: written.agent, input: written.input })
    }
}

/// Who scores a draft. It answers with JSON that has a `score` from 0 to 100.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluator {
    /// A key of `agents`.
    pub agent: Name,
    /// What it is asked: a template that sees `draft`.
    #[serde(default)]
    pub input: Option<Template>,
    /// How often it is asked again after an answer without a score.
    #[serde(default = "router_retries")]
    pub max_retries: u32,
}

/// When a draft is good enough.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// The least score, from 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    pub min_score: f64,
    /// How many drafts there are at most.
    #[serde(default = "three")]
    pub max_iters: NonZeroU32,
}

fn three() -> NonZeroU32 {
    NonZeroU32::new(3).expect("three is not zero")
}

/// A planner that divides the work, and workers that do it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrchestratorWorkers {
    /// Who divides it. It answers with a JSON list of subtasks.
    pub orchestrator: Orchestrator,
    /// A human who looks at the plan.
    #[serde(default)]
    pub decomposition_review: Option<Review>,
    /// Who does each subtask.
    pub worker_template: WorkerTemplate,
    /// A human who looks at what the workers did.
    #[serde(default)]
    pub reduce_review: Option<Review>,
    /// What is done with the workers' results.
    #[serde(default)]
    pub reduce: Option<Step>,
    /// The last step.
    #[serde(default)]
    pub writeup: Option<Step>,
}

/// Who divides the work.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Orchestrator {
    /// A key of `agents`.
    pub agent: Name,
    /// What it is asked: a template.
    #[serde(default)]
    pub input: Option<Template>,
    /// How often it is asked again after an answer that is no list of subtasks.
    #[serde(default = "router_retries")]
    pub max_retries: u32,
    /// How much it may hand out.
    #[serde(default)]
    pub limits: OrchestratorLimits,
}

/// How much an orchestrator may hand out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OrchestratorLimits {
    /// The most subtasks of a round.
    pub max_workers: Option<NonZeroU32>,
    /// The most rounds; absent, one.
    pub max_rounds: Option<NonZeroU32>,
}

/// Who does each subtask.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerTemplate {
    /// A key of `agents`.
    pub agent: Name,
    /// What it is asked: a template that sees `task`. Absent, the subtask itself.
    #[serde(default)]
    pub input: Option<Template>,
    /// The tools that it has, in place of its own.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

/// Nodes, and edges that may depend on what was said.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// How often one node may run.
    #[serde(default = "ten")]
    pub max_iterations: NonZeroU32,
    /// The nodes. The first one is where it begins.
    pub nodes: IndexMap<Name, Step>,
    /// Where it goes from each; a node without an edge is an end.
    pub edges: Vec<Edge>,
}

fn ten() -> NonZeroU32 {
    NonZeroU32::new(10).expect("ten is not zero")
}

/// Where a graph goes from a node.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "WrittenEdge")]
#[schemars(with = "WrittenEdge")]
pub struct Edge {
    /// The node.
    pub from: Name,
    /// Where it goes.
    pub go: Go,
}

/// Where an edge goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Go {
    /// Always there. Of several nodes the first one is gone to, as strands-cli does it.
    To(Vec<Name>),
    /// To the first whose condition holds; if none does, it ends.
    Choose(Vec<Choice>),
}

/// One of several ways from a node.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// An expression, or `else`.
    pub when: Condition,
    /// The node that is gone to.
    pub to: Name,
}

/// Where a graph goes from a node: `to` or `choose`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Edge")]
struct WrittenEdge {
    /// The node.
    from: Name,
    /// Where it goes always: a node, or a list whose first one is gone to.
    #[serde(default)]
    to: Option<Targets>,
    /// Where it goes if a condition holds; the first that holds counts.
    #[serde(default)]
    choose: Option<Vec<Choice>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Targets", untagged)]
#[expect(dead_code, reason = "its fields are what the schema is made of")]
enum WrittenTargets {
    One(Name),
    Several(Vec<Name>),
}

#[derive(JsonSchema)]
#[schemars(with = "WrittenTargets")]
struct Targets(Vec<Name>);

impl<'de> Deserialize<'de> for Targets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::either::one_or_several(deserializer, "a node or a list of nodes").map(Self)
    }
}

impl TryFrom<WrittenEdge> for Edge {
    type Error = &'static str;

    fn try_from(edge: WrittenEdge) -> Result<Self, Self::Error> {
        let go = match (edge.to, edge.choose) {
            (Some(to), None) => Go::To(to.0),
            (None, Some(choices)) => Go::Choose(choices),
            (Some(_), Some(_)) => return Err("an edge has `to` or `choose`, not both"),
            (None, None) => return Err("expected `to` or `choose` beside `from`"),
        };
        Ok(Self { from: edge.from, go })
    }
}
