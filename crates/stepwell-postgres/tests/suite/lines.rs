//! Ways to a server, and connections that end while nobody looks.

use std::net::TcpListener;

use stepwell::model::Epoch;
use stepwell::store::{Append, Create, Maintain as _, Processes, Span, Write};
use stepwell::{Created, Message, NewEvent, Store};
use stepwell_cluster::{Disk, Server};
use stepwell_postgres::{Address, PostgresStore};

use crate::servers::{fresh, server};

fn begin(store: &dyn Store) -> stepwell::SessionId {
    let id: stepwell::SessionId = "a".parse().unwrap();
    let claim = stepwell::store::LeaseRequest {
        holder: stepwell::store::SystemProcesses.this(),
        ttl: stepwell::store::LEASE_TTL,
    };
    let created = Created::new(id.clone(), "t");
    let create = Create { created, event_id: None, at: None, claim: Some(claim) };
    store.write(Write::Create(create)).unwrap();
    id
}

fn append(store: &dyn Store, id: &stepwell::SessionId, events: Vec<NewEvent>) {
    let (session, epoch) = (id.clone(), Some(Epoch::FIRST));
    store
        .write(Write::Append(Append { session, epoch, expected: None, events: events.into() }))
        .unwrap();
}

#[test]
fn a_connection_that_ended_while_it_was_idle_is_not_used_again() {
    let server = Server::start(Disk::Lazy);
    // Without patience, a question over a dead connection has no second try.
    let url = format!("{}?patience=0&connections=1", server.url());
    let store = PostgresStore::open(Address::parse(&url).unwrap()).unwrap();
    let id = begin(&store);
    let ours = "FROM pg_stat_activity WHERE application_name = 'stepwell'";
    for n in 1..4 {
        let ended = server.sql(&format!("SELECT count(pg_terminate_backend(pid, 5000)) {ours}"));
        assert_eq!(ended, "1");
        assert_eq!(store.info(&id).unwrap().head.messages, n - 1);
        append(&store, &id, vec![Message::user("x").into()]);
    }
    assert!(store.verify(&id).unwrap().is_sound());
}

#[test]
fn long_questions_and_answers_come_whole_with_tls_and_without() {
    let server = Server::start(Disk::Lazy);
    let authority = server.encrypt("IP:127.0.0.1");
    let tls = format!("{}?sslmode=require&sslrootcert={}", server.url(), authority.display());
    for (namespace, url) in [("plain", server.url()), ("tls", tls)] {
        let address = Address::parse(&url).unwrap().within(namespace).unwrap();
        let store = PostgresStore::open(address).unwrap();
        let store: &dyn Store = &store;
        let id = begin(store);
        let text = |n: usize| format!("{n} {}", "word ".repeat(n * 7 % 9_000));
        for chunk in 0..4 {
            let events = (0..300).map(|n| Message::user(text(chunk * 300 + n)).into());
            append(store, &id, events.collect());
        }
        let events = store.events(&id, Span::ALL).unwrap().intact(&id).unwrap();
        let texts = events.iter().filter_map(|event| match &event.event {
            stepwell::Event::Message(message) => Some(message.text()),
            _ => None,
        });
        assert!(texts.eq((0..1_200).map(text)), "{url}");
    }
    std::fs::remove_file(authority).unwrap();
}

#[test]
fn a_server_is_reached_by_its_socket_and_behind_hosts_that_are_not_there() {
    let server = server();
    let folder = server.sql("SHOW unix_socket_directories").replace('/', "%2F");
    let port = server.port();
    for host in [format!("{folder}:{port}"), format!("127.0.0.1:1,localhost:{port}")] {
        let url = format!("postgres://stepwell@{host}/postgres");
        let store = PostgresStore::open(fresh(&url)).unwrap();
        let id = begin(&store);
        append(&store, &id, vec![Message::user("x").into()]);
        assert_eq!(store.info(&id).unwrap().head.messages, 1, "{url}");
    }
}

#[test]
fn a_host_that_accepts_and_says_nothing_is_left_for_the_next() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (first, second) = (silent.local_addr().unwrap().port(), server().port());
    let hosts = format!("127.0.0.1:{first},127.0.0.1:{second}");
    let url = format!("postgres://stepwell@{hosts}/postgres?connect_timeout=1&patience=0");
    let store = PostgresStore::open(fresh(&url)).unwrap();
    assert!(store.status().is_ok());
}
