//! export, import.

use insta::assert_snapshot;

use crate::desk::{AUTH, Desk, REVIEW, TESTS};

/// A desk with everything of another one's session, by way of a file.
fn carried(from: &mut Desk, format: &str) -> Desk {
    let file = from.path("carried");
    let file = file.to_str().unwrap();
    from.quietly(&["export", AUTH, "--format", format, "-o", file, "--force"]).line();
    let mut to = Desk::new();
    to.feed(&["import", "-"], &std::fs::read_to_string(file).unwrap());
    to
}

#[test]
fn an_export_reads_in_again_without_loss() {
    let mut desk = Desk::furnished();
    for format in ["json", "jsonl"] {
        let other = carried(&mut desk, format);
        for id in [AUTH, REVIEW] {
            let log = |desk: &Desk| desk.quietly(&["log", id]).stdout;
            assert_eq!(log(&desk), log(&other), "{format}");
            let head = |desk: &Desk| desk.quietly(&["show", id, "--json"]).json();
            assert_eq!(head(&desk), head(&other), "{format}");
        }
        assert_eq!(other.quietly(&["verify"]).code, Some(0));
    }
}

#[test]
fn a_session_is_exported_as_asked() {
    let mut desk = Desk::furnished();
    desk.run(&["export", TESTS]);
    desk.run(&["export", TESTS, "--format", "jsonl"]);
    desk.run(&["export", AUTH, "--format", "markdown"]);
    desk.run(&["export", TESTS, "-o", "out.md"]);
    desk.run(&["export", TESTS, "-o", "out.md"]);
    desk.run(&["export", TESTS, "-o", "out.md", "--force", "--json"]);
    desk.run(&["export", TESTS, "-o", "nowhere/out.html"]);
    desk.run(&["export", TESTS, "--format", "word"]);
    desk.say("export nobody");
    assert!(desk.read("out.md").starts_with("# add tests to user.py"));
    std::fs::create_dir(desk.work().join("deep")).unwrap();
    desk.quietly(&["-C", "deep", "export", AUTH, "-o", "out.html"]).line();
    let page = desk.read("deep/out.html");
    assert!(
        page.to_lowercase().starts_with("<!doctype html>") && page.contains("read_file"),
        "{page}"
    );
    assert_snapshot!(desk.transcript());
}

#[test]
fn an_import_says_what_it_did_and_what_it_will_not_do() {
    let mut desk = Desk::furnished();
    desk.quietly(&["export", AUTH, "-o", "auth.json"]).line();
    desk.quietly(&["export", REVIEW, "-o", "review.json"]).line();
    let archive = desk.read("auth.json");
    desk.say("import auth.json");
    desk.run(&["purge", AUTH, "--yes"]);
    desk.say("import review.json");
    desk.say("import auth.json --json");
    desk.run(&["label", AUTH, "changed"]);
    desk.say("import auth.json");
    desk.file("other.json", &archive.replace("todo!()", "done()"));
    desk.say("import other.json");
    desk.file("cut.json", &archive[..archive.len() / 2]);
    desk.file("nonsense.json", "nonsense");
    desk.file("empty.json", "");
    desk.file("newer.json", "{\"stepwell_archive\": 99}");
    let mut other = Desk::new();
    for name in ["cut.json", "nonsense.json", "empty.json", "newer.json", "absent.json"] {
        let path = desk.work().join(name);
        other.run(&["import", path.to_str().unwrap()]);
    }
    assert_eq!(other.quietly(&["sessions"]).stdout, "No sessions yet.\n");
    let transcript = format!("{}{}", desk.transcript(), desk.redact(&other.transcript()));
    let size = regex::Regex::new(r"[\d.]+ K?B").unwrap();
    assert_snapshot!(size.replace_all(&transcript, "[SIZE]"));
}

#[test]
fn a_damaged_session_is_exported_up_to_the_damage() {
    let mut desk = Desk::furnished();
    desk.database()
        .execute(
            "UPDATE events SET body = replace(body, 'todo', 'done') WHERE body LIKE '%todo%'",
            [],
        )
        .unwrap();
    desk.run(&["export", AUTH, "--format", "jsonl"]);
    assert_snapshot!(desk.transcript());
}
