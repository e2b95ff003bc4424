//! What the torturers and the tortured share: seeded dice, content that can be made
//! again from its name, and the lines and orders that pass between them.
//!
//! The `torture` binary is the process that is killed, starved of space or cut off
//! from power; `tests/torture` does that to it and looks at what is left.

mod dice;
mod line;
mod load;

pub use dice::Dice;
pub use line::{Line, Order, Refusal};
pub use load::{Load, Shape, bytes_of, word_of};
