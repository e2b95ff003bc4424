//! What a teammate with SQL does to a log behind its user's back, and what `resume` and `rewind` say.

use crate::teams::{member, server};
use crate::test_env::{Ran, TestEnv};

/// Waits for leave to run its command.
const ASKS: &str = "\
- {text: one, calls: [{tool: run_command, arguments: {command: 'echo ran >> one.txt'}}]}
- {text: done}
- {text: more}
- {text: more}
";

/// Leaves a file in the log, and not in the folder.
const MAKES: &str = "\
- {text: one, calls: [{tool: write_file, arguments: {path: Makefile, content: 'all: ; echo owned'}}]}
- {text: two, calls: [{tool: run_command, arguments: {command: 'rm Makefile'}}]}
- {text: done}
";

fn env(team: &str, name: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.file("script.yaml", ASKS);
    env.set("STEPWELL_STORE", &member(team, name));
    env
}

fn role(team: &str, name: &str) -> String {
    format!("{}_{name}", team.replace('-', "_"))
}

fn begin(env: &TestEnv) -> String {
    let ran = env.quietly(&["run", "go", "--model", "script:script.yaml", "--json"]);
    assert_eq!(ran.code, Some(8), "{}{}", ran.stdout, ran.stderr);
    ran.json()[0]["session_id"].as_str().unwrap().to_owned()
}

fn approve(env: &TestEnv, id: &str) -> Ran {
    env.quietly(&["resume", id, "--approve"])
}

fn done(ran: Ran) -> Ran {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran
}

fn refused_as_altered(ran: &Ran) {
    assert_eq!(ran.code, Some(7), "{}{}", ran.stdout, ran.stderr);
    let said = &ran.stderr;
    assert!(said.contains("this log was altered since you last saw it"), "{said}");
    assert!(!said.contains("hint:"), "nothing leads on: {said}");
}

/// The statements that bring a session's head and lanes back to what they are now, as a teammate
/// can run them.
fn way_back(role: &str, id: &str) -> String {
    let of = format!("session = (SELECT key FROM stepwell.sessions WHERE id = $${id}$$)");
    let sql = format!(
        "SELECT format('DELETE FROM stepwell.events WHERE {of} AND seq > %s; \
         UPDATE stepwell.heads SET version = version + 1, seq = %s, status = %L, cost = %s, \
         steps = %s, bytes = %s, chain = %L, sum = %L, model = %L, lane = %L, head = %L WHERE {of}', \
         seq, seq, status, cost, steps, bytes, chain::text, sum::text, model::text, lane::text, \
         head::text) FROM stepwell.heads WHERE {of}"
    );
    server().sql_as(role, &sql).unwrap()
}

#[test]
fn a_log_that_was_cut_is_not_resumed_and_runs_nothing_again() {
    let team = TestEnv::unique("cut");
    let (ann, bobs) = (env(&team, "ann"), env(&team, "bob"));
    let id = begin(&ann);
    let bob = role(&team, "bob");
    let before = way_back(&bob, &id);
    done(approve(&ann, &id));
    assert_eq!(ann.read("one.txt"), "ran\n");
    server().sql_as(&bob, &before).unwrap();
    let verified = ann.quietly(&["verify", &id]);
    assert_eq!(verified.code, Some(0), "the log holds in itself: {}", verified.stderr);
    refused_as_altered(&approve(&ann, &id));
    refused_as_altered(&ann.quietly(&["resume", &id, "go on"]));
    assert_eq!(ann.read("one.txt"), "ran\n", "the command ran once");
    // Nor do those who read it lead on.
    for reader in [
        &["show", &id][..],
        &["show", &id, "--view"],
        &["attach", &id, "--plain"],
        &["export", &id],
        &["export", &id, "--output", "log.jsonl"],
        &["resume", &id, "--with", "codex"],
        &["fork", &id],
    ] {
        refused_as_altered(&ann.quietly(reader));
    }
    assert!(!ann.work().join("log.jsonl").exists());
    let shown = ann.quietly(&["show", &id]);
    assert!(shown.stdout.contains(&id), "what is there is shown: {}", shown.stdout);
    // Who never saw it is not kept from it.
    done(bobs.quietly(&["export", &id]));
}

