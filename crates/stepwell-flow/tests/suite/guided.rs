//! Guided work over a small real project: a calculator in shell, with a check that fails until the
//! agent repairs what it did.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use stepwell::model::{Gate, Kind, Phase, PhaseSet, Question, TaskStatus};
use stepwell::{Event, Status};
use stepwell_agent::permission::Mode;
use stepwell_agent::run::Allowed;
use stepwell_flow::Ended;
use stepwell_flow::template::Scope;

use crate::harness::{Harness, id};

/// A spec of guided work; `more` is added to its configuration.
pub(crate) fn spec(more: &str) -> String {
    format!(
        "
version: 0
name: work
inputs: {{required: {{goal: string}}}}
runtime: {{provider: ollama, model_id: fake}}
agents:
  discuss: {{prompt: You ask., tools: [read_file]}}
  plan: {{prompt: You plan., tools: [read_file]}}
  execute: {{prompt: You work., tools: [write_file, run_command]}}
  review: {{prompt: You review., tools: [read_file]}}
  ship: {{prompt: You write messages.}}
pattern:
  type: guided
  config:
    goal: '{{{{ goal }}}}'
    discuss: discuss
    plan: plan
    execute: execute
    review: review
    ship: ship
{more}"
    )
}

pub(crate) fn git(root: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(root).args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The project's check. It leaves a trace beside the workspace.
const TEST: &str =
    "echo ran >> ../checks.log\ntest \"$(sh calc.sh 2 3)\" = 5 || { echo wrong; exit 1; }\n";

/// Creates the project, once: a folder inside a folder, so that there is a place beside it.
pub(crate) fn project(root: &Path) {
    if root.join(".git").exists() {
        return;
    }
    std::fs::create_dir_all(root).unwrap();
    std::fs::write(root.join("test.sh"), TEST).unwrap();
    std::fs::write(root.join("Makefile"), "check:\n\tsh test.sh\n").unwrap();
    std::fs::write(root.join(".gitignore"), ".stepwell/\ncalls\nseen\n").unwrap();
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["config", "user.name", "Test"]);
    git(root, &["config", "user.email", "test@example.com"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "begin"]);
}

pub(crate) fn plan(checks: &[&str]) -> Value {
    json!({
        "summary": "A calculator and how to use it.",
        "tasks": [
            { "id": "1", "action": "create", "description": "Write calc.sh", "files": ["calc.sh"] },
            { "id": "2", "action": "create", "description": "Say how", "after": ["1"],
              "files": ["usage.txt"] },
        ],
        "checks": checks,
        "run": { "command": "sh calc.sh 20 3", "expect": "23" },
    })
}

pub(crate) fn says(text: impl std::fmt::Display) -> Value {
    json!({ "text": format!("{text}"), "usage": { "input": 10, "output": 2 } })
}

fn calls(tool: &str, arguments: &Value) -> Value {
    json!({ "calls": [{ "tool": tool, "arguments": arguments }],
            "usage": { "input": 10, "output": 2 } })
}

pub(crate) fn writes(path: &str, content: &str) -> Value {
    calls("write_file", &json!({ "path": path, "content": content }))
}

pub(crate) fn done() -> Value {
    says(json!({ "status": "done", "summary": "it is done" }))
}

/// Every event once: a question, a rejected plan, a refined one, a task that fails and is repaired,
/// a check that fails and is repaired, a program, a commit.
pub(crate) fn script() -> Value {
    let cycle = json!({ "tasks": [{ "id": "1", "description": "x", "after": ["1"] }] });
    json!({
        "prices": { "input": "3", "output": "15" },
        "lanes": {
            "discuss": [
                says(json!({ "question": "Negative numbers?", "suggestions": ["yes", "no"] })),
                says(json!({ "done": true })),
            ],
            "plan": [says(cycle), says(plan(&[])), says(plan(&["sh test.sh"]))],
            "task-1": [writes("calc.sh", "echo $(($1 - $2))\n"), done()],
            "task-2": [
                calls("run_command", &json!({ "command": "echo ran >> ../agent.log" })),
                says(json!({ "status": "failed", "summary": "nobody said how" })),
                writes("usage.txt", "sh calc.sh A B\n"),
                done(),
            ],
            "task-fix-1-1": [writes("calc.sh", "echo $(($1 + $2))\n"), done()],
            "review": [
                says(json!({ "verdict": "pass", "summary": "fine but for the check" })),
                says(json!({ "verdict": "pass", "summary": "fine" })),
            ],
            "ship": [says("calc: add two numbers")],
        },
    })
}

