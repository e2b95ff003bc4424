//! Queries over all sessions: lists, counts and search.

use std::ops::Range;

use super::{Order, SessionInfo};
use crate::model::{Digest, Driver, Recorded, Role, Seq, SessionId, Status, Time};

/// Conditions on sessions. All that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these statuses, as they read now.
    pub status: Vec<Status>,
    /// This agent.
    pub agent: Option<String>,
    /// This model.
    pub model: Option<String>,
    /// All of these tags.
    pub tags: Vec<String>,
    /// This label.
    pub label: Option<String>,
    /// This text in the part of the task that the head repeats
    /// ([`PREVIEW_BYTES`](crate::log::PREVIEW_BYTES)), ignoring case. A search covers the whole
    /// task.
    pub task: Option<String>,
    /// This workspace.
    pub workspace: Option<String>,
    /// Imported from this system, or stored here by it.
    pub system: Option<String>,
    /// In this scope.
    pub scope: Option<InScope>,
    /// With this driver.
    pub driver: Option<Driver>,
    /// Of this origin.
    pub family: Family,
    /// Updated at this time or later.
    pub since: Option<Time>,
    /// Updated before this time.
    pub until: Option<Time>,
    /// An id with this prefix.
    pub prefix: Option<String>,
    /// An id whose [ending](SessionId::ending) starts with one of these. Any id if the list is
    /// empty.
    pub endings: Vec<String>,
    /// An id that contains this text.
    pub part: Option<String>,
    /// Only sessions with a running or interrupted rewind of files.
    pub rewinding: bool,
    /// In the trash or not.
    pub place: TrashScope,
    /// Whether ledger rows are included.
    pub rows: LedgerRows,
}

/// A query for records of one session by their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordQuery {
    /// The keys.
    pub keys: KeyRange,
    /// The order: the smallest keys first and, under one key, the oldest records; or the largest
    /// and newest first.
    pub order: Order,
    /// The most records to return.
    pub limit: usize,
}

/// A set of keys: whole [paths](crate::model::Record::path) of records, `system/topic/key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyRange {
    /// This key.
    Is(String),
    /// Keys with this prefix.
    StartsWith(String),
    /// Keys in a half-open range.
    Between {
        /// The first key.
        from: String,
        /// The end, excluded.
        to: String,
    },
}

impl KeyRange {
    /// The smallest key of the set, and the smallest key after it that is not in the set.
    #[must_use]
    pub fn ends(&self) -> (String, String) {
        match self {
            // No key lies between a key and the same key followed by the smallest character.
            Self::Is(key) => (key.clone(), format!("{key}\0")),
            Self::StartsWith(front) => (front.clone(), format!("{front}\u{10ffff}")),
            Self::Between { from, to } => (from.clone(), to.clone()),
        }
    }
}

impl RecordQuery {
    /// All records in a set of keys, the smallest keys first.
    #[must_use]
    pub const fn of(keys: KeyRange) -> Self {
        Self { keys, order: Order::Oldest, limit: usize::MAX }
    }

    /// The last records: those with the largest keys, newest first.
    #[must_use]
    pub const fn last(keys: KeyRange, limit: usize) -> Self {
        Self { keys, order: Order::Newest, limit }
    }
}

/// A query for the record with the largest key in a set, and the records that belong to it.
#[derive(Clone, Copy)]
pub struct NewestQuery<'a> {
    /// The keys.
    pub keys: &'a KeyRange,
    /// The keys of the records that belong to it.
    pub beside: &'a dyn Fn(&Recorded) -> KeyRange,
    /// The chain's value in an earlier answer.
    pub known: Option<Digest>,
}

/// The answer to a [`NewestQuery`].
#[derive(Clone, Debug)]
pub enum Newest {
    /// The session has not changed since the earlier answer.
    Unchanged,
    /// The session has no such record.
    Absent,
    /// The present records.
    Found {
        /// The session's chain, if it changes with every change to these records.
        chain: Option<Digest>,
        /// The newest record under the largest key.
        record: Box<Recorded>,
        /// The records that belong to it, the oldest first.
        beside: Vec<Recorded>,
    },
}

/// A condition on scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InScope {
    /// This scope.
    Is(String),
    /// Scopes with this prefix.
    StartsWith(String),
}

impl InScope {
    /// Parses what a user typed: `adk/app`, or a prefix followed by a star.
    #[must_use]
    pub fn read(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(front) => Self::StartsWith(front.to_owned()),
            None => Self::Is(text.to_owned()),
        }
    }
}

/// A condition on sessions' origins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Any origin.
    #[default]
    Any,
    /// Roots and forks, without subagents.
    Roots,
    /// Subagents and forks of this session.
    ChildrenOf(SessionId),
    /// Subagents of these sessions, and their subagents.
    Below(Vec<SessionId>),
}

/// A condition on the trash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrashScope {
    /// Not in the trash.
    #[default]
    Kept,
    /// In the trash.
    Trash,
    /// Either.
    Anywhere,
}

