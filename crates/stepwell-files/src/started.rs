//! Files that other programs run, or take a command from, without being told to.
//!
//! Whoever may write files must not get commands run by it. Git runs what its folder says, and a
//! shell or an editor what it finds in some files, as soon as someone enters the folder.

use std::path::{Component, Path, PathBuf};

use crate::git::config;

/// Files that some program runs, or takes a command from.
const FILES: [&str; 65] = [
    ".envrc",
    ".direnvrc",
    ".autoenv",
    ".autoenv.zsh",
    ".mise.toml",
    ".mise.local.toml",
    "mise.toml",
    "mise.local.toml",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".xinitrc",
    ".xprofile",
    ".gitconfig",
    ".hgrc",
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
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".tmux.conf",
    ".pre-commit-config.yaml",
    ".overcommit.yml",
    ".simple-git-hooks.json",
    ".simple-git-hooks.js",
    ".simple-git-hooks.cjs",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".lefthook.toml",
    ".lefthook.json",
    "lefthook-local.yml",
    "lefthook-local.yaml",
    "lefthook-local.toml",
    "lefthook-local.json",
    ".lefthook-local.yml",
    ".lefthook-local.yaml",
    ".lefthook-local.toml",
    ".lefthook-local.json",
    ".emacs",
    ".mcp.json",
    "opencode.json",
    "opencode.jsonc",
];

/// Folders of which the same is true.
const FOLDERS: [&str; 23] = [
    ".husky",
    ".githooks",
    ".hg",
    ".jj",
    ".mise",
    ".vscode",
    ".zed",
    ".idea",
    ".cargo",
    ".devcontainer",
    ".ssh",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".qwen",
    ".opencode",
    ".windsurf",
    ".kiro",
    ".roo",
    ".helix",
    ".vim",
    ".emacs.d",
];

/// Folders of which the same is true, with the folder that they lie in.
const BELOW: [(&str, &str); 8] = [
    (".config", "mise"),
    (".config", "git"),
    (".config", "fish"),
    (".config", "nvim"),
    (".config", "helix"),
    (".config", "emacs"),
    (".config", "direnv"),
    (".config", "opencode"),
];

/// Would changing this path have a command run later, without anyone calling it? Goes by its names.
#[must_use]
pub fn is_started(path: &str) -> bool {
    let is = |name: &str, all: &[&str]| all.iter().any(|it| it.eq_ignore_ascii_case(name));
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let Some((last, folders)) = names.split_last() else { return false };
    let is_below = |pair: &[&str]| {
        let [outer, inner] = pair else { return false };
        BELOW.iter().any(|(o, i)| outer.eq_ignore_ascii_case(o) && inner.eq_ignore_ascii_case(i))
    };
    is(last, &FILES)
        || folders.iter().any(|name| is(name, &FOLDERS))
        || folders.windows(2).any(is_below)
}

/// Is it the name of git's folder, or of the file that leads to it? Some file systems ignore case,
/// and some characters that are not seen.
#[must_use]
pub fn is_git(name: &str) -> bool {
    let unseen = |character: &char| matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let plain: String = name.chars().filter(|it| !unseen(it)).collect();
    plain.eq_ignore_ascii_case(".git")
}

/// Does git run this file, or take settings from it, because a repository around it says so in its
/// configuration: hooks in a folder of another name, and files that the configuration includes?
/// The path is absolute. Git is not asked.
#[must_use]
pub fn is_named_to_git(path: &Path) -> bool {
    let path = real(path);
    path.ancestors().skip(1).any(|work_tree| {
        config::named_by(work_tree).iter().map(|named| real(named)).any(|named| {
            // Hooks lie in the folder itself: one that holds the whole work tree is not all hooks.
            let is_narrow = !work_tree.starts_with(&named);
            path.starts_with(&named) && (is_narrow || path.parent() == Some(&named))
        })
    })
}

