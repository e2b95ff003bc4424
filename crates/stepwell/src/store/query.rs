//! Questions over all sessions: lists, counts and search.

use std::ops::Range;

use super::{Order, SessionInfo};
use crate::model::{Digest, Driver, Recorded, Role, Seq, SessionId, Status, Time};

/// Which sessions are meant. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these, as the status reads now.
    pub status: Vec<Status>,
    /// This agent.
    pub agent: Option<String>,
    /// This model.
    pub model: Option<String>,
    /// All of these tags.
    pub tags: Vec<String>,
    /// This label.
    pub label: Option<String>,
    /// This text in the front of the task that the head repeats
    /// ([`PREVIEW_BYTES`](crate::log::PREVIEW_BYTES)), whatever its case. A search sees all of it.
    pub task: Option<String>,
    /// This workspace.
    pub workspace: Option<String>,
    /// Imported from this system, or kept here by it.
    pub system: Option<String>,
    /// Belonging to such a scope.
    pub scope: Option<InScope>,
    /// Moved on by such a driver.
    pub driver: Option<Driver>,
    /// Where they come from.
    pub family: Family,
    /// Updated at this time or later.
    pub since: Option<Time>,
    /// Updated before this time.
    pub until: Option<Time>,
    /// An id that begins so.
    pub prefix: Option<String>,
    /// An id whose [ending](SessionId::ending) begins with one of these; any, if there are none.
    pub endings: Vec<String>,
    /// An id with this text in it.
    pub part: Option<String>,
    /// Only those whose files a rewind moves, or left half moved.
    pub rewinding: bool,
    /// In the trash or not.
    pub place: TrashScope,
    /// Sessions alone, or rows of the ledger as well.
    pub rows: LedgerRows,
}

/// A question for records of one session, by their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordQuery {
    /// Under which keys.
    pub keys: KeyRange,
    /// Which come first: the smallest keys and, under one key, the oldest records; or the
    /// largest and the newest.
    pub order: Order,
    /// At most this many.
    pub limit: usize,
}

/// Which keys are meant: a record's whole [path](crate::model::Record::path), `system/topic/key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyRange {
    /// This one.
    Is(String),
    /// Those that begin so.
    StartsWith(String),
    /// Those from one on, up to another that is not meant.
    Between {
        /// The first.
        from: String,
        /// The end, which is not meant.
        to: String,
    },
}

impl KeyRange {
    /// The first key that may be meant, and the first one behind that is not.
    #[must_use]
    pub fn ends(&self) -> (String, String) {
        match self {
            // No key is between one and the same with the first character behind.
            Self::Is(key) => (key.clone(), format!("{key}\0")),
            Self::StartsWith(front) => (front.clone(), format!("{front}\u{10ffff}")),
            Self::Between { from, to } => (from.clone(), to.clone()),
        }
    }
}

impl RecordQuery {
    /// All records under some keys, the smallest keys first.
    #[must_use]
    pub const fn of(keys: KeyRange) -> Self {
        Self { keys, order: Order::Oldest, limit: usize::MAX }
    }

    /// The last of them: the newest under the largest key.
    #[must_use]
    pub const fn last(keys: KeyRange, limit: usize) -> Self {
        Self { keys, order: Order::Newest, limit }
    }
}

/// The record under the largest of some keys is asked for, and others that lie beside it.
#[derive(Clone, Copy)]
pub struct NewestQuery<'a> {
    /// Under which keys.
    pub keys: &'a KeyRange,
    /// Which records belong to it.
    pub beside: &'a dyn Fn(&Recorded) -> KeyRange,
    /// The chain's value of an earlier answer.
    pub known: Option<Digest>,
}

/// What a [`NewestQuery`] is answered.
#[derive(Clone, Debug)]
pub enum Newest {
    /// Nothing was written to the session since the answer that is known.
    Unchanged,
    /// There is no such record.
    Absent,
    /// What is there now.
    Found {
        /// The session's chain, if it tells of each change to these records.
        chain: Option<Digest>,
        /// The newest record under the largest key.
        record: Box<Recorded>,
        /// Those that belong to it, the oldest first.
        beside: Vec<Recorded>,
    },
}

