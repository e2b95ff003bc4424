//! The seven patterns: each walks its part of the spec and runs its nodes.

pub(crate) mod chain;
pub(crate) mod evaluator;
pub(crate) mod graph;
pub(crate) mod orchestrator;
pub(crate) mod parallel;
pub(crate) mod routing;
mod sequence;
pub(crate) mod step;
pub(crate) mod workflow;
