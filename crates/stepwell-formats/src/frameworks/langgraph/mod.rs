//! LangGraph's `SqliteSaver`: a row for each checkpoint, which holds the whole state, and one for each
//! write of a task. And its `PostgresSaver`, of whose tables a copy is read: see [`tables`].
//!
//! Told is the conversation, through all checkpoints of a thread in their order: what a later one adds
//! is said, and where it goes on from an earlier point, or has replaced or removed messages, the log
//! goes back. What else the newest checkpoint holds is kept with the session.

mod message;
mod tables;
mod value;

pub use tables::{Cells, LangGraphTables};

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, Row};
use serde_json::{Map, Value, json};
use stepwell::Seq;
use stepwell::model::{Digest, Time};

use super::conversation::{Conversation, is_too_long, task_of, text, warning};
use crate::read::foreign_database::{Opened, columns, fault, open};
use crate::read::input::{Input, MAX_FILE_BYTES};
use crate::read::neutral::{Opening, Sink, Wanted};
use crate::{Error, Result};
use message::{is_message, is_removal};

/// The system's name in a session's source; the Python adapter's is the same.
pub(super) const SYSTEM: &str = "langgraph";

/// The channel that messages are in, unless a graph says otherwise.
const MESSAGES: &str = "messages";

/// What stands for every message, where one is to be removed.
const ALL: &str = "__remove_all__";

/// How many checkpoints are looked at for what a thread is about.
const FIRST: usize = 8;

/// Reads every thread of a database.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let path = input.root();
    let Opened { connection, seen, .. } = &open(path)?;
    let fault = |error: rusqlite::Error| fault(path, &error);
    let has = columns(connection, "checkpoints").map_err(fault)?;
    let wanted = ["thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint", "metadata"];
    if !wanted.iter().all(|name| has.iter().any(|it| it == name)) {
        let why = "it has no table of checkpoints".to_owned();
        return Err(Error::Foreign { path: path.to_owned(), why });
    }
    let form = match columns(connection, tables::BLOBS).map_err(fault)?.is_empty() {
        true => Form::Whole,
        false => Form::Apart,
    };
    let writes = columns(connection, form.writes().0).map_err(fault)?;
    let has_paths = writes.iter().any(|it| it == "task_path");
    let source = Source { connection, path, form, has_writes: !writes.is_empty(), has_paths };
    let mut checkpoints = 0;
    for thread in source.threads().map_err(fault)? {
        if !sink.knows(&thread, seen.as_ref())? {
            checkpoints += source.thread(&thread, sink)?;
        }
    }
    if checkpoints > 0 {
        let what = format!(
            "{checkpoints} checkpoints: what was said in them came over, and they did not; \
             stepwell.langgraph.copy_checkpoints in Python copies them, so that a graph goes on"
        );
        sink.warn(warning(path, what));
    }
    Ok(())
}

/// What is read.
struct Source<'a> {
    connection: &'a Connection,
    path: &'a Path,
    form: Form,
    has_writes: bool,
    /// Does each write say where its task stands among others?
    has_paths: bool,
}

/// How checkpoints are kept.
#[derive(Clone, Copy)]
enum Form {
    /// Each with all of its values, as on SQLite.
    Whole,
    /// Values in rows of their own, as on PostgreSQL.
    Apart,
}

impl Form {
    /// The table of what tasks wrote, and its column of values.
    const fn writes(self) -> (&'static str, &'static str) {
        match self {
            Self::Whole => ("writes", "value"),
            Self::Apart => (tables::WRITES, "blob"),
        }
    }
}

/// A checkpoint of a thread.
struct Checkpoint {
    id: String,
    parent: Option<String>,
    at: Option<Time>,
    values: Map<String, Value>,
    /// Why some of its values are not here.
    left_out: Option<String>,
    metadata: Value,
}

