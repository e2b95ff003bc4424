//! One suite, generic over the trait [`Store`](stepwell::Store), for every implementation of it:
//! SQLite, in memory, PostgreSQL.
//!
//! The trait's doc is the contract; each case here is one claim of it. An implementation brings a
//! [`Fixture`] and expands the suite to one `#[test]` per claim, so that a failing run names what
//! is broken:
//!
//! ```text
//! fn fixture() -> MyFixture { … }
//! stepwell_conformance::suite!(fixture);
//! // For a store whose bytes a test can modify:
//! stepwell_conformance::damage_suite!(fixture);
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the cases are tests that live in a library: a panic is how a claim fails"
)]

mod claims;
mod doubles;
mod harness;

pub mod append;
pub mod batch;
pub mod blob;
pub mod changes;
pub mod count;
pub mod create;
pub mod damage;
pub mod events;
pub mod facts;
pub mod filter;
pub mod fork;
pub mod gate;
pub mod generate;
pub mod guard;
pub mod head;
pub mod heir;
pub mod history;
pub mod lease;
pub mod liveness;
pub mod page;
pub mod phase;
pub mod purge;
pub mod record;
pub mod retry;
pub mod rewind;
pub mod scrub;
pub mod search;
pub mod several;
pub mod talk;
pub mod text;
pub mod trash;
pub mod unknown;
pub mod verify;
pub mod wait;

pub use claims::run;
pub use doubles::{TestClock, TestProcesses};
pub use harness::{Damageable, Fixture, Harness};

/// Expands to one `#[test]` for each claim about every store. `$make` is a function that returns an
/// empty [`Fixture`].
#[macro_export]
macro_rules! suite {
    ($make:ident) => {
        $crate::append_claims!($make);
        $crate::batch_claims!($make);
        $crate::blob_claims!($make);
        $crate::changes_claims!($make);
        $crate::count_claims!($make);
        $crate::create_claims!($make);
        $crate::events_claims!($make);
        $crate::facts_claims!($make);
        $crate::liveness_claims!($make);
        $crate::filter_claims!($make);
        $crate::fork_claims!($make);
        $crate::gate_claims!($make);
        $crate::guard_claims!($make);
        $crate::head_claims!($make);
        $crate::heir_claims!($make);
        $crate::lease_claims!($make);
        $crate::page_claims!($make);
        $crate::phase_claims!($make);
        $crate::purge_claims!($make);
        $crate::record_claims!($make);
        $crate::retry_claims!($make);
        $crate::rewind_claims!($make);
        $crate::scrub_claims!($make);
        $crate::search_claims!($make);
        $crate::several_claims!($make);
        $crate::talk_claims!($make);
        $crate::text_claims!($make);
        $crate::trash_claims!($make);
        $crate::unknown_claims!($make);
        $crate::verify_claims!($make);
        $crate::wait_claims!($make);
    };
}

/// Expands to one `#[test]` for each claim about damage. `$make` returns a fixture that is also
/// [`Damageable`].
#[macro_export]
macro_rules! damage_suite {
    ($make:ident) => {
        $crate::damage_claims!($make);
    };
}
