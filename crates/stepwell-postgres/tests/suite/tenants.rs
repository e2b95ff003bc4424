//! Teams that share a server, partitions, and what a server says of itself.

use stepwell::{Create, Created, Error, Filter, Search, Store, Write};
use stepwell_cluster::{Disk, Server, Sync};
use stepwell_postgres::{Address, Durability, PostgresStore, script};

use crate::world::{fresh, server};

fn create(store: &PostgresStore, name: &str) {
    let created = Created::new(name.parse().unwrap(), format!("the task of {name}"));
    let create = Create { created, event_id: None, at: None, claim: None };
    store.write(Write::Create(create)).unwrap();
}

#[test]
fn a_team_sees_its_own_namespace_and_may_do_nothing_else() {
    let server = server();
    let owner = fresh(&server.url());
    let other = PostgresStore::open(owner.clone()).unwrap();
    create(&other, "theirs");
    let team = format!("{}-team", owner.namespace());
    let role = format!("role_{}", team.replace('-', "_"));
    let _ = server.sql(&format!("CREATE ROLE {role} LOGIN"));
    let _ = server.sql(&script(&team, &role).unwrap());
    let url = server.url().replace("stepwell@", &format!("{role}@"));
    let address = Address::parse(&url).unwrap().within(&team).unwrap();
    let ours = PostgresStore::open(address.clone()).unwrap();
    create(&ours, "ours");
    create(&ours, "theirs");
    assert_eq!(ours.count(&Filter::default()).unwrap().total(), 2);
    assert_eq!(ours.search(&Search::new("task")).unwrap().hits.len(), 2);
    ours.purge(&["theirs".parse::<stepwell::SessionId>().unwrap().into()]).unwrap();
    assert_eq!(other.count(&Filter::default()).unwrap().total(), 1);
    // Another team's rows are not there for it, whatever it asks.
    let seen = server.sql_as(&role, "SELECT count(*) FROM stepwell.sessions").unwrap();
    assert_eq!(seen, "1");
    for sql in [
        "DROP TABLE stepwell.heads",
        "TRUNCATE stepwell.events",
        "SELECT * FROM stepwell.events_0",
        "INSERT INTO stepwell.members VALUES (1, current_user)",
        "SELECT stepwell.drop_empty_partitions()",
        "CREATE TABLE stepwell.mine ()",
    ] {
        let said = server.sql_as(&role, sql).unwrap_err();
        assert!(said.contains("permission denied") || said.contains("must be owner"), "{said}");
    }
    let refused = PostgresStore::open(address.within(owner.namespace()).unwrap()).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    assert!(refused.to_string().contains("no namespace"), "{refused}");
}

#[test]
fn sessions_are_born_into_new_partitions_and_empty_ones_can_go() {
    let server = Server::start(Disk::Lazy);
    let store = PostgresStore::open(Address::parse(&server.url()).unwrap()).unwrap();
    create(&store, "first");
    let _ = server.sql("SELECT setval('stepwell.births', 149998)");
    create(&store, "last-of-its-partition");
    create(&store, "next");
    assert_eq!(server.sql("SELECT max(n) FROM stepwell.partitions"), "4");
    let dropped = "SELECT count(*) FROM stepwell.drop_empty_partitions()";
    // The first holds a session; the one after it never did.
    assert_eq!(server.sql(dropped), "1");
    store.purge(&["first".parse::<stepwell::SessionId>().unwrap().into()]).unwrap();
    assert_eq!(server.sql(dropped), "1");
    create(&store, "after");
    assert_eq!(store.count(&Filter::default()).unwrap().total(), 3);
    assert_eq!(store.search(&Search::new("task")).unwrap().hits.len(), 3);
}

#[test]
fn only_what_a_standby_has_flushed_is_called_replicated() {
    let primary = Server::start(Disk::Synced);
    let standby = primary.standby("twin");
    let store = PostgresStore::open(Address::parse(&primary.url()).unwrap()).unwrap();
    let durability = || store.status().unwrap().durability();
    primary.wait_for("twin", Sync::Not);
    let Durability::Local(why) = durability() else { panic!("{:?}", durability()) };
    assert!(why.contains("asynchronous"), "{why}");
    primary.wait_for("twin", Sync::Waited);
    let Durability::Replicated(why) = durability() else { panic!("{:?}", durability()) };
    assert!(why.contains("twin"), "{why}");
    for (setting, word) in [("remote_write", "remote_write"), ("local", "local")] {
        let _ = primary.sql(&format!("ALTER ROLE stepwell SET synchronous_commit = {setting}"));
        let store = PostgresStore::open(Address::parse(&primary.url()).unwrap()).unwrap();
        let found = store.status().unwrap().durability();
        assert!(matches!(&found, Durability::Local(why) if why.contains(word)), "{found:?}");
    }
    let _ = primary.sql("ALTER ROLE stepwell SET synchronous_commit = off");
    let store = PostgresStore::open(Address::parse(&primary.url()).unwrap()).unwrap();
    assert!(matches!(store.status().unwrap().durability(), Durability::None(_)));
    drop(standby);
}

#[test]
fn neither_errors_nor_debug_show_a_password() {
    let url = "postgres://ann:s3cret@127.0.0.1:1/db?patience=0";
    let error = PostgresStore::open(Address::parse(url).unwrap()).unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("127.0.0.1:1/db") && !shown.contains("s3cret"), "{shown}");
    let store = PostgresStore::open(fresh(&server().url())).unwrap();
    assert!(!format!("{store:?}").contains("stepwell@"));
}
