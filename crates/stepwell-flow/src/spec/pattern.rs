//! How a flow's agents work together.

use std::num::NonZeroU32;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::guided::Guided;
use super::name::Name;
use super::step::{AgentStep, Gate, Review, Step};
use crate::template::{Condition, Template};

/// How a flow's agents work together.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "by type and config")]
#[schemars(rename = "Pattern", tag = "type", content = "config")]
pub enum Pattern {
    /// Steps, one after the other.
    #[serde(rename = "chain")]
    Chain(Chain),
    /// Tasks. Each starts as soon as its dependencies are done.
    #[serde(rename = "workflow")]
    Workflow(Workflow),
    /// A router chooses one of several routes.
    #[serde(rename = "routing")]
    Routing(Routing),
    /// Branches that run in parallel, and an optional step that combines their results.
    #[serde(rename = "parallel")]
    Parallel(Parallel),
    /// A producer writes a draft; an evaluator scores it; the producer revises it until it is
    /// good enough.
    #[serde(rename = "evaluator_optimizer")]
    EvaluatorOptimizer(EvaluatorOptimizer),
    /// An orchestrator splits the work into subtasks; workers run them.
    #[serde(rename = "orchestrator_workers")]
    OrchestratorWorkers(Box<OrchestratorWorkers>),
    /// Nodes, and edges that may depend on answers.
    #[serde(rename = "graph")]
    Graph(Graph),
    /// From a goal to a commit: discuss, plan, execute, verify, run and ship.
    #[serde(rename = "guided")]
    Guided(Box<Guided>),
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
            Self::Guided(_) => "guided",
        }
    }
}

/// Steps, one after the other.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The steps, in order.
    #[schemars(length(min = 1))]
    pub steps: Vec<Step>,
}

/// Tasks. Each starts as soon as its dependencies are done.
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
    /// The tasks that must finish before it starts.
    pub deps: Vec<Name>,
    /// What it is for. An agent gets it as its prompt if there is no `input`.
    pub description: Option<String>,
    /// The work itself.
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

/// A task for an agent.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentTask {
    /// Its name.
    id: Name,
    /// The tasks that must finish before it starts.
    #[serde(default)]
    deps: Vec<Name>,
    /// What it is for. The agent gets it as its prompt if there is no `input`.
    #[serde(default)]
    description: Option<String>,
    /// A key of `agents`.
    agent: Name,
    /// A template for its prompt.
    #[serde(default)]
    input: Option<Template>,
    /// Variables for this task only. They override those of the flow.
    #[serde(default)]
    vars: std::collections::BTreeMap<String, serde_json::Value>,
    /// Tools for this task. They replace the agent's own.
    #[serde(default)]
    tool_overrides: Option<Vec<String>>,
}

/// A question for a person. The flow waits for the answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HitlTask {
    /// Its name.
    id: Name,
    /// The tasks that must finish before it starts.
    #[serde(default)]
    deps: Vec<Name>,
    /// What it is for.
    #[serde(default)]
    description: Option<String>,
    /// A template for the question.
    prompt: Template,
    /// A template for what to show with the question.
    #[serde(default)]
    context_display: Option<Template>,
    /// The answer after a timeout, or if the person gives an empty one.
    #[serde(default)]
    default: Option<String>,
    /// How long to wait for an answer. Without it, or with 0: forever.
    #[serde(default)]
    timeout_seconds: Option<u64>,
    /// What a valid answer looks like.
    #[serde(default)]
    validation: Option<super::step::Validation>,
}

/// A question for a person. The flow waits for the answer.
#[derive(JsonSchema)]
#[schemars(rename = "HumanTask", deny_unknown_fields)]
#[expect(dead_code, reason = "the schema is generated from its fields")]
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

/// A router chooses one of several routes.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// The agent that chooses.
    pub router: Router,
    /// The routes, by the names that the router answers with.
    pub routes: IndexMap<Name, Route>,
}

/// The agent that chooses a route. It answers with JSON that has a `route`, or with the
/// route's name.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// A key of `agents`.
    pub agent: Name,
    /// A template for its prompt.
    #[serde(default)]
    pub input: Option<Template>,
    /// How often it is asked again after an answer that names no route.
    #[serde(default = "router_retries")]
    pub max_retries: u32,
    /// A person approves the choice or makes another.
    #[serde(default)]
    pub review_router: Option<Review>,
}

fn router_retries() -> u32 {
    2
}

/// A route that a router can choose.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// Its steps, in order.
    pub then: Vec<Step>,
}

/// Branches that run in parallel, and an optional step that combines their results.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// The branches.
    #[schemars(length(min = 1))]
    pub branches: Vec<Branch>,
    /// The step that combines their results.
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

/// A producer writes a draft; an evaluator scores it; the producer revises it until it is good
/// enough.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluatorOptimizer {
    /// The agent that writes the draft.
    pub producer: Producer,
    /// The agent that scores it.
    pub evaluator: Evaluator,
    /// When it is good enough.
    pub accept: Accept,
    /// A template for the prompt to revise a draft.
    #[serde(default)]
    pub revise_prompt: Option<Template>,
    /// A person reviews each draft and its score before it is revised.
    #[serde(default)]
    pub review_gate: Option<Review>,
}

