//! Rivals.
