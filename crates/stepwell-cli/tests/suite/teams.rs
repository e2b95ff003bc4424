//! A team's store: the same commands, on a server.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use stepwell::Stepwell;
use stepwell::sessions::Deps;
use stepwell_cluster::{Disk, Proxy, Server};
use stepwell_postgres::{Address, PostgresStore};

use crate::running::{env, one, run};
use crate::test_env::{AUTH, TestEnv};

/// The server that the tests of this file share.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(Disk::Synced))
}

/// A namespace that nobody else has, by its address.
fn team() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}?namespace=team-{n}", server().url())
}

/// The address of a team's store for one of its members, who has a role of their own.
pub(crate) fn member(team: &str, name: &str) -> String {
    let role = format!("{}_{name}", team.replace('-', "_"));
    // Its owner opens it first.
    drop(PostgresStore::open(Address::parse(&server().url()).unwrap()).unwrap());
    if server().sql(&format!("SELECT 1 FROM pg_roles WHERE rolname = '{role}'")).is_empty() {
        let _ = server().sql(&format!("CREATE ROLE {role} LOGIN"));
        let _ = server().sql(&stepwell_postgres::script(team, &role).unwrap());
    }
    let url = server().url().replace("stepwell@", &format!("{role}@"));
    format!("{url}?namespace={team}")
}

/// Which rows are a team's.
fn own(team: &str) -> String {
    let name = team.rsplit('=').next().unwrap();
    format!("namespace = (SELECT id FROM stepwell.namespaces WHERE name = '{name}')")
}

/// An environment whose sessions are in a team's store. What the time is, the server says.
fn at(mut env: TestEnv, team: &str) -> TestEnv {
    env.set("STEPWELL_STORE", team);
    env
}

