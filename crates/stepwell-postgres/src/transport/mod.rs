//! Connections, the thread that watches them, and how callers wait. Nothing else in this crate
//! knows of sockets, runtimes and wakers; `follow` gives the thread tasks to run.
//!
//! The driver, `tokio-postgres`, is used as it comes. One thread that the store owns watches the
//! sockets. A caller, on any thread and also inside an async program, is parked by a plain waker
//! until that thread sees its answer, and moves the bytes of its connection itself: a question goes
//! out without a hand-over, and its answer comes in with one.
//!
//! What that costs beside the bare driver is in bench/README.md, under "postgres", with what was
//! tried in its place: a task on the store's thread that moves the bytes, and sockets of our own.

mod connect;
mod pool;
mod pooled_conn;
mod remembered;
mod wait;

pub(crate) use pool::{
    Conn, Param, Patience, Pool, SERVER_TIME, Statement, TimeSource, listening_config, params,
};
