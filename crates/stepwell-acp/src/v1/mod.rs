//! Version 1 of the protocol: its messages, and what the turn engine does for them.

mod agent;
mod ask;
mod brought;
mod client;
mod extension;
mod fault;
mod hello;
mod input;
mod list;
mod open;
mod open_prompts;
mod options;
mod prompts;
mod stop_reason;
mod update;

pub(crate) use agent::Agent;
