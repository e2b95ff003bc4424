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
//! export(&here, &id, Format::Jsonl, &mut archive)?;
//!
//! // Elsewhere it makes the same session. Doing it again changes nothing.
//! let there = Stepwell::in_memory();
//! assert_eq!(import(&there, &mut archive.as_slice())?.made, [id.clone()]);
//! assert_eq!(import(&there, &mut archive.as_slice())?.already_there, [id.clone()]);
//!
//! // A page is for people: what was said, without what was rewound.
//! let mut page = Vec::new();
//! export(&there, &id, Format::Markdown, &mut page)?;
//! assert!(String::from_utf8(page)?.starts_with("# fix the login"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/export.md` describes the archive and how an import decides. The crate touches
//! no terminal, environment or folder: it reads from and writes to what it is given.

mod archive;
mod document;
mod error;
mod escape;
mod export;
mod html;
mod markdown;
mod work;

pub use archive::{ARCHIVE_VERSION, Imported, import};
pub use error::{Error, Result};
pub use export::{Exported, Format, UnknownFormat, export};
pub use work::{Said, cell, read_tasks, said, state_markdown, table, tasks_markdown};
