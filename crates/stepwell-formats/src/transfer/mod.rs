//! Sessions brought from one place to another: to a stream, into another format, into another store.

pub(crate) mod convert;
pub(crate) mod copy;
pub(crate) mod dry_run;
pub(crate) mod export;
