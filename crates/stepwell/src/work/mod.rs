//! The work of a session: its plan, its questions, its points and checkpoints.

pub(crate) mod checkpoints;
pub mod compactions;
pub(crate) mod flows;
pub(crate) mod gates;
pub(crate) mod pins;
pub(crate) mod points;
pub(crate) mod tasks;
pub(crate) mod work_changes;
pub(crate) mod work_requests;

pub use checkpoints::{RecordedCheckpoint, is_numbered};
pub use flows::{FlowState, NodeInfo};
pub use gates::{Asked, Asker, Gates};
pub use pins::{PinnedMessage, Pins};
pub use tasks::{MAX_TASK_BYTES, TaskEdit, Tasks, Work};
pub use work_changes::ChangedTasks;
