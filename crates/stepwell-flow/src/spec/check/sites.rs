//! The sites of a pattern: every place where it asks an agent or a person.

use crate::spec::pattern::{Graph, OrchestratorWorkers, Parallel, Pattern, Routing, Workflow};
use crate::spec::problem::Path;
use crate::spec::step::{AgentStep, Gate, Review, Step};
use crate::spec::{EvaluatorOptimizer, Guided, Name};
use crate::template::Template;

/// A place where a pattern asks an agent or a person.
pub(super) struct Site<'a> {
    pub(super) path: Path,
    pub(super) agent: Option<&'a Name>,
    pub(super) gate: Option<&'a Gate>,
    /// Its templates, by their keys.
    pub(super) templates: Vec<(&'static str, &'a Template)>,
    /// The tools of this site only, and their key.
    pub(super) tools: Option<(&'static str, &'a [String])>,
    /// The variables of this site only.
    pub(super) vars: Vec<&'a str>,
    pub(super) visible: Visible<'a>,
}

/// What the templates of a site see in addition to what all templates see.
#[derive(Clone, Copy)]
pub(super) enum Visible<'a> {
    /// This many steps before it.
    StepsBefore(usize),
    /// The tasks that this task depends on.
    Task(&'a Name),
    /// Everything of its pattern.
    Pattern,
}

impl<'a> Site<'a> {
    fn of(path: Path, visible: Visible<'a>, step: &'a Step) -> Self {
        match step {
            Step::Agent(step) => Self::of_agent(path, visible, step),
            Step::Hitl(gate) => Self::of_gate(path, visible, gate),
        }
    }

    fn of_agent(path: Path, visible: Visible<'a>, step: &'a AgentStep) -> Self {
        let mut site = Self::asking(path, &step.agent, step.input.as_ref());
        site.visible = visible;
        site.tools = step.tool_overrides.as_deref().map(|list| ("tool_overrides", list));
        site.vars = step.vars.keys().map(String::as_str).collect();
        site
    }

    fn asking(path: Path, agent: &'a Name, input: Option<&'a Template>) -> Self {
        let templates = input.map(|input| ("input", input)).into_iter().collect();
        let (vars, visible) = (Vec::new(), Visible::Pattern);
        Self { path, agent: Some(agent), gate: None, templates, tools: None, vars, visible }
    }

    fn of_gate(path: Path, visible: Visible<'a>, gate: &'a Gate) -> Self {
        let mut templates = vec![("prompt", &gate.prompt)];
        templates.extend(gate.context_display.as_ref().map(|it| ("context_display", it)));
        let (tools, vars) = (None, Vec::new());
        Self { path, agent: None, gate: Some(gate), templates, tools, vars, visible }
    }
}

/// All sites of a pattern, in the order of the file.
pub(super) fn all(pattern: &Pattern) -> Vec<Site<'_>> {
    let config = Path::root().at("pattern").at("config");
    match pattern {
        Pattern::Chain(chain) => steps(&config.at("steps"), &chain.steps),
        Pattern::Workflow(workflow) => of_workflow(&config, workflow),
        Pattern::Routing(routing) => of_routing(&config, routing),
        Pattern::Parallel(parallel) => of_parallel(&config, parallel),
        Pattern::EvaluatorOptimizer(evaluator) => of_evaluator(&config, evaluator),
        Pattern::OrchestratorWorkers(orchestrator) => of_orchestrator(&config, orchestrator),
        Pattern::Graph(graph) => of_graph(&config, graph),
        Pattern::Guided(guided) => of_guided(&config, guided),
    }
}

fn steps<'a>(path: &Path, steps: &'a [Step]) -> Vec<Site<'a>> {
    let site = |(n, step)| Site::of(path.at(n), Visible::StepsBefore(n), step);
    steps.iter().enumerate().map(site).collect()
}

