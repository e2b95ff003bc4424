//! Redaction, as agents need it: in memory texts stay as they are, and only what is written is
//! redacted.

pub use stepwell::log::{RedactMessages, Redactor};
