//! Stepwell as an agent in editors: the Agent Client Protocol over a user's sessions.
//!
//! [`serve`] talks to one client over two streams. Its layers: `rpc` and `lines` know messages and
//! no meaning; `turn` is the engine, a session as an editor sees it in words of our own; `v1` is
//! the adapter between the engine and the protocol's version 1. A second version is another
//! adapter.
//!
//! The log decides, here as everywhere: a permission is a gate on record before the client is
//! asked, an answer is an event, and the first one counts. So a client that dies leaves a question
//! that waits, and whoever opens the session next sees it.

mod lines;
mod peer;
mod rpc;
mod server;
mod setup;
mod turn;
mod v1;

pub use server::serve;
pub use setup::Setup;