impl Source<'_> {
    fn threads(&self) -> rusqlite::Result<Vec<String>> {
        let sql =
            "SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY min(checkpoint_id)";
        self.connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    }

    /// Tells a thread. The answer is how many checkpoints it has.
    fn thread(&self, thread: &str, sink: &mut dyn Sink) -> Result<u64> {
        let newest = self.newest(thread, "")?;
        let (mut first, mut task) = (None, None);
        self.checkpoints(thread, Some(FIRST), |found| {
            let Ok(found) = found else { return Ok(()) };
            first = first.or(found.at);
            let said: Vec<_> =
                messages_in(&found.values).iter().filter_map(message::message).collect();
            task = task.take().or_else(|| task_of(said.iter().map(|it| &it.message)));
            Ok(())
        })?;
        let mut opening = Opening::new(thread, task.unwrap_or_default());
        opening.started_at = first;
        opening.updated_at = newest.as_ref().and_then(|newest| newest.at);
        if sink.begin(opening)? == Wanted::Known {
            return Ok(0);
        }
        let (mut count, mut unread) = (0, BTreeMap::<String, u64>::new());
        let mut incomplete = BTreeMap::<String, u64>::new();
        let mut telling = ThreadReader::new(Conversation::new(sink, SYSTEM));
        self.checkpoints(thread, None, |found| match found {
            Err(why) => {
                *unread.entry(why).or_default() += 1;
                Ok(())
            }
            Ok(found) => {
                count += 1;
                if let Some(why) = &found.left_out {
                    *incomplete.entry(why.clone()).or_default() += 1;
                }
                let list = self.list_at(thread, &found, &telling)?;
                telling.checkpoint(&found, list)
            }
        })?;
        let channel = telling.channel.clone();
        let state = self.state(thread, newest, channel.as_deref())?;
        let is_whole = u64::try_from(state.len()).is_ok_and(|it| it <= MAX_FILE_BYTES);
        telling.told.end(is_whole.then_some(state))?;
        if !is_whole {
            let what = format!("the state of thread {thread} is too long, and was left out");
            sink.warn(warning(self.path, what));
        }
        for (why, count) in unread {
            let what = format!("{count} checkpoints of thread {thread} were left out: {why}");
            sink.warn(warning(self.path, what));
        }
        for (why, count) in incomplete {
            let what =
                format!("{count} checkpoints of thread {thread} came without a value: {why}");
            sink.warn(warning(self.path, what));
        }
        Ok(count)
    }

    /// Each checkpoint of a thread's own graph, in order; why, in place of one that cannot be read.
    fn checkpoints(
        &self,
        thread: &str,
        most: Option<usize>,
        mut each: impl FnMut(Result<Checkpoint, String>) -> Result<()>,
    ) -> Result<()> {
        let fault = |error: rusqlite::Error| fault(self.path, &error);
        let limit = most.map_or_else(String::new, |most| format!(" LIMIT {most}"));
        let sql = format!(
            "SELECT {COLUMNS} FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = '' \
             ORDER BY checkpoint_id{limit}"
        );
        let mut statement = self.connection.prepare(&sql).map_err(fault)?;
        let mut rows = statement.query([thread]).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            each(self.checkpoint(row, thread, ""))?;
        }
        Ok(())
    }

    /// The newest checkpoint of a namespace, if it can be read.
    fn newest(&self, thread: &str, namespace: &str) -> Result<Option<Checkpoint>> {
        let fault = |error: rusqlite::Error| fault(self.path, &error);
        let sql = format!(
            "SELECT {COLUMNS} FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2 \
             ORDER BY checkpoint_id DESC LIMIT 1"
        );
        let mut statement = self.connection.prepare(&sql).map_err(fault)?;
        let mut rows = statement.query([thread, namespace]).map_err(fault)?;
        let row = rows.next().map_err(fault)?;
        Ok(row.and_then(|row| self.checkpoint(row, thread, namespace).ok()))
    }

    /// What a row of checkpoints says; or why it cannot be read.
    fn checkpoint(
        &self,
        row: &Row<'_>,
        thread: &str,
        namespace: &str,
    ) -> Result<Checkpoint, String> {
        let wrong = |error: rusqlite::Error| error.to_string();
        if is_too_long(row.get(5).map_err(wrong)?) {
            return Err(format!("they have more than {MAX_FILE_BYTES} bytes"));
        }
        let kind: Option<String> = row.get(2).map_err(wrong)?;
        let bytes = bytes_of(row, 3).map_err(wrong)?;
        let whole = value::decode(kind.as_deref().unwrap_or("json"), &bytes)?;
        let at = text(&whole, "ts").and_then(|text| text.parse().ok());
        let (values, left_out) = match self.form {
            Form::Apart => {
                tables::values(self.connection, thread, namespace, &whole).map_err(wrong)?
            }
            Form::Whole => match whole.get("channel_values").cloned() {
                Some(Value::Object(values)) => (values, None),
                _ => return Err("they hold no values".to_owned()),
            },
        };
        let metadata = bytes_of(row, 4).map_err(wrong)?;
        let metadata = serde_json::from_slice(&metadata).unwrap_or_default();
        let (id, parent) = (row.get(0).map_err(wrong)?, row.get(1).map_err(wrong)?);
        Ok(Checkpoint { id, parent, at, values, left_out, metadata })
    }

    /// The messages at a checkpoint. A channel that is kept as what changed is not in it: then they
    /// are those of the one before it, with what was written there.
    fn list_at(
        &self,
        thread: &str,
        found: &Checkpoint,
        telling: &ThreadReader<'_>,
    ) -> Result<Option<Vec<Value>>> {
        if let Some(list) = telling.list(found) {
            return Ok(Some(list));
        }
        let is_delta = found.metadata.get("counters_since_delta_snapshot").is_some();
        let Some(parent) = found.parent.as_deref().filter(|_| is_delta && self.has_writes) else {
            return Ok(None);
        };
        let channel = telling.channel.as_deref().unwrap_or(MESSAGES);
        let mut list = telling.list.clone();
        for value in self.writes(thread, parent, channel)? {
            match value {
                Value::Array(several) => several.into_iter().for_each(|it| merge(&mut list, it)),
                one => merge(&mut list, one),
            }
        }
        Ok(Some(list))
    }

    /// What tasks wrote to a channel, in the order in which it counts.
    fn writes(&self, thread: &str, checkpoint: &str, channel: &str) -> Result<Vec<Value>> {
        let fault = |error: rusqlite::Error| fault(self.path, &error);
        let order = if self.has_paths { "task_path, task_id, idx" } else { "task_id, idx" };
        let (table, value) = self.form.writes();
        let sql = format!(
            "SELECT type, {value} FROM {table} WHERE thread_id = ?1 AND checkpoint_ns = '' \
             AND checkpoint_id = ?2 AND channel = ?3 ORDER BY {order}"
        );
        let mut statement = self.connection.prepare(&sql).map_err(fault)?;
        let mut rows = statement.query([thread, checkpoint, channel]).map_err(fault)?;
        let mut values = Vec::new();
        while let Some(row) = rows.next().map_err(fault)? {
            let (kind, bytes) = (row.get::<_, String>(0), row.get::<_, Vec<u8>>(1));
            if let (Ok(kind), Ok(bytes)) = (kind, bytes) {
                values.extend(value::decode(&kind, &bytes));
            }
        }
        Ok(values)
    }

    /// What a thread keeps besides its conversation: other channels, what waits for an answer, and the
    /// states of subgraphs.
    fn state(
        &self,
        thread: &str,
        newest: Option<Checkpoint>,
        channel: Option<&str>,
    ) -> Result<String> {
        let fault = |error: rusqlite::Error| fault(self.path, &error);
        let mut state = Map::new();
        if let Some(mut newest) = newest {
            if let Some(channel) = channel {
                newest.values.remove(channel);
            }
            if self.has_writes {
                let waits = self.writes(thread, &newest.id, "__interrupt__")?;
                state.insert("interrupts".to_owned(), waits.into());
            }
            state.insert("checkpoint_id".to_owned(), newest.id.into());
            state.insert("channel_values".to_owned(), newest.values.into());
            state.insert("metadata".to_owned(), newest.metadata);
        }
        let sql = "SELECT DISTINCT checkpoint_ns FROM checkpoints \
                   WHERE thread_id = ?1 AND checkpoint_ns <> '' ORDER BY 1";
        let mut statement = self.connection.prepare(sql).map_err(fault)?;
        let names = statement.query_map([thread], |row| row.get::<_, String>(0)).map_err(fault)?;
        let names = names.collect::<Result<Vec<_>, _>>().map_err(fault)?;
        let mut inner = Map::new();
        for name in names {
            if let Some(newest) = self.newest(thread, &name)? {
                inner.insert(
                    name,
                    json!({"checkpoint_id": newest.id, "channel_values": newest.values}),
                );
            }
        }
        if !inner.is_empty() {
            state.insert("subgraphs".to_owned(), inner.into());
        }
        Ok(Value::Object(state).to_string())
    }
}

