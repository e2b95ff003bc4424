//! What will not change by waiting is said at once, with what to do about it.

use std::path::Path;

use stepwell::sqlite::Access;
use stepwell::{Error, ErrorKind};
use stepwell_cluster::{Bouncer, Disk, Server};
use stepwell_postgres::{Address, PostgresOptions, PostgresStore};

/// Opens a store that cannot be, and returns what is said. One that is tried again is tried for a
/// day: then the test does not end.
fn refused(url: &str) -> String {
    let url = &format!("{url}{}patience=86400", if url.contains('?') { '&' } else { '?' });
    let error = PostgresStore::open(Address::parse(url).unwrap()).expect_err(url);
    assert_eq!(error.kind(), ErrorKind::Incompatible, "{url}: {error:?}");
    let said = error.to_string();
    assert!(!said.contains("s3cret") && !said.contains("wrong"), "{said}");
    said
}

fn says(said: &str, what: &str, next: &str) {
    assert!(said.contains(what) && said.contains(next), "{said}");
}

#[test]
fn credentials_and_databases_that_are_refused_are_not_tried_again() {
    let server = Server::start(Disk::Lazy);
    server.demand_password("guest", "s3cret");
    let pooler = Bouncer::asking(&server, "guest", "s3cret");
    for port in [server.port(), pooler.port()] {
        let at = |login: &str, database: &str| {
            format!("postgres://{login}@127.0.0.1:{port}/{database}?prepare=off")
        };
        says(&refused(&at("guest", "postgres")), "asks for a password", "export PGPASSWORD");
        says(&refused(&at("guest:wrong", "postgres")), "refused the user", "export PGPASSWORD");
        says(&refused(&at("nobody:wrong", "postgres")), "refused the user", "export PGPASSWORD");
        says(&refused(&at("guest:s3cret", "nowhere")), "no such database", "createdb");
    }
}

#[test]
fn a_role_without_rights_is_told_who_gives_them() {
    let server = Server::start(Disk::Lazy);
    let url = server.url();
    let guest = url.replace("stepwell@", "guest@");
    let _ = server.sql("CREATE ROLE guest LOGIN");
    says(&refused(&guest), "not set up", "its owner opens it first");
    drop(PostgresStore::open(Address::parse(&url).unwrap()).unwrap());
    says(&refused(&guest), "no namespace default", "may not use it");
    let options = PostgresOptions { access: Access::Read, ..PostgresOptions::default() };
    let error = PostgresStore::open_with(Address::parse(&guest).unwrap(), options).unwrap_err();
    assert!(matches!(error, Error::NotAMember { .. }), "{error:?}");
}

#[test]
fn hosts_that_cannot_be_told_apart_are_not_guessed() {
    for uneven in [
        "postgres://u:p@db.invalid:1,192.0.2.2:2/x?hostaddr=127.0.0.1",
        "postgres://u:p@/x?host=a.invalid,b.invalid,c.invalid&port=1,2",
    ] {
        says(&refused(uneven), "not as many hosts", "name one for each host");
    }
}

#[test]
fn a_database_that_does_not_fit_says_why() {
    let server = Server::start(Disk::Lazy);
    let _ = server.sql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    let latin = server.url().replace("/postgres", "/latin");
    says(&refused(&latin), "encoding is LATIN1", "createdb --encoding UTF8");
    let hasty = format!("{}?options=-c%20statement_timeout%3D1", server.url());
    // A timer that goes off between two statements is told as the user's request to cancel.
    says(&refused(&hasty), "canceling statement", "RESET statement_timeout");
}

#[test]
fn a_server_is_believed_by_its_certificate_alone() {
    let server = Server::start(Disk::Lazy);
    let plain = format!("{}?sslmode=require", server.url());
    says(&refused(&plain), "does not support TLS", "sslmode=disable");
    let authority = server.encrypt("IP:127.0.0.1");
    let at = |ca: &Path| format!("{plain}&sslrootcert={}", ca.display());
    drop(PostgresStore::open(Address::parse(&at(&authority)).unwrap()).unwrap());
    // Nobody that this machine trusts has signed it.
    says(&refused(&plain), "certificate", "sslrootcert=");
    let other = Server::start(Disk::Lazy);
    let stranger = other.encrypt("DNS:db.example");
    says(&refused(&at(&stranger)), "certificate", "sslrootcert=");
    let misnamed = format!("{}?sslmode=require&sslrootcert={}", other.url(), stranger.display());
    says(&refused(&misnamed), "certificate", "as its certificate does");
    for file in [authority, stranger] {
        std::fs::remove_file(file).unwrap();
    }
}
