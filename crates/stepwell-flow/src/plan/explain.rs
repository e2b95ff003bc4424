//! What happens when a flow is run, in words.

use super::{Plan, short};
use crate::spec::{Gate, Pattern, Spec, Step};

pub(super) fn tell(plan: &Plan, spec: &Spec) -> String {
    let mut text = String::new();
    let mut say = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    say(format!("{} is a {}: {}", short(&plan.name, 100), plan.pattern, idea(&spec.pattern)));
    say(format!(
        "Agents are asked {}; each answer is recorded before the next one is asked for, and is never \
         asked for or paid again.",
        plan.asks.words()
    ));
    say(match &plan.model {
        Some(model) => format!("They use {model}, unless --model says otherwise."),
        None => "They use the configured model, unless --model says otherwise.".to_owned(),
    });
    for line in how(&spec.pattern, plan) {
        say(line);
    }
    for (key, gate) in gates(&spec.pattern) {
        say(format!("It waits for a human at {key}: {}", waiting(&gate)));
    }
    say(match plan.limits.is_empty() {
        true => "Nothing limits what it spends: set runtime.budgets.".to_owned(),
        false => format!(
            "It stops, and can be resumed, at {}; at {:.0}% of that it warns.",
            plan.limits.join(", "),
            spec.runtime.budgets.warn_threshold() * 100.0
        ),
    });
    for (name, agent) in &spec.agents {
        let tools = match agent.tools.is_empty() {
            true => "no tools".to_owned(),
            false => format!("the tools {}", agent.tools.join(", ")),
        };
        let schema = agent.output_schema.as_ref().map(|_| "; its answers must fit a schema");
        let told = short(agent.prompt.template.source(), 60);
        say(format!("Agent {name} has {tools}{}: {told}", schema.unwrap_or_default()));
    }
    match plan.artifacts.is_empty() {
        true => say("It writes no files.".to_owned()),
        false => say(format!("When it succeeded, it writes {}.", plan.artifacts.join(", "))),
    }
    let unset: Vec<_> =
        plan.variables.iter().filter(|it| it.required).map(|it| &*it.name).collect();
    if !unset.is_empty() {
        let typed: Vec<_> = unset.iter().map(|name| format!("--var {name}=…")).collect();
        say(format!("It needs {}.", typed.join(" ")));
    }
    text
}

fn idea(pattern: &Pattern) -> &'static str {
    match pattern {
        Pattern::Chain(_) => "one step after the other.",
        Pattern::Workflow(_) => "each task begins as soon as those that it depends on are done.",
        Pattern::Routing(_) => "a router chooses one of several ways.",
        Pattern::Parallel(_) => "branches go on beside each other.",
        Pattern::EvaluatorOptimizer(_) => "a draft is scored and revised until it is good enough.",
        Pattern::OrchestratorWorkers(_) => "one agent divides the work, others do it.",
        Pattern::Graph(_) => "from node to node, as the edges say.",
    }
}

/// What is particular to a pattern.
fn how(pattern: &Pattern, plan: &Plan) -> Vec<String> {
    let most = plan.max_parallel;
    match pattern {
        Pattern::Chain(_) => Vec::new(),
        Pattern::Workflow(_) | Pattern::Parallel(_) => {
            vec![format!("Up to {most} agents work at once; if one fails, the others finish.")]
        }
        Pattern::Routing(routing) => {
            let routes: Vec<_> = routing.routes.keys().map(ToString::to_string).collect();
            let again = routing.router.max_retries;
            vec![format!(
                "The router answers with one of {}; if it does not, it is asked again up to {again} \
                 times.",
                routes.join(", ")
            )]
        }
        Pattern::EvaluatorOptimizer(loops) => {
            let (score, most) = (loops.accept.min_score, loops.accept.max_iters);
            vec![format!(
                "A draft with {score} points or more is accepted; of {most} drafts, the last one is \
                 taken as it is."
            )]
        }
        Pattern::OrchestratorWorkers(flow) => {
            let rounds = flow.orchestrator.limits.max_rounds.map_or(1, std::num::NonZeroU32::get);
            let rounds =
                if rounds == 1 { "one round".to_owned() } else { format!("{rounds} rounds") };
            vec![format!(
                "There is at most {rounds} of subtasks, and up to {most} agents work at once."
            )]
        }
        Pattern::Graph(graph) => {
            let first = graph.nodes.keys().next().map(ToString::to_string).unwrap_or_default();
            let most = graph.max_iterations;
            vec![format!("It begins at {first}; no node runs more than {most} times.")]
        }
    }
}

/// The questions for humans, by their keys.
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
    }
}

fn waiting(gate: &Gate) -> String {
    let asked = short(gate.prompt.source(), 60);
    let time = gate.timeout_seconds.filter(|seconds| *seconds > 0);
    match (time, &gate.default) {
        (None, None) => asked,
        (None, Some(default)) => format!("{asked} (an empty answer is {default:?})"),
        (Some(time), Some(default)) => {
            format!("{asked} (after {time} s the answer is {default:?})")
        }
        (Some(time), None) => format!("{asked} (without an answer in {time} s it fails)"),
    }
}
