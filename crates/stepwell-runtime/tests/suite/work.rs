//! Guided work against a provider that rejects what vendors reject, over a real git repository.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use stepwell::error::Action;
use stepwell::model::{Answer, Kind, Origin, TaskStatus};
use stepwell::store::query::Query;
use stepwell::work::Gates;
use stepwell::{Event, Remedy, SessionId, Status};
use stepwell_agent::permission::Mode;
use stepwell_flow::guided::{Outline, WorkAgent};
use stepwell_flow::spec::{Commit, TryProgram, YesPhase};
use stepwell_runtime::inspect::open_gates;
use stepwell_runtime::{
    Error, ErrorKind, FlowOptions, Given, Patience, ResumeRequest, RunOptions, Runtime, SayRequest,
    WorkRequest,
};
use stepwell_strict::{Asked, Reply, Rules, Say, Strict};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

use crate::test_env::asked;

/// A repository, a provider, and a user who may use it.
pub(crate) struct Repository {
    folder: PathBuf,
    pub(crate) strict: Strict,
    pub(crate) runtime: Runtime,
    _tokio: tokio::runtime::Runtime,
    _temporary: Option<tempfile::TempDir>,
}

pub(crate) fn git(root: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(root).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Makes a repository of a folder, with all that is in it.
pub(crate) fn commit_all(root: &Path) {
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["config", "user.name", "Test"]);
    git(root, &["config", "user.email", "test@example.com"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "begin"]);
}

impl Repository {
    fn new(reply: impl FnMut(&Asked) -> Reply + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = Self::at(folder.path(), reply);
        Self { _temporary: Some(folder), ..made }
    }

    /// The one in a folder, which is made if it is not there.
    pub(crate) fn at(folder: &Path, reply: impl FnMut(&Asked) -> Reply + Send + 'static) -> Self {
        let root = folder.join("work");
        if !root.exists() {
            std::fs::create_dir_all(&root).unwrap();
            std::fs::write(root.join("begun.txt"), "begun\n").unwrap();
            std::fs::write(root.join(".gitignore"), ".stepwell/\n").unwrap();
            commit_all(&root);
        }
        let tokio = tokio::runtime::Builder::new_multi_thread();
        let tokio = { tokio }.worker_threads(1).enable_all().build().unwrap();
        let strict = tokio.block_on(Strict::start(Rules::default())).unwrap();
        strict.answer_with(reply);
        let config = folder.join("config");
        std::fs::create_dir_all(&config).unwrap();
        let text = format!(
            "[providers.local]\nbase_url = \"{}\"\nprotocol = \"openai\"\nkey_env = \"LOCAL_KEY\"\n\
             [prices.\"local/*\"]\ninput = \"3\"\noutput = \"15\"\n",
            strict.base_url()
        );
        std::fs::write(config.join("config.toml"), text).unwrap();
        let variables = BTreeMap::from([("LOCAL_KEY".to_owned(), strict.key().to_owned())]);
        let host = Host {
            folder: Some(root.clone()),
            home: Some(folder.to_owned()),
            config: Some(config),
            state: Some(folder.join("state")),
            environment: Arc::new(variables),
            ..Host::bare()
        };
        let wanted = Wanted { folder: Some(root), ..Wanted::default() };
        let workspace = Workspace::locate(host, wanted, Notices::to_nobody()).unwrap();
        let (folder, runtime) = (folder.to_owned(), Runtime::new(workspace));
        Self { folder, strict, runtime, _tokio: tokio, _temporary: None }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("work")
    }

    pub(crate) fn request(outline: Outline) -> WorkRequest {
        let options = RunOptions {
            model: Some("local/large".to_owned()),
            mode: Some(Mode::Yolo),
            patience: Patience::Wait,
            ..RunOptions::default()
        };
        let goal = "Two files".to_owned();
        WorkRequest { goal, outline, options, ..WorkRequest::default() }
    }
}

