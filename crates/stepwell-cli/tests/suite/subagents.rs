//! Subagents: sessions of their own, for a call of their parent's.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::running::{one, run};
use crate::terminal::watched;
use crate::test_env::TestEnv;

/// An environment with agents that have models of their own.
fn env(parent: &str) -> TestEnv {
    let env = TestEnv::new();
    let priced =
        |answers: &str| format!("prices: {{input: '3', output: '15'}}\nanswers:\n{answers}");
    env.file("script.yaml", &priced(parent));
    env.file(
        "looker.yaml",
        &priced(
            "  - {text: I look., calls: [{tool: read_file, arguments: {path: a.txt}}], usage: {input: 100, output: 10}}\n\
             \x20 - {text: It says hello., usage: {input: 200, output: 20}}\n",
        ),
    );
    env.file(
        "worker.yaml",
        &priced(
            "  - text: I change.\n    calls: [{tool: write_file, arguments: {path: a.txt, content: changed}}]\n    \
             usage: {input: 100, output: 10}\n  - {text: Changed., usage: {input: 200, output: 20}}\n",
        ),
    );
    let agent = |name: &str| {
        format!("[agents.{name}]\nprompt = \"You are {name}.\"\nmodel = \"script:{name}.yaml\"\n")
    };
    let agents: String = ["looker", "worker", "slow", "rival"].map(agent).concat();
    env.file("stepwell.toml", &agents);
    env.file("a.txt", "hello");
    env
}

/// The same in a git repository with one commit.
pub(crate) fn repository(parent: &str) -> TestEnv {
    let env = env(parent);
    env.file(".gitignore", ".stepwell/\n");
    git(&env, &["init", "-q", "-b", "main"]);
    git(&env, &["config", "user.name", "someone"]);
    git(&env, &["config", "user.email", "someone@example.org"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "begin"]);
    env
}

