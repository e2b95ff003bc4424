//! The process that is tortured: it writes to a store and says, line by line, what
//! was acknowledged.
//!
//! - `write FOLDER SESSION BY SEED [POINT N]`: does everything that a store can do,
//!   for ever; dies at the Nth time that it passes a failpoint.
//! - `fork FOLDER PARENT POINT N`: forks a session once; dies at the Nth time that it
//!   passes a failpoint.
//! - `fill FOLDER SESSION BY EVENTS`: appends so many events to a session of its own,
//!   after a line on stdin.
//! - `fight FOLDER SESSION BY TARGET LIVES`: takes the lease, appends, gives it back,
//!   until the session has TARGET events; dies holding it for the LIVES. time, if that
//!   is not 0. Begins after a line on stdin.
//! - `obey FOLDER`: does what the orders on stdin say.
#![expect(clippy::print_stderr, reason = "a test's tool says on stderr why it stopped")]

mod obey;
mod rivals;
mod write;

use std::io::{self, BufRead, Write as _};
use std::path::Path;
use std::process::ExitCode;

use stepwell::{
    Claim, Create, Created, EventId, Holder, LEASE_TTL, Lease, Processes, SessionId, SqliteStore,
    Store, SystemProcesses, Write,
};
use stepwell_torture::Line;

/// Whatever goes wrong ends the process and fails the test.
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
            rivals::fill(Path::new(folder), &session.parse()?, by, events.parse()?)
        }
        ["fight", folder, session, by, target, lives] => {
            rivals::fight(Path::new(folder), &session.parse()?, by, target.parse()?, lives.parse()?)
        }
        ["obey", folder] => obey::orders(Path::new(folder)),
        _ => Err("no such mode".into()),
    }
}

/// Tells the test, at once: a line is one write.
fn say(line: &Line) -> Fallible {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Waits for the test's word.
fn wait_for_start() -> Fallible {
    io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

/// This process's claim to a lease.
fn claim() -> Claim {
    Claim { holder: this(), ttl: LEASE_TTL }
}

fn this() -> Holder {
    SystemProcesses.this()
}

/// Takes a session's lease, making the session if there is none.
fn lease(store: &SqliteStore, session: &SessionId) -> Fallible<Lease> {
    if !store.exists(session)? {
        say(&Line::Creating(session.clone()))?;
        let lease = create(store, session)?;
        say(&Line::Created(session.clone()))?;
        return Ok(lease);
    }
    Ok(store.acquire(session, &claim())?)
}

/// Makes a session and holds it.
fn create(store: &SqliteStore, session: &SessionId) -> stepwell::Result<Lease> {
    let written = store.write(Write::Create(Create {
        created: Created::new(session.clone(), format!("torture {session}")),
        // Asked again, the store gives the same answer.
        event_id: Some(EventId::derived(session.as_str().as_bytes())),
        at: None,
        claim: Some(claim()),
    }))?;
    Ok(written.lease.expect("a session made with a claim is held"))
}

/// Ends this process as a crash would.
fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}
