//! Teams that share a server, partitions, and what a server says of itself.

use std::time::Duration;

use stepwell::{
    Access, Append, Create, Created, Error, Filter, LeaseRequest, Maintain as _, Message, Origin,
    Processes as _, Redactor, Search, Seq, SessionId, Store, SystemProcesses, Write,
};
use stepwell_cluster::{Disk, Server, Sync};
use stepwell_postgres::{Address, Durability, PostgresOptions, PostgresStore, Role, script};

use crate::servers::{fresh, server};

fn create(store: &PostgresStore, name: &str) {
    let created = Created::new(name.parse().unwrap(), format!("the task of {name}"));
    let create = Create { created, event_id: None, at: None, claim: None };
    store.write(Write::Create(create)).unwrap();
}

fn say(store: &PostgresStore, name: &str) {
    let session: SessionId = name.parse().unwrap();
    let claim = LeaseRequest { holder: SystemProcesses.this(), ttl: Duration::from_secs(60) };
    let lease = store.acquire(&session, &claim).unwrap();
    let events = vec![Message::user("said").into()];
    let append = Append { session, epoch: Some(lease.epoch), expected: None, events };
    store.write(Write::Append(append)).unwrap();
    store.release(&lease).unwrap();
}

#[test]
fn a_team_sees_its_own_namespace_and_may_do_nothing_else() {
    let server = server();
    let owner = fresh(&server.url());
    let other = PostgresStore::open(owner.clone()).unwrap();
    create(&other, "theirs");
    let team = format!("{}-team", owner.namespace());
    let (role, address) = member(&team);
    let ours = PostgresStore::open(address.clone()).unwrap();
    create(&ours, "ours");
    create(&ours, "theirs");
    assert_eq!(ours.count(&Filter::default()).unwrap().total(), 2);
    assert_eq!(ours.search(&Search::new("task"), &Redactor::default()).unwrap().hits.len(), 2);
    ours.purge(&["theirs".parse::<SessionId>().unwrap().into()]).unwrap();
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
    assert!(matches!(refused, Error::NotAMember { .. }), "{refused}");
    assert!(refused.to_string().contains("no namespace"), "{refused}");
}

/// A role that may use one namespace of the shared server, and the address of that.
pub(crate) fn member(team: &str) -> (String, Address) {
    // Its owner opens it first.
    drop(PostgresStore::open(Address::parse(&server().url()).unwrap()).unwrap());
    let role = format!("role_{}", team.replace('-', "_"));
    let _ = server().sql(&format!("CREATE ROLE {role} LOGIN"));
    let _ = server().sql(&script(team, &role).unwrap());
    let url = server().url().replace("stepwell@", &format!("{role}@"));
    let address = Address::parse(&url).unwrap().within(team).unwrap();
    (role, address)
}

