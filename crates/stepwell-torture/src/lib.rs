//! What the crash tests and the process under test share: seeded random numbers, content
//! that can be recomputed from its number, and the protocol between them.
//!
//! The `torture` binary is the process that is killed, gets a full disk, or loses power;
//! `tests/torture` does that to it and checks what is left. The `talker` binary runs agents and
//! flows, answers and speaks to them, likewise.

mod line;
mod load;
mod rng;
mod talk;

pub use line::{Line, Refusal, Request};
pub use load::{Load, Shape, bytes_of, word_of};
pub use rng::Rng;
pub use talk::{Asker, Order, Person, Said, Task};