/// The agent that writes the draft: its name, or a mapping with its prompt.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(with = "WrittenProducer")]
pub struct Producer {
    /// A key of `agents`.
    pub agent: Name,
    /// A template for the prompt for the first draft.
    pub input: Option<Template>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Producer", untagged)]
#[expect(dead_code, reason = "the schema is generated from its fields")]
enum WrittenProducer {
    /// A key of `agents`.
    Name(Name),
    Full(FullProducer),
}

/// An agent, and its prompt.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FullProducer {
    /// A key of `agents`.
    agent: Name,
    /// A template for the prompt for the first draft.
    #[serde(default)]
    input: Option<Template>,
}

impl<'de> Deserialize<'de> for Producer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bare = |agent| FullProducer { agent, input: None };
        let written =
            super::either::text_or(deserializer, "the name of an agent or a mapping", bare)?;
        Ok(Self { agent: written.agent, input: written.input })
    }
}

/// The agent that scores a draft. It answers with JSON that has a `score` from 0 to 100.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluator {
    /// A key of `agents`.
    pub agent: Name,
    /// A template for its prompt, which can use `draft`.
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
    /// The lowest accepted score, from 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    pub min_score: f64,
    /// The maximum number of drafts.
    #[serde(default = "three")]
    pub max_iters: NonZeroU32,
}

fn three() -> NonZeroU32 {
    NonZeroU32::new(3).expect("three is not zero")
}

/// An orchestrator splits the work into subtasks; workers run them.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrchestratorWorkers {
    /// The agent that splits the work. It answers with a JSON list of subtasks.
    pub orchestrator: Orchestrator,
    /// A person reviews the plan.
    #[serde(default)]
    pub decomposition_review: Option<Review>,
    /// The agent that runs each subtask.
    pub worker_template: WorkerTemplate,
    /// A person reviews the workers' results.
    #[serde(default)]
    pub reduce_review: Option<Review>,
    /// The step that combines the workers' results.
    #[serde(default)]
    pub reduce: Option<Step>,
    /// The last step.
    #[serde(default)]
    pub writeup: Option<Step>,
}

/// The agent that splits the work.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Orchestrator {
    /// A key of `agents`.
    pub agent: Name,
    /// A template for its prompt.
    #[serde(default)]
    pub input: Option<Template>,
    /// How often it is asked again after an answer that is not a list of subtasks.
    #[serde(default = "router_retries")]
    pub max_retries: u32,
    /// How much work it may create.
    #[serde(default)]
    pub limits: OrchestratorLimits,
}

/// How much work an orchestrator may create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OrchestratorLimits {
    /// The maximum number of subtasks in a round.
    pub max_workers: Option<NonZeroU32>,
    /// The maximum number of rounds. The default is 1.
    pub max_rounds: Option<NonZeroU32>,
}

/// The agent that runs each subtask.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerTemplate {
    /// A key of `agents`.
    pub agent: Name,
    /// A template for its prompt, which can use `task`. The default is the subtask itself.
    #[serde(default)]
    pub input: Option<Template>,
    /// Tools for the subtasks. They replace the agent's own.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

/// Nodes, and edges that may depend on answers.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// How often each node may run.
    #[serde(default = "ten")]
    pub max_iterations: NonZeroU32,
    /// The nodes. The flow starts at the first one.
    pub nodes: IndexMap<Name, Step>,
    /// The edges. The flow ends at a node without an edge.
    pub edges: Vec<Edge>,
}

fn ten() -> NonZeroU32 {
    NonZeroU32::new(10).expect("ten is not zero")
}

/// An edge of a graph.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "WrittenEdge")]
#[schemars(with = "WrittenEdge")]
pub struct Edge {
    /// The node it leaves.
    pub from: Name,
    /// The node it leads to.
    pub target: EdgeTarget,
}

/// Where an edge leads.
#[derive(Clone, Debug, PartialEq)]
pub enum EdgeTarget {
    /// Always to the first of these nodes; the others are ignored, as in strands-cli.
    To(Vec<Name>),
    /// To the first choice whose condition is true; if none is, the flow ends.
    Choose(Vec<Choice>),
}

/// A conditional target of an edge.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// An expression, or `else`.
    pub when: Condition,
    /// The next node.
    pub to: Name,
}

/// An edge of a graph: `to` or `choose`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Edge")]
struct WrittenEdge {
    /// The node it leaves.
    from: Name,
    /// The next node: a name, or a list of which the first is used.
    #[serde(default)]
    to: Option<Targets>,
    /// Conditional targets. The first whose condition is true is used.
    #[serde(default)]
    choose: Option<Vec<Choice>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Targets", untagged)]
#[expect(dead_code, reason = "the schema is generated from its fields")]
enum WrittenTargets {
    One(Name),
    Several(Vec<Name>),
}

#[derive(JsonSchema)]
#[schemars(with = "WrittenTargets")]
struct Targets(Vec<Name>);

impl<'de> Deserialize<'de> for Targets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::either::one_or_several(deserializer, "the name of a node or a list of names")
            .map(Self)
    }
}

impl TryFrom<WrittenEdge> for Edge {
    type Error = &'static str;

    fn try_from(edge: WrittenEdge) -> Result<Self, Self::Error> {
        let target = match (edge.to, edge.choose) {
            (Some(to), None) => EdgeTarget::To(to.0),
            (None, Some(choices)) => EdgeTarget::Choose(choices),
            (Some(_), Some(_)) => return Err("an edge has either `to` or `choose`, not both"),
            (None, None) => return Err("missing key `to` or `choose`"),
        };
        Ok(Self { from: edge.from, target })
    }
}
