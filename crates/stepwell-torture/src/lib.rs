//! Code that the crash tests and the process under test share: seeded random numbers, content that
//! can be recomputed from its number, and the protocol between them.
//!
//! The tests in `tests/torture` kill the `torture` binary, fill its disk or cut its power, and
//! check what is left. They do the same to the `talker` binary, which runs agents and flows,
//! answers their questions and sends them messages.

mod line;
mod load;
mod rng;
mod talk;

pub use line::{Line, Refusal, Request};
pub use load::{Load, Shape, bytes_of, word_of};
pub use rng::Rng;
pub use talk::{Asker, Order, Person, Said, Task};