/// The work on the calculator, with a person who answers everything.
pub(crate) fn calculator(root: &Path) -> Harness {
    let root = root.join("project");
    project(&root);
    work(&root, "", &script())
        .answering("work/question/1", "2")
        .answering("work/approve/1", "refine: check it too")
        .answering("work/approve/2", "approve")
        .answering("decide/2/1", "repair: with an example")
        .answering("work/ship/1", "commit")
}

pub(crate) fn work(root: &Path, more: &str, script: &Value) -> Harness {
    let mut harness = Harness::new(root, &spec(more), &script.to_string());
    harness.mode = Mode::Yolo;
    harness.phases = Some(PhaseSet::Workflow);
    harness.variables = Scope::new().with("goal", "A calculator that adds");
    harness
}

pub(crate) fn run(harness: &Harness) -> Ended {
    harness.run().unwrap()
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

/// The result of the work, without parts that differ from run to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Came {
    pub(crate) status: Status,
    pub(crate) phases: Vec<(Phase, Phase)>,
    pub(crate) tasks: Vec<(String, TaskStatus)>,
    pub(crate) questions: Vec<Question>,
    pub(crate) checkpoints: Vec<(String, Value)>,
    /// Every question to a person, each once.
    pub(crate) gates: Vec<String>,
    pub(crate) nodes: Vec<String>,
    pub(crate) commits: Vec<String>,
    pub(crate) committed: String,
    pub(crate) checks: usize,
    pub(crate) commands: usize,
}

pub(crate) fn came(harness: &Harness) -> Came {
    let well = harness.well();
    let (head, work) = (well.info(&id()).unwrap().head, well.work(&id()).unwrap());
    let facts = |kind: Kind| well.store().keyed_events(&id(), &[kind]).unwrap().into_iter();
    let phases = facts(Kind::Phase).filter_map(|fact| match fact.event {
        Event::Phase(change) => Some((change.from, change.to)),
        _ => None,
    });
    let checkpoints = facts(Kind::Checkpoint).filter_map(|fact| match fact.event {
        Event::Checkpoint(it) => {
            Some((it.name, it.metadata.get("files").cloned().unwrap_or_default()))
        }
        _ => None,
    });
    let gates = facts(Kind::Gate).filter_map(|fact| match fact.event {
        Event::Gate(Gate { id, .. }) => Some(id),
        _ => None,
    });
    let mut nodes: Vec<String> = harness.outcome().nodes.into_keys().collect();
    nodes.sort();
    let root = &harness.root;
    Came {
        status: head.status,
        phases: phases.collect(),
        tasks: work.tasks.iter().map(|task| (task.id.clone(), task.status)).collect(),
        questions: work.questions,
        checkpoints: checkpoints.collect(),
        gates: gates.collect(),
        nodes,
        commits: git(root, &["log", "--format=%s"]).lines().map(str::to_owned).collect(),
        committed: git(root, &["show", "--format=", "--name-only", "HEAD"]),
        checks: ran_checks(harness),
        commands: ran_commands(harness),
    }
}

/// How often the plan's checks ran, by their own traces.
pub(crate) fn ran_checks(harness: &Harness) -> usize {
    lines(&harness.root.parent().unwrap().join("checks.log"))
}

/// How often an agent's command ran.
pub(crate) fn ran_commands(harness: &Harness) -> usize {
    lines(&harness.root.parent().unwrap().join("agent.log"))
}

