//! File changes as unified diffs that git can apply. Pure.

use std::fmt::Write as _;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};
use stepwell_wire::{FileDiff, FileDiffKind};

use crate::binary;

/// The state of a path, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// No file.
    Absent,
    /// A file.
    File {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link with its target.
    Link(String),
    /// A file whose content is not available, for this reason.
    Unknown(String),
}

/// How long to search for the shortest diff; after that a longer one is used.
const PATIENCE: Duration = Duration::from_secs(2);

/// The change of one path.
#[must_use]
pub fn file_diff(path: &str, renamed_from: Option<&str>, before: &Side, after: &Side) -> FileDiff {
    let change = match (before, after, renamed_from) {
        (_, _, Some(_)) => FileDiffKind::Renamed,
        (Side::Absent, _, _) => FileDiffKind::Created,
        (_, Side::Absent, _) => FileDiffKind::Deleted,
        _ => FileDiffKind::Changed,
    };
    let mut patch = FileDiff {
        path: path.to_owned(),
        change,
        renamed_from: renamed_from.map(ToOwned::to_owned),
        added: 0,
        removed: 0,
        diff: String::new(),
    };
    let is_link = |side: &Side| matches!(side, Side::Link(_));
    let both = *before != Side::Absent && *after != Side::Absent;
    if both && is_link(before) != is_link(after) {
        // Git has no patch that turns one into the other.
        write(&mut patch, path, before, &Side::Absent);
        write(&mut patch, path, &Side::Absent, after);
    } else {
        write(&mut patch, renamed_from.unwrap_or(path), before, after);
    }
    patch
}

fn write(patch: &mut FileDiff, old_path: &str, before: &Side, after: &Side) {
    let (Some(was), Some(is)) = (before.bytes(), after.bytes()) else {
        // Git skips lines that are not a patch.
        remark(patch, old_path, before, after);
        return;
    };
    let (old, new) = (quoted("a/", old_path), quoted("b/", &patch.path));
    let mut head = String::new();
    match (before.mode(), after.mode()) {
        (None, Some(mode)) => line(&mut head, format_args!("new file mode {mode:o}")),
        (Some(mode), None) => line(&mut head, format_args!("deleted file mode {mode:o}")),
        (Some(was), Some(is)) if was != is => {
            line(&mut head, format_args!("old mode {was:o}"));
            line(&mut head, format_args!("new mode {is:o}"));
        }
        _ => {}
    }
    if old_path != patch.path {
        line(&mut head, format_args!("rename from {}", quoted("", old_path)));
        line(&mut head, format_args!("rename to {}", quoted("", &patch.path)));
    }
    head.push_str(&index(before, after));
    remark(patch, old_path, before, after);
    if head.is_empty() {
        return;
    }
    line(&mut patch.diff, format_args!("diff --git {old} {new}"));
    patch.diff.push_str(&head);
    if was == is {
        return;
    }
    let from = if *before == Side::Absent { "/dev/null" } else { &old };
    let to = if *after == Side::Absent { "/dev/null" } else { &new };
    match (text(was), text(is)) {
        (Some(was), Some(is)) => {
            let was = NamedText { name: from, text: was };
            compare(patch, &was, &NamedText { name: to, text: is });
        }
        _ => patch.diff.push_str(&binary::patch(was, is)),
    }
}

/// Writes a comment in front of a patch for changes that git cannot represent, or that are unknown.
fn remark(patch: &mut FileDiff, old_path: &str, before: &Side, after: &Side) {
    let path = quoted("", &patch.path);
    let from = match old_path == patch.path {
        true => String::new(),
        false => format!(" (was {})", quoted("", old_path)),
    };
    for (word, side) in [("before", before), ("after", after)] {
        if let Side::Unknown(why) = side {
            line(&mut patch.diff, format_args!("# {path}{from}: {word}: not captured: {why}"));
        }
    }
    if let (Side::File { mode: was, .. }, Side::File { mode: is, .. }) = (before, after)
        && was != is
        && before.mode() == after.mode()
    {
        line(&mut patch.diff, format_args!("# {path}{from}: mode {was:o} became {is:o}"));
    }
    if let (Side::Absent, Side::File { mode, .. }) = (before, after)
        && is_odd(*mode)
    {
        line(&mut patch.diff, format_args!("# {path}: mode {mode:o}"));
    }
}

fn compare(patch: &mut FileDiff, from: &NamedText<'_>, to: &NamedText<'_>) {
    let lines = |text: &'_ str| -> Vec<String> {
        text.split_inclusive('\n').map(ToOwned::to_owned).collect()
    };
    let (was, is) = (lines(from.text), lines(to.text));
    let was: Vec<&str> = was.iter().map(String::as_str).collect();
    let is: Vec<&str> = is.iter().map(String::as_str).collect();
    let diff =
        TextDiff::configure().timeout(PATIENCE).newline_terminated(true).diff_slices(&was, &is);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => patch.added += 1,
            ChangeTag::Delete => patch.removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let _ = write!(patch.diff, "{}", diff.unified_diff().header(from.name, to.name));
}

/// A side of a diff, with the name for its header.
struct NamedText<'a> {
    name: &'a str,
    text: &'a str,
}

