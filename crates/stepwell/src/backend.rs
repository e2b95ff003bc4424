//! What a store backend is built from: the rows that it keeps, and the shared logic over them.
//!
//! A store implements [`Rows`] inside one of its transactions and passes that to the functions of
//! [`mod@write`], [`read`] and [`remove`]. Admission, chains, leases, forks and verification are
//! then the same as in every other store. The conformance suite tests the result.

pub use crate::log::codec::{Login, OwnRow, Row, Sealed};
pub use crate::store::Facts;
pub use crate::store::rows::{
    Base, Key, LeaseRow, Rows, SessionRow, Stretch, TxnContext, head_sum, stand_in,
};
pub use crate::store::search::{Question, SEARCHABLE_KINDS, Shown, Term, Word, searchable, words};

/// The store-wide change feed.
pub mod changes {
    pub use crate::store::changes::{HeldLease, Position, ended, in_order};
}

/// Creating sessions, appending events, leases, scrubbing.
pub mod write {
    pub use crate::store::write::{acquire, release, renew, scrub, write};
}

/// Reading events, also through prefixes that forks share, with every digest checked.
pub mod read {
    pub use crate::store::read::{
        Reread, find, info, lanes, missing, opened, own_row, place, reread, select, written_by,
    };
}

/// Trash, restore, purge, repair.
pub mod remove {
    pub use crate::store::remove::{purge, repair, restore, trash};
}
