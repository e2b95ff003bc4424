//! PostgreSQL servers in scratch folders, for tests and benchmarks: a primary, standbys, a
//! pooler, and ways to break them.
//!
//! A server refuses to run as root. For root it runs as the user `postgres`, which Debian's
//! package creates. Every server stops when the process that started it ends, however that
//! happens.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "this is test code in a library: a panic is how a test fails"
)]

mod bouncer;
mod cleanup;
mod proxy;
mod server;

pub use bouncer::Bouncer;
pub use proxy::Proxy;
pub use server::{Disk, Server, Sync};

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of PostgreSQL's programs: Debian's newest version, or the one in PATH.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin"))
        .filter(|folder| folder.join("pg_ctl").exists())
        .collect();
    found.sort_by_key(|folder| version_of(folder));
    if let Some(newest) = found.pop() {
        return newest;
    }
    let output = Command::new("sh").args(["-c", "command -v pg_ctl"]).output().unwrap();
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(!path.is_empty(), "PostgreSQL is not installed; ./check installs it");
    Path::new(&path).parent().unwrap().to_owned()
}

fn version_of(folder: &Path) -> u32 {
    let name = folder.parent().and_then(Path::file_name);
    name.and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).unwrap_or(0)
}

/// A command that runs as the server's user.
fn as_server(program: &Path, folder: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    // The user may not have access to the current folder.
    command.current_dir(folder);
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a command. Panics with its output if it fails.
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A scratch folder that the server's user owns.
fn scratch() -> PathBuf {
    let folder = tempfile::Builder::new().prefix("stepwell-pg-").tempdir().unwrap().keep();
    if is_root() {
        run(Command::new("chown").arg("postgres").arg(&folder));
    }
    folder
}

/// A port that is not in use.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}