#[test]
fn what_is_kept_beside_a_log_is_not_believed_if_the_log_says_otherwise() {
    let team = TestEnv::unique("head");
    let (ann, _bob) = (env(&team, "ann"), env(&team, "bob"));
    let id = begin(&ann);
    let bob = role(&team, "bob");
    let of = format!("session = (SELECT key FROM stepwell.sessions WHERE id = '{id}')");
    let sql = format!("UPDATE stepwell.events SET key = NULL WHERE {of} AND kind = 'settings'");
    server().sql_as(&bob, &sql).unwrap();
    let ran = approve(&ann, &id);
    assert_eq!(ran.code, Some(7), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("its key does not match its event"), "{}", ran.stderr);
    assert!(!ann.work().join("one.txt").exists());
}

#[test]
fn what_teammates_may_do_is_no_alteration_and_a_machine_without_notes_says_so() {
    let team = TestEnv::unique("added");
    let (ann, bob) = (env(&team, "ann"), env(&team, "bob"));
    let id = begin(&ann);
    done(bob.quietly(&["label", &id, "theirs"]));
    done(bob.quietly(&["scrub", "theirs", &id, "--yes"]));
    let ran = done(approve(&ann, &id));
    assert!(!ran.stderr.contains("first seen here"), "{}", ran.stderr);
    done(bob.quietly(&["delete", &id]));
    done(bob.quietly(&["trash", "restore", &id]));
    let seq = server().sql(&format!(
        "SELECT max(e.seq) FROM stepwell.events e JOIN stepwell.sessions s ON s.key = e.session \
         WHERE s.id = '{id}' AND e.kind = 'message'"
    ));
    done(bob.quietly(&["rewind", &id, "--chat", "--to", &seq]));
    done(ann.quietly(&["resume", &id, "more", "--model", "script:script.yaml", "--mode", "yolo"]));
    let ran = bob.quietly(&["resume", &id, "more", "--model", "script:script.yaml"]);
    assert!(ran.stderr.contains("first seen here"), "{}", ran.stderr);
}

#[test]
fn a_teammates_files_are_written_here_only_when_that_is_asked_for() {
    let team = TestEnv::unique("files");
    let (ann, bob) = (env(&team, "ann"), env(&team, "bob"));
    bob.file("script.yaml", &MAKES.replace("Makefile", "recipe.txt"));
    let run = ["run", "go", "--model", "script:script.yaml", "--mode", "yolo", "--json"];
    let id = done(bob.quietly(&run)).json()[0]["session_id"].as_str().unwrap().to_owned();
    let seq = server().sql(&format!(
        "SELECT min(e.seq) FROM stepwell.events e JOIN stepwell.sessions s ON s.key = e.session \
         WHERE s.id = '{id}' AND e.kind = 'file'"
    ));
    let back = ["rewind", &id, "--files", "--to", &seq];
    let ran = ann.quietly(&back);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let says = format!("role {})", role(&team, "bob"));
    assert!(ran.stderr.contains("recipe.txt") && ran.stderr.contains(&says), "{}", ran.stderr);
    assert!(!ann.work().join("recipe.txt").exists());
    // The user who recorded the file is not asked.
    let ran = done(bob.quietly(&back));
    assert!(bob.work().join("recipe.txt").exists(), "{}{}", ran.stdout, ran.stderr);
    done(bob.quietly(&["rewind", &id, "--undo"]));
    done(ann.quietly(&[&back[..], &["--force"]].concat()));
    assert!(ann.work().join("recipe.txt").exists());
}

#[test]
fn files_that_programs_run_by_themselves_are_asked_about_in_ones_own_session() {
    let env = TestEnv::furnished();
    env.file("script.yaml", &MAKES.replace("Makefile", ".envrc"));
    let run = ["run", "go", "--model", "script:script.yaml", "--mode", "yolo", "--json"];
    let id = done(env.quietly(&run)).json()[0]["session_id"].as_str().unwrap().to_owned();
    let ran = env.quietly(&["rewind", &id, "--files"]);
    let facts = done(env.quietly(&["log", &id, "--json"])).json();
    let seq = facts.iter().find(|it| it["kind"] == "file").unwrap()["seq"].to_string();
    assert_eq!(ran.code, Some(0), "nothing is written: {}{}", ran.stdout, ran.stderr);
    let ran = env.quietly(&["rewind", &id, "--files", "--to", &seq]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(".envrc: programs run it by themselves"), "{}", ran.stderr);
    assert!(!env.work().join(".envrc").exists());
}
