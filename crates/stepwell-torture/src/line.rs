//! What the tortured process says on its stdout, and what it is told on its stdin:
//! one JSON object a line.

use serde::{Deserialize, Serialize};
use stepwell::{Epoch, Error, Seq, SessionId};

use crate::Load;

/// Something that the process did, is about to do, or was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// The store is open.
    Opened,
    /// It is about to make a session.
    Creating(SessionId),
    /// It made it.
    Created(SessionId),
    /// It is about to append.
    Trying(SessionId, Load),
    /// It appended; the store said from where to where.
    Kept(SessionId, Load, Seq, Seq),
    /// It is about to store the blob of this token.
    Putting(u64),
    /// It stored it.
    Put(u64),
    /// It is about to erase a session.
    Purging(SessionId),
    /// It erased it.
    Purged(SessionId),
    /// It holds a lease.
    Leased(SessionId, Epoch),
    /// It gave one back.
    Released(SessionId),
    /// A search found this token, so many times.
    Found(u64, usize),
    /// The store said no.
    Refused(Refusal),
    /// The store is closed.
    Closed,
}

/// What the store said no to, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What was asked, as the name of the order.
    pub doing: String,
    /// The error's kind.
    pub kind: String,
    /// The error's variant.
    pub error: String,
    /// The error's words.
    pub what: String,
}

impl Refusal {
    /// An error, told to whoever reads.
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

/// One thing to do. Each is answered by one line, or by a `Trying`, `Creating`,
/// `Putting` or `Purging` and one more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Open the store.
    Open,
    /// Make a session.
    Create(SessionId),
    /// Take a session's lease, for so many milliseconds.
    Acquire(SessionId, u64),
    /// Extend it.
    Renew(SessionId, u64),
    /// Give it back.
    Release(SessionId),
    /// Append under the lease that is held.
    Append(SessionId, Load),
    /// Store the blob of a token.
    Put(u64),
    /// Store small and large blobs from so many threads at once, one of each.
    Crowd(u64),
    /// Search a token.
    Search(u64),
    /// Erase a session.
    Purge(SessionId),
    /// Close the store.
    Close,
}
