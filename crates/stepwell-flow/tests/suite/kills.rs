//! Killed (kill -9) before and after every call of the model and every write: a flow that is
//! taken up again makes exactly the missing calls, and comes to the same.
//!
//! In the default run each small flow is killed once at each of them. Before a write the disk
//! holds what it held after the write or the call before it, so that point is left to the long
//! form: with `STEPWELL_FLOW_KILLS=all` a flow is killed before each write too, and killed again
//! when it is taken up.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::shop::{Meet, Shop};
use crate::small;

/// Points at which a process dies. The last two are those of every write of the store: an
/// append, a lease.
const KINDS: [&str; 4] = ["ask", "answered", "write.before_begin", "write.after_commit"];

/// Where the process dies: the Nth time at a kind of point; zero, nowhere.
#[derive(Debug)]
struct Fate {
    kind: String,
    n: usize,
    seen: [AtomicUsize; KINDS.len()],
}

static FATE: OnceLock<Fate> = OnceLock::new();

fn meet(name: &str) {
    let Some(fate) = FATE.get() else { return };
    let Some(place) = KINDS.iter().position(|kind| *kind == name) else { return };
    let seen = fate.seen[place].fetch_add(1, Ordering::SeqCst) + 1;
    if fate.kind == name && seen == fate.n {
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
    }
}

/// The flow of a pattern, with someone who answers every question.
fn shop(root: &Path, pattern: &str) -> Shop {
    let all = small::all();
    let (_, small) = all.iter().find(|(name, _)| *name == pattern).unwrap();
    // A reviewer who wants one more iteration and agrees to everything else.
    let shop = Shop::new(root, &small.spec, &small.script).answering("*", "approved");
    shop.answering("review/1", if pattern == "evaluator" { "better" } else { "approved" })
        .answering("review/2", "better")
}

#[expect(clippy::disallowed_methods, reason = "a child is told what to do in its environment")]
fn var(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
#[ignore = "the process that the other tests here start and kill"]
fn child() {
    let var = |name: &str| var(name).unwrap();
    let (root, kind, n) = (var("FLOW_ROOT"), var("FLOW_KIND"), var("FLOW_N").parse().unwrap());
    FATE.set(Fate { kind, n, seen: Default::default() }).unwrap();
    stepwell::on_failpoint(meet);
    let mut shop = shop(Path::new(&root), &var("FLOW_PATTERN"));
    shop.meet = Arc::new(meet) as Meet;
    let ended = shop.run().unwrap();
    assert_eq!(ended.status, stepwell::Status::Success, "{ended:?}");
    let seen = FATE.get().unwrap().seen.iter().map(|n| n.load(Ordering::SeqCst).to_string());
    std::fs::write(Path::new(&root).join("seen"), seen.collect::<Vec<_>>().join(" ")).unwrap();
}

/// Runs a flow in a process of its own, which may die. Says whether it came to its end.
fn run(root: &Path, pattern: &str, kind: &str, n: usize) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "kills::child", "--nocapture"]);
    command.env("FLOW_ROOT", root).env("FLOW_PATTERN", pattern);
    command.env("FLOW_KIND", kind).env("FLOW_N", n.to_string());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let code = output.status.code();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(code.is_none() || code == Some(0), "{pattern}, killed at {kind} {n}: {said}");
    code == Some(0)
}

fn is_long() -> bool {
    var("STEPWELL_FLOW_KILLS").is_some_and(|kills| kills == "all")
}

/// Takes from a sorted list what is in another one.
fn without(all: &[String], taken: &[String]) -> Vec<String> {
    let mut left = all.to_vec();
    for it in taken {
        let place = left.iter().position(|call| call == it).expect("it was to be called");
        left.remove(place);
    }
    left
}

fn is_killed_everywhere(pattern: &str) {
    let whole = tempfile::tempdir().unwrap();
    assert!(run(whole.path(), pattern, "nowhere", 0));
    let full = shop(whole.path(), pattern);
    let (expected, calls) = (full.outcome(), full.calls());
    assert_eq!(calls, full.answered());
    let seen = std::fs::read_to_string(whole.path().join("seen")).unwrap();
    let counts: Vec<usize> = seen.split(' ').map(|n| n.parse().unwrap()).collect();
    assert!(counts[0] >= 4 && counts[2] > 10, "{counts:?}");
    for (kind, count) in KINDS.into_iter().zip(counts) {
        if kind == "write.before_begin" && !is_long() {
            continue;
        }
        for n in 1..=count {
            let seconds: &[(&str, usize)] = if is_long() {
                &[
                    ("nowhere", 0),
                    ("ask", 1),
                    ("answered", 1),
                    ("write.before_begin", 4),
                    ("write.after_commit", 5),
                ]
            } else {
                &[("nowhere", 0)]
            };
            for (second, m) in seconds {
                check(pattern, (kind, n), (second, *m), (&calls, &expected));
            }
        }
    }
}

fn check(
    pattern: &str,
    (kind, n): (&str, usize),
    (second, m): (&str, usize),
    (calls, expected): (&[String], &crate::shop::Outcome),
) {
    let dir = tempfile::tempdir().unwrap();
    let place = format!("{pattern}, killed at {kind} {n}, then at {second} {m}");
    let mut over = run(dir.path(), pattern, kind, n);
    let shop = shop(dir.path(), pattern);
    for (kind, n) in [(second, m), ("nowhere", 0)] {
        if over {
            break;
        }
        let begun = dir.path().join(".stepwell").exists()
            && shop.well().store().exists(&crate::shop::id()).unwrap();
        let answered = if begun { shop.answered() } else { Vec::new() };
        shop.calls();
        over = run(dir.path(), pattern, kind, n);
        if over {
            let missing = without(calls, &answered);
            assert_eq!(shop.calls(), missing, "{place}: exactly the missing calls are made");
        }
    }
    assert!(over, "{place}");
    assert_eq!(shop.outcome(), *expected, "{place}: it comes to the same");
}

#[test]
fn a_chain_is_killed_everywhere() {
    is_killed_everywhere("chain");
}

#[test]
fn a_workflow_is_killed_everywhere() {
    is_killed_everywhere("workflow");
}

#[test]
fn a_routing_is_killed_everywhere() {
    is_killed_everywhere("routing");
}

#[test]
fn parallel_branches_are_killed_everywhere() {
    is_killed_everywhere("parallel");
}

#[test]
fn an_evaluator_loop_is_killed_everywhere() {
    is_killed_everywhere("evaluator");
}

#[test]
fn an_orchestrator_is_killed_everywhere() {
    is_killed_everywhere("orchestrator");
}

#[test]
fn a_graph_is_killed_everywhere() {
    is_killed_everywhere("graph");
}
