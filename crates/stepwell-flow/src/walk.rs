//! Walks a flow by its pattern.

use crate::flow::Flow;
use crate::guided;
use crate::halt::Halt;
use crate::pattern::step::Completed;
use crate::pattern::{chain, evaluator, graph, orchestrator, parallel, routing, workflow};
use crate::spec::Pattern;

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
        Pattern::Guided(guided) => guided::walk(flow, guided).await,
    }
}
