//! Where subagents' sessions work: in a worktree of their own store, wherever that is now, and
//! nowhere else.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::half_rewound::cut_rewind_of;
use crate::running::{one, run};
use crate::subagents::{CHANGE, MERGE, children, dispatching, git, repository};
use crate::test_env::{Ran, TestEnv};
use crate::worktrees::{after, folder};

/// An environment in which a subagent's worktree is kept, with a file that the subagent made.
fn kept() -> (TestEnv, String) {
    let (env, _, child) = after(CHANGE, "echo x > new.txt");
    env.file("more.yaml", MORE);
    (env, child)
}

/// A run that changes what the subagent made, and says where it works. The subagent itself had
/// the first two answers.
const MORE: &str = "
- {text: The first.}
- {text: The second.}
- {text: On., calls: [{tool: run_command, arguments: {command: 'echo more > new.txt; git status --short; pwd'}}]}
- {text: Done.}
";

/// Copies the workspace, as a user would.
fn copied(env: &TestEnv, name: &str) -> PathBuf {
    let copy = env.path(name);
    let ran = Command::new("cp").arg("-r").arg(env.work()).arg(&copy).status().unwrap();
    assert!(ran.success());
    copy
}

/// Types this in a folder.
fn there(env: &TestEnv, folder: &Path, args: &[&str]) -> Ran {
    let output = env.command(args).current_dir(folder).output().unwrap();
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

fn made(workspace: &Path, child: &str) -> PathBuf {
    workspace.join(".stepwell/worktrees").join(child).join("new.txt")
}

#[test]
fn a_run_in_a_copied_workspace_leaves_the_original_alone() {
    let (env, child) = kept();
    cut_rewind_of(&env, &child, "new.txt");
    let copy = copied(&env, "copy");
    let ran = there(&env, &copy, &["run", "look", "--model", "script:looker.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("A rewind of {child}")), "{}", ran.stderr);
    assert!(!made(&copy, &child).exists());
    assert_eq!(std::fs::read_to_string(made(&env.work(), &child)).unwrap(), "x\n");
}

#[test]
fn a_subagent_of_a_copied_workspace_is_rewound_there_and_run_nowhere() {
    let (env, child) = kept();
    let copy = copied(&env, "copy");
    let fork = there(&env, &copy, &["fork", &child]).line();
    for session in [&child, &fork] {
        let ran = there(&env, &copy, &["rewind", session]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!made(&copy, &child).exists());
        assert_eq!(there(&env, &copy, &["rewind", session, "--undo"]).code, Some(0));
        assert!(made(&copy, &child).exists());
        // Its .git still leads to the original's repository.
        let more =
            ["run", "more", "--session", session, "--model", "script:more.yaml", "--mode", "yolo"];
        let ran = there(&env, &copy, &more);
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("its .git leads to "), "{}", ran.stderr);
    }
    assert_eq!(std::fs::read_to_string(made(&copy, &child)).unwrap(), "x\n");
    assert_eq!(std::fs::read_to_string(made(&env.work(), &child)).unwrap(), "x\n");
    let listed = there(&env, &copy, &["worktrees", "--json"]).json();
    assert_eq!(listed[0]["state"], "checked_out");
    let listed = env.quietly(&["worktrees", "--json"]).json();
    assert_eq!(listed[0]["state"], "unmerged");
}

#[test]
fn a_subagent_of_a_moved_workspace_is_rewound_and_run_there() {
    let (env, child) = kept();
    let fork = env.quietly(&["fork", &child]).line();
    let moved = env.path("moved");
    std::fs::rename(env.work(), &moved).unwrap();
    let ran = there(&env, &moved, &["rewind", &child]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!made(&moved, &child).exists());
    assert_eq!(there(&env, &moved, &["rewind", &child, "--undo"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(made(&moved, &child)).unwrap(), "x\n");
    for session in [&child, &fork] {
        let more =
            ["run", "more", "--session", session, "--model", "script:more.yaml", "--mode", "yolo"];
        let ran = there(&env, &moved, &more);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let log = there(&env, &moved, &["log", session, "--kind", "message"]).stdout;
        let place = format!("{}\\n", made(&moved, &child).parent().unwrap().display());
        assert!(log.contains(&format!("M new.txt\\n{place}")), "{log}");
    }
    assert!(!env.work().exists());
    // Commits of the repository that were made meanwhile are counted, as for any session.
    let rows = there(&env, &moved, &["ledger", "--json"]).json();
    let row = rows.iter().find(|row| row["session"] == *fork || row["id"] == *fork).unwrap();
    assert!(row["commits"].is_u64(), "{row}");
}

#[test]
fn a_parent_in_a_copied_workspace_waits_for_its_subagent() {
    let env = repository(&dispatching(CHANGE));
    let asked = one(&env, &run(&[]), 8);
    let id = asked["session_id"].as_str().unwrap().to_owned();
    one(&env, &["resume", &id, "--approve"], 8);
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    let copy = copied(&env, "copy");
    for _ in 0..2 {
        // Nothing that was chosen in the original counts in a copy.
        let model = format!("script:{}", env.work().join("script.yaml").display());
        let ran = there(&env, &copy, &["resume", &id, "--mode", "yolo", "--model", &model]);
        assert_eq!(ran.code, Some(130), "{}{}", ran.stdout, ran.stderr);
        let why =
            format!("subagent {child}: this workspace is a copy; resume this in the original");
        assert!(ran.stderr.contains(&why), "{}", ran.stderr);
    }
    assert_eq!(one(&env, &["resume", &id, "--approve"], 0)["output"], "All done.");
}

#[test]
fn worktrees_of_a_moved_workspace_stand_as_before_and_can_go() {
    let (env, child) = kept();
    let moved = env.path("moved");
    std::fs::rename(env.work(), &moved).unwrap();
    let listed = there(&env, &moved, &["worktrees", "--json"]).json();
    assert_eq!(listed[0]["state"], "unmerged", "{listed:?}");
    // What was merged since is swept there.
    let merge = ["merge", "-q", &format!("stepwell/{child}")];
    assert!(Command::new("git").arg("-C").arg(&moved).args(merge).status().unwrap().success());
    let again = env.path("again");
    std::fs::rename(&moved, &again).unwrap();
    let ran = there(&env, &again, &["run", "look", "--model", "script:looker.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("Removed the worktree of subagent"), "{}", ran.stderr);

    let (env, child) = kept();
    let moved = env.path("moved");
    std::fs::rename(env.work(), &moved).unwrap();
    let gone = there(&env, &moved, &["worktrees", "remove", &child, "--force"]);
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    assert!(there(&env, &moved, &["worktrees", "--json"]).json().is_empty());
}

#[test]
fn an_imported_session_reaches_no_folder_that_it_names() {
    let (from, child) = kept();
    let victim = from.path("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("new.txt"), "x\n").unwrap();
    let parent = children(&from)[0]["parent"].as_str().unwrap().to_owned();
    let text = from.quietly(&["export", &parent]).stdout;
    let recorded = std::fs::canonicalize(folder(&from, &child)).unwrap();
    assert!(text.contains(recorded.to_str().unwrap()));
    let evil = text.replace(recorded.to_str().unwrap(), victim.to_str().unwrap());
    let to = TestEnv::new();
    to.file("evil.json", &evil);
    let ran = to.quietly(&["import", "evil.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let fork = to.quietly(&["fork", &child]).line();
    to.file("more.yaml", MORE);
    for session in [&child, &fork] {
        let more = [
            "run",
            "more",
            "--session",
            session,
            "--model",
            "script:more.yaml",
            "--agent",
            "build",
        ];
        for typed in [&["rewind", session, "--force"][..], &more] {
            let ran = to.quietly(typed);
            assert_eq!(ran.code, Some(1), "{typed:?}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.stderr.contains("is no worktree of this store"), "{}", ran.stderr);
        }
        assert_eq!(to.quietly(&["rewind", session, "--chat"]).code, Some(0));
    }
    assert_eq!(std::fs::read_to_string(victim.join("new.txt")).unwrap(), "x\n");
}

/// What a session's commands printed.
fn printed(env: &TestEnv, id: &str) -> String {
    env.quietly(&["log", id, "--kind", "message"]).stdout
}

const GO_ON: [&str; 4] = ["--model", "script:more.yaml", "--mode", "yolo"];

fn merged() -> (TestEnv, String) {
    let (env, child) = kept();
    git(&env, &["merge", "-q", &format!("stepwell/{child}")]);
    (env, child)
}

#[test]
fn a_session_that_is_taken_up_keeps_its_worktree() {
    let (env, child) = merged();
    let ran = env.quietly(&[&["run", "more", "--session", &child], &GO_ON[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("he worktree"), "{}", ran.stderr);
    assert!(printed(&env, &child).contains("M new.txt"));
    assert_eq!(std::fs::read_to_string(made(&env.work(), &child)).unwrap(), "more\n");
}

#[test]
fn a_worktree_that_was_removed_is_brought_back_for_whoever_goes_on_in_it() {
    let (env, child) = merged();
    let fork = env.quietly(&["fork", &child]).line();
    // A fork that nobody ran may be run yet.
    let look = ["run", "look", "--model", "script:looker.yaml"];
    assert!(!env.quietly(&look).stderr.contains("Removed"));
    let refused = env.quietly(&["worktrees", "remove", &child]);
    assert!(refused.stderr.contains(&format!("stepwell resume {fork}")), "{}", refused.stderr);
    assert_eq!(env.quietly(&["worktrees", "remove", &child, "--force"]).code, Some(0));
    // Its files cannot be moved, and the hint says how they can.
    for session in [&child, &fork] {
        let ran = env.quietly(&["rewind", session]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let hint = format!("stepwell run \"TASK\" --session {session} continues it");
        assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    }
    for session in [&fork, &child] {
        let ran = env.quietly(&[&["run", "more", "--session", session], &GO_ON[..]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let back = format!("Brought the worktree back that {session} works in");
        assert_eq!(ran.stderr.contains(&back), *session == fork, "{}", ran.stderr);
        assert!(printed(&env, session).contains("M new.txt"), "{}", printed(&env, session));
        let ran = env.quietly(&["rewind", session]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(made(&env.work(), &child)).unwrap(), "x\n");
    }
}

#[test]
fn a_worktree_in_which_a_fork_is_at_work_is_not_removed() {
    let (env, child) = merged();
    let fork = env.quietly(&["fork", &child]).line();
    env.file("more.yaml", &MORE.replace("echo more > new.txt", "sleep 600"));
    let args = [&["run", "more", "--session", &fork, "--events"], &GO_ON[..]].concat();
    let mut command = env.command(&args);
    // The real time: a lease must not look as if it had run out.
    command.env_remove("STEPWELL_NOW");
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line.contains("\"unsafe\"")));
    let look = ["run", "look", "--model", "script:looker.yaml"];
    let mut look = env.command(&look);
    let looked = look.env_remove("STEPWELL_NOW").output().unwrap();
    let said = String::from_utf8(looked.stderr).unwrap();
    assert!(looked.status.success() && !said.contains("Removed"), "{said}");
    let mut remove = env.command(&["worktrees", "remove", &child, "--force"]);
    let removed = remove.env_remove("STEPWELL_NOW").output().unwrap();
    let said = String::from_utf8(removed.stderr).unwrap();
    assert!(said.contains(&format!("{fork} is at work in it")), "{said}");
    assert!(made(&env.work(), &child).exists());
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn a_rewind_that_was_cut_off_where_the_worktree_is_gone_is_in_nobodys_way() {
    let (env, child) = kept();
    cut_rewind_of(&env, &child, "new.txt");
    assert_eq!(env.quietly(&["worktrees", "remove", &child, "--force"]).code, Some(0));
    let look = ["run", "look", "--model", "script:looker.yaml"];
    for typed in [&look[..], &["fork", &child]] {
        let ran = env.quietly(typed);
        assert_eq!(ran.code, Some(0), "{typed:?}: {}", ran.stderr);
        let warns = format!("warning: a rewind of {child} was cut off");
        assert!(ran.stderr.contains(&warns), "{typed:?}: {}", ran.stderr);
    }
    let ran = env.quietly(&["rewind", &child, "--finish"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("is gone"), "{}", ran.stderr);
}

#[test]
fn a_store_of_several_repositories_brings_no_worktree_back_in_another_one() {
    let env = repository(&dispatching(MERGE));
    env.file("more.yaml", MORE);
    let store = env.path("sessions").display().to_string();
    let at = |folder: &Path, typed: &[&str]| {
        there(&env, folder, &[typed, &["--store", &store, "--json"]].concat())
    };
    let ran = at(&env.work(), &run(&["--mode", "yolo"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = at(&env.work(), &["sessions", "--tree"]).json();
    let child = all.iter().find(|it| it["facts"]["subagent"].is_object()).unwrap();
    let child = child["id"].as_str().unwrap().to_owned();
    let worktree = env.path("sessions").join("worktrees").join(&child);
    assert!(!worktree.exists());
    let clone = env.path("clone");
    git(&env, &["clone", "-q", ".", clone.to_str().unwrap()]);
    std::fs::copy(env.work().join("more.yaml"), clone.join("more.yaml")).unwrap();
    let more =
        ["run", "more", "--session", &child, "--model", "script:more.yaml", "--mode", "yolo"];
    for typed in [&more[..], &["resume", &child]] {
        let ran = at(&clone, typed);
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        let work = std::fs::canonicalize(env.work()).unwrap();
        assert!(ran.stderr.contains(&format!("stepwell -C {}", work.display())), "{}", ran.stderr);
        assert!(!worktree.exists());
    }
    let ran = at(&env.work(), &more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(worktree.exists());
    assert_eq!(at(&env.work(), &["worktrees"]).json().len(), 1);
    assert!(at(&clone, &["worktrees"]).json().is_empty());
}
