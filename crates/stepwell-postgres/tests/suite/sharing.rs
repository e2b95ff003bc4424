//! Several machines and one store.

use std::sync::Arc;
use std::time::Duration;

use stepwell::model::Owner;
use stepwell::store::{
    Append, Create, Lease, LeaseRequest, Liveness, Processes, SystemProcesses, Write,
};
use stepwell::{Created, Error, Message, Seq, SessionId, Store};
use stepwell_cluster::Proxy;
use stepwell_postgres::{Address, PostgresOptions, PostgresStore};

use crate::servers::{fresh, server};
use crate::writers::{Writer, check};

/// Processes as another machine sees them: it can judge none but its own.
#[derive(Debug)]
struct Machine(&'static str);

impl Processes for Machine {
    fn this(&self) -> Owner {
        Owner { host: self.0.to_owned(), ..SystemProcesses.this() }
    }

    fn pulse(&self, holder: &Owner) -> Liveness {
        if holder.host == self.0 { Liveness::Alive } else { Liveness::Unknown }
    }
}

fn open(address: &Address, machine: &'static str) -> PostgresStore {
    let processes = Arc::new(Machine(machine));
    let options = PostgresOptions { processes, ..PostgresOptions::default() };
    PostgresStore::open_with(address.clone(), options).unwrap()
}

fn claim(machine: &'static str, ttl: Duration) -> LeaseRequest {
    LeaseRequest { holder: Machine(machine).this(), ttl }
}

fn say(store: &dyn Store, lease: &Lease, text: &str) -> stepwell::Result<Seq> {
    let append = Append {
        session: lease.session.clone(),
        epoch: Some(lease.epoch),
        expected: None,
        events: vec![Message::user(text).into()].into(),
    };
    store.write(Write::Append(append)).map(|written| written.last)
}

#[test]
fn after_a_pause_longer_than_the_lease_the_old_runners_append_is_refused() {
    let wire = Proxy::to(server().port());
    let there = fresh(&server().url());
    let here = Address::parse(&wire.url()).unwrap().within(there.namespace()).unwrap();
    let (old, new) = (open(&here, "old"), open(&there, "new"));
    let (old, new): (&dyn Store, &dyn Store) = (&old, &new);
    let id: SessionId = "a".parse().unwrap();
    let short = Duration::from_millis(300);
    let create = Create {
        created: Created::new(id.clone(), "t"),
        event_id: None,
        at: None,
        claim: Some(claim("old", short)),
    };
    let lease = old.write(Write::Create(create)).unwrap().lease.unwrap();
    say(old, &lease, "one").unwrap();
    // The network stops while the old runner is about to write.
    wire.hold(true);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| say(old, &lease, "late"));
        // Nobody may take it before it runs out by the server's clock, then one may.
        let taken = loop {
            match new.acquire(&id, &claim("new", Duration::from_secs(60))) {
                Err(Error::Held { .. }) => {
                    let _ = new.wait_after(&id, Seq::new(2), Duration::from_millis(20));
                }
                taken => break taken.unwrap(),
            }
        };
        say(new, &taken, "two").unwrap();
        wire.hold(false);
        let refused = late.join().unwrap().unwrap_err();
        assert!(matches!(refused, Error::Fenced { .. }), "{refused}");
        let refused = say(old, &lease, "later").unwrap_err();
        assert!(matches!(refused, Error::Fenced { .. }), "{refused}");
        say(new, &taken, "three").unwrap();
    });
    assert_eq!(new.info(&id).unwrap().head.seq, Seq::new(4));
    assert!(new.maintain().verify(&id).unwrap().is_sound());
}

#[test]
fn a_follower_on_another_machine_is_told() {
    for follow in ["poll", "listen"] {
        let url = format!("{}?follow={follow}", server().url());
        let address = fresh(&url);
        let (writer, reader) = (open(&address, "one"), open(&address, "two"));
        let (writer, reader): (&dyn Store, &dyn Store) = (&writer, &reader);
        let id: SessionId = "a".parse().unwrap();
        let create = Create {
            created: Created::new(id.clone(), "t"),
            event_id: None,
            at: None,
            claim: Some(claim("one", Duration::from_secs(60))),
        };
        let lease = writer.write(Write::Create(create)).unwrap().lease.unwrap();
        std::thread::scope(|scope| {
            let follow = scope.spawn(|| {
                let mut seen = Seq::FIRST;
                while seen < Seq::new(6) {
                    seen = reader.wait_after(&id, seen, Duration::from_secs(30)).unwrap();
                }
                seen
            });
            for n in 0..5 {
                say(writer, &lease, &format!("{n}")).unwrap();
            }
            assert_eq!(follow.join().unwrap(), Seq::new(6), "{address}");
        });
    }
}

#[test]
fn many_nodes_may_start_on_an_empty_server_at_once() {
    let server = stepwell_cluster::Server::start(stepwell_cluster::Disk::Lazy);
    std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..6)
            .map(|n| {
                let url = format!("{}?namespace=team-{}", server.url(), n % 2);
                scope.spawn(move || PostgresStore::open(Address::parse(&url).unwrap()).map(drop))
            })
            .collect();
        nodes.into_iter().for_each(|node| node.join().unwrap().unwrap());
    });
    assert_eq!(server.sql("SELECT count(*) FROM stepwell.namespaces"), "2");
    assert_eq!(server.sql("SELECT count(*) FROM stepwell.meta"), "1");
}

#[test]
fn processes_fill_sessions_side_by_side_and_none_loses_an_event() {
    let address = fresh(&server().url());
    let url = format!("{}?namespace={}", server().url(), address.namespace());
    let mut writers: Vec<Writer> = (0..4).map(|n| Writer::start(&url, &format!("s{n}"))).collect();
    writers.iter_mut().for_each(|writer| writer.until(100));
    let kept: Vec<_> = writers.into_iter().map(Writer::end).collect();
    let store = PostgresStore::open(address).unwrap();
    for kept in &kept {
        assert_eq!(check(&store, kept), 0, "{} lost events", kept.session);
    }
}
