//! A session that is being written: it gets its name, and takes the place of what stood
//! there, only when it is complete.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use stepwell::{SessionId, Stepwell};

use crate::write::layout::stranger;
use crate::write::writer::{Exported, Outlet, Shape, Wishes, Writer, make_folder, private};
use crate::{Error, Result};

/// What to do with what is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it, and fail.
    Keep,
    /// Replace it.
    Replace,
}

/// Where a session is written to.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The file or folder.
    pub path: &'a Path,
    /// What becomes of what is there already.
    pub existing: Existing,
    /// What whoever writes it wishes.
    pub wishes: Wishes,
    /// The folder in which the session goes on, if that is not the one that it worked in.
    pub workspace: Option<&'a Path>,
}

impl<'a> Destination<'a> {
    /// A path, without wishes.
    #[must_use]
    pub fn new(path: &'a Path, existing: Existing) -> Self {
        Self { path, existing, wishes: Wishes::default(), workspace: None }
    }
}

/// Writes a session to a path: under its name only when it is complete.
///
/// # Errors
/// If it cannot be written, or if what is there already is to be kept.
pub fn write_to(
    destination: &Destination<'_>,
    writer: &dyn Writer,
    well: &Stepwell,
    id: &SessionId,
) -> Result<Exported> {
    let Destination { path, existing, wishes, workspace } = *destination;
    well.refuse_altered(id)?;
    check(path, writer, existing)?;
    let fault = |error| Error::Unwritable { path: path.to_owned(), error };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fault)?;
    }
    let draft = Draft::beside(path).map_err(fault)?;
    let file = match writer.shape() {
        Shape::File => Some(private(&draft.file()).map_err(fault)?),
        Shape::Folder => {
            make_folder(&draft.folder()).map_err(fault)?;
            None
        }
    };
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut outlet = Outlet::place(file, draft.folder(), name).wishing(wishes);
    if let Some(workspace) = workspace {
        outlet = outlet.in_workspace(workspace);
    }
    let exported = writer.write(well, id, &mut outlet).map_err(|error| match error {
        Error::Write(error) => fault(error),
        error => error,
    })?;
    outlet.sync().map_err(fault)?;
    draft.publish(path, writer, existing)?;
    Ok(exported)
}

/// A folder in which a session is written before it gets its name. It goes when dropped.
struct Draft {
    folder: PathBuf,
    /// Does it hold something of the user's that could not be put back?
    precious: bool,
}

/// Something that gets its name.
struct Move {
    from: PathBuf,
    to: PathBuf,
    /// Where what stood there waits until all is done.
    old: PathBuf,
}

impl Draft {
    fn beside(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for n in 0_u32.. {
            let folder = path.with_file_name(format!(".{name}.{}.{n}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && n < 100 => {}
                made => return made.map(|()| Self { folder, precious: false }),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn file(&self) -> PathBuf {
        self.folder.join("file")
    }

    fn folder(&self) -> PathBuf {
        self.folder.join("folder")
    }

    /// Fails if something stands where the rest of a file goes, which nobody named. What is
    /// written again under its name is no loss.
    fn check_beside(
        &self,
        beside: &Path,
        path: &Path,
        writer: &dyn Writer,
        existing: Existing,
    ) -> Result<()> {
        let Ok(found) = beside.symlink_metadata() else { return Ok(()) };
        if !found.is_dir() {
            return Err(Error::InTheWay { path: beside.to_owned(), of: path.to_owned() });
        }
        let again = |below: &Path| is_there(&self.folder().join(below));
        refuse(beside, stranger(beside, writer.parts(), &again))?;
        match existing {
            Existing::Keep => {
                Err(Error::ExistsBeside { path: beside.to_owned(), of: path.to_owned() })
            }
            Existing::Replace => Ok(()),
        }
    }

    /// Gives what was written its name. If that fails, what stood there is put back.
    fn publish(mut self, path: &Path, writer: &dyn Writer, existing: Existing) -> Result<()> {
        let mut moves = Vec::new();
        let mut add = |from: PathBuf, to: PathBuf| {
            let old = self.folder.join(format!("replaced-{}", moves.len()));
            moves.push(Move { from, to, old });
        };
        match writer.shape() {
            Shape::Folder => add(self.folder(), path.to_owned()),
            Shape::File => {
                if self.folder().exists() {
                    let beside = beside(path, writer)?;
                    self.check_beside(&beside, path, writer, existing)?;
                    add(self.folder(), beside);
                }
                add(self.file(), path.to_owned());
            }
        }
        check(path, writer, existing)?;
        for n in 0..moves.len() {
            if let Err(error) = moves[n].make() {
                let back = moves[..=n].iter().rev().try_for_each(Move::take_back);
                self.precious = back.is_err();
                return Err(match back {
                    Ok(()) => Error::Unwritable { path: moves[n].to.clone(), error },
                    Err(_) => Error::LeftOver { path: path.to_owned(), at: self.folder.clone() },
                });
            }
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.precious {
            // Half an export is of no use to anyone.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

impl Move {
    fn make(&self) -> io::Result<()> {
        if is_there(&self.to) {
            std::fs::rename(&self.to, &self.old)?;
        }
        std::fs::rename(&self.from, &self.to)
    }

    fn take_back(&self) -> io::Result<()> {
        // What has its name already is no longer in the draft.
        if !is_there(&self.from) {
            std::fs::rename(&self.to, &self.from)?;
        }
        match is_there(&self.old) {
            true => std::fs::rename(&self.old, &self.to),
            false => Ok(()),
        }
    }
}

/// Fails if something stands at a path that must stay.
fn check(path: &Path, writer: &dyn Writer, existing: Existing) -> Result<()> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    match writer.shape() {
        Shape::File if found.is_dir() => {
            return Err(Error::NotReplaced { path: path.to_owned() });
        }
        Shape::Folder if found.is_dir() => refuse(path, something_else(path, writer))?,
        Shape::File | Shape::Folder => {}
    }
    match existing {
        Existing::Keep => Err(Error::Exists { path: path.to_owned() }),
        Existing::Replace => Ok(()),
    }
}

/// Fails if a folder holds something that is not of its session.
fn refuse(folder: &Path, stranger: Option<PathBuf>) -> Result<()> {
    match stranger {
        Some(what) => Err(Error::Stranger { folder: folder.to_owned(), what }),
        None => Ok(()),
    }
}

/// The folder for what does not fit into a file: of the same name, without its ending.
fn beside(path: &Path, writer: &dyn Writer) -> Result<PathBuf> {
    let beside = path.with_extension("");
    match beside == path {
        true => Err(Error::NoEnding { path: path.to_owned(), ending: writer.ending() }),
        false => Ok(beside),
    }
}

/// What a folder holds that is no part of a session of the writer's system.
fn something_else(folder: &Path, writer: &dyn Writer) -> Option<PathBuf> {
    let parts = writer.parts();
    let whole = parts.first().is_some_and(|first| is_there(&folder.join(first)));
    // Without what is always there, even what is called as its parts are is none.
    stranger(folder, if whole { parts } else { &[] }, &|_| false)
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