/// Whether a list includes ledger rows, which deleted sessions leave behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LedgerRows {
    /// Only sessions.
    #[default]
    Hidden,
    /// Sessions and rows.
    Included,
}

/// The sort key of a list. Equal sessions are ordered by their creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The time of the last event.
    #[default]
    Updated,
    /// The time of creation.
    Created,
    /// The cost.
    Cost,
    /// The number of steps.
    Steps,
}

/// A query for one page of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The conditions.
    pub filter: Filter,
    /// The sort key.
    pub sort: Sort,
    /// The order. For cost and steps, newest means largest.
    pub order: Order,
    /// The most sessions to return.
    pub limit: usize,
    /// The end of the previous page.
    pub after: Option<Cursor>,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            sort: Sort::default(),
            order: Order::default(),
            limit: usize::MAX,
            after: None,
        }
    }
}

/// The end of a page: a key and not a number of rows, so that new or deleted sessions do not shift
/// the next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cursor {
    /// The last session's sort value.
    pub value: i64,
    /// Its number in the store.
    pub key: i64,
}

/// One page of sessions.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// The cursor for the next page, if there may be one.
    pub next: Option<Cursor>,
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Words that must all occur, in any order, ignoring case. `"quoted words"` must be adjacent;
    /// `begin*` matches the start of a word. The last word may be incomplete, unless it is quoted.
    pub text: String,
    /// The sessions to search.
    pub filter: Filter,
    /// The order of the hits.
    pub rank: Rank,
    /// The most hits to return.
    pub limit: usize,
    /// Whether [`Stepwell::search`](crate::sessions::Stepwell::search) includes system prompts.
    pub system: SystemPrompts,
}

/// Whether system prompts are searched. Each session has one, and most are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SystemPrompts {
    /// Not searched.
    #[default]
    Skipped,
    /// Searched like other messages.
    Searched,
}

impl Search {
    /// A search for the newest 20 hits, in all sessions outside the trash.
    pub fn new(text: impl Into<String>) -> Self {
        let (filter, system) = (Filter::default(), SystemPrompts::Skipped);
        Self { text: text.into(), filter, rank: Rank::Newest, limit: 20, system }
    }
}

/// The order of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rank {
    /// Newest first.
    #[default]
    Newest,
    /// Most relevant first, among the newest 10,000: ranking reads every hit, and a common word has
    /// too many.
    Relevance,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The hits.
    pub hits: Vec<Hit>,
    /// Events that a store open for reading only could not search.
    pub unseen: u64,
}

/// One hit.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The session.
    pub session: SessionId,
    /// The event.
    pub seq: Seq,
    /// When the event happened.
    pub at: Time,
    /// The event's kind.
    pub kind: String,
    /// The role, if it is a message.
    pub role: Option<Role>,
    /// The system that the session was imported from, if it was. A store leaves it empty, and
    /// [`Stepwell::search`](crate::sessions::Stepwell::search) fills it in.
    pub source: Option<String>,
    /// The text around the first match.
    pub snippet: Snippet,
}

/// An excerpt with its matches. Only redacted text can become one: see
/// [`Shown`](crate::backend::Shown).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The text, on one line.
    pub(crate) text: String,
    /// The byte ranges of the matches.
    pub(crate) matches: Vec<Range<usize>>,
}

impl Snippet {
    /// The redacted text, on one line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The byte ranges of the matches.
    #[must_use]
    pub fn matches(&self) -> &[Range<usize>] {
        &self.matches
    }
}

impl Sort {
    /// The sort key as a number.
    fn value(self, info: &SessionInfo) -> i64 {
        let head = &info.head;
        match self {
            Self::Updated => head.updated_at.as_micros(),
            Self::Created => head.created_at.as_micros(),
            Self::Cost => i64::try_from(head.spent.cost.as_picos()).unwrap_or(i64::MAX),
            Self::Steps => i64::try_from(head.steps).unwrap_or(i64::MAX),
        }
    }
}

impl Page {
    /// The page that a query wants, from all matching sessions with their numbers in the store.
    pub(crate) fn cut(found: Vec<(i64, SessionInfo)>, query: &Query) -> Self {
        let entry = |(key, info): (i64, SessionInfo)| {
            (Cursor { value: query.sort.value(&info), key }, info)
        };
        let mut found: Vec<(Cursor, SessionInfo)> = found.into_iter().map(entry).collect();
        found.sort_by_key(|(at, _)| (at.value, at.key));
        if query.order == Order::Newest {
            found.reverse();
        }
        if let Some(last) = query.after {
            found.retain(|(at, _)| match query.order {
                Order::Newest => (at.value, at.key) < (last.value, last.key),
                Order::Oldest => (at.value, at.key) > (last.value, last.key),
            });
        }
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let next = found.last().filter(|_| more).map(|(at, _)| *at);
        Self { sessions: found.into_iter().map(|(_, info)| info).collect(), next }
    }
}
