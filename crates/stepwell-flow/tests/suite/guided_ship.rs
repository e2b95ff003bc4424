//! The commits of guided work, and obstacles to them.

use serde_json::{Value, json};
use stepwell::Status;

use crate::guided::{came, done, git, project, run, says, work, writes};
use crate::harness::Harness;

fn script(file: &str) -> Value {
    let task = json!({ "id": "1", "action": "create", "description": "Write", "files": [file] });
    json!({ "lanes": {
        "plan": [says(json!({ "tasks": [task] }))],
        "task-1": [writes(file, "echo one\n"), writes("Makefile", "check:\n"), done()],
        "review": [says(json!({ "verdict": "pass" }))],
        "ship": [says("calc: one line")],
    } })
}

const ASKED: &str = "    yes: [discuss, plan, execute]\n";

/// Work that is done, and asks about its commit.
fn asks(dir: &tempfile::TempDir) -> Harness {
    let root = dir.path().join("project");
    project(&root);
    let harness = work(&root, ASKED, &script("calc.sh"));
    pauses_at(&harness, "work/ship/1");
    harness
}

fn pauses_at(harness: &Harness, gate: &str) -> String {
    let ended = run(harness);
    assert_eq!(ended.status, Status::Paused, "{ended:?}");
    let [open] = &*ended.open else { panic!("{:?}", ended.open) };
    assert_eq!(open.id, gate);
    open.prompt.clone()
}

/// The output of work that succeeds.
fn succeeds(harness: &Harness) -> String {
    let ended = run(harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    ended.output.as_str().unwrap().to_owned()
}

#[test]
fn what_its_user_committed_meanwhile_is_not_committed_again() {
    let dir = tempfile::tempdir().unwrap();
    let harness = asks(&dir);
    git(&harness.root, &["add", "calc.sh", "Makefile"]);
    git(&harness.root, &["commit", "-q", "-m", "mine"]);
    harness.answer("work/ship/1", "commit");
    let output = succeeds(&harness);
    assert!(output.ends_with("; nothing is left to commit."), "{output}");
    assert_eq!(came(&harness).commits, ["mine", "begin"]);
}

#[test]
fn a_sentence_at_the_question_commits_nothing_and_is_the_reason() {
    for sentence in ["wait, the tests are missing", "yes but run the tests first"] {
        let dir = tempfile::tempdir().unwrap();
        let harness = asks(&dir);
        harness.answer("work/ship/1", sentence);
        let output = succeeds(&harness);
        let end = format!("; nothing was committed: you said {sentence:?}.");
        assert!(output.ends_with(&end), "{output}");
        assert_eq!(came(&harness).commits, ["begin"]);
    }
    // Changing only the message is another answer.
    let dir = tempfile::tempdir().unwrap();
    let harness = asks(&dir);
    harness.answer("work/ship/1", "message: calc: in my words");
    succeeds(&harness);
    assert_eq!(came(&harness).commits, ["calc: in my words", "begin"]);
}

#[test]
fn what_is_left_after_its_user_committed_a_part_is_shown_again() {
    let dir = tempfile::tempdir().unwrap();
    let harness = asks(&dir);
    git(&harness.root, &["commit", "-q", "-m", "mine", "Makefile"]);
    harness.answer("work/ship/1", "commit");
    let prompt = pauses_at(&harness, "work/ship/2");
    assert!(prompt.contains("calc.sh") && !prompt.contains("Makefile"), "{prompt}");
    harness.answer("work/ship/2", "commit");
    succeeds(&harness);
    assert_eq!(came(&harness).committed, "calc.sh");
}

#[test]
fn a_commit_is_asked_about_again_on_another_branch() {
    let dir = tempfile::tempdir().unwrap();
    let harness = asks(&dir);
    git(&harness.root, &["switch", "-q", "-c", "other"]);
    harness.answer("work/ship/1", "commit");
    pauses_at(&harness, "work/ship/2");
}

#[test]
fn its_own_commit_is_found_under_later_ones() {
    let dir = tempfile::tempdir().unwrap();
    let harness = asks(&dir);
    // The state after a process died between the commit and its record.
    git(&harness.root, &["add", "calc.sh", "Makefile"]);
    git(&harness.root, &["commit", "-q", "-m", "calc: one\n\nStepwell-Session: run"]);
    let made = git(&harness.root, &["rev-parse", "HEAD"]);
    git(&harness.root, &["commit", "-q", "--allow-empty", "-m", "later"]);
    harness.answer("work/ship/1", "commit");
    let output = succeeds(&harness);
    assert!(output.ends_with(&format!("committed as {}.", &made[..10])), "{output}");
}

#[test]
fn nobody_is_asked_about_a_commit_while_a_merge_is_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    git(&root, &["switch", "-q", "-c", "other"]);
    std::fs::write(root.join("other.txt"), "other\n").unwrap();
    git(&root, &["add", "other.txt"]);
    git(&root, &["commit", "-q", "-m", "other"]);
    git(&root, &["switch", "-q", "main"]);
    git(&root, &["merge", "-q", "--no-ff", "--no-commit", "other"]);
    let harness = work(&root, "    yes: [discuss, plan, execute, ship]\n", &script("calc.sh"));
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Failed, "{ended:?}");
    let why = ended.error.unwrap().to_string();
    assert!(why.contains("a merge is under way in git. Finish or abort it, then resume"), "{why}");
    assert_eq!(git(&root, &["diff", "--cached", "--name-only"]), "other.txt");
    git(&root, &["commit", "-q", "-m", "merged"]);
    succeeds(&harness);
    assert_eq!(came(&harness).commits[..2], ["calc: one line", "merged"]);
    assert_eq!(came(&harness).committed, "Makefile\ncalc.sh");
}

