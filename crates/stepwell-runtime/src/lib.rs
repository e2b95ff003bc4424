//! Runs as handles: start, watch, answer, interrupt and resume agents and flows.
//!
//! A [`Runtime`] works in a workspace. [`Runtime::start`], [`Runtime::start_flow`] and
//! [`Runtime::resume`] give a [`RunHandle`]: its [events](RunHandle::events) tell what happens, and
//! approvals and questions are answered from any thread with [`RunHandle::answer`]. The log decides:
//! an answer is an event, the first one counts, and it may as well come from another process.
//! [`RunHandle::join`] gives a [`RunReport`].
//!
//! Every run has a thread of its own. Nothing here knows a terminal, a command line or the
//! environment: a front end brings what it found around itself in a
//! [`Host`](stepwell_workspace::Host).

mod answer;
mod ask_again;
mod attach;
pub mod command;
mod compact;
mod context;
mod context_usage;
mod crew;
pub mod detached;
mod drive;
mod error;
pub mod files;
pub mod flow;
mod follower;
mod fork;
mod gate_answer;
mod handle;
pub mod inspect;
pub mod live;
mod mcp;
mod model;
mod next_run;
mod notice;
mod notify;
mod prepare;
mod project;
mod readiness;
mod report;
mod request;
mod resume;
mod rewind;
mod run_fold;
mod runtime;
mod servers;
mod start;
mod talk;
mod thread;
mod trust;
mod wire;
mod work;

pub use attach::Attached;
pub use context_usage::ContextUsage;
pub use error::{Error, ErrorKind, Result, SinceAnswer};
pub use fork::{ForkRequest, Forked};
pub use gate_answer::Answered;
pub use handle::{EventStream, RunCommand, RunHandle};
pub use model::{KnownModel, check_model_name, is_script, known_model, model_names};
pub use next_run::NextRun;
pub use notice::{CutOffSession, LeftFile, Notice, Notices, ToldOnce};
pub use report::{Failure, FlowReport, RunReport};
pub use request::{
    FlowOptions, FlowRequest, Given, Interrupt, ResumeRequest, RunOptions, RunRequest, Touch,
};
pub use resume::{Resumed, not_saved, refuse_external};
pub use rewind::RewindRequest;
pub use runtime::Runtime;
pub use servers::ServerQuery;
pub use stepwell_agent::provider::model_name;
pub use stepwell_agent::run::{GateAnswer, NodeStatus, OpenGate, Patience, RunEvent, Shrunk};
pub use stepwell_agent::tool::Supervisor;
pub use talk::{Hears, SayRequest, StopRequested};
pub use trust::Trust;
pub use work::WorkRequest;
