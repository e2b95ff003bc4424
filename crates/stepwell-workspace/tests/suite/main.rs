//! The rules of places, trust and configuration, without a process around them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod circles;
mod finding;
mod floors;
mod layers;
mod machine;
mod mcp_clients;
mod other_agents;
mod remembering;
mod stores;
