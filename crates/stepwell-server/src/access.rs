//! The access log: caller, time, request and status.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use stepwell::model::Time;

/// An answered request. Its query, headers and body are left out, because they may hold secrets.
#[derive(Clone, Debug, Serialize)]
pub struct AccessEntry {
    /// When the answer began.
    pub at: Time,
    /// The name of the caller's token; `None` for an unknown caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The peer's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<SocketAddr>,
    /// The request's method.
    pub method: String,
    /// The request's path.
    pub path: String,
    /// The answer's status.
    pub status: u16,
}

/// Keeps an access log.
pub trait AccessLog: fmt::Debug + Send + Sync {
    /// Records a request. It must not block for long, and cannot report errors.
    fn keep(&self, entry: &AccessEntry);
}

/// An access log in a private file of the user: a line of JSON for each request.
#[derive(Debug)]
pub struct AccessFile(Mutex<File>);

impl AccessFile {
    /// Opens a file, and creates it if it does not exist.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Arc<dyn AccessLog>> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o600).open(path)?;
        Ok(Arc::new(Self(Mutex::new(file))))
    }
}

impl AccessLog for AccessFile {
    fn keep(&self, entry: &AccessEntry) {
        let Ok(mut line) = serde_json::to_vec(entry) else { return };
        line.push(b'\n');
        // A full disk stops the log, not the server.
        let _ = self.0.lock().write_all(&line);
    }
}
