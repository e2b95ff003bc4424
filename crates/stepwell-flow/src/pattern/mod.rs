//! The seven patterns: each walks its part of the spec and runs one node after the other.

mod chain;
mod evaluator;
mod graph;
mod orchestrator;
mod parallel;
mod routing;
mod sequence;
pub(crate) mod step;
mod workflow;

use crate::flow::Flow;
use crate::halt::Halt;
use crate::spec::Pattern;
use step::Completed;

/// Walks a flow's pattern from the start. Nodes with a recorded result do not run again.
pub(crate) async fn walk(flow: &Flow<'_>) -> Result<Completed, Halt> {
    match &flow.spec.pattern {
        Pattern::Chain(chain) => chain::walk(flow, chain).await,
        Pattern::Workflow(workflow) => workflow::walk(flow, workflow).await,
        Pattern::Routing(routing) => routing::walk(flow, routing).await,
        Pattern::Parallel(parallel) => parallel::walk(flow, parallel).await,
        Pattern::EvaluatorOptimizer(config) => evaluator::walk(flow, config).await,
        Pattern::OrchestratorWorkers(config) => orchestrator::walk(flow, config).await,
        Pattern::Graph(graph) => graph::walk(flow, graph).await,
        Pattern::Guided(guided) => crate::guided::walk(flow, guided).await,
    }
}
