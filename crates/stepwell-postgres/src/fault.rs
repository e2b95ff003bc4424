//! What a server's or a connection's failure means for the one who asked.

use std::path::Path;

use stepwell::Error;
use tokio_postgres::error::SqlState;

/// What kind of trouble there was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Another transaction was in the way. Nothing was kept; the same may work at once.
    Again(String),
    /// The connection is gone, or the server is not one to write to. Another may do.
    Lost(String),
    /// This server prepares no statements for us: a pooler stands before it.
    Unprepared(String),
    /// The server says no, and will say it again.
    Refused { code: String, what: String },
}

impl Trouble {
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            return Self::Lost(said(error));
        };
        // The detail may repeat what was written; the message does not.
        let (code, what) = (db.code(), db.message().to_owned());
        let class = &code.code()[..2.min(code.code().len())];
        if *code == SqlState::T_R_SERIALIZATION_FAILURE
            || *code == SqlState::T_R_DEADLOCK_DETECTED
            || *code == SqlState::UNIQUE_VIOLATION
            || *code == SqlState::FOREIGN_KEY_VIOLATION
            || *code == SqlState::LOCK_NOT_AVAILABLE
        {
            return Self::Again(what);
        }
        if *code == SqlState::INVALID_SQL_STATEMENT_NAME || *code == SqlState::DUPLICATE_PSTATEMENT
        {
            return Self::Unprepared(what);
        }
        let away = class == "08"
            || class == "57"
            || *code == SqlState::READ_ONLY_SQL_TRANSACTION
            || *code == SqlState::TOO_MANY_CONNECTIONS;
        if away {
            return Self::Lost(what);
        }
        Self::Refused { code: code.code().to_owned(), what }
    }

    /// A pool that gave no connection.
    pub(crate) fn of_pool(error: &deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => Self::of(error),
            other => Self::Lost(other.to_string()),
        }
    }

    /// The error of whoever has to give up.
    pub(crate) fn into_error(self, path: &Path, doing: &'static str) -> Error {
        let path = path.to_owned();
        match self {
            Self::Again(what) | Self::Unprepared(what) => Error::Database { path, doing, what },
            Self::Lost(what) => Error::Io { path, doing, source: std::io::Error::other(what) },
            Self::Refused { code, what } => match code.as_str() {
                "53100" => Error::Full { path },
                "42501" => Error::Denied { path, doing },
                "28000" | "28P01" => {
                    let what = "the server refused the user or the password".to_owned();
                    Error::Unsupported { path, what }
                }
                "3D000" => {
                    Error::Unsupported { path, what: "there is no such database".to_owned() }
                }
                _ => Error::Database { path, doing, what: format!("{what} ({code})") },
            },
        }
    }
}

/// All that an error says, without the word "error" twice.
pub(crate) fn said(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}
