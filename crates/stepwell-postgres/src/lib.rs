//! The store on PostgreSQL, so that many machines share sessions, hand them over and
//! survive the loss of one.
//!
//! ```no_run
//! use std::sync::Arc;
//! use stepwell::Stepwell;
//! use stepwell::sessions::Deps;
//! use stepwell_postgres::{Address, PostgresStore};
//!
//! let address = Address::parse("postgres://runs@db1,db2/runs?namespace=team-a")?;
//! let store = Arc::new(PostgresStore::open(address)?);
//! let well = Stepwell::with(store, Deps::default());
//! # Ok::<(), stepwell::Error>(())
//! ```
//!
//! What rows mean is written once, in `stepwell::backend`, for every store. Here is how
//! they are kept: an append is one statement, which moves the head on only if it is what
//! the append was made for; everything rarer is a transaction that locks what it changes.
//! docs/teams.md is the manual.

mod address;
mod append;
mod append_one;
mod draft;
mod engine;
mod fault;
mod feed;
mod follow;
mod foreign;
mod head_cache;
mod list;
mod maintain;
mod many_new;
mod order;
mod retention;
mod role;
mod rows;
mod schema;
mod search;
mod several;
mod status;
mod store;
mod transport;
mod write;
mod write_token;

pub use address::{Address, DEFAULT_NAMESPACE};
pub use foreign::ForeignTables;
pub use retention::{Retention, StoreOwner};
pub use role::script;
pub use schema::VERSION as SCHEMA_VERSION;
pub use status::{Durability, Role, Standby, Status};
pub use store::{PostgresOptions, PostgresStore};
