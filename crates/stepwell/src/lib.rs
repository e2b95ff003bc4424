//! Durable sessions for AI agents.

mod clock;
mod codec;
pub mod coordinator;
mod error;
mod failpoint;
mod head;
mod lease;
mod model;
mod search;
mod sqlite;
mod store;
mod timeline;
mod view;

pub use clock::{Clock, Entropy, SystemClock, SystemEntropy};
pub use codec::{MAX_BLOB_BYTES, MAX_EVENT_BYTES, SPILL_BYTES};
pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "failpoints")]
pub use failpoint::{FAILPOINTS, on_failpoint};
pub use head::{FlowRef, Head, LaneState, LastError, PREVIEW_BYTES, State};
pub use lease::{Held, Holder, LEASE_TTL, Lease, Processes, Pulse, SystemProcesses};
pub use model::attribute::{Change, Edited};
pub use model::digest::{Digest, NotADigest};
pub use model::event::{Event, Kind, NewEvent, Recorded, Unknown};
pub use model::id::{EventId, IdFormat, InvalidName, Lane, MAX_NAME_BYTES, SessionId};
pub use model::message::{Image, Message, Opaque, Part, Role, Text, ToolCall, ToolResult};
pub use model::money::{Money, NotMoney};
pub use model::origin::{Created, Driver, Flow, Origin, Project, Source};
pub use model::phase::{MAX_DISCUSS_RETURNS, Move, Phase, PhaseSet};
pub use model::position::{Epoch, Seq};
pub use model::status::{Status, StopReason, UnknownStatus};
pub use model::time::{NotATime, Time};
pub use model::usage::{Spent, Usage};
pub use model::work::{
    Artifact, Checkpoint, CheckpointReason, Compacted, Effect, Erased, Failure, FileChanged,
    FileState, Gate, GateAnswered, Node, NodeState, Outcome, Permission, PhaseChanged, Question,
    Restored, Rewound, Scope, Scrubbed, StatusChanged, Step, Task, TaskStatus, ToolFinished,
    ToolStarted, Undone,
};
pub use search::MAX_SEARCHED_BYTES;
pub use sqlite::{Access, SqliteOptions, SqliteStore};
pub use store::query::{
    Cursor, Family, Filter, Found, Hit, Page, Place, Query, Rank, Search, Snippet, Sort,
};
pub use store::{
    Append, Claim, Counts, Create, Damage, Derived, DiskUse, Order, Removal, Scrub, Slice, Span,
    Standing, Store, Target, Verdict, Write, Written,
};
pub use timeline::Timeline;
pub use view::{INTERRUPTED, Invalid, Made, Shown, View};
