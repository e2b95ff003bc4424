//! Teams that share a server, and what a server says of itself.

use std::time::Duration;

use stepwell::log::Redactor;
use stepwell::model::Origin;
use stepwell::sqlite::Access;
use stepwell::store::query::{Filter, Search};
use stepwell::store::{
    Append, Create, LeaseRequest, Maintain as _, Processes as _, SystemProcesses, Write,
};
use stepwell::{Created, Error, Message, Seq, SessionId, Store};
use stepwell_cluster::{Disk, Server, Sync};
use stepwell_postgres::{Address, Durability, PostgresOptions, PostgresStore, Role, script};

use crate::raw::{Raw, make_database, url};
use crate::servers::{fresh, server};

fn create(store: &dyn Store, name: &str) {
    let created = Created::new(name.parse().unwrap(), format!("the task of {name}"));
    let create = Create { created, event_id: None, at: None, claim: None };
    store.write(Write::Create(create)).unwrap();
}

fn say(store: &dyn Store, name: &str) {
    let session: SessionId = name.parse().unwrap();
    let claim = LeaseRequest { holder: SystemProcesses.this(), ttl: Duration::from_secs(60) };
    let lease = store.acquire(&session, &claim).unwrap();
    let events = vec![Message::user("said").into()];
    let append =
        Append { session, epoch: Some(lease.epoch), expected: None, events: events.into() };
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
    let foreign =
        server.sql(&format!("SELECT id FROM stepwell.namespaces WHERE name = '{name}-good'"));
    let team = "(SELECT id FROM stepwell.namespaces)";
    let rows = "generate_series(1, 1000) n";
    // Numbers are the server's to give, and rows of another team are not there.
    for sql in [
        format!("UPDATE stepwell.sessions SET key = {other} + 1000"),
        format!("UPDATE stepwell.heads SET session = {other} + 1000"),
        format!(
            "INSERT INTO stepwell.sessions (key, namespace, id, subagent, external, created, tags, \
             task, agent, workspace, rewinding) SELECT {other} + n, {team}, 'x' || n, false, \
             false, 0, '{{}}', '', '', '', false FROM {rows}"
        ),
        format!("INSERT INTO stepwell.indexed VALUES ({foreign}, {other} + 1000, 1)"),
        format!("INSERT INTO stepwell.lanes VALUES ({foreign}, {other}, 'main', '')"),
        format!("UPDATE stepwell.lanes SET namespace = {foreign}"),
    ] {
        let said = server.sql_as(&bad, &sql).expect_err(&sql);
        let refusals = ["row-level security", "permission denied", "to DEFAULT", "non-DEFAULT"];
        assert!(refusals.iter().any(|refusal| said.contains(refusal)), "{sql}: {said}");
    }
    // Rows under another's number, or one that nobody has yet, are its own, and in nobody's way.
    for (table, columns, values) in [
        ("indexed", "namespace, seq", "n"),
        ("lanes", "namespace, lane, state", "'main', ''"),
        ("snapshots", "namespace, seq, state", "n, ''"),
        ("docs", "namespace, seq, at, words, whole", "n, 0, '', true"),
        (
            "events",
            "namespace, seq, at, version, spilled, kind, chain, body",
            "n, 0, 1, false, '', '', ''",
        ),
    ] {
        let sql = format!(
            "INSERT INTO stepwell.{table} (session, {columns}) \
             SELECT {other} - 1 + n, {team}, {values} FROM {rows}"
        );
        server.sql_as(&bad, &sql).unwrap();
    }
    let base =
        format!("UPDATE stepwell.sessions SET base_key = {other}, base_at = 1 WHERE key = {own}");
    server.sql_as(&bad, &base).unwrap();
    assert!(mine.verify(&"mine".parse().unwrap()).is_err());
    // Neither does it learn who the others are.
    let seen = server.sql_as(&bad, "SELECT count(*), max(role) FROM stepwell.members").unwrap();
    assert_eq!(seen, format!("1|{bad}"));
    create(&theirs, "next");
    say(&theirs, "next");
    assert_eq!(theirs.count(&Filter::default()).unwrap().total(), 2);
    say(&theirs, "theirs");
    assert!(theirs.verify(&"theirs".parse().unwrap()).unwrap().is_sound());
}

