//! What holds for flows.

mod specs;
