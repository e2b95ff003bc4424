//! Files that other programs execute, or take a command from, without a request.
//!
//! A permission to write files must not become a permission to run commands. Git runs what its
//! folder says, and shells and editors run some files as soon as a user enters the folder.

use std::path::{Component, Path, PathBuf};

use crate::git::config;
use crate::git::environment::UsersGit;

/// Files that some program executes, or takes a command from.
const FILES: [&str; 76] = [
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
    ".aider.conf.yml",
    "crush.json",
    ".crush.json",
    ".Rprofile",
    ".ghci",
    ".irbrc",
    ".pryrc",
    ".iex.exs",
    ".pdbrc",
    ".octaverc",
    ".perldb",
];

/// Folders of such files.
const FOLDERS: [&str; 32] = [
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
    ".continue",
    ".clinerules",
    ".amazonq",
    ".factory",
    ".junie",
    ".trae",
    ".augment",
    ".crush",
    ".goose",
];

/// Folders of such files, with their parent folder.
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

/// Would changing this path later run a command without a request? Judged by its names.
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
        || is_of_mise(last, folders)
        || folders.iter().any(|name| is(name, &FOLDERS))
        || folders.windows(2).any(is_below)
}

/// Is it a configuration of mise, which runs hooks: for one environment, or in its own folder?
fn is_of_mise(name: &str, folders: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    let front = name.trim_start_matches('.');
    (front.starts_with("mise.") && name.ends_with(".toml"))
        || (name == "config.toml"
            && folders.last().is_some_and(|it| it.eq_ignore_ascii_case("mise")))
}

/// Is this the name of git's folder, or of the file that leads to it? Some file systems ignore case
/// and some invisible characters.
#[must_use]
pub fn is_git(name: &str) -> bool {
    let unseen = |character: &char| matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let plain: String = name.chars().filter(|it| !unseen(it)).collect();
    plain.eq_ignore_ascii_case(".git")
}

/// Does git run this file or read settings from it, because the configuration of a surrounding
/// repository or of the user names it? Such files are hooks in another folder, and included
/// configurations. The path is absolute. Git itself is not started.
#[must_use]
pub fn is_named_to_git(path: &Path) -> bool {
    is_named(path, &UsersGit::found())
}

fn is_named(path: &Path, users: &UsersGit) -> bool {
    let path = real(path);
    let is_below = |named: &Path, work_tree: &Path| {
        let named = real(named);
        // Hooks are directly in their folder; a folder that contains the whole work tree does not
        // contain only hooks.
        let is_narrow = !work_tree.starts_with(&named);
        path.starts_with(&named) && (is_narrow || path.parent() == Some(&named))
    };
    let holds = |work_tree: &Path| {
        config::named_by(work_tree, users).iter().any(|named| is_below(named, work_tree))
    };
    // The user's own hooks, inside of a repository or not.
    let home = users.home.as_deref().unwrap_or(Path::new("/"));
    let are_users = || config::named_by_users(users).iter().any(|named| is_below(named, home));
    path.ancestors().skip(1).any(holds) || are_users()
}

/// The resolved path, even if its end does not exist.
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
        // A link is resolved before the rest of the path: `link/..` is not the folder of the link.
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
            "mise.dev.toml",
            "mise/config.toml",
            ".mise.test.local.toml",
            ".Rprofile",
            "sub/.ghci",
            ".aider.conf.yml",
            ".clinerules/hooks/PreToolUse",
            ".continue/config.yaml",
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
        // Through a link, in a nested repository, and by an absolute path.
        write("tools/hooks/commit-msg", "");
        std::os::unix::fs::symlink("tools", at("link")).unwrap();
        assert!(is_named_to_git(&at("link/hooks/pre-push")));
        let inner = format!("[core]hooksPath = \"{}\"\n", at("sub/my hooks").display());
        write("sub/.git/config", &inner);
        assert!(is_named_to_git(&at("sub/my hooks/x")) && !is_named_to_git(&at("sub/x")));
        // A file leads to a worktree's folder, and its configuration is in two files.
        write("real/config", "[core]\n");
        write("real/worktrees/w/commondir", "../..\n");
        write("real/worktrees/w/config.worktree", "[ CORE ]\nhookspath=ci\n");
        write("w/.git", "gitdir: ../real/worktrees/w\n");
        assert!(is_named_to_git(&at("w/ci/post-checkout")) && !is_named_to_git(&at("w/x")));
        write("all/.git/config", "[core]\nhooksPath = .\n");
        assert!(is_named_to_git(&at("all/pre-commit")) && !is_named_to_git(&at("all/src/x")));
    }

    #[test]
    fn hooks_that_the_users_own_configuration_names_are_gits() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        };
        write("work/.git/config", "");
        write("plain/x", "");
        write("home/dotfiles/gitconfig", "[include]\npath = ~/dotfiles/more\n");
        write("home/dotfiles/more", "[core]\nhooksPath = ci/hooks\n");
        std::fs::create_dir_all(at("home")).unwrap();
        std::os::unix::fs::symlink("dotfiles/gitconfig", at("home/.gitconfig")).unwrap();
        let files = vec![at("home/.gitconfig"), at("home/none")];
        let users = UsersGit { home: Some(at("home")), files };
        let is = |path: &str| is_named(&at(path), &users);
        // In each repository, and only in repositories.
        assert!(is("work/ci/hooks/pre-commit") && !is("work/ci/x"));
        assert!(!is("plain/ci/hooks/pre-commit"));
        // The configuration itself, under any name, and its includes.
        assert!(is("home/dotfiles/gitconfig") && is("home/dotfiles/more"));
        assert!(!is("home/dotfiles/vimrc"));
        // One folder for all repositories.
        write("home/dotfiles/more", "[core]\nhooksPath = ~/dotfiles/hooks\n");
        assert!(is("home/dotfiles/hooks/pre-push") && !is("home/dotfiles/x"));
        assert!(!is("work/ci/hooks/pre-commit"));
    }

    #[test]
    fn scripts_that_a_configuration_has_git_run_are_gits() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".git")).unwrap();
        let config = "[hook \"lint\"]\nevent = pre-commit\ncommand = sh check.sh --fast .\n\
                      [filter \"x\"]\nclean = \"./tools/clean %f\"\n[core]\nfsmonitor = true\n";
        std::fs::write(dir.path().join(".git/config"), config).unwrap();
        let is = |path: &str| is_named(&dir.path().join(path), &UsersGit::default());
        assert!(is("check.sh") && is("tools/clean"));
        assert!(!is("README.md") && !is("tools/other") && !is("true"));
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