#[test]
fn a_team_neither_hears_of_anothers_sessions_nor_learns_their_ids() {
    let server = server();
    let name = fresh(&server.url()).namespace().to_owned();
    let ((bad, bads), (_, goods)) =
        (member(&format!("{name}-bad")), member(&format!("{name}-good")));
    let (_mine, theirs) = (PostgresStore::open(bads).unwrap(), PostgresStore::open(goods).unwrap());
    create(&theirs, "hidden");
    // Who knows a channel hears which sessions move on; a role knows its own team's.
    let known =
        server.sql_as(&bad, "SELECT count(*), count(DISTINCT channel) FROM stepwell.namespaces");
    assert_eq!(known.unwrap(), "1|1");
    let channels = server.sql("SELECT count(DISTINCT channel) = count(*) FROM stepwell.namespaces");
    assert_eq!(channels, "t");
    // Whether an id is there or not, every answer is the same.
    let foreign =
        server.sql(&format!("SELECT id FROM stepwell.namespaces WHERE name = '{name}-good'"));
    let insert = |id: &str| {
        let sql = format!(
            "INSERT INTO stepwell.sessions (namespace, id, subagent, external, created, tags, task, \
             agent, workspace, rewinding) VALUES ({foreign}, '{id}', false, false, 0, '{{}}', '', '', \
             '', false)"
        );
        [
            server.sql_as(&bad, &sql).unwrap_err(),
            server.sql_as(&bad, &format!("{sql} ON CONFLICT DO NOTHING")).unwrap_err(),
        ]
    };
    assert_eq!(insert("hidden"), insert("absent"));
    let look = |id: &str| {
        server.sql_as(&bad, &format!("SELECT count(*) FROM stepwell.sessions WHERE id = '{id}'"))
    };
    assert_eq!(look("hidden"), look("absent"));
}

#[test]
fn every_key_begins_with_the_namespace() {
    let server = server();
    drop(PostgresStore::open(fresh(&server.url())).unwrap());
    // Keys that are primary, unique or foreign, of every table that has a namespace.
    let keys = "SELECT k.conrelid::regclass || '.' || k.conname AS name, k.conrelid AS of, k.conkey[1] AS first \
         FROM pg_constraint k WHERE k.contype IN ('p', 'u', 'f') \
         UNION ALL SELECT i.indexrelid::regclass::text, i.indrelid, i.indkey[0] FROM pg_index i \
         WHERE i.indisunique";
    let found = format!(
        "SELECT coalesce(string_agg(k.name, ' '), 'none'), count(*) FILTER (WHERE a.attnum = k.first) \
         FROM ({keys}) k JOIN pg_class c ON c.oid = k.of JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'namespace' \
         WHERE n.nspname = 'stepwell'"
    );
    let odd = server.sql(&format!("{found} AND a.attnum <> k.first"));
    assert_eq!(odd, "none|0");
    let all = server.sql(&found);
    let count: u32 = all.rsplit('|').next().unwrap().parse().unwrap();
    assert!(count > 60, "{all}");
    // A table without one is about no team's sessions.
    let without = server.sql(
        "SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'stepwell' \
         AND c.relkind IN ('r', 'p') AND NOT EXISTS (SELECT 1 FROM pg_attribute a \
         WHERE a.attrelid = c.oid AND a.attname = 'namespace')",
    );
    assert_eq!(without, "meta namespaces");
}

