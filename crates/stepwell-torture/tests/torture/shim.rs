//! The preloaded library between a process and its files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Preloads the shim for every file whose path contains `mark`.
pub(crate) fn interpose<'a>(command: &'a mut Command, mark: &Path) -> &'a mut Command {
    command.env("LD_PRELOAD", built()).env("TORTURE_MARK", mark)
}

/// The shim, compiled once per test run.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = folder.join(format!("shim-{}.so", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torture/shim.c");
        let status = Command::new("cc")
            .args(["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(source)
            .status()
            .expect("a C compiler is installed as cc");
        assert!(status.success(), "the shim does not compile");
        library
    })
}
