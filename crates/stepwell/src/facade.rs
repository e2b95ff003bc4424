//! What is recorded and asked, by subject.

/// What is recorded: events, their bodies, and how a session begins.
pub mod event {
    pub use crate::codec::{MAX_EVENT_BYTES, SPILL_BYTES};
    pub use crate::model::attribute::{Change, Edited, Elsewhere};
    pub use crate::model::event::{Attachment, Event, Kind, NewEvent, Recorded, Unknown};
    pub use crate::model::gates::{AskedCall, Choice, Gate, GateAnswered, Permission};
    pub use crate::model::node::{MAX_NODE_ID_BYTES, NodeId, NodeKey};
    pub use crate::model::origin::{Created, Driver, Flow, LEDGER_SCOPE, Origin, Project, Source};
    pub use crate::model::phase::{MAX_DISCUSS_RETURNS, Move, Phase, PhaseSet};
    pub use crate::model::ranges::SeqRanges;
    pub use crate::model::rewinds::{
        Checkpoint, CheckpointReason, Compacted, Restored, Rewinding, Rewound, Scope, Undone,
    };
    pub use crate::model::status::{Status, StopReason, UnknownStatus};
    pub use crate::model::talk::{
        Answer, FlowSettings, Grant, MAX_RECORD_KEY_BYTES, Mode, Record, Said, Settings, StopAsked,
        Who, WorkAsked, WorkChange,
    };
    pub use crate::model::tools::{Effect, Outcome, ToolFinished, ToolStarted, ToolTarget};
    pub use crate::model::work::{
        About, Artifact, Erased, Failure, FileChanged, FileState, Foreign, Node, NodeState,
        PhaseChanged, Question, Scrubbed, StatusChanged, Step, Task, TaskStatus,
    };
}

/// Messages of a conversation and their parts.
pub mod message {
    pub use crate::model::message::{
        Author, Image, Message, ModelCall, Opaque, Part, Role, Text, ToolCall, ToolResult,
    };
    pub use crate::own_command::OwnCommand;
}

/// Names and positions: sessions, events, lanes, seqs, epochs.
pub mod id {
    pub use crate::model::id::{EventId, IdFormat, InvalidName, Lane, MAX_NAME_BYTES, SessionId};
    pub use crate::model::position::{Epoch, Seq};
}

/// Content-addressed bytes.
pub mod digest {
    pub use crate::codec::MAX_BLOB_BYTES;
    pub use crate::model::digest::{Digest, DigestHasher, NotADigest};
    pub use crate::model::spec_hash::SpecHash;
}

/// What was spent: tokens and money.
pub mod money {
    pub use crate::model::money::{Money, NotMoney};
    pub use crate::model::usage::{Estimate, Spent, Usage};
}

/// Moments.
pub mod time {
    pub use crate::model::time::{NotATime, Time};
}

/// Questions for sessions, events and records: filters, pages, searches, key ranges.
pub mod query {
    pub use crate::search::MAX_SEARCHED_BYTES;
    pub use crate::store::query::{
        Cursor, Family, Filter, Found, Hit, InScope, KeyRange, LedgerRows, Newest, NewestQuery,
        Page, Query, Rank, RecordQuery, Search, Snippet, Sort, SystemPrompts, TrashScope,
    };
    pub use crate::store::rows::Facts;
    pub use crate::store::several::{Excerpt, LOOK_BACK};
    pub use crate::store::{Counts, Order, Replaced, Selection, Slice, Span};
}

/// What changed in a whole store, and subscriptions to that.
pub mod changes {
    pub use crate::store::changes::{ChangeCursor, ChangeKind, Changes, NotACursor, SessionChange};
    pub use crate::subscribe::{Notice, Subscription};
}
