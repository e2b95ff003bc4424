//! A process that writes to a session and says what was acknowledged, for the tests that
//! kill servers under it.
//!
//! `stepwell-test-writer ADDRESS SESSION` prints `kept SEQ N` for each message `SESSION N`
//! that was acknowledged, and ends when its input does.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stepwell::model::EventId;
use stepwell::store::{
    Append, Create, LEASE_TTL, Lease, LeaseRequest, Processes, SystemProcesses, Write,
};
use stepwell::{Created, Error, Message, NewEvent, Result, SessionId, Store};
use stepwell_postgres::{Address, PostgresStore};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, session] = &args[..] else { return ExitCode::from(2) };
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        end.store(true, Ordering::SeqCst);
    });
    match work(address, session, &ended) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("failed {error}"));
            ExitCode::FAILURE
        }
    }
}

fn say(line: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    // Whoever started us is gone if this fails.
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

fn work(address: &str, name: &str, ended: &AtomicBool) -> Result<()> {
    let store = PostgresStore::open(Address::parse(address)?)?;
    let store: &dyn Store = &store;
    let session: SessionId = name.parse()?;
    let lease = begin(store, &session)?;
    let mut n = 0;
    while !ended.load(Ordering::SeqCst) {
        n += 1;
        let mut event = NewEvent::from(Message::user(format!("{name} {n}")));
        // Half of them have no id of ours: the store must know its own again.
        if n % 2 == 0 {
            event.id = Some(EventId::derived(format!("{name} {n}").as_bytes()));
        }
        let append = Append {
            session: session.clone(),
            epoch: Some(lease.epoch),
            expected: None,
            events: vec![event].into(),
        };
        let written = store.write(Write::Append(append))?;
        say(format_args!("kept {} {n}", written.last));
    }
    Ok(())
}

fn begin(store: &dyn Store, session: &SessionId) -> Result<Lease> {
    let claim = LeaseRequest { holder: SystemProcesses.this(), ttl: LEASE_TTL * 100 };
    let create = Create {
        created: Created::new(session.clone(), "write"),
        event_id: None,
        at: None,
        claim: Some(claim.clone()),
    };
    match store.write(Write::Create(create)) {
        Ok(written) => Ok(written.lease.expect("it was claimed")),
        Err(Error::Exists(_)) => store.acquire(session, &claim),
        Err(error) => Err(error),
    }
}