#[test]
fn a_transaction_that_a_team_leaves_open_is_in_nobodys_way() {
    make_database("open_transaction");
    let address = Address::parse(&url("open_transaction")).unwrap();
    drop(PostgresStore::open(address.clone()).unwrap());
    let (one, other) = (address.clone().within("one").unwrap(), address.within("other").unwrap());
    let (one, other) = (PostgresStore::open(one).unwrap(), PostgresStore::open(other).unwrap());
    create(&one, "first");
    let raw = Raw::to("open_transaction");
    // Whatever a client does in a transaction: new sessions with their rows, leases, trash, purge.
    raw.run(
        "BEGIN; INSERT INTO stepwell.sessions (namespace, id, subagent, external, created, tags, task, \
         agent, workspace, rewinding) SELECT namespace, 'open-' || n, false, false, 0, '{}', '', '', '', \
         false FROM stepwell.sessions, generate_series(1, 60000) n; \
         INSERT INTO stepwell.leases (namespace, session, epoch) \
         SELECT namespace, key, 1 FROM stepwell.sessions WHERE id = 'open-1'; \
         UPDATE stepwell.guards SET namespace = namespace WHERE namespace = \
         (SELECT namespace FROM stepwell.sessions WHERE id = 'first'); \
         DELETE FROM stepwell.events WHERE namespace = \
         (SELECT namespace FROM stepwell.sessions WHERE id = 'first')",
    );
    for n in 0..20 {
        create(&other, &format!("other-{n}"));
        say(&other, &format!("other-{n}"));
    }
    other.purge(&["other-1".parse::<SessionId>().unwrap().into()]).unwrap();
    assert_eq!(other.count(&Filter::default()).unwrap().total(), 19);
    // The team itself makes sessions meanwhile, too.
    create(&one, "second");
    raw.run("ROLLBACK");
    assert!(one.verify(&"first".parse().unwrap()).unwrap().is_sound());
}

#[test]
fn epochs_never_go_back() {
    let server = server();
    let (role, address) = member(fresh(&server.url()).namespace());
    let store = PostgresStore::open(address).unwrap();
    let store: &dyn Store = &store;
    create(store, "a");
    let id: SessionId = "a".parse().unwrap();
    let claim = LeaseRequest { holder: SystemProcesses.this(), ttl: Duration::from_secs(60) };
    let lease = store.acquire(&id, &claim).unwrap();
    for sql in [
        "DELETE FROM stepwell.leases",
        "UPDATE stepwell.leases SET epoch = 0",
        "UPDATE stepwell.leases SET session = session + 1000",
        "UPDATE stepwell.leases SET epoch = epoch - 1, holder = NULL",
        "TRUNCATE stepwell.leases",
    ] {
        let said = server.sql_as(&role, sql).expect_err(sql);
        let refused = said.contains("permission denied") || said.contains("does not go back");
        assert!(refused, "{sql}: {said}");
    }
    // A member may take the lease away; the one before is then fenced.
    server.sql_as(&role, "UPDATE stepwell.leases SET holder = NULL, expires = NULL").unwrap();
    let next = store.acquire(&id, &claim).unwrap();
    assert!(next.epoch > lease.epoch);
    let events = vec![Message::user("late").into()];
    let append = Append {
        session: id.clone(),
        epoch: Some(lease.epoch),
        expected: None,
        events: events.into(),
    };
    assert!(matches!(store.write(Write::Append(append)), Err(Error::Fenced { .. })));
    // It goes with its session.
    store.release(&next).unwrap();
    store.maintain().purge(&[id.into()]).unwrap();
    assert_eq!(server.sql_as(&role, "SELECT count(*) FROM stepwell.leases").unwrap(), "0");
}

