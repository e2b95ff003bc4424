//! Durable sessions for AI agents.
//!
//! An agent works for minutes or days, costs money, and stops: Ctrl+C, a timeout, a
//! spent budget, a crash. A **session** records its work. Each **event** is on disk
//! before the next one starts, so a run can be resumed where it stopped.
//!
//! ```
//! use stepwell::{Lane, Message, Status, Stepwell, StopReason};
//! # let workspace = tempfile::tempdir()?;
//! # let folder = workspace.path().join(".stepwell");
//!
//! // A well is a store of sessions, usually in `<workspace>/.stepwell`.
//! let well = Stepwell::open(&folder)?;
//! let session = well.create(well.draft("fix the login").with_agent("build"))?;
//! let id = session.id().clone();
//!
//! // An event is durable when the call returns.
//! session.append(Message::user("fix the login"))?;
//!
//! // A step is one answer of a model with its tool calls and results, recorded together.
//! session.step([
//!     Message::assistant("I look at the code.").calling("call_1", "read_file", r#"{"path":"a.rs"}"#),
//!     Message::tool_result("call_1", "fn login() { todo!() }"),
//! ])?;
//!
//! // The model calls another tool, and the process dies.
//! session.append(Message::assistant("").calling("call_2", "run_command", r#"{"cmd":"make"}"#))?;
//! drop(session);
//!
//! // The session reads as interrupted, and can be resumed.
//! assert_eq!(well.info(&id)?.head.status, Status::Interrupted);
//! let session = well.resume(&id)?;
//!
//! // The view of a model is always a valid conversation: the interrupted call has a result,
//! // which says that its outcome is unknown.
//! let view = session.view(&Lane::main())?;
//! assert_eq!(view.messages.last().unwrap().message.results().next().unwrap().text,
//!            "interrupted, outcome unknown");
//!
//! session.step([Message::assistant("Done.")])?;
//! session.finish(Status::Success, Some(StopReason::LlmDone))?;
//! assert_eq!(well.info(&id)?.head.steps, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to look
//!
//! | for | see |
//! |---|---|
//! | opening a store, creating and finding sessions | [`Stepwell`] |
//! | writing to one session | [`Session`] |
//! | a store's contract, and how to write another store | [`Store`] |
//! | the kinds of events | [`Event`] |
//! | a session's current state | [`Head`](crate::log::Head), folded from its events |
//! | the messages for a model | [`View`] |
//! | the right to write | [`Lease`](crate::store::Lease) |
//! | what a cleanup deletes | [`Policy`](crate::upkeep::Policy), [`Plan`](crate::upkeep::Plan) |
//! | whether to resume | [`ResumeDecision`](crate::sessions::ResumeDecision) |
//! | planned tasks | [`Tasks`](crate::work::Tasks), [`Work`](crate::work::Work) |
//!
//! The library is synchronous and touches no network, terminal, home folder or
//! environment. Time, randomness and the view of other processes come in through
//! [`Deps`](crate::sessions::Deps).
//!
//! # Names from other systems
//!
//! Other session managers and their counterparts here:
//!
//! | elsewhere | here |
//! |---|---|
//! | `SessionManager(workspace_root)` | [`Stepwell::open`], or [`Stepwell::discover`] first |
//! | `SessionManager.save(state)` | [`Session::append`], [`Session::step`]: each step saves itself |
//! | `SessionManager.load(id)` | [`Stepwell::info`] to look, [`Stepwell::resume`] to continue |
//! | `SessionManager.list_sessions()` | [`Stepwell::list`]; damaged sessions are listed, not skipped |
//! | `SessionManager.cleanup(older_than_days)` | [`Stepwell::plan_cleanup`] and [`Stepwell::clean_up`], into the trash |
//! | `SessionManager.delete(id)` | [`Stepwell::delete`] into the trash, [`Stepwell::purge`] for good |
//! | `generate_session_id()` | [`Stepwell::new_id`], [`SessionId::generate`] |
//! | `FileSessionRepository(storage_dir)` | [`Stepwell::open`] |
//! | `FileSessionRepository.exists(id)` | `Store::exists` |
//! | `FileSessionRepository.save(state, spec)` | [`Session::append`]; the spec is [`Flow::spec`](crate::model::Flow::spec), in the first event |
//! | `FileSessionRepository.load(id)` | [`Stepwell::info`], [`Session::keyed_events`] for nodes |
//! | `FileSessionRepository.delete(id)` | [`Stepwell::delete`], [`Stepwell::purge`] |
//! | `FileSessionRepository.list_sessions()` | [`Stepwell::list`] |
//! | `FileSessionRepository.get_agents_dir(id)` | no folder: each agent's conversation is a [`Lane`], read with [`Session::view`] |
//! | `compute_spec_hash(path)` | [`Digest::of`](crate::model::Digest::of) over the spec's bytes |
//! | `now_iso8601()` | [`Stepwell::now`], which prints as ISO 8601 in UTC |

#[cfg(feature = "schema")]
pub mod schema;

pub mod backend;
pub mod clock;
pub mod error;
pub mod failpoint;
pub mod log;
pub mod model;
pub mod report;
pub mod sessions;
pub mod sqlite;
pub mod store;
pub mod trust;
pub mod upkeep;
pub mod work;

// What the first example needs, and what most programs start with.
pub use error::{Error, ErrorKind, Remedy, Result};
pub use log::View;
pub use model::{
    Created, Event, Lane, Message, NewEvent, Recorded, Seq, SessionId, Status, StopReason,
};
pub use sessions::{Acting, Session, Stepwell};
pub use store::{SessionInfo, Store};
