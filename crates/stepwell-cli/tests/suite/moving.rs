//! export, import.

use insta::assert_snapshot;

use crate::test_env::{AUTH, REVIEW, TESTS, TestEnv};

/// An environment with everything of another one's session, by way of a file.
fn carried(from: &mut TestEnv, format: &str) -> TestEnv {
    let file = from.path("carried");
    let file = file.to_str().unwrap();
    from.quietly(&["export", AUTH, "--format", format, "-o", file, "--force"]).line();
    let mut to = TestEnv::new();
    to.feed(&["import", "-"], &std::fs::read_to_string(file).unwrap());
    to
}

#[test]
fn an_export_reads_in_again_without_loss() {
    let mut env = TestEnv::furnished();
    for format in ["json", "jsonl"] {
        let other = carried(&mut env, format);
        for id in [AUTH, REVIEW] {
            let log = |env: &TestEnv| env.quietly(&["log", id]).stdout;
            assert_eq!(log(&env), log(&other), "{format}");
            let head = |env: &TestEnv| env.quietly(&["show", id, "--json"]).json();
            assert_eq!(head(&env), head(&other), "{format}");
        }
        assert_eq!(other.quietly(&["verify"]).code, Some(0));
    }
}

#[test]
fn a_session_is_exported_as_asked() {
    let mut env = TestEnv::furnished();
    env.run(&["export", TESTS]);
    env.run(&["export", TESTS, "--format", "jsonl"]);
    env.run(&["export", AUTH, "--format", "markdown"]);
    env.run(&["export", TESTS, "-o", "out.md"]);
    env.run(&["export", TESTS, "-o", "out.md"]);
    env.run(&["export", TESTS, "-o", "out.md", "--force", "--json"]);
    env.run(&["export", TESTS, "-o", "nowhere/out.html"]);
    env.run(&["export", TESTS, "--format", "word"]);
    env.say("export nobody");
    assert!(env.read("out.md").starts_with("# add tests to user.py"));
    std::fs::create_dir(env.work().join("deep")).unwrap();
    env.quietly(&["-C", "deep", "export", AUTH, "-o", "out.html"]).line();
    let page = env.read("deep/out.html");
    assert!(
        page.to_lowercase().starts_with("<!doctype html>") && page.contains("read_file"),
        "{page}"
    );
    assert_snapshot!(env.transcript());
}

#[test]
fn an_import_says_what_it_did_and_what_it_will_not_do() {
    let mut env = TestEnv::furnished();
    env.quietly(&["export", AUTH, "-o", "auth.json"]).line();
    env.quietly(&["export", REVIEW, "-o", "review.json"]).line();
    let archive = env.read("auth.json");
    env.say("import auth.json");
    env.run(&["purge", AUTH, "--yes"]);
    env.say("import review.json");
    env.say("import auth.json --json");
    env.run(&["label", AUTH, "changed"]);
    env.say("import auth.json");
    env.file("other.json", &archive.replace("todo!()", "done()"));
    env.say("import other.json");
    env.file("cut.json", &archive[..archive.len() / 2]);
    env.file("nonsense.json", "nonsense");
    env.file("empty.json", "");
    env.file("newer.json", "{\"stepwell_archive\": 99}");
    let mut other = TestEnv::new();
    for name in ["cut.json", "nonsense.json", "empty.json", "newer.json", "absent.json"] {
        let path = env.work().join(name);
        other.run(&["import", path.to_str().unwrap()]);
    }
    assert_eq!(other.quietly(&["sessions"]).stdout, "No sessions yet.\n");
    let transcript = format!("{}{}", env.transcript(), env.redact(&other.transcript()));
    let size = regex::Regex::new(r"[\d.]+ K?B").unwrap();
    assert_snapshot!(size.replace_all(&transcript, "[SIZE]"));
}

#[test]
fn a_damaged_session_is_exported_up_to_the_damage() {
    let mut env = TestEnv::furnished();
    env.database()
        .execute(
            "UPDATE events SET body = replace(body, 'todo', 'done') WHERE body LIKE '%todo%'",
            [],
        )
        .unwrap();
    env.run(&["export", AUTH, "--format", "jsonl"]);
    assert_snapshot!(env.transcript());
}

#[test]
fn an_export_makes_the_folder_that_it_is_to_be_in() {
    let env = TestEnv::furnished();
    env.quietly(&["export", TESTS, "-o", "some/new/folder/out.md"]).line();
    assert!(env.read("some/new/folder/out.md").starts_with("# add tests"));
    // A file in the way is no folder, and stays.
    env.file("taken", "mine");
    let ran = env.quietly(&["export", TESTS, "-o", "taken/below/out.md"]);
    assert_ne!(ran.code, Some(0));
    assert_eq!(env.read("taken"), "mine");
}
