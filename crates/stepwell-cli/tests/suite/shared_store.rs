//! A store that several roles share: how long it keeps sessions, whose sessions are erased by the
//! way and resumed unasked, and whose clock counts.

use crate::teams::{member, server};
use crate::test_env::{Ran, TestEnv};

/// Waits for leave to run its command.
const ASKS: &str = "\
- {text: one, calls: [{tool: run_command, arguments: {command: 'echo ran > one.txt'}}]}
- {text: done}
";

/// An environment of one of a team's roles.
fn env(team: &str, name: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.file("script.yaml", ASKS);
    env.set("STEPWELL_STORE", &member(team, name));
    env
}

/// Begins a session that waits.
fn begin(env: &TestEnv) -> String {
    let ran = env.quietly(&["run", "go", "--model", "script:script.yaml", "--json"]);
    assert_eq!(ran.code, Some(8), "{}{}", ran.stdout, ran.stderr);
    ran.json()[0]["session_id"].as_str().unwrap().to_owned()
}

fn done(ran: Ran) -> Ran {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran
}

/// Lets a session lie in the trash for so many days already.
fn age(id: &str, days: u32) {
    let _ = server().sql(&format!(
        "UPDATE stepwell.heads h SET trashed = trashed - {days}::bigint * 86400000000 \
         FROM stepwell.sessions s WHERE s.key = h.session AND s.id = '{id}'"
    ));
}

fn exists(env: &TestEnv, id: &str) -> bool {
    env.quietly(&["show", id]).code == Some(0)
}

fn is_in_trash(env: &TestEnv, id: &str) -> bool {
    done(env.quietly(&["trash", "--json"])).stdout.contains(id)
}