#[test]
fn work_goes_from_a_goal_to_a_commit_through_every_phase() {
    let dir = tempfile::tempdir().unwrap();
    let harness = calculator(dir.path());
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    let came = came(&harness);
    let entered: Vec<&str> = came.phases.iter().map(|(_, to)| to.as_str()).collect();
    assert_eq!(
        entered,
        [
            "initialize",
            "discuss",
            "plan",
            "execute",
            "verify",
            "execute",
            "verify",
            "runtime",
            "ship"
        ]
    );
    let done = |id: &str| (id.to_owned(), TaskStatus::Done);
    assert_eq!(came.tasks, [done("1"), done("2"), done("fix-1-1")]);
    assert_eq!(came.questions[0].answer.as_deref(), Some("no"));
    assert_eq!(
        came.gates,
        ["work/question/1", "work/approve/1", "work/approve/2", "decide/2/1", "work/ship/1"]
    );
    let of_task = |name: &str| came.checkpoints.iter().rfind(|(it, _)| it == name).unwrap();
    assert_eq!(of_task("task-1").1, json!(["calc.sh"]));
    assert_eq!(of_task("task-2").1, json!(["usage.txt"]));
    assert!(came.checkpoints.iter().any(|(name, _)| name == "phase-plan"));
    assert_eq!((came.checks, came.commands), (2, 1));
    assert_eq!(came.commits, ["calc: add two numbers", "begin"]);
    assert_eq!(came.committed, "calc.sh\nusage.txt");
    let message = git(&harness.root, &["log", "-1", "--format=%B"]);
    assert!(message.ends_with("Stepwell-Session: run"), "{message}");
    let output = ended.output.as_str().unwrap();
    assert!(output.starts_with("3 of 3 tasks done; the check passes; committed as "), "{output}");
    let plan_prompt = harness.events().into_iter().find_map(|event| match event.event {
        Event::Message(message)
            if message.lane.as_str() == "plan" && message.text().contains("# Goal") =>
        {
            Some(message.text())
        }
        _ => None,
    });
    let plan_prompt = plan_prompt.unwrap();
    assert!(plan_prompt.contains("tests: make check"), "{plan_prompt}");
    assert!(plan_prompt.contains("- Negative numbers? no"), "{plan_prompt}");
}

#[test]
fn without_a_person_the_work_pauses_at_each_question_and_goes_on_with_its_answer() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let harness = work(&root, "", &script());
    for (gate, answer) in [
        ("work/question/1", "no"),
        ("work/approve/1", "refine: check it too"),
        ("work/approve/2", "yes"),
        ("decide/2/1", "repair"),
        ("work/ship/1", "no"),
    ] {
        let ended = run(&harness);
        assert_eq!(ended.status, Status::Paused, "{ended:?}");
        assert_eq!(ended.open.iter().map(|gate| &*gate.id).collect::<Vec<_>>(), [gate]);
        harness.answer(gate, answer);
    }
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    assert_eq!(came(&harness).commits, ["begin"]);
}

#[test]
fn agreed_beforehand_nobody_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let mut script = script();
    script["lanes"]["plan"] = json!([says(plan(&["sh test.sh"]))]);
    let harness = work(&root, "    yes: [discuss, plan, execute, ship]\n", &script);
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    let came = came(&harness);
    assert_eq!((came.gates, came.questions), (Vec::new(), Vec::new()));
    assert_eq!(came.commits.len(), 2);
}

#[test]
fn a_plan_that_nobody_approved_runs_no_command_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let mut script = script();
    script["lanes"]["plan"] = json!([says(plan(&["sh test.sh"]))]);
    script["lanes"]["task-1"] = json!([done()]);
    script["lanes"]["task-2"] = json!([done()]);
    let mut harness = work(&root, "    yes: [discuss, plan, execute, ship]\n", &script);
    harness.mode = Mode::ConfirmSensitive;
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Paused, "{ended:?}");
    assert!(ended.open[0].prompt.contains("sh test.sh"), "{:?}", ended.open);
    assert_eq!(lines(&dir.path().join("checks.log")), 0);
}

