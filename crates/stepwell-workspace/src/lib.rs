//! Where a user's sessions are, and what surrounds them: stores and how they are found, trust,
//! configuration, and what is remembered across projects.
//!
//! Nothing here reads the environment or speaks to a terminal. What a process finds around itself
//! is a [`Host`], which a program fills in and a test makes up.

pub mod atomic_file;
pub mod config;
pub mod doctor;
pub mod handoff;
pub mod hooks;
pub mod housekeeping;
pub mod locked_file;

mod calibrations;
pub mod crashes;
mod duration;
mod engine;
mod error;
mod git;
mod heal;
mod host;
pub mod known_stores;
mod langgraph_server;
pub mod ledger;
mod location;
pub mod mcp_clients;
pub mod mirror;
mod notice;
pub mod other_agents;
pub mod other_sessions;
mod own_sessions;
pub mod ownership;
mod price_list;
pub mod prices;
mod prior;
mod recent_models;
mod registry;
pub mod resumable;
mod run_logs;
mod session_lookup;
pub mod set_up;
pub mod store_copy;
pub mod store_info;
pub mod watch;
mod wire;
mod workspace;
mod workspace_file;
mod worktrees;

pub use calibrations::Calibrations;
pub use duration::{parse_duration, show_duration};
pub use error::{ConfigPlace, Error, ErrorKind, Lies, Result};
pub use git::{Commits, repository};
pub use host::{Environment, Host};
pub use known_stores::{NamedWell, Opening};
pub use langgraph_server::LangGraphServer;
pub use ledger::{LedgerLine, LedgerLines, LedgerWanted, ledger_markdown};
pub use location::{CONFIG_FILE, Found, Location};
pub use mcp_clients::{AcpClient, McpClient, SettingsChange};
pub use mirror::Mirror;
pub use notice::{Notice, Notices};
pub use other_agents::AgentPlace;
pub use other_sessions::{OtherSession, OtherSessions};
pub use own_sessions::OwnSessions;
pub use price_list::{NoPriceList, PriceListFile};
pub use prices::Estimates;
pub use prior::{Prior, PriorAgent, PriorModel, Settled};
pub use recent_models::{Adopted, Liked, RecentModels, RecentModelsFile};
pub use registry::Registry;
pub use resumable::Newest;
pub use run_logs::{RunLogs, StoreLogs};
pub use set_up::Replace;
pub use store_copy::{CopiedSession, StoreCopy, TrashRemark, can_go_on};
pub use store_info::{CleanupChange, RetentionChange};
pub use watch::{Watch, WatchNews, WatchedPlace};
pub use wire::imported;
pub use workspace::{Wanted, Workspace, team_address};
pub use workspace_file::WorkspaceFile;
pub use worktrees::{
    Loss, SubagentWorktree, WorktreeStays, WorktreeUser, remove_finished_worktrees,
    restore_worktree, subagent_worktrees, worktrees_named,
};
