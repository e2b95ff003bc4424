//! What Stepwell's terminal front ends share: text that cannot drive a terminal, tables, the words
//! for what the libraries say in types, and a run shown line by line.

mod console;
pub mod events;
mod explained;
pub mod gates;
pub mod lines;
pub mod reply;
pub mod report;
pub mod rewind;
pub mod servers;
pub mod table;
pub mod tasks;
pub mod text;
mod when;
pub mod wording;
pub mod work;

pub use console::{Console, Form, Paint, Style, Terminal, note, safe_to_tell};
pub use explained::Explained;
pub use when::When;
