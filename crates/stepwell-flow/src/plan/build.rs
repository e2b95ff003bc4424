//! From a spec to its plan.

use super::{Asks, Edge, Node, Plan, Variable};
use crate::spec::{
    EvaluatorOptimizer, Gate, Go, Graph, OrchestratorWorkers, Parallel, Pattern, Routing, Spec,
    Step, Workflow,
};
use crate::template::Template;

pub(super) fn plan(spec: &Spec) -> Plan {
    let mut board = Board::default();
    let asks = board.pattern(&spec.pattern);
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
        nodes: board.nodes,
        edges: board.edges,
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
    });
    let only_set = inputs.values.iter().filter(|(name, _)| inputs.get(name).is_none());
    let only_set = only_set.map(|(name, value)| Variable {
        name: name.clone(),
        kind: "string",
        required: false,
        default: Some(value.clone()),
        description: None,
        value: None,
    });
    declared.chain(only_set).collect()
}

fn limits(spec: &Spec) -> Vec<String> {
    let budgets = &spec.runtime.budgets;
    let mut limits = Vec::new();
    limits.extend(budgets.max_steps.map(|n| format!("{n} calls of models")));
    limits.extend(budgets.max_tokens.map(|n| format!("{n} tokens")));
    limits.extend(budgets.max_cost_usd.map(|cost| format!("${cost}")));
    limits.extend(budgets.max_duration_s.map(|n| format!("{n} s")));
    limits
}

/// A plan that is being drawn up.
#[derive(Default)]
struct Board {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// What several ways come from: keys, and when each is taken.
type Ends = Vec<(String, Option<String>)>;

impl Board {
    fn pattern(&mut self, pattern: &Pattern) -> Asks {
        match pattern {
            Pattern::Chain(chain) => {
                self.steps("step", &chain.steps, Vec::new());
                exactly(agents(&chain.steps))
            }
            Pattern::Workflow(flow) => self.workflow(flow),
            Pattern::Routing(routing) => self.routing(routing),
            Pattern::Parallel(parallel) => self.parallel(parallel),
            Pattern::EvaluatorOptimizer(loops) => self.evaluator(loops),
            Pattern::OrchestratorWorkers(flow) => self.orchestrator(flow),
            Pattern::Graph(graph) => self.graph(graph),
        }
    }

    fn node(&mut self, key: &str, agent: Option<&str>, asks: &str, after: Ends) -> String {
        for (from, when) in after {
            self.edges.push(Edge { from, to: key.to_owned(), when });
        }
        let (agent, asks) = (agent.map(str::to_owned), asks.trim().to_owned());
        self.nodes.push(Node { key: key.to_owned(), agent, asks, repeats: None });
        key.to_owned()
    }

    fn repeating(&mut self, how: String) {
        if let Some(node) = self.nodes.last_mut() {
            node.repeats = Some(how);
        }
    }

    fn gate(&mut self, key: &str, gate: &Gate, after: Ends) -> String {
        self.node(key, None, gate.prompt.source(), after)
    }

    fn step(&mut self, key: &str, step: &Step, after: Ends) -> String {
        match step {
            Step::Agent(step) => {
                self.node(key, Some(step.agent.as_str()), input(step.input.as_ref()), after)
            }
            Step::Hitl(gate) => self.gate(key, gate, after),
        }
    }

    /// Steps one after the other; answers with what comes after them.
    fn steps(&mut self, key: &str, steps: &[Step], mut after: Ends) -> Ends {
        for (n, step) in steps.iter().enumerate() {
            let key = self.step(&format!("{key}/{n}"), step, after);
            after = vec![(key, None)];
        }
        after
    }

