//! Genuine sessions of every system, as files below a folder.

use std::path::{Path, PathBuf};

use stepwell_formats::Format;

/// The folder with the samples of a format, if there are any.
pub(crate) fn samples(format: Format) -> Option<PathBuf> {
    let folder = match format.as_str() {
        "claude-code" => "claude",
        name @ ("codex" | "goose" | "architect" | "gaia" | "m31a" | "strands-cli"
        | "strands-sdk") => name,
        _ => return None,
    };
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/samples").join(folder))
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
