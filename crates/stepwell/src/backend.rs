//! What another store is built of: the rows that it keeps, and the logic that says what
//! they mean.
//!
//! A store implements [`Rows`] within one of its transactions and hands that to the
//! functions of [`mod@write`], [`read`] and [`remove`]. Admission, chains, leases, forks and
//! verification are then those of every other store. The conformance suite shows whether
//! it is one.

pub use crate::log::codec::{Login, OwnRow, Row, Sealed};
pub use crate::store::Facts;
pub use crate::store::rows::{
    Base, Key, LeaseRow, Rows, SessionRow, Stretch, TxnContext, head_sum, stand_in,
};
pub use crate::store::search::{Question, SEARCHABLE_KINDS, Shown, Term, Word, searchable, words};

/// What changed in a whole store.
pub mod changes {
    pub use crate::store::changes::{HeldLease, Position, ended, in_order};
}

/// Creating, appending, leases, scrubbing.
pub mod write {
    pub use crate::store::write::{acquire, release, renew, scrub, write};
}

/// Reading through shared prefixes, checking as it goes.
pub mod read {
    pub use crate::store::read::{
        Reread, find, info, lanes, missing, opened, own_row, place, reread, select, written_by,
    };
}

/// Trash, restore, purge, repair.
pub mod remove {
    pub use crate::store::remove::{purge, repair, restore, trash};
}
