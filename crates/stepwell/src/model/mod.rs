//! The words of Stepwell as types: ids, positions, money, messages, events.
//!
//! Nothing here does I/O or knows the time. What a module needs of the outside
//! arrives as an argument.

pub(crate) mod attribute;
pub(crate) mod digest;
pub(crate) mod event;
pub(crate) mod gates;
pub(crate) mod id;
pub(crate) mod message;
pub(crate) mod money;
pub(crate) mod node;
pub(crate) mod origin;
pub(crate) mod owner;
pub(crate) mod phase;
pub(crate) mod position;
pub(crate) mod ranges;
pub(crate) mod rewinds;
pub(crate) mod spec_hash;
pub(crate) mod status;
pub(crate) mod talk;
mod text;
pub(crate) mod time;
pub(crate) mod tools;
pub(crate) mod usage;
pub(crate) mod work;
