//! `SQLiteSession` of OpenAI Agents: a table of sessions and one of their items, which are those
//! of the Responses API.

use std::path::Path;

use rusqlite::Connection;
use stepwell::Message;
use stepwell::model::{Part, Role, Time};

use super::conversation::{Conversation, Spoken, is_too_long, task_of, warning};
use crate::codex::item::{self, Item};
use crate::json::fields::{Fields, text_of};
use crate::read::foreign_database::{Opened, columns, fault, moment, open};
use crate::read::input::Input;
use crate::read::neutral::{Opening, Sink, Wanted};
use crate::{Error, Result};

/// The system's name in a session's source; the Python adapter's is the same.
pub(super) const SYSTEM: &str = "openai";

/// The tables, unless somebody named them otherwise.
const ITEMS: &str = "agent_messages";
const SESSIONS: &str = "agent_sessions";

/// Where `AdvancedSQLiteSession` says which branch an item is of.
const BRANCHES: &str = "message_structure";

/// How many items are looked at for what a session is about.
const FIRST: usize = 20;

/// Reads every session of a file.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let path = input.root();
    let Opened { connection, seen, .. } = &open(path)?;
    let fault = |error: rusqlite::Error| fault(path, &error);
    let Some(tables) = Tables::find(connection).map_err(fault)? else {
        let why = "it has no table of items (session_id, message_data)".to_owned();
        return Err(Error::Foreign { path: path.to_owned(), why });
    };
    for id in tables.sessions(connection).map_err(fault)? {
        if !sink.knows(&id, seen.as_ref())? {
            session(&Source { connection, path, tables: &tables }, &id, sink)?;
        }
    }
    Ok(())
}

/// The tables of a file.
struct Tables {
    /// The items, quoted.
    items: String,
    /// The sessions, quoted, if they have the name that they usually have.
    sessions: Option<String>,
    has_branches: bool,
}

impl Tables {
    fn find(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 \
             ORDER BY name <> ?1, name",
        )?;
        let names: Vec<String> =
            statement.query_map([ITEMS], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for name in names {
            let has = columns(connection, &name)?;
            let is_items = ["id", "session_id", "message_data", "created_at"]
                .iter()
                .all(|it| has.iter().any(|column| column == it));
            if is_items {
                let has_sessions = !columns(connection, SESSIONS)?.is_empty();
                let has_branches = !columns(connection, BRANCHES)?.is_empty();
                let items = quote(&name);
                let sessions = has_sessions.then(|| quote(SESSIONS));
                return Ok(Some(Self { items, sessions, has_branches }));
            }
        }
        Ok(None)
    }

    /// The names of the sessions, in the order in which they began.
    fn sessions(&self, connection: &Connection) -> rusqlite::Result<Vec<String>> {
        let sql =
            format!("SELECT session_id FROM {} GROUP BY session_id ORDER BY min(id)", self.items);
        connection.prepare(&sql)?.query_map([], |row| row.get(0))?.collect()
    }

    /// Which items of a session are told. Those of other branches are not the conversation.
    fn chosen(&self) -> &'static str {
        match self.has_branches {
            true => {
                "session_id = ?1 AND id NOT IN (SELECT message_id FROM message_structure \
                 WHERE session_id = ?1 AND branch_id <> 'main')"
            }
            false => "session_id = ?1",
        }
    }
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What is read.
struct Source<'a> {
    connection: &'a Connection,
    path: &'a Path,
    tables: &'a Tables,
}

fn session(source: &Source<'_>, id: &str, sink: &mut dyn Sink) -> Result<()> {
    let Source { connection, path, tables } = source;
    let fault = |error: rusqlite::Error| fault(path, &error);
    let mut opening = Opening::new(id, task(source, id).map_err(fault)?);
    (opening.started_at, opening.updated_at) = times(source, id).map_err(fault)?;
    if sink.begin(opening)? == Wanted::Known {
        return Ok(());
    }
    let (mut left_out, mut answer) = (Vec::new(), Answer::default());
    let mut told = Conversation::new(sink, SYSTEM);
    let sql = format!(
        "SELECT id, message_data, created_at, length(message_data) FROM {} WHERE {} ORDER BY id",
        tables.items,
        tables.chosen()
    );
    let mut statement = connection.prepare(&sql).map_err(fault)?;
    let mut rows = statement.query([id]).map_err(fault)?;
    while let Some(row) = rows.next().map_err(fault)? {
        let length: i64 = row.get(3).unwrap_or_default();
        let (number, data) = (row.get::<_, i64>(0).unwrap_or_default(), row.get::<_, String>(1));
        let at = row.get::<_, String>(2).ok().and_then(|text| moment(&text));
        match data {
            Ok(data) if !is_too_long(length) => answer.add(at, &data, &mut told)?,
            _ => left_out.push(number),
        }
    }
    answer.tell(&mut told)?;
    let branches = other_branches(source, id).map_err(fault)?;
    told.end(None)?;
    for number in left_out {
        let what = format!("item {number} of {id} is no text, or too long, and was left out");
        sink.warn(warning(path, what));
    }
    if !branches.is_empty() {
        let what = format!("other branches of {id} were left out: {}", branches.join(", "));
        sink.warn(warning(path, what));
    }
    Ok(())
}

