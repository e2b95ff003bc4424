//! Builds the plan of a spec.

use super::{AskCount, Edge, Node, Plan, Variable};
use crate::spec::{
    EdgeTarget, EvaluatorOptimizer, Gate, Graph, Guided, Name, OrchestratorWorkers, Parallel,
    Pattern, Routing, Spec, Step, Workflow,
};
use crate::template::Template;

pub(super) fn plan(spec: &Spec) -> Plan {
    let mut builder = Builder::default();
    let asks = builder.pattern(&spec.pattern);
    let runtime = &spec.runtime;
    let model = match (&runtime.provider, &runtime.model_id) {
        (Some(provider), Some(model)) => Some(format!("{provider}/{model}")),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    };
    let artifacts = spec.outputs.artifacts.iter().filter(|artifact| !artifact.is_trace());
    Plan {
        name: spec.name.clone(),
        description: spec.description.clone(),
        pattern: spec.pattern.name(),
        model,
        max_parallel: runtime.max_parallel().get(),
        asks,
        variables: variables(spec),
        nodes: builder.nodes,
        edges: builder.edges,
        artifacts: artifacts.map(|artifact| artifact.path.source().to_owned()).collect(),
        limits: limits(spec),
    }
}

fn variables(spec: &Spec) -> Vec<Variable> {
    let inputs = &spec.inputs;
    let declared = inputs.required.iter().map(|it| (it, true));
    let declared = declared.chain(inputs.optional.iter().map(|it| (it, false)));
    let declared = declared.map(|((name, input), required)| Variable {
        name: name.clone(),
        kind: input.kind.name(),
        required: required && input.default.is_none() && !inputs.values.contains_key(name),
        default: inputs.values.get(name).or(input.default.as_ref()).cloned(),
        description: input.description.clone(),
        value: None,
        one_of: input.one_of.clone(),
    });
    let only_set = inputs.values.iter().filter(|(name, _)| inputs.get(name).is_none());
    let only_set = only_set.map(|(name, value)| Variable {
        name: name.clone(),
        kind: "string",
        required: false,
        default: Some(value.clone()),
        description: None,
        value: None,
        one_of: None,
    });
    declared.chain(only_set).collect()
}

fn limits(spec: &Spec) -> Vec<String> {
    let budgets = &spec.runtime.budgets;
    let mut limits = Vec::new();
    limits.extend(budgets.max_steps.map(|n| format!("{n} model calls")));
    limits.extend(budgets.max_tokens.map(|n| format!("{n} tokens")));
    limits.extend(budgets.max_cost_usd.map(|cost| format!("${cost}")));
    limits.extend(budgets.max_duration_s.map(|n| format!("{n} s")));
    limits
}

/// The nodes and edges of a plan under construction.
#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// A node that the next one follows.
struct Source {
    key: String,
    when: Option<String>,
}

impl Source {
    const fn always(key: String) -> Self {
        Self { key, when: None }
    }
}

impl Builder {
    fn pattern(&mut self, pattern: &Pattern) -> AskCount {
        match pattern {
            Pattern::Chain(chain) => {
                self.steps("step", &chain.steps, Vec::new());
                exactly(agents(&chain.steps))
            }
            Pattern::Workflow(flow) => self.workflow(flow),
            Pattern::Routing(routing) => self.routing(routing),
            Pattern::Parallel(parallel) => self.parallel(parallel),
            Pattern::EvaluatorOptimizer(config) => self.evaluator(config),
            Pattern::OrchestratorWorkers(flow) => self.orchestrator(flow),
            Pattern::Graph(graph) => self.graph(graph),
            Pattern::Guided(guided) => self.guided(guided),
        }
    }

