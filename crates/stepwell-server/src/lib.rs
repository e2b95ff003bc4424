//! Stepwell over HTTP: an API for programs and a page for people.
//!
//! [`Server::run`] serves a user's stores on a listener until it is stopped. The server keeps no
//! state of its own: records are in the stores, and every call of a model, command or file move
//! happens in a separate process that outlives it
//! ([`Launcher`](stepwell_runtime::detached::Launcher)). So a restart does no harm.
//!
//! A request passes a guard first. A handler's permission is in its type: a reading one receives a
//! `Look`, a changing one an `Act`, and each is only created for a caller with that permission. The
//! routes are one table, from which the router and the `OpenAPI` document are generated.

mod access;
mod api;
mod assets;
mod connections;
mod live;
mod mcp;
mod mcp_handler;
mod openapi;
mod problem;
mod received;
mod repeats;
mod reply;
mod route;
mod security;
mod server;
mod site;
mod stores;
mod tidying;

pub use access::{AccessEntry, AccessFile, AccessLog};
pub use mcp_handler::{McpAnswer, McpHandler, McpRequest};
pub use security::{
    Caller, NamedToken, OneTimeLink, Origin, Role, Token, TokenFiles, Tokens, certificate,
};
pub use server::{Options, Reach, Server, Shutdown, listen};
pub use stores::Workspaces;