fn of_guided<'a>(config: &Path, guided: &'a Guided) -> Vec<Site<'a>> {
    let agents = guided.agents().into_iter();
    let mut sites: Vec<_> =
        agents.map(|(key, agent)| Site::asking(config.at(key), agent, None)).collect();
    if let Some(first) = sites.first_mut() {
        first.path = config.clone();
        first.templates.push(("goal", &guided.goal));
    }
    sites
}

fn of_workflow<'a>(config: &Path, workflow: &'a Workflow) -> Vec<Site<'a>> {
    let path = config.at("tasks");
    let tasks = workflow.tasks.iter().enumerate();
    tasks.map(|(n, task)| Site::of(path.at(n), Visible::Task(&task.id), &task.step)).collect()
}

fn review<'a>(config: &Path, key: &'static str, review: Option<&'a Review>) -> Option<Site<'a>> {
    review.map(|review| Site::of_gate(config.at(key), Visible::Pattern, &review.0))
}

fn of_routing<'a>(config: &Path, routing: &'a Routing) -> Vec<Site<'a>> {
    let path = config.at("router");
    let router = &routing.router;
    let mut sites = vec![Site::asking(path.clone(), &router.agent, router.input.as_ref())];
    sites.extend(review(&path, "review_router", router.review_router.as_ref()));
    for (name, route) in &routing.routes {
        sites.extend(steps(&config.at("routes").at(name.as_str()).at("then"), &route.then));
    }
    sites
}

fn of_parallel<'a>(config: &Path, parallel: &'a Parallel) -> Vec<Site<'a>> {
    let mut sites = Vec::new();
    for (n, branch) in parallel.branches.iter().enumerate() {
        sites.extend(steps(&config.at("branches").at(n).at("steps"), &branch.steps));
    }
    let reduce = parallel.reduce.as_ref();
    sites.extend(reduce.map(|step| Site::of(config.at("reduce"), Visible::Pattern, step)));
    sites
}

fn of_evaluator<'a>(config: &Path, pattern: &'a EvaluatorOptimizer) -> Vec<Site<'a>> {
    let (producer, evaluator) = (&pattern.producer, &pattern.evaluator);
    let mut producing =
        Site::asking(config.at("producer"), &producer.agent, producer.input.as_ref());
    let mut revising = Site::asking(config.clone(), &producer.agent, None);
    revising.agent = None;
    revising.templates.extend(pattern.revise_prompt.as_ref().map(|it| ("revise_prompt", it)));
    producing.visible = Visible::Pattern;
    let mut sites = vec![producing];
    sites.push(Site::asking(config.at("evaluator"), &evaluator.agent, evaluator.input.as_ref()));
    sites.push(revising);
    sites.extend(review(config, "review_gate", pattern.review_gate.as_ref()));
    sites
}

fn of_orchestrator<'a>(config: &Path, flow: &'a OrchestratorWorkers) -> Vec<Site<'a>> {
    let (planner, worker) = (&flow.orchestrator, &flow.worker_template);
    let mut sites =
        vec![Site::asking(config.at("orchestrator"), &planner.agent, planner.input.as_ref())];
    sites.extend(review(config, "decomposition_review", flow.decomposition_review.as_ref()));
    let mut working =
        Site::asking(config.at("worker_template"), &worker.agent, worker.input.as_ref());
    working.tools = worker.tools.as_deref().map(|list| ("tools", list));
    sites.push(working);
    sites.extend(review(config, "reduce_review", flow.reduce_review.as_ref()));
    for (key, step) in [("reduce", &flow.reduce), ("writeup", &flow.writeup)] {
        sites.extend(step.as_ref().map(|step| Site::of(config.at(key), Visible::Pattern, step)));
    }
    sites
}

fn of_graph<'a>(config: &Path, graph: &'a Graph) -> Vec<Site<'a>> {
    let path = config.at("nodes");
    let nodes = graph.nodes.iter();
    nodes.map(|(name, step)| Site::of(path.at(name.as_str()), Visible::Pattern, step)).collect()
}