/// Items of the model that belong together, before they become one message.
#[derive(Default)]
struct Answer {
    at: Option<Time>,
    parts: Vec<Part>,
    rest: Vec<String>,
}

impl Answer {
    /// The next item. What it says is told when the answer that it belongs to is whole.
    fn add(&mut self, at: Option<Time>, data: &str, told: &mut Conversation<'_>) -> Result<()> {
        match Fields::parse(data).ok().and_then(|item| understood(&item)) {
            Some(Item { role: Role::Assistant, parts, rest }) => {
                // A call's result stands between it and the next call.
                self.at = self.at.or(at);
                self.parts.extend(parts);
                self.rest.push(rest);
                Ok(())
            }
            Some(Item { role, parts, rest }) => {
                self.tell(told)?;
                let spoken = Spoken { message: Message::new(role, parts), rest: vec![rest] };
                told.say(at, spoken).map(drop)
            }
            None => {
                self.tell(told)?;
                told.keep(at, data.to_owned()).map(drop)
            }
        }
    }

    fn tell(&mut self, told: &mut Conversation<'_>) -> Result<()> {
        let Self { at, parts, rest } = std::mem::take(self);
        if parts.is_empty() {
            return Ok(());
        }
        told.say(at, Spoken { message: Message::new(Role::Assistant, parts), rest }).map(drop)
    }
}

/// An item as parts, if it says something. Besides what the API answers there is the short form that
/// people write: a role and a text.
fn understood(item: &Fields<'_>) -> Option<Item> {
    let is_message = item.text("type").is_none_or(|kind| kind == "message");
    let text = item.raw("content").and_then(text_of).filter(|_| is_message);
    let found = match (text, is_message && item.raw("type").is_none()) {
        (Some(text), _) => {
            let role = match item.text("role")?.as_ref() {
                "user" => Role::User,
                "assistant" => Role::Assistant,
                "developer" | "system" => Role::System,
                _ => return None,
            };
            let rest = item.rewritten(&[("content", Some("\"\""))]);
            Some(Item { role, parts: vec![Part::text(text)], rest })
        }
        (None, true) => {
            let typed = item.rewritten(&[]);
            let typed = crate::json::fields::with_fields(&typed, &[("type", "\"message\"")]);
            item::hollow(&Fields::parse(&typed).ok()?)
        }
        (None, false) => item::hollow(item),
    };
    let is_said =
        |part: &Part| !matches!(part, Part::Text(it) | Part::Thinking(it) if it.text.is_empty());
    found.filter(|item| item.parts.iter().any(is_said))
}

fn task(source: &Source<'_>, id: &str) -> rusqlite::Result<String> {
    let sql = format!(
        "SELECT message_data FROM {} WHERE {} AND length(message_data) < 1000000 ORDER BY id LIMIT {FIRST}",
        source.tables.items,
        source.tables.chosen()
    );
    let mut statement = source.connection.prepare(&sql)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let data: String = row.get(0).unwrap_or_default();
        let said = Fields::parse(&data).ok().and_then(|item| understood(&item));
        let said = said.map(|it| Message::new(it.role, it.parts));
        if let Some(task) = task_of(said.iter()) {
            return Ok(task);
        }
    }
    Ok(String::new())
}

/// When a session began, and when it changed last.
fn times(source: &Source<'_>, id: &str) -> rusqlite::Result<(Option<Time>, Option<Time>)> {
    let sql = match &source.tables.sessions {
        Some(sessions) => {
            format!("SELECT min(created_at), max(updated_at) FROM {sessions} WHERE session_id = ?1")
        }
        None => {
            let items = &source.tables.items;
            format!("SELECT min(created_at), max(created_at) FROM {items} WHERE session_id = ?1")
        }
    };
    source.connection.query_row(&sql, [id], |row| {
        let at = |n| row.get::<_, String>(n).ok().and_then(|text| moment(&text));
        Ok((at(0), at(1)))
    })
}

fn other_branches(source: &Source<'_>, id: &str) -> rusqlite::Result<Vec<String>> {
    if !source.tables.has_branches {
        return Ok(Vec::new());
    }
    let sql = "SELECT DISTINCT branch_id FROM message_structure \
               WHERE session_id = ?1 AND branch_id <> 'main' ORDER BY 1";
    source.connection.prepare(sql)?.query_map([id], |row| row.get(0))?.collect()
}
