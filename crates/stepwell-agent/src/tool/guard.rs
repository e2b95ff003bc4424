//! Files that file tools do not change, or only after a question: what others run without
//! being asked to.
//!
//! Whoever may edit files must not get commands run by it. Git runs what its folder says, and a
//! shell or an editor what it finds in some files, as soon as someone enters the folder.

use serde_json::Value;

use stepwell_files::safe_path::SafePath;

/// Files that some program runs, or takes a command from, without being told to.
const STARTED: [&str; 37] = [
    ".envrc",
    ".direnvrc",
    ".autoenv",
    ".autoenv.zsh",
    ".mise.toml",
    "mise.toml",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".xinitrc",
    ".xprofile",
    ".gitconfig",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".gdbinit",
    ".lldbinit",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".tmux.conf",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    ".mcp.json",
];

/// Folders of which the same is true.
const STARTED_FOLDERS: [&str; 11] = [
    ".husky",
    ".githooks",
    ".vscode",
    ".idea",
    ".cargo",
    ".devcontainer",
    ".ssh",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
];

/// Would changing this path have a command run later, without anyone calling it?
pub(crate) fn is_started(path: &str) -> bool {
    let is = |name: &str, all: &[&str]| all.iter().any(|it| it.eq_ignore_ascii_case(name));
    let mut names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let last = names.next_back().unwrap_or_default();
    is(last, &STARTED) || names.any(|name| is(name, &STARTED_FOLDERS))
}

/// Does a call name such a file? Then a person is asked, whatever was allowed before.
pub(crate) fn needs_question(tool: &str, arguments: &str) -> bool {
    if !matches!(tool, "write_file" | "edit_file" | "delete_file") {
        return false;
    }
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    arguments["path"].as_str().is_some_and(is_started)
}

/// Refuses to change what git runs, or what a person was not asked about: a path that leads over
/// a link to a file that others run does not say so.
pub(super) fn refuse(spot: &SafePath, given: &str) -> Result<(), String> {
    if spot.path.split('/').any(is_git) || spot.is_in_git_folder {
        return Err(spot.says(
            "it is among git's own files, which no file tool changes; run git, which the user is \
             asked about",
        ));
    }
    if is_started(&spot.path) && !is_started(given) {
        return Err(format!("{given} leads to {}; name that path instead", spot.path));
    }
    Ok(())
}

/// Is it git's folder, or the file that leads to it? Some file systems ignore case, and some
/// characters that are not seen.
fn is_git(name: &str) -> bool {
    let unseen = |character: &char| matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let plain: String = name.chars().filter(|it| !unseen(it)).collect();
    plain.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_by_itself_is_known_by_its_name() {
        for path in
            [".envrc", "sub/.ENVRC", "./.vscode/tasks.json", ".husky/pre-commit", "a//.npmrc"]
        {
            assert!(is_started(path), "{path}");
        }
        for path in ["envrc", "src/main.rs", ".gitignore", ".env", "vscode/x", ".husky"] {
            assert!(!is_started(path), "{path}");
        }
        assert!(needs_question("write_file", r#"{"path":".envrc","content":""}"#));
        assert!(!needs_question("read_file", r#"{"path":".envrc"}"#));
    }

    #[test]
    fn git_is_known_in_every_spelling() {
        for name in [".git", ".GIT", ".g\u{200c}it"] {
            assert!(is_git(name), "{name}");
        }
        assert!(!is_git(".github") && !is_git("git"));
    }
}
