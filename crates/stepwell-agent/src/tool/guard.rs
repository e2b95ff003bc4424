//! Files that file tools never change, or only after an approval: files that other programs
//! execute.
//!
//! A permission to edit files must not become a permission to run commands. Git runs what its
//! folder says, and shells and editors run some files as soon as a user enters the folder.

use std::path::Path;

use serde_json::Value;

use stepwell_files::safe_path::{Last, SafePath};
use stepwell_files::started::{is_git, is_named_to_git, is_started};

use super::ToolEnv;

/// Does a call name such a file? Then it needs an approval every time, whatever the rules allow.
pub(crate) fn needs_question(tool: &str, arguments: &str) -> bool {
    if !matches!(tool, "write_file" | "edit_file" | "delete_file") {
        return false;
    }
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    arguments["path"].as_str().is_some_and(is_started)
}

/// Why a call is refused even if a person would approve it, judged by the path that it names. It is
/// refused without an approval.
pub(crate) fn refused_anyway(tool: &str, arguments: &str, place: &ToolEnv) -> Option<String> {
    let last = match tool {
        "write_file" | "edit_file" => Last::Follow,
        "delete_file" => Last::Keep,
        _ => return None,
    };
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let path = arguments["path"].as_str()?;
    let spot = SafePath::find(&place.files(), path, last).ok()?;
    refuse(&place.root, &spot, path).err()
}

/// Refuses to change files that git runs, and files that the approval did not name: a path through
/// a link may lead to a file that other programs run.
pub(super) fn refuse(root: &Path, spot: &SafePath, given: &str) -> Result<(), String> {
    if spot.path.split('/').any(is_git) || spot.is_in_git_folder {
        return Err(spot.says(
            "the file is one of git's own files, which no file tool changes; run git instead, \
             which needs the user's approval",
        ));
    }
    if is_started(&spot.path) && !is_started(given) {
        return Err(format!("{given} leads to {}; name that path instead", spot.path));
    }
    // The path does not show that other programs run the file, so no approval was requested for
    // that.
    if !is_started(given) && is_named_to_git(&root.join(&spot.path)) {
        return Err(spot.says(
            "git runs this file: the repository's or the user's configuration names it \
             (core.hooksPath, include.path), so no file tool changes it; run a command instead, \
             which needs the user's approval",
        ));
    }
    Ok(())
}
