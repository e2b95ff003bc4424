//! From one format into another, by way of a store that is thrown away.

use std::path::{Path, PathBuf};

use stepwell::model::Origin;
use stepwell::{SessionId, Stepwell};

use crate::find::walk::{Found, find};
use crate::intake::{Mode, Report, take_in};
use crate::read::input::unreadable;
use crate::registry::Format;
use crate::write::draft::{Destination, Existing, write_to};
use crate::write::writer::{Exported, SUBAGENTS, Shape, Subagents, Wishes, Writer};
use crate::{Error, Result};

/// What a conversion did.
#[derive(Debug, Default)]
pub struct Converted {
    /// Each session that was written, where, and what of it.
    pub written: Vec<(SessionId, PathBuf, Exported)>,
    /// Those that could not be written, and why.
    pub unwritten: Vec<(SessionId, Error)>,
    /// What was read for it, and how that went.
    pub read: Vec<(Found, Report)>,
    /// What could not be looked at.
    pub faults: Vec<Error>,
}

/// How a conversion is made.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// The format of what is read; without one it is found out.
    pub from: Option<Format>,
    /// The format of what is written.
    pub to: Format,
    /// What becomes of what is there already.
    pub existing: Existing,
    /// What is wished of what is written.
    pub wishes: Wishes,
}

/// Reads what lies at a path and writes it in another format. What is one session in itself is
/// written to `out`. All sessions of a folder go into a folder of that name, however many there
/// are, and so does everything if `out` is a folder already; one of several that cannot be
/// written does not stop the others.
pub fn convert(input: &Path, out: &Path, how: Conversion) -> Result<Converted> {
    let Some(writer) = how.to.writer() else {
        return Err(Error::NotWritten { format: how.to.as_str() });
    };
    let mut converted = Converted::default();
    let mut found: Vec<Found> = Vec::new();
    let mut faults = Vec::new();
    let mut add = |it: Found| {
        found.push(it);
        Ok(())
    };
    find(input, how.from, &mut add, &mut |error| faults.push(error))?;
    converted.faults = faults;
    if found.is_empty() && converted.faults.is_empty() {
        return Err(Error::NotRecognised { path: input.to_owned() });
    }
    let root = input.canonicalize().map_err(|error| unreadable(input, error))?;
    let is_session = !root.is_dir() || found.iter().any(|it| is_all_of(&root, it));
    let folder = tempfile::tempdir().map_err(Error::Write)?;
    let well = Stepwell::open(folder.path().join("store"))?;
    let apart = writer.subagents() == Subagents::Apart;
    let mut ids: Vec<SessionId> = Vec::new();
    for it in found {
        let report = take_in(&well, Mode::Write, it.format, &it.path);
        for taken in &report.sessions {
            let origin = well.info(&taken.id)?.head.origin;
            let goes_along = apart || !matches!(origin, Origin::Subagent { .. });
            if goes_along && !ids.contains(&taken.id) {
                ids.push(taken.id.clone());
            }
        }
        converted.read.push((it, report));
    }
    let several = ids.len() > 1;
    let into = several || !is_session || takes_in(out, writer);
    for id in ids {
        let path = match into {
            true => out.join(writer.place(&well.info(&id)?.head)),
            false => out.to_owned(),
        };
        // What this conversion wrote is not replaced by what it writes next.
        let twice = converted.written.iter().any(|(_, written, _)| *written == path);
        let wrote = match twice {
            true => Err(Error::Twice { path: path.clone() }),
            false => {
                let destination =
                    Destination { wishes: how.wishes, ..Destination::new(&path, how.existing) };
                write_one(&destination, writer, &well, &id)
            }
        };
        match wrote {
            Ok(mut exported) => {
                if apart {
                    exported.losses.forget(SUBAGENTS);
                }
                converted.written.push((id, path, exported));
            }
            Err(error) if several => converted.unwritten.push((id, error)),
            Err(error) => return Err(error),
        }
    }
    Ok(converted)
}

/// Is a folder the session that was found in it, and nothing more?
fn is_all_of(folder: &Path, found: &Found) -> bool {
    let is_folder = found.format.writer().is_some_and(|it| it.shape() == Shape::Folder);
    found.path == *folder || is_folder && found.path.parent() == Some(folder)
}

/// Is it a folder to put sessions into, and not one that is a session itself?
fn takes_in(out: &Path, writer: &dyn Writer) -> bool {
    match writer.shape() {
        Shape::File => out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/"),
        Shape::Folder => {
            let whole = writer.parts().first().is_some_and(|first| out.join(first).exists());
            out.is_dir() && !whole
        }
    }
}

fn write_one(
    destination: &Destination<'_>,
    writer: &dyn Writer,
    well: &Stepwell,
    id: &SessionId,
) -> Result<Exported> {
    if let Some(parent) = destination.path.parent().filter(|parent| !parent.as_os_str().is_empty())
    {
        let fault = |error| Error::Unwritable { path: parent.to_owned(), error };
        std::fs::create_dir_all(parent).map_err(fault)?;
    }
    write_to(destination, writer, well, id)
}
