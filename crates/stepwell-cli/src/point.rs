//! How points of a session are written.

/// For help and errors: a seq, a checkpoint's name, or N steps back.
pub(crate) const FORMS: &str = "SEQ|CHECKPOINT|-N";
