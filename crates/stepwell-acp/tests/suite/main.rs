//! Tests of the crate, as one program: a client of our own over two pipes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_order;
mod client;
mod conversations;
mod updates;