#[test]
fn commands_work_on_a_teams_store_as_on_a_folder() {
    let team = team();
    let script = "- {text: hello there, calls: [{tool: write_file, arguments: {path: a.txt, content: hi}}]}\n\
         - {text: done}\n";
    let env = at(env(script), &team);
    let ran = one(&env, &run(&["--mode", "yolo"]), 0);
    assert_eq!(ran["output"], "done");
    let id = ran["session_id"].as_str().unwrap();
    assert_eq!(env.quietly(&["sessions", "--all", "--json"]).json()[0]["id"], id);
    assert!(env.quietly(&["show", "@last"]).stdout.contains("hello there"));
    assert!(env.quietly(&["search", "hello"]).stdout.contains(id));
    for args in [
        &["label", id, "mine"][..],
        &["tag", "mine", "good"],
        &["checkpoint", "mine", "here"],
        &["fork", "mine"],
        &["rewind", "mine", "--to", "1", "--chat"],
        &["delete", "mine"],
        &["trash", "restore", "mine"],
        &["verify"],
        &["stats"],
        &["du"],
        &["doctor"],
        &["ledger"],
        &["export", "mine", "--format", "jsonl"],
        &["log", "mine"],
    ] {
        let ran = env.quietly(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {} {}", ran.stdout, ran.stderr);
    }
    // Nothing of it is in the workspace, and another environment sees the same.
    assert!(!env.work().join(".stepwell/stepwell.db").exists());
    let other = at(TestEnv::new(), &team);
    assert_eq!(other.quietly(&["sessions", "--all", "--json"]).json().len(), 2);
    let backup = env.quietly(&["backup", "copy.db"]);
    assert_eq!(backup.code, Some(1));
    assert!(backup.stderr.contains("pg_dump"), "{}", backup.stderr);
}

/// So many answers open a store: the greeting, whether the server takes writes, and what the schema
/// and the namespace are.
const OPENING: u64 = 3;

#[test]
fn a_list_takes_at_most_three_statements_and_a_page_of_the_ledger_two() {
    let proxy = Proxy::to(server().port());
    let address = team();
    let (_, namespace) = address.split_once('?').unwrap();
    let env = at(env("- {text: done}\n"), &format!("{}?{namespace}", proxy.url()));
    let store = PostgresStore::open(Address::parse(&address).unwrap()).unwrap();
    let well = Stepwell::with(Arc::new(store), Deps::default());
    for n in 0..30 {
        let flow = stepwell::model::Flow {
            name: "chain".to_owned(),
            pattern: "chain".to_owned(),
            spec: "name: chain".to_owned(),
            hash: stepwell::model::SpecHash::of(b"name: chain"),
            variables: [("n".to_owned(), n.into())].into(),
        };
        let created = stepwell::Created { flow: Some(flow), ..well.draft(format!("task {n}")) };
        let session = well.create(created).unwrap();
        session
            .append(stepwell::model::Task {
                id: "t".to_owned(),
                ..stepwell::model::Task::default()
            })
            .unwrap();
        let below = session.spawn(well.draft("below")).unwrap();
        below.finish(stepwell::Status::Success, None).unwrap();
        session.finish(stepwell::Status::Success, None).unwrap();
    }
    for (args, at_most) in [
        (&["sessions"][..], 3),
        (&["sessions", "--all"], 3),
        (&["sessions", "--tree"], 3),
        (&["sessions", "--all", "--color", "always"], 3),
        (&["sessions", "--all", "--json"], 3),
        // Two of these are sent together.
        (&["sessions", "--all", "--json", "--status", "success"], 4),
        // Two for the page, and one for all subagents.
        (&["ledger"], 3),
        (&["ledger", "--json"], 3),
    ] {
        let before = proxy.answers();
        let ran = env.quietly(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        assert!(ran.stdout.lines().count() >= 20, "{args:?}: {}", ran.stdout);
        let asked = proxy.answers() - before;
        assert!(asked <= OPENING + at_most, "{args:?}: {asked} statements");
    }
    let json = env.quietly(&["sessions", "--all", "--json"]).json();
    assert_eq!(json.iter().filter(|it| it["flow"]["name"].is_string()).count(), 30);
    let ledger = env.quietly(&["ledger", "--json"]).json();
    assert!(ledger.iter().all(|row| row["tasks"] == 1), "{ledger:?}");
}

#[test]
fn a_run_killed_on_one_machine_is_resumed_from_another() {
    let team = team();
    let script = "- {text: first, calls: [{tool: run_command, arguments: {command: 'touch began; sleep 60'}}]}\n\
         - {text: second}\n";
    // Each machine has a name, a home and a copy of the workspace of its own.
    let (mut here, mut there) = (at(env(script), &team), at(env(script), &team));
    here.set("STEPWELL_HOST", "here");
    there.set("STEPWELL_HOST", "there");
    let mut command = here.command(&run(&["--mode", "yolo", "--events"]));
    command.env_remove("STEPWELL_NOW");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let started = lines.by_ref().map(Result::unwrap).find(|line| line.contains("\"unsafe\""));
    assert!(started.is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let ask = |env: &TestEnv, args: &[&str]| {
        let ran = env.command(args).env_remove("STEPWELL_NOW").output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        (ran.status.code(), serde_json::from_slice(&ran.stdout).unwrap_or(Value::Null), said)
    };
    let status = |env: &TestEnv| ask(env, &["sessions", "--all", "--json"]).1["status"].clone();
    let resume = ["resume", "@last", "--mode", "yolo", "--json"];
    // Its own machine sees that the process is gone. Another one cannot, and waits for the
    // end of the lease, by the server's clock.
    assert_eq!(status(&here), "interrupted");
    assert_eq!(status(&there), "running");
    let (code, _, said) = ask(&there, &resume);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains(" on here"), "{said}");
    let now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let own = own(&team);
    let left = server()
        .sql(&format!("SELECT (expires - {now}) / 1000000 FROM stepwell.leases WHERE {own}"));
    assert!((1..=30).contains(&left.parse::<i64>().unwrap()), "{left}");
    // The rest of its time passes at once.
    let _ = server().sql(&format!("UPDATE stepwell.leases SET expires = {now} WHERE {own}"));
    assert_eq!(status(&there), "interrupted");
    let (code, answer, said) = ask(&there, &resume);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(answer["output"], "second");
    // The unsafe command was not run again, on either machine.
    assert!(!there.work().join("began").exists());
    assert_eq!(there.quietly(&["verify"]).code, Some(0));
}

#[test]
fn a_runner_that_lost_its_lease_says_how_far_it_came() {
    let team = team();
    // Another runner takes the session over while the second command runs.
    let own = own(&team);
    let fence = format!(
        "psql -qX -h 127.0.0.1 -p {} -U stepwell -d postgres \
         -c \\\"UPDATE stepwell.leases SET epoch = epoch + 1 WHERE {own}\\\" \
         -c \\\"UPDATE stepwell.heads SET fence = fence + 1, version = version + 1 WHERE {own}\\\"",
        server().port()
    );
    let script = format!(
        "- {{text: one, calls: [{{tool: write_file, arguments: {{path: a.txt, content: hi}}}}]}}\n\
         - {{text: two, calls: [{{tool: run_command, arguments: {{command: \"{fence}\"}}}}]}}\n\
         - {{text: three}}\n"
    );
    let env = at(env(&script), &team);
    let answer = one(&env, &run(&["--mode", "yolo"]), 7);
    assert_eq!(answer["status"], "interrupted", "{answer}");
    assert_eq!(answer["steps"], 1, "{answer}");
    assert_eq!(answer["tools_used"], serde_json::json!(["write_file", "run_command"]));
    assert_eq!(answer["files_modified"], serde_json::json!(["a.txt"]));
    assert_eq!(answer["output"], "two");
    // Whoever took it over may be done: going on with it is not the first thing to type.
    let told = env.quietly(&run(&["--mode", "yolo"]));
    assert_eq!(told.code, Some(7), "{}", told.stderr);
    assert!(told.stderr.contains("hint: stepwell show "), "{}", told.stderr);
}

#[test]
fn sessions_are_copied_to_a_team_and_back() {
    let team = team();
    let env = TestEnv::furnished();
    let copied = env.quietly(&["store", "copy", ".stepwell", &team]);
    assert_eq!(copied.code, Some(0), "{} {}", copied.stdout, copied.stderr);
    assert!(copied.stdout.contains(&format!("Copied {AUTH}")), "{}", copied.stdout);
    // Again, nothing is new; what came meanwhile is.
    let again = env.quietly(&["store", "copy", ".stepwell", &team]);
    assert!(!again.stdout.contains("Copied") && again.stdout.contains("Already there"));
    env.quietly(&["label", AUTH, "later"]);
    let more = env.quietly(&["store", "copy", ".stepwell", &team, AUTH]);
    assert!(more.stdout.contains("Copied the rest of"), "{} {}", more.stdout, more.stderr);
    // The way back makes the same sessions.
    let back = TestEnv::new();
    let copied = back.quietly(&["store", "copy", &team, "copy"]);
    assert_eq!(copied.code, Some(0), "{} {}", copied.stdout, copied.stderr);
    let ids = |env: &TestEnv, args: &[&str]| -> Vec<String> {
        let mut all = ["sessions", "--all", "--json"].to_vec();
        all.extend(args);
        let listed = env.quietly(&all).json();
        let mut ids: Vec<String> = listed.iter().map(|it| it["id"].to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&back, &["--store", "copy"]), ids(&env, &[]));
    let log = |env: &TestEnv, args: &[&str]| {
        let mut all = ["log", AUTH].to_vec();
        all.extend(args);
        env.quietly(&all).stdout
    };
    assert_eq!(log(&back, &["--store", "copy"]), log(&env, &[]));
    assert_eq!(back.quietly(&["verify", "--store", "copy"]).code, Some(0));
    let trash = |env: &TestEnv, args: &[&str]| {
        let mut all = ["trash", "list", "--json"].to_vec();
        all.extend(args);
        env.quietly(&all).json().len()
    };
    assert_eq!(trash(&back, &["--store", "copy"]), trash(&env, &[]));
}

#[test]
fn a_copy_moves_only_what_it_copies_to_the_trash() {
    let team = team();
    let env = TestEnv::furnished();
    let copy = || env.quietly(&["store", "copy", ".stepwell", &team, AUTH]);
    assert!(copy().stdout.contains(&format!("Copied {AUTH}")));
    // The team goes on with it; here it is deleted.
    let there = at(TestEnv::new(), &team);
    assert_eq!(there.quietly(&["label", AUTH, "ours"]).code, Some(0));
    assert_eq!(env.quietly(&["delete", AUTH]).code, Some(0));
    let again = copy();
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stdout.contains("Already there"), "{}", again.stdout);
    assert!(again.stderr.contains("stays out of it there; stepwell delete"), "{}", again.stderr);
    assert_eq!(there.quietly(&["show", "ours"]).code, Some(0));
    assert!(there.quietly(&["trash", "list", "--json"]).json().is_empty());
    // The same goes for one that has more here than there, and for one in their trash.
    assert_eq!(env.quietly(&["trash", "restore", AUTH]).code, Some(0));
    assert_eq!(there.quietly(&["delete", AUTH]).code, Some(0));
    let theirs = copy();
    assert!(theirs.stderr.contains("stays in it; stepwell trash restore"), "{}", theirs.stderr);
    assert_eq!(there.quietly(&["trash", "restore", AUTH]).code, Some(0));
    let second = self::team();
    let other = at(TestEnv::new(), &second);
    let to_other = || env.quietly(&["store", "copy", ".stepwell", &second, AUTH]);
    assert_eq!(to_other().code, Some(0));
    assert_eq!(env.quietly(&["label", AUTH, "more"]).code, Some(0));
    assert_eq!(env.quietly(&["delete", AUTH]).code, Some(0));
    let rest = to_other();
    assert!(rest.stdout.contains("Copied the rest of"), "{} {}", rest.stdout, rest.stderr);
    assert!(!rest.stdout.contains("into the trash"), "{}", rest.stdout);
    assert!(rest.stderr.contains("stays out of it there"), "{}", rest.stderr);
    assert_eq!(other.quietly(&["show", "more"]).code, Some(0));
    // What comes there from the trash goes to the trash, and that is said.
    let elsewhere = env.quietly(&["store", "copy", ".stepwell", "copy", AUTH]);
    let lines: Vec<&str> = elsewhere.stdout.lines().collect();
    assert_eq!(lines[0], format!("Copied {AUTH} into the trash"), "{}", elsewhere.stderr);
    assert!(lines.iter().all(|line| line.ends_with(" into the trash")), "{lines:?}");
    let again = env.quietly(&["store", "copy", ".stepwell", "copy", AUTH]);
    assert!(again.stdout.starts_with(&format!("Already there: {AUTH}\n")), "{}", again.stdout);
    assert_eq!(again.stderr, "");
}

#[test]
fn a_stores_password_is_in_nothing_that_a_run_stores_or_prints() {
    let with_password = team().replacen("://stepwell@", "://stepwell:S3cr3tPw@", 1);
    assert!(with_password.contains(":S3cr3tPw@"), "{with_password}");
    // The quotes are there for the script, which is redacted as well.
    let script = "- {text: one, calls: [{tool: run_command, arguments: {command: \"echo it is S3cr''3tPw\"}}]}\n\
         - {text: done}\n";
    let mut plain = at(env(script), &with_password.replacen(":S3cr3tPw@", "@", 1));
    plain.set("PGPASSWORD", "S3cr3tPw");
    for env in [at(env(script), &with_password), plain] {
        let ran = env.quietly(&run(&["--mode", "yolo"]));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let said = format!("{}{}{}", ran.stdout, ran.stderr, env.quietly(&["log", "@last"]).stdout);
        assert!(said.contains("it is [redacted:"), "{said}");
        assert!(!said.contains("S3cr3tPw"), "{said}");
    }
}

#[test]
fn the_store_says_what_it_is_and_what_it_survives() {
    let env = at(TestEnv::new(), &team());
    assert_eq!(env.quietly(&["init"]).code, Some(0));
    let status = one(&env, &["store", "status"], 0);
    assert_eq!(status["engine"], "PostgreSQL");
    assert_eq!(status["durability"], "local");
    let shown = env.quietly(&["store", "status"]).stdout;
    assert!(shown.contains("not the loss of its disk"), "{shown}");
    let local = TestEnv::furnished();
    assert_eq!(one(&local, &["store", "status"], 0)["engine"], "SQLite");
    let role = local.quietly(&["store", "role", "team-a", "team_a"]).stdout;
    assert!(role.contains("GRANT") && role.contains("\"team_a\""), "{role}");
}

#[test]
fn a_setting_that_the_store_decides_is_shown_as_ignored() {
    let env = at(TestEnv::new(), &team());
    let of = |key: &str| env.quietly(&["config", "get", key, "--json"]).json().remove(0);
    for key in ["sessions.retention_days", "sessions.auto_cleanup"] {
        assert_eq!(of(key)["source"], "ignored: stepwell store retention decides");
    }
    assert_eq!(of("sessions.cleanup_after_days")["source"], "default");
}

#[test]
fn an_address_is_never_printed_as_it_was_typed() {
    let secret = "postgres://ann:s3cret@127.0.0.1:1/runs?patience=0";
    let mut env = TestEnv::new();
    let mut said = String::new();
    let mut hear = |ran: crate::test_env::Ran| {
        said.push_str(&ran.stdout);
        said.push_str(&ran.stderr);
        ran.code
    };
    assert_eq!(hear(env.quietly(&["sessions", "--store", secret])), Some(7));
    assert_eq!(hear(env.quietly(&["store", "copy", secret, "x"])), Some(7));
    assert_eq!(hear(env.quietly(&["config", "set", "store.url", secret])), Some(2));
    assert_eq!(hear(env.quietly(&["config", "set", "--user", "store.url", secret])), Some(0));
    assert_eq!(hear(env.quietly(&["config", "list"])), Some(0));
    assert_eq!(hear(env.quietly(&["config", "get", "store.url", "--json"])), Some(0));
    assert_eq!(hear(env.quietly(&["sessions", "-vv"])), Some(7));
    assert_eq!(hear(env.quietly(&["doctor"])), Some(7));
    let broken = "store.url=postgres://ann:s3cret@:port/x";
    assert_eq!(hear(env.quietly(&["sessions", "--config", broken])), Some(3));
    env.set("STEPWELL_STORE_URL", "postgres://ann:s3cret@h/x?follow=never");
    assert_eq!(hear(env.quietly(&["sessions"])), Some(3));
    // Nor is one that was mistyped taken for a folder, which would be named by it.
    let env = TestEnv::new();
    for wrong in [
        "postgres:/ann:s3cret@db/runs",
        "postgres//ann:s3cret@db/runs",
        "mysql://ann:s3cret@db/runs",
        "ann:s3cret@db/runs",
    ] {
        assert_eq!(hear(env.quietly(&["init", "--store", wrong])), Some(2));
        assert_eq!(hear(env.quietly(&["store", "copy", wrong, "copy"])), Some(2));
        let setting = format!("store.url={wrong}");
        assert_eq!(hear(env.quietly(&["sessions", "--config", &setting])), Some(3));
    }
    assert_eq!(
        hear(env.quietly(&["init", "--store", &secret.replace("postgres", "POSTGRES")])),
        Some(7)
    );
    assert_eq!(hear(env.quietly(&["init", "--store", &format!(" {secret}")])), Some(7));
    assert_eq!(std::fs::read_dir(env.work()).unwrap().count(), 0);
    assert!(said.contains("127.0.0.1:1/runs") && !said.contains("s3cret"), "{said}");
    // A project's own file must not say where its user's sessions go.
    let env = TestEnv::new();
    env.file("stepwell.toml", "[store]\nurl = \"postgres://u@elsewhere/x\"\n");
    let refused = env.quietly(&["sessions"]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("your own configuration"), "{}", refused.stderr);
}
