//! The protocol of the process under test: lines on its stdout, requests on its stdin, one
//! JSON object per line.

use serde::{Deserialize, Serialize};
use stepwell::model::Epoch;
use stepwell::{Error, Seq, SessionId};

use crate::Load;

/// Something that the process did, is about to do, or failed to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// The store is open.
    Opened,
    /// It is about to create a session.
    Creating(SessionId),
    /// The session is created.
    Created(SessionId),
    /// It is about to append.
    Appending(SessionId, Load),
    /// The append is acknowledged, with its first and last seq.
    Appended(SessionId, Load, Seq, Seq),
    /// It is about to store the blob of this token.
    Putting(u64),
    /// The blob is stored.
    Put(u64),
    /// It is about to purge a session.
    Purging(SessionId),
    /// The session is purged.
    Purged(SessionId),
    /// It acquired a lease.
    Leased(SessionId, Epoch),
    /// It released a lease.
    Released(SessionId),
    /// A search for this token, and its number of hits.
    Found(u64, usize),
    /// The store returned an error.
    Refused(Refusal),
    /// The store is closed.
    Closed,
}

/// An error of the store, and the request that caused it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The name of the request.
    pub doing: String,
    /// The error's kind.
    pub kind: String,
    /// The error's variant.
    pub error: String,
    /// The error's message.
    pub what: String,
}

impl Refusal {
    /// Describes an error.
    #[must_use]
    pub fn new(doing: &str, error: &Error) -> Self {
        let shown = format!("{error:?}");
        let variant = shown.split(|c: char| !c.is_alphanumeric()).next();
        Self {
            doing: doing.to_owned(),
            kind: format!("{:?}", error.kind()),
            error: variant.unwrap_or_default().to_owned(),
            what: error.to_string(),
        }
    }
}

/// A request to the process. Each is answered by one line, or by an `Appending`, `Creating`,
/// `Putting` or `Purging` and one more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Open the store.
    Open,
    /// Create a session.
    Create(SessionId),
    /// Acquire a session's lease for this many milliseconds.
    Acquire(SessionId, u64),
    /// Renew the lease for this many milliseconds.
    Renew(SessionId, u64),
    /// Release the lease.
    Release(SessionId),
    /// Append under the current lease.
    Append(SessionId, Load),
    /// Store the blob of a token.
    Put(u64),
    /// Store blobs, small and large ones, from this many threads at once.
    Crowd(u64),
    /// Search for a token.
    Search(u64),
    /// Purge a session.
    Purge(SessionId),
    /// Close the store.
    Close,
}
