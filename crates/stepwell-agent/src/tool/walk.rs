//! Walks the workspace as git sees it, without the files that `.gitignore` excludes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ignore::DirEntry;
use ignore::overrides::{Override, OverrideBuilder};
use stepwell_files::safe_path::{Last, SafePath};
use stepwell_files::walk::walker;

use super::ToolEnv;
use super::blocking::Wanted;

/// Calls `each` with every file below a path, in order and relative to the workspace, until `each`
/// returns [`Go::Stop`]. `glob` has `.gitignore`'s syntax and is relative to the path.
pub(super) fn files(
    place: &ToolEnv,
    within: Within<'_>,
    wanted: &Wanted,
    mut each: impl FnMut(&str) -> Result<Go, String>,
) -> Result<(), String> {
    let spot = SafePath::find(&place.files(), within.path.unwrap_or("."), Last::Follow)?;
    if spot.stat.is_none() {
        return Err(spot.says("no such file or folder"));
    }
    let start = match spot.path.as_str() {
        "" => place.root.clone(),
        path => place.root.join(path),
    };
    let globs = within.glob.map(|glob| matcher(&start, glob)).transpose()?;
    let mut walker = walker(&start, place.store.as_deref());
    for entry in walker.sort_by_file_path(Path::cmp).build() {
        wanted.check()?;
        // An unreadable folder counts as ignored.
        let Ok(entry) = entry else { continue };
        let is_folder = entry.file_type().is_none_or(|kind| kind.is_dir());
        let hidden =
            globs.as_ref().is_some_and(|globs| globs.matched(entry.path(), false).is_ignore());
        if is_folder || hidden {
            continue;
        }
        let Some(path) = relative(&place.root, &entry) else { continue };
        if each(&path)? == Go::Stop {
            break;
        }
    }
    Ok(())
}

/// The part of the workspace to walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within<'a> {
    pub(super) path: Option<&'a str>,
    pub(super) glob: Option<&'a str>,
}

/// Whether a walk continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    On,
    Stop,
}

fn matcher(start: &Path, glob: &str) -> Result<Override, String> {
    let wrong = |error: ignore::Error| format!("invalid glob {glob:?}: {error}");
    let mut builder = OverrideBuilder::new(start);
    builder.add(glob).map_err(wrong)?;
    builder.build().map_err(wrong)
}

fn relative(root: &Path, entry: &DirEntry) -> Option<String> {
    let path: PathBuf = entry.path().strip_prefix(root).ok()?.to_owned();
    path.into_os_string().into_string().ok()
}

/// A path on one line: a line break in a name would make it look like two files.
pub(super) fn one_line(path: &str) -> Cow<'_, str> {
    match path.contains(char::is_control) || path.starts_with('"') {
        true => serde_json::Value::from(path).to_string().into(),
        false => path.into(),
    }
}