#[test]
fn a_session_that_a_member_deletes_and_makes_again_goes_on_with_its_epochs() {
    let server = server();
    let (role, address) = member(fresh(&server.url()).namespace());
    let (old, new) =
        (PostgresStore::open(address.clone()).unwrap(), PostgresStore::open(address).unwrap());
    let (old, new): (&dyn Store, &dyn Store) = (&old, &new);
    let id: SessionId = "a".parse().unwrap();
    let claim = || LeaseRequest { holder: SystemProcesses.this(), ttl: Duration::from_secs(60) };
    let make = |store: &dyn Store, claim| {
        let created = Created::new("a".parse().unwrap(), "t");
        store.write(Write::Create(Create { created, event_id: None, at: None, claim }))
    };
    let say = |lease: &stepwell::store::Lease| {
        let events = vec![Message::user("said").into()];
        let (session, epoch) = (lease.session.clone(), Some(lease.epoch));
        old.write(Write::Append(Append { session, epoch, expected: None, events: events.into() }))
    };
    let first = make(old, Some(claim())).unwrap().lease.unwrap();
    say(&first).unwrap();
    // The session's row takes its head and its lease along, and nothing takes the epoch.
    server.sql_as(&role, "DELETE FROM stepwell.sessions").unwrap();
    assert!(matches!(say(&first), Err(Error::NoSession(_))));
    let second = make(new, Some(claim())).unwrap().lease.unwrap();
    assert!(second.epoch > first.epoch, "{second:?}");
    assert!(matches!(say(&first), Err(Error::Fenced { .. })));
    // Also where it is made without a lease, and by raw SQL.
    server.sql_as(&role, "DELETE FROM stepwell.sessions").unwrap();
    make(new, None).unwrap();
    let team = "(SELECT id FROM stepwell.namespaces)";
    let key = "(SELECT key FROM stepwell.sessions)";
    for sql in [
        format!(
            "INSERT INTO stepwell.leases (namespace, session, epoch) VALUES ({team}, {key}, 1)"
        ),
        format!(
            "INSERT INTO stepwell.leases (namespace, session, epoch, holder, expires) \
             VALUES ({team}, {key}, 1, '{{}}', 1) ON CONFLICT (namespace, session) \
             DO UPDATE SET epoch = 1, holder = excluded.holder"
        ),
        "UPDATE stepwell.leases SET epoch = epoch + 2".to_owned(),
        "DELETE FROM stepwell.epochs".to_owned(),
        "UPDATE stepwell.epochs SET epoch = 0".to_owned(),
        "SELECT * FROM stepwell.epochs".to_owned(),
        format!("INSERT INTO stepwell.epochs VALUES ({team}, 'a', 0)"),
        "DROP TRIGGER noted ON stepwell.leases".to_owned(),
        "ALTER TABLE stepwell.leases DISABLE TRIGGER ALL".to_owned(),
    ] {
        let said = server.sql_as(&role, &sql).expect_err(&sql);
        let refusals = ["permission denied", "does not go back", "must be owner", "duplicate key"];
        assert!(refusals.iter().any(|refusal| said.contains(refusal)), "{sql}: {said}");
    }
    let third = new.acquire(&id, &claim()).unwrap();
    assert!(third.epoch > second.epoch, "{third:?}");
    for stale in [&first, &second] {
        assert!(matches!(say(stale), Err(Error::Fenced { .. })));
    }
    assert!(new.maintain().verify(&id).unwrap().is_sound());
}

#[test]
fn who_wrote_an_event_is_what_the_server_says() {
    let name = fresh(&server().url()).namespace().to_owned();
    let (role, address) = member(&name);
    let store = PostgresStore::open(address).unwrap();
    let store: &dyn Store = &store;
    create(store, "a");
    let said = stepwell::model::Said {
        text: "hello".to_owned(),
        lane: stepwell::Lane::main(),
        who: stepwell::model::Who {
            login: Some("boss".to_owned()),
            ..stepwell::model::Who::new("boss", "x")
        },
        now: false,
    };
    let id: SessionId = "a".parse().unwrap();
    let events = vec![said.into()];
    let append = Append { session: id.clone(), epoch: None, expected: None, events: events.into() };
    store.write(Write::Append(append)).unwrap();
    let found = store.keyed_events(&id, &[stepwell::model::Kind::Said]).unwrap();
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
    let child = |store: &dyn Store, parent: &str, name: &str| {
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
    let store: &dyn Store = &store;
    create(store, "root");
    (0..3).for_each(|_| say(store, "root"));
    let root: SessionId = "root".parse().unwrap();
    let fork = Created {
        origin: Origin::Fork { parent: root.clone(), at: Seq::new(2) },
        ..Created::new("fork".parse().unwrap(), "a fork")
    };
    let fork = Create { created: fork, event_id: None, at: None, claim: None };
    store.write(Write::Create(fork)).unwrap();
    say(store, "fork");
    assert_eq!(store.search(&Search::new("said"), &Redactor::default()).unwrap().hits.len(), 4);
    // What the fork shares becomes its own when the other goes.
    store.maintain().trash(&[root.clone().into()]).unwrap();
    store.maintain().restore(std::slice::from_ref(&root)).unwrap();
    store.maintain().purge(&[root.into()]).unwrap();
    assert!(store.maintain().verify(&"fork".parse().unwrap()).unwrap().is_sound());
    say(store, "fork");
    store.maintain().rebuild_search().unwrap();
    assert!(store.maintain().repair(&"fork".parse().unwrap()).unwrap().is_sound());
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
