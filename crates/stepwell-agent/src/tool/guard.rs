//! Files that file tools do not change, or only after a question: what others run without
//! being asked to.
//!
//! Whoever may edit files must not get commands run by it. Git runs what its folder says, and a
//! shell or an editor what it finds in some files, as soon as someone enters the folder.

use std::path::Path;

use serde_json::Value;

use stepwell_files::safe_path::{Last, SafePath};
use stepwell_files::started::{is_git, is_named_to_git, is_started};

use super::ToolEnv;

/// Does a call name such a file? Then a person is asked, whatever was allowed before.
pub(crate) fn needs_question(tool: &str, arguments: &str) -> bool {
    if !matches!(tool, "write_file" | "edit_file" | "delete_file") {
        return false;
    }
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    arguments["path"].as_str().is_some_and(is_started)
}

/// Why a call is refused whatever a person says, going by the path that it names: it is not asked
/// about.
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

/// Refuses to change what git runs, or what a person was not asked about: a path that leads over
/// a link to a file that others run does not say so.
pub(super) fn refuse(root: &Path, spot: &SafePath, given: &str) -> Result<(), String> {
    if spot.path.split('/').any(is_git) || spot.is_in_git_folder {
        return Err(spot.says(
            "it is among git's own files, which no file tool changes; run git, which the user is \
             asked about",
        ));
    }
    if is_started(&spot.path) && !is_started(given) {
        return Err(format!("{given} leads to {}; name that path instead", spot.path));
    }
    // Its name does not say so: nobody was asked about it for that.
    if !is_started(given) && is_named_to_git(&root.join(&spot.path)) {
        return Err(spot.says(
            "git runs it: the repository's configuration or the user's names it (core.hooksPath, \
             include.path), so no file tool changes it; run a command, which the user is asked about",
        ));
    }
    Ok(())
}
