//! Git's index: the state of each tracked file when git last found it equal to an object. Pure; the
//! format is git's `gitformat-index`.

/// A tracked file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Relative to the top of the work tree.
    pub(crate) path: String,
    /// The name of its object, in hex.
    pub(crate) object: String,
    /// When it was modified, in seconds and nanoseconds since 1970.
    pub(crate) modified: (u32, u32),
    /// When its inode was changed.
    pub(crate) changed: (u32, u32),
    /// The low 32 bits of inode and size.
    pub(crate) inode: u32,
    pub(crate) size: u32,
}

/// The length of object names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Sha1,
    Sha256,
}

impl Names {
    fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// The files in an index; `None` if its format is unknown.
pub(crate) fn parse(bytes: &[u8], names: Names) -> Option<Vec<Entry>> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.take(4)? != b"DIRC" {
        return None;
    }
    let version = reader.number()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = reader.number()?;
    let mut entries = Vec::new();
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..count {
        let entry = reader.entry(version, names, &mut path)?;
        entries.extend(entry);
    }
    // Entries of a split index are in another file.
    let end = bytes.len().checked_sub(names.bytes())?;
    while reader.at < end {
        let signature = reader.take(4)?;
        if signature == b"link" {
            return None;
        }
        let size = usize::try_from(reader.number()?).ok()?;
        reader.take(size)?;
    }
    Some(entries)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Flags of an entry.
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// One entry; `Some(None)` is an entry that is not a file here.
    fn entry(&mut self, version: u32, names: Names, path: &mut Vec<u8>) -> Option<Option<Entry>> {
        let start = self.at;
        let changed = (self.number()?, self.number()?);
        let modified = (self.number()?, self.number()?);
        let _device = self.number()?;
        let inode = self.number()?;
        let mode = self.number()?;
        let _owner = (self.number()?, self.number()?);
        let size = self.number()?;
        let object = self.take(names.bytes())?;
        let flags = self.short()?;
        if flags & EXTENDED != 0 {
            self.short()?;
        }
        if version == 4 {
            let strip = self.varint()?;
            path.truncate(path.len().checked_sub(strip)?);
        } else {
            path.clear();
        }
        let rest = self.bytes.get(self.at..)?;
        let len = rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(&rest[..len]);
        self.at += len;
        if version == 4 {
            self.take(1)?;
        } else {
            // One to eight zeros, up to a multiple of eight.
            let used = self.at - start;
            self.take(8 - used % 8)?;
        }
        let is_file = mode & 0o170_000 == 0o100_000;
        if !is_file || flags & STAGE != 0 {
            return Some(None);
        }
        let Ok(path) = String::from_utf8(path.clone()) else { return Some(None) };
        let object = object.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Some(Entry { path, object, modified, changed, inode, size }))
    }

    /// A number of variable length, as in git's packs.
    fn varint(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1)?.checked_shl(7)? | usize::from(byte & 0x7f);
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, args: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.quotePath=off"];
        let output = Command::new("git").current_dir(folder).args(identity).args(args).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn an_index_of_every_version_reads_as_git_lists_it() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path();
        git(root, &["init", "-q"]);
        for (path, text) in [("a.txt", "a\n"), ("dir/b b", ""), ("dir/sub/ü.rs", "x"), ("run", "")]
        {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
        std::os::unix::fs::symlink("a.txt", root.join("link")).unwrap();
        for version in ["2", "4", "3"] {
            git(root, &["update-index", "--index-version", version]);
            git(root, &["add", "-A"]);
            if version == "3" {
                // This needs version 3 of the format.
                git(root, &["update-index", "--skip-worktree", "a.txt"]);
            }
            let bytes = std::fs::read(root.join(".git/index")).unwrap();
            let entries = parse(&bytes, Names::Sha1).unwrap();
            let listed = git(root, &["ls-files", "-s"]);
            let expected: Vec<(String, String)> = listed
                .lines()
                .filter(|line| line.starts_with("100"))
                .map(|line| {
                    let (meta, path) = line.split_once('\t').unwrap();
                    (path.to_owned(), meta.split(' ').nth(1).unwrap().to_owned())
                })
                .collect();
            let found: Vec<_> =
                entries.iter().map(|it| (it.path.clone(), it.object.clone())).collect();
            assert_eq!(found, expected, "version {version}");
            let meta = std::fs::metadata(root.join("a.txt")).unwrap();
            use std::os::unix::fs::MetadataExt as _;
            let a = &entries[0];
            assert_eq!(
                (i64::from(a.modified.0), i64::from(a.modified.1)),
                (meta.mtime(), meta.mtime_nsec())
            );
            assert_eq!(u64::from(a.size), meta.size());
        }
    }

    #[test]
    fn what_is_no_index_is_refused() {
        let whole = {
            let top = tempfile::tempdir().unwrap();
            git(top.path(), &["init", "-q"]);
            std::fs::write(top.path().join("a"), "a").unwrap();
            git(top.path(), &["add", "a"]);
            std::fs::read(top.path().join(".git/index")).unwrap()
        };
        assert!(parse(&whole, Names::Sha1).is_some());
        // Cuts within the last checksum are not noticed.
        for len in 0..whole.len() - 20 {
            assert!(parse(&whole[..len], Names::Sha1).is_none(), "{len}");
        }
        let mut newer = whole.clone();
        newer[7] = 5;
        assert!(parse(&newer, Names::Sha1).is_none());
        let mut split = whole;
        let end = split.len() - 20;
        split.splice(end..end, *b"link\0\0\0\0");
        assert!(parse(&split, Names::Sha1).is_none());
    }
}