pub(crate) fn git(env: &TestEnv, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(env.work()).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A parent that dispatches with these arguments, and is done.
pub(crate) fn dispatching(arguments: &str) -> String {
    format!(
        "  - text: I hand it on.\n    calls: [{{tool: dispatch_subagent, arguments: {arguments}}}]\n    \
         usage: {{input: 1000, output: 100}}\n  - {{text: All done., usage: {{input: 2000, output: 200}}}}\n"
    )
}

const LOOK: &str = "{task: look at it, agent: looker}";
pub(crate) const CHANGE: &str = "{task: change it, agent: worker, workspace: worktree}";
pub(crate) const MERGE: &str = "{task: change it, agent: worker, workspace: worktree, merge: true}";

/// The sessions of subagents, as `sessions` lists them.
pub(crate) fn children(env: &TestEnv) -> Vec<Value> {
    let all = env.quietly(&["sessions", "--tree", "--json"]).json();
    all.into_iter().filter(|it| it["facts"]["subagent"].is_object()).collect()
}

fn shown(env: &TestEnv, id: &str) -> Value {
    env.quietly(&["show", id, "--json"]).json().remove(0)
}

/// What a session's model was told of its calls.
pub(crate) fn told(env: &TestEnv, id: &str) -> String {
    let messages = env.quietly(&["log", id, "--kind", "message"]).json();
    let tools = messages.into_iter().filter(|it| it["body"]["role"] == "tool");
    tools.map(|it| it["body"]["parts"].to_string()).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_a_subagent_says_and_costs_is_its_parents() {
    let env = env(&dispatching(LOOK));
    let done = one(&env, &run(&[]), 0);
    assert_eq!(done["output"], "All done.");
    let children = children(&env);
    assert_eq!(children.len(), 1);
    let child = children[0]["id"].as_str().unwrap();
    // 0.0135 of its own, and 0.00135 of the subagent's.
    assert_eq!(done["costs"]["total_cost_usd"].to_string(), "0.01485");
    assert_eq!(done["costs"]["by_source"]["main"].to_string(), "0.0135");
    let source = format!("subagent:{child}");
    assert_eq!(done["costs"]["by_source"][&source].to_string(), "0.00135");
    assert_eq!(done["costs"]["total_input_tokens"], 3300);
    let told = told(&env, done["session_id"].as_str().unwrap());
    assert!(told.contains("It says hello.") && told.contains(child), "{told}");
}

#[test]
fn a_subagent_that_only_looks_can_change_nothing() {
    let env = env(&dispatching("{task: change it, agent: worker}"));
    one(&env, &run(&["--mode", "yolo"]), 0);
    assert_eq!(env.read("a.txt"), "hello");
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    assert!(told(&env, &child).contains("there is no such tool"));
    // Taken up by hand, it still cannot.
    one(&env, &["run", "try again", "--session", &child, "--mode", "yolo"], 1);
    assert_eq!(env.read("a.txt"), "hello");
}

#[test]
fn what_cannot_be_dispatched_is_told_to_the_model() {
    for (arguments, why) in [
        ("{task: x, agent: nobody}", "there is no agent"),
        ("{task: x, agent: looker, tools: [write_file]}", "looker has no tool"),
        ("{task: ''}", "the task is empty"),
        (CHANGE, "needs a git repository"),
    ] {
        let env = env(&dispatching(arguments));
        let done = one(&env, &run(&["--mode", "yolo"]), 0);
        let told = told(&env, done["session_id"].as_str().unwrap());
        assert!(told.contains(why), "{arguments}: {told}");
        assert!(children(&env).is_empty(), "{arguments}");
    }
    let env = env(&dispatching(CHANGE));
    git(&env, &["init", "-q"]);
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    assert!(told(&env, done["session_id"].as_str().unwrap()).contains("has none yet"));
}

#[test]
fn work_that_is_not_merged_is_kept_listed_and_swept_when_it_is() {
    let env = repository(&dispatching(CHANGE));
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    assert_eq!(env.read("a.txt"), "hello");
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    let told = told(&env, done["session_id"].as_str().unwrap());
    assert!(told.contains("not merged; kept in"), "{told}");
    let listed = env.quietly(&["worktrees", "--json"]).json();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&json!(child), &json!("unmerged")));
    let refused = env.quietly(&["worktrees", "remove", &child]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("not merged") && refused.stderr.contains("git merge"));
    // Another run does not touch it.
    one(&env, &["run", "look", "--model", "script:looker.yaml"], 0);
    assert_eq!(env.quietly(&["worktrees", "--json"]).json().len(), 1);
    git(&env, &["merge", "-q", &format!("stepwell/{child}")]);
    assert_eq!(env.read("a.txt"), "changed");
    let next = env.quietly(&["run", "look", "--model", "script:looker.yaml"]);
    assert!(next.stderr.contains(&format!("Removed the worktree of subagent {child}")));
    assert!(env.quietly(&["worktrees", "--json"]).json().is_empty());
    assert_eq!(git(&env, &["branch", "--list", "stepwell/*"]), "");
}

#[test]
fn a_merge_is_clean_or_does_not_happen() {
    let env = repository(&dispatching(MERGE));
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    assert_eq!(env.read("a.txt"), "changed");
    assert_eq!(done["files_modified"], json!(["a.txt"]));
    assert!(env.quietly(&["worktrees", "--json"]).json().is_empty());

    // The rival commits another change to the same file meanwhile.
    let env = repository(&dispatching(&MERGE.replace("worker", "rival")));
    env.file(
        "rival.yaml",
        "- text: a\n  calls:\n    - {tool: run_command, arguments: {command: 'cd ../../.. && echo other > a.txt && git commit -qam other'}}\n    \
         - {tool: write_file, arguments: {path: a.txt, content: changed}}\n- {text: Changed.}\n",
    );
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    let told = told(&env, done["session_id"].as_str().unwrap());
    assert!(told.contains("could not be merged: conflicts in a.txt"), "{told}");
    assert_eq!(env.read("a.txt"), "other\n");
    assert_eq!(git(&env, &["status", "--porcelain", "-uno"]), "");
    assert_eq!(env.quietly(&["worktrees", "--json"]).json()[0]["state"], "unmerged");
}

#[test]
fn an_unchanged_worktree_leaves_nothing() {
    let env = repository(&dispatching(&CHANGE.replace("worker", "looker")));
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    let told = told(&env, done["session_id"].as_str().unwrap());
    assert!(told.contains("nothing was changed; its worktree was removed"), "{told}");
    assert_eq!(git(&env, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&env, &["branch", "--list", "stepwell/*"]), "");
}

