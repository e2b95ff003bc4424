//! Kills a flow (kill -9) before and after every call of the model and every write. The resumed
//! flow makes exactly the missing calls, and has the same result.
//!
//! By default each sample flow is killed once at each of these points, except before writes:
//! there the disk has the same content as after the previous write or call. With
//! `STEPWELL_FLOW_KILLS=all` a flow is killed before each write too, and again after it was
//! resumed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use stepwell_testkit::kill;

use crate::harness::{Harness, Hook};
use crate::samples;

/// Points at which a process is killed. The last two are hit by every write of the store: an
/// append, a lease.
pub(crate) const KINDS: [&str; 4] = ["ask", "answered", "write.before_begin", "write.after_commit"];

/// The sample flow of a pattern, with an answer for every question.
fn harness(root: &Path, pattern: &str) -> Harness {
    if pattern == "guided" {
        return crate::guided::calculator(root);
    }
    let all = samples::all();
    let (_, sample) = all.iter().find(|(name, _)| *name == pattern).unwrap();
    // The reviewer wants one more iteration and approves everything else.
    let harness = Harness::new(root, &sample.spec, &sample.script).answering("*", "approved");
    harness
        .answering("review/1", if pattern == "evaluator" { "better" } else { "approved" })
        .answering("review/2", "better")
}

#[expect(clippy::disallowed_methods, reason = "a child gets its arguments in its environment")]
fn var(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
#[ignore = "run by the other tests here, as a process that they kill"]
fn child() {
    let var = |name: &str| var(name).unwrap();
    let (root, kind, n) = (var("FLOW_ROOT"), var("FLOW_KIND"), var("FLOW_N").parse().unwrap());
    kill::at(kind, n);
    stepwell::failpoint::on_failpoint(kill::pass);
    let mut harness = harness(Path::new(&root), &var("FLOW_PATTERN"));
    harness.hook = Arc::new(kill::pass) as Hook;
    let ended = harness.run().unwrap();
    assert_eq!(ended.status, stepwell::Status::Success, "{ended:?}");
    let seen = KINDS.map(|kind| kill::passed(kind).to_string());
    std::fs::write(Path::new(&root).join("seen"), seen.join(" ")).unwrap();
}

/// Where a run is to be killed.
#[derive(Clone, Copy)]
pub(crate) struct Kill<'a> {
    pub(crate) kind: &'a str,
    pub(crate) n: usize,
}

impl std::fmt::Display for Kill<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.n)
    }
}

pub(crate) const NEVER: Kill<'_> = Kill { kind: "nowhere", n: 0 };

/// Runs a flow in its own process, which may be killed. Returns whether it ended by itself.
pub(crate) fn run(root: &Path, pattern: &str, kill: Kill<'_>) -> bool {
    run_after(root, pattern, kill, NEVER)
}

/// The same of one that was killed before.
pub(crate) fn run_after(root: &Path, pattern: &str, kill: Kill<'_>, before: Kill<'_>) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "kills::child", "--nocapture"]);
    command.env("FLOW_ROOT", root).env("FLOW_PATTERN", pattern);
    command.env("FLOW_KIND", kill.kind).env("FLOW_N", kill.n.to_string());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let code = output.status.code();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let killed = format!("killed at {kill}, before at {before}");
    assert!(code.is_none() || code == Some(0), "{pattern}, {killed}: {stderr}");
    code == Some(0)
}

pub(crate) fn is_long() -> bool {
    var("STEPWELL_FLOW_KILLS").is_some_and(|kills| kills == "all")
}

/// Removes the items of one list from another.
pub(crate) fn without(all: &[String], removed: &[String]) -> Vec<String> {
    let mut left = all.to_vec();
    for it in removed {
        let index = left.iter().position(|call| call == it).expect("an expected call");
        left.remove(index);
    }
    left
}

/// The result of a run that is not killed.
struct Expected {
    calls: Vec<String>,
    outcome: crate::harness::Outcome,
}

fn kill_everywhere(pattern: &str) {
    let dir = tempfile::tempdir().unwrap();
    assert!(run(dir.path(), pattern, NEVER));
    let undisturbed = harness(dir.path(), pattern);
    let expected = Expected { outcome: undisturbed.outcome(), calls: undisturbed.calls() };
    assert_eq!(expected.calls, undisturbed.answered());
    let seen = std::fs::read_to_string(dir.path().join("seen")).unwrap();
    let counts: Vec<usize> = seen.split(' ').map(|n| n.parse().unwrap()).collect();
    assert!(counts[0] >= 4 && counts[2] > 10, "{counts:?}");
    for (kind, count) in KINDS.into_iter().zip(counts) {
        if kind == "write.before_begin" && !is_long() {
            continue;
        }
        for n in 1..=count {
            let second_kills: &[Kill<'_>] = if is_long() {
                &[
                    NEVER,
                    Kill { kind: "ask", n: 1 },
                    Kill { kind: "answered", n: 1 },
                    Kill { kind: "write.before_begin", n: 4 },
                    Kill { kind: "write.after_commit", n: 5 },
                ]
            } else {
                &[NEVER]
            };
            for second in second_kills {
                check(pattern, Kill { kind, n }, *second, &expected);
            }
        }
    }
}

fn check(pattern: &str, first: Kill<'_>, second: Kill<'_>, expected: &Expected) {
    let dir = tempfile::tempdir().unwrap();
    let case = format!("{pattern}, killed at {first}, then at {second}");
    let mut ended = run(dir.path(), pattern, first);
    let harness = harness(dir.path(), pattern);
    for kill in [second, NEVER] {
        if ended {
            break;
        }
        let begun = dir.path().join(".stepwell").exists()
            && harness.well().store().exists(&crate::harness::id()).unwrap();
        let answered = if begun { harness.answered() } else { Vec::new() };
        harness.calls();
        ended = run(dir.path(), pattern, kill);
        if ended {
            let missing = without(&expected.calls, &answered);
            assert_eq!(harness.calls(), missing, "{case}: exactly the missing calls are made");
        }
    }
    assert!(ended, "{case}");
    assert_eq!(harness.outcome(), expected.outcome, "{case}: the result is the same");
}

#[test]
fn a_chain_survives_a_kill_at_every_point() {
    kill_everywhere("chain");
}

#[test]
fn a_workflow_survives_a_kill_at_every_point() {
    kill_everywhere("workflow");
}

#[test]
fn a_routing_survives_a_kill_at_every_point() {
    kill_everywhere("routing");
}

#[test]
fn parallel_branches_survive_a_kill_at_every_point() {
    kill_everywhere("parallel");
}

#[test]
fn an_evaluator_loop_survives_a_kill_at_every_point() {
    kill_everywhere("evaluator");
}

#[test]
fn an_orchestrator_survives_a_kill_at_every_point() {
    kill_everywhere("orchestrator");
}

#[test]
fn a_graph_survives_a_kill_at_every_point() {
    kill_everywhere("graph");
}
