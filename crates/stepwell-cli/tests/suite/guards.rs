//! What a run's own commands may not do, and what a cloned folder may not make Stepwell do.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use stepwell::SessionId;
use stepwell::model::Permission;
use stepwell::store::Span;

use crate::test_env::{STEPWELL, TestEnv};

/// Commands that erase or widen, as an agent would type them.
const REFUSED: &[&str] = &[
    "purge @last --yes",
    "scrub hunter2 --yes",
    "rewind @last --to 1",
    "delete @last",
    "trash empty --yes",
    "cleanup --yes",
    "cleanup --purge --yes",
    "restore backup.db --replace",
    "store retention --days 1",
    "store role team ann",
    "worktrees remove x --force",
    "doctor --repair",
    "unpin @last",
    "run more --mode yolo --model script:more.yaml",
    "run more --retry-unsafe --model script:more.yaml",
    "run more --detach --model script:more.yaml",
    "run more --session @last --model script:more.yaml",
    "resume @last --mode yolo",
    "resume @last --approve",
    "resume @last --deny",
    "resume @last more",
    "resume @last --budget 5",
    "resume @last --budget-total 5",
    "flow run flow.yaml --mode yolo",
    "work more --mode yolo",
    "chat --plain",
    "say @last yes",
    "state @last goal another",
    "gates answer g yes",
    "config set agent.mode confirm-all",
    "config set --user agent.mode yolo",
    "config unset agent.mode",
    "hook install claude",
    "hook uninstall claude",
    "mcp install claude --yes",
    "mcp uninstall claude --yes",
    "mcp --allow manage",
    "acp",
    "serve --print-token",
    "models prices --update prices.json",
    "__detached",
];

/// Commands that read, or add to what is kept.
const ALLOWED: &[&str] = &[
    "sessions",
    "show @last",
    "log @last",
    "label @last mine",
    "trash list",
    "rewind @last --to 1 --dry-run",
    "cleanup --dry-run",
    "config list",
    "store status",
    "gates",
    "doctor",
];

fn is_refused(stderr: &str) -> bool {
    stderr.contains("is for people: an agent cannot do it from within its own run")
}

/// An agent that runs one command, and then is done.
fn runs(command: &str) -> String {
    let call = serde_json::json!({ "tool": "run_command", "arguments": { "command": command } });
    format!("- {{calls: [{call}]}}\n- {{text: Done.}}\n")
}

/// What each command said in a run, by how it was started and what it was.
fn said_in_run(
    env: &TestEnv,
    commands: &[&str],
    ways: &[&str],
) -> BTreeMap<(String, String), String> {
    let mut script = String::from("mkdir said\n");
    for (w, way) in ways.iter().enumerate() {
        for (n, command) in commands.iter().enumerate() {
            script.push_str(&format!(
                "{way} {STEPWELL} {command} < /dev/null > /dev/null 2> said/{w}-{n}\n"
            ));
        }
    }
    env.file("cheats.sh", &script);
    env.file("cheats.yaml", &runs("sh cheats.sh"));
    let ran = env.quietly(&["run", "cheat", "--mode", "yolo", "--model", "script:cheats.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let each = ways.iter().enumerate().flat_map(|(w, way)| {
        commands.iter().enumerate().map(move |(n, command)| {
            let said = env.read(&format!("said/{w}-{n}"));
            (((*way).to_owned(), (*command).to_owned()), said)
        })
    });
    each.collect()
}

#[test]
fn a_runs_own_command_may_not_erase_or_widen_however_it_is_started() {
    let env = TestEnv::new();
    env.file("more.yaml", "- {text: Done.}\n");
    let home = env.path("home");
    // Found by the variable and by the parents; by the parents alone; and as a daemon.
    let without = format!("env -i PATH=/usr/bin:/bin HOME={}", home.display());
    let ways = ["", "env -u STEPWELL_IN_RUN", &without, "setsid -w"];
    for ((way, command), said) in said_in_run(&env, REFUSED, &ways) {
        assert!(is_refused(&said), "{way} {command}: {said}");
    }
    // Nothing of it was done.
    assert_eq!(env.quietly(&["sessions", "--all", "--json"]).json().len(), 1);
    assert!(!env.work().join("stepwell.toml").exists() && !env.work().join(".claude").exists());
}

#[test]
fn a_daemon_that_left_its_parents_is_known_by_its_environment() {
    let mut env = TestEnv::furnished();
    env.set("STEPWELL_IN_RUN", "1");
    for command in REFUSED {
        let args: Vec<&str> = command.split(' ').collect();
        let refused = env.quietly(&args);
        assert_eq!(refused.code, Some(1), "{command}: {}{}", refused.stdout, refused.stderr);
        assert!(is_refused(&refused.stderr), "{command}: {}", refused.stderr);
    }
}