    fn guided(&mut self, guided: &Guided) -> AskCount {
        let steps = [
            ("work/discuss/*", Some(&guided.discuss), "What is unclear about the goal?"),
            ("work/plan/*", Some(&guided.plan), guided.goal.source()),
            ("work/approve/*", None, "Is this the plan?"),
            ("attempt/*/*", Some(&guided.execute), "A task of the plan."),
            ("work/review/*", Some(&guided.review), "Is the goal reached?"),
            ("work/message/*", Some(&guided.ship), "A commit message."),
        ];
        let mut after = Vec::new();
        for (key, agent, asks) in steps {
            let key = self.node(key, agent.map(Name::as_str), asks, after);
            after = vec![Source::always(key)];
        }
        AskCount { least: 5, most: None }
    }

    fn node(&mut self, key: &str, agent: Option<&str>, asks: &str, after: Vec<Source>) -> String {
        for Source { key: from, when } in after {
            self.edges.push(Edge { from, to: key.to_owned(), when });
        }
        let (agent, asks) = (agent.map(str::to_owned), asks.trim().to_owned());
        self.nodes.push(Node { key: key.to_owned(), agent, asks, repeats: None });
        key.to_owned()
    }

    /// Says how often the last node runs.
    fn repeat_last(&mut self, how: String) {
        if let Some(node) = self.nodes.last_mut() {
            node.repeats = Some(how);
        }
    }

    fn gate(&mut self, key: &str, gate: &Gate, after: Vec<Source>) -> String {
        self.node(key, None, gate.prompt.source(), after)
    }

    fn step(&mut self, key: &str, step: &Step, after: Vec<Source>) -> String {
        match step {
            Step::Agent(step) => {
                self.node(key, Some(step.agent.as_str()), input(step.input.as_ref()), after)
            }
            Step::Hitl(gate) => self.gate(key, gate, after),
        }
    }

    /// Adds steps, one after the other. Returns what the next node follows.
    fn steps(&mut self, key: &str, steps: &[Step], mut after: Vec<Source>) -> Vec<Source> {
        for (n, step) in steps.iter().enumerate() {
            let key = self.step(&format!("{key}/{n}"), step, after);
            after = vec![Source::always(key)];
        }
        after
    }

    fn workflow(&mut self, flow: &Workflow) -> AskCount {
        for task in &flow.tasks {
            let after = task.deps.iter().map(|dep| Source::always(format!("task/{dep}")));
            let after = after.collect();
            let key = format!("task/{}", task.id);
            match (&task.step, &task.description) {
                (Step::Agent(step), Some(text)) if step.input.is_none() => {
                    self.node(&key, Some(step.agent.as_str()), text, after);
                }
                _ => {
                    self.step(&key, &task.step, after);
                }
            }
        }
        exactly(agents(flow.tasks.iter().map(|task| &task.step)))
    }

    fn routing(&mut self, routing: &Routing) -> AskCount {
        let router = &routing.router;
        let mut from = self.node(
            "router/1",
            Some(router.agent.as_str()),
            input(router.input.as_ref()),
            vec![],
        );
        if let Some(review) = &router.review_router {
            from = self.gate("review/1", &review.0, vec![Source::always(from)]);
        }
        for (name, route) in &routing.routes {
            let after = vec![Source { key: from.clone(), when: Some(name.to_string()) }];
            self.steps(&format!("route/{name}"), &route.then, after);
        }
        let counts = || routing.routes.values().map(|route| agents(&route.then));
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        AskCount { least: 1 + least, most: Some(1 + most) }
    }

    fn parallel(&mut self, parallel: &Parallel) -> AskCount {
        let mut ends = Vec::new();
        for branch in &parallel.branches {
            ends.extend(self.steps(&format!("branch/{}", branch.id), &branch.steps, Vec::new()));
        }
        if let Some(reduce) = &parallel.reduce {
            self.step("reduce", reduce, ends);
        }
        let all = parallel.branches.iter().flat_map(|branch| &branch.steps);
        exactly(agents(all.chain(&parallel.reduce)))
    }

