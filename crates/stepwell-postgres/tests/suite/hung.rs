//! A server that hangs: it keeps its connections, takes new ones, and says nothing.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use stepwell::sessions::Deps;
use stepwell::store::{Create, Write};
use stepwell::{Created, SessionId, Stepwell, Store};
use stepwell_cluster::{Disk, Proxy, Server, Sync};
use stepwell_postgres::{Address, PostgresOptions, PostgresStore};

use crate::servers::server;
use crate::writers::{Kept, Writer, check};

/// How often the primary hangs, and how many processes write meanwhile. `STEPWELL_HUNG_ROUNDS=5` is
/// the long form, with 20.
#[expect(clippy::disallowed_methods, reason = "the long form is asked for by a variable")]
fn size() -> (u32, usize) {
    let asked = std::env::var("STEPWELL_HUNG_ROUNDS").ok();
    asked.and_then(|rounds| rounds.parse().ok()).map_or((1, 4), |rounds| (rounds, 20))
}

fn create(store: &PostgresStore, name: &str) -> stepwell::Result<()> {
    let created = Created::new(name.parse().unwrap(), "a task");
    let create = Create { created, event_id: None, at: None, claim: None };
    store.batch(vec![Write::Create(create)]).map(drop)
}

#[test]
fn nothing_is_lost_or_twice_when_the_primary_hangs_and_comes_back() {
    let (rounds, count) = size();
    let mut primary = Server::start(Disk::Lazy);
    let mut standby = primary.standby("twin");
    primary.wait_for("twin", Sync::Waited);
    let url = primary.url_with(&standby);
    let mut writers: Vec<Writer> =
        (0..count).map(|n| Writer::start(&url, &format!("h{n}"))).collect();
    for _ in 0..rounds {
        writers.iter_mut().for_each(|writer| writer.until(10));
        primary.suspend();
        standby.promote();
        writers.iter_mut().for_each(|writer| writer.until(10));
        // What hung goes on as if nothing had been: it still takes writes.
        primary.go_on();
        writers.iter_mut().for_each(|writer| writer.until(10));
        primary.kill();
        let again = standby.standby_at("twin", primary.port());
        (primary, standby) = (standby, again);
        primary.wait_for("twin", Sync::Waited);
    }
    let kept: Vec<Kept> = writers.into_iter().map(Writer::end).collect();
    let longest = kept.iter().map(|kept| kept.longest).max().unwrap();
    println!("the longest that a write took: {longest:?}");
    let store = PostgresStore::open(Address::parse(&primary.url()).unwrap()).unwrap();
    assert_eq!(kept.iter().map(|kept| check(&store, kept)).sum::<usize>(), 0);
}

#[test]
fn a_server_whose_place_another_one_took_is_not_written_to() {
    let notes = tempfile::tempdir().unwrap();
    let primary = Server::start(Disk::Lazy);
    let standby = primary.standby("twin");
    primary.wait_for("twin", Sync::Waited);
    let url = primary.url_with(&standby);
    let open = |options: &str| {
        let url = format!("{url}?connect_timeout=1{options}");
        let servers = Some(notes.path().to_owned());
        let options = PostgresOptions { servers, ..PostgresOptions::default() };
        PostgresStore::open_with(Address::parse(&url).unwrap(), options)
    };
    let before = open("").unwrap();
    create(&before, "before").unwrap();
    primary.wait_for("twin", Sync::Not);
    primary.suspend();
    standby.promote();
    // This one sees what took its place, and the next command does not forget it.
    create(&before, "between").unwrap();
    let late = open("&patience=1").unwrap();
    primary.go_on();
    standby.kill();
    for refused in [create(&late, "late").unwrap_err(), open("&patience=1").unwrap_err()] {
        assert!(refused.to_string().contains("another server took"), "{refused}");
    }
    let old = primary.sql("SELECT count(*) FROM stepwell.sessions WHERE id <> 'before'");
    assert_eq!(old, "0", "nothing was written where it would be lost");
}

#[test]
fn whoever_holds_a_lease_that_cannot_be_renewed_is_told() {
    let server = Server::start(Disk::Lazy);
    let store = PostgresStore::open(Address::parse(&server.url()).unwrap()).unwrap();
    let deps = Deps { lease_ttl: Duration::from_secs(3), ..Deps::default() };
    let well = Stepwell::with(Arc::new(store), deps);
    let session = well.create(Created::new("a".parse().unwrap(), "t")).unwrap();
    let (tell, told) = channel();
    session.on_doubt(move |error| tell.send(error.to_string()).unwrap());
    server.kill();
    let why = told.recv_timeout(Duration::from_secs(120)).unwrap();
    assert!(why.contains("writing"), "{why}");
    server.run_on();
}

#[test]
fn the_good_host_is_remembered_between_commands() {
    let (hung, notes) = (Proxy::to(server().port()), tempfile::tempdir().unwrap());
    hung.hold(true);
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", hung.port(), server().port());
    let url = format!("postgres://stepwell@{hosts}/postgres?connect_timeout=1&namespace=hosts");
    let open = || {
        let servers = Some(notes.path().to_owned());
        let options = PostgresOptions { servers, ..PostgresOptions::default() };
        PostgresStore::open_with(Address::parse(&url).unwrap(), options).unwrap()
    };
    create(&open(), "one").unwrap();
    let met = hung.connections();
    assert!(met > 0, "the first command tries the first host");
    create(&open(), "two").unwrap();
    assert_eq!(hung.connections(), met, "the next one does not");
}

#[test]
fn a_network_that_is_cut_without_a_word_leads_to_the_next_host() {
    let wire = Proxy::to(server().port());
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", wire.port(), server().port());
    let url = format!("postgres://stepwell@{hosts}/postgres?connect_timeout=1&namespace=cut");
    let store = PostgresStore::open(Address::parse(&url).unwrap()).unwrap();
    create(&store, "before").unwrap();
    wire.hold(true);
    create(&store, "after").unwrap();
    let id: SessionId = "after".parse().unwrap();
    assert!(store.info(&id).is_ok());
    wire.hold(false);
}
