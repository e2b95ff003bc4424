//! Stepwell's words as types: ids, seqs, money, messages, events.
//!
//! Nothing here does I/O or reads the clock. What a module needs from outside arrives as an
//! argument.

pub(crate) mod attribute;
pub(crate) mod counted;
pub(crate) mod digest;
pub(crate) mod event;
pub(crate) mod gates;
pub(crate) mod id;
pub(crate) mod message;
pub(crate) mod money;
pub(crate) mod node;
pub(crate) mod origin;
pub(crate) mod own_command;
pub(crate) mod owner;
pub(crate) mod phase;
pub(crate) mod position;
pub(crate) mod ranges;
pub(crate) mod rewinds;
pub(crate) mod spec_hash;
pub(crate) mod status;
pub(crate) mod talk;
mod text;
pub(crate) mod time;
pub(crate) mod tools;
pub(crate) mod usage;
pub(crate) mod work;

pub use attribute::{Change, Edited, Elsewhere};
pub use counted::counted;
pub use digest::{Digest, DigestHasher, NotADigest};
pub use event::{Attachment, Event, Kind, NewEvent, Recorded, Unknown};
pub use gates::{AskedCall, Choice, Gate, GateAnswered, Permission};
pub use id::{EventId, IdFormat, InvalidName, Lane, MAX_NAME_BYTES, SessionId};
pub use message::{
    Author, Image, Message, ModelCall, Opaque, Part, Role, Text, ToolCall, ToolResult,
};
pub use money::{Money, NotMoney};
pub use node::{MAX_NODE_ID_BYTES, NodeId, NodeKey};
pub use origin::{Created, Driver, Flow, LEDGER_SCOPE, Origin, Project, Source};
pub use own_command::OwnCommand;
pub use owner::Owner;
pub use phase::{MAX_DISCUSS_RETURNS, Move, Phase, PhaseSet};
pub use position::{Epoch, Seq};
pub use ranges::SeqRanges;
pub use rewinds::{
    Checkpoint, CheckpointReason, Compacted, Restored, Rewinding, Rewound, Scope, Undone,
};
pub use spec_hash::SpecHash;
pub use status::{Status, StopReason, UnknownStatus};
pub use talk::{
    Answer, FlowSettings, Grant, MAX_RECORD_KEY_BYTES, Mode, Record, Said, Settings, StopAsked,
    Who, WorkAsked, WorkChange,
};
pub use time::{NotATime, Time};
pub use tools::{Effect, Outcome, ToolFinished, ToolStarted, ToolTarget};
pub use usage::{Estimate, Spent, Usage};
pub use work::{
    About, Artifact, Erased, Failure, FileChanged, FileState, Foreign, MAX_TASKS, Node, NodeState,
    PhaseChanged, Question, Scrubbed, StatusChanged, Step, Task, TaskStatus,
};
