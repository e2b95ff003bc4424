//! The files of a session: its changes, and the way back.
//!
//! A session's file events are the history of the workspace in the order in which things happened:
//! a rewind of files records its own changes as file events. So the state of a path at any event is
//! the fold of the file events up to it, undoing a rewind is a rewind, and nothing depends on the
//! disk alone.

pub mod backups;
mod binary;
pub mod capture;
mod claims;
pub mod diff;
mod error;
pub mod forwarded;
pub mod git;
pub mod history;
mod index;
pub mod meanwhile;
mod others;
pub mod plan;
mod repository;
pub mod rewind;
pub mod rewind_effect;
pub mod rewind_history;
pub mod safe_fs;
pub mod safe_path;
pub mod session_diff;
pub mod site;
pub mod started;
mod tree;
pub mod walk;
pub mod worktree;

pub use error::{Error, Result};
