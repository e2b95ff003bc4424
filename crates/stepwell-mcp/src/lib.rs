//! An MCP server over a user's sessions: any agent can search and read them, and, where the user
//! allows it, record its own.
//!
//! Both eras of the protocol are served: 2025-11-25 and earlier with `initialize`, 2026-07-28
//! without. A tool is a plain function from typed arguments to a typed answer ([`stepwell_wire`]'s
//! types); the common steps surround it:
//!
//! - every answer is redacted, including errors, resources and prompts;
//! - text quoted from sessions is marked as quoted, because it may contain instructions;
//! - an answer has a limited size, and the rest is on the next page.
//!
//! No tool answers a gate: an agent must not approve its own calls.

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