#[test]
fn how_long_a_store_keeps_sessions_is_shown_to_all_and_set_by_its_owner() {
    let team = TestEnv::unique("kept");
    let ann = env(&team, "ann");
    let shown = done(ann.quietly(&["store", "retention", "--json"])).json().remove(0);
    assert_eq!((&shown["retention_days"], &shown["owner"]), (&30.into(), &"stepwell".into()));
    assert!(shown["cleanup_after_days"].is_null(), "{shown}");
    let refused = ann.quietly(&["store", "retention", "--days", "1"]);
    assert_eq!(refused.code, Some(1));
    for says in ["owner, role stepwell", "stepwell store retention --days 1"] {
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
    let mut owner = TestEnv::new();
    owner.set("STEPWELL_STORE", &format!("{}?namespace={team}", server().url()));
    let flags = ["store", "retention", "--days", "60", "--cleanup-after", "90"];
    done(owner.quietly(&flags));
    done(owner.quietly(&["store", "retention", "--days", "61"]));
    let shown = done(ann.quietly(&["store", "retention"])).stdout;
    assert!(shown.contains("erased after 61 days") && shown.contains("after 90 days"), "{shown}");
    done(owner.quietly(&["store", "retention", "--no-cleanup"]));
    let shown = done(ann.quietly(&["store", "retention", "--json"])).json().remove(0);
    assert_eq!((&shown["retention_days"], &shown["cleanup_after_days"]), (&61.into(), &().into()));
    // By SQL it is the owner's as well.
    let role = format!("{}_ann", team.replace('-', "_"));
    for sql in [
        "UPDATE stepwell.policies SET retention_days = 1",
        "DELETE FROM stepwell.policies",
        "INSERT INTO stepwell.policies SELECT id, 1, 1 FROM stepwell.namespaces",
    ] {
        let said = server().sql_as(&role, sql).expect_err(sql);
        assert!(said.contains("permission denied"), "{sql}: {said}");
    }
    // Another team's is another.
    let bob = env(&TestEnv::unique("kept"), "bob");
    let shown = done(bob.quietly(&["store", "retention", "--json"])).json().remove(0);
    assert_eq!(shown["retention_days"], 30);
    let folder = TestEnv::furnished();
    let shown = done(folder.quietly(&["store", "retention", "--json"])).json().remove(0);
    assert_eq!((&shown["retention_days"], &shown["owner"]), (&30.into(), &().into()));
    assert_eq!(folder.quietly(&["store", "retention", "--days", "9"]).code, Some(2));
}

#[test]
fn neither_anyones_settings_nor_their_clock_erase_sessions_and_no_role_erases_anothers() {
    let team = TestEnv::unique("erased");
    let (ann, mut bob) = (env(&team, "ann"), env(&team, "bob"));
    let [anns, bobs, young, other] = [&ann, &bob, &bob, &bob].map(begin);
    done(bob.quietly(&["delete", &anns, &bobs, &young]));
    age(&anns, 40);
    age(&bobs, 40);
    age(&young, 20);
    // He would keep sessions for a day, and his clock is a century ahead.
    let home = bob.path("home/.config/stepwell");
    std::fs::create_dir_all(&home).unwrap();
    let settings = "[sessions]\nretention_days = 1\nauto_cleanup = true\ncleanup_after_days = 1\n";
    std::fs::write(home.join("config.toml"), settings).unwrap();
    bob.set("STEPWELL_NOW", "2126-01-01T00:00:00Z");
    let ran = done(bob.quietly(&["label", &other, "changed"]));
    assert!(
        ran.stderr.contains("Erased 1 session that had been in the trash for 30 days"),
        "{}",
        ran.stderr
    );
    assert!(!exists(&bob, &bobs));
    assert!(is_in_trash(&ann, &anns), "another role began it");
    assert!(is_in_trash(&ann, &young), "its time is not over, by the server's clock");
    assert!(!is_in_trash(&ann, &other), "the store does not clean up");
    // Nor by a command that names none, unless he says so.
    let ran = done(bob.quietly(&["trash", "empty", "--yes"]));
    assert!(ran.stderr.contains("1 session of other roles stay"), "{}", ran.stderr);
    assert!(is_in_trash(&ann, &anns) && !exists(&bob, &young));
    done(bob.quietly(&["trash", "empty", "--yes", "--everyone"]));
    assert!(!exists(&ann, &anns));
}

#[test]
fn a_cleanup_takes_only_what_ones_own_role_began() {
    let team = TestEnv::unique("cleaned");
    let (ann, bob) = (env(&team, "ann"), env(&team, "bob"));
    let [anns, bobs] = [&ann, &bob].map(begin);
    let ran = done(bob.quietly(&["cleanup", "--older-than", "0", "--yes"]));
    assert!(ran.stderr.contains(&format!("{anns} stays: another role began it")), "{}", ran.stderr);
    assert!(is_in_trash(&bob, &bobs) && !is_in_trash(&bob, &anns));
    done(bob.quietly(&["cleanup", "--older-than", "0", "--yes", "--everyone"]));
    assert!(is_in_trash(&bob, &anns));
}

#[test]
fn a_change_that_was_kept_is_no_failure_because_housekeeping_is_one() {
    let team = TestEnv::unique("tidied");
    let ann = env(&team, "ann");
    let id = begin(&ann);
    let role = format!("{}_ann", team.replace('-', "_"));
    let _ = server().sql(&format!("REVOKE SELECT ON stepwell.policies FROM {role}"));
    let ran = done(ann.quietly(&["label", &id, "kept"]));
    assert!(ran.stderr.contains("warning: old sessions were not looked for"), "{}", ran.stderr);
    let shown = done(ann.quietly(&["sessions", "--all", "--json"])).json().remove(0);
    assert_eq!(shown["label"], "kept");
}

#[test]
fn resume_without_an_id_takes_only_ones_own_sessions_of_the_workspace() {
    let team = TestEnv::unique("resumed");
    let (ann, bob) = (env(&team, "ann"), env(&team, "bob"));
    let anns = begin(&ann);
    // Ann's other workspace, and a session that Bob begins in a folder that has the same name.
    let mut elsewhere = env(&team, "ann");
    elsewhere.set("HOME", &ann.path("home").display().to_string());
    let _ = begin(&elsewhere);
    let bobs = begin(&bob);
    let mut beside = bob.command(&["run", "go", "--model", "script:script.yaml"]);
    assert_eq!(beside.current_dir(ann.work()).output().unwrap().status.code(), Some(8));
    let ran = ann.quietly(&["resume"]);
    assert!(ran.stderr.contains(&format!("Resuming {anns}")), "{}", ran.stderr);
    // Who has none here is told so, and nothing is taken up.
    let carl = env(&team, "carl");
    let ran = carl.quietly(&["resume"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("no session that you began"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: stepwell resume "), "{}", ran.stderr);
    let ran = bob.quietly(&["resume"]);
    assert!(ran.stderr.contains(&format!("Resuming {bobs}")), "{}", ran.stderr);
}

#[test]
fn resume_without_an_id_takes_no_session_that_came_with_a_folder() {
    let env = TestEnv::new();
    env.file("script.yaml", ASKS);
    let mine = begin(&env);
    let theirs = |args: &[&str]| {
        let mut command = env.command(args);
        std::fs::create_dir_all(env.path("other")).unwrap();
        command.env("HOME", env.path("other")).env("STEPWELL_NOW", "2026-03-10T12:00:00Z");
        crate::test_env::ran(command.output().unwrap())
    };
    let ran = theirs(&["resume"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("stepwell resume {mine}")), "{}", ran.stderr);
    let ran = theirs(&["run", "go", "--model", "script:script.yaml"]);
    assert_eq!(ran.code, Some(8), "{}", ran.stderr);
    let ran = env.quietly(&["resume"]);
    assert!(ran.stderr.contains(&format!("Resuming {mine}")), "{}", ran.stderr);
}

#[test]
fn a_sessions_name_and_age_follow_the_servers_clock() {
    let mut ann = env(&TestEnv::unique("clock"), "ann");
    ann.set("STEPWELL_NOW", "1999-01-01T00:00:00Z");
    let before = server().sql("SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')");
    let id = begin(&ann);
    assert!(id.as_str() >= before.as_str(), "{id} {before}");
    let listed = done(ann.quietly(&["sessions", "--since", "1h", "--json"])).json();
    assert_eq!(listed.len(), 1);
    ann.set("STEPWELL_NOW", "2126-01-01T00:00:00Z");
    let listed = done(ann.quietly(&["sessions", "--since", "1h", "--json"])).json();
    assert_eq!(listed.len(), 1);
    let shown = done(ann.quietly(&["sessions"])).stdout;
    assert!(shown.contains("s ago") || shown.contains("m ago"), "{shown}");
}

/// Imports an agent that was done in May.
fn done_in_may(env: &TestEnv, id: &str) {
    let state = serde_json::json!({
        "agent_id": id, "agent_name": "mixer", "purpose": "dough", "phase": "completed",
        "created_at": "2026-05-10T03:05:00+00:00", "last_updated": "2026-05-10T03:06:00+00:00",
        "metadata": {}, "resume_ready": false, "history": [], "error_count": 0,
    });
    let folder = env.work().join(format!(".claude/session/{id}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("state.json"), state.to_string()).unwrap();
    done(env.quietly(&["import", ".claude/session", "--from", "gaia", "--yes"]));
}

#[test]
fn agents_are_cleaned_up_as_the_stores_owner_says_and_not_as_a_members_settings_do() {
    let team = TestEnv::unique("agents");
    let (ann, bob) = (env(&team, "ann"), env(&team, "bob"));
    let (anns, bobs) = ("of-ann", "of-bob");
    done_in_may(&ann, anns);
    done_in_may(&bob, bobs);
    // She would clean up at once.
    let home = ann.path("home/.config/stepwell");
    std::fs::create_dir_all(&home).unwrap();
    let settings = "[sessions]\nauto_cleanup = true\ncleanup_after_days = 0\n\
                    [agent]\ncleanup_after_hours = 0\n";
    std::fs::write(home.join("config.toml"), settings).unwrap();
    let waits = begin(&ann);
    done(ann.quietly(&["label", &waits, "one"]));
    assert!(!is_in_trash(&ann, anns) && !is_in_trash(&ann, bobs), "the store does not clean up");
    let mut owner = TestEnv::new();
    owner.set("STEPWELL_STORE", &format!("{}?namespace={team}", server().url()));
    done(owner.quietly(&["store", "retention", "--cleanup-after", "1"]));
    let ran = done(ann.quietly(&["label", &waits, "two"]));
    assert!(is_in_trash(&ann, anns), "{}", ran.stderr);
    assert!(!is_in_trash(&ann, bobs), "another role began it");
    assert!(!is_in_trash(&ann, &waits), "her settings would have taken it");
}