/// Where the mark of a run is inherited for good.
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::disallowed_methods, reason = "the shells of the test are found by the path")]
fn a_command_whose_supervisor_was_killed_is_still_known() {
    let env = TestEnv::new();
    let path = std::env::var("PATH").unwrap_or_default();
    let home = env.path("home");
    // Without its environment and its parents, and below more shells than anyone has.
    let late = format!(
        "kill -9 $1\nwhile kill -0 $1 2> /dev/null; do sleep 0.01; done\n\
         {STEPWELL} purge @last --yes < /dev/null > /dev/null 2> said\nmv said said.txt\n"
    );
    env.file("late.sh", &late);
    let starts =
        format!("env -i PATH={path} HOME={} setsid sh late.sh $PPID & sleep 600", home.display());
    env.file("kills.yaml", &runs(&starts));
    env.quietly(&["run", "kill", "--mode", "yolo", "--model", "script:kills.yaml"]);
    env.wait_for("said.txt");
    let said = env.read("said.txt");
    assert!(is_refused(&said), "{said}");
}

#[test]
fn a_runs_own_command_may_read_and_add() {
    let env = TestEnv::new();
    for ((way, command), said) in said_in_run(&env, ALLOWED, &["", "env -u STEPWELL_IN_RUN"]) {
        assert!(!is_refused(&said), "{way} {command}: {said}");
    }
}

#[test]
fn a_runs_own_command_does_not_ask_less_by_a_setting_or_by_another_home() {
    let env = TestEnv::new();
    env.file("more.yaml", &runs("touch made.txt"));
    let config = env.path("evil/stepwell");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[agent]\nmode = \"yolo\"\n").unwrap();
    let evil = format!("XDG_CONFIG_HOME={}", env.path("evil").display());
    let ways = ["STEPWELL_AGENT_MODE=yolo", evil.as_str()];
    let commands = [
        "run more --model script:more.yaml",
        "--config agent.mode=yolo run more --model script:more.yaml",
    ];
    let said = said_in_run(&env, &commands, &ways);
    assert!(!env.work().join("made.txt").exists(), "{said:?}");
}

/// Every name that Stepwell writes to in a workspace, and whether a folder is of that name.
const WRITTEN: &[(&str, bool)] = &[
    (".gitignore", false),
    ("stepwell.toml", false),
    (".claude", true),
    (".claude/settings.json", false),
    (".mcp.json", false),
    (".stepwell", true),
    (".stepwell/.gitignore", false),
    (".stepwell/stepwell.db", false),
    (".stepwell/stepwell.db-wal", false),
    (".stepwell/stepwell.db-shm", false),
    (".stepwell/hooks.log", false),
    (".stepwell/hooks.log.1", false),
    (".stepwell/runs", true),
    (".stepwell/worktrees", true),
    (".stepwell/cleaned-up", false),
    (".stepwell/mirror.lock", false),
    (".stepwell/STATE.md", false),
    (".stepwell/TASKS.md", false),
];

/// Commands that write to them.
const WRITES: &[&str] = &[
    "init",
    "config set agent.mode confirm-all",
    "hook install claude",
    "mcp install claude --yes",
    "run more --model script:more.yaml",
    "label @last mine",
    "hook pre-delegate",
];

