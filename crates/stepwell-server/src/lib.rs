//! Stepwell over HTTP: an API for programs and a page for people.
//!
//! [`Server::run`] serves a user's stores on a listener until it is told to stop. The server keeps
//! nothing that matters: what is recorded is in the stores, and whatever asks a model, runs a
//! command or moves files is a process of its own that outlives it
//! ([`Launcher`](stepwell_runtime::detached::Launcher)). So restarting it harms nothing.
//!
//! A request passes a guard before anything looks at it. What a handler may do is in
//! its type: a reading one is given a `Look`, a changing one an `Act`, and each is made only for a
//! caller who may have it. The routes are one table, from which the router and the `OpenAPI`
//! document are both made.

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
