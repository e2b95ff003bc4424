//! Git's configuration, of a repository and of the user, as far as it names programs that git runs.
//! The files are read directly, without starting git.

use std::fs;
use std::path::{Path, PathBuf};

use super::environment::UsersGit;

/// How deep configurations may include each other: git's own limit.
const DEEPEST: usize = 10;

/// The largest configuration that is read.
const LONGEST: u64 = 1 << 20;

/// Settings whose value is a command that git runs.
const COMMANDS: [&str; 15] = [
    "hook.command",
    "filter.clean",
    "filter.smudge",
    "filter.process",
    "diff.command",
    "diff.textconv",
    "diff.external",
    "merge.driver",
    "core.fsmonitor",
    "core.editor",
    "core.pager",
    "core.sshcommand",
    "core.askpass",
    "credential.helper",
    "gpg.program",
];

/// The paths that a repository's configuration and the user's own name for a work tree: the folder
/// of its hooks, scripts in commands, and included files. Empty without a repository.
pub(crate) fn named_by(work_tree: &Path, users: &UsersGit) -> Vec<PathBuf> {
    let Some(own) = git_folder(work_tree) else { return Vec::new() };
    let common = fs::read_to_string(own.join("commondir"));
    let common = common.map_or_else(|_| own.clone(), |path| own.join(path.trim()));
    let mut reading = Reading { work_tree: Some(work_tree), users, named: Vec::new() };
    for file in [common.join("config"), own.join("config.worktree")].iter().chain(&users.files) {
        reading.read(file, DEEPEST);
    }
    reading.named
}

/// The paths that the user's own configuration names for every repository: its files, included
/// files, and hooks by an absolute path.
pub(crate) fn named_by_users(users: &UsersGit) -> Vec<PathBuf> {
    let mut reading = Reading { work_tree: None, users, named: users.files.clone() };
    users.files.iter().for_each(|file| reading.read(file, DEEPEST));
    reading.named.retain(|path| path.is_absolute());
    reading.named
}

/// The repository of a work tree, by its resolved path.
pub(super) fn repository_of(work_tree: &Path) -> Option<PathBuf> {
    git_folder(work_tree)?.canonicalize().ok()
}

/// The folder in which git keeps the repository.
fn git_folder(work_tree: &Path) -> Option<PathBuf> {
    let git = work_tree.join(".git");
    let meta = fs::metadata(&git).ok()?;
    if meta.is_dir() {
        return Some(git);
    }
    let text = fs::read_to_string(&git).ok().filter(|_| meta.len() < LONGEST)?;
    Some(work_tree.join(text.strip_prefix("gitdir:")?.trim()))
}

/// The configurations that apply to a work tree, or to none in particular.
struct Reading<'a> {
    work_tree: Option<&'a Path>,
    users: &'a UsersGit,
    named: Vec<PathBuf>,
}

impl Reading<'_> {
    fn read(&mut self, file: &Path, deep: usize) {
        let is_fit = |meta: fs::Metadata| meta.is_file() && meta.len() <= LONGEST;
        if deep == 0 || !fs::metadata(file).is_ok_and(is_fit) {
            return;
        }
        let Ok(text) = fs::read(file) else { return };
        for (key, value) in settings(&String::from_utf8_lossy(&text)) {
            match key.as_str() {
                "core.hookspath" if !value.is_empty() => {
                    let hooks = self.expanded(&value);
                    self.named.push(self.work_tree.unwrap_or(Path::new("")).join(hooks));
                }
                "include.path" | "includeif.path" if !value.is_empty() => {
                    let included = file.parent().unwrap_or(file).join(self.expanded(&value));
                    self.read(&included, deep - 1);
                    self.named.push(included);
                }
                key if COMMANDS.contains(&key) => self.add_scripts(&value),
                _ => {}
            }
        }
    }

    /// Adds the files that a command may name.
    fn add_scripts(&mut self, command: &str) {
        let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'', '!', ';']));
        let is_path = |word: &&str| word.contains(['/', '.']) && !word.starts_with(['-', '%']);
        let folder = self.work_tree.unwrap_or(Path::new(""));
        let paths = words.filter(is_path).map(|word| folder.join(self.expanded(word)));
        let files: Vec<PathBuf> = paths.filter(|path| !path.is_dir()).collect();
        self.named.extend(files);
    }

    /// Expands `~/` to the user's home folder, as git does.
    fn expanded(&self, value: &str) -> PathBuf {
        match (value.strip_prefix("~/"), &self.users.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(value),
        }
    }
}

/// The settings in a configuration, in order: `section.name` in lower case, without the quoted
/// subsection.
fn settings(text: &str) -> Vec<(String, String)> {
    let text = text.replace("\r\n", "\n").replace("\\\n", "");
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut line = line.trim_start_matches('\u{feff}').trim();
        if let Some(header) = line.strip_prefix('[') {
            let Some(end) = header_end(header) else { continue };
            let name = header[..end].split(['"', '.']).next().unwrap_or_default();
            section = name.trim().to_ascii_lowercase();
            line = header[end + 1..].trim();
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim().to_ascii_lowercase();
        found.push((format!("{section}.{name}"), plain(value)));
    }
    found
}

/// The end of a section's header, whose brackets may be quoted.
fn header_end(header: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    header.char_indices().find_map(|(at, character)| {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
        None
    })
}

/// A value without quotes, escapes and comment.
fn plain(value: &str) -> String {
    let (mut plain, mut quoted) = (String::new(), false);
    // White space at the end is dropped.
    let mut kept = 0;
    let mut characters = value.trim().chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => plain.extend(characters.next()),
            _ => plain.push(character),
        }
        if quoted || !character.is_whitespace() {
            kept = plain.len();
        }
    }
    plain.truncate(kept);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_as_git_reads_it() {
        let text = "; all\n[core]\n\tbare\n hooksPath = a\\\nb # c\n[x \"core] = y\"]\nhooksPath=n\n\
                    [CORE] HOOKSPATH = \" d;e \" ; f\nhooksPath = \"g\\\"h\"i\n";
        let values = settings(text).into_iter().filter(|(key, _)| key == "core.hookspath");
        let values: Vec<String> = values.map(|(_, value)| value).collect();
        assert_eq!(values, ["ab", " d;e ", "g\"hi"]);
    }
}
