//! The tools: a table of plain functions, and what is done around each of them.

mod compare;
mod files;
mod gates;
mod list;
mod manage;
mod read;
mod record;
mod search;
mod stats;

use std::fmt;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::files::{DiffInput, FileInput, file_at, session_diff};
use self::list::list_sessions;
pub(crate) use self::read::{EventInput, Form, ReadInput, read_event, read_session};
pub(crate) use self::search::{Ranked, SearchInput, search_sessions};

use crate::error::Result;
use crate::input;
use crate::outgoing::{Outgoing, Quoted};
use crate::server::Access;
use crate::stores::Stores;

/// What a tool needs of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Nothing: it only reads.
    Read,
    /// To be allowed.
    Needs(Access),
}

type Run = dyn Fn(&Stores, JsonObject) -> Result<Outgoing> + Send + Sync;

/// A tool.
#[derive(Clone)]
pub(crate) struct ToolForm {
    /// As clients see it.
    pub(crate) listed: Tool,
    /// What it needs.
    pub(crate) group: Group,
    /// What it does.
    pub(crate) run: Arc<Run>,
}

impl fmt::Debug for ToolForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolForm").field("name", &self.listed.name).finish_non_exhaustive()
    }
}

/// What a tool is called and for.
#[derive(Clone, Copy, Debug)]
struct About {
    name: &'static str,
    title: &'static str,
    description: &'static str,
}

/// What calling a writing tool twice does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// The same as calling it once.
    Same,
    /// It adds something else.
    Adds,
}

/// A tool that reads. Its answer is framed as quoted.
fn reads<I, O>(about: About, run: fn(&Stores, I) -> Result<O>) -> ToolForm
where
    I: DeserializeOwned + JsonSchema + 'static,
    O: Serialize + JsonSchema + 'static,
{
    let hints = ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
    let run = move |stores: &Stores, arguments| {
        let answer = Quoted::new(run(stores, input::read(arguments)?)?);
        Outgoing::new(&stores.redactor, &answer)
    };
    let listed = listed::<I, Quoted<O>>(about, hints);
    ToolForm { listed, group: Group::Read, run: Arc::new(run) }
}

/// A tool that writes, where the user allows it. Nothing that it does erases anything.
fn writes<I, O>(
    access: Access,
    about: About,
    again: Again,
    run: fn(&Stores, I) -> Result<O>,
) -> ToolForm
where
    I: DeserializeOwned + JsonSchema + 'static,
    O: Serialize + JsonSchema + 'static,
{
    let hints = ToolAnnotations::new().read_only(false).destructive(false).open_world(false);
    let hints = hints.idempotent(again == Again::Same);
    let run = move |stores: &Stores, arguments| {
        let answer = run(stores, input::read(arguments)?)?;
        Outgoing::new(&stores.redactor, &answer)
    };
    let listed = listed::<I, O>(about, hints);
    ToolForm { listed, group: Group::Needs(access), run: Arc::new(run) }
}

fn listed<I: JsonSchema, O: JsonSchema>(about: About, hints: ToolAnnotations) -> Tool {
    let About { name, title, description } = about;
    let mut hints = hints;
    hints.title = Some(title.to_owned());
    let taken = SchemaSettings::draft2020_12().for_deserialize();
    let given = SchemaSettings::draft2020_12().for_serialize();
    let input = taken.with(|it| it.inline_subschemas = true).into_generator();
    let input = input.into_root_schema_for::<I>();
    let output = given.into_generator().into_root_schema_for::<O>();
    let object = |schema: schemars::Schema| match schema.to_value() {
        serde_json::Value::Object(mut fields) => {
            // A type without fields says nothing of what it is.
            fields.entry("type").or_insert_with(|| "object".into());
            fields
        }
        _ => JsonObject::default(),
    };
    Tool::new(name, description, object(input))
        .with_title(title)
        .with_raw_output_schema(Arc::new(object(output)))
        .with_annotations(hints)
}

/// Every tool, allowed or not.
pub(crate) fn all_tools() -> Vec<ToolForm> {
    let mut tools = reading();
    tools.extend(record::tools());
    tools.extend(manage::tools());
    tools
}

fn reading() -> Vec<ToolForm> {
    let about = |name, title, description| About { name, title, description };
    vec![
        reads(
            about(
                "search_sessions",
                "Search sessions",
                "Full-text search in recorded agent sessions: tasks, messages, tool calls and \
                 their output, file paths, errors. Every word must occur; the last may be only \
                 begun; \"quoted words\" stand together. Each hit names its session and event.",
            ),
            search_sessions,
        ),
        reads(
            about(
                "list_sessions",
                "List sessions",
                "Lists recorded agent sessions, newest first: task, status, agent, model, cost.",
            ),
            list_sessions,
        ),
        reads(
            about(
                "read_session",
                "Read a session",
                "Reads a session at any point of it: as turns (what was said and which tools ran), \
                 as the view (what a model would be shown), or as events (all that was recorded).",
            ),
            read_session,
        ),
        reads(
            about(
                "read_event",
                "Read an event",
                "Reads one event of a session in full, a long one in stretches.",
            ),
            read_event,
        ),
        reads(
            about(
                "session_diff",
                "Show a session's changes",
                "What a session did to files, as unified diffs, between any two points of it.",
            ),
            session_diff,
        ),
        reads(
            about(
                "file_at",
                "Read a file at a point",
                "What a file that a session changed held at a point of the session.",
            ),
            file_at,
        ),
        reads(
            about(
                "compare_sessions",
                "Compare two sessions",
                "Lays two sessions side by side: where they part, how they went, what they cost, \
                 and how the files that they changed differ.",
            ),
            compare::compare_sessions,
        ),
        reads(
            about(
                "open_gates",
                "List open questions",
                "Lists questions and approvals that wait for a human. They cannot be answered \
                 here: an agent must not approve itself.",
            ),
            gates::open_gates,
        ),
        reads(
            about(
                "session_stats",
                "Count sessions and costs",
                "How sessions went and what they cost, by day, model and agent; or one session \
                 with its subagents.",
            ),
            stats::session_stats,
        ),
    ]
}
