//! Every statement that a member's client makes, beside the rights of its role: docs/statements.md.
//!
//! The test traces the statements of a store that uses every operation. It then takes each right
//! away in turn, and the server says which statements fail without it.

mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use stepwell_cluster::Proxy;
use stepwell_postgres::{Address, PostgresOptions, PostgresStore, script};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use crate::raw::{Raw, make_database, url};
use crate::servers::server;

/// Statements, each with the types of its values.
pub(crate) type Statements = BTreeMap<String, String>;

/// Hears each statement of this thread.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Statements>>);

impl Recorder {
    /// Hears what some work on this thread says.
    pub(crate) fn hear<T>(&self, work: impl FnOnce() -> T) -> T {
        // As long as there is but one subscriber, tracing asks the one of the thread that comes to a
        // statement first whether anybody listens, and remembers that for all threads.
        let _another = Dispatch::new(self.clone());
        tracing::subscriber::with_default(self.clone(), work)
    }

    /// What it heard, each statement once, with the types of its values.
    pub(crate) fn heard(&self) -> Statements {
        self.0.lock().unwrap().clone()
    }
}

/// The fields of an event that tells a statement.
#[derive(Default)]
struct Told {
    sql: String,
    types: String,
}

impl Visit for Told {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "sql" => self.sql = value.split_whitespace().collect::<Vec<_>>().join(" "),
            "types" => value.clone_into(&mut self.types),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "stepwell_postgres::statement"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut told = Told::default();
        event.record(&mut told);
        self.0.lock().unwrap().insert(told.sql, told.types);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The namespace, the role and the database of this test.
const TEAM: &str = "statements";

/// What every policy asks before it lets a row through.
const POLICIES: &str = "SELECT stepwell.own_namespaces()";

/// All that a member's client says.
fn recorded() -> Statements {
    let recorder = Recorder::default();
    let wire = Proxy::to(server().port());
    let address = |port: u16| {
        let url = format!("postgres://{TEAM}@127.0.0.1:{port}/{TEAM}?namespace={TEAM}");
        Address::parse(&url).unwrap()
    };
    recorder.hear(|| {
        let store = PostgresStore::open(address(server().port())).unwrap();
        work::all(&store);
        let access = stepwell::sqlite::Access::Read;
        let options = PostgresOptions { access, ..PostgresOptions::default() };
        let looking = PostgresStore::open_with(address(server().port()), options).unwrap();
        work::reading(&looking);
        work::goes(&store);
        work::unanswered(&PostgresStore::open(address(wire.port())).unwrap(), &wire);
    });
    let mut statements = recorder.heard();
    // What begins and ends transactions names no table.
    statements.retain(|sql, _| !is_control(sql));
    statements.insert(POLICIES.to_owned(), String::new());
    statements
}

/// Does it begin or end a transaction, and no more?
pub(crate) fn is_control(sql: &str) -> bool {
    ["BEGIN", "COMMIT", "ROLLBACK"].iter().any(|word| sql.starts_with(word))
}

/// The rights of the role: what may be done, and on what.
fn rights(raw: &Raw) -> Vec<(String, String)> {
    let rows = raw.ask(&format!(
        "SELECT right_, object FROM (\
         SELECT a.privilege_type || coalesce(' (' || c.attname || ')', '') AS right_, \
         r.relname::text AS object, r.relname::text || a.privilege_type AS place \
         FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace \
         CROSS JOIN LATERAL (SELECT NULL::name AS attname, r.relacl AS acl \
         UNION ALL SELECT attname, attacl FROM pg_attribute WHERE attrelid = r.oid) c \
         CROSS JOIN LATERAL aclexplode(c.acl) a \
         WHERE n.nspname = 'stepwell' AND a.grantee = '{TEAM}'::regrole \
         UNION ALL SELECT 'EXECUTE', 'FUNCTION stepwell.' || p.oid::regprocedure::text, 'z' \
         FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a \
         WHERE a.grantee = '{TEAM}'::regrole \
         UNION ALL SELECT a.privilege_type, 'SCHEMA ' || n.nspname, 'z' FROM pg_namespace n \
         CROSS JOIN LATERAL aclexplode(n.nspacl) a WHERE a.grantee = '{TEAM}'::regrole) all_ \
         ORDER BY place, right_"
    ));
    rows.into_iter()
        .map(|row| (row[0].clone(), row[1].replace("stepwell.stepwell.", "stepwell.")))
        .collect()
}

/// Which statements the server refuses, without the rights that a statement takes away.
fn refused(raw: &Raw, taken: &str) -> BTreeSet<usize> {
    let rows = raw.ask(&format!(
        "BEGIN; {taken}; SELECT set_config('role', '{TEAM}', true); \
         SELECT n FROM public.refused() n"
    ));
    raw.run("ROLLBACK");
    // The first answer is the role's name.
    rows.iter().filter_map(|row| row[0].parse().ok()).collect()
}

/// Prepares each statement, and makes the function that tries them all.
fn prepare(raw: &Raw, statements: &Statements) {
    raw.run(
        "SET plan_cache_mode = force_generic_plan; CREATE TABLE public.calls (n int, call text)",
    );
    for (n, (sql, types)) in statements.iter().enumerate() {
        let count = types.split(", ").filter(|it| !it.is_empty()).count();
        let nulls = vec!["NULL"; count].join(", ");
        let (types, values) = match count {
            0 => (String::new(), String::new()),
            _ => (format!("({types})"), format!("({nulls})")),
        };
        raw.run(&format!("PREPARE s{n}{types} AS {sql}"));
        let call = match sql == POLICIES {
            true => POLICIES.to_owned(),
            false => format!("EXPLAIN EXECUTE s{n}{values}"),
        };
        raw.run(&format!("INSERT INTO public.calls VALUES ({n}, '{call}')"));
    }
    raw.run(&format!(
        "GRANT SELECT ON public.calls TO {TEAM}; \
         CREATE FUNCTION public.refused() RETURNS SETOF int LANGUAGE plpgsql AS $$ \
         DECLARE it record; BEGIN \
         FOR it IN SELECT * FROM public.calls ORDER BY n LOOP \
         BEGIN EXECUTE it.call; \
         EXCEPTION WHEN insufficient_privilege THEN RETURN NEXT it.n; END; \
         END LOOP; END $$"
    ));
}

#[expect(clippy::disallowed_methods, reason = "whether the page is written is said by a variable")]
fn is_writing() -> bool {
    std::env::var_os("STEPWELL_WRITE_STATEMENTS").is_some()
}

/// The page: the rights, each with the statements that need it, and the statements.
fn page(statements: &Statements, needed: &[(String, String, BTreeSet<usize>)]) -> String {
    let mut page = String::from(
        "# What a member's client asks of the server\n\n\
         `cargo test -p stepwell-postgres statements` compares this page with what a store really says under a role of \
         `stepwell store role`, and with the rights of that role. No right is there that no statement needs, and no statement \
         without its rights. `STEPWELL_WRITE_STATEMENTS=1` writes the page anew. `BEGIN`, `COMMIT`, `ROLLBACK`, `LISTEN` and \
         `pg_notify` need no rights of a table.\n\n\
         ## Rights, and the statements that need them\n\n| right | on | needed by |\n|---|---|---|\n",
    );
    for (right, object, by) in needed {
        let by: Vec<String> = by.iter().map(|n| (n + 1).to_string()).collect();
        let by = if by.len() > 12 { format!("{} statements", by.len()) } else { by.join(", ") };
        let _ = writeln!(page, "| {right} | {object} | {by} |");
    }
    page.push_str("\n## Statements\n");
    for (n, (sql, types)) in statements.iter().enumerate() {
        let _ = write!(page, "\n**{}**", n + 1);
        if !types.is_empty() {
            let _ = write!(page, " ({types})");
        }
        if sql == POLICIES {
            page.push_str(", by the policy of each table");
        }
        let _ = write!(page, "\n```sql\n{sql}\n```\n");
    }
    page
}

#[test]
fn a_role_has_the_rights_that_its_clients_statements_need_and_no_others() {
    make_database(TEAM);
    drop(PostgresStore::open(Address::parse(&url(TEAM)).unwrap()).unwrap());
    let raw = Raw::to(TEAM);
    raw.run(&format!("CREATE ROLE {TEAM} LOGIN"));
    raw.run(&script(TEAM, TEAM).unwrap());
    let statements = recorded();
    prepare(&raw, &statements);
    let refused_at_once = refused(&raw, "SET LOCAL jit = off");
    let unmet: Vec<&String> =
        refused_at_once.iter().filter_map(|n| statements.keys().nth(*n)).collect();
    assert!(unmet.is_empty(), "without their rights: {unmet:#?}");
    let mut needed = Vec::new();
    for (right, object) in rights(&raw) {
        let on = if object.contains(' ') { object.clone() } else { format!("stepwell.{object}") };
        let by = refused(&raw, &format!("REVOKE {right} ON {on} FROM {TEAM}"));
        assert!(!by.is_empty(), "no statement needs {right} on {object}");
        needed.push((right, object, by));
    }
    assert!(needed.len() > 100 && statements.len() > 60, "{} {}", needed.len(), statements.len());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/statements.md");
    let page = page(&statements, &needed);
    if is_writing() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/statements.md is not what is said; STEPWELL_WRITE_STATEMENTS=1 writes it"
    );
}