/// All files below a folder, with what they hold.
fn all_files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(all_files(&path)),
            false => {
                found.insert(path.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn links_in_a_cloned_folder_are_not_written_through() {
    for (name, is_folder) in WRITTEN {
        let env = TestEnv::new();
        env.file("more.yaml", "- {text: Done.}\n");
        env.file(".git/HEAD", "ref: refs/heads/main\n");
        let outside = env.path("outside");
        fs::create_dir_all(outside.join("folder")).unwrap();
        fs::write(outside.join("file"), "").unwrap();
        let target = outside.join(if *is_folder { "folder" } else { "file" });
        let link = env.work().join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&target, &link).unwrap();
        let told = writes_leave(&env, &outside);
        // The error names the link, its target and the next command.
        let names = |said: &&String| {
            said.contains(&format!("{} is a symbolic link to {}", link.display(), target.display()))
                && said.contains(&format!("rm {}", link.display()))
        };
        assert!(told.iter().any(|said| names(&said)), "{name}: {told:?}");
        if name.starts_with(".stepwell") && *name != ".stepwell/.gitignore" {
            let looked = env.quietly(&["sessions"]);
            assert!(looked.code != Some(0) && names(&&looked.stderr), "{name}: {}", looked.stderr);
        }
    }
}

/// Runs every command that writes in a workspace, and checks that a folder outside of it stays as it
/// was. Returns the commands' errors.
fn writes_leave(env: &TestEnv, outside: &Path) -> Vec<String> {
    let before = all_files(outside);
    let told: Vec<String> = WRITES
        .iter()
        .map(|command| env.quietly(&command.split(' ').collect::<Vec<_>>()).stderr)
        .collect();
    assert_eq!(all_files(outside), before, "{told:?}");
    told
}

#[test]
fn a_file_with_another_name_outside_of_a_cloned_folder_is_not_written_to() {
    for (name, _) in WRITTEN.iter().filter(|(_, is_folder)| !is_folder) {
        let env = TestEnv::new();
        env.file("more.yaml", "- {text: Done.}\n");
        env.file(".git/HEAD", "ref: refs/heads/main\n");
        let is_store = name.starts_with(".stepwell/stepwell.db");
        if is_store {
            env.quietly(&["run", "more", "--model", "script:more.yaml"]);
        }
        let (file, outside) = (env.work().join(name), env.path("outside"));
        if !file.exists() {
            env.file(name, if name.ends_with(".json") { "{}\n" } else { "# precious\n" });
        }
        fs::create_dir_all(&outside).unwrap();
        fs::hard_link(&file, outside.join("file")).unwrap();
        let told = writes_leave(&env, &outside);
        // A store is not opened. Any other file gets a copy of its own.
        let shown = file.display();
        let names = |said: &String| {
            said.contains(&format!("{shown} has 2 hard links"))
                && said.contains(&format!("cp -p {shown} {shown}.own && mv {shown}.own {shown}"))
        };
        assert_eq!(told.iter().any(names), is_store, "{name}: {told:?}");
        let looked = env.quietly(&["sessions"]);
        assert_eq!(looked.code == Some(0), !is_store, "{name}: {}", looked.stderr);
    }
}

#[test]
fn a_shipped_store_with_a_trigger_is_refused_and_doctor_names_it() {
    let env = TestEnv::furnished();
    let trigger = "CREATE TRIGGER evil AFTER INSERT ON events BEGIN DELETE FROM events; END";
    env.database().execute_batch(trigger).unwrap();
    for args in [&["sessions"][..], &["label", "@last", "mine"]] {
        let refused = env.quietly(args);
        assert!(refused.code != Some(0), "{}", refused.stdout);
        assert!(refused.stderr.contains("contains the trigger \"evil\""), "{}", refused.stderr);
        assert!(refused.stderr.contains("remove it: "), "{}", refused.stderr);
    }
    let doctor = env.quietly(&["doctor"]);
    assert!(doctor.code != Some(0) && doctor.stdout.contains("\"evil\""), "{}", doctor.stdout);
}

#[test]
fn a_command_that_may_be_forbidden_is_refused_where_nobody_can_be_asked() {
    let env = TestEnv::new();
    env.file("first.yaml", "- {text: Done.}\n");
    env.file("clean.sh", "echo ran > ran.txt\n");
    let ran = env.quietly(&["run", "first", "--json", "--model", "script:first.yaml"]);
    let id: SessionId = ran.json()[0]["session_id"].as_str().unwrap().parse().unwrap();
    let well = env.well();
    let session = well.lock(&id).unwrap();
    session.append(Permission::new("run_command(rm*)", false)).unwrap();
    drop((session, well));
    // The script's first answer was given before.
    env.file("second.yaml", &format!("- {{text: Done.}}\n{}", runs("sh clean.sh")));
    let args = ["run", "more", "--session", id.as_str(), "--mode", "yolo", "--model"];
    let ran = env.quietly(&[&args[..], &["script:second.yaml"]].concat());
    assert!(!env.work().join("ran.txt").exists(), "{}", ran.stderr);
    // It goes on without: nobody is there to wait for.
    assert_ne!(ran.code, Some(8), "{}", ran.stderr);
    let events = env.well().store().events(&id, Span::ALL).unwrap().events;
    assert!(format!("{events:?}").contains("the run cannot ask"), "{events:?}");
}

#[test]
fn files_that_two_sessions_write_at_once_in_one_folder_are_each_their_own_sessions() {
    let env = TestEnv::new();
    // The first one's command waits until the second one has written its file.
    let waits = "echo a > a.txt; until [ -s b.txt ]; do sleep 0.01; done";
    env.file("first.yaml", &runs(waits));
    let write = "{tool: write_file, arguments: {path: b.txt, content: b}}";
    env.file("second.yaml", &format!("- {{calls: [{write}]}}\n- {{text: Done.}}\n"));
    let run = |name: &str| {
        let model = format!("script:{name}.yaml");
        let args = ["run", name, "--mode", "yolo", "--json", "--model", &model];
        let mut command = env.command(&args);
        // With the tests' fixed clock, the wait would never end.
        command.env_remove("STEPWELL_NOW");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = run("first");
    env.wait_for("a.txt");
    let second = run("second").wait_with_output().unwrap();
    let first = first.wait_with_output().unwrap();
    let files = |output: &std::process::Output| {
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["files_modified"].clone()
    };
    assert_eq!(files(&second), serde_json::json!(["b.txt"]));
    assert_eq!(files(&first), serde_json::json!(["a.txt"]));
}

#[test]
fn a_clock_that_is_ahead_takes_no_lease_from_a_run_on_the_same_machine() {
    let mut env = TestEnv::new();
    env.file("runs.yaml", &runs("echo a > a.txt; until [ -e stop ]; do sleep 0.01; done"));
    env.file("other.yaml", "- {text: Done.}\n");
    let args = ["run", "work", "--mode", "yolo", "--model", "script:runs.yaml"];
    let mut command = env.command(&args);
    let runner = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    env.wait_for("a.txt");
    env.set("STEPWELL_NOW", "2099-01-01T00:00:00Z");
    let resumed = env.quietly(&["resume", "@last", "--model", "script:other.yaml"]);
    assert_eq!(resumed.code, Some(6), "{}{}", resumed.stdout, resumed.stderr);
    env.file("stop", "");
    let ran = runner.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
