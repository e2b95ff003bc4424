//! What of our environment git is given.

use std::ffi::{OsStr, OsString};
use std::process::Command;

/// The variables that git needs: where things are, who commits, and the user's own choice of
/// configuration files. All others stay with us.
const GIVEN: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "XDG_CONFIG_HOME",
    "TMPDIR",
    "TZ",
    "EMAIL",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DEVELOPER_DIR",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_ATTR_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
];

/// What git is told by variables, because these go before every configuration file.
const SET: [(&str, &str); 8] = [
    ("LC_ALL", "C"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // No transport at all, also none for objects that a partial clone lacks.
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ASKPASS", "false"),
];

/// Leaves a command only what git needs.
pub(super) fn scrub(command: &mut Command) {
    command.env_clear();
    // Nothing is read from the environment; some of it is passed on.
    for (name, value) in std::env::vars_os().filter(|(name, _)| is_given(name)) {
        let value = if name == "PATH" { absolute(&value) } else { value };
        command.env(name, value);
    }
    command.envs(SET);
}

fn is_given(name: &OsStr) -> bool {
    GIVEN.iter().any(|given| name == *given)
}

/// A search path without its relative folders: in a repository, `.` is the repository's.
fn absolute(path: &OsStr) -> OsString {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    std::env::join_paths(folders).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_variables_that_lead_git_elsewhere_are_not_given() {
        for name in ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GIT_DIR", "GIT_EXTERNAL_DIFF"] {
            assert!(!is_given(name.as_ref()), "{name}");
        }
        assert!(is_given("HOME".as_ref()));
    }

    #[test]
    fn programs_are_not_looked_for_in_relative_folders() {
        assert_eq!(absolute(".:/usr/bin::bin:/bin".as_ref()), "/usr/bin:/bin");
    }
}
