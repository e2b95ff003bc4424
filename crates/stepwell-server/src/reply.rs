//! What is answered to a request.

use axum::http::StatusCode;

/// The media type of items on lines of their own.
pub(crate) const LINES: &str = "application/x-ndjson";

/// The header that says where the next page begins, for who gets lines.
pub(crate) const NEXT: &str = "stepwell-next";

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A JSON document.
    Json(StatusCode, Vec<u8>),
    /// A page of a list, each item on a line of its own, and where the next page begins.
    Lines { body: Vec<u8>, next: Option<String> },
    /// A file to be saved. A browser never shows it.
    File { name: String, media: &'static str, bytes: Vec<u8> },
}

/// A file to be saved.
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) name: String,
    pub(crate) media: &'static str,
    pub(crate) bytes: Vec<u8>,
}
