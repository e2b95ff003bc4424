//! Kills guided work whose tasks are done by subagents (kill -9) at writes of the store. However it
//! is cut off, the resumed work comes to the same end: no subagent more, nothing merged twice, and
//! its own user is never refused.
//!
//! By default a few points are tried, so that it takes some seconds; with
//! `STEPWELL_FLOW_KILLS=all`, every one.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, Stdio};

use stepwell::model::{Kind, Origin, TaskStatus};
use stepwell::sqlite::Access;
use stepwell::store::query::Query;
use stepwell::{Event, SessionId, Status};
use stepwell_flow::guided::Outline;
use stepwell_flow::spec::YesPhase;
use stepwell_runtime::{Error, ResumeRequest, RunOptions};
use stepwell_testkit::kill;

use crate::work::{Repository, git, model};

/// What every write of the store passes: an append, a lease.
const KINDS: [&str; 2] = ["write.before_begin", "write.after_commit"];

/// How many points are left out between two by default.
const STRIDE: usize = 41;

#[expect(clippy::disallowed_methods, reason = "a child gets its arguments in its environment")]
fn var(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The session of the work, if it began.
fn session(place: &Repository) -> Option<SessionId> {
    let well = place.runtime.workspace().open_existing(Access::Read).ok()?;
    let sessions = well.list(&Query::default()).unwrap().sessions;
    sessions.into_iter().find(|it| it.head.origin == Origin::Root).map(|it| it.head.id)
}

#[test]
#[ignore = "run by the other test here, as a process that it kills"]
fn child() {
    let var = |name: &str| var(name).unwrap();
    let folder = var("WORK_FOLDER");
    let place = Repository::at(Path::new(&folder), model);
    let (kind, n) = (var("WORK_KIND"), var("WORK_N").parse().unwrap());
    kill::at(kind, n);
    stepwell::failpoint::on_failpoint(kill::pass);
    let handle = match session(&place) {
        Some(id) => {
            let options = RunOptions { mode: None, ..RunOptions::default() };
            let request = ResumeRequest::new(id.clone(), place.runtime.trust(&id));
            match place.runtime.resume(ResumeRequest { options, ..request }) {
                // It was killed when it had ended, before it let go of the session.
                Err(Error::Finished { .. }) => return,
                resumed => resumed.unwrap(),
            }
        }
        None => {
            let yes = vec![YesPhase::Discuss, YesPhase::Plan, YesPhase::Execute, YesPhase::Ship];
            let outline = Outline { yes, parallel: NonZeroU32::new(2), ..Outline::default() };
            place.runtime.start_work(Repository::request(outline)).unwrap()
        }
    };
    let report = handle.join().unwrap();
    assert_eq!(report.status, Status::Success, "{report:?}");
    assert_eq!(place.strict.rejected(), 0);
    let seen = KINDS.map(kill::passed);
    std::fs::write(Path::new(&folder).join("seen"), format!("{} {}", seen[0], seen[1])).unwrap();
}

/// Runs the work in its own process, which may be killed. Returns whether it ended by itself.
fn run(folder: &Path, kind: &str, n: usize) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "work_kills::child", "--nocapture"]);
    command.env("WORK_FOLDER", folder).env("WORK_KIND", kind).env("WORK_N", n.to_string());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let code = output.status.code();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(code.is_none() || code == Some(0), "killed at {kind} {n}: {stderr}");
    code == Some(0)
}

/// What came of the work, without what differs from run to run.
#[derive(Debug, PartialEq)]
struct Came {
    status: Status,
    phases: Vec<String>,
    tasks: Vec<(String, TaskStatus)>,
    /// What the subagents are called, sorted.
    subagents: Vec<String>,
    /// The checkpoints of tasks, sorted: they end in any order.
    checkpoints: Vec<String>,
    gates: usize,
    commits: Vec<String>,
    files: [String; 2],
    /// What git sees that is not committed, and its worktrees.
    rest: [String; 2],
}

fn came(folder: &Path) -> Came {
    let place = Repository::at(folder, model);
    let well = place.runtime.workspace().open_existing(Access::Read).unwrap();
    let id = session(&place).unwrap();
    let sessions = well.list(&Query::default()).unwrap().sessions;
    let ours = Origin::Subagent { parent: id.clone() };
    let below = sessions.into_iter().filter(|it| it.head.origin == ours);
    let facts = |kind: Kind| well.store().keyed_events(&id, &[kind]).unwrap().into_iter();
    let phases = facts(Kind::Phase).filter_map(|fact| match fact.event {
        Event::Phase(change) => Some(change.to.to_string()),
        _ => None,
    });
    let checkpoints = facts(Kind::Checkpoint).filter_map(|fact| match fact.event {
        Event::Checkpoint(it) => Some(it.name),
        _ => None,
    });
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };
    let root = place.root();
    let file = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let worktrees = git(&root, &["worktree", "list"]).lines().count().to_string();
    let commits = git(&root, &["log", "--format=%s"]);
    let commits = commits.lines().map(str::to_owned).collect();
    Came {
        status: well.info(&id).unwrap().head.status,
        phases: phases.collect(),
        tasks: well.work(&id).unwrap().tasks.iter().map(|it| (it.id.clone(), it.status)).collect(),
        subagents: sorted(below.map(|it| it.head.task).collect()),
        checkpoints: sorted(checkpoints.collect()),
        gates: facts(Kind::Gate).count(),
        commits: sorted(commits),
        files: [file("one.txt"), file("two.txt")],
        rest: [git(&root, &["status", "--porcelain"]), worktrees],
    }
}

#[test]
fn work_by_subagents_survives_kills() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), "nowhere", 0));
    let expected = came(folder.path());
    assert_eq!((expected.status, expected.subagents.len()), (Status::Success, 3));
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    let counts: Vec<usize> = seen.split(' ').map(|n| n.parse().unwrap()).collect();
    assert!(counts.iter().all(|count| *count > 80), "{counts:?}");
    let long = var("STEPWELL_FLOW_KILLS").is_some_and(|kills| kills == "all");
    for (kind, count) in KINDS.into_iter().zip(counts) {
        for n in (1..=count).step_by(if long { 1 } else { STRIDE }) {
            let folder = tempfile::tempdir().unwrap();
            if !run(folder.path(), kind, n) {
                assert!(run(folder.path(), "nowhere", 0), "killed at {kind} {n}");
            }
            assert_eq!(came(folder.path()), expected, "killed at {kind} {n}");
            println!("{kind} {n} of {count}");
        }
    }
}