#[test]
fn a_team_cannot_get_in_the_way_of_another_by_its_sessions_numbers() {
    let server = server();
    let name = fresh(&server.url()).namespace().to_owned();
    let ((bad, bads), (_, goods)) =
        (member(&format!("{name}-bad")), member(&format!("{name}-good")));
    let (mine, theirs) = (PostgresStore::open(bads).unwrap(), PostgresStore::open(goods).unwrap());
    create(&mine, "mine");
    create(&theirs, "theirs");
    let key = |id: &str, team: &str| {
        server.sql(&format!(
            "SELECT key FROM stepwell.sessions WHERE id = '{id}' AND namespace = \
             (SELECT id FROM stepwell.namespaces WHERE name = '{name}-{team}')"
        ))
    };
    let (own, other) = (key("mine", "bad"), key("theirs", "good"));
    let ahead = "generate_series(1, 1000) n";
    let team = "(SELECT id FROM stepwell.namespaces)";
    // As a row of one's own, but under a number that is another's or nobody's yet.
    let copy = |table: &str, columns: &str, number: &str| {
        format!(
            "INSERT INTO stepwell.{table} (session, {columns}) SELECT {number}, {columns} \
             FROM stepwell.{table} WHERE session = {own}"
        )
    };
    let heads = "namespace, version, seq, fence, updated, status, cost, steps, bytes, unindexed, \
         chain, sum, model, lane, head";
    let events = "seq, namespace, at, version, spilled, kind, chain, body";
    let mut tried = vec![
        copy("events", events, &other),
        copy("events", events, &format!("{other} + 1000")),
        copy("heads", heads, &format!("{other} + 1000")),
        format!("UPDATE stepwell.events SET session = {other}"),
        format!("UPDATE stepwell.heads SET session = {other} + 1000"),
        format!("UPDATE stepwell.sessions SET key = {other} + 1000"),
        format!("UPDATE stepwell.sessions SET base_key = {other}, base_at = 1"),
        format!(
            "INSERT INTO stepwell.sessions (key, namespace, id, subagent, external, created, tags, \
             task, agent, workspace, rewinding) SELECT {other} + n, {team}, 'x' || n, false, \
             false, 0, '{{}}', '', '', '', false FROM {ahead}"
        ),
        format!(
            "INSERT INTO stepwell.docs (session, seq, namespace, at, words, whole) \
             SELECT {other}, n, {team}, 0, '', true FROM {ahead}"
        ),
    ];
    for (table, columns, values) in [
        ("indexed", "namespace, seq", "n"),
        ("lanes", "namespace, lane, state", "'main', ''"),
        ("leases", "namespace, epoch", "n"),
        ("snapshots", "namespace, seq, state", "n, ''"),
        ("refs", "namespace, digest, seq", "'', n"),
    ] {
        tried.push(format!(
            "INSERT INTO stepwell.{table} (session, {columns}) \
             SELECT {other} + n, {team}, {values} FROM {ahead}"
        ));
    }
    for sql in &tried {
        let said = server.sql_as(&bad, sql).expect_err(sql);
        let refused = said.contains("row-level security") || said.contains("permission denied");
        assert!(refused, "{sql}: {said}");
    }
    // Neither does it learn who the others are.
    let seen = server.sql_as(&bad, "SELECT count(*), max(role) FROM stepwell.members").unwrap();
    assert_eq!(seen, format!("1|{bad}"));
    for store in [&mine, &theirs] {
        create(store, "next");
        say(store, "next");
        assert_eq!(store.count(&Filter::default()).unwrap().total(), 2);
    }
    say(&theirs, "theirs");
    assert!(theirs.verify(&"theirs".parse().unwrap()).unwrap().is_sound());
}

#[test]
fn a_session_gets_its_number_with_its_row_and_nobody_gets_one_without() {
    let server = server();
    let (role, address) = member(fresh(&server.url()).namespace());
    let store = PostgresStore::open(address).unwrap();
    create(&store, "first");
    for sql in [
        "SELECT stepwell.bear()",
        "SELECT stepwell.number_session()",
        "SELECT nextval('stepwell.births')",
        "SELECT setval('stepwell.births', 1)",
        "SELECT stepwell.grow(9)",
        "CREATE TEMP TABLE mine (key bigint); CREATE TRIGGER t BEFORE INSERT ON mine \
         FOR EACH ROW EXECUTE FUNCTION stepwell.number_session()",
    ] {
        let said = server.sql_as(&role, sql).expect_err(sql);
        let refused = said.contains("permission denied") || said.contains("does not exist");
        assert!(refused, "{sql}: {said}");
    }
    // Nor by rows that are refused.
    let drawn = || -> i64 { server.sql("SELECT last_value FROM stepwell.births").parse().unwrap() };
    let before = drawn();
    let again = "INSERT INTO stepwell.sessions (namespace, id, subagent, external, created, tags, \
         task, agent, workspace, rewinding) SELECT (SELECT id FROM stepwell.namespaces), 'first', \
         false, false, 0, '{}', '', '', '', false FROM generate_series(1, 10000) \
         ON CONFLICT DO NOTHING";
    server.sql_as(&role, again).unwrap();
    // Other tests draw some meanwhile.
    assert!(drawn() - before < 10_000);
    create(&store, "second");
    let keys = server.sql_as(&role, "SELECT count(DISTINCT key) FROM stepwell.sessions").unwrap();
    assert_eq!(keys, "2");
}

