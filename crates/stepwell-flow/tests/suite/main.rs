//! What holds for flows.

mod hostile;
mod schema;
mod specs;