const COLUMNS: &str =
    "checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata, length(checkpoint)";

/// A column's bytes, of a text as well; none, if it is neither.
fn bytes_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u8>> {
    use rusqlite::types::ValueRef;
    Ok(match row.get_ref(column)? {
        ValueRef::Text(it) | ValueRef::Blob(it) => it.to_owned(),
        _ => Vec::new(),
    })
}

/// The channel that holds the conversation, if one does: a list of nothing but messages.
fn channel_of(values: &Map<String, Value>) -> Option<&str> {
    let is_list = |value: &&Value| {
        value.as_array().is_some_and(|it| !it.is_empty() && it.iter().all(is_message))
    };
    let usual = values.get_key_value(MESSAGES).filter(|(_, value)| is_list(value));
    let found = usual
        .or_else(|| values.iter().find(|(name, value)| !name.starts_with("__") && is_list(value)));
    found.map(|(name, _)| name.as_str())
}

/// The messages of a state, wherever they are.
fn messages_in(values: &Map<String, Value>) -> Vec<Value> {
    let list = channel_of(values).and_then(|channel| values[channel].as_array());
    list.cloned().unwrap_or_default()
}

/// Adds a message as a graph does: in the place of one that has its id, else at the end.
fn merge(list: &mut Vec<Value>, message: Value) {
    if !is_message(&message) {
        return;
    }
    let id = text(&message, "id").map(str::to_owned);
    let same = |it: &Value| id.is_some() && text(it, "id") == id.as_deref();
    match (is_removal(&message), list.iter().position(same)) {
        (true, _) if id.as_deref() == Some(ALL) => list.clear(),
        (true, Some(at)) => drop(list.remove(at)),
        (true, None) => {}
        (false, Some(at)) => list[at] = message,
        (false, None) => list.push(message),
    }
}

