//! A session's file changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::model::{FileState, Kind};
use stepwell::{Seq, SessionId};
use stepwell_files::diff::Side;
use stepwell_files::history::History;
use stepwell_files::session_diff::patches;
use stepwell_wire::FileDiff;

use crate::bounded::{LeftOut, Page, Shortened, Stretch};
use crate::error::{Error, Result};
use crate::input::{Limit, Point};
use crate::stores::{Located, Named, Purpose, Stores};

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffInput {
    /// The session: its id, a part of it, its label, or @last.
    pub(crate) session: String,
    /// Its store, as a hit or a list names it.
    #[serde(default)]
    pub(crate) store: Option<String>,
    /// The beginning of the range: a seq, a checkpoint's name, or "-N" for N steps back; the
    /// session's beginning, if absent.
    #[serde(default)]
    pub(crate) from: Option<Point>,
    /// The end of the range; the session's end, if absent.
    #[serde(default)]
    pub(crate) to: Option<Point>,
    /// Only this file, relative to the workspace. Its diff comes in parts.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// The offset in the diff of one file: the `next` of the part before.
    #[serde(default)]
    pub(crate) offset: usize,
    /// The most files; 20, if absent.
    #[serde(default)]
    pub(crate) limit: Option<Limit>,
    /// Files to skip: the `next` of the page before.
    #[serde(default)]
    pub(crate) cursor: usize,
}

/// A session's file changes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DiffAnswer {
    /// The session.
    id: SessionId,
    /// The files, by path.
    files: Vec<Shortened<FileDiff>>,
    /// Lists with omitted entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// For one file: a part of its diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    stretch: Option<Stretch>,
    /// The cursor of the next page; absent, if this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// Returns a session's file changes.
pub(crate) fn session_diff(stores: &Stores, input: DiffInput) -> Result<DiffAnswer> {
    let named = Named { session: input.session, store: input.store };
    let Located { well, id } = stores.session(&named, Purpose::Read)?;
    let from = Point::of(input.from.as_ref(), Seq::ZERO, &well, &id)?;
    let to = Point::of(input.to.as_ref(), Seq::MAX, &well, &id)?;
    let wanted = input.path.as_deref().map(plain);
    let mut page = Page::new(&stores.redactor, Limit::of(input.limit));
    let (mut next, mut stretch) = (None, None);
    for (n, patch) in patches(&**well.store(), &id, from, to)?.enumerate() {
        if n < input.cursor && wanted.is_none() {
            continue;
        }
        let mut diff = patch?;
        if let Some(path) = wanted {
            if diff.path != path {
                continue;
            }
            stretch = Some(Stretch::of(&diff.diff, input.offset, &stores.redactor));
            diff.diff = String::new();
        }
        if !page.push(&diff)? {
            next = Some(n);
            break;
        }
    }
    if let (Some(path), None) = (wanted, &stretch) {
        return Err(Error::NoFile { session: id, path: path.to_owned() });
    }
    let left_out = page.left_out("files");
    Ok(DiffAnswer { id, files: page.into_items(), left_out, stretch, next })
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileInput {
    /// The session: its id, a part of it, its label, or @last.
    pub(crate) session: String,
    /// Its store, as a hit or a list names it.
    #[serde(default)]
    pub(crate) store: Option<String>,
    /// The file, relative to the workspace.
    pub(crate) path: String,
    /// The point: a seq, a checkpoint's name, or "-N" for N steps back; the session's end, if
    /// absent.
    #[serde(default)]
    pub(crate) at: Option<Point>,
    /// The offset in a long file: the `next` of the part before.
    #[serde(default)]
    pub(crate) offset: usize,
}

/// The content of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileAnswer {
    /// The session.
    id: SessionId,
    /// The path, relative to the workspace.
    path: String,
    /// The point.
    at: Seq,
    /// The file's state.
    state: FileState,
    /// A part of its text; absent, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Stretch>,
}

/// Returns a file as it was at a point of a session.
pub(crate) fn file_at(stores: &Stores, input: FileInput) -> Result<FileAnswer> {
    let named = Named { session: input.session, store: input.store };
    let Located { well, id } = stores.session(&named, Purpose::Read)?;
    let path = plain(&input.path).to_owned();
    let at = Point::of(input.at.as_ref(), well.info(&id)?.head.seq, &well, &id)?;
    let history = History::of(well.store().keyed_events(&id, &[Kind::File])?);
    let Some(state) = history.at(&path, at).cloned() else {
        return Err(Error::NoFile { session: id, path });
    };
    let none = |why: String| Error::NoContent { path: path.clone(), at: at.get(), why };
    let bytes = match Side::read(&**well.store(), &state)? {
        Side::Absent => return Err(none("there was no such file".to_owned())),
        Side::Unknown(why) => return Err(none(format!("not captured: {why}"))),
        Side::File { bytes, .. } => bytes,
        Side::Link(target) => target.into_bytes(),
    };
    let text = String::from_utf8(bytes).ok();
    let content = text.map(|text| Stretch::of(&text, input.offset, &stores.redactor));
    Ok(FileAnswer { id, path, at, state, content })
}

fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}
