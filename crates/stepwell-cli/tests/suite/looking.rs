//! sessions, show, log, search, stats, du.

use insta::assert_snapshot;

use crate::rewinding::worked;
use crate::test_env::{AUTH, TESTS, TestEnv};

#[test]
fn an_empty_folder_has_no_sessions_and_a_hint() {
    let mut env = TestEnv::new();
    for line in ["sessions", "ls --json", "show x", "log x", "search word", "search word --json"] {
        env.say(line);
    }
    for line in ["stats", "stats --json", "du", "du --json", "verify", "sessions --everywhere"] {
        env.say(line);
    }
    assert_snapshot!(env.transcript());
    // Looking makes nothing.
    assert!(!env.work().join(".stepwell").exists());
    assert_eq!(std::fs::read_dir(env.path("home")).unwrap().count(), 0);
}

#[test]
fn sessions_are_listed_newest_first() {
    let mut env = TestEnv::furnished();
    env.say("sessions");
    env.say("ls --limit 1");
    env.say("sessions --tree");
    env.say("sessions --sort cost --limit 2");
    assert_snapshot!(env.transcript());
}

#[test]
fn filters_choose_sessions() {
    let mut env = TestEnv::furnished();
    for line in [
        "sessions --status failed,partial",
        "sessions --status completed",
        "sessions --agent build --model large-2 --limit 1",
        "sessions --tag ci",
        "sessions --label none",
        "sessions --task AUTH",
        "sessions --since 2026-02-23T16:00Z --until 2026-02-23T16:45:00Z",
        "sessions --status sleeping",
        "sessions --since soon",
        "sessions --limit many",
        "sessions --all --limit 3",
    ] {
        env.say(line);
    }
    assert_snapshot!(env.transcript());
}

