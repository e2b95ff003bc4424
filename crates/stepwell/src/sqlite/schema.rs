//! The SQLite schema and its version. docs/format.md explains every table.

use rusqlite::Connection;

/// Marks the file as Stepwell's in SQLite's header: "stpw".
pub(super) const APPLICATION_ID: i32 = 0x7374_7077;

/// The schema's version. A change adds a step to [`MIGRATIONS`], and a golden file.
pub(super) const VERSION: u32 = 1 + MIGRATIONS.len() as u32;

/// A migration from version `i + 1` to `i + 2`, inside one transaction.
pub(super) type Migration = fn(&Connection) -> rusqlite::Result<()>;

/// Every migration from version 1 on.
pub(super) const MIGRATIONS: &[Migration] = &[];

/// All objects of a store's schema. SQLite's own have a reserved prefix.
pub(super) const OBJECTS: &[(&str, &str)] = &[
    ("index", "events_facts"),
    ("index", "events_id"),
    ("index", "leases_held"),
    ("index", "refs_pos"),
    ("index", "sessions_base"),
    ("index", "sessions_change"),
    ("index", "sessions_label"),
    ("index", "sessions_parent"),
    ("index", "sessions_rewinding"),
    ("index", "sessions_scope"),
    ("index", "sessions_status"),
    ("index", "sessions_system"),
    ("index", "sessions_trashed"),
    ("index", "sessions_unindexed"),
    ("index", "sessions_updated"),
    ("table", "blobs"),
    ("table", "docs"),
    ("table", "events"),
    ("table", "lanes"),
    ("table", "leases"),
    ("table", "refs"),
    ("table", "removed"),
    ("table", "sessions"),
    ("table", "snapshots"),
    ("table", "words"),
    ("table", "words_config"),
    ("table", "words_data"),
    ("table", "words_docsize"),
    ("table", "words_idx"),
];

/// Did Stepwell, or SQLite for Stepwell, create this object?
pub(super) fn is_ours(kind: &str, name: &str) -> bool {
    // SQLite reserves this prefix. It never creates triggers or views.
    let is_sqlites = name.starts_with("sqlite_") && matches!(kind, "table" | "index");
    is_sqlites || OBJECTS.contains(&(kind, name))
}

/// The number of the next change, for a statement in a write transaction.
pub(super) const NEXT_CHANGE: &str = "(SELECT coalesce(max(change), 0) + 1 FROM (\
     SELECT max(change) AS change FROM sessions UNION ALL SELECT max(change) FROM removed))";

/// Bytes in a page. Larger pages make appends to any but the newest session more expensive: the row
/// goes between others, and SQLite rewrites up to four pages to make room. Smaller pages make
/// reading a long conversation more expensive. The figures are in bench/README.md. A store keeps
/// the size it was created with.
pub(super) const PAGE_SIZE: u32 = 2048;

/// The tables of version 1. `events.pos` has the session's number in the upper and the seq in the
/// lower 32 bits. So a session's events are adjacent, in order, in one b-tree, and an append
/// touches one leaf.
pub(super) const TABLES: &str = "
CREATE TABLE sessions (
    key        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    head       TEXT NOT NULL,
    chain      BLOB NOT NULL,
    sum        BLOB NOT NULL,
    seq        INTEGER NOT NULL,
    base_key   INTEGER,
    base_at    INTEGER,
    bytes      INTEGER NOT NULL,
    status     TEXT NOT NULL,
    external   INTEGER NOT NULL,
    agent      TEXT NOT NULL,
    model      TEXT NOT NULL,
    workspace  TEXT NOT NULL,
    label      TEXT,
    parent     TEXT,
    subagent   INTEGER NOT NULL,
    created    INTEGER NOT NULL,
    updated    INTEGER NOT NULL,
    cost       INTEGER NOT NULL,
    steps      INTEGER NOT NULL,
    lane       TEXT,
    trashed    INTEGER,
    damage_at  INTEGER,
    damage     TEXT,
    indexed    INTEGER NOT NULL,
    unindexed  INTEGER NOT NULL,
    system     TEXT,
    scope      TEXT,
    change     INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_updated ON sessions (updated, key) WHERE trashed IS NULL;
CREATE INDEX sessions_status ON sessions (status) WHERE trashed IS NULL;
CREATE INDEX sessions_trashed ON sessions (trashed) WHERE trashed IS NOT NULL;
CREATE INDEX sessions_label ON sessions (label) WHERE label IS NOT NULL;
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_base ON sessions (base_key, base_at) WHERE base_key IS NOT NULL;
CREATE INDEX sessions_unindexed ON sessions (key) WHERE unindexed = 1;
CREATE INDEX sessions_change ON sessions (change);
CREATE INDEX sessions_system ON sessions (system, updated) WHERE system IS NOT NULL;
CREATE INDEX sessions_scope ON sessions (scope, updated) WHERE scope IS NOT NULL;
CREATE INDEX sessions_rewinding ON sessions (key) WHERE instr(head, '\"rewinding\":') > 0;

CREATE TABLE events (
    pos     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    version INTEGER NOT NULL,
    chain   BLOB NOT NULL,
    id      BLOB,
    key     TEXT,
    spilled INTEGER NOT NULL,
    erased  BLOB,
    body    TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_id ON events (pos >> 32, id) WHERE id IS NOT NULL;
CREATE INDEX events_facts ON events (pos >> 32, kind, key, pos) WHERE key IS NOT NULL;

CREATE TABLE removed (
    change INTEGER PRIMARY KEY,
    id     TEXT NOT NULL
) STRICT;

CREATE TABLE lanes (
    session INTEGER NOT NULL,
    lane    TEXT NOT NULL,
    state   TEXT NOT NULL,
    PRIMARY KEY (session, lane)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    session INTEGER PRIMARY KEY,
    epoch   INTEGER NOT NULL,
    holder  TEXT,
    expires INTEGER
) STRICT;
CREATE INDEX leases_held ON leases (expires) WHERE holder IS NOT NULL;

CREATE TABLE snapshots (
    pos   INTEGER PRIMARY KEY,
    state TEXT NOT NULL
) STRICT;

CREATE TABLE blobs (
    digest  BLOB NOT NULL UNIQUE,
    size    INTEGER NOT NULL,
    touched INTEGER NOT NULL,
    data    BLOB NOT NULL
) STRICT;
CREATE TABLE refs (
    digest BLOB NOT NULL,
    pos    INTEGER NOT NULL,
    PRIMARY KEY (digest, pos)
) STRICT, WITHOUT ROWID;
CREATE INDEX refs_pos ON refs (pos);

CREATE TABLE docs (
    doc INTEGER PRIMARY KEY,
    pos INTEGER NOT NULL UNIQUE
) STRICT;
CREATE VIRTUAL TABLE words USING fts5 (
    text,
    content = '',
    contentless_delete = 1,
    tokenize = \"unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'\"
);
";
