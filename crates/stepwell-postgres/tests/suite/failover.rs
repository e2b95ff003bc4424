//! The primary dies, its standby takes over, and the writers go on by themselves.

use std::time::Duration;

use stepwell::clock::{Entropy as _, SystemEntropy};
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

/// Chance, that the same seed repeats. `STEPWELL_FAILOVER_SEED` is one that failed.
struct Dice(u64);

impl Dice {
    #[expect(clippy::disallowed_methods, reason = "a seed that failed is given by a variable")]
    #[expect(clippy::print_stdout, reason = "it is shown if the test fails")]
    fn new() -> Self {
        let asked = std::env::var("STEPWELL_FAILOVER_SEED").ok();
        let [a, b, c, d, ..] = SystemEntropy.random();
        let fresh = u64::from(u32::from_le_bytes([a, b, c, d]));
        let seed = asked.and_then(|seed| seed.parse().ok()).unwrap_or(fresh);
        println!("STEPWELL_FAILOVER_SEED={seed}");
        Self(seed)
    }

    /// A number below that one: splitmix64.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap()
    }
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
    let mut dice = Dice::new();
    for _ in 0..rounds() {
        // At any moment of their work, also within an append: one of them was just told of
        // a message, and a little later it happens.
        let writer = dice.below(WRITERS);
        writers[writer].until(1 + dice.below(60));
        writers[writer].linger(Duration::from_micros(dice.below(20_000) as u64));
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
    // A few of those thirty were acknowledged before the standby stalled, and heard after.
    let lost = lost(&standby, &kept);
    assert!(lost >= WRITERS * 20, "the checker saw a loss of {lost} only");
}