#[test]
fn what_an_erased_session_left_unmerged_goes_by_force_only() {
    let env = repository(&dispatching(CHANGE));
    let done = one(&env, &run(&["--mode", "yolo"]), 0);
    let parent = done["session_id"].as_str().unwrap();
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(env.quietly(&["purge", parent, "--yes"]).code, Some(0));
    one(&env, &["run", "look", "--model", "script:looker.yaml"], 0);
    let listed = env.quietly(&["worktrees"]);
    assert!(listed.stdout.contains(&child) && listed.stdout.contains("erased"));
    assert_eq!(env.quietly(&["worktrees", "remove", &child]).code, Some(1));
    assert_eq!(env.quietly(&["worktrees", "remove", &child, "--force"]).code, Some(0));
    assert_eq!(git(&env, &["branch", "--list", "stepwell/*"]), "");
    assert_eq!(env.quietly(&["worktrees", "remove", "nobody"]).code, Some(3));
}

#[test]
fn a_question_of_a_subagents_is_its_parents_too() {
    let env = repository(&dispatching(MERGE));
    // One question at the dispatch, one for what the subagent would change.
    let asked = one(&env, &run(&[]), 8);
    let id = asked["session_id"].as_str().unwrap().to_owned();
    assert!(children(&env).is_empty());
    one(&env, &["resume", &id, "--approve"], 8);
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(shown(&env, &child)["status"], "paused");
    // Nobody answers: it waits on.
    one(&env, &["resume", &id], 8);
    let gates = env.quietly(&["log", &id, "--kind", "gate"]).json();
    assert_eq!(gates.len(), 2);
    let prompt = gates[1]["body"]["prompt"].as_str().unwrap();
    assert!(prompt.contains(&child) && prompt.contains("write a.txt"), "{prompt}");
    one(&env, &["resume", &id, "--approve"], 0);
    assert_eq!(env.read("a.txt"), "changed");
    for session in [&id, &child] {
        let count = |kind| env.quietly(&["log", session, "--kind", kind]).json().len();
        assert_eq!(count("gate"), count("gate_answered"), "{session}");
    }

    let env = repository(&dispatching(MERGE));
    one(&env, &run(&[]), 8);
    one(&env, &["resume", "--approve"], 8);
    let done = one(&env, &["resume", "@last", "--deny", "--reason", "not this file"], 0);
    assert_eq!(env.read("a.txt"), "hello");
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    assert!(told(&env, &child).contains("not this file"));
    assert_eq!(done["status"], "success");
}

#[test]
fn a_budget_is_the_whole_trees_and_reserved_before_it_is_spent() {
    let env = env(&dispatching(LOOK));
    // Enough for the first call and for the subagent's first, not for its second.
    let stopped = one(&env, &run(&["--budget-total", "0.131"]), 5);
    assert_eq!(stopped["stop_reason"], "budget_exceeded");
    let id = stopped["session_id"].as_str().unwrap().to_owned();
    let child = shown(&env, children(&env)[0]["id"].as_str().unwrap());
    assert_eq!(
        (&child["status"], &child["stop_reason"]),
        (&json!("partial"), &json!("budget_exceeded"))
    );
    // What was left when it began.
    let name = child["id"].as_str().unwrap();
    let edits = env.quietly(&["log", name, "--kind", "edited"]).json();
    assert!(edits.iter().any(|it| it["body"]["budget"] == "0.1265"), "{edits:?}");
    let done = one(&env, &["resume", &id, "--budget-total", "100"], 0);
    assert_eq!(done["costs"]["total_cost_usd"].to_string(), "0.01485");
    assert_eq!(children(&env).len(), 1);
}

/// A worker whose command takes as long as nobody lets it go.
const SLOW: &str = "
- text: I wait.
  calls:
    - {tool: run_command, arguments: {command: 'echo ran >> ../../../log.txt; test -e ../../../go || sleep 600'}}
- {text: Waited.}
";

fn at_work(env: &TestEnv) -> std::process::Child {
    let mut command = env.command(&run(&["--mode", "yolo"]));
    command.env_remove("STEPWELL_NOW").stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    env.wait_for("log.txt");
    child
}