    fn evaluator(&mut self, config: &EvaluatorOptimizer) -> AskCount {
        let (producer, evaluator) = (&config.producer, &config.evaluator);
        let (writer, most) = (Some(producer.agent.as_str()), config.accept.max_iters.get());
        self.node("produce", writer, input(producer.input.as_ref()), vec![]);
        let asked = input(evaluator.input.as_ref());
        let after = vec![Source::always("produce".to_owned())];
        self.node("evaluate/*", Some(evaluator.agent.as_str()), asked, after);
        self.repeat_last(format!("up to {most} times"));
        if most > 1 {
            let when = Some(format!("score < {}", config.accept.min_score));
            let mut after = vec![Source { key: "evaluate/*".to_owned(), when }];
            if let Some(review) = &config.review_gate {
                after = vec![Source::always(self.gate("review/*", &review.0, after))];
            }
            self.node("revise/*", writer, input(config.revise_prompt.as_ref()), after);
            self.repeat_last(format!("up to {} times", most - 1));
            let (from, to) = ("revise/*".to_owned(), "evaluate/*".to_owned());
            self.edges.push(Edge { from, to, when: None });
        }
        AskCount { least: 2, most: Some(2 * u64::from(most)) }
    }

    fn orchestrator(&mut self, flow: &OrchestratorWorkers) -> AskCount {
        let limits = &flow.orchestrator.limits;
        let rounds = limits.max_rounds.map_or(1, std::num::NonZeroU32::get);
        let asked = input(flow.orchestrator.input.as_ref());
        let mut last = self.node("plan/*", Some(flow.orchestrator.agent.as_str()), asked, vec![]);
        if rounds > 1 {
            self.repeat_last(format!("up to {rounds} times"));
        }
        if let Some(review) = &flow.decomposition_review {
            last = self.gate("review/*", &review.0, vec![Source::always(last)]);
        }
        let asked = flow.worker_template.input.as_ref().map_or("the subtask", Template::source);
        let worker = Some(flow.worker_template.agent.as_str());
        last = self.node("worker/*/*", worker, asked, vec![Source::always(last)]);
        self.repeat_last("once for each subtask".to_owned());
        if rounds > 1 {
            let (from, to) = (last.clone(), "plan/*".to_owned());
            self.edges.push(Edge { from, to, when: Some("another round".to_owned()) });
        }
        if let Some(review) = &flow.reduce_review {
            last = self.gate("review/0", &review.0, vec![Source::always(last)]);
        }
        for (key, step) in [("reduce", &flow.reduce), ("writeup", &flow.writeup)] {
            if let Some(step) = step {
                last = self.step(key, step, vec![Source::always(last)]);
            }
        }
        let ends = agents(flow.reduce.iter().chain(&flow.writeup));
        AskCount { least: 1 + ends, most: None }
    }

    fn graph(&mut self, graph: &Graph) -> AskCount {
        for (name, step) in &graph.nodes {
            self.step(&format!("node/{name}"), step, Vec::new());
        }
        for edge in &graph.edges {
            let from = format!("node/{}", edge.from);
            let mut push = |to: &str, when: Option<&str>| {
                let (from, to) = (from.clone(), format!("node/{to}"));
                self.edges.push(Edge { from, to, when: when.map(str::to_owned) });
            };
            match &edge.target {
                EdgeTarget::To(nodes) => {
                    if let Some(node) = nodes.first() {
                        push(node.as_str(), None);
                    }
                }
                EdgeTarget::Choose(choices) => {
                    for choice in choices {
                        push(choice.to.as_str(), Some(choice.when.source()));
                    }
                }
            }
        }
        let first = agents(graph.nodes.values().take(1));
        let most = agents(graph.nodes.values()) * u64::from(graph.max_iterations.get());
        AskCount { least: first, most: Some(most) }
    }
}

fn input(template: Option<&Template>) -> &str {
    template.map_or("", Template::source)
}

/// The number of steps for agents.
fn agents<'a>(steps: impl IntoIterator<Item = &'a Step>) -> u64 {
    steps.into_iter().filter(|step| step.agent().is_some()).map(|_| 1).sum()
}

fn exactly(n: u64) -> AskCount {
    AskCount { least: n, most: Some(n) }
}
