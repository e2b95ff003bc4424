//! init, help, completions, man, backup, --store, -C.

use insta::assert_snapshot;

use crate::test_env::{AUTH, TestEnv};

#[test]
fn init_makes_a_store_once() {
    let mut env = TestEnv::new();
    std::fs::create_dir_all(env.work().join(".git")).unwrap();
    env.say("init");
    env.say("init --json");
    assert_eq!(env.read(".gitignore"), ".stepwell/\n");
    use std::os::unix::fs::PermissionsExt;
    let mode =
        |name: &str| std::fs::metadata(env.work().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(".stepwell"), mode(".stepwell/stepwell.db")), (0o700, 0o600));
    assert_snapshot!(format!("{}{}", env.transcript(), env.read("stepwell.toml")));
}

#[test]
fn help_groups_commands_by_what_people_want_to_do() {
    let mut env = TestEnv::new();
    env.say("--help");
    env.say("sessions --help");
    env.say("-V");
    env.say("");
    env.say("seshions");
    env.say("sessions --frobnicate");
    assert_snapshot!(env.transcript());
}

#[test]
fn completions_and_manuals_come_from_the_same_definition() {
    let env = TestEnv::furnished();
    env.quietly(&["label", AUTH, "auth"]);
    env.quietly(&["checkpoint", AUTH, "halfway"]);
    let config = env.path("home/.config/stepwell/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[providers.mine]\nbase_url = \"http://localhost:1/v1\"\n").unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = env.quietly(&["completions", shell]).stdout;
        assert!(
            script.contains("stepwell") && script.contains("_STEPWELL_COMPLETE"),
            "{shell}: {script}"
        );
    }
    let offered = |words: &[&str]| {
        let mut typed = vec!["--", "stepwell"];
        typed.extend(words);
        let mut command = env.command(&typed);
        command.env("_STEPWELL_COMPLETE", "fish");
        let told = command.output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        String::from_utf8(told.stdout).unwrap()
    };
    for (words, expected) in [
        (&["clea"][..], "cleanup"),
        (&["cleanup", "--old"], "--older-than"),
        (&["agent", "should"], "should-resume"),
        (&["show", "a1b"], "a1b2c3"),
        (&["show", "20260223-1430"], AUTH),
        (&["show", "au"], "auth"),
        (&["fork", "auth", "--at", "half"], "halfway"),
        (&["import", "--from", "cod"], "codex"),
        (&["export", "auth", "--format", "ht"], "html"),
        (&["run", "x", "--agent", "exp"], "explore"),
        (&["run", "x", "--model", "anth"], "anthropic/"),
        (&["run", "x", "--model", "mi"], "mine/"),
        (&["run", "x", "--model", "openai/gpt-4o-m"], "openai/gpt-4o-mini"),
        (&["resume", "auth", "--mode", "confirm-s"], "confirm-sensitive"),
        (&["config", "get", "sessions.cl"], "sessions.cleanup_after_days"),
        (&["config", "set", "sessions.cl"], "sessions.cleanup_after_days"),
        (&["config", "unset", "--user", "sessions.cl"], "sessions.cleanup_after_days"),
        (&["sessions", "--label", "a"], "auth"),
    ] {
        let told = offered(words);
        assert!(
            told.lines().any(|line| line.split('\t').next() == Some(expected)),
            "{words:?}: {told}"
        );
    }
    assert_eq!(offered(&["import", "--from", "ht"]), "", "html is only written");
    assert_eq!(offered(&["export", "auth", "--format", "goo"]), "", "goose is only read");
    // What is restored is in the trash; everything else is not.
    assert_eq!(env.quietly(&["delete", AUTH]).code, Some(0));
    let told = offered(&["trash", "restore", "2"]);
    assert!(told.contains(AUTH), "{told}");
    let trash = env.quietly(&["trash", "--json"]).stdout;
    let offers = told.lines().map(|line| line.split('\t').next().unwrap_or_default());
    assert!(offers.filter(|it| !it.starts_with('-')).all(|id| trash.contains(id)), "{told}");
    assert!(!offered(&["trash", "restore", "@"]).contains("@last"));
    assert!(!offered(&["show", "2"]).contains(AUTH));
    assert!(env.quietly(&["man"]).stdout.contains(".TH stepwell 1"));
    let made = env.quietly(&["man", "pages"]).line();
    assert!(made.starts_with("Wrote "), "{made}");
    let page = env.read("pages/stepwell-agent-should-resume.1");
    assert!(page.contains("can be resumed"), "{page}");
}

