//! The process under test: it writes to a store and prints, line by line, what was
//! acknowledged.
//!
//! - `write FOLDER SESSION BY SEED [POINT N]`: runs every operation of a store again and again;
//!   kills itself when it passes a failpoint for the Nth time.
//! - `fork FOLDER PARENT POINT N`: forks a session once; kills itself when it passes a failpoint
//!   for the Nth time.
//! - `fill FOLDER SESSION BY EVENTS`: appends this many events to its own session, after a line
//!   on stdin.
//! - `contend FOLDER SESSION BY TARGET DIE_AT`: acquires the lease, appends and releases it,
//!   until the session has TARGET events; kills itself while it holds the lease for the `DIE_AT`th
//!   time, if that is not 0. Starts after a line on stdin.
//! - `serve FOLDER`: handles requests from stdin.
#![expect(clippy::print_stderr, reason = "a test's tool prints errors on stderr")]

mod contend;
mod serve;
mod write;

use std::io::{self, BufRead, Write as _};
use std::path::Path;
use std::process::ExitCode;

use stepwell::model::{EventId, Owner};
use stepwell::store::{Create, LEASE_TTL, Lease, LeaseRequest, Processes, SystemProcesses, Write};
use stepwell::{Created, SessionId, Store};
use stepwell_torture::Line;

use contend::Goal;

/// Any error ends the process and fails the test.
type Fallible<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("torture {arguments:?}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Fallible {
    match *arguments {
        ["write", folder, session, by, seed] => {
            write::forever(Path::new(folder), &session.parse()?, by, seed.parse()?)
        }
        ["write", folder, session, by, seed, point, n] => {
            write::die_at(point, n.parse()?);
            write::forever(Path::new(folder), &session.parse()?, by, seed.parse()?)
        }
        ["fork", folder, parent, point, n] => {
            write::fork(Path::new(folder), &parent.parse()?, point, n.parse()?)
        }
        ["fill", folder, session, by, events] => {
            contend::fill(Path::new(folder), &session.parse()?, by, events.parse()?)
        }
        ["contend", folder, session, by, target, die_at] => {
            let (target, die_at) = (target.parse()?, die_at.parse()?);
            contend::contend(Path::new(folder), &session.parse()?, by, Goal { target, die_at })
        }
        ["serve", folder] => serve::requests(Path::new(folder)),
        _ => Err("no such mode".into()),
    }
}

/// Prints a line for the test. One line is one write.
fn report(line: &Line) -> Fallible {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Waits for a line from the test.
fn wait_for_start() -> Fallible {
    io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

/// A lease request of this process.
fn claim() -> LeaseRequest {
    LeaseRequest { holder: this_process(), ttl: LEASE_TTL }
}

fn this_process() -> Owner {
    SystemProcesses.this()
}

/// Acquires a session's lease. Creates the session if it does not exist.
fn lease(store: &dyn Store, session: &SessionId) -> Fallible<Lease> {
    if !store.exists(session)? {
        report(&Line::Creating(session.clone()))?;
        let lease = create(store, session)?;
        report(&Line::Created(session.clone()))?;
        return Ok(lease);
    }
    Ok(store.acquire(session, &claim())?)
}

/// Creates a session and acquires its lease.
fn create(store: &dyn Store, session: &SessionId) -> stepwell::Result<Lease> {
    let written = store.write(Write::Create(Create {
        created: Created::new(session.clone(), format!("torture {session}")),
        // A repeated request gets the same answer.
        event_id: Some(EventId::derived(session.as_str().as_bytes())),
        at: None,
        claim: Some(claim()),
    }))?;
    Ok(written.lease.expect("a session created with a claim has a lease"))
}

/// Ends this process like a crash.
fn kill_self() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}
