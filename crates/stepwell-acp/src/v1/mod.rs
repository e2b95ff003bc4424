//! Version 1 of the protocol: its messages, and what the turn engine does for them.

mod agent;
mod ask;
mod client;
mod extension;
mod fault;
mod input;
mod list;
mod open;
mod options;
mod stop_reason;
mod update;

pub(crate) use agent::Agent;
