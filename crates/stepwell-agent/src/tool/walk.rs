//! Walking the workspace as git sees it: what `.gitignore` names is left out.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};

use super::Place;
use super::disk::is_scratch;
use super::looking::Wanted;
use super::spot::{Last, Spot, is_hidden};

/// Calls `each` with every file below a path, relative to the workspace and in order, until it
/// says no. `glob` is in the manner of `.gitignore` and relative to the path.
pub(super) fn files(
    place: &Place,
    within: Within<'_>,
    wanted: &Wanted,
    mut each: impl FnMut(&str) -> Result<Go, String>,
) -> Result<(), String> {
    let spot = Spot::find(place, within.path.unwrap_or("."), Last::Follow)?;
    if spot.stat.is_none() {
        return Err(spot.says("there is no such file or folder"));
    }
    let start = match spot.path.as_str() {
        "" => place.root.clone(),
        path => place.root.join(path),
    };
    let globs = within.glob.map(|glob| matcher(&start, glob)).transpose()?;
    let mut walker = walker(&start, place.store.as_deref());
    for entry in walker.sort_by_file_path(Path::cmp).build() {
        wanted.check()?;
        // A folder that may not be read is like one that is ignored.
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

/// What is walked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within<'a> {
    pub(super) path: Option<&'a str>,
    pub(super) glob: Option<&'a str>,
}

/// Whether a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    On,
    Stop,
}

/// Links are not followed, so that nothing outside is reached and no loop is entered. The
/// user's own settings of git are left out: they are in their home folder, and a run should
/// see the same files wherever it runs.
pub(crate) fn walker(start: &Path, store: Option<&Path>) -> WalkBuilder {
    let store = store.map(Path::to_owned);
    let is_ours = move |entry: &DirEntry| {
        is_hidden(entry.file_name())
            || is_scratch(entry.file_name())
            || store.as_deref() == Some(entry.path())
    };
    // A subagent's worktree lies in a store, which hides itself from git: that is no word about
    // what is in the worktree.
    let in_store = start.ancestors().skip(1).filter_map(Path::file_name).any(is_hidden);
    let mut walker = WalkBuilder::new(start);
    walker
        .parents(!in_store)
        .hidden(false)
        .ignore(false)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(move |entry| !is_ours(entry));
    walker
}

fn matcher(start: &Path, glob: &str) -> Result<Override, String> {
    let wrong = |error: ignore::Error| format!("the glob {glob:?} is wrong: {error}");
    let mut builder = OverrideBuilder::new(start);
    builder.add(glob).map_err(wrong)?;
    builder.build().map_err(wrong)
}

fn relative(root: &Path, entry: &DirEntry) -> Option<String> {
    let path: PathBuf = entry.path().strip_prefix(root).ok()?.to_owned();
    path.into_os_string().into_string().ok()
}

/// A path as one line: a name may hold any character, and two lines would be two files.
pub(super) fn one_line(path: &str) -> Cow<'_, str> {
    match path.contains(char::is_control) || path.starts_with('"') {
        true => serde_json::Value::from(path).to_string().into(),
        false => path.into(),
    }
}
