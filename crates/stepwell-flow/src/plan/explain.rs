//! Explains in words what a flow does when it runs.

use super::{Plan, short};
use crate::spec::{Gate, Pattern, Spec, Step};

pub(super) fn explain(plan: &Plan, spec: &Spec) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    line(format!("{} is a {}: {}", short(&plan.name, 100), plan.pattern, summary(&spec.pattern)));
    line(format!(
        "Agents are asked {}. Each answer is recorded before the next prompt, and is never paid for \
         twice.",
        plan.asks.words()
    ));
    line(match &plan.model {
        Some(model) => format!("They use {model}, unless --model says otherwise."),
        None => "They use the configured model, unless --model says otherwise.".to_owned(),
    });
    if let Some(text) = details(&spec.pattern, plan) {
        line(text);
    }
    for (key, gate) in gates(&spec.pattern) {
        line(format!("It asks a person at {key}: {}", question(&gate)));
    }
    line(match plan.limits.is_empty() {
        true => "It has no spending limit: set runtime.budgets.".to_owned(),
        false => format!(
            "It stops at {}, and can be resumed; it warns at {:.0}% of that.",
            plan.limits.join(", "),
            spec.runtime.budgets.warn_threshold() * 100.0
        ),
    });
    for (name, agent) in &spec.agents {
        let tools = match agent.tools.is_empty() {
            true => "no tools".to_owned(),
            false => format!("the tools {}", agent.tools.join(", ")),
        };
        let schema = agent.output_schema.as_ref().map(|_| "; its answers must match a schema");
        let prompt = short(agent.prompt.template.source(), 60);
        line(format!("Agent {name} has {tools}{}: {prompt}", schema.unwrap_or_default()));
    }
    match plan.artifacts.is_empty() {
        true => line("It writes no files.".to_owned()),
        false => line(format!("When it succeeds, it writes {}.", plan.artifacts.join(", "))),
    }
    let unset: Vec<_> =
        plan.variables.iter().filter(|it| it.required).map(|it| &*it.name).collect();
    if !unset.is_empty() {
        let typed: Vec<_> = unset.iter().map(|name| format!("--var {name}=…")).collect();
        line(format!("It needs {}.", typed.join(" ")));
    }
    text
}

fn summary(pattern: &Pattern) -> &'static str {
    match pattern {
        Pattern::Chain(_) => "steps run one after the other.",
        Pattern::Workflow(_) => "each task starts as soon as its dependencies are done.",
        Pattern::Routing(_) => "a router chooses one of several routes.",
        Pattern::Parallel(_) => "branches run in parallel.",
        Pattern::EvaluatorOptimizer(_) => "a draft is scored and revised until it is good enough.",
        Pattern::OrchestratorWorkers(_) => "one agent splits the work, others do it.",
        Pattern::Graph(_) => "it goes from node to node along the edges.",
        Pattern::Guided(_) => "it leads from a goal to a commit, phase by phase.",
    }
}

/// The details of a pattern.
fn details(pattern: &Pattern, plan: &Plan) -> Option<String> {
    let max = plan.max_parallel;
    Some(match pattern {
        Pattern::Chain(_) => return None,
        Pattern::Workflow(_) | Pattern::Parallel(_) => {
            format!("Up to {max} agents run at once; if one fails, the others finish.")
        }
        Pattern::Routing(routing) => {
            let routes: Vec<_> = routing.routes.keys().map(ToString::to_string).collect();
            let retries = routing.router.max_retries;
            format!(
                "The router answers with one of {}; otherwise it is asked again, up to {retries} \
                 times.",
                routes.join(", ")
            )
        }
        Pattern::EvaluatorOptimizer(config) => {
            let (score, max) = (config.accept.min_score, config.accept.max_iters);
            format!(
                "A draft with {score} points or more is accepted; after {max} drafts, the last one \
                 is used as it is."
            )
        }
        Pattern::OrchestratorWorkers(flow) => {
            let rounds = flow.orchestrator.limits.max_rounds.map_or(1, std::num::NonZeroU32::get);
            let rounds =
                if rounds == 1 { "one round".to_owned() } else { format!("{rounds} rounds") };
            format!("It has at most {rounds} of subtasks; up to {max} agents run at once.")
        }
        Pattern::Graph(graph) => {
            let first = graph.nodes.keys().next().map(ToString::to_string).unwrap_or_default();
            let max = graph.max_iterations;
            format!("It starts at {first}; no node runs more than {max} times.")
        }
        Pattern::Guided(guided) => {
            let rounds = guided.rounds.map_or(crate::guided::ROUNDS, std::num::NonZeroU32::get);
            format!(
                "It discusses, plans, works on the tasks, verifies in at most {rounds} rounds, and \
                 ships."
            )
        }
    })
}

