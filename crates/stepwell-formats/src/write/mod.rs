//! What writers of formats share: drafts, layouts, and what a format cannot hold.

pub(crate) mod draft;
pub(crate) mod facts;
pub(crate) mod layout;
pub(crate) mod leftover_parts;
pub(crate) mod unanswered;
pub(crate) mod writer;
