//! What readers of formats share: where files are found, how they are read, and what a session is told as.

pub(crate) mod compare_session;
pub(crate) mod dry_run;
pub(crate) mod facts;
pub(crate) mod folder;
pub(crate) mod foreign_database;
pub(crate) mod input;
pub(crate) mod neutral;
pub(crate) mod reader;
pub(crate) mod seen;
pub(crate) mod steps;
pub(crate) mod unread;
pub(crate) mod walk;
