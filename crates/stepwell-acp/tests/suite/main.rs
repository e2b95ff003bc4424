//! Tests of the crate, as one program: a client of our own over two pipes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_order;
mod asking;
mod cancelling;
mod client;
mod commands;
mod conversations;
mod following;
mod listing;
mod secrets;
mod stage;
mod troubles;
mod updates;
