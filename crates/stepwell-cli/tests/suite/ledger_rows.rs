//! The rows of the ledger: what stays of a session that was cleaned up, what goes with one that was
//! erased, and which commits a session made.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::elsewhere::{copy, fixtures};
use crate::test_env::{TESTS, TestEnv, WIDE};

fn ledger(env: &TestEnv) -> Vec<Value> {
    env.quietly(&["ledger", "--json"]).json()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

/// What a plan would be told of earlier sessions.
fn lessons(env: &TestEnv) -> String {
    let well = env.well();
    let own = well.create(well.draft("another")).unwrap();
    let (id, told) = (own.id().clone(), well.lessons(own.id()));
    drop(own);
    well.purge(&id).unwrap();
    told
}

/// Sessions that ended, one of them with a task that failed and that names a secret.
fn ended() -> TestEnv {
    let env = TestEnv::furnished();
    env.quietly(&["tasks", TESTS, "add", "mock the hunter2 server", "--status", "failed"]).line();
    env.quietly(&["tasks", TESTS, "add", "b"]).line();
    env
}

fn done(env: &TestEnv, args: &[&str]) {
    let ran = env.quietly(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_row_and_its_lessons_outlive_a_cleanup_and_an_emptied_trash() {
    let env = ended();
    let (before, learned) = (ledger(&env), lessons(&env));
    assert_eq!(ids(&before).len(), 2);
    assert!(learned.contains("- failed: mock the hunter2 server"), "{learned}");
    assert!(learned.contains("- cost $0.45"), "{learned}");
    done(&env, &["cleanup", "--older-than", "0", "-y"]);
    assert_eq!(ledger(&env), before, "in the trash");
    assert_eq!(lessons(&env), learned, "in the trash");
    done(&env, &["trash", "empty", "--yes"]);
    assert!(env.quietly(&["sessions", "--all", "--json"]).json().is_empty());
    assert!(env.quietly(&["trash", "list", "--json"]).json().is_empty());
    assert_eq!(ledger(&env), before, "after the trash");
    assert_eq!(lessons(&env), learned, "after the trash");
    // Nothing else of the sessions is left.
    assert!(env.quietly(&["search", "pass", "--json"]).json().is_empty());
    // A row is no session to clean up, and is found by the session's name.
    done(&env, &["cleanup", "--older-than", "0", "-y"]);
    done(&env, &["trash", "empty", "--yes"]);
    assert_eq!(ledger(&env), before, "after another cleanup");
    done(&env, &["purge", TESTS, "--yes"]);
    assert_eq!(ids(&ledger(&env)), [WIDE]);
    assert!(!lessons(&env).contains("hunter2"));
}

#[test]
fn what_is_erased_leaves_no_row_and_no_lesson() {
    let env = ended();
    done(&env, &["purge", TESTS, "--yes"]);
    assert_eq!(ids(&ledger(&env)), [WIDE]);
    assert!(!lessons(&env).contains("hunter2"));
    done(&env, &["cleanup", "--older-than", "0", "--purge", "-y"]);
    assert!(ledger(&env).is_empty());
    // Rows of what went before go as well, once they are as old.
    let env = ended();
    done(&env, &["cleanup", "--older-than", "0", "-y"]);
    done(&env, &["trash", "empty", "--yes"]);
    assert_eq!(ledger(&env).len(), 2);
    done(&env, &["cleanup", "--older-than", "0", "--purge", "-y"]);
    assert!(ledger(&env).is_empty());
    assert_eq!(lessons(&env), "");
}

#[test]
fn a_scrub_reaches_the_rows_and_the_lessons() {
    let env = ended();
    done(&env, &["cleanup", "--older-than", "0", "-y"]);
    done(&env, &["trash", "empty", "--yes"]);
    assert!(lessons(&env).contains("hunter2"));
    done(&env, &["scrub", "hunter2", "--yes"]);
    assert!(!lessons(&env).contains("hunter2"), "{}", lessons(&env));
    assert_eq!(ledger(&env).len(), 2);
    let file = std::fs::read(env.work().join(".stepwell/stepwell.db")).unwrap();
    assert!(!file.windows(7).any(|bytes| bytes == b"hunter2"));
}

#[test]
fn a_row_that_was_imported_is_listed_once_however_often_and_wherever_it_came_in() {
    let mut env = TestEnv::new();
    env.set("STEPWELL_NOW", "2026-05-10T03:20:00Z");
    copy(&fixtures().join("m31a/home"), &env.path("home"));
    std::fs::create_dir_all(env.path("other")).unwrap();
    for folder in [".", "../other"] {
        done(&env, &["-C", folder, "init"]);
        done(&env, &["-C", folder, "import", "--yes"]);
        done(&env, &["-C", folder, "import", "--yes"]);
        let path = env.path("home/.m31a/LEDGER.md");
        done(&env, &["-C", folder, "import", path.to_str().unwrap()]);
        assert_eq!(env.quietly(&["-C", folder, "ledger", "--json"]).json().len(), 2, "{folder}");
    }
    let everywhere = env.quietly(&["ledger", "--everywhere", "--json"]).json();
    assert_eq!(everywhere.len(), 2, "{everywhere:?}");
    // A row is no session.
    assert!(env.quietly(&["sessions", "--all", "--json"]).json().is_empty());
}

fn git(env: &TestEnv, args: &[&str], at: &str) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@x"]).args(args).current_dir(env.work());
    git.env("HOME", env.path("home")).env("GIT_COMMITTER_DATE", at).env("GIT_AUTHOR_DATE", at);
    let ran = git.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(ran.success(), "{args:?}");
}

/// What a session does: a commit, that commit amended, a branch merged; and what it does not.
const COMMITS: &str = r"
- text: I commit.
  calls: [{tool: run_command, arguments: {command: 'sh commit.sh'}}]
- text: Done.
";

#[test]
fn a_session_counts_the_commits_that_its_own_commands_made_and_nobody_elses() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/bin:/bin");
    git(&env, &["init", "-q", "-b", "main", "."], "");
    git(&env, &["commit", "-q", "--allow-empty", "-m", "begin"], "2026-03-01T00:00:00Z");
    // The clock stands still at noon, for git too.
    let commit =
        "export GIT_AUTHOR_DATE=2026-03-09T12:00:00Z GIT_COMMITTER_DATE=2026-03-09T12:00:00Z
git='git -c user.name=n -c user.email=e@x'
$git commit -q --allow-empty -m one
$git commit -q --allow-empty --amend -m 'one, amended'
$git checkout -q -b side && $git commit -q --allow-empty -m two
$git checkout -q main && $git merge -q --no-ff -m merged side
";
    env.file("commit.sh", commit);
    env.file("script.yaml", COMMITS);
    done(&env, &["run", "commit", "--model", "script:script.yaml", "--mode", "yolo"]);
    let made = |env: &TestEnv, task: &str| {
        let rows = env.quietly(&["ledger", "--json", "--task", task]).json();
        rows[0]["commits"].clone()
    };
    assert_eq!(made(&env, "commit"), 3, "one and two, and their merge");
    // A rebase makes no more of them, and an amendment later on no fewer.
    git(&env, &["branch", "kept"], "");
    git(
        &env,
        &["commit", "-q", "--allow-empty", "--amend", "--no-edit", "--date=2026-03-09T12:00:00Z"],
        "2026-03-09T15:00:00Z",
    );
    assert_eq!(made(&env, "commit"), 3);
    // Another session of the same second ran no command: what others made is not its own.
    env.file("quick.yaml", "- text: Done.\n");
    done(&env, &["run", "look", "--model", "script:quick.yaml"]);
    assert_eq!(made(&env, "look"), 0);
    // What names a session in its message is that session's.
    let id = env.quietly(&["ledger", "--json", "--task", "look"]).json()[0]["id"].clone();
    let message = format!("three\n\nStepwell-Session: {}", id.as_str().unwrap());
    git(&env, &["commit", "-q", "--allow-empty", "-m", &message], "2026-03-09T12:00:00Z");
    assert_eq!((made(&env, "look"), made(&env, "commit")), (1.into(), 3.into()));
    // The row of what is gone still says so.
    done(&env, &["cleanup", "--older-than", "0", "-y"]);
    done(&env, &["trash", "empty", "--yes"]);
    assert_eq!((made(&env, "look"), made(&env, "commit")), (1.into(), 3.into()));
    // Where there is no git, nobody knows.
    let env = TestEnv::furnished();
    assert!(ledger(&env).iter().all(|row| row["commits"].is_null()));
}