#[test]
fn a_stop_of_the_parent_stops_its_subagent_and_a_resume_resumes_it() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::KILL] {
        let env = repository(&dispatching(&MERGE.replace("worker", "slow")));
        env.file("slow.yaml", SLOW);
        let mut process = at_work(&env);
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, signal).unwrap();
        process.wait().unwrap();
        let id = env.well().find("@last").unwrap().to_string();
        let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
        for session in [&id, &child] {
            assert_eq!(shown(&env, session)["status"], "interrupted", "{signal:?}");
        }
        let listed = env.quietly(&["worktrees", "--json"]).json();
        assert_eq!(listed[0]["in_use"], true);
        assert_eq!(env.quietly(&["worktrees", "remove", &child]).code, Some(1));
        env.file("go", "");
        let done = one(&env, &["resume", &id], 0);
        assert_eq!(done["output"], "All done.");
        assert_eq!(children(&env).len(), 1);
        // The command is not repeated, and the subagent knows.
        assert_eq!(env.read("log.txt"), "ran\n");
        assert!(told(&env, &child).contains("outcome unknown"));
        assert!(told(&env, &id).contains("Waited."));
        assert!(env.quietly(&["worktrees", "--json"]).json().is_empty());
    }
}

#[test]
fn subagents_go_only_so_deep() {
    let env = env(&dispatching("{task: go down, agent: slow, workspace: worktree}"));
    git(&env, &["init", "-q", "-b", "main"]);
    git(&env, &["config", "user.name", "someone"]);
    git(&env, &["config", "user.email", "someone@example.org"]);
    env.file(".gitignore", ".stepwell/\n");
    // Each one hands it on, as long as it can.
    env.file(
        "slow.yaml",
        &format!("answers:\n{}", dispatching("{task: go down, agent: slow, workspace: worktree}")),
    );
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "begin"]);
    one(&env, &run(&["--mode", "yolo"]), 0);
    let all = env.quietly(&["sessions", "--tree", "--json"]).json();
    assert_eq!(all.len(), 4);
    assert_eq!(git(&env, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_subagent_that_is_gone_on_with_by_hand_answers_its_parent() {
    let env = repository(&dispatching(&MERGE.replace("worker", "slow")));
    env.file("slow.yaml", &format!("{SLOW}- {{text: never asked for}}\n"));
    let mut process = at_work(&env);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&process),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    process.wait().unwrap();
    let id = env.well().find("@last").unwrap().to_string();
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    // While someone else runs it, its parent waits.
    let held = env.well().lock(&child.parse().unwrap()).unwrap();
    let mut resume = env.command(&["resume", &id]);
    let waits = resume.env_remove("STEPWELL_NOW").output().unwrap();
    let said = String::from_utf8_lossy(&waits.stderr).into_owned();
    assert_eq!(waits.status.code(), Some(130), "{said}");
    assert!(said.contains(&format!("subagent {child} is run by")), "{said}");
    drop(held);
    assert_eq!(one(&env, &["resume", &child], 0)["output"], "Waited.");
    let done = one(&env, &["resume", &id], 0);
    assert_eq!(done["output"], "All done.");
    assert!(told(&env, &id).contains("Waited."));
    assert_eq!(shown(&env, &child)["steps"], 2);
}

#[test]
fn a_fork_in_the_middle_of_a_call_has_a_subagent_of_its_own() {
    let env = repository(&dispatching(CHANGE));
    one(&env, &run(&["--mode", "confirm-sensitive"]), 8);
    let id = env.well().find("@last").unwrap().to_string();
    one(&env, &["resume", &id, "--approve"], 8);
    let fork = env.quietly(&["fork", &id]).line();
    one(&env, &["resume", &id, "--mode", "yolo"], 0);
    one(&env, &["resume", &fork, "--mode", "yolo"], 0);
    let children = children(&env);
    let parents: Vec<_> = children.iter().map(|it| it["parent"].as_str().unwrap()).collect();
    assert_eq!(children.len(), 2);
    assert!(parents.contains(&id.as_str()) && parents.contains(&fork.as_str()), "{parents:?}");
    assert_eq!(env.quietly(&["worktrees", "--json"]).json().len(), 2);
    assert_eq!(shown(&env, &fork)["open_gates"], 0);
}

#[test]
fn a_subagent_that_was_deleted_is_waited_for_and_one_that_was_erased_is_begun_anew() {
    let env = repository(&dispatching(CHANGE));
    one(&env, &run(&[]), 8);
    let id = env.well().find("@last").unwrap().to_string();
    one(&env, &["resume", &id, "--approve"], 8);
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(env.quietly(&["delete", &child]).code, Some(0));
    let waits = env.quietly(&["resume", &id]);
    assert_eq!(waits.code, Some(130), "{}", waits.stderr);
    assert!(waits.stderr.contains(&format!("stepwell trash restore {child}")), "{}", waits.stderr);
    // What it left behind stays.
    env.file(&format!(".stepwell/worktrees/{child}/left.txt"), "work");
    assert_eq!(env.quietly(&["purge", &child, "--yes"]).code, Some(0));
    one(&env, &["resume", &id, "--mode", "yolo"], 0);
    assert_eq!(env.read(&format!(".stepwell/worktrees/{child}/left.txt")), "work");
    let states: Vec<Value> = env.quietly(&["worktrees", "--json"]).json();
    let states: Vec<&Value> = states.iter().map(|it| &it["state"]).collect();
    assert_eq!(states.len(), 2);
    assert!(states.contains(&&json!("uncommitted")) && states.contains(&&json!("unmerged")));
}

#[test]
fn a_workspace_below_a_repositorys_root_has_its_place_in_a_worktree() {
    let env = repository(&dispatching(MERGE));
    for name in ["script.yaml", "worker.yaml", "stepwell.toml", "a.txt"] {
        env.file(&format!("part/{name}"), &env.read(name));
    }
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "a part"]);
    let mut command = env.command(&run(&["--mode", "yolo", "--json"]));
    let ran = command.current_dir(env.work().join("part")).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!((env.read("part/a.txt"), env.read("a.txt")), ("changed".into(), "hello".into()));
    let done: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(done["files_modified"], json!(["a.txt"]));
}

