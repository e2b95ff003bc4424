//! A changed spec: what defines each node, and whether recorded results stay valid. Pure.

use stepwell::model::{NodeKey, NodeState};

use crate::memo::Memo;
use crate::spec::{
    Agent, Edge, Evaluator, Gate, Guided, Name, Orchestrator, Pattern, Producer, Router, Spec,
    Step, Task, WorkerTemplate,
};
use crate::template::Template;

/// Everything in a spec that defines a node. A result stays valid while this is equal.
#[derive(Debug, PartialEq)]
struct Definition<'a> {
    work: Work<'a>,
    agent: Option<&'a Agent>,
}

#[derive(Debug, PartialEq)]
enum Work<'a> {
    Step(&'a Step),
    Task(&'a Task),
    Visit(&'a Step, Vec<&'a Edge>),
    Router(&'a Router, Vec<&'a Name>),
    Produce(&'a Producer),
    Revise(&'a Producer, Option<&'a Template>),
    Evaluate(&'a Evaluator),
    Plan(&'a Orchestrator),
    Worker(&'a WorkerTemplate),
    Review(&'a Gate),
    Guided(&'a Guided, Option<&'a Name>),
}

impl Work<'_> {
    fn agent(&self) -> Option<&str> {
        match self {
            Self::Step(step) | Self::Visit(step, _) => step.agent().map(|it| it.agent.as_str()),
            Self::Task(task) => task.step.agent().map(|it| it.agent.as_str()),
            Self::Router(router, _) => Some(router.agent.as_str()),
            Self::Produce(producer) | Self::Revise(producer, _) => Some(producer.agent.as_str()),
            Self::Evaluate(evaluator) => Some(evaluator.agent.as_str()),
            Self::Plan(orchestrator) => Some(orchestrator.agent.as_str()),
            Self::Worker(template) => Some(template.agent.as_str()),
            Self::Review(_) => None,
            Self::Guided(_, agent) => agent.map(Name::as_str),
        }
    }
}

/// The definition of a node, if the spec has such a node.
fn definition<'a>(spec: &'a Spec, key: &NodeKey) -> Option<Definition<'a>> {
    let index = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let work = match (&spec.pattern, key) {
        (Pattern::Chain(chain), NodeKey::Step(n)) => Work::Step(chain.steps.get(index(*n))?),
        (Pattern::Workflow(workflow), NodeKey::Task(id)) => {
            Work::Task(workflow.tasks.iter().find(|task| task.id.as_str() == id.as_str())?)
        }
        (Pattern::Routing(routing), NodeKey::Router(_)) => {
            Work::Router(&routing.router, routing.routes.keys().collect())
        }
        (Pattern::Routing(routing), NodeKey::Review(_)) => {
            Work::Review(&routing.router.review_router.as_ref()?.0)
        }
        (Pattern::Routing(routing), NodeKey::Route(id, n)) => {
            Work::Step(routing.routes.get(id.as_str())?.then.get(index(*n))?)
        }
        (Pattern::Parallel(parallel), NodeKey::Branch(id, n)) => {
            let mut branches = parallel.branches.iter();
            let branch = branches.find(|branch| branch.id.as_str() == id.as_str())?;
            Work::Step(branch.steps.get(index(*n))?)
        }
        (Pattern::Parallel(parallel), NodeKey::Reduce) => Work::Step(parallel.reduce.as_ref()?),
        (Pattern::EvaluatorOptimizer(config), key) => match key {
            NodeKey::Produce => Work::Produce(&config.producer),
            NodeKey::Revise(_) => Work::Revise(&config.producer, config.revise_prompt.as_ref()),
            NodeKey::Evaluate(_) => Work::Evaluate(&config.evaluator),
            NodeKey::Review(_) => Work::Review(&config.review_gate.as_ref()?.0),
            _ => return None,
        },
        (Pattern::OrchestratorWorkers(config), key) => match key {
            NodeKey::Plan(_) => Work::Plan(&config.orchestrator),
            NodeKey::Worker(..) => Work::Worker(&config.worker_template),
            NodeKey::Review(0) => Work::Review(&config.reduce_review.as_ref()?.0),
            NodeKey::Review(_) => Work::Review(&config.decomposition_review.as_ref()?.0),
            NodeKey::Reduce => Work::Step(config.reduce.as_ref()?),
            NodeKey::Writeup => Work::Step(config.writeup.as_ref()?),
            _ => return None,
        },
        (Pattern::Graph(graph), NodeKey::Visit(id, _)) => {
            let edges = graph.edges.iter().filter(|edge| edge.from.as_str() == id.as_str());
            Work::Visit(graph.nodes.get(id.as_str())?, edges.collect())
        }
        (Pattern::Guided(guided), key) => Work::Guided(guided, guided_agent(guided, key)),
        _ => return None,
    };
    let agent = work.agent().and_then(|agent| spec.agents.get(agent));
    Some(Definition { work, agent })
}

/// The agent that works on a part of guided work.
fn guided_agent<'a>(guided: &'a Guided, key: &NodeKey) -> Option<&'a Name> {
    match key {
        NodeKey::Attempt(..) => Some(&guided.execute),
        NodeKey::Work(part, _) => match part.as_str() {
            "discuss" => Some(&guided.discuss),
            "plan" => Some(&guided.plan),
            "review" => Some(&guided.review),
            "message" => Some(&guided.ship),
            _ => None,
        },
        _ => None,
    }
}

/// The question that a spec has for a node.
#[must_use]
pub fn gate_of<'a>(spec: &'a Spec, key: &NodeKey) -> Option<&'a Gate> {
    match definition(spec, key)?.work {
        Work::Step(step) | Work::Visit(step, _) => step.gate(),
        Work::Task(task) => task.step.gate(),
        Work::Review(gate) => Some(gate),
        _ => None,
    }
}

/// The agent that a spec has for a node.
#[must_use]
pub fn agent_of<'a>(spec: &'a Spec, key: &NodeKey) -> Option<&'a str> {
    let Definition { work, .. } = definition(spec, key)?;
    let named = work.agent()?;
    spec.agents.get_key_value(named).map(|(name, _)| name.as_str())
}

/// What a change of the spec means for the recorded nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// Finished nodes that the new spec lacks or defines differently. The flow cannot continue
    /// with the new spec.
    pub broken: Vec<String>,
    /// Started nodes that are defined differently now. They start over.
    pub anew: Vec<String>,
}

/// Compares two specs for all recorded nodes.
#[must_use]
pub fn compare(old: &Spec, new: &Spec, memo: &Memo) -> Revision {
    let mut revision = Revision::default();
    for (key, noted) in memo.nodes() {
        let same = key.parse::<NodeKey>().is_ok_and(|key| {
            let (old, new) = (definition(old, &key), definition(new, &key));
            new.is_some() && old == new
        });
        match noted.state {
            _ if same => {}
            NodeState::Done => revision.broken.push(key.to_owned()),
            _ => revision.anew.push(key.to_owned()),
        }
    }
    revision.broken.sort();
    revision.anew.sort();
    revision
}