/// Does this mode differ from the one with which git would create the file? Git creates files that
/// all may read, and leaves the rest to the umask.
const fn is_odd(mode: u32) -> bool {
    mode & 0o7000 != 0 || mode & 0o444 != 0o444
}

impl Side {
    /// The mode in git's notation; `None` for an absent or unknown file.
    fn mode(&self) -> Option<u32> {
        match self {
            // Git only distinguishes executable files from others.
            Self::File { mode, .. } if mode & 0o100 != 0 => Some(0o100_755),
            Self::File { .. } => Some(0o100_644),
            Self::Link(_) => Some(0o120_000),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Absent => Some(&[]),
            Self::File { bytes, .. } => Some(bytes),
            Self::Link(target) => Some(target.as_bytes()),
            Self::Unknown(_) => None,
        }
    }
}

/// The `index` line; without it git applies no binary patch.
fn index(before: &Side, after: &Side) -> String {
    let name = |side: &Side| match side {
        Side::Absent => binary::NOTHING.to_owned(),
        side => binary::name(side.bytes().unwrap_or_default()),
    };
    let (was, is) = (name(before), name(after));
    match (before.mode(), after.mode()) {
        _ if was == is => String::new(),
        (Some(was_mode), Some(is_mode)) if was_mode == is_mode => {
            format!("index {was}..{is} {is_mode:o}\n")
        }
        _ => format!("index {was}..{is}\n"),
    }
}

fn line(to: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(to, "{line}");
}

/// The bytes as text; `None` for a binary file.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// A path in git's notation: quoted if it contains special characters.
fn quoted(prefix: &str, path: &str) -> String {
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    if path.chars().all(plain) {
        return format!("{prefix}{path}");
    }
    let mut quoted = format!("\"{prefix}");
    for c in path.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let mut buffer = [0; 4];
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Side {
        Side::File { bytes: text.into(), mode: 0o644 }
    }

    #[test]
    fn a_change_is_shown_with_lines_around_it() {
        let patch = file_diff("a.txt", None, &file("1\n2\n3\n"), &file("1\ntwo\n3"));
        assert_eq!(
            patch.diff,
            "diff --git a/a.txt b/a.txt\n\
             index 01e79c32a8c99c557f0757da7cb6d65b3414466d..\
             8f93bc619c9c93cacc6b02bff1521ed1d031e81d 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n-3\n\
             +two\n+3\n\\ No newline at end of file\n"
        );
        assert_eq!((patch.added, patch.removed, patch.change), (2, 2, FileDiffKind::Changed));
    }

    #[test]
    fn what_comes_goes_moves_or_is_no_text_is_said() {
        let diff = |from, before: &Side, after: &Side| file_diff("b", from, before, after).diff;
        let created = diff(None, &Side::Absent, &file("x\n"));
        assert!(created.contains("new file mode 100644\nindex 0000"), "{created}");
        assert!(created.contains("\n--- /dev/null\n+++ b/b\n"), "{created}");
        let gone = diff(None, &file("x\n"), &Side::Absent);
        assert!(gone.contains("deleted file mode 100644\nindex 587be6b"), "{gone}");
        assert!(
            gone.contains("..0000000000000000000000000000000000000000\n--- a/b\n+++ /dev/null\n")
        );
        let moved = diff(Some("a"), &file("x"), &file("x"));
        assert_eq!(moved, "diff --git a/a b/b\nrename from a\nrename to b\n");
        let mode = Side::File { bytes: b"x".to_vec(), mode: 0o755 };
        let mode = diff(None, &file("x"), &mode);
        assert_eq!(mode, "diff --git a/b b/b\nold mode 100644\nnew mode 100755\n");
        let binary = diff(None, &file("x"), &Side::File { bytes: vec![0], mode: 0o644 });
        assert!(binary.contains("100644\nGIT binary patch\nliteral 1\n"), "{binary}");
        let unknown = diff(None, &Side::Unknown("too large".into()), &file("x"));
        assert_eq!(unknown, "# b: before: not captured: too large\n");
        let link = diff(None, &file("x\n"), &Side::Link("y".into()));
        assert!(link.contains("deleted file mode") && link.contains("new file mode 120000"));
    }

    #[test]
    fn modes_are_those_that_git_knows_and_others_are_remarked() {
        let with = |mode| Side::File { bytes: b"x\n".to_vec(), mode };
        let diff = |was, is| file_diff("b", None, &with(was), &with(is)).diff;
        assert_eq!(diff(0o644, 0o600), "# b: mode 644 became 600\n");
        assert_eq!(diff(0o600, 0o700), "diff --git a/b b/b\nold mode 100644\nnew mode 100755\n");
        let made = file_diff("b", None, &Side::Absent, &with(0o444)).diff;
        assert!(made.contains("new file mode 100644\n"), "{made}");
        let nothing = Side::File { bytes: Vec::new(), mode: 0o644 };
        let made = file_diff("b", None, &Side::Absent, &nothing).diff;
        assert!(made.ends_with("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"), "{made}");
    }

    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(quoted("a/", "two words"), "a/two words");
        assert_eq!(quoted("a/", "q\"\\\n\u{7f}"), "\"a/q\\\"\\\\\\n\\177\"");
    }
}