#[test]
fn a_list_as_json_is_one_object_per_line() {
    let mut env = TestEnv::furnished();
    let all = env.run(&["sessions", "--json"]).json();
    assert_eq!(all.len(), 4);
    let auth = all.iter().find(|session| session["id"] == AUTH).unwrap();
    assert_eq!(auth["status"], "interrupted");
    assert_eq!(auth["stop_reason"], "user_interrupt");
    assert_eq!(auth["cost"].to_string(), "0.0123");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_session_is_shown_with_what_it_did() {
    let mut env = TestEnv::furnished();
    env.run(&["show", AUTH]);
    env.say("show 20260223-15");
    env.say("show @last");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_session_is_shown_whole() {
    let mut env = TestEnv::furnished();
    env.run(&["show", AUTH, "--messages"]);
    env.run(&["show", AUTH, "--events"]);
    env.run(&["show", AUTH, "--tree"]);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_session_as_json_is_one_object() {
    let env = TestEnv::furnished();
    for flags in [&[][..], &["--messages"], &["--events"], &["--tree"]] {
        let args: Vec<&str> = ["show", AUTH, "--json"].iter().chain(flags).copied().collect();
        let shown = env.quietly(&args).json();
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0]["id"], AUTH);
        assert_eq!(shown[0]["files"][1], "src/token.rs");
        assert_eq!(shown[0]["checkpoints"][0]["name"], "before-tests");
        match flags {
            ["--messages"] => assert_eq!(shown[0]["messages"].as_array().unwrap().len(), 4),
            ["--events"] => assert_eq!(shown[0]["events"][0]["kind"], "created"),
            ["--tree"] => assert_eq!(shown[0]["children"][0]["kind"], "subagent"),
            _ => assert_eq!(shown[0]["last_messages"].as_array().unwrap().len(), 4),
        }
    }
}

#[test]
fn what_was_rewound_is_not_shown_as_if_it_counted() {
    let env = worked();
    let shown = |flags: &[&str]| {
        let args = [&["show", "@last", "--json"], flags].concat();
        env.quietly(&args).json().remove(0)
    };
    let done = shown(&[]);
    assert_eq!(env.quietly(&["rewind", "@last", "--to", "3"]).code, Some(0));
    let back = shown(&[]);
    let last: Vec<u64> = back["last_messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["seq"].as_u64().unwrap())
        .collect();
    assert!(!last.is_empty() && last.iter().all(|seq| *seq <= 3), "{last:?}");
    assert_eq!(back["messages"], done["messages"]);
    let gone = done["messages"].as_u64().unwrap() - u64::try_from(last.len()).unwrap();
    assert_eq!(back["rewound_messages"], gone);
    for message in shown(&["--messages"])["messages"].as_array().unwrap() {
        let rewound = message["seq"].as_u64().unwrap() > 3;
        assert_eq!(message["rewound"].as_bool().unwrap_or_default(), rewound, "{message}");
    }
    let text = env.quietly(&["show", "@last"]).stdout;
    assert!(text.contains(&format!(", {gone} of them rewound\n")), "{text}");
    assert_eq!(text.split_once("Last messages\n").unwrap().1.lines().count(), last.len(), "{text}");
    let events = env.quietly(&["show", "@last", "--events"]).stdout;
    assert!(events.lines().any(|line| line.ends_with(" (rewound)")), "{events}");
    assert_eq!(env.quietly(&["rewind", "@last", "--undo"]).code, Some(0));
    let again = shown(&[]);
    assert_eq!(again["last_messages"], done["last_messages"]);
    assert_eq!(again["rewound_messages"], serde_json::Value::Null);
}

#[test]
fn a_name_is_an_id_its_beginning_a_label_or_the_last() {
    let mut env = TestEnv::furnished();
    env.say("show 20260223");
    env.say("show nobody");
    env.say("show ../x");
    env.run(&["show", ""]);
    env.run(&["label", TESTS, "green"]);
    let named = env.quietly(&["show", "green", "--json"]).json();
    assert_eq!(named[0]["id"], TESTS);
    env.run(&["delete", "green"]);
    env.say("show 20260223-15");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_log_is_lines_of_json() {
    let mut env = TestEnv::furnished();
    assert_eq!(env.run(&["log", AUTH]).json().len(), 10);
    env.run(&["log", AUTH, "--from", "9"]);
    env.run(&["log", AUTH, "-n", "1", "--json"]);
    env.run(&["log", AUTH, "--kind", "checkpoint,status"]);
    env.run(&["log", AUTH, "--from", "99"]);
    env.say("log nobody");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_search_finds_words_with_their_place() {
    let mut env = TestEnv::furnished();
    env.say("search auth");
    env.say("search AUTH module --rank");
    env.run(&["search", "\"look at the\""]);
    env.say("search mig* --status partial");
    env.say("search server --json");
    env.say("search unheard");
    env.say("search");
    assert_snapshot!(env.transcript());
}

#[test]
fn matches_are_highlighted_where_colours_are_wanted() {
    let mut env = TestEnv::furnished();
    let coloured = env.run(&["search", "token", "--color", "always"]).stdout;
    assert!(coloured.contains("\u{1b}[31mtoken\u{1b}[0m"), "{coloured}");
    assert!(!env.run(&["search", "token"]).stdout.contains('\u{1b}'));
}

#[test]
fn statistics_count_what_was_spent() {
    let mut env = TestEnv::furnished();
    env.say("stats");
    env.say("stats --agent reviewer");
    let stats = env.run(&["stats", "--json"]).json();
    assert_eq!(stats[0]["sessions"], 5);
    assert_eq!(stats[0]["cost"].to_string(), "0.4663");
    env.say("du");
    assert_eq!(env.quietly(&["du", "--json"]).json().len(), 6);
    let transcript = env.transcript();
    // Sizes follow the file's pages, which are not promised.
    let sizes = regex::Regex::new(r"[\d.]+ KB").unwrap();
    assert_snapshot!(sizes.replace_all(&transcript, "[SIZE]"));
}

#[test]
fn every_known_store_is_listed_and_searched() {
    let mut env = TestEnv::new();
    for place in ["work/one", "work/two"] {
        let folder = env.path(place);
        std::fs::create_dir_all(&folder).unwrap();
        let folder = folder.to_str().unwrap();
        let args = ["-C", folder, "agent", "create", "--agent", "a", "--purpose", place];
        env.quietly(&args).line();
    }
    env.say("sessions --everywhere");
    env.say("search work --everywhere");
    let stores = env.quietly(&["sessions", "--everywhere", "--json"]).json();
    assert_eq!(stores.len(), 2);
    assert!(stores[1]["store"].as_str().unwrap().ends_with("work/two/.stepwell"));
    // One that was removed is passed over.
    std::fs::remove_dir_all(env.path("work/one")).unwrap();
    env.say("sessions --everywhere");
    // A session that is elsewhere is pointed at.
    let id = stores[1]["id"].as_str().unwrap().to_owned();
    env.run(&["-C", env.path("home").to_str().unwrap(), "init"]);
    env.run(&["-C", env.path("home").to_str().unwrap(), "show", &id]);
    // How wide a column is depends on where the environment stands.
    let gaps = regex::Regex::new(" {2,}").unwrap();
    assert_snapshot!(gaps.replace_all(&env.transcript(), "  "));
}

#[test]
fn what_an_import_brought_is_shown_without_secrets_and_goes_back_with_them() {
    let env = TestEnv::new();
    // Put together here, so that no file of ours holds one.
    let secret = format!("ghp_{}", "aB3dE5gH7jK9mN1p".repeat(3));
    let line = "Qk7zB3w".repeat(10).split_off(6);
    let lines = [line.as_str(); 8].join("\\n");
    let key = format!("-----BEGIN PRIVATE KEY-----\\n{lines}\\n-----END PRIVATE KEY-----");
    let name = "0199a213-81c0-7800-8aa1-bbab2a035a53";
    let meta = format!(
        r#"{{"timestamp":"2026-05-04T06:30:00.000Z","type":"session_meta","payload":{{"id":"{name}","timestamp":"2026-05-04T06:30:00.000Z","cwd":"/home/mila","originator":"codex_cli","cli_version":"0.166.0"}}}}"#
    );
    let said = format!(
        r#"{{"timestamp":"2026-05-04T06:30:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"deploy with {secret}. {key} rollback"}}]}}}}"#
    );
    let file = format!("rollout-2026-05-04T06-30-00-{name}.jsonl");
    let text = format!("{meta}\n{said}\n");
    env.file(&file, &text);
    assert_eq!(env.quietly(&["import", &file, "--yes"]).code, Some(0));
    for args in [
        &["show", name][..],
        &["show", name, "--messages"],
        &["show", name, "--json"],
        &["log", name],
        &["log", name, "--json"],
        &["search", "deploy"],
        &["search", "deploy", "--json"],
        // Behind the key, and in it.
        &["search", "rollback"],
        &["search", "rollback", "--json"],
        &["search", &line],
        &["sessions", "--all"],
        &["sessions", "--all", "--json"],
        &["export", name, "--format", "markdown"],
        &["export", name, "--format", "html"],
    ] {
        let ran = env.quietly(args);
        let out = ran.stdout + &ran.stderr;
        assert_eq!(ran.code, Some(0), "{args:?}: {out}");
        assert!(!out.contains(&secret[..12]) && !out.contains(&line[..8]), "{args:?}: {out}");
        // It was stored, so nobody is told that it was not.
        assert!(!out.contains("was not stored"), "{args:?}: {out}");
    }
    assert!(env.quietly(&["show", name, "--messages"]).stdout.contains("[redacted:github-token]"));
    assert_eq!(env.quietly(&["export", name, "--format", "codex"]).stdout, text);
}
