//! The primary dies, its standby takes over, and the writers go on by themselves.

use stepwell_cluster::{Disk, Server, Sync};
use stepwell_postgres::{Address, PostgresStore};

use crate::writers::{Kept, Writer, check};

/// How many processes write meanwhile.
const WRITERS: usize = 3;

/// How often the primary dies. `STEPWELL_FAILOVER_ROUNDS=10` is the long form.
#[expect(clippy::disallowed_methods, reason = "the long form is asked for by a variable")]
fn rounds() -> u32 {
    let asked = std::env::var("STEPWELL_FAILOVER_ROUNDS").ok();
    asked.and_then(|rounds| rounds.parse().ok()).unwrap_or(2)
}

fn start(url: &str) -> Vec<Writer> {
    (0..WRITERS).map(|n| Writer::start(url, &format!("w{n}"))).collect()
}

/// How many acknowledged messages of all writers are lost.
fn lost(server: &Server, kept: &[Kept]) -> usize {
    let store = PostgresStore::open(Address::parse(&server.url()).unwrap()).unwrap();
    kept.iter().map(|kept| check(&store, kept)).sum()
}

#[test]
fn nothing_acknowledged_is_lost_when_the_primary_dies_again_and_again() {
    let mut primary = Server::start(Disk::Lazy);
    let mut standby = primary.standby("twin");
    primary.wait_for("twin", Sync::Waited);
    let mut writers = start(&primary.url_with(&standby));
    for round in 0..rounds() {
        // Each time at another moment of their work.
        for (n, writer) in writers.iter_mut().enumerate() {
            writer.until(20 + (round as usize * 7 + n * 13) % 31);
        }
        primary.kill();
        standby.promote();
        // They find the new primary and go on.
        writers.iter_mut().for_each(|writer| writer.until(20));
        // What died comes back, at the same address, as the standby of what took over.
        let again = standby.standby_at("twin", primary.port());
        (primary, standby) = (standby, again);
        primary.wait_for("twin", Sync::Waited);
    }
    let kept: Vec<Kept> = writers.into_iter().map(Writer::end).collect();
    assert_eq!(lost(&primary, &kept), 0);
}

/// The control: if this lost nothing, the check above would prove nothing.
#[test]
fn a_standby_that_nobody_waits_for_loses_what_was_acknowledged() {
    let primary = Server::start(Disk::Lazy);
    let standby = primary.standby("twin");
    primary.wait_for("twin", Sync::Not);
    let mut writers = start(&primary.url_with(&standby));
    writers.iter_mut().for_each(|writer| writer.until(20));
    primary.caught_up("twin");
    standby.stall();
    writers.iter_mut().for_each(|writer| writer.until(30));
    primary.kill();
    standby.promote();
    writers.iter_mut().for_each(|writer| writer.until(20));
    let kept: Vec<Kept> = writers.into_iter().map(Writer::end).collect();
    assert!(lost(&standby, &kept) >= WRITERS * 30, "the checker saw no loss");
}