#[test]
fn who_wrote_an_event_is_what_the_server_says() {
    let name = fresh(&server().url()).namespace().to_owned();
    let (role, address) = member(&name);
    let store = PostgresStore::open(address).unwrap();
    create(&store, "a");
    let said = stepwell::Said {
        text: "hello".to_owned(),
        lane: stepwell::Lane::main(),
        who: stepwell::Who { login: Some("boss".to_owned()), ..stepwell::Who::new("boss", "x") },
        now: false,
    };
    let id: SessionId = "a".parse().unwrap();
    let events = vec![said.into()];
    let append = Append { session: id.clone(), epoch: None, expected: None, events };
    store.write(Write::Append(append)).unwrap();
    let found = store.keyed_events(&id, &[stepwell::Kind::Said]).unwrap();
    let stepwell::Event::Said(said) = &found[0].event else { panic!("{found:?}") };
    assert_eq!(said.who.login.as_deref(), Some(role.as_str()));
    // Nor can the role say so by SQL.
    for forged in [
        "UPDATE stepwell.events SET login = 'boss'",
        "INSERT INTO stepwell.events (session, seq, namespace, at, version, spilled, kind, chain, \
         body, login) SELECT session, seq + 100, namespace, at, version, spilled, kind, chain, \
         body, 'boss' FROM stepwell.events",
    ] {
        let answer = server().sql_as(&role, forged).expect_err(forged);
        assert!(answer.contains("permission denied"), "{answer}");
    }
}

#[test]
fn who_began_a_session_is_what_the_server_says() {
    let team = fresh(&server().url()).namespace().to_owned();
    let (ann, address) = member(&team);
    let anns = PostgresStore::open(address).unwrap();
    create(&anns, "anns");
    let bob = format!("{ann}_bob");
    let _ = server().sql(&format!("CREATE ROLE {bob} LOGIN"));
    let _ = server().sql(&script(&team, &bob).unwrap());
    let url = server().url().replace("stepwell@", &format!("{bob}@"));
    let bobs = PostgresStore::open(Address::parse(&url).unwrap().within(&team).unwrap()).unwrap();
    create(&bobs, "bobs");
    let child = |store: &PostgresStore, parent: &str, name: &str| {
        let origin = Origin::Subagent { parent: parent.parse().unwrap() };
        let created = Created { origin, ..Created::new(name.parse().unwrap(), "below") };
        let create = Create { created, event_id: None, at: None, claim: None };
        store.write(Write::Create(create)).unwrap();
    };
    child(&anns, "anns", "anns-child");
    create(&anns, "shared");
    child(&bobs, "shared", "bobs-child");
    let ids: Vec<SessionId> =
        ["anns", "bobs", "shared", "nobodys"].map(|id| id.parse().unwrap()).to_vec();
    let names = |found: std::collections::BTreeSet<SessionId>| -> Vec<String> {
        found.into_iter().map(|id| id.to_string()).collect()
    };
    assert_eq!(names(anns.begun_by_others(&ids).unwrap()), ["bobs"]);
    assert_eq!(names(anns.with_others(&ids).unwrap()), ["bobs", "shared"]);
    assert_eq!(names(bobs.with_others(&ids).unwrap()), ["anns", "shared"]);
    // Nor can a role say otherwise.
    for forged in [
        "UPDATE stepwell.sessions SET login = session_user",
        "INSERT INTO stepwell.sessions (namespace, id, subagent, external, created, tags, task, \
         agent, workspace, rewinding, login) SELECT namespace, 'forged', false, false, 0, '{}', \
         '', '', '', false, 'boss' FROM stepwell.sessions LIMIT 1",
    ] {
        let said = server().sql_as(&bob, forged).expect_err(forged);
        assert!(said.contains("permission denied"), "{said}");
    }
}

#[test]
fn a_teams_role_may_do_all_that_a_store_does() {
    let name = format!("{}-all", fresh(&server().url()).namespace());
    let (_, address) = member(&name);
    let store = PostgresStore::open(address).unwrap();
    create(&store, "root");
    (0..3).for_each(|_| say(&store, "root"));
    let root: SessionId = "root".parse().unwrap();
    let fork = Created {
        origin: Origin::Fork { parent: root.clone(), at: Seq::new(2) },
        ..Created::new("fork".parse().unwrap(), "a fork")
    };
    let fork = Create { created: fork, event_id: None, at: None, claim: None };
    store.write(Write::Create(fork)).unwrap();
    say(&store, "fork");
    assert_eq!(store.search(&Search::new("said"), &Redactor::default()).unwrap().hits.len(), 4);
    // What the fork shares becomes its own when the other goes.
    store.trash(&[root.clone().into()]).unwrap();
    store.restore(std::slice::from_ref(&root)).unwrap();
    store.purge(&[root.into()]).unwrap();
    assert!(store.verify(&"fork".parse().unwrap()).unwrap().is_sound());
    say(&store, "fork");
    store.rebuild_search().unwrap();
    assert!(store.repair(&"fork".parse().unwrap()).unwrap().is_sound());
}