#[test]
fn a_check_that_never_passes_ends_the_work_partial_with_what_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let pass = says(json!({ "verdict": "pass" }));
    let script = json!({ "lanes": {
        "plan": [says(plan(&["sh test.sh"]))],
        "task-*": [done()],
        "review": [pass, pass, pass, pass],
        "ship": [says("never")],
    }});
    let more = "    yes: [discuss, plan, execute, ship]\n    rounds: 2\n";
    let harness = work(&root, more, &script);
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Partial, "{ended:?}");
    let left = ended.error.unwrap().to_string();
    assert!(
        left.starts_with("after 2 rounds of verification this is left: check `sh test.sh`"),
        "{left}"
    );
    assert_eq!(came(&harness).checks, 2);
    // A resume allows as many rounds again.
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Partial, "{ended:?}");
    assert!(ended.error.unwrap().to_string().starts_with("after 4 rounds"));
    assert_eq!(came(&harness).checks, 4);
    assert_eq!(came(&harness).commits, ["begin"]);
}

#[test]
fn a_plan_goes_back_to_the_discussion_three_times_and_drafts_end() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let clear = says(json!({ "done": true }));
    let script = json!({ "lanes": {
        "discuss": vec![clear; 9],
        "plan": vec![says(plan(&[])); 20],
    }});
    let harness = work(&root, "", &script).answering("*", "reject: not that");
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Partial, "{ended:?}");
    assert_eq!(ended.error.unwrap().to_string(), "no plan was approved in 10 drafts");
    let came = came(&harness);
    let back =
        came.phases.iter().filter(|(from, to)| (*from, *to) == (Phase::Plan, Phase::Discuss));
    assert_eq!(back.count(), 3);
    assert_eq!(came.gates.len(), 10);
}

#[test]
fn a_task_that_is_given_up_takes_those_after_it_along_and_the_rest_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let failed = says(json!({ "status": "failed", "summary": "no way" }));
    let script = json!({ "lanes": {
        "plan": [says(plan(&[]))],
        "task-1": [failed],
        "review": [says(json!({ "verdict": "pass" }))],
        "ship": [says("nothing")],
    }});
    let more = "    yes: [discuss, plan]\n    on_failure: give_up\n";
    let harness = work(&root, more, &script);
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Partial, "{ended:?}");
    let left = ended.error.unwrap().to_string();
    assert_eq!(left, "the work is not done: task 1 (unrecoverable)");
    let tasks = came(&harness).tasks;
    assert_eq!(tasks[1], ("2".to_owned(), TaskStatus::Skipped));
}

#[test]
fn a_task_that_used_up_its_own_budget_failed_and_the_work_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let costly = json!({ "calls": [{ "tool": "list_files", "arguments": {} }],
                         "usage": { "input": 5_000, "output": 2 } });
    let script = json!({ "lanes": {
        "plan": [says(plan(&[]))],
        "task-1": [costly, done()],
        "task-2": [done()],
        "review": [says(json!({ "verdict": "pass" }))],
    }});
    let more = "    yes: [discuss, plan]\n    on_failure: skip\n    task_budget: {max_tokens: 4000}\n    run: {command: 'true'}\n";
    let mut harness = work(&root, more, &script);
    harness.allowed = Allowed { tokens: Some(1_000_000), ..Allowed::default() };
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    let tasks = came(&harness).tasks;
    assert_eq!(tasks[0], ("1".to_owned(), TaskStatus::Skipped));
    assert_eq!(tasks[1], ("2".to_owned(), TaskStatus::Done));
}

/// Not a test: the program that the next test starts as a process. It serves a file of its folder
/// over HTTP.
#[test]
#[ignore = "it is a server, which a test starts"]
fn serves_the_page() {
    use std::io::{Read, Write};
    let Ok(port) = std::fs::read_to_string("../port") else { return };
    let port: u16 = port.parse().unwrap();
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    while let Ok((mut socket, _)) = listener.accept() {
        let mut asked = [0; 1024];
        let _ = socket.read(&mut asked);
        let body = std::fs::read_to_string("page.txt").unwrap_or_default();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        let _ = socket.write_all(format!("{head}{body}").as_bytes());
    }
}

