//! A store of sessions: creating, finding, holding and following them.

pub(crate) mod authors;
pub(crate) mod brief_hold;
pub(crate) mod family;
pub(crate) mod follow;
pub(crate) mod keeper;
pub mod lifecycle;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod paging;
pub(crate) mod resume;
pub(crate) mod seen;
pub(crate) mod session;
pub(crate) mod subscribe;
pub(crate) mod well;

pub use family::{Kin, Relative, Subagents};
pub use follow::{Followed, Follower};
pub use names::{likeness, nearest, telling_parts};
pub use options::{EmptyTrash, ForkAt, NewSession};
pub use paging::{Log, Sessions};
pub use resume::{ResumeCheck, ResumeDecision, ResumeLimits, ResumeReason};
pub use seen::Recognised;
pub use session::Session;
pub use subscribe::{GUARD, Notice, Subscription, WakeOnDrop, Waker};
pub use well::{Acting, Deps, Stepwell};
