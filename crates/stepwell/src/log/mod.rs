//! The log of a session: how events are written, which of them count, and the state folded from
//! them.

pub(crate) mod calls;
pub(crate) mod codec;
pub(crate) mod head;
pub(crate) mod redact;
pub(crate) mod timeline;
pub(crate) mod view;

pub use calls::ImportedCalls;
pub use codec::{MAX_BLOB_BYTES, MAX_EVENT_BYTES, SPILL_BYTES};
pub use head::{
    FlowRef, Head, ImportedSpent, LaneState, LastError, MAX_SCOPE_BYTES, PREVIEW_BYTES, State,
};
pub use redact::{RedactMessages, Redactor};
pub use timeline::Timeline;
pub use view::{INTERRUPTED, Invalid, MessageOrigin, View, ViewMessage};
