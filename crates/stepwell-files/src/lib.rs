//! Files as a session found and left them: what it changed, and the way back.
//!
//! A session's file events are the history of the workspace in the order in which things
//! happened, whatever was rewound: a rewind that moves files records what it moved as file
//! events of its own. So what stood at a path at any event is the fold of the file events up
//! to it, taking a rewind back is a rewind, and nothing is ever guessed from the disk alone.

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
