//! An MCP server over a user's sessions: any agent can search and read them, and, where the user
//! allows it, record its own.
//!
//! Both eras of the protocol are served: 2025-11-25 and earlier with `initialize`, 2026-07-28
//! without. A tool is a plain function from typed arguments to a typed answer
//! ([`stepwell_wire`]'s types); what is common to all of them is done once, around it:
//!
//! - secrets are taken out of every answer, also of errors, resources and prompts;
//! - what is quoted from sessions is framed as quoted, because it may hold instructions;
//! - an answer is bounded, and what does not fit is on the next page.
//!
//! No tool answers a gate: an agent must not approve itself.

mod bounded;
mod error;
mod http_service;
mod input;
mod options;
mod outgoing;
mod prompts;
mod resources;
mod server;
mod stores;
mod tool;
mod transport;

pub use error::{Error, Result};
pub use http_service::HttpService;
pub use options::{Access, Options, Scope};
pub use server::Server;