#[test]
fn roles_are_let_in_at_the_same_time() {
    let address = fresh(&server().url());
    let name = address.namespace().to_owned();
    drop(PostgresStore::open(address).unwrap());
    std::thread::scope(|threads| {
        for n in 0..8 {
            let role = format!("{}_{n}", name.replace('-', "_"));
            let _ = server().sql(&format!("CREATE ROLE {role} LOGIN"));
            let script = script(&name, &role).unwrap();
            threads.spawn(move || server().sql(&script));
        }
    });
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
    store.purge(&["first".parse::<SessionId>().unwrap().into()]).unwrap();
    assert_eq!(server.sql(dropped), "1");
    create(&store, "after");
    // Numbers that were drawn in vain make no partitions.
    let partitions = || server.sql("SELECT count(*) FROM stepwell.partitions").parse().unwrap();
    let before: i64 = partitions();
    let _ = server.sql("SELECT setval('stepwell.births', 999999999)");
    create(&store, "far");
    say(&store, "far");
    assert_eq!(partitions(), before + 2);
    assert_eq!(store.count(&Filter::default()).unwrap().total(), 4);
    assert_eq!(store.search(&Search::new("task"), &Redactor::default()).unwrap().hits.len(), 4);
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
    // Whoever may not see standbys does not say that there are none.
    let _ = primary.sql("CREATE ROLE team LOGIN");
    let _ = primary.sql(&script("team", "team").unwrap());
    let url = format!("{}?namespace=team", primary.url().replace("stepwell@", "team@"));
    let blind = || PostgresStore::open(Address::parse(&url).unwrap()).unwrap().status().unwrap();
    let sees_nothing = || {
        let found = blind().durability();
        matches!(&found, Durability::Local(why) if why.contains("may not see"))
    };
    assert!(sees_nothing());
    // A member that would have to ask for it first does not see them either.
    let _ = primary.sql("ALTER ROLE team NOINHERIT");
    let _ = primary.sql("GRANT pg_monitor TO team");
    assert!(sees_nothing());
    let _ = primary.sql("REVOKE pg_monitor FROM team");
    let _ = primary.sql("ALTER ROLE team INHERIT");
    let _ = primary.sql("GRANT pg_monitor TO team");
    let found = blind().durability();
    assert!(matches!(&found, Durability::Local(why) if why.contains("asynchronous")), "{found:?}");
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
    // A standby's own setting is about standbys of its own: it has none to speak for.
    primary.wait_for("twin", Sync::Not);
    let _ = standby.sql("ALTER SYSTEM SET synchronous_standby_names = 'twin'");
    let _ = standby.sql("SELECT pg_reload_conf()");
    let url = format!("{}?target_session_attrs=any", standby.url());
    let options = PostgresOptions { access: Access::Read, ..PostgresOptions::default() };
    let store = PostgresStore::open_with(Address::parse(&url).unwrap(), options).unwrap();
    let status = store.status().unwrap();
    assert_eq!(status.role, Role::Standby);
    assert!(matches!(status.durability(), Durability::Unknown(_)), "{status:?}");
}

#[test]
fn a_search_on_a_standby_finds_what_is_indexed_and_counts_the_rest() {
    let primary = Server::start(Disk::Lazy);
    let standby = primary.standby("twin");
    let store = PostgresStore::open(Address::parse(&primary.url()).unwrap()).unwrap();
    create(&store, "before");
    assert_eq!(store.search(&Search::new("task"), &Redactor::default()).unwrap().hits.len(), 1);
    create(&store, "after");
    // Replayed there, not only received.
    primary.wait_for("twin", Sync::Waited);
    let _ = primary.sql("ALTER ROLE stepwell SET synchronous_commit = remote_apply");
    let store = PostgresStore::open(Address::parse(&primary.url()).unwrap()).unwrap();
    say(&store, "after");
    let url = format!("{}?target_session_attrs=any", standby.url());
    let there = PostgresStore::open(Address::parse(&url).unwrap()).unwrap();
    let found = there.search(&Search::new("task"), &Redactor::default()).unwrap();
    assert_eq!((found.hits.len(), found.unseen), (1, 2));
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