/// The questions for people, by the keys of their nodes.
fn gates(pattern: &Pattern) -> Vec<(String, Gate)> {
    let of = |key: String, step: &Step| step.gate().map(|gate| (key, gate.clone()));
    let many = |key: String, steps: &[Step]| -> Vec<_> {
        let steps = steps.iter().enumerate();
        steps.filter_map(|(n, step)| of(format!("{key}/{n}"), step)).collect()
    };
    match pattern {
        Pattern::Chain(chain) => many("step".to_owned(), &chain.steps),
        Pattern::Workflow(flow) => {
            let tasks = flow.tasks.iter();
            tasks.filter_map(|task| of(format!("task/{}", task.id), &task.step)).collect()
        }
        Pattern::Routing(routing) => {
            let review = routing.router.review_router.iter();
            let review = review.map(|review| ("review/1".to_owned(), review.0.clone()));
            let routes = routing.routes.iter();
            let routes = routes.flat_map(|(name, it)| many(format!("route/{name}"), &it.then));
            review.chain(routes).collect()
        }
        Pattern::Parallel(parallel) => {
            let all = parallel.branches.iter();
            let all = all.flat_map(|it| many(format!("branch/{}", it.id), &it.steps));
            all.chain(parallel.reduce.iter().filter_map(|it| of("reduce".to_owned(), it))).collect()
        }
        Pattern::EvaluatorOptimizer(loops) => {
            let review = loops.review_gate.iter();
            review.map(|review| ("review/*".to_owned(), review.0.clone())).collect()
        }
        Pattern::OrchestratorWorkers(flow) => {
            let reviews =
                [("review/*", &flow.decomposition_review), ("review/0", &flow.reduce_review)];
            let reviews = reviews.into_iter().filter_map(|(key, it)| Some((key, it.as_ref()?)));
            let reviews = reviews.map(|(key, it)| (key.to_owned(), it.0.clone()));
            let ends = [("reduce", &flow.reduce), ("writeup", &flow.writeup)];
            let ends = ends.into_iter().filter_map(|(key, it)| of(key.to_owned(), it.as_ref()?));
            reviews.chain(ends).collect()
        }
        Pattern::Graph(graph) => {
            let nodes = graph.nodes.iter();
            nodes.filter_map(|(name, step)| of(format!("node/{name}"), step)).collect()
        }
        // What it asks depends on what its agents find.
        Pattern::Guided(_) => Vec::new(),
    }
}

fn question(gate: &Gate) -> String {
    let asked = short(gate.prompt.source(), 60);
    let time = gate.timeout_seconds.filter(|seconds| *seconds > 0);
    match (time, &gate.default) {
        (None, None) => asked,
        (None, Some(default)) => format!("{asked} (an empty answer is {default:?})"),
        (Some(time), Some(default)) => {
            format!("{asked} (after {time} s the answer is {default:?})")
        }
        (Some(time), None) => format!("{asked} (it fails after {time} s without an answer)"),
    }
}
