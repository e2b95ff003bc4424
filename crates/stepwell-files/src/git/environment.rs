//! The environment variables for git.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variables that git needs: paths, the committer, and the user's choice of configuration
/// files. No others are passed on.
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

/// Settings by variables, which override every configuration file.
const SET: [(&str, &str); 8] = [
    ("LC_ALL", "C"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // No transport at all, not even for objects that a partial clone lacks.
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ASKPASS", "false"),
];

/// Reduces a command's environment to what git needs.
pub(super) fn scrub(command: &mut Command) {
    command.env_clear();
    // The variables are passed on unread.
    for (name, value) in std::env::vars_os().filter(|(name, _)| is_given(name)) {
        let value = if name == "PATH" { absolute(&value) } else { value };
        command.env(name, value);
    }
    command.envs(SET);
}

/// The configuration files of the user and the system, which every git reads besides the
/// repository's.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsersGit {
    /// The user's home folder, for `~/`.
    pub(crate) home: Option<PathBuf>,
    /// The files, whether they exist or not.
    pub(crate) files: Vec<PathBuf>,
}

impl UsersGit {
    /// The files that a git started here would read, by the same variables.
    pub(crate) fn found() -> Self {
        let all: Vec<_> = std::env::vars_os().filter(|(name, _)| is_given(name)).collect();
        Self::by(|name| all.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone()))
    }

    fn by(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        let home = path("HOME");
        let below = |folder: &str| home.as_deref().map(|home: &Path| home.join(folder));
        let mut files = match path("GIT_CONFIG_GLOBAL") {
            Some(file) => vec![file],
            None => {
                let folder = path("XDG_CONFIG_HOME").or_else(|| below(".config"));
                folder
                    .map(|it| it.join("git/config"))
                    .into_iter()
                    .chain(below(".gitconfig"))
                    .collect()
            }
        };
        files.push(path("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into()));
        Self { home, files }
    }
}

fn is_given(name: &OsStr) -> bool {
    GIVEN.iter().any(|given| name == *given)
}

/// A search path without relative folders: in a repository, `.` is the repository's own.
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
    fn the_users_configuration_is_where_git_looks_for_it() {
        let set = |all: &'static [(&str, &str)]| {
            let value = |name: &str| all.iter().find(|it| it.0 == name).map(|it| it.1.into());
            UsersGit::by(value).files
        };
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let usual = paths(&["/h/.config/git/config", "/h/.gitconfig", "/etc/gitconfig"]);
        assert_eq!(set(&[("HOME", "/h")]), usual);
        let moved = paths(&["/x/git/config", "/h/.gitconfig", "/s"]);
        let variables = &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x"), ("GIT_CONFIG_SYSTEM", "/s")];
        assert_eq!(set(variables), moved);
        let one = &[("HOME", "/h"), ("GIT_CONFIG_GLOBAL", "/g")];
        assert_eq!(set(one), paths(&["/g", "/etc/gitconfig"]));
        assert_eq!(set(&[]), paths(&["/etc/gitconfig"]));
    }

    #[test]
    fn programs_are_not_looked_for_in_relative_folders() {
        assert_eq!(absolute(".:/usr/bin::bin:/bin".as_ref()), "/usr/bin:/bin");
    }
}
