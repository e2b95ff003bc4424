//! Specs and plans as JSON for programs.

use stepwell_wire::{AskCount, FlowProblem, PlanEdge, PlanNode, PlanVariable};

use crate::flow::Upcoming;
use crate::plan::Plan;
use crate::spec::Problem;

impl From<&Problem> for FlowProblem {
    fn from(problem: &Problem) -> Self {
        Self {
            line: problem.position.map(|position| position.line),
            column: problem.position.map(|position| position.column),
            path: problem.path.to_string(),
            message: problem.what.clone(),
            hint: problem.hint.clone(),
        }
    }
}

impl From<&Plan> for stepwell_wire::Plan {
    fn from(plan: &Plan) -> Self {
        let variables = plan.variables.iter().cloned().map(|it| PlanVariable {
            name: it.name,
            kind: it.kind.to_owned(),
            required: it.required,
            default: it.default,
            value: it.value,
            description: it.description,
            one_of: it.one_of,
        });
        let nodes = plan.nodes.iter().cloned().map(|it| PlanNode {
            key: it.key,
            agent: it.agent,
            asks: it.asks,
            repeats: it.repeats,
        });
        let edge = |it: crate::plan::Edge| PlanEdge { from: it.from, to: it.to, when: it.when };
        Self {
            name: plan.name.clone(),
            description: plan.description.clone(),
            pattern: plan.pattern.to_owned(),
            model: plan.model.clone(),
            max_parallel: plan.max_parallel,
            asks: AskCount { least: plan.asks.least, most: plan.asks.most },
            variables: variables.collect(),
            nodes: nodes.collect(),
            edges: plan.edges.iter().cloned().map(edge).collect(),
            artifacts: plan.artifacts.clone(),
            limits: plan.limits.clone(),
        }
    }
}

impl From<&Upcoming> for stepwell_wire::Upcoming {
    fn from(node: &Upcoming) -> Self {
        Self { key: node.key.clone(), agent: node.agent.clone(), asks: node.asks.clone() }
    }
}
