//! Sessions that are kept as lines of JSON, of which each may name the one that it follows.
//!
//! A format says what its lines mean ([`row::LineReader`]) and how a message is written as lines
//! ([`form::LineWriter`]). What is the same for all of them is here: the tree that the lines make,
//! branches that were left, compactions, what a line holds beside the conversation, calls without a
//! result, and the lines that Stepwell adds for what the form has no word for.

pub(crate) mod branches;
pub(crate) mod call_names;
pub(crate) mod form;
pub(crate) mod hollow;
pub(crate) mod live;
pub(crate) mod ours;
pub(crate) mod reading;
pub(crate) mod row;
pub(crate) mod tree;
pub(crate) mod writing;