fn write(path: &str, content: &str) -> Reply {
    let arguments = json!({ "path": path, "content": content }).to_string();
    Say::text("I write it.").calling("call_1", "write_file", &[&arguments]).into()
}

/// What a model says, by who asks it and for what.
pub(crate) fn model(asked: &Asked) -> Reply {
    let last = asked.body["messages"].as_array().and_then(|all| all.last()).unwrap();
    let has = |text: &str| asked.text.contains(text);
    if has("You find out what a user wants") {
        return Say::text(json!({ "done": true }).to_string()).into();
    }
    if has("You plan changes") {
        let task = |id: &str, file: &str| {
            json!({ "id": id, "action": "create", "description": format!("Write {file}"),
                    "files": [file] })
        };
        let plan = json!({
            "summary": "Two files.",
            "tasks": [task("1", "one.txt"), task("2", "two.txt")],
            "checks": ["grep good one.txt", "grep good two.txt"],
        });
        return Say::text(plan.to_string()).into();
    }
    if has("You review changes") {
        return Say::text(json!({ "verdict": "pass", "summary": "fine" }).to_string()).into();
    }
    if has("You write commit messages") {
        return Say::text("files: add two").into();
    }
    if last["role"] == "tool" {
        return Say::text(json!({ "status": "done", "summary": "written" }).to_string()).into();
    }
    match (has("# Your task: 1\\n"), has("# Your task: 2\\n")) {
        // A mistake that the check finds.
        (true, _) => write("one.txt", "bad\n"),
        (_, true) => write("two.txt", "good\n"),
        _ => write("one.txt", "good\n"),
    }
}

