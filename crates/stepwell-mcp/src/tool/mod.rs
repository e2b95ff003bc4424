//! The table of tools.

mod compare;
mod files;
pub(crate) mod form;
mod gates;
mod list;
mod manage;
mod one_type;
mod read;
mod record;
mod search;
mod stats;

pub(crate) use self::files::{DiffInput, FileInput, file_at, session_diff};
use self::form::{About, ToolForm, reads};
use self::list::list_sessions;
pub(crate) use self::read::{EventInput, Form, ReadInput, read_event, read_session};
pub(crate) use self::search::{Ranked, SearchInput, search_sessions};

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
                 their output, file paths, errors. Every word must occur; the last one may be a \
                 prefix; \"quoted words\" must be adjacent. Each hit names its session and event.",
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
                "Reads a session at any of its points: as turns (messages and tool calls), as the \
                 view (what a model would be sent), or as events (everything recorded).",
            ),
            read_session,
        ),
        reads(
            about(
                "read_event",
                "Read an event",
                "Reads one event of a session in full, a long one in parts.",
            ),
            read_event,
        ),
        reads(
            about(
                "session_diff",
                "Show a session's changes",
                "A session's file changes as unified diffs, between any two of its points.",
            ),
            session_diff,
        ),
        reads(
            about(
                "file_at",
                "Read a file at a point",
                "A changed file's content at a point of the session.",
            ),
            file_at,
        ),
        reads(
            about(
                "compare_sessions",
                "Compare two sessions",
                "Compares two sessions: where they diverge, their outcomes and costs, and the \
                 differences between their files.",
            ),
            compare::compare_sessions,
        ),
        reads(
            about(
                "open_gates",
                "List open questions",
                "Lists questions and approvals that wait for a person. They cannot be answered \
                 here: an agent must not approve its own calls.",
            ),
            gates::open_gates,
        ),
        reads(
            about(
                "session_stats",
                "Count sessions and costs",
                "Outcomes and costs of sessions, by day, model and agent; or one session with its \
                 subagents.",
            ),
            stats::session_stats,
        ),
    ]
}
