//! Sessions read in and written out.
//!
//! ```
//! use stepwell::{Message, Stepwell};
//! use stepwell_formats::{Format, export, import};
//!
//! let here = Stepwell::in_memory();
//! let mut session = here.create(here.draft("fix the login"))?;
//! session.append(Message::user("fix the login"))?;
//! let id = session.id().clone();
//!
//! // An archive holds all that was recorded, the sessions of subagents included.
//! let mut archive = Vec::new();
//! export(&here, &id, Format::JSONL, &mut archive)?;
//!
//! // Elsewhere it makes the same session. Doing it again changes nothing.
//! let there = Stepwell::in_memory();
//! assert_eq!(import(&there, &mut archive.as_slice())?.made, [id.clone()]);
//! assert_eq!(import(&there, &mut archive.as_slice())?.already_there, [id.clone()]);
//!
//! // A page is for people: what was said, without what was rewound.
//! let mut page = Vec::new();
//! export(&there, &id, Format::MARKDOWN, &mut page)?;
//! assert!(String::from_utf8(page)?.starts_with("# fix the login"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/export.md` describes the archive and how an import decides. The crate touches
//! no terminal, environment or folder: it reads from and writes to what it is given.
//!
//! # Adding a format
//!
//! A format is a module with an [`Entry`] in it. Of what is there already only this file is
//! touched: the module is declared, and its entry gets a line in `FORMATS`.
//!
//! - To be read, implement [`Reader`]: say how a session is recognised by what is in it, and
//!   tell what is there to a [`Sink`], in the words of [`stepwell::Event`]. Open files through
//!   the [`Input`] alone: it bounds sizes and lines, and follows no links. What has no word
//!   goes into [`Item::beside`], [`Item::alone`] or [`Item::of_session`], so that a writer of
//!   the same format finds it again. [`Fields`] keeps the fields of an object that are not
//!   understood.
//! - To be written, implement [`Writer`]: read the session's events from the store, and write
//!   to the [`Outlet`]. Count what the form cannot hold in [`Losses`].
//! - A format of JSON lines that name each other implements `journal::row::LineReader` and
//!   `journal::form::LineWriter` instead, and says only what its lines mean and hold.
//! - Telling is all: names, clashes, provenance, and taking in only what is new are done by
//!   [`take_in`], the same for every format. A reader only has to tell the same things in the
//!   same order when it reads the same file again.
//!
//! In the tests, `generate.rs` makes random sessions and `mirror.rs` sends them through a format
//! and back; `garbage.rs` feeds random and mutated bytes to every reader of the registry.

mod architect;
mod archive;
mod claude;
mod codex;
mod error;
mod find;
mod frameworks;
mod gaia;
mod gemini_content;
mod goose;
mod intake;
mod journal;
mod json;
mod m31a;
mod original;
mod page;
mod pi;
mod qwen;
mod read;
mod registry;
mod snapshot;
mod strands_cli;
mod strands_sdk;
mod transfer;
mod write;

pub use archive::{ARCHIVE_VERSION, Imported, import};
pub use error::{Error, Result};
pub use find::walk::{Found, Searched, find, find_news, search};
pub use frameworks::{Cells, LangGraphTables};
pub use intake::{
    Became, ImportSummary, ImportedSession, KnownFiles, Mode, Report, holds_all, take_in,
    take_in_watched,
};
pub use json::fields::{Fields, elements, push_field, quoted, text_of, with_fields};
pub use m31a::LEDGER_COLUMNS;
pub use page::work::{
    Said, cell, read_tasks, said, state_markdown, table, task_progress, tasks_markdown,
};
pub use read::input::{
    Fingerprint, Input, Line, LineEnd, Lines, MAX_FILE_BYTES, MAX_LINE_BYTES, Watcher,
};
pub use read::neutral::{Item, KeptLine, Opening, Sink, Wanted, Warning, kept_event};
pub use read::reader::{Homes, Keeper, Kind, Probe, Reader};
pub use read::steps::Steps;
pub use registry::{Entry, Format, UnknownFormat};
pub use stepwell::model::Mark;
pub use transfer::convert::{Conversion, Converted, convert};
pub use transfer::copy::{Copied, copy};
pub use transfer::dry_run::DryRun;
pub use transfer::export;
pub use write::draft::{Destination, Existing, write_to};
pub use write::unanswered::NOT_BEGUN;
pub use write::writer::{
    Exported, Handoff, Handover, Length, Losses, Outlet, Purpose, Shape, Subagents, Successor,
    Takes, Wishes, Writer, each_event, subagents, word_for,
};

/// Every format, in the order in which they are shown and tried.
static FORMATS: &[&Entry] = &[
    &archive::JSON,
    &archive::JSONL,
    &page::markdown::FORMAT,
    &page::html::FORMAT,
    &claude::FORMAT,
    &codex::FORMAT,
    &goose::FORMAT,
    &qwen::FORMAT,
    &pi::FORMAT,
    &architect::FORMAT,
    &m31a::FORMAT,
    &gaia::FORMAT,
    &strands_cli::FORMAT,
    &strands_sdk::FORMAT,
    &frameworks::LANGGRAPH,
    &frameworks::OPENAI,
    &frameworks::ADK,
];

impl Format {
    /// An archive as one JSON object.
    pub const JSON: Self = Self(&archive::JSON);
    /// An archive as lines of JSON.
    pub const JSONL: Self = Self(&archive::JSONL);
    /// The conversation, for any Markdown viewer.
    pub const MARKDOWN: Self = Self(&page::markdown::FORMAT);
    /// The conversation, as one page that needs nothing else.
    pub const HTML: Self = Self(&page::html::FORMAT);

    /// Does its system keep no more than the end of a long conversation?
    #[must_use]
    pub fn shortens(self) -> bool {
        self == Self(&architect::FORMAT)
    }
}
