//! Where subagents' sessions work: in a worktree of their own store, wherever that is now, and
//! nowhere else.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::desk::{Desk, Ran};
use crate::half_rewound::cut_rewind_of;
use crate::running::{one, run};
use crate::subagents::{CHANGE, MERGE, children, dispatching, git, repository};
use crate::worktrees::{after, folder};

/// A desk on which a subagent's worktree is kept, with a file that the subagent made.
fn kept() -> (Desk, String) {
    let (desk, _, child) = after(CHANGE, "echo x > new.txt");
    desk.file("more.yaml", MORE);
    (desk, child)
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
fn copied(desk: &Desk, name: &str) -> PathBuf {
    let copy = desk.path(name);
    let ran = Command::new("cp").arg("-r").arg(desk.work()).arg(&copy).status().unwrap();
    assert!(ran.success());
    copy
}

/// Types this in a folder.
fn there(desk: &Desk, folder: &Path, args: &[&str]) -> Ran {
    let output = desk.command(args).current_dir(folder).output().unwrap();
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
    let (desk, child) = kept();
    cut_rewind_of(&desk, &child, "new.txt");
    let copy = copied(&desk, "copy");
    let ran = there(&desk, &copy, &["run", "look", "--model", "script:looker.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("A rewind of {child}")), "{}", ran.stderr);
    assert!(!made(&copy, &child).exists());
    assert_eq!(std::fs::read_to_string(made(&desk.work(), &child)).unwrap(), "x\n");
}

#[test]
fn a_subagent_of_a_copied_workspace_is_rewound_there_and_run_nowhere() {
    let (desk, child) = kept();
    let copy = copied(&desk, "copy");
    let fork = there(&desk, &copy, &["fork", &child]).line();
    for session in [&child, &fork] {
        let ran = there(&desk, &copy, &["rewind", session]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!made(&copy, &child).exists());
        assert_eq!(there(&desk, &copy, &["rewind", session, "--undo"]).code, Some(0));
        assert!(made(&copy, &child).exists());
        // Its .git still leads to the original's repository.
        let more =
            ["run", "more", "--session", session, "--model", "script:more.yaml", "--mode", "yolo"];
        let ran = there(&desk, &copy, &more);
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("its .git leads to "), "{}", ran.stderr);
    }
    assert_eq!(std::fs::read_to_string(made(&copy, &child)).unwrap(), "x\n");
    assert_eq!(std::fs::read_to_string(made(&desk.work(), &child)).unwrap(), "x\n");
    let listed = there(&desk, &copy, &["worktrees", "--json"]).json();
    assert_eq!(listed[0]["state"], "checked_out");
    let listed = desk.quietly(&["worktrees", "--json"]).json();
    assert_eq!(listed[0]["state"], "unmerged");
}

#[test]
fn a_subagent_of_a_moved_workspace_is_rewound_and_run_there() {
    let (desk, child) = kept();
    let fork = desk.quietly(&["fork", &child]).line();
    let moved = desk.path("moved");
    std::fs::rename(desk.work(), &moved).unwrap();
    let ran = there(&desk, &moved, &["rewind", &child]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!made(&moved, &child).exists());
    assert_eq!(there(&desk, &moved, &["rewind", &child, "--undo"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(made(&moved, &child)).unwrap(), "x\n");
    for session in [&child, &fork] {
        let more =
            ["run", "more", "--session", session, "--model", "script:more.yaml", "--mode", "yolo"];
        let ran = there(&desk, &moved, &more);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let log = there(&desk, &moved, &["log", session, "--kind", "message"]).stdout;
        let place = format!("{}\\n", made(&moved, &child).parent().unwrap().display());
        assert!(log.contains(&format!("M new.txt\\n{place}")), "{log}");
    }
    assert!(!desk.work().exists());
    // Commits of the repository that were made meanwhile are counted, as for any session.
    let rows = there(&desk, &moved, &["ledger", "--json"]).json();
    let row = rows.iter().find(|row| row["session"] == *fork || row["id"] == *fork).unwrap();
    assert!(row["commits"].is_u64(), "{row}");
}

#[test]
fn a_parent_in_a_copied_workspace_waits_for_its_subagent() {
    let desk = repository(&dispatching(CHANGE));
    let asked = one(&desk, &run(&[]), 8);
    let id = asked["session_id"].as_str().unwrap().to_owned();
    one(&desk, &["resume", &id, "--approve"], 8);
    let child = children(&desk)[0]["id"].as_str().unwrap().to_owned();
    let copy = copied(&desk, "copy");
    for _ in 0..2 {
        // Nothing that was chosen in the original counts in a copy.
        let model = format!("script:{}", desk.work().join("script.yaml").display());
        let ran = there(&desk, &copy, &["resume", &id, "--mode", "yolo", "--model", &model]);
        assert_eq!(ran.code, Some(130), "{}{}", ran.stdout, ran.stderr);
        let why =
            format!("subagent {child}: this workspace is a copy; resume this in the original");
        assert!(ran.stderr.contains(&why), "{}", ran.stderr);
    }
    assert_eq!(one(&desk, &["resume", &id, "--approve"], 0)["output"], "All done.");
}

#[test]
fn worktrees_of_a_moved_workspace_stand_as_before_and_can_go() {
    let (desk, child) = kept();
    let moved = desk.path("moved");
    std::fs::rename(desk.work(), &moved).unwrap();
    let listed = there(&desk, &moved, &["worktrees", "--json"]).json();
    assert_eq!(listed[0]["state"], "unmerged", "{listed:?}");
    // What was merged since is swept there.
    let merge = ["merge", "-q", &format!("stepwell/{child}")];
    assert!(Command::new("git").arg("-C").arg(&moved).args(merge).status().unwrap().success());
    let again = desk.path("again");
    std::fs::rename(&moved, &again).unwrap();
    let ran = there(&desk, &again, &["run", "look", "--model", "script:looker.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("Removed the worktree of subagent"), "{}", ran.stderr);

    let (desk, child) = kept();
    let moved = desk.path("moved");
    std::fs::rename(desk.work(), &moved).unwrap();
    let gone = there(&desk, &moved, &["worktrees", "remove", &child, "--force"]);
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    assert!(there(&desk, &moved, &["worktrees", "--json"]).json().is_empty());
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
    let to = Desk::new();
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
fn printed(desk: &Desk, id: &str) -> String {
    desk.quietly(&["log", id, "--kind", "message"]).stdout
}

const GO_ON: [&str; 4] = ["--model", "script:more.yaml", "--mode", "yolo"];

fn merged() -> (Desk, String) {
    let (desk, child) = kept();
    git(&desk, &["merge", "-q", &format!("stepwell/{child}")]);
    (desk, child)
}

#[test]
fn a_session_that_is_taken_up_keeps_its_worktree() {
    let (desk, child) = merged();
    let ran = desk.quietly(&[&["run", "more", "--session", &child], &GO_ON[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("he worktree"), "{}", ran.stderr);
    assert!(printed(&desk, &child).contains("M new.txt"));
    assert_eq!(std::fs::read_to_string(made(&desk.work(), &child)).unwrap(), "more\n");
}

#[test]
fn a_worktree_that_was_removed_is_brought_back_for_whoever_goes_on_in_it() {
    let (desk, child) = merged();
    let fork = desk.quietly(&["fork", &child]).line();
    // A fork that nobody ran may be run yet.
    let look = ["run", "look", "--model", "script:looker.yaml"];
    assert!(!desk.quietly(&look).stderr.contains("Removed"));
    let refused = desk.quietly(&["worktrees", "remove", &child]);
    assert!(refused.stderr.contains(&format!("stepwell resume {fork}")), "{}", refused.stderr);
    assert_eq!(desk.quietly(&["worktrees", "remove", &child, "--force"]).code, Some(0));
    // Its files cannot be moved, and the hint says how they can.
    for session in [&child, &fork] {
        let ran = desk.quietly(&["rewind", session]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let hint = format!("stepwell run \"TASK\" --session {session} brings it back");
        assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    }
    for session in [&fork, &child] {
        let ran = desk.quietly(&[&["run", "more", "--session", session], &GO_ON[..]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let back = format!("Brought the worktree back that {session} works in");
        assert_eq!(ran.stderr.contains(&back), *session == fork, "{}", ran.stderr);
        assert!(printed(&desk, session).contains("M new.txt"), "{}", printed(&desk, session));
        let ran = desk.quietly(&["rewind", session]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(made(&desk.work(), &child)).unwrap(), "x\n");
    }
}

#[test]
fn a_worktree_in_which_a_fork_is_at_work_is_not_removed() {
    let (desk, child) = merged();
    let fork = desk.quietly(&["fork", &child]).line();
    desk.file("more.yaml", &MORE.replace("echo more > new.txt", "sleep 600"));
    let args = [&["run", "more", "--session", &fork, "--events"], &GO_ON[..]].concat();
    let mut command = desk.command(&args);
    // The real time: a lease must not look as if it had run out.
    command.env_remove("STEPWELL_NOW");
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line.contains("\"unsafe\"")));
    let look = ["run", "look", "--model", "script:looker.yaml"];
    let mut look = desk.command(&look);
    let looked = look.env_remove("STEPWELL_NOW").output().unwrap();
    let said = String::from_utf8(looked.stderr).unwrap();
    assert!(looked.status.success() && !said.contains("Removed"), "{said}");
    let mut remove = desk.command(&["worktrees", "remove", &child, "--force"]);
    let removed = remove.env_remove("STEPWELL_NOW").output().unwrap();
    let said = String::from_utf8(removed.stderr).unwrap();
    assert!(said.contains(&format!("{fork} is at work in it")), "{said}");
    assert!(made(&desk.work(), &child).exists());
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn a_rewind_that_was_cut_off_where_the_worktree_is_gone_is_in_nobodys_way() {
    let (desk, child) = kept();
    cut_rewind_of(&desk, &child, "new.txt");
    assert_eq!(desk.quietly(&["worktrees", "remove", &child, "--force"]).code, Some(0));
    let look = ["run", "look", "--model", "script:looker.yaml"];
    for typed in [&look[..], &["fork", &child]] {
        let ran = desk.quietly(typed);
        assert_eq!(ran.code, Some(0), "{typed:?}: {}", ran.stderr);
        let warns = format!("warning: a rewind of {child} was cut off");
        assert!(ran.stderr.contains(&warns), "{typed:?}: {}", ran.stderr);
    }
    let ran = desk.quietly(&["rewind", &child, "--finish"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("is gone"), "{}", ran.stderr);
}

#[test]
fn a_store_of_several_repositories_brings_no_worktree_back_in_another_one() {
    let desk = repository(&dispatching(MERGE));
    desk.file("more.yaml", MORE);
    let store = desk.path("sessions").display().to_string();
    let at = |folder: &Path, typed: &[&str]| {
        there(&desk, folder, &[typed, &["--store", &store, "--json"]].concat())
    };
    let ran = at(&desk.work(), &run(&["--mode", "yolo"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = at(&desk.work(), &["sessions", "--tree"]).json();
    let child = all.iter().find(|it| it["metadata"]["subagent"].is_object()).unwrap();
    let child = child["id"].as_str().unwrap().to_owned();
    let worktree = desk.path("sessions").join("worktrees").join(&child);
    assert!(!worktree.exists());
    let clone = desk.path("clone");
    git(&desk, &["clone", "-q", ".", clone.to_str().unwrap()]);
    std::fs::copy(desk.work().join("more.yaml"), clone.join("more.yaml")).unwrap();
    let more =
        ["run", "more", "--session", &child, "--model", "script:more.yaml", "--mode", "yolo"];
    for typed in [&more[..], &["resume", &child]] {
        let ran = at(&clone, typed);
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        let work = std::fs::canonicalize(desk.work()).unwrap();
        assert!(ran.stderr.contains(&format!("stepwell -C {}", work.display())), "{}", ran.stderr);
        assert!(!worktree.exists());
    }
    let ran = at(&desk.work(), &more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(worktree.exists());
    assert_eq!(at(&desk.work(), &["worktrees"]).json().len(), 1);
    assert!(at(&clone, &["worktrees"]).json().is_empty());
}
