//! Redaction for agents: memory keeps texts as they are; only recorded events are redacted.

pub use stepwell::log::{RedactMessages, Redactor};