#[test]
fn a_commit_that_fails_leaves_what_is_staged_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let harness = asks(&dir);
    let root = &harness.root;
    std::fs::write(root.join("mine.txt"), "mine\n").unwrap();
    git(root, &["add", "mine.txt"]);
    let before = git(root, &["status", "--porcelain"]);
    assert!(before.contains("?? calc.sh"), "{before}");
    let lock = root.join(".git/refs/heads/main.lock");
    std::fs::write(&lock, "").unwrap();
    harness.answer("work/ship/1", "commit");
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Failed, "{ended:?}");
    assert_eq!(git(root, &["status", "--porcelain"]), before);
    std::fs::remove_file(&lock).unwrap();
    succeeds(&harness);
    assert_eq!(came(&harness).committed, "Makefile\ncalc.sh");
    assert_eq!(git(root, &["status", "--porcelain"]), "A  mine.txt");
}

#[test]
fn what_changed_in_a_repository_of_its_own_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let inner = root.join("m");
    project(&inner);
    git(&root, &["-c", "advice.addEmbeddedRepo=false", "add", "m"]);
    git(&root, &["commit", "-q", "-m", "with m"]);
    let mut script = script("m/calc.sh");
    let harness = work(&root, ASKED, &script);
    let prompt = pauses_at(&harness, "work/ship/1");
    let told = "m/calc.sh is in a git repository of its own: commit that there";
    assert!(prompt.contains(told), "{prompt}");
    harness.answer("work/ship/1", "commit");
    let output = succeeds(&harness);
    assert!(output.ends_with(&format!("; {told}.")), "{output}");
    assert_eq!(came(&harness).committed, "Makefile");
    // Without other changes nothing is committed, and the user sees why.
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("project");
    project(&other);
    project(&other.join("m"));
    git(&other, &["-c", "advice.addEmbeddedRepo=false", "add", "m"]);
    git(&other, &["commit", "-q", "-m", "with m"]);
    script["lanes"]["task-1"] = json!([writes("m/calc.sh", "echo one\n"), done()]);
    let output = succeeds(&work(&other, ASKED, &script));
    assert!(output.ends_with(&format!("nothing was committed: {told}.")), "{output}");
}

#[test]
fn a_commit_that_is_not_signed_though_its_user_signs_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    git(&root, &["config", "commit.gpgSign", "true"]);
    let harness = work(&root, ASKED, &script("calc.sh"));
    let prompt = pauses_at(&harness, "work/ship/1");
    assert!(prompt.contains("It is not signed: git commit --amend -S signs it."), "{prompt}");
    harness.answer("work/ship/1", "commit");
    let output = succeeds(&harness);
    assert!(output.ends_with(", not signed."), "{output}");
}

#[test]
fn what_changes_while_a_check_runs_is_not_committed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let mut script = script("calc.sh");
    let checks = ["echo mine >> test.sh; echo report > report.txt"];
    let task = json!({ "id": "1", "description": "Write" });
    script["lanes"]["plan"] = json!([says(json!({ "tasks": [task], "checks": checks }))]);
    let harness = work(&root, "    yes: [discuss, plan, execute, ship]\n", &script);
    succeeds(&harness);
    assert_eq!(came(&harness).committed, "Makefile\ncalc.sh");
    assert_eq!(git(&root, &["status", "--porcelain"]), "M test.sh\n?? report.txt");
}

#[test]
fn a_commit_on_no_branch_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    git(&root, &["switch", "-q", "--detach"]);
    let harness = work(&root, ASKED, &script("calc.sh"));
    let prompt = pauses_at(&harness, "work/ship/1");
    assert!(prompt.contains("No branch is checked out"), "{prompt}");
    harness.answer("work/ship/1", "commit");
    let output = succeeds(&harness);
    assert!(output.ends_with(", on no branch: git branch NAME keeps it."), "{output}");
}

#[test]
fn a_file_that_needs_a_filter_is_left_to_its_user() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    std::fs::write(root.join(".gitattributes"), "*.sh filter=big\n").unwrap();
    git(&root, &["config", "filter.big.clean", "sed s/one/pointer/"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "filtered"]);
    let harness = work(&root, "    yes: [discuss, plan, execute, ship]\n", &script("calc.sh"));
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Failed, "{ended:?}");
    let why = ended.error.unwrap().to_string();
    assert!(why.contains("calc.sh needs the filter big"), "{why}");
    git(&root, &["add", "calc.sh", "Makefile"]);
    git(&root, &["commit", "-q", "-m", "mine"]);
    let output = succeeds(&harness);
    assert!(output.ends_with("; nothing is left to commit."), "{output}");
}

#[test]
fn nobody_is_asked_about_what_their_user_committed_after_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let merging = root.join(".git/MERGE_HEAD");
    std::fs::write(&merging, git(&root, &["rev-parse", "HEAD"])).unwrap();
    let harness = work(&root, ASKED, &script("calc.sh"));
    assert_eq!(run(&harness).status, Status::Failed);
    std::fs::remove_file(&merging).unwrap();
    git(&root, &["add", "calc.sh", "Makefile"]);
    git(&root, &["commit", "-q", "-m", "mine"]);
    let output = succeeds(&harness);
    assert!(output.ends_with("; nothing is left to commit."), "{output}");
    assert_eq!(came(&harness).gates, Vec::<String>::new());
}
