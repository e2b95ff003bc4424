//! Files: the cost of scanning a workspace around a command.
//!
//! `cargo bench -p stepwell-bench --bench files`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use stepwell::Stepwell;
use stepwell::log::Redactor;
use stepwell_bench::{Table, Times, show, timed};
use stepwell_files::capture::{Capture, Limits};
use stepwell_files::safe_path::Root;

const FILES: usize = 50_000;

/// Files in one folder.
const TOGETHER: usize = 50;

fn git(root: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@bench"];
    let mut command = Command::new("git");
    command.current_dir(root).args(identity).args(args).stdout(Stdio::null());
    assert!(command.status().unwrap().success());
}

/// A clean work tree.
fn plant(root: &Path) {
    for n in 0..FILES {
        let folder = root.join(format!("d{}/e{}", n / TOGETHER % 25, n / TOGETHER));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("f{n}.txt")), format!("file {n}\n").repeat(5)).unwrap();
    }
    git(root, &["init", "-q"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "x"]);
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_nanos()).unwrap()
}

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = folder.path().canonicalize().unwrap();
    plant(&root);
    let well = Stepwell::in_memory();
    let session = well.create(well.draft("bench")).unwrap();
    let redactor = Redactor::new([]);
    let mut capture = Capture::new(&Root::new(root.clone()), Limits::default());
    let first = timed(|| capture.before(now()));
    let around = || {
        capture.before(now());
        let changes = capture.after(now(), &session, &redactor).unwrap();
        assert!(changes.is_empty());
    };
    let status = || git(&root, &["status", "--porcelain"]);
    let (around, status) = Times::of_both(12, 3, around, status);
    let table = Table::begin();
    let what = "look at 50,000 files before and after a command";
    table.row(what, &around, ("git status", &status), "≤ 1.5x");
    table.figure("the first look of a run at them", &show(first), "", "");
}
