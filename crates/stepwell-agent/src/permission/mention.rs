//! Whether a text names the denied program.

use super::glob::{is_like, may_be_like};
use super::shell::{SPLIT, is_unknown};

/// Does a text name the pattern's program and its next word, as code would? The text may hold
/// quotes and file globs.
pub(super) fn is_mentioned(pattern: &str, text: &str) -> bool {
    let mut words = pattern.split_whitespace();
    let (Some(program), second) = (words.next(), words.next()) else { return false };
    // `r''m` is `rm` to a shell, `\nrm` is `rm` on a line of its own, and `git-push` is `git push`.
    let bare: String = text.chars().filter(|it| !matches!(it, '\'' | '"' | '\\')).collect();
    let lines = text.replace("\\n", " ").replace("\\t", " ");
    [bare.replace("git-", "git "), lines].iter().any(|text| {
        let is_computed = || text.contains(['$', '`']) || text.contains(is_unknown);
        let has_second = |second| is_computed() || names(text).any(|name| is_like(second, name));
        names(text).any(|name| is_program(program, name)) && second.is_none_or(has_second)
    })
}

/// Does a text name the file of the pattern's program, such as `/bin/rm`?
pub(super) fn is_file_named(pattern: &str, text: &str) -> bool {
    let program = pattern.split_whitespace().next().unwrap_or_default();
    names(text).any(|name| name.contains("bin/") && is_program(program, name))
}

/// The parts of a text that could be names of programs and files.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_in_name = |it: char| it.is_alphanumeric() || "_-.+/?*[]".contains(it) || is_unknown(it);
    text.split(move |it| !is_in_name(it)).filter(|name| !name.is_empty())
}

/// The file name of a path.
pub(super) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Is this name the pattern's program? A name with an extension must match completely.
fn is_program(program: &str, name: &str) -> bool {
    let stem = program.trim_end_matches('*');
    let file = if program.contains('/') { name } else { base(name) };
    // An option can have its value attached: `-Irm`.
    let is_attached = name.starts_with('-') && !name.starts_with("--") && name.ends_with(stem);
    let is_named = file == stem || is_attached || may_be_glob_of(stem, file);
    (is_named && !stem.is_empty()) || (is_like(program, file) && !file.contains('.'))
}

/// Could a file glob expand to the program?
fn may_be_glob_of(program: &str, name: &str) -> bool {
    let mut glob = String::new();
    let mut rest = name.chars();
    while let Some(next) = rest.next() {
        match next {
            '?' | '*' => glob.push(SPLIT),
            '[' => {
                glob.push(SPLIT);
                rest.by_ref().take_while(|it| *it != ']').for_each(drop);
            }
            plain => glob.push(plain),
        }
    }
    let is_glob = glob != name && glob.contains(char::is_alphanumeric);
    is_glob && may_be_like(program, &glob)
}
