//! What lies in a session's folder, by the paths of its files: whatever else is found there is
//! somebody else's.

use std::path::{Path, PathBuf};

/// The first thing below a folder that is neither called as one of these patterns says nor
/// `known`, by its path below it. In a part of a pattern `*` stands for any letters and `#` for
/// digits. What cannot be looked at is not known.
pub(crate) fn stranger(
    folder: &Path,
    patterns: &[&str],
    known: &dyn Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let mut waiting = vec![PathBuf::new()];
    while let Some(below) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(folder.join(&below)) else { return Some(below) };
        for entry in entries {
            let Ok(entry) = entry else { return Some(below) };
            let path = below.join(entry.file_name());
            let expected = entry.file_type().is_ok_and(|kind| match kind.is_dir() {
                true => patterns.iter().any(|pattern| leads_to(pattern, &path)),
                false => {
                    kind.is_file()
                        && (known(&path) || patterns.iter().any(|pattern| fits(pattern, &path)))
                }
            });
            if !expected {
                return Some(path);
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            }
        }
    }
    None
}

/// Is a path what the pattern says?
pub(crate) fn fits(pattern: &str, path: &Path) -> bool {
    pattern.split('/').count() == path.components().count() && begins(pattern, path)
}

/// Is a path a folder above what the pattern says?
pub(crate) fn leads_to(pattern: &str, path: &Path) -> bool {
    pattern.split('/').count() > path.components().count() && begins(pattern, path)
}

fn begins(pattern: &str, path: &Path) -> bool {
    let names = path.components().map(|part| part.as_os_str().to_str());
    pattern.split('/').zip(names).all(|(pattern, name)| name.is_some_and(|it| is(pattern, it)))
}

/// Is a name what one part of a pattern says?
fn is(pattern: &str, name: &str) -> bool {
    let Some(at) = pattern.find(['*', '#']) else { return pattern == name };
    let (front, end) = (&pattern[..at], &pattern[at + 1..]);
    let middle = name.strip_prefix(front).and_then(|rest| rest.strip_suffix(end));
    let digits = pattern[at..].starts_with('#');
    middle.is_some_and(|it| {
        !it.is_empty() && (!digits || it.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stands_for_whole_names_of_its_depth() {
        let pattern = "agents/agent_*/messages/message_#.json";
        let fits = |path: &str| fits(pattern, Path::new(path));
        assert!(fits("agents/agent_a/messages/message_12.json"));
        assert!(!fits("agents/agent_/messages/message_12.json"));
        assert!(!fits("agents/agent_a/messages/message_x.json"));
        assert!(!fits("agents/agent_a/messages/message_.json"));
        assert!(!fits("agents/agent_a/messages/message_12.json/x"));
        assert!(!fits("agents/agent_a/message_12.json"));
        let leads = |path: &str| leads_to(pattern, Path::new(path));
        assert!(leads("agents") && leads("agents/agent_a") && leads("agents/agent_a/messages"));
        assert!(!leads("agents/other") && !leads("agents/agent_a/messages/message_1.json"));
    }
}
