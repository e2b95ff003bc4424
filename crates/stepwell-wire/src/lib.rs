//! The JSON that Stepwell's front ends speak: one set of types for the command line's `--json`,
//! HTTP, MCP and Python.
//!
//! Each type is documented, and [`Answer::schema`] gives its JSON Schema with these descriptions.
//! Field names and meanings are promises to scripts: a field is added, never renamed, and and
//! optional fields are marked. The types are separate from the stored ones, so that neither freezes
//! the other; words that are the same in both, such as [`Status`](stepwell::Status), are shared.
//!
//! The types contain no logic; the crates with the data fill them in. [`all`] lists every answer.

mod agent;
mod answer;
mod cleanup;
mod config;
mod edit;
mod file;
mod flow;
mod format;
mod http;
mod lines;
mod live;
mod mcp;
mod model;
mod money;
mod report;
mod request_id;
mod rewind;
mod run;
mod session;
mod store;
mod view;
mod work;

pub use agent::{
    Agent, AgentCreated, AgentError, AgentTurn, AgentUnreadable, Delegation, HookContext,
    HookInstalled, HookSample, HookStop, McpInstalled, PhaseMove, ResumedAgent,
};
pub use answer::{Answer, AnswerForm, SchemaInfo, all};
pub use cleanup::{CleanupItem, CleanupKept, CleanupTotal, Deleted, Erased, Restored, Scrubbed};
pub use config::{Setting, SettingUnset};
pub use edit::{
    Abandoned, CheckpointInfo, CheckpointMade, Forked, Label, MessagePin, Metadata, Pin, StopAsked,
    Tags,
};
pub use file::{FileContent, FileDiff, FileDiffKind, FileVersion, FileVersionKind};
pub use flow::{
    AskCount, FlowCheck, FlowProblem, Plan, PlanEdge, PlanNode, PlanVariable, Upcoming,
    UpcomingNodes,
};
pub use format::{
    Converted, Exported, FormatInfo, HandedOver, ImportReport, ImportResult, Imported,
    ImportedAgent,
};
pub use http::{
    AgentSummary, ComparedSession, FlowSummary, List, Mark, Problem, RunStarted, ServedStore,
    ServerInfo, SessionComparison,
};
pub use lines::{LONGEST_MESSAGE, MessageLine, read_messages};
pub use live::{LivePiece, LivePieceKind};
pub use mcp::{McpServer, McpState, McpTool, McpTransport};
pub use model::{FavouriteChanged, LongPrice, ModelPrice, Models, ModelsAdopted, PricesTaken};
pub use money::Dollars;
pub use report::{
    CheckFinding, DiskUseOfSession, DiskUseTotal, LedgerEntry, SearchHit, Statistics,
    StatisticsGroup, Verified,
};
pub use request_id::request_id;
pub use rewind::{
    Compaction, CompactionDiff, CompactionUndone, LeftFile, MovedFile, MovedFileAction, Rewind,
    RewoundWork, UnfinishedRewind, ViewMove, WorkSince,
};
pub use run::{
    Costs, Detached, FlowReport, GateAnswered, GateChange, GateChangeKind, OpenGate, RunReport,
    SaidTo, TokenCount, WaitingGate,
};
pub use session::{
    Child, ChildKind, Damage, LaneInfo, ListedFlow, Messages, NamedSeq, RecordedMessage, Session,
    SessionDetails, SessionItem, SessionStatus, Spending,
};
pub use store::{
    BackedUp, Copied, CopyResult, Durability, ManualPages, RoleScript, StoreInfo, StoreMade,
    StoreRestored, StoreRetention, StoreStandby, Worktree, WorktreeRemoved, WorktreeState,
};
pub use view::{ModelView, ViewInstructions, ViewMessage, ViewMessageKind, ViewTools};
pub use work::{
    CheckResult, GuidedInfo, PhaseInfo, Progress, ReviewResult, TaskAtWork, TaskInfo,
    VerificationRound, WorkState,
};
