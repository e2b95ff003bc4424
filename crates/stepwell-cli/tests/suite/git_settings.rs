//! Commands in a repository that someone else made start none of its programs, and give git none
//! of the user's keys; a copy of a session is not the user's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::running::{SCRIPT, env, one, run};
use crate::subagents::git;
use crate::worktrees::after;

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_repositorys_programs_are_not_started_by_any_command() {
    let (mut env, _, _) = after(crate::subagents::CHANGE, "echo x > new.txt");
    let (bait, trace, seen) = (env.path("bait"), env.path("trace"), env.path("seen"));
    program(&bait, &format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", trace.display()));
    for key in ["core.fsmonitor", "filter.bait.clean", "filter.bait.smudge", "diff.external"] {
        git(&env, &["config", key, bait.to_str().unwrap()]);
    }
    env.file(".git/info/attributes", "*.md filter=bait\n");
    // A git that notes what it is given.
    let real = std::env::split_paths("/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin");
    let real = real.map(|folder| folder.join("git")).find(|path| path.exists()).unwrap();
    let folder = env.path("bin");
    fs::create_dir(&folder).unwrap();
    let noting = format!("#!/bin/sh\nenv >> {}\nexec {} \"$@\"\n", seen.display(), real.display());
    program(&folder.join("git"), &noting);
    env.set("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display()));
    env.set("OPENAI_API_KEY", "sk-of-the-user");
    env.set("DEPLOY_TOKEN", "token-of-the-user");
    for args in [
        &["worktrees"][..],
        &["run", "look", "--model", "script:looker.yaml", "--dry-run"],
        &["run", "look", "--model", "script:looker.yaml", "--mode", "confirm-all"],
        &["ledger"],
    ] {
        let _ = env.quietly(args);
    }
    assert_eq!(fs::read_to_string(&trace).unwrap_or_default(), "");
    let seen = fs::read_to_string(&seen).unwrap();
    assert!(seen.contains("GIT_CONFIG_COUNT="), "{seen}");
    assert!(!seen.contains("of-the-user"), "{seen}");
}

#[test]
fn what_was_always_allowed_is_asked_again_in_a_copy() {
    let env = env(SCRIPT);
    let first = one(&env, &run(&["--mode", "yolo", "--max-steps", "1"]), 5);
    let id = first["session_id"].as_str().unwrap().to_owned();
    let copy = env.path("copy");
    let copied = std::process::Command::new("cp").arg("-a").arg(env.work()).arg(&copy).status();
    assert!(copied.unwrap().success());
    // In the copy, the mode and the model that were chosen for the original do not count.
    let model = format!("script:{}", env.work().join("script.yaml").display());
    let ran = env.command(&["resume", &id]).current_dir(&copy).output().unwrap();
    assert_eq!(ran.status.code(), Some(3), "{}", String::from_utf8_lossy(&ran.stderr));
    let ran = env.command(&["resume", &id, "--model", &model]).current_dir(&copy).output().unwrap();
    assert_eq!(ran.status.code(), Some(8), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(!copy.join("hello.txt").exists());
    // Where it began, it does.
    let ran = env.quietly(&["resume", &id]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(env.read("hello.txt"), "hello");
}
