//! Code that the tests of several crates share.

pub mod kill;
pub mod model;