#[test]
fn tasks_are_done_by_subagents_in_worktrees_and_what_fails_is_repaired() {
    let place = Repository::new(model);
    let yes = vec![YesPhase::Discuss, YesPhase::Plan, YesPhase::Execute, YesPhase::Ship];
    let outline = Outline { yes, parallel: NonZeroU32::new(2), ..Outline::default() };
    let handle = place.runtime.start_work(Repository::request(outline)).unwrap();
    let id = handle.id().clone();
    let report = handle.join().unwrap();
    assert_eq!(report.status, Status::Success, "{report:?}");
    assert!(report.output.starts_with("3 of 3 tasks done; all 2 checks pass"), "{}", report.output);
    assert_eq!(place.strict.rejected(), 0);
    let well = place.runtime.workspace().open_existing(stepwell::sqlite::Access::Read).unwrap();
    let tasks = well.work(&id).unwrap().tasks;
    assert!(tasks.iter().all(|task| task.status == TaskStatus::Done), "{tasks:?}");
    let sessions = well.list(&Query::default()).unwrap().sessions;
    let ours = Origin::Subagent { parent: id.clone() };
    let below = sessions.iter().filter(|it| it.head.origin == ours);
    let mut named: Vec<&str> = below.map(|it| it.head.task.as_str()).collect();
    named.sort_unstable();
    // Each is called as its task is.
    assert_eq!(named.len(), 3);
    assert!(named[2].starts_with("task fix-1-1: Make this check pass: `grep good one.txt`"));
    assert_eq!(named[..2], ["task 1: Write one.txt", "task 2: Write two.txt"]);
    // What each of them did is in the one commit that was agreed to, and its worktree is gone.
    assert_eq!(git(&place.root(), &["log", "--format=%s"]), "files: add two\nbegin");
    assert_eq!(std::fs::read_to_string(place.root().join("one.txt")).unwrap(), "good\n");
    assert_eq!(git(&place.root(), &["status", "--porcelain"]), "");
    assert_eq!(git(&place.root(), &["worktree", "list"]).lines().count(), 1);
    let checkpoints = well.store().keyed_events(&id, &[Kind::Checkpoint]).unwrap().into_iter();
    let files: BTreeMap<String, Value> = checkpoints
        .filter_map(|fact| match fact.event {
            Event::Checkpoint(it) => Some((it.name, it.metadata.get("files")?.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(files["task-1"], json!(["one.txt"]));
    assert_eq!(files["task-2"], json!(["two.txt"]));
    let head = well.info(&id).unwrap().head;
    assert_eq!(head.phase.map(stepwell::model::Phase::as_str), Some("ship"));
    assert_eq!(head.task, "Two files");
}

#[test]
fn what_subagents_did_is_committed_only_if_that_is_allowed() {
    let place = Repository::new(model);
    let yes = vec![YesPhase::Discuss, YesPhase::Plan, YesPhase::Execute];
    let outline = Outline { yes, parallel: NonZeroU32::new(2), ..Outline::default() };
    let handle = place.runtime.start_work(Repository::request(outline.clone())).unwrap();
    let open = asked(&mut handle.events());
    assert_eq!(open.gate.id, "work/ship/1");
    assert!(open.gate.prompt.contains("one.txt +1 (new)\ntwo.txt +1 (new)"), "{open:?}");
    assert_eq!(git(&place.root(), &["log", "--format=%s"]), "begin");
    handle.answer(&open.gate.id, Answer::from("no"), "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    let rest = git(&place.root(), &["status", "--porcelain"]);
    assert_eq!(rest, "?? one.txt\n?? two.txt");
    // Where nothing is to be committed, nothing is, and nobody is asked.
    let place = Repository::new(model);
    let outline = Outline { commit: Commit::Never, ..outline };
    let report = place.runtime.start_work(Repository::request(outline)).unwrap().join().unwrap();
    assert_eq!(report.status, Status::Success, "{report:?}");
    assert!(report.output.ends_with("; nothing was committed."), "{}", report.output);
    assert_eq!(git(&place.root(), &["log", "--format=%s", "--all"]), "begin");
    assert_eq!(std::fs::read_to_string(place.root().join("one.txt")).unwrap(), "good\n");
}

#[test]
fn work_that_waits_goes_on_with_the_answer_to_a_subagents_own_question() {
    let place = Repository::new(model);
    let yes = vec![YesPhase::Discuss, YesPhase::Plan, YesPhase::Execute];
    let outline = Outline { yes, parallel: NonZeroU32::new(2), ..Outline::default() };
    let mut request = Repository::request(outline);
    request.options.mode = Some(Mode::ConfirmAll);
    let handle = place.runtime.start_work(request).unwrap();
    let id = handle.id().clone();
    let well = place.runtime.workspace().open_existing(stepwell::sqlite::Access::Write).unwrap();
    // Both tasks ask before they write, and the work asks for them.
    let asked = loop {
        assert!(!handle.is_over(), "it ended");
        let ours = open_gates(&well, Some(&id)).unwrap();
        if ours.len() == 2 {
            break ours;
        }
        std::thread::yield_now();
    };
    assert_eq!(open_gates(&well, None).unwrap().len(), 2, "each is listed once");
    let answer = |session: &SessionId, gate: &str, answer: &str| {
        let given = Given { gate: Some(gate.to_owned()), answer: Answer::from(answer) };
        place.runtime.answer(session, &given, &FlowOptions::default())
    };
    // The subagents' own copies, as they are printed where the work runs.
    for open in &asked {
        let child = open.gate.asker.clone().unwrap();
        let its = Gates::waiting(&**well.store(), &child).unwrap();
        let its = its.open().next().unwrap().gate.id.clone();
        assert!(answer(&child, &its, "yes").unwrap().goes_on, "its runner goes on");
        let late = answer(&id, &open.gate.id, "no").unwrap_err();
        assert!(matches!(late, Error::AnsweredBefore { .. }), "{late}");
    }
    loop {
        assert!(!handle.is_over(), "it ended");
        let asks = |open: &stepwell_wire::OpenGate| open.gate.id.clone();
        let open: Vec<String> = open_gates(&well, None).unwrap().iter().map(asks).collect();
        if open.iter().any(|gate| !asked.iter().any(|before| before.gate.id == *gate)) {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(place.strict.rejected(), 0);
    handle.interrupt();
    handle.join().unwrap();
}

#[test]
fn each_phase_asks_the_model_that_was_named_for_it() {
    let place = Repository::new(model);
    let yes = vec![YesPhase::Plan, YesPhase::Execute, YesPhase::Ship];
    let named = |agent, model: &str| (agent, format!("local/{model}"));
    let models = BTreeMap::from([
        named(WorkAgent::Discuss, "asker"),
        named(WorkAgent::Plan, "thinker"),
        named(WorkAgent::Execute, "worker"),
        named(WorkAgent::Verify, "critic"),
    ]);
    let outline = Outline { yes, models, ..Outline::default() };
    let handle = place.runtime.start_work(Repository::request(outline)).unwrap();
    let report = handle.join().unwrap();
    assert_eq!(report.status, Status::Success, "{report:?}");
    let mut asked: BTreeMap<&str, std::collections::BTreeSet<String>> = BTreeMap::new();
    for request in place.strict.asked() {
        let who = [
            ("You find out what a user wants", "discuss"),
            ("You plan changes", "plan"),
            ("You review changes", "review"),
            ("You write commit messages", "ship"),
        ];
        let phase = who.into_iter().find(|(says, _)| request.text.contains(says));
        let phase = phase.map_or("execute", |(_, phase)| phase);
        asked.entry(phase).or_default().insert(request.body["model"].as_str().unwrap().to_owned());
    }
    let only = |model: &str| std::collections::BTreeSet::from([model.to_owned()]);
    let expected = BTreeMap::from([
        ("discuss", only("asker")),
        ("plan", only("thinker")),
        ("execute", only("worker")),
        ("review", only("critic")),
        ("ship", only("large")),
    ]);
    assert_eq!(asked, expected);
}

#[test]
fn a_front_end_answers_the_plan_and_the_commit_and_the_work_resumes_in_between() {
    let place = Repository::new(model);
    let handle = place.runtime.start_work(Repository::request(Outline::default())).unwrap();
    let id = handle.id().clone();
    let open = asked(&mut handle.events());
    assert_eq!(open.gate.id, "work/approve/1");
    assert!(open.gate.prompt.contains("check: grep good one.txt"), "{}", open.gate.prompt);
    handle.interrupt();
    assert_eq!(handle.join().unwrap().status, Status::Interrupted);
    let resume = || {
        let options = RunOptions { patience: Patience::Wait, ..RunOptions::default() };
        let trust = place.runtime.trust(&id);
        let request = ResumeRequest::new(id.clone(), trust);
        place.runtime.resume(ResumeRequest { options, ..request }).unwrap()
    };
    let handle = resume();
    let mut events = handle.events();
    let open = asked(&mut events);
    assert_eq!(open.gate.id, "work/approve/1");
    handle.answer(&open.gate.id, Answer::from("approve"), "ann@desk").unwrap();
    let open = asked(&mut events);
    assert_eq!(open.gate.id, "work/ship/1");
    handle.answer(&open.gate.id, Answer::from("message: files: both of them"), "ann@desk").unwrap();
    let report = handle.join().unwrap();
    assert_eq!(report.status, Status::Success, "{report:?}");
    let log = git(&place.root(), &["log", "--format=%s"]);
    assert_eq!(log, "files: both of them\nbegin");
    assert_eq!(place.strict.rejected(), 0);
}

#[test]
fn worktrees_need_a_commit_and_nothing_beside_it() {
    let place = Repository::new(model);
    std::fs::write(place.root().join("begun.txt"), "changed\n").unwrap();
    let outline = Outline { parallel: NonZeroU32::new(2), ..Outline::default() };
    let refused = place.runtime.start_work(Repository::request(outline)).unwrap_err();
    assert!(refused.to_string().contains("cannot be done in worktrees"), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::Config);
}

#[test]
fn what_makes_no_sense_is_refused_in_the_words_of_whoever_asked() {
    let place = Repository::new(model);
    let run = TryProgram {
        command: "true".to_owned(),
        url: Some("http://example.com/".to_owned()),
        expect: None,
        seconds: None,
    };
    let outline = Outline { run: Some(run), checks: vec![String::new()], ..Outline::default() };
    let refused = place.runtime.start_work(Repository::request(outline)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    let (refused, url) = (refused.to_string(), "\"http://example.com/\"");
    assert!(refused.contains("checks[0]: expected a command line"), "{refused}");
    assert!(refused.contains(&format!("run: {url} is not an http address")), "{refused}");
    assert!(!refused.contains("pattern"), "{refused}");
}

#[test]
fn more_to_do_is_not_said_to_work_that_waits_for_an_answer() {
    let place = Repository::new(model);
    let request = Repository::request(Outline::default());
    let options = RunOptions { patience: Patience::Pause, ..request.options.clone() };
    let handle = place.runtime.start_work(WorkRequest { options, ..request }).unwrap();
    let id = handle.id().clone();
    handle.join().unwrap();
    let resume = ResumeRequest::new(id.clone(), place.runtime.trust(&id));
    let say = Some("do it differently".to_owned());
    let refused = place.runtime.resume(ResumeRequest { say, ..resume }).unwrap_err();
    assert!(matches!(refused.remedies()[..], [Remedy::Session(Action::Respond, _)]), "{refused}");
    let words = SayRequest { text: "hello".to_owned(), lane: None, now: false };
    let refused = place.runtime.say(&id, words).unwrap_err();
    assert!(matches!(refused.remedies()[..], [Remedy::Choose(_)]), "{refused}");
}

#[test]
fn the_phases_of_guided_work_that_waits_are_its_own() {
    let repository = Repository::new(model);
    let request = Repository::request(Outline::default());
    let options = RunOptions { patience: Patience::Pause, ..request.options.clone() };
    let handle = repository.runtime.start_work(WorkRequest { options, ..request }).unwrap();
    let id = handle.id().clone();
    assert_eq!(handle.join().unwrap().status, Status::Paused);
    let well =
        repository.runtime.workspace().open_existing(stepwell::sqlite::Access::Write).unwrap();
    let before = well.info(&id).unwrap().head;
    let next = before.phases.unwrap().next(before.phase.unwrap(), before.discuss_returns);
    for phase in next {
        let moved = well.enter_phase(&id, phase);
        assert!(matches!(moved, Err(stepwell::Error::Illegal { .. })), "{phase}: {moved:?}");
    }
    assert_eq!(well.info(&id).unwrap().head.phase, before.phase);
}

#[test]
fn each_question_of_a_subagent_is_asked_once_and_its_answer_is_taken() {
    for parallel in [1, 2] {
        let place = Repository::new(model);
        let yes = vec![YesPhase::Discuss, YesPhase::Plan, YesPhase::Execute, YesPhase::Ship];
        let outline = Outline { yes, parallel: NonZeroU32::new(parallel), ..Outline::default() };
        let mut request = Repository::request(outline);
        request.options.mode = Some(Mode::ConfirmSensitive);
        let handle = place.runtime.start_work(request).unwrap();
        let mut asked = std::collections::BTreeSet::new();
        // As at a terminal: each question is answered as it comes.
        for event in handle.events() {
            let Some(open) = event.question() else { continue };
            let call = open.gate.call.as_ref().map(|call| call.arguments.clone());
            if let (Some(child), Some(call)) = (open.gate.asker.clone(), call) {
                let front = format!("for subagent {child} (task ");
                assert!(open.gate.prompt.starts_with(&front), "it names no task: {open:?}");
                assert!(asked.insert((child, call)), "asked again: {open:?}");
            }
            assert_eq!(&open.session, handle.id(), "asked where nobody runs any more: {open:?}");
            handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
        }
        assert_eq!(asked.len(), 3, "two tasks and a repair write a file each: {asked:?}");
        assert_eq!(handle.join().unwrap().status, Status::Success);
    }
}
