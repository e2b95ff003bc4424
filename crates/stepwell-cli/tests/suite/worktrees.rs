//! Worktrees of subagents: nothing in them is lost that nothing else keeps, and what is told of
//! them is true.

use serde_json::json;

use crate::running::{one, run};
use crate::subagents::{CHANGE, MERGE, children, dispatching, git, repository, told};
use crate::test_env::{Ran, TestEnv};

/// An environment in which a subagent did this in a worktree, and its id.
pub(crate) fn after(arguments: &str, command: &str) -> (TestEnv, String, String) {
    let env = repository(&dispatching(arguments));
    env.file(
        "worker.yaml",
        &format!(
            "- text: I work.\n  calls:\n    - tool: run_command\n      arguments: {{command: '{command}'}}\n- {{text: Worked.}}\n"
        ),
    );
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    (env, done["session_id"].as_str().unwrap().to_owned(), child)
}

pub(crate) fn folder(env: &TestEnv, child: &str) -> std::path::PathBuf {
    env.work().join(".stepwell/worktrees").join(child)
}

/// Another run, which looks for what nobody needs any more.
fn sweep(env: &TestEnv) -> Ran {
    let ran = env.quietly(&["run", "look", "--model", "script:looker.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

fn state(env: &TestEnv) -> String {
    let listed = env.quietly(&["worktrees", "--json"]).json();
    assert_eq!(listed.len(), 1, "{listed:?}");
    listed[0]["state"].as_str().unwrap_or("unknown").to_owned()
}

/// It stays through another run, and is not removed unless that is forced.
fn stays(env: &TestEnv, child: &str, expected: &str, why: &str) {
    assert_eq!(state(env), expected);
    let swept = sweep(env);
    assert!(!swept.stderr.contains("worktree"), "{}", swept.stderr);
    let refused = env.quietly(&["worktrees", "remove", child]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    assert!(!refused.stderr.contains("fatal:"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(state(env), expected);
}

fn forced(env: &TestEnv, child: &str) {
    let ran = env.quietly(&["worktrees", "remove", child, "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!folder(env, child).exists());
    assert_eq!(git(env, &["branch", "--list", "stepwell/*"]), "");
    assert_eq!(git(env, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_worktree_without_its_git_file_is_kept_and_said_to_be_broken() {
    let (env, _, child) = after(CHANGE, "echo x > new.txt");
    git(&env, &["merge", "-q", &format!("stepwell/{child}")]);
    std::fs::remove_file(folder(&env, &child).join(".git")).unwrap();
    std::fs::write(folder(&env, &child).join("mine.txt"), "mine").unwrap();
    stays(&env, &child, "broken", "its .git is gone");
    assert!(folder(&env, &child).join("mine.txt").exists());
    assert!(git(&env, &["branch", "--list", "stepwell/*"]).contains(&child));
    forced(&env, &child);
}

#[test]
fn a_folder_that_was_removed_by_hand_takes_no_branch_with_it() {
    // Its commits are not merged: they stay.
    let (env, _, child) = after(CHANGE, "echo x > new.txt");
    std::fs::remove_dir_all(folder(&env, &child)).unwrap();
    stays(&env, &child, "unmerged", "commits that are not merged");
    git(&env, &["merge", "-q", &format!("stepwell/{child}")]);
    assert!(sweep(&env).stderr.contains("Removed the worktree of subagent"));
    assert_eq!(git(&env, &["branch", "--list", "stepwell/*"]), "");

    // It has none, and what was in the folder nobody knows.
    let (env, _, child) = after(CHANGE, "echo x > new.txt; git checkout -q --detach");
    std::fs::remove_dir_all(folder(&env, &child)).unwrap();
    assert_eq!(state(&env), "gone");
    assert!(!sweep(&env).stderr.contains("worktree"));
    assert_eq!(state(&env), "gone");
    let removed = env.quietly(&["worktrees", "remove", &child]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert!(env.quietly(&["worktrees", "--json"]).json().is_empty());
}

#[test]
fn the_model_is_told_what_a_subagent_left_of_its_worktree() {
    let away = "cd ../../..; git worktree remove --force $OLDPWD";
    let detached = "git checkout -q --detach; echo x > x; git add .; git commit -qm x";
    for (command, expected, why, left) in [
        ("rm .git", Some("broken"), "its .git is gone", "kept in "),
        (away, Some("gone"), "its folder was removed", "; its branch stepwell/"),
        (
            &format!("{detached}; rm -rf $PWD"),
            Some("unmerged"),
            "is on no branch: git merge ",
            "is kept",
        ),
        (
            &format!("{away}; git branch -q -D stepwell/$(basename $OLDPWD)"),
            None,
            "its folder was removed",
            "was removed]",
        ),
    ] {
        let (env, parent, _) = after(MERGE, command);
        let said = told(&env, &parent);
        assert!(said.contains(why) && said.contains(left), "{command}: {said}");
        assert!(!said.contains("something other than"), "{command}: {said}");
        assert_eq!(said.contains("kept in"), expected == Some("broken"), "{command}: {said}");
        let listed = env.quietly(&["worktrees", "--json"]).json();
        let state = listed.first().and_then(|it| it["state"].as_str());
        assert_eq!(state, expected, "{command}");
    }
}

#[test]
fn commits_on_no_branch_outlive_the_folder_in_which_they_were_made() {
    for branch in ["true", "git branch -q -D stepwell/$(basename $PWD)"] {
        let make = format!(
            "git checkout -q --detach; echo x > new.txt; git add .; git commit -qm x; {branch}"
        );
        let (env, _, child) = after(CHANGE, &make);
        let place = folder(&env, &child);
        let at = ["-C", place.to_str().unwrap(), "rev-parse", "HEAD"];
        let commit = git(&env, &at).trim().to_owned();
        std::fs::remove_dir_all(&place).unwrap();
        assert_eq!(env.quietly(&["worktrees", "--json"]).json()[0]["commit"], json!(commit));
        stays(&env, &child, "unmerged", &format!("git merge {commit}"));
        git(&env, &["merge", "-q", &commit]);
        let ran = env.quietly(&["worktrees", "remove", &child]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(env.quietly(&["worktrees", "--json"]).json().is_empty());
        assert_eq!(git(&env, &["worktree", "list"]).lines().count(), 1);
        assert_eq!(env.read("new.txt"), "x\n");
    }
}

#[test]
fn the_beginning_of_an_id_means_its_worktree_and_nothing_means_none() {
    let (env, _, child) = after(CHANGE, "echo x > new.txt");
    for name in ["", " ", "nobody"] {
        let ran = env.quietly(&["worktrees", "remove", name, "--force"]);
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("no worktree matches {name:?}")), "{}", ran.stderr);
    }
    assert!(folder(&env, &child).join("new.txt").exists());
    forced(&env, &child[..child.len() - 2]);
}

#[test]
fn another_worktree_of_the_users_that_git_cannot_find_is_not_forgotten() {
    let env = repository(&dispatching(MERGE));
    let away = env.path("away");
    git(&env, &["worktree", "add", "-q", "-b", "mine", away.to_str().unwrap()]);
    std::fs::rename(&away, env.path("unplugged")).unwrap();
    one(&env, &run(&["--mode", "yolo"]), 0);
    assert_eq!(env.read("a.txt"), "changed");
    std::fs::rename(env.path("unplugged"), &away).unwrap();
    assert!(git(&env, &["worktree", "list"]).contains("[mine]"));
}

#[test]
fn what_git_ignores_is_named_and_kept() {
    let (env, parent, child) = after(
        MERGE,
        "mkdir target; echo built > target/out; echo KEY > .env; echo x > new.txt; printf \"target/\\n.env\\n.stepwell/\\n\" > .gitignore",
    );
    assert_eq!(env.read("new.txt"), "x\n");
    let told = told(&env, &parent);
    assert!(told.contains("are merged into the checked-out branch"), "{told}");
    assert!(told.contains("what git ignores, and nothing else keeps: .env, target/"), "{told}");
    assert!(!told.contains("its worktree was removed"), "{told}");
    let listed = env.quietly(&["worktrees", "--json"]).json();
    assert_eq!(listed[0]["paths"], json!([".env", "target/"]));
    assert!(env.quietly(&["worktrees"]).stdout.contains("ignored: .env, target/"));
    stays(&env, &child, "ignored", ".env, target/");
    assert!(folder(&env, &child).join("target/out").exists());
    forced(&env, &child);
}

/// A merge of what a subagent did, into a workspace with files that git ignores, is refused.
fn in_the_way(meanwhile: &str, command: &str) {
    let env = repository(&dispatching(MERGE));
    env.file(".gitignore", ".stepwell/\n.env\ndata/\nout\n");
    env.file("kept/tracked.txt", "tracked");
    env.file("kept/.gitignore", "*.log\n");
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "ignore"]);
    let mine = [".env", "data/results.csv", "out", "kept/mine.log"];
    for path in mine {
        env.file(path, "mine");
    }
    let work = env.work();
    env.file(
        "worker.yaml",
        &format!(
            "- text: I work.\n  calls:\n    - tool: run_command\n      arguments: {{command: '(cd {}; {meanwhile}); echo x > new.txt; {command}; git add .; git commit -qm work'}}\n- {{text: Worked.}}\n",
            work.display()
        ),
    );
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    let said = told(&env, done["session_id"].as_str().unwrap());
    assert!(said.contains("could not be merged"), "{command}: {said}");
    assert!(said.contains("kept in"), "{command}: {said}");
    for path in mine {
        assert_eq!(env.read(path), "mine", "{command}: {path}");
    }
    assert!(!work.join("new.txt").exists(), "{command}");
    assert_eq!(env.read("kept/tracked.txt"), "tracked", "{command}");
    assert_eq!(state(&env), "unmerged", "{command}");
}

#[test]
fn a_merge_takes_nothing_of_the_users_that_git_ignores() {
    // Fast forward, and as a merge of two commits.
    for meanwhile in ["true", "git commit -q --allow-empty -m other"] {
        in_the_way(meanwhile, "echo theirs > .env; git add -f .env");
        in_the_way(meanwhile, "echo theirs > data; git add -f data");
        in_the_way(meanwhile, "mkdir out; echo theirs > out/a; git add -f out/a");
        in_the_way(meanwhile, "git rm -qr kept; echo theirs > kept; git add kept");
    }
}

#[test]
fn a_worktree_in_which_something_else_is_checked_out_is_kept() {
    let (env, parent, child) = after(CHANGE, "git checkout -q --detach");
    assert!(told(&env, &parent).contains("something other than"), "{}", told(&env, &parent));
    stays(&env, &child, "elsewhere", "is checked out in it");
    forced(&env, &child);
}

#[test]
fn a_repository_within_a_worktree_is_neither_merged_nor_lost() {
    let make = "git init -q sub; cd sub; echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm x";
    let (env, parent, child) = after(MERGE, make);
    let said = told(&env, &parent);
    assert!(said.contains("a git repository of its own (sub)"), "{said}");
    assert!(!said.contains("its worktree was removed") && !said.contains("are merged"), "{said}");
    assert!(!git(&env, &["ls-files", "-s"]).contains("160000"));
    stays(&env, &child, "nested", "git repositories of their own: sub");
    assert!(folder(&env, &child).join("sub/.git").exists());
    forced(&env, &child);

    // Nor if the subagent committed the link itself, and the user merged that.
    let (env, parent, child) = after(MERGE, &format!("({make}); git add -A; git commit -qm link"));
    let said = told(&env, &parent);
    assert!(said.contains("a git repository of its own (sub)"), "{said}");
    assert!(!git(&env, &["ls-files", "-s"]).contains("160000"));
    git(&env, &["merge", "-q", &format!("stepwell/{child}")]);
    stays(&env, &child, "nested", "git repositories of their own: sub");
    assert!(folder(&env, &child).join("sub/x").exists());
}

#[test]
fn a_branch_that_no_session_made_is_neither_listed_nor_removed() {
    let (env, _, _) = after(MERGE, "echo x > new.txt");
    // Merged into what is checked out; the name of a session that has no worktree; checked out.
    let looker = ["run", "look", "--model", "script:looker.yaml"];
    let session = one(&env, &looker, 0)["session_id"].as_str().unwrap().to_owned();
    for name in ["feature", &session, "mine"] {
        git(&env, &["branch", &format!("stepwell/{name}")]);
    }
    git(&env, &["checkout", "-q", "stepwell/mine"]);
    assert!(env.quietly(&["worktrees", "--json"]).json().is_empty());
    assert!(!sweep(&env).stderr.contains("worktree"));
    for name in ["feature", &session, "mine"] {
        for force in [&[][..], &["--force"]] {
            let ran = env.quietly(&[&["worktrees", "remove", name], force].concat());
            assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        }
    }
    assert_eq!(git(&env, &["branch", "--list", "stepwell/*"]).lines().count(), 3);
    assert_eq!(git(&env, &["rev-parse", "--abbrev-ref", "HEAD"]).trim(), "stepwell/mine");
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_not_removed_even_by_force() {
    let (env, _, child) = after(CHANGE, "echo x > new.txt");
    let branch = format!("stepwell/{child}");
    let refused = |place: &std::path::Path| {
        let place = std::fs::canonicalize(place).unwrap();
        let listed = env.quietly(&["worktrees", "--json"]).json();
        assert_eq!(listed[0]["state"], "checked_out");
        assert_eq!(listed[0]["paths"], json!([place]));
        assert!(!sweep(&env).stderr.contains("worktree"));
        for force in [&[][..], &["--force"]] {
            let ran = env.quietly(&[&["worktrees", "remove", &child], force].concat());
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            let why = format!("is checked out in {}", place.display());
            assert!(
                ran.stderr.contains(&why) && ran.stderr.contains("git switch"),
                "{}",
                ran.stderr
            );
        }
        assert!(git(&env, &["branch", "--list", "stepwell/*"]).contains(&child));
    };
    // In the workspace, of which it is then a part.
    git(&env, &["worktree", "remove", folder(&env, &child).to_str().unwrap()]);
    git(&env, &["checkout", "-q", &branch]);
    refused(&env.work());
    git(&env, &["checkout", "-q", "main"]);
    let away = env.path("away");
    git(&env, &["worktree", "add", "-q", away.to_str().unwrap(), &branch]);
    refused(&away);
    git(&env, &["worktree", "remove", away.to_str().unwrap()]);
    stays(&env, &child, "unmerged", "commits that are not merged");
    forced(&env, &child);
}

/// Goes back to just after a session's dispatch began, in the middle of a call that has ended.
fn into_the_call(env: &TestEnv, parent: &str, what: &str) {
    let started = env.quietly(&["log", parent, "--kind", "tool_started"]).json();
    let at = started[0]["seq"].to_string();
    let ran = env.quietly(&["rewind", parent, "--to", &at, what]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// What the model was told last.
fn told_last(env: &TestEnv, parent: &str) -> String {
    let messages = env.quietly(&["log", parent, "--kind", "message"]).json();
    let mut tools = messages.into_iter().filter(|it| it["body"]["role"] == "tool");
    tools.next_back().unwrap()["body"]["parts"].to_string()
}

#[test]
fn a_merge_that_a_rewind_took_back_is_told_as_it_stands() {
    let (env, parent, _) = after(MERGE, "echo changed > a.txt");
    let tip = git(&env, &["rev-parse", "HEAD"]).trim().to_owned();
    into_the_call(&env, &parent, "--both");
    assert_eq!(env.read("a.txt"), "hello");
    assert_eq!(one(&env, &["resume", &parent], 0)["output"], "All done.");
    // Nothing is merged again behind anyone's back, and nothing else is claimed.
    assert_eq!(
        (env.read("a.txt").as_str(), git(&env, &["rev-parse", "HEAD"]).trim()),
        ("hello", &*tip)
    );
    let said = told_last(&env, &parent);
    assert!(
        said.contains(&format!("their commit {tip} is part of the checked-out branch")),
        "{said}"
    );
    assert!(
        said.contains("differ from the merge")
            && said.contains("git restore --source=HEAD -- a.txt"),
        "{said}"
    );
    // The file is still the session's own: the rewind is taken back.
    let ran = env.quietly(&["rewind", &parent, "--undo", "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(env.read("a.txt"), "changed\n");
}

#[test]
fn a_merge_is_told_again_as_done_if_its_files_were_left_and_as_gone_if_its_commit_is() {
    let (env, parent, _) = after(MERGE, "echo changed > a.txt");
    into_the_call(&env, &parent, "--chat");
    let versions = env.quietly(&["files", &parent, "--json"]).json().len();
    one(&env, &["resume", &parent], 0);
    let said = told_last(&env, &parent);
    assert!(
        said.contains("are merged into the checked-out branch; its worktree was removed"),
        "{said}"
    );
    // It changed nothing now.
    assert_eq!(env.quietly(&["files", &parent, "--json"]).json().len(), versions);
    into_the_call(&env, &parent, "--both");
    let tip = git(&env, &["rev-parse", "HEAD"]).trim().to_owned();
    git(&env, &["reset", "-q", "--hard", "HEAD~1"]);
    one(&env, &["resume", &parent], 0);
    let said = told_last(&env, &parent);
    assert!(said.contains("no longer part of the checked-out branch"), "{said}");
    assert!(said.contains(&format!("git merge {tip}")), "{said}");
}

#[test]
fn work_that_was_kept_and_merged_or_removed_since_is_told_so() {
    let (env, parent, child) = after(CHANGE, "echo changed > a.txt");
    git(&env, &["merge", "-q", &format!("stepwell/{child}")]);
    into_the_call(&env, &parent, "--chat");
    one(&env, &["resume", &parent], 0);
    assert!(told_last(&env, &parent).contains("are merged now"));
    let (env, parent, child) = after(CHANGE, "echo changed > a.txt");
    forced(&env, &child);
    into_the_call(&env, &parent, "--chat");
    one(&env, &["resume", &parent], 0);
    assert!(told_last(&env, &parent).contains("which was removed since"));
}

#[test]
fn sessions_count_what_subagents_cost() {
    let env = repository(&dispatching(MERGE));
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    let total = done["costs"]["total_cost_usd"].to_string();
    let listed = env.quietly(&["sessions", "--json"]).json();
    assert_eq!(listed[0]["with_subagents"]["cost"].to_string(), total);
    assert!(
        env.quietly(&["sessions"])
            .stdout
            .contains(&format!("${:.4}", total.parse::<f64>().unwrap()))
    );
}
