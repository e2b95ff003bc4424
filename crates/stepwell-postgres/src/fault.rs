//! What a server's or a connection's failure means for the one who asked.

use std::error::Error as _;
use std::path::Path;

use stepwell::Error;

/// What kind of trouble there was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DbError {
    /// Another transaction was in the way. Nothing was kept; the same may work at once.
    Again(String),
    /// The connection is gone, or the server is not one to write to. Another may do.
    Lost(String),
    /// This server prepares no statements for us: a pooler stands before it.
    Unprepared(String),
    /// The server says no, and will say it again.
    Refused { code: String, what: String },
    /// The address and the server do not fit together, and will not by waiting. What to do.
    Unfit(String),
}

impl DbError {
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            // The detail may repeat what was written; the message does not.
            Some(db) => Self::said_by_server(db.code().code(), db.message()),
            None => Self::met_by_client(error),
        }
    }

    /// What a server, or a pooler before it, answered.
    fn said_by_server(code: &str, what: &str) -> Self {
        if code.starts_with("08")
            && let Some(unfit) = told_by_pooler(what)
        {
            return Self::Unfit(unfit.to_owned());
        }
        let what = what.to_owned();
        match code {
            "57014" if what.contains("timeout") => Self::Unfit(format!("{what}: {TIMEOUT}")),
            // A serialization failure, a deadlock, a duplicate, a missing row, a lock, and a
            // statement that somebody stopped.
            "40001" | "40P01" | "23505" | "23503" | "55P03" | "57014" => Self::Again(what),
            "26000" | "42P05" => Self::Unprepared(what),
            "28000" | "28P01" => Self::Unfit(CREDENTIALS.to_owned()),
            "3D000" | "57P04" => Self::Unfit(DATABASE.to_owned()),
            // Of the server's going and coming, a standby, too many connections.
            "25006" | "53300" => Self::Lost(what),
            code if code.starts_with("08") || code.starts_with("57") => Self::Lost(what),
            code => Self::Refused { code: code.to_owned(), what },
        }
    }

    /// What went wrong before a server could answer.
    fn met_by_client(error: &tokio_postgres::Error) -> Self {
        // The driver tells its kinds of errors apart in words alone.
        let kind = error.to_string();
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        if kind.contains("invalid configuration") {
            return match cause.contains("password") {
                true => Self::Unfit(PASSWORD.to_owned()),
                false => Self::Unfit(cause),
            };
        }
        if kind.contains("authentication error") {
            return Self::Unfit(format!("{cause}: {CREDENTIALS}"));
        }
        let io = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
        let inner = io.and_then(std::io::Error::get_ref);
        let distrusted = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some();
        // The connection broke, or what came over it was not believed.
        match kind.contains("TLS") && (io.is_none() || distrusted) {
            true if cause.contains("CaUsedAsEndEntity") => Self::Unfit(LEAF.to_owned()),
            true => Self::Unfit(format!("{cause}: {TLS}")),
            false => Self::Lost(said(error)),
        }
    }

    /// The error of whoever has to give up.
    pub(crate) fn into_error(self, path: &Path, doing: &'static str) -> Error {
        let path = path.to_owned();
        match self {
            Self::Again(what) | Self::Unprepared(what) | Self::Unfit(what) => {
                Error::Database { path, doing, what }
            }
            Self::Lost(what) => Error::Io { path, doing, source: std::io::Error::other(what) },
            Self::Refused { code, what } => match code.as_str() {
                "53100" => Error::Full { path },
                "42501" => Error::Denied { path, doing },
                _ => Error::Database { path, doing, what: format!("{what} ({code})") },
            },
        }
    }

    /// The error of whoever cannot open the store. What was wrong then is the address, or
    /// the server's set-up; later, the same means that something could not be saved.
    pub(crate) fn on_opening(self, path: &Path) -> Error {
        match self {
            Self::Unfit(what) => Error::Unsupported { path: path.to_owned(), what },
            Self::Refused { code, .. } if code == "42501" => {
                Error::Unsupported { path: path.to_owned(), what: DENIED.to_owned() }
            }
            other => other.into_error(path, "opening the store"),
        }
    }
}