/// Which scopes are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InScope {
    /// This one.
    Is(String),
    /// Those that begin so.
    StartsWith(String),
}

impl InScope {
    /// What a user means: `adk/app`, or with a star at its end those that begin so.
    #[must_use]
    pub fn read(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(front) => Self::StartsWith(front.to_owned()),
            None => Self::Is(text.to_owned()),
        }
    }
}

/// Where sessions come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Anywhere.
    #[default]
    Any,
    /// A user: roots and forks, not subagents.
    Roots,
    /// This session: its subagents and its forks.
    ChildrenOf(SessionId),
    /// These sessions, as their subagents, or as subagents of those.
    Below(Vec<SessionId>),
}

/// In the trash or not.
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

/// Whether a list has rows of the ledger: what stays of sessions that are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LedgerRows {
    /// Sessions alone.
    #[default]
    Hidden,
    /// Both.
    Included,
}

/// What a list is sorted by; sessions that are equal there, by birth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// When something was last recorded.
    #[default]
    Updated,
    /// When it began.
    Created,
    /// What it cost.
    Cost,
    /// How many steps it took.
    Steps,
}

/// A question for one page of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Which sessions are wanted.
    pub filter: Filter,
    /// Sorted by.
    pub sort: Sort,
    /// Which come first; for cost and steps, newest means the largest.
    pub order: Order,
    /// At most this many.
    pub limit: usize,
    /// Where the page before ended.
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

/// Where a page ended: a key, not a number of rows, so that sessions that come or
/// go do not shift the next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cursor {
    /// The last session's sorted value.
    pub value: i64,
    /// Its place by birth.
    pub key: i64,
}

/// One page of sessions.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// Where it ended, if there may be more.
    pub next: Option<Cursor>,
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Words that must all occur, in any order and case; `"quoted words"` together;
    /// `begin*` for the beginning of a word. The last word may be only begun, unless it is
    /// quoted.
    pub text: String,
    /// In which sessions.
    pub filter: Filter,
    /// Which hits come first.
    pub rank: Rank,
    /// At most this many.
    pub limit: usize,
    /// Whether [`Stepwell::search`](crate::sessions::Stepwell::search) also looks into what agents are
    /// told before they begin.
    pub system: SystemPrompts,
}

/// Whether system prompts are searched. Each session has one, and most are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SystemPrompts {
    /// They are left out.
    #[default]
    Skipped,
    /// They are searched like other messages.
    Searched,
}

impl Search {
    /// The newest 20 hits of some words, in all sessions that are not in the trash.
    pub fn new(text: impl Into<String>) -> Self {
        let (filter, system) = (Filter::default(), SystemPrompts::Skipped);
        Self { text: text.into(), filter, rank: Rank::Newest, limit: 20, system }
    }
}

/// Which hits come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rank {
    /// The newest.
    #[default]
    Newest,
    /// The most relevant of the newest 10,000: ranking looks at each hit, and a
    /// common word has too many.
    Relevance,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The hits.
    pub hits: Vec<Hit>,
    /// Events that the store, open for reading only, could not look into.
    pub unseen: u64,
}

/// One hit.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// In which session.
    pub session: SessionId,
    /// At which event.
    pub seq: Seq,
    /// When that happened.
    pub at: Time,
    /// The event's kind.
    pub kind: String,
    /// Who said it, if it is a message.
    pub role: Option<Role>,
    /// The system that the session came from; absent, if it was begun here. A store leaves it out, and
    /// [`Stepwell::search`](crate::sessions::Stepwell::search) fills it in.
    pub source: Option<String>,
    /// The words around the first match.
    pub snippet: Snippet,
}

/// A piece of text with the matches in it. It is cut from a text without secrets, and only from
/// such a one: [`Shown`](crate::backend::Shown).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The text, on one line.
    pub(crate) text: String,
    /// Where the matches are, in bytes.
    pub(crate) matches: Vec<Range<usize>>,
}

impl Snippet {
    /// The text, on one line and without secrets.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the matches are in the text, in bytes.
    #[must_use]
    pub fn matches(&self) -> &[Range<usize>] {
        &self.matches
    }
}

impl Sort {
    /// What sessions are sorted by, as a number.
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
    /// The page that a query asks for, out of all sessions that match, each with its
    /// place by birth.
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
