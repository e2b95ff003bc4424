//! Git, through its command line.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Variables of git's that would make it look elsewhere than in the folder.
const ELSEWHERE: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
];

/// Runs git in a folder, and returns what it says without the line's end. An error is what it
/// complains about.
///
/// It runs in a process group of its own, so that a Ctrl+C that is meant for the run does not
/// end it in the middle; and without the repository's hooks and signatures, which may ask.
pub(super) fn git(folder: &Path, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder);
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"]);
    command.args(["-c", "core.quotePath=false"]).args(args);
    ELSEWHERE.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", "true").env("LC_ALL", "C");
    command.stdin(Stdio::null()).process_group(0);
    let output = command.output().map_err(|error| format!("git cannot be run: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = [text(&output.stderr), text(&output.stdout)].join("\n");
    Err(said.trim().to_owned())
}

/// Does git say yes?
pub(super) fn holds(folder: &Path, args: &[&str]) -> bool {
    git(folder, args).is_ok()
}

/// The names in an answer that NUL characters part.
pub(super) fn names(text: &str) -> Vec<String> {
    text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
