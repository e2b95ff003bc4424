//! Sessions as every system lays them out, written for these tests.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use stepwell_formats::Format;
use tempfile::TempDir;

/// The folder with the fixtures of a format, if there are any.
pub(crate) fn fixtures(format: Format) -> Option<PathBuf> {
    let folder = match format.as_str() {
        "claude-code" => "claude",
        name @ ("codex" | "goose" | "architect" | "gaia" | "m31a" | "strands-cli"
        | "strands-sdk" | "qwen" | "pi" | "langgraph" | "openai" | "adk") => name,
        _ => return None,
    };
    Some(all().join(folder))
}

/// The folder with the fixtures of every format.
pub(crate) fn all() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/fixtures")
}

/// A copy of a folder as its system would have it: a database is kept as the SQL that makes it.
pub(crate) fn built(folder: &Path) -> TempDir {
    let there = tempfile::tempdir().unwrap();
    let (scripts, plain): (Vec<_>, Vec<_>) =
        files(folder).into_iter().partition(|(name, _)| name.extension() == Some("sql".as_ref()));
    lay_out(there.path(), &plain);
    for (name, sql) in scripts {
        let path = there.path().join(name).with_extension("db");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let database = Connection::open(path).unwrap();
        database.execute_batch(std::str::from_utf8(&sql).unwrap()).unwrap();
    }
    there
}

/// Every file below a folder, by its path there.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_owned();
                    files.push((name, std::fs::read(&path).unwrap()));
                }
            }
        }
    }
    files.sort();
    files
}

/// Puts files below a folder.
pub(crate) fn lay_out(folder: &Path, files: &[(PathBuf, Vec<u8>)]) {
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}