const CREDENTIALS: &str = "the server refused the user, the password or this machine; \
     export PGPASSWORD=…, or write both into the address: postgres://user:password@host/database";
const PASSWORD: &str = "the server asks for a password, and there is none; export PGPASSWORD=…";
const DATABASE: &str = "there is no such database; its owner makes it: \
     createdb --encoding UTF8 --template template0";
const DENIED: &str = "this role may not connect to it; its owner runs: GRANT CONNECT ON DATABASE";
const TIMEOUT: &str = "take statement_timeout out of the address's options, \
     or its owner runs: ALTER ROLE … RESET statement_timeout";
const LEAF: &str = "the server shows the certificate of an authority; it needs one of its own, \
     signed by that authority, which sslrootcert=/path/ca.pem then names";
const TLS: &str = "name the authority that vouches for the server with sslrootcert=/path/ca.pem, \
     and the server as its certificate does; sslmode=disable sends all in the clear";

/// What a pooler says for good. It has one class of codes for everything.
fn told_by_pooler(what: &str) -> Option<&'static str> {
    let any = |words: &[&str]| words.iter().any(|word| what.contains(word));
    if any(&["authentication failed", "no such user", "auth failed", "login rejected"]) {
        return Some(CREDENTIALS);
    }
    if any(&["no such database"]) {
        return Some(DATABASE);
    }
    match any(&["does not exist"]) {
        true if what.contains("database ") => Some(DATABASE),
        true if what.contains("role ") => Some(CREDENTIALS),
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_be_said_again_is_not_waited_for() {
        for (code, what) in [
            ("28P01", "password authentication failed for user \"zoe\""),
            ("28000", "no pg_hba.conf entry for host"),
            ("3D000", "database \"x\" does not exist"),
            ("57014", "canceling statement due to statement timeout"),
            ("57P04", "terminating connection because the database was dropped"),
            ("08P01", "SASL authentication failed"),
            ("08P01", "password authentication failed"),
            ("08P01", "no such user: zoe"),
            ("08P01", "no such database: x"),
            ("08P01", "server login failed: FATAL database \"x\" does not exist"),
            ("08P01", "server login failed: FATAL role \"zoe\" does not exist"),
        ] {
            let trouble = DbError::said_by_server(code, what);
            assert!(matches!(&trouble, DbError::Unfit(_)), "{code} {what}: {trouble:?}");
            let error = trouble.clone().on_opening("postgres://h/x".as_ref());
            assert_eq!(error.kind(), stepwell::ErrorKind::Incompatible, "{error}");
            assert!(!error.to_string().contains("zoe"), "{error}");
            // To a run that was at work it means that it could not save.
            let later = trouble.into_error("postgres://h/x".as_ref(), "writing");
            assert_eq!(later.kind(), stepwell::ErrorKind::Io, "{later}");
        }
    }

    #[test]
    fn a_statement_that_somebody_stopped_is_tried_again() {
        let trouble = DbError::said_by_server("57014", "canceling statement due to user request");
        assert!(matches!(&trouble, DbError::Again(_)), "{trouble:?}");
    }

    #[test]
    fn a_server_that_goes_or_comes_is_waited_for() {
        for (code, what) in [
            ("57P01", "terminating connection due to administrator command"),
            ("57P02", "terminating connection because of crash of another server process"),
            ("57P03", "the database system is starting up"),
            ("08006", "connection failure"),
            ("08P01", "server login has been failing, try again later (server_login_retry)"),
            ("08P01", "server login failed: FATAL the database system is starting up"),
            ("08P01", "pgbouncer cannot connect to server"),
            ("25006", "cannot execute UPDATE in a read-only transaction"),
            ("53300", "sorry, too many clients already"),
        ] {
            let trouble = DbError::said_by_server(code, what);
            assert!(matches!(&trouble, DbError::Lost(_)), "{code} {what}: {trouble:?}");
        }
    }
}
