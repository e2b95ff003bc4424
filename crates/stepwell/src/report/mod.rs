//! Reports over many sessions: statistics, the ledger, and lessons.

pub(crate) mod ledger;
pub(crate) mod lessons;
pub(crate) mod statistics;

pub use ledger::{LEDGER_ROW, Ledger, LedgerRow, WorkSpan};
pub use statistics::{SpentGroup, Statistics};
