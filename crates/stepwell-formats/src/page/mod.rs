//! Sessions as documents that people read.

pub(crate) mod document;
mod export;
pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod work;
