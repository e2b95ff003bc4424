//! Upkeep of a store: cleanup, the trash, scrubbing, and verification.

pub(crate) mod removal;
pub(crate) mod retention;
pub(crate) mod scrub;
pub(crate) mod verify;

pub use removal::CanFinish;
pub use retention::{CleanupItem, CleanupReason, Exemption, Plan, Policy};
pub use scrub::{ScrubMatches, ScrubPattern, ScrubbedSession};