    fn workflow(&mut self, flow: &Workflow) -> Asks {
        for task in &flow.tasks {
            let after = task.deps.iter().map(|dep| (format!("task/{dep}"), None)).collect();
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

    fn routing(&mut self, routing: &Routing) -> Asks {
        let router = &routing.router;
        let mut from = self.node(
            "router/1",
            Some(router.agent.as_str()),
            input(router.input.as_ref()),
            vec![],
        );
        if let Some(review) = &router.review_router {
            from = self.gate("review/1", &review.0, vec![(from, None)]);
        }
        for (name, route) in &routing.routes {
            let after = vec![(from.clone(), Some(name.to_string()))];
            self.steps(&format!("route/{name}"), &route.then, after);
        }
        let counts = || routing.routes.values().map(|route| agents(&route.then));
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        Asks { least: 1 + least, most: Some(1 + most) }
    }

    fn parallel(&mut self, parallel: &Parallel) -> Asks {
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

    fn evaluator(&mut self, loops: &EvaluatorOptimizer) -> Asks {
        let (producer, evaluator) = (&loops.producer, &loops.evaluator);
        let (writer, most) = (Some(producer.agent.as_str()), loops.accept.max_iters.get());
        self.node("produce", writer, input(producer.input.as_ref()), vec![]);
        let asked = input(evaluator.input.as_ref());
        let after = vec![("produce".to_owned(), None)];
        self.node("evaluate/*", Some(evaluator.agent.as_str()), asked, after);
        self.repeating(format!("up to {most} times"));
        if most > 1 {
            let poor = Some(format!("score < {}", loops.accept.min_score));
            let mut after = vec![("evaluate/*".to_owned(), poor)];
            if let Some(review) = &loops.review_gate {
                after = vec![(self.gate("review/*", &review.0, after), None)];
            }
            self.node("revise/*", writer, input(loops.revise_prompt.as_ref()), after);
            self.repeating(format!("up to {} times", most - 1));
            let (from, to) = ("revise/*".to_owned(), "evaluate/*".to_owned());
            self.edges.push(Edge { from, to, when: None });
        }
        Asks { least: 2, most: Some(2 * u64::from(most)) }
    }

    fn orchestrator(&mut self, flow: &OrchestratorWorkers) -> Asks {
        let limits = &flow.orchestrator.limits;
        let rounds = limits.max_rounds.map_or(1, std::num::NonZeroU32::get);
        let asked = input(flow.orchestrator.input.as_ref());
        let mut last = self.node("plan/*", Some(flow.orchestrator.agent.as_str()), asked, vec![]);
        if rounds > 1 {
            self.repeating(format!("up to {rounds} times"));
        }
        if let Some(review) = &flow.decomposition_review {
            last = self.gate("review/*", &review.0, vec![(last, None)]);
        }
        let asked = flow.worker_template.input.as_ref().map_or("the subtask", Template::source);
        let worker = Some(flow.worker_template.agent.as_str());
        last = self.node("worker/*/*", worker, asked, vec![(last, None)]);
        self.repeating("once for each subtask".to_owned());
        if rounds > 1 {
            let (from, to) = (last.clone(), "plan/*".to_owned());
            self.edges.push(Edge { from, to, when: Some("another round".to_owned()) });
        }
        if let Some(review) = &flow.reduce_review {
            last = self.gate("review/0", &review.0, vec![(last, None)]);
        }
        for (key, step) in [("reduce", &flow.reduce), ("writeup", &flow.writeup)] {
            if let Some(step) = step {
                last = self.step(key, step, vec![(last, None)]);
            }
        }
        let ends = agents(flow.reduce.iter().chain(&flow.writeup));
        Asks { least: 1 + ends, most: None }
    }

    fn graph(&mut self, graph: &Graph) -> Asks {
        for (name, step) in &graph.nodes {
            self.step(&format!("node/{name}"), step, Vec::new());
        }
        for edge in &graph.edges {
            let from = format!("node/{}", edge.from);
            let mut push = |to: &str, when: Option<&str>| {
                let (from, to) = (from.clone(), format!("node/{to}"));
                self.edges.push(Edge { from, to, when: when.map(str::to_owned) });
            };
            match &edge.go {
                Go::To(nodes) => {
                    if let Some(node) = nodes.first() {
                        push(node.as_str(), None);
                    }
                }
                Go::Choose(choices) => {
                    for choice in choices {
                        push(choice.to.as_str(), Some(choice.when.source()));
                    }
                }
            }
        }
        let first = agents(graph.nodes.values().take(1));
        let most = agents(graph.nodes.values()) * u64::from(graph.max_iterations.get());
        Asks { least: first, most: Some(most) }
    }
}

fn input(template: Option<&Template>) -> &str {
    template.map_or("", Template::source)
}

/// How many of some steps are agents'.
fn agents<'a>(steps: impl IntoIterator<Item = &'a Step>) -> u64 {
    steps.into_iter().filter(|step| step.agent().is_some()).map(|_| 1).sum()
}

fn exactly(n: u64) -> Asks {
    Asks { least: n, most: Some(n) }
}