/// A thread as it is told.
struct ThreadReader<'a> {
    told: Conversation<'a>,
    /// The channel that the conversation is in, once it is known.
    channel: Option<String>,
    /// The conversation as it is now.
    list: Vec<Value>,
    /// What tells each of its messages from others, and the place where it ends.
    places: Vec<(Digest, Seq)>,
}

impl<'a> ThreadReader<'a> {
    fn new(told: Conversation<'a>) -> Self {
        Self { told, channel: None, list: Vec::new(), places: Vec::new() }
    }

    /// The messages that a checkpoint itself holds.
    fn list(&self, found: &Checkpoint) -> Option<Vec<Value>> {
        let channel = self.channel.as_deref().or_else(|| channel_of(&found.values))?;
        let list = found.values.get(channel)?.as_array()?;
        list.iter().all(is_message).then(|| list.clone())
    }

    /// Tells what a checkpoint adds to the conversation.
    fn checkpoint(&mut self, found: &Checkpoint, list: Option<Vec<Value>>) -> Result<()> {
        let Some(list) = list else { return Ok(()) };
        if self.channel.is_none() {
            self.channel = channel_of(&found.values).map(str::to_owned);
        }
        let digests: Vec<Digest> =
            list.iter().map(|message| Digest::of(message.to_string().as_bytes())).collect();
        let known = self.places.iter().map(|(digest, _)| digest);
        let same = known.zip(&digests).take_while(|(known, found)| known == found).count();
        if same < self.places.len() {
            let to = same.checked_sub(1).map_or(Seq::FIRST, |last| self.places[last].1);
            self.told.go_back(found.at, to)?;
            self.places.truncate(same);
        }
        for (digest, message) in digests.into_iter().zip(&list).skip(same) {
            let end = match message::message(message) {
                Some(spoken) => self.told.say(found.at, spoken)?,
                None => self.told.keep(found.at, message.to_string())?,
            };
            self.places.push((digest, end));
        }
        self.list = list;
        Ok(())
    }
}
