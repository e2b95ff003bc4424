//! The diff of a proposed commit: each file with its line counts, and the changes themselves, new
//! files included.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stepwell::model::Digest;
use stepwell_files::diff::{Side, file_diff};
use stepwell_files::git::SafeGit;

/// How many files are listed.
const LISTED: usize = 40;

/// The most lines, and bytes, of the diff in a question.
const ASKED_LINES: usize = 200;
const ASKED_BYTES: usize = 12 << 10;

/// The largest new file whose lines are shown.
const MOST_BYTES: u64 = 256 << 10;

/// The diff of a proposed commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommitDiff {
    /// Each file, with the numbers of added and removed lines.
    pub(super) files: Vec<String>,
    /// The changes as one text.
    pub(super) patch: String,
}

impl CommitDiff {
    /// Compares files of the workspace with the checked-out commit; with no commit, if `base` is
    /// empty.
    pub(super) fn read(root: &Path, base: &str, files: &[String]) -> Self {
        let git = SafeGit::new(root);
        let compared = |how: &[&str]| {
            let mut args = vec!["--literal-pathspecs", "diff", "--no-renames", "--relative"];
            args.extend(how);
            args.extend(["HEAD", "--"]);
            args.extend(files.iter().map(String::as_str));
            if base.is_empty() { String::new() } else { git.text(&args).unwrap_or_default() }
        };
        let counted = compared(&["--numstat", "-z"]);
        let counted: BTreeMap<&str, String> = counted.split('\0').filter_map(counts).collect();
        let mut all = Self { files: Vec::new(), patch: compared(&[]) };
        for path in files {
            match counted.get(path.as_str()) {
                Some(counts) => all.files.push(format!("{path} {counts}")),
                None => all.add_new(root, path),
            }
        }
        all
    }

    /// Adds a file that git does not track yet.
    fn add_new(&mut self, root: &Path, path: &str) {
        let patch = file_diff(path, None, &Side::Absent, &found(&root.join(path)));
        self.files.push(format!("{path} +{} (new)", patch.added));
        if !self.patch.is_empty() && !self.patch.ends_with('\n') {
            self.patch.push('\n');
        }
        self.patch.push_str(&patch.diff);
    }

    /// The files, or the first ones of many.
    pub(super) fn listed(&self) -> String {
        let mut lines: Vec<&str> = self.files.iter().take(LISTED).map(String::as_str).collect();
        let more = format!("… and {} more", self.files.len().saturating_sub(LISTED));
        if self.files.len() > LISTED {
            lines.push(&more);
        }
        lines.join("\n")
    }

    /// The part of the changes that a person reads before answering.
    pub(super) fn excerpt(&self) -> String {
        let mut shown = String::new();
        let mut lines = self.patch.lines();
        let mut taken = 0;
        for line in lines.by_ref().take(ASKED_LINES) {
            if shown.len() + line.len() >= ASKED_BYTES {
                break;
            }
            shown.push_str(line);
            shown.push('\n');
            taken += 1;
        }
        match self.patch.lines().count() - taken {
            0 => shown.trim_end().to_owned(),
            more => format!("{shown}… and {more} more lines"),
        }
    }
}

/// A digest over the contents of some files.
pub(super) fn fingerprint(root: &Path, files: &[String]) -> String {
    let line = |path: &String| {
        let at = root.join(path);
        let held = match at.symlink_metadata() {
            Err(_) => "absent".to_owned(),
            Ok(about) if about.is_symlink() => {
                let to = std::fs::read_link(&at).unwrap_or_default();
                format!("link {}", Digest::of(to.as_os_str().as_encoded_bytes()))
            }
            Ok(about) if about.is_file() => {
                let runs = about.permissions().mode() & 0o100 != 0;
                let held = std::fs::File::open(&at).and_then(Digest::of_reader);
                let held = held.map_or_else(|error| error.to_string(), |(it, _)| it.to_string());
                format!("file {runs} {held}")
            }
            Ok(_) => "other".to_owned(),
        };
        format!("{}\0{path}\0{held}\n", path.len())
    };
    Digest::of(files.iter().map(line).collect::<String>().as_bytes()).to_string()
}

/// Parses a line of `git diff --numstat`: added lines, removed lines, the path.
fn counts(line: &str) -> Option<(&str, String)> {
    let mut parts = line.splitn(3, '\t');
    let (added, removed, path) = (parts.next()?, parts.next()?, parts.next()?);
    let counts = match added == "-" {
        true => "(no text)".to_owned(),
        false => format!("+{added} -{removed}"),
    };
    Some((path, counts))
}

/// The current state of a path.
fn found(path: &Path) -> Side {
    let Ok(about) = path.symlink_metadata() else { return Side::Absent };
    if about.is_symlink() {
        let to = std::fs::read_link(path).unwrap_or_default();
        return Side::Link(to.to_string_lossy().into_owned());
    }
    if !about.is_file() || about.len() > MOST_BYTES {
        return Side::Unknown(stepwell::model::counted(about.len(), "byte"));
    }
    match std::fs::read(path) {
        Ok(bytes) => Side::File { bytes, mode: about.permissions().mode() },
        Err(error) => Side::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_says_how_much_it_leaves_out() {
        let of = |lines: usize| {
            let patch = (0..lines).map(|n| format!("+{n}\n")).collect();
            CommitDiff { files: Vec::new(), patch }.excerpt()
        };
        assert_eq!(of(0), "");
        assert!(of(ASKED_LINES).ends_with("+199"));
        assert!(of(ASKED_LINES + 3).ends_with("+199\n… and 3 more lines"));
        let wide = CommitDiff { files: Vec::new(), patch: format!("+{}\n", "x".repeat(1 << 20)) };
        assert_eq!(wide.excerpt(), "… and 1 more lines");
        let files = (0..50).map(|n| format!("{n}.txt +1 (new)")).collect();
        let many = CommitDiff { files, patch: String::new() };
        assert!(many.listed().ends_with("39.txt +1 (new)\n… and 10 more"));
    }

    #[test]
    fn counts_of_files_that_are_no_text_are_none() {
        assert_eq!(counts("3\t1\ta b.txt"), Some(("a b.txt", "+3 -1".to_owned())));
        assert_eq!(counts("-\t-\tx.png"), Some(("x.png", "(no text)".to_owned())));
        assert_eq!(counts(""), None);
    }
}
