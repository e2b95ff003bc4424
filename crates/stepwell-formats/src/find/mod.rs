//! Finding sessions on disk: which formats lie in a folder, and which systems are known by sight alone.

pub(crate) mod unread;
pub(crate) mod walk;
