//! rewind, files, and the points that they and fork go to.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use insta::assert_snapshot;
use stepwell::model::{Checkpoint, Kind};

use crate::test_env::TestEnv;

/// Four steps that write, edit, move, link, delete, and are done.
const SCRIPT: &str = "
answers:
  - text: I write.
    calls:
      - {tool: write_file, arguments: {path: src/new.rs, content: \"fn new() {}\\n\"}}
      - {tool: edit_file, arguments: {path: notes.txt, old_text: two, new_text: TWO}}
  - text: I move things.
    calls: [{tool: run_command, arguments: {command: 'mv old.txt moved.txt; chmod 755 run.sh; ln -s notes.txt link; printf \"\\000\\001\" > data.bin'}}]
  - text: I tidy up.
    calls: [{tool: run_command, arguments: {command: 'rm src/new.rs; rmdir src; echo more >> moved.txt'}}]
  - text: All done.
";

pub(crate) fn git(env: &TestEnv, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let ran = Command::new("git").current_dir(env.work()).args(identity).args(args).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// An environment in which a session has done its work, in a git work tree.
pub(crate) fn worked() -> TestEnv {
    let env = TestEnv::new();
    env.file("script.yaml", SCRIPT);
    env.file("notes.txt", "one\ntwo\nthree\n");
    env.file("old.txt", "old\n");
    env.file("run.sh", "#!/bin/sh\n");
    env.file(".gitignore", ".stepwell/\n");
    git(&env, &["init", "-q"]);
    git(&env, &["add", "-A"]);
    git(&env, &["commit", "-qm", "x"]);
    let ran = env.quietly(&[
        "run",
        "tidy up",
        "--model",
        "script:script.yaml",
        "--mode",
        "yolo",
        "--config",
        "checkpoints.every_steps=2",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    env
}

/// What git says of the workspace: nothing, if it is as it was.
pub(crate) fn status(env: &TestEnv) -> String {
    let ran = Command::new("git")
        .current_dir(env.work())
        .args(["status", "--porcelain", "-uall"])
        .output()
        .unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn a_session_is_rewound_and_that_is_taken_back() {
    let mut env = worked();
    let done = status(&env);
    env.say("rewind @last --dry-run");
    env.say("rewind @last --to step-2 --dry-run");
    assert_eq!(status(&env), done);
    env.say("rewind @last --to step-2");
    assert_eq!(env.read("src/new.rs"), "fn new() {}\n");
    assert_eq!(env.read("moved.txt"), "old\n");
    env.say("rewind @last --to 3");
    assert_eq!(status(&env), "");
    assert!(!env.work().join("src").exists());
    env.say("show @last --messages");
    env.say("rewind @last --undo");
    env.say("rewind @last --undo --json");
    assert_eq!(status(&env), done);
    env.say("rewind @last --undo");
    env.say("rewind @last --redo");
    env.say("rewind @last --redo");
    assert_eq!(status(&env), "");
    env.say("rewind @last --redo");
    env.say("rewind @last --undo");
    env.say("rewind @last --undo");
    assert_eq!(status(&env), done);
    env.say("checkpoint @last --list");
    assert_snapshot!(env.transcript());
    let mode = std::fs::metadata(env.work().join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[test]
fn chat_and_files_go_back_apart() {
    let env = worked();
    let done = status(&env);
    let shown = |env: &TestEnv| {
        let well = env.well();
        let session = well.lock(&well.find("@last").unwrap()).unwrap();
        session.view(&stepwell::Lane::main()).unwrap().messages.len()
    };
    let whole = shown(&env);
    assert_eq!(env.quietly(&["rewind", "@last", "--chat", "--to", "-4"]).code, Some(0));
    assert_eq!((status(&env), shown(&env)), (done.clone(), 2));
    assert_eq!(env.quietly(&["rewind", "@last", "--undo"]).code, Some(0));
    assert_eq!(env.quietly(&["rewind", "@last", "--files", "--to", "-4"]).code, Some(0));
    assert_eq!((status(&env).as_str(), shown(&env)), ("", whole));
    assert_eq!(env.quietly(&["rewind", "@last", "--undo"]).code, Some(0));
    assert_eq!((status(&env), shown(&env)), (done, whole));
    // A chat goes back where its workspace is gone, too.
    std::fs::rename(env.work().join(".stepwell"), env.path("kept")).unwrap();
    std::fs::remove_dir_all(env.work()).unwrap();
    std::fs::create_dir(env.path("elsewhere")).unwrap();
    let (elsewhere, kept) = (env.path("elsewhere"), env.path("kept"));
    std::fs::create_dir(env.work()).unwrap();
    let at = ["-C", elsewhere.to_str().unwrap(), "--store", kept.to_str().unwrap()];
    let chat = [&["rewind", "@last", "--chat", "--to", "4"][..], &at].concat();
    std::fs::remove_dir(env.work()).unwrap();
    let ran =
        Command::new(crate::test_env::STEPWELL).args(&chat).env("HOME", env.path("home")).output();
    assert_eq!(ran.unwrap().status.code(), Some(0));
}

#[test]
fn a_run_goes_on_from_where_it_was_rewound_to() {
    let env = worked();
    let before = env.quietly(&["rewind", "@last", "--to", "step-2"]);
    assert_eq!(before.code, Some(0), "{}", before.stderr);
    let ran = env.quietly(&["resume", "@last", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let files = &ran.json()[0]["files_modified"];
    assert_eq!(*files, serde_json::json!(["moved.txt", "src/new.rs"]));
    assert_eq!(env.read("moved.txt"), "old\nmore\n");
}

#[test]
fn what_someone_else_changed_is_refused_with_its_name() {
    let mut env = worked();
    env.file("notes.txt", "mine\n");
    env.file("old.txt", "mine\n");
    let theirs = status(&env);
    env.say("rewind @last --to 3 --dry-run");
    env.say("rewind @last --to 3");
    assert_eq!(status(&env), theirs);
    env.say("rewind @last --to 3 --force");
    assert_eq!(status(&env), "");
    env.say("rewind @last --undo");
    assert_eq!(status(&env), theirs);
    assert_eq!(env.read("notes.txt"), "mine\n");
    assert_snapshot!(env.transcript());
}

#[test]
fn what_cannot_be_meant_is_refused_and_changes_nothing() {
    let mut env = worked();
    let done = status(&env);
    env.say("rewind @last --to 999");
    env.say("rewind @last --to 0");
    env.say("rewind @last --to -99");
    env.say("rewind @last --to nowhere");
    env.say("rewind @last --to -x");
    env.say("rewind @last --to -0");
    env.say("rewind @last --to -+1");
    env.say("rewind @last --redo");
    env.say("rewind @last --finish");
    env.say("rewind @last --undo");
    env.say("rewind @last --undo --to 3");
    env.say("rewind @last --files --chat");
    env.say("rewind nobody");
    env.say("diff @last --from nowhere");
    env.say("files @last nothing.txt");
    env.say("files @last nothing.txt --at 4");
    env.say("files @last --at 4");
    env.say("files @last src/new.rs --at 4");
    assert_eq!(status(&env), done);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_session_that_runs_is_not_rewound() {
    let env = worked();
    let well = env.well();
    let session = well.lock(&well.find("@last").unwrap()).unwrap();
    let ran = env.quietly(&["rewind", "@last"]);
    assert_eq!(ran.code, Some(6), "{}", ran.stderr);
    let holder = format!("process {}", std::process::id());
    assert!(ran.stderr.contains(&holder), "{}", ran.stderr);
    // Looking is free.
    assert_eq!(env.quietly(&["rewind", "@last", "--dry-run"]).code, Some(0));
    drop(session);
    assert_eq!(env.quietly(&["rewind", "@last"]).code, Some(0));
}

#[test]
fn versions_of_files_are_listed_and_printed() {
    let mut env = worked();
    env.say("files @last");
    env.say("files @last moved.txt");
    env.say("files @last moved.txt --json");
    env.say("files @last notes.txt --at 3");
    env.say("files @last notes.txt --at -1");
    env.say("files @last link --at -1");
    env.say("files @last moved.txt --at step-2 --json");
    assert_snapshot!(env.transcript());
    let raw = env.command(&["files", "@last", "data.bin", "--at", "-1"]).output().unwrap();
    assert_eq!(raw.stdout, [0, 1]);
}

#[test]
fn forks_begin_at_checkpoints_and_are_shown_below_their_parent() {
    let mut env = worked();
    let parent = env.quietly(&["show", "@last", "--json"]).json()[0]["id"].clone();
    let parent = parent.as_str().unwrap();
    let named = env.quietly(&["fork", parent, "--at", "step-2"]).line();
    let back = env.quietly(&["fork", parent, "--at", "-2"]).line();
    env.quietly(&["fork", &named]);
    let at = |id: &str| {
        let head = env.well().info(&id.parse().unwrap()).unwrap().head;
        match head.origin {
            stepwell::model::Origin::Fork { at, .. } => at,
            other => panic!("{other:?}"),
        }
    };
    let step =
        env.well().store().keyed_events(&parent.parse().unwrap(), &[Kind::Checkpoint]).unwrap();
    assert_eq!(at(&named), step[0].seq);
    assert_eq!(at(&back), step[0].seq);
    let ran = env.quietly(&["show", parent, "--tree"]);
    let tree: Vec<&str> = ran.stdout.split("Grown out of it").nth(1).unwrap().lines().collect();
    assert_eq!(tree.iter().filter(|line| line.contains("fork at ")).count(), 3, "{tree:?}");
    env.say("fork @last --at nowhere");
}

#[test]
fn contents_that_only_a_rewound_part_holds_are_let_go_of_but_for_the_newest() {
    let mut answers = String::from("answers:\n");
    for n in 1..=8 {
        answers.push_str(&format!(
            "  - {{text: 'Step {n}.', calls: [{{tool: write_file, arguments: {{path: f.txt, content: 'version {n}'}}}}]}}\n"
        ));
    }
    answers.push_str("  - {text: Done.}\n");
    let mut env = TestEnv::new();
    env.file("script.yaml", &answers);
    env.file("f.txt", "version 0");
    let ran = env.quietly(&["run", "write", "--model", "script:script.yaml", "--mode", "yolo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let versions = |env: &TestEnv| {
        let listed = env.quietly(&["files", "@last", "f.txt", "--json"]).json();
        listed.iter().filter(|it| it["after"].get("file").is_some()).count()
    };
    // With the one that was there first.
    assert_eq!(versions(&env), 9);
    env.set("STEPWELL_FILES_MAX_BACKUPS_PER_FILE", "2");
    let rewind = |args: &[&str]| {
        let args: Vec<&str> = ["rewind", "@last"].iter().chain(args).copied().collect();
        let ran = env.quietly(&args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    };
    // What a rewind took back is there again when that is taken back.
    rewind(&["--to", "3"]);
    assert_eq!(env.read("f.txt"), "version 0");
    rewind(&["--undo"]);
    assert_eq!(env.read("f.txt"), "version 8");
    assert_eq!(env.quietly(&["files", "@last", "f.txt", "--at", "8"]).stdout, "version 1");
    // Work that was done in between is held by no view any more, nor by a way back.
    rewind(&["--to", "3"]);
    env.file("script.yaml", &answers.replace("version", "other"));
    let ran = env.quietly(&["resume", "@last", "--mode", "yolo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(env.read("f.txt"), "other 8");
    assert_eq!(env.quietly(&["rewind", "@last", "--undo"]).code, Some(1));
    rewind(&["--undo", "--force"]);
    rewind(&["--to", "-2"]);
    let log = env.quietly(&["log", "@last"]).stdout;
    assert!(log.contains("files.max_backups_per_file"), "{log}");
    assert_eq!(env.quietly(&["verify", "@last"]).code, Some(0));
    let listed = env.quietly(&["files", "@last", "f.txt", "--json"]).stdout;
    assert!(listed.contains("let go: not among the last 2 versions"), "{listed}");
    assert_eq!(env.quietly(&["files", "@last", "f.txt", "--at", "8"]).stdout, "version 1");
}

#[test]
fn undoing_a_rewind_after_new_work_says_what_it_sets_aside_and_wants_force() {
    let mut env = worked();
    let done = status(&env);
    assert_eq!(env.quietly(&["rewind", "@last", "--to", "3"]).code, Some(0));
    env.file(
        "script.yaml",
        "- {text: Anew., calls: [{tool: write_file, arguments: {path: anew.txt, content: anew}}]}\n\
         - {text: Done.}\n",
    );
    assert_eq!(env.quietly(&["resume", "@last", "--mode", "yolo"]).code, Some(0));
    // The script lies in the work tree.
    let anew = status(&env);
    env.say("rewind @last --undo --dry-run");
    env.say("rewind @last --undo --dry-run --json");
    env.say("rewind @last --undo");
    assert_eq!(status(&env), anew);
    env.say("rewind @last --undo --force");
    assert_eq!(status(&env).replace(" M script.yaml\n", ""), done);
    env.say("rewind @last --redo");
    assert_eq!(status(&env), anew);
    assert_eq!(env.read("anew.txt"), "anew");
    assert_snapshot!(env.transcript());
}

#[test]
fn what_an_undo_overwrote_is_listed_and_comes_back_as_its_hint_says() {
    let env = worked();
    assert_eq!(env.quietly(&["rewind", "@last", "--to", "3"]).code, Some(0));
    env.file("notes.txt", "mine\n");
    let ran = env.quietly(&["rewind", "@last", "--undo"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let ran = env.quietly(&["rewind", "@last", "--undo", "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(env.read("notes.txt"), "one\nTWO\nthree\n");
    let listed = env.quietly(&["files", "@last", "notes.txt", "--json"]).json();
    let found: Vec<_> = listed.iter().filter(|it| it["change"] == "found").collect();
    let at = found.last().unwrap()["seq"].to_string();
    assert_eq!(env.quietly(&["files", "@last", "notes.txt", "--at", &at]).stdout, "mine\n");
    // The hint is typed as it stands there.
    let hint = ran.stderr.split("stepwell ").nth(2).unwrap();
    let hint: Vec<&str> = hint.split_whitespace().take(3).collect();
    let ran = env.quietly(&hint);
    assert_eq!(ran.code, Some(0), "{hint:?}: {}", ran.stderr);
    assert_eq!(env.read("notes.txt"), "mine\n");
}

#[test]
fn without_a_point_all_that_was_done_since_the_last_words_is_taken_back() {
    let mut env = worked();
    let done = status(&env);
    env.file("more.yaml", "- {text: I add., calls: [{tool: write_file, arguments: {path: added.txt, content: x}}]}\n- {text: Done.}\n");
    // The answer of a script is the one after as many as there were.
    let more = std::fs::read_to_string(env.work().join("more.yaml")).unwrap();
    let past = "- {text: past}\n".repeat(4);
    env.file("more.yaml", &format!("{past}{more}"));
    let args =
        ["run", "add", "--session", "@last", "--mode", "yolo", "--model", "script:more.yaml"];
    let ran = env.quietly(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(env.read("added.txt"), "x");
    env.say("rewind @last --dry-run");
    env.say("rewind @last");
    assert!(!env.work().join("added.txt").exists());
    assert_eq!(status(&env).replace("?? more.yaml\n", ""), done);
    env.say("rewind @last");
    assert_snapshot!(env.transcript());
    // The words stay, and are gone on from.
    assert_eq!(env.quietly(&["resume", "@last", "--mode", "yolo"]).code, Some(0));
    assert_eq!(env.read("added.txt"), "x");
}

#[test]
fn a_checkpoint_is_not_named_like_another_point() {
    let env = worked();
    for name in ["2", "-1", "+3", "007", "99999999999999999999999"] {
        let ran = env.quietly(&["checkpoint", "@last", "--", name]);
        assert_eq!(ran.code, Some(1), "{name}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("{name:?} is not a valid checkpoint name")),
            "{}",
            ran.stderr
        );
    }
    for name in ["-", "v2", "2nd", "2-1"] {
        let ran = env.quietly(&["checkpoint", "@last", "--", name]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
    }
}

#[test]
fn roots_that_would_turn_capture_off_are_refused_with_their_place() {
    let env = worked();
    let outside = env.work().join("..").canonicalize().unwrap();
    std::os::unix::fs::symlink(&outside, env.work().join("out")).unwrap();
    let run = ["run", "go", "--model", "script:script.yaml", "--mode", "yolo"];
    for (roots, says) in [
        ("[]", "no folder"),
        ("[\"src\", \"/etc\"]", "not folders within the workspace"),
        ("\"../x\"", "not folders within the workspace"),
        ("\"~/x\"", "not folders within the workspace"),
        ("[\"src\", \"out\"]", "\"out\": it leads out of the workspace"),
    ] {
        env.file("stepwell.toml", &format!("[files]\nroots = {roots}\n"));
        let ran = env.quietly(&run);
        assert_eq!(ran.code, Some(3), "{roots}: {}", ran.stderr);
        assert!(ran.stderr.contains("stepwell.toml"), "{}", ran.stderr);
        assert!(ran.stderr.contains("files.roots = "), "{}", ran.stderr);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
    // The hint is typed as it stands there.
    assert_eq!(env.quietly(&["config", "set", "files.roots", "."]).code, Some(0));
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 1);
    assert_eq!(env.quietly(&run).code, Some(0));
}

#[test]
fn a_fork_that_was_not_run_was_cut_off_nowhere_and_is_not_taken_up_by_itself() {
    let mut env = worked();
    let fork = env.quietly(&["fork", "@last", "--at", "-1"]).line();
    let shown = env.quietly(&["show", &fork]).stdout;
    assert!(shown.contains("interrupted (not run yet)"), "{shown}");
    let listed = env.quietly(&["sessions", "--json"]).json();
    assert!(listed.iter().all(|it| it["stop_reason"] != "crashed"), "{listed:?}");
    env.set("STEPWELL_SESSIONS_RESUME_ON_STARTUP", "true");
    let ran = env.quietly(&["run"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("no session here to resume"), "{}", ran.stderr);
    let ran = env.quietly(&["resume", &fork, "--mode", "yolo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_rewind_over_no_messages_says_that_the_phase_goes_back() {
    let env = TestEnv::new();
    env.file("script.yaml", "- {text: Done.}\n");
    let run = ["run", "go", "--model", "script:script.yaml", "--phases", "workflow"];
    assert_eq!(env.quietly(&run).code, Some(0));
    for phase in ["initialize", "discuss"] {
        assert_eq!(env.quietly(&["phase", "@last", phase]).code, Some(0));
    }
    let ran = env.quietly(&["rewind", "@last", "--to", "phase-initialize"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("chat     1 phase change go back"), "{}", ran.stdout);
    assert_eq!(env.quietly(&["show", "@last", "--json"]).json()[0]["phase"], "initialize");
    let ran = env.quietly(&["rewind", "@last", "--files", "--to", "phase-initialize"]);
    assert!(ran.stdout.contains("nothing is moved"), "{}", ran.stdout);
}

/// A run that was ended while its command, which had changed a file, still ran.
fn cut_off(end: impl FnOnce(&TestEnv, &mut std::process::Child, &str)) -> (TestEnv, String) {
    let env = TestEnv::new();
    env.file(
        "script.yaml",
        "- {text: I wait., calls: [{tool: run_command, arguments: {command: 'echo made > made.txt; sleep 600'}}]}\n\
         - {text: Done.}\n",
    );
    let (mut child, id) = crate::running::running(&env);
    env.wait_for("made.txt");
    end(&env, &mut child, &id);
    child.wait().unwrap();
    (env, id)
}

#[test]
fn what_a_command_changed_that_was_interrupted_is_captured() {
    let (env, id) = cut_off(|env, _, id| {
        let mut stop = env.command(&["stop", id]);
        assert!(stop.env_remove("STEPWELL_NOW").output().unwrap().status.success());
    });
    let files = env.quietly(&["files", &id, "--json"]).json();
    assert_eq!((files.len(), &files[0]["path"]), (1, &"made.txt".into()));
    let ran = env.quietly(&["rewind", &id]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!env.work().join("made.txt").exists());
}

#[test]
fn what_a_command_changed_that_was_killed_with_its_run_is_said_to_be_unknown() {
    let (env, id) = cut_off(|_, child, _| child.kill().unwrap());
    let ran = env.quietly(&["resume", &id]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = env.quietly(&["rewind", &id, "--to", "3", "--dry-run", "--json"]);
    let plan = ran.json().remove(0);
    assert_eq!(plan["left"][0]["path"], ".");
    let why = plan["left"][0]["why"].as_str().unwrap();
    assert!(why.contains("killed together with Stepwell"), "{why}");
    // It is said once.
    assert_eq!(env.quietly(&["files", &id, "--json"]).json().len(), 1);
    assert!(!env.quietly(&["show", &id]).stdout.contains("\nFiles"));
}

#[test]
fn undoing_a_rewind_sets_no_plan_aside_without_a_word() {
    let env = TestEnv::new();
    env.file("script.yaml", "- {text: Done.}\n");
    let run = ["run", "go", "--model", "script:script.yaml", "--phases", "workflow"];
    for typed in [
        &run[..],
        &["rewind", "@last", "--to", "4"],
        &["tasks", "@last", "add", "one"],
        &["tasks", "@last", "add", "two"],
        &["state", "@last", "goal", "another"],
        &["state", "@last", "ask", "why?"],
        &["phase", "@last", "initialize"],
    ] {
        let ran = env.quietly(typed);
        assert_eq!(ran.code, Some(0), "{typed:?}: {}", ran.stderr);
    }
    let aside = "2 task changes, 1 question, 1 phase change, 1 goal change";
    let ran = env.quietly(&["rewind", "@last", "--undo", "--dry-run"]);
    let says = format!("  chat     {aside} done since are set aside\n");
    assert!(ran.stdout.contains(&says), "{}", ran.stdout);
    assert!(ran.stderr.contains("It would be refused"), "{}", ran.stderr);
    let ran = env.quietly(&["rewind", "@last", "--undo"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("what was done since: {aside};")), "{}", ran.stderr);
    assert_eq!(env.quietly(&["tasks", "@last", "--json"]).json().len(), 2);
    let ran = env.quietly(&["rewind", "@last", "--undo", "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(env.quietly(&["tasks", "@last", "--json"]).json().is_empty());
    // Nothing was done since: it is taken back as it stands.
    let ran = env.quietly(&["rewind", "@last", "--redo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(env.quietly(&["tasks", "@last", "--json"]).json().len(), 2);
}

#[test]
fn a_number_means_a_seq_whatever_checkpoints_are_called() {
    let env = worked();
    let well = env.well();
    // As earlier versions let one be called.
    let session = well.lock(&well.find("@last").unwrap()).unwrap();
    let seq = session.append(Checkpoint { name: "3".to_owned(), ..Checkpoint::default() }).unwrap();
    drop(session);
    let goes_to = |point: &str, seq: u64| {
        let ran = env.quietly(&["rewind", "@last", "--to", point, "--dry-run", "--json"]);
        assert_eq!(ran.json()[0]["to"], seq, "{point}: {}", ran.stderr);
    };
    goes_to("3", 3);
    goes_to("checkpoint:3", seq.get());
    assert_eq!(env.quietly(&["checkpoint", "@last", "checkpoint:x"]).code, Some(0));
    goes_to("checkpoint:x", seq.get() + 1);
}

#[test]
fn a_rewind_of_a_session_that_was_given_up_hints_at_what_goes_on_with_it() {
    let env = worked();
    assert_eq!(env.quietly(&["abandon", "@last"]).code, Some(0));
    let ran = env.quietly(&["rewind", "@last", "--to", "step-2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("stepwell resume"), "{}", ran.stderr);
    assert!(ran.stderr.contains("stepwell run \"TASK\" --session"), "{}", ran.stderr);
    let ran = env.quietly(&["run", "more", "--session", "@last", "--mode", "yolo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_session_that_is_rewound_to_where_it_had_crashed_was_not_cut_off_now() {
    let (env, id) = cut_off(|_, child, _| child.kill().unwrap());
    let ran = env.quietly(&["resume", &id]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let log = env.quietly(&["log", &id, "--kind", "status"]).json();
    let crash = log.iter().find(|it| it["body"]["reason"] == "crashed").unwrap();
    let ran = env.quietly(&["rewind", &id, "--chat", "--to", &crash["seq"].to_string()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown = env.quietly(&["show", &id, "--json"]).json().remove(0);
    assert_eq!(
        (shown["status"].as_str(), shown["stop_reason"].as_str()),
        (Some("interrupted"), None)
    );
}
