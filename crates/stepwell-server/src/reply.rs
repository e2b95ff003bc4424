//! Answers to requests.

use axum::http::StatusCode;

/// The media type of items on separate lines.
pub(crate) const LINES: &str = "application/x-ndjson";

/// The header with the next cursor, for answers in lines.
pub(crate) const NEXT: &str = "stepwell-next";

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A JSON document.
    Json(StatusCode, Vec<u8>),
    /// A page of a list, one item a line, and the next cursor.
    Lines { body: Vec<u8>, next: Option<String> },
    /// A file to save. Browsers never display it.
    File { name: String, media: &'static str, bytes: Vec<u8> },
}

/// A file to save.
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) name: String,
    pub(crate) media: &'static str,
    pub(crate) bytes: Vec<u8>,
}