#[test]
fn a_store_is_found_from_below_or_named() {
    let mut env = TestEnv::furnished();
    std::fs::create_dir_all(env.work().join("deep/er")).unwrap();
    env.say("-C deep/er sessions --limit 1 --json");
    env.set("STEPWELL_STORE", env.work().join(".stepwell").to_str().unwrap());
    env.say("-C / sessions --limit 1");
    env.say("-C / sessions --store .stepwell --limit 1");
    env.say("-C nowhere sessions");
    let size = regex::Regex::new(r#""bytes":\d+"#).unwrap();
    assert_snapshot!(size.replace_all(&env.transcript(), "\"bytes\":[N]"));
}

#[test]
fn a_backup_is_a_store() {
    let mut env = TestEnv::furnished();
    let running = env.well().resume(&AUTH.parse().unwrap()).unwrap();
    env.say("backup copy/stepwell.db");
    std::fs::create_dir(env.work().join("copy")).unwrap();
    env.say("backup copy/stepwell.db");
    env.say("backup copy/stepwell.db");
    env.say("backup .stepwell/stepwell.db");
    drop(running);
    env.say("sessions --store copy");
    let size = regex::Regex::new(r"[\d.]+ KB").unwrap();
    assert_snapshot!(size.replace_all(&env.transcript(), "[SIZE]"));
}

#[test]
fn a_command_is_carried_out_as_if_it_were_started_in_another_folder() {
    let env = TestEnv::new();
    env.file("deep/script.yaml", "- {text: Done.}\n");
    let ran = env.quietly(&["-C", "deep", "run", "go", "--model", "script:script.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(env.work().join("deep/.stepwell/stepwell.db").is_file());
    assert!(!env.work().join(".stepwell").exists());
    let shown = env.quietly(&["show", "@last", "-C", "deep", "--json"]).json().remove(0);
    assert!(shown["workspace"].as_str().unwrap().ends_with("/work/deep"), "{shown}");
    // What is written is meant from there, too.
    env.quietly(&["-C", "deep", "export", "@last", "-o", "out.md"]).line();
    assert!(env.read("deep/out.md").contains("Done."));
    let gone = env.quietly(&["-C", "nowhere", "sessions"]);
    assert_eq!(gone.code, Some(3), "{}", gone.stderr);
    assert!(gone.stderr.contains("-C nowhere"), "{}", gone.stderr);
}

#[test]
fn what_a_run_was_set_to_is_a_line_of_its_events() {
    let env = TestEnv::new();
    env.file("script.yaml", "- {text: Done.}\n");
    let ran = env.quietly(&["run", "go", "--model", "script:script.yaml", "--mode", "yolo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown = env.quietly(&["show", "@last", "--events"]).stdout;
    let line = shown.lines().find(|line| line.contains(" settings ")).unwrap();
    for what in ["build", "script:", "mode yolo", ", by "] {
        assert!(line.contains(what), "{what}: {line}");
    }
}

#[test]
fn what_init_writes_can_be_read() {
    let env = TestEnv::new();
    env.quietly(&["init"]).line();
    let ran = env.quietly(&["sessions"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // A wish in such a section is still the user's own to have.
    env.file("stepwell.toml", "[other_agents]\nindex = true\n");
    let ran = env.quietly(&["sessions"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
}