#[test]
fn the_program_is_looked_at_over_http_and_what_is_wrong_is_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    std::fs::write(dir.path().join("port"), port.to_string()).unwrap();
    let server = std::env::current_exe().unwrap();
    let command = format!("exec {} --ignored --exact guided::serves_the_page", server.display());
    let url = format!("http://127.0.0.1:{port}/");
    let plan = json!({
        "summary": "A page.",
        "tasks": [{ "id": "1", "action": "create", "description": "Write it",
                    "files": ["page.txt"] }],
        "run": { "command": command, "url": url, "expect": "welcome", "seconds": 2 },
    });
    let pass = says(json!({ "verdict": "pass", "summary": "fine" }));
    let script = json!({ "lanes": {
        "plan": [says(plan)],
        "task-1": [writes("page.txt", "go away\n"), done()],
        "task-fix-1-1": [writes("page.txt", "welcome\n"), done()],
        "review": [pass, pass],
        "ship": [says("page: welcome")],
    }});
    let harness = work(&root, "    yes: [discuss, plan, execute, ship]\n", &script);
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    let nodes = harness.outcome().nodes;
    let seen = |round: u32| {
        let output = nodes[&format!("work/runtime/{round}")].clone();
        (output["outcome"].clone(), output["response"].as_str().unwrap().to_owned())
    };
    let (outcome, said) = seen(1);
    assert_eq!(outcome, "failed");
    assert!(said.contains("it answered 200 without \"welcome\""), "{said}");
    let (outcome, said) = seen(2);
    assert_eq!(outcome, "done", "{said}");
    assert!(
        said.contains(&format!("{url} answered 200 with \"welcome\"; it was stopped")),
        "{said}"
    );
    // It was stopped: the port is closed.
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    let came = came(&harness);
    let entered: Vec<&str> = came.phases.iter().map(|(_, to)| to.as_str()).collect();
    let rounds = ["execute", "verify", "runtime", "execute", "verify", "runtime", "ship"];
    assert_eq!(entered[entered.len() - 7..], rounds);
}

#[test]
fn the_commit_is_asked_about_with_what_it_would_hold_and_every_move_is_legal() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let mut script = script();
    script["lanes"]["plan"] = json!([says(plan(&[]))]);
    script["lanes"]["task-1"] = json!([
        writes("Makefile", "check:\n\tsh test.sh\nall: check\n"),
        writes("calc.sh", "echo $(($1 + $2))\n"),
        done(),
    ]);
    script["lanes"]["task-2"] =
        json!([writes("usage.txt", &"sh calc.sh A B\n".repeat(400)), done()]);
    let harness = work(&root, "    yes: [discuss, plan, execute]\n", &script);
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Paused, "{ended:?}");
    let prompt = &ended.open[0].prompt;
    for seen in [
        "Makefile +1 -0\n",
        "calc.sh +1 (new)\n",
        "usage.txt +400 (new)\n",
        "+all: check\n",
        "+++ b/calc.sh\n",
        "+echo $(($1 + $2))\n",
        "more lines\n\ncalc: add two numbers\n\nCommit this?",
    ] {
        assert!(prompt.contains(seen), "{seen:?} in {prompt}");
    }
    assert!(prompt.len() < 16 << 10, "{}", prompt.len());
    // The agent that writes the message also sees the new files.
    let told = harness.events().into_iter().any(|event| match event.event {
        Event::Message(message) => {
            message.lane.as_str() == "ship" && message.text().contains("+echo $(($1 + $2))")
        }
        _ => false,
    });
    assert!(told);
    harness.answer("work/ship/1", "commit");
    assert_eq!(run(&harness).status, Status::Success);
    let mut at = Phase::Idle;
    let mut returns = 0;
    for (from, to) in came(&harness).phases {
        assert_eq!(from, at);
        assert_eq!(
            PhaseSet::Workflow.judge(from, to, returns),
            stepwell::model::Move::Legal,
            "{to}"
        );
        returns += u32::from((from, to) == (Phase::Plan, Phase::Discuss));
        at = to;
    }
    assert_eq!(at, Phase::Ship);
}
