//! The command line as whole processes: what a list and a resume decision cost beside
//! printing the version.
//!
//! `cargo build --release -p stepwell-cli && cargo bench -p stepwell-bench --bench cli`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stepwell::{Create, Created, PhaseSet, SessionId, SqliteStore, Store, Write};
use stepwell_bench::{Table, Times};

/// The release build of the command, beside which this benchmark lies.
fn stepwell() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let binary = here.ancestors().nth(2).unwrap().join("stepwell");
    assert!(binary.exists(), "build it first: cargo build --release -p stepwell-cli");
    binary
}

fn run(binary: &Path, folder: &Path, args: &[&str]) {
    let mut command = Command::new(binary);
    command.args(args).env_clear().env("HOME", folder).current_dir(folder);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().code().is_some());
}

/// 100,000 sessions, one in a hundred of an agent that Stepwell does not run.
fn fill(folder: &Path) {
    let store = SqliteStore::open(&folder.join(".stepwell")).unwrap();
    for chunk in 0..100 {
        let writes = (0..1_000).map(|n| {
            let id: SessionId = format!("s-{chunk:03}-{n:04}").parse().unwrap();
            let created = Created::new(id, format!("task number {n} of {chunk}"));
            let created = match n % 100 {
                0 => created.with_phases(PhaseSet::Lifecycle).driven_externally(),
                _ => created,
            };
            Write::Create(Create { created, event_id: None, at: None, claim: None })
        });
        store.batch(writes.collect()).unwrap();
    }
}

fn main() {
    let binary = stepwell();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fill(folder.path());
    let table = Table::begin();
    let commands: [(&str, &[&str]); 3] = [
        ("stepwell sessions, of 100,000", &["sessions"]),
        ("stepwell sessions --json, of 100,000", &["sessions", "--json"]),
        ("stepwell agent should-resume", &["agent", "should-resume", "s-050-0500"]),
    ];
    for (name, args) in commands {
        let (ours, version) = Times::of_both(
            21,
            20,
            || run(&binary, folder.path(), args),
            || run(&binary, folder.path(), &["--version"]),
        );
        table.row(name, &ours, ("stepwell --version", &version), "≤ 3x");
    }
}
