//! What readers of formats share: how files are read, and what a session is told as.

pub(crate) mod folder;
pub(crate) mod foreign_database;
pub(crate) mod input;
pub(crate) mod mark;
pub(crate) mod neutral;
pub(crate) mod reader;
pub(crate) mod seen;
pub(crate) mod steps;
