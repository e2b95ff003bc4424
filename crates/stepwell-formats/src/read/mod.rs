//! The shared parts of all readers: how they read files, and the form in which they give a session.

pub(crate) mod foreign_database;
pub(crate) mod input;
pub(crate) mod mark;
pub(crate) mod neutral;
pub(crate) mod reader;
pub(crate) mod seen;
pub(crate) mod steps;
