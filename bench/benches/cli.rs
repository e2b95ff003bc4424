//! The command line as whole processes, beside a program that only says hello.
//!
//! `cargo build --profile dist -p stepwell-cli && cargo bench -p stepwell-bench --bench cli`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stepwell::model::PhaseSet;
use stepwell::sqlite::SqliteStore;
use stepwell::store::{Create, Write};
use stepwell::{Created, SessionId, Store};
use stepwell_bench::{Table, Times};

/// The command as released. This benchmark is in `target/release/deps`.
fn stepwell() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let binary = here.ancestors().nth(3).unwrap().join("dist/stepwell");
    assert!(binary.exists(), "build it first: cargo build --profile dist -p stepwell-cli");
    binary
}

/// A program that only prints hello: the cost of starting any process.
fn hello(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("hello.rs"), folder.join("hello"));
    std::fs::write(&source, "fn main() { println!(\"hello\"); }").unwrap();
    let mut rustc = Command::new("rustc");
    let built = rustc.arg("-O").arg("-o").arg(&program).arg(&source).status();
    assert!(built.unwrap().success());
    program
}

fn run(binary: &Path, folder: &Path, args: &[&str]) {
    let mut command = Command::new(binary);
    command.args(args).env_clear().env("HOME", folder).current_dir(folder);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().code().is_some());
}

/// 100,000 sessions, one in a hundred of an external agent.
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
    let hello = hello(folder.path());
    let table = Table::begin();
    let commands: [(&str, &[&str]); 4] = [
        ("stepwell --version", &["--version"]),
        ("stepwell sessions, of 100,000", &["sessions"]),
        ("stepwell sessions --json, of 100,000", &["sessions", "--json"]),
        ("stepwell agent should-resume", &["agent", "should-resume", "s-050-0500"]),
    ];
    for (name, args) in commands {
        let (ours, bare) = Times::of_both(
            21,
            20,
            || run(&binary, folder.path(), args),
            || run(&hello, folder.path(), &[]),
        );
        table.row(name, &ours, ("hello", &bare), "≤ 2x");
    }
}
