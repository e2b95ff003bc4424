//! goose's database of sessions.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row as Columns};

use super::telling::{Row, Session, attributes, opening};
use crate::json::fields::{Fields, push_field, quoted};
use crate::read::foreign_database::{Opened, fault, open};
use crate::read::input::{Input, MAX_FILE_BYTES};
use crate::read::neutral::{Sink, Wanted, Warning};
use crate::{Error, Result};

/// Reads every session of a database.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let path = input.root();
    let Opened { connection, seen, .. } = &open(path)?;
    check(connection, path)?;
    let mut ids = Vec::new();
    {
        let mut statement = connection
            .prepare("SELECT id FROM sessions ORDER BY created_at, id")
            .map_err(|error| fault(path, &error))?;
        let mut rows = statement.query([]).map_err(|error| fault(path, &error))?;
        while let Some(row) = rows.next().map_err(|error| fault(path, &error))? {
            match row.get::<_, String>(0) {
                Ok(id) => ids.push(id),
                Err(_) => sink.warn(warning(path, "a session without a name was left out")),
            }
        }
    }
    let database = Database {
        connection,
        path,
        sessions: Table::of(connection, path, "sessions")?,
        messages: Table::of(connection, path, "messages")?,
    };
    for id in &ids {
        if !sink.knows(id, seen.as_ref())? {
            database.session(id, sink)?;
        }
    }
    Ok(())
}

/// A database, and what its tables hold.
struct Database<'a> {
    connection: &'a Connection,
    path: &'a Path,
    sessions: Table,
    messages: Table,
}

/// Are these the tables that are meant, and no views that could be without end?
fn check(connection: &Connection, path: &Path) -> Result<()> {
    let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND rootpage > 0 \
               AND name IN ('sessions', 'messages')";
    let tables: i64 =
        connection.query_row(sql, [], |row| row.get(0)).map_err(|error| fault(path, &error))?;
    match tables {
        2 => Ok(()),
        _ => Err(Error::Foreign {
            path: path.to_owned(),
            why: "it has no tables of sessions and messages".to_owned(),
        }),
    }
}

/// The columns of a table, to be asked for by name: versions have different ones.
struct Table {
    names: Vec<String>,
    list: String,
}

impl Table {
    fn of(connection: &Connection, path: &Path, table: &str) -> Result<Self> {
        let mut names = Vec::new();
        let fault = |error: rusqlite::Error| fault(path, &error);
        let mut statement =
            connection.prepare("SELECT name FROM pragma_table_info(?1)").map_err(fault)?;
        let mut rows = statement.query([table]).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            // A name that is no text is one that nobody gave.
            names.push(row.get::<_, String>(0).map_err(fault)?);
        }
        let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
        let list = names.iter().map(quoted).collect::<Vec<_>>().join(", ");
        Ok(Self { names, list })
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|found| found == name)
    }
}

impl Database<'_> {
    fn session(&self, id: &str, sink: &mut dyn Sink) -> Result<()> {
        let Self { connection, path, sessions, messages } = self;
        let fault = |error: rusqlite::Error| fault(path, &error);
        let sql = format!("SELECT {} FROM sessions WHERE id = ?1", sessions.list);
        let about = connection
            .query_row(&sql, [id], |row| Ok(object(row, sessions, &[])))
            .map_err(fault)?;
        let fields = Fields::parse(&about).unwrap_or_default();
        // Configurations are kept as text that is JSON.
        let model = fields.text("model_config_json").filter(|text| Fields::parse(text).is_ok());
        let described = match model {
            Some(model) => fields.rewritten(&[("model_config_json", Some(&model))]),
            None => about.clone(),
        };
        let described = Fields::parse(&described).unwrap_or_default();
        let opening = opening(id, &described, task(connection, id).map_err(fault)?);
        let provider = fields.text("provider_name").unwrap_or_default();
        if sink.begin(opening)? == Wanted::Known {
            return Ok(());
        }
        let mut oversize = Vec::new();
        let mut session = Session::new(sink, &provider);
        let sql = format!(
            "SELECT {}, length(content_json) FROM messages WHERE session_id = ?1 \
             ORDER BY created_timestamp, id",
            messages.list
        );
        let mut statement = connection.prepare(&sql).map_err(fault)?;
        let mut rows = statement.query([id]).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            let number = |at: Option<usize>| at.and_then(|at| row.get::<_, i64>(at).ok());
            let size = number(Some(messages.names.len())).unwrap_or(0);
            if size > i64::try_from(MAX_FILE_BYTES).unwrap_or(i64::MAX) {
                oversize.push(number(messages.index("id")).unwrap_or_default());
                continue;
            }
            let text = |name: &str| row.get::<_, String>(messages.index(name)?).ok();
            let (role, content) = (text("role"), text("content_json"));
            session.row(&Row {
                role: role.as_deref().unwrap_or_default(),
                content: content.as_deref().unwrap_or("null"),
                created: number(messages.index("created_timestamp")),
                metadata: text("metadata_json").as_deref(),
                rest: &object(row, messages, &["content_json", "role", "session_id"]),
            })?;
        }
        session.end(&about, attributes(&fields))?;
        for row in oversize {
            let what = format!("message {row} of {id} is too long, and was left out");
            sink.warn(warning(path, &what));
        }
        Ok(())
    }
}

fn task(connection: &Connection, id: &str) -> rusqlite::Result<String> {
    let sql = "SELECT content_json FROM messages WHERE session_id = ?1 AND role = 'user' \
               AND length(content_json) < 1000000 ORDER BY created_timestamp, id LIMIT 5";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let content: String = row.get(0).unwrap_or_default();
        let message = format!(r#"{{"role":"user","content":{content}}}"#);
        let asked = Fields::parse(&message).ok().and_then(|it| super::file::asked(&it));
        if let Some(asked) = asked {
            return Ok(asked);
        }
    }
    Ok(String::new())
}

/// A row as a JSON object, without some of its columns.
fn object(row: &Columns<'_>, table: &Table, without: &[&str]) -> String {
    let mut object = String::from("{");
    for (n, name) in table.names.iter().enumerate() {
        if without.contains(&name.as_str()) {
            continue;
        }
        let raw = match row.get_ref(n) {
            Ok(ValueRef::Integer(number)) => number.to_string(),
            Ok(ValueRef::Real(number)) => {
                serde_json::to_string(&number).unwrap_or_else(|_| "null".to_owned())
            }
            Ok(ValueRef::Text(text)) => quoted(&String::from_utf8_lossy(text)),
            Ok(ValueRef::Blob(bytes)) => quoted(&String::from_utf8_lossy(bytes)),
            Ok(ValueRef::Null) | Err(_) => "null".to_owned(),
        };
        push_field(&mut object, name, &raw);
    }
    object.push('}');
    object
}

fn warning(path: &Path, what: &str) -> Warning {
    Warning { place: path.display().to_string(), what: what.to_owned() }
}