/// Where a path leads, also if its end does not exist.
fn real(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
        // A link is followed before what comes behind it is read: `link/..` is not where it began.
        if let Ok(found) = plain.canonicalize() {
            plain = found;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_by_itself_is_known_by_its_name() {
        for path in [
            ".envrc",
            "lefthook.toml",
            "lefthook-local.yml",
            ".helix/languages.toml",
            ".vim/coc-settings.json",
            ".overcommit.yml",
            ".simple-git-hooks.json",
            ".bash_aliases",
            ".zlogout",
            ".config/git/config",
            ".config/fish/config.fish",
            ".config/nvim/init.lua",
            ".emacs.d/init.el",
            ".qwen/settings.json",
            ".opencode/plugin/x.js",
            "opencode.json",
            ".windsurf/hooks.json",
            ".kiro/hooks/x.json",
            ".roo/mcp.json",
            "sub/.ENVRC",
            "./.vscode/tasks.json",
            ".husky/pre-commit",
            "a//.npmrc",
            ".hg/hgrc",
            ".jj/repo/config.toml",
            ".mise/config.toml",
            ".config/mise/config.toml",
            ".dir-locals.el",
            "sub/.zed/tasks.json",
        ] {
            assert!(is_started(path), "{path}");
        }
        for path in ["src/main.rs", ".gitignore", "envrc", ".vscode", "mise/a", ".config/x", ""] {
            assert!(!is_started(path), "{path}");
        }
    }

    #[test]
    fn git_is_known_in_every_spelling() {
        for name in [".git", ".GIT", ".g\u{200c}it"] {
            assert!(is_git(name), "{name}");
        }
        assert!(!is_git(".github") && !is_git("git"));
    }

    #[test]
    fn a_folder_that_a_repository_names_for_its_hooks_is_gits() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        };
        write(".git/config", "[core]\n\tbare = false\n\tHooksPath = tools/hooks # ours\n");
        for path in ["tools/hooks/pre-commit", "tools/hooks/deep/x", "tools/../tools/hooks/new"] {
            assert!(is_named_to_git(&at(path)), "{path}");
        }
        for path in ["tools/build", "tools/hooks2/x", "src/main.rs"] {
            assert!(!is_named_to_git(&at(path)), "{path}");
        }
        // Over a link, in a repository within, and by an absolute path.
        write("tools/hooks/commit-msg", "");
        std::os::unix::fs::symlink("tools", at("link")).unwrap();
        assert!(is_named_to_git(&at("link/hooks/pre-push")));
        let inner = format!("[core]hooksPath = \"{}\"\n", at("sub/my hooks").display());
        write("sub/.git/config", &inner);
        assert!(is_named_to_git(&at("sub/my hooks/x")) && !is_named_to_git(&at("sub/x")));
        // A worktree's folder is named by a file, and its configuration is in two.
        write("real/config", "[core]\n");
        write("real/worktrees/w/commondir", "../..\n");
        write("real/worktrees/w/config.worktree", "[ CORE ]\nhookspath=ci\n");
        write("w/.git", "gitdir: ../real/worktrees/w\n");
        assert!(is_named_to_git(&at("w/ci/post-checkout")) && !is_named_to_git(&at("w/x")));
        write("all/.git/config", "[core]\nhooksPath = .\n");
        assert!(is_named_to_git(&at("all/pre-commit")) && !is_named_to_git(&at("all/src/x")));
    }

    #[test]
    fn what_a_repositorys_configuration_includes_is_gits() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        let config = "[include]\npath = ../shared.cfg\n[includeIf \"onbranch:x\"]\npath = b\n";
        std::fs::write(dir.path().join(".git/config"), config).unwrap();
        std::fs::write(dir.path().join("shared.cfg"), "[core]\nhooksPath = h\n").unwrap();
        for path in ["shared.cfg", "h/pre-commit", ".git/b"] {
            assert!(is_named_to_git(&dir.path().join(path)), "{path}");
        }
        assert!(!is_named_to_git(&dir.path().join("other.cfg")));
    }
}
