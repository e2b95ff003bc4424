//! Every name at the root of the crate, as it was before there were modules. It is hidden from the
//! documentation: new code takes names from their modules.

pub use crate::checkpoints::{RecordedCheckpoint, is_numbered};
pub use crate::clock::{Clock, Entropy, SystemClock, SystemEntropy};
pub use crate::codec::{MAX_BLOB_BYTES, MAX_EVENT_BYTES, SPILL_BYTES};
pub use crate::counted::counted;
pub use crate::error::{BadPattern, NoPoint, TaskRefused};
#[cfg(feature = "failpoints")]
pub use crate::failpoint::{FAILPOINTS, on_failpoint};
pub use crate::family::{Kin, Relative, Subagents};
pub use crate::flows::{FlowState, NodeInfo};
pub use crate::follow::{Followed, Follower};
pub use crate::head::{
    FlowRef, Head, ImportedSpent, LaneState, LastError, MAX_SCOPE_BYTES, PREVIEW_BYTES, State,
};
pub use crate::lease::{LEASE_TTL, Lease, LeaseInfo, Liveness, Processes, SystemProcesses};
pub use crate::links::{
    STORE_FOLDER, refuse_link, refuse_links_below, refuse_links_in_store, refuse_shared,
};
pub use crate::model::attribute::{Change, Edited, Elsewhere};
pub use crate::model::digest::{Digest, DigestHasher, NotADigest};
pub use crate::model::event::{Attachment, Kind, Unknown};
pub use crate::model::gates::{AskedCall, Choice, Gate, GateAnswered, Permission};
pub use crate::model::id::{EventId, IdFormat, InvalidName, MAX_NAME_BYTES};
pub use crate::model::message::{
    Author, Image, ModelCall, Opaque, Part, Role, Text, ToolCall, ToolResult,
};
pub use crate::model::money::{Money, NotMoney};
pub use crate::model::node::{MAX_NODE_ID_BYTES, NodeId, NodeKey};
pub use crate::model::origin::{Driver, Flow, Origin, Project, Source};
pub use crate::model::owner::Owner;
pub use crate::model::phase::{MAX_DISCUSS_RETURNS, Move, Phase, PhaseSet};
pub use crate::model::position::Epoch;
pub use crate::model::ranges::SeqRanges;
pub use crate::model::rewinds::{
    Checkpoint, CheckpointReason, Compacted, Restored, Rewinding, Rewound, Scope, Undone,
};
pub use crate::model::spec_hash::SpecHash;
pub use crate::model::status::UnknownStatus;
pub use crate::model::talk::{
    Answer, FlowSettings, Grant, MAX_RECORD_KEY_BYTES, Mode, Record, Said, Settings, StopAsked,
    Who, WorkAsked, WorkChange,
};
pub use crate::model::time::{NotATime, Time};
pub use crate::model::tools::{Effect, Outcome, ToolFinished, ToolStarted, ToolTarget};
pub use crate::model::usage::{Estimate, Spent, Usage};
pub use crate::model::work::{
    About, Artifact, Erased, Failure, FileChanged, FileState, Foreign, MAX_TASKS, Node, NodeState,
    PhaseChanged, Question, Scrubbed, StatusChanged, Step, Task, TaskStatus,
};
pub use crate::names::{likeness, nearest, telling_parts};
pub use crate::options::{EmptyTrash, ForkAt, NewSession};
pub use crate::own_command::OwnCommand;
pub use crate::paging::{Log, Sessions};
pub use crate::pins::{PinnedMessage, Pins};
pub use crate::redact::{RedactMessages, Redactor};
pub use crate::removal::CanFinish;
pub use crate::resume::{ResumeCheck, ResumeDecision, ResumeLimits, ResumeReason};
pub use crate::retention::{CleanupItem, CleanupReason, Exemption, Plan, Policy};
pub use crate::scrub::{ScrubMatches, ScrubPattern, ScrubbedSession};
pub use crate::search::MAX_SEARCHED_BYTES;
pub use crate::sqlite::{Access, SqliteOptions, SqliteStore, hide_from_git};
pub use crate::statistics::{SpentGroup, Statistics};
pub use crate::store::changes::{ChangeCursor, ChangeKind, Changes, NotACursor, SessionChange};
pub use crate::store::query::{
    Cursor, Family, Filter, Found, Hit, InScope, KeyRange, LedgerRows, Newest, NewestQuery, Page,
    Query, Rank, RecordQuery, Search, Snippet, Sort, SystemPrompts, TrashScope,
};
pub use crate::store::rows::Facts;
pub use crate::store::{
    Append, Counts, Create, Damage, Derived, DiskUse, Expected, LeaseRequest, Maintain, NewEvents,
    Order, Prune, Removal, Scrub, Selection, Server, Slice, Span, Target, Verdict, Write, Written,
};
pub use crate::subscribe::{Notice, Subscription};
pub use crate::tasks::{MAX_TASK_BYTES, TaskEdit, Tasks, Work};
pub use crate::timeline::Timeline;
pub use crate::view::{INTERRUPTED, Invalid, MessageOrigin, ViewMessage};
pub use crate::well::Deps;

pub use crate::work_changes::ChangedTasks;