#[test]
fn a_limit_of_the_subagents_own_is_told_to_the_model() {
    let env = env(&dispatching(LOOK));
    let agents =
        env.read("stepwell.toml").replace("You are looker.\"", "You are looker.\"\nmax_steps = 1");
    env.file("stepwell.toml", &agents);
    let done = one(&env, &run(&[]), 0);
    assert_eq!(done["output"], "All done.");
    let told = told(&env, done["session_id"].as_str().unwrap());
    assert!(told.contains("It did not finish: max_steps"), "{told}");
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    assert!(told.contains(&format!("can resume session {child}")), "{told}");
    assert_eq!(one(&env, &["resume", &child], 0)["output"], "It says hello.");
}

#[test]
fn a_question_of_a_subagents_is_asked_on_the_terminal() {
    let mut env = repository(&dispatching(MERGE));
    env.set("NO_COLOR", "1");
    let mut asked = 0;
    let (seen, code) = watched(env.command(&run(&[])), &env, 200, |seen, _| {
        let questions = seen.matches("Answer: ").count();
        let is_new = questions > asked && seen.ends_with("Answer: ");
        asked = questions;
        if is_new { "y\r".to_owned() } else { String::new() }
    });
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("Allow subagent worker in a worktree of its own, then merge"), "{seen}");
    assert!(seen.contains("Allow for subagent ") && seen.contains("-hello\n"), "{seen}");
    assert_eq!((asked, env.read("a.txt")), (2, "changed".to_owned()));
}

#[test]
fn a_budget_for_a_tree_with_calls_of_unknown_price_is_refused() {
    let env = env(&dispatching(LOOK));
    one(&env, &run(&["--max-steps", "1"]), 5);
    let well = env.well();
    let id = well.find("@last").unwrap();
    let parent = well.lock(&id).unwrap();
    let child = parent.spawn(well.draft("of unknown price")).unwrap();
    let usage = stepwell::model::Usage { input: 1, ..stepwell::model::Usage::default() };
    child.step([stepwell::Message::assistant("x").spending(usage, None)]).unwrap();
    drop((child, parent));
    let refused = env.quietly(&["resume", id.as_str(), "--budget-total", "9"]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("the price of 1 of the session's calls is not known"));
    one(&env, &["resume", id.as_str(), "--budget", "9"], 0);
}
