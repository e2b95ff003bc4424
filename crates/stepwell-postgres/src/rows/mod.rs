//! Rows in PostgreSQL, within one transaction.

pub(crate) mod blob;
mod contract;
mod events;
mod pg_rows;
mod sessions;

pub(crate) use events::{EVENT_COLUMNS, EVENT_WIDTH, read_event, version_column};
pub(crate) use pg_rows::{Lock, PgRows, Within, json, number, seq};
pub(crate) use sessions::{
    SESSION_COLUMNS, SESSION_TABLES, SESSION_WIDTH, Wide, cost_column, digest, read_session,
    same_cold, signed,
};
