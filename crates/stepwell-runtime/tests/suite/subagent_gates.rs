//! A subagent's question is asked by those above it too. Whoever answers one of them answers both.

use stepwell::model::{Answer, Checkpoint, Origin};
use stepwell::sqlite::Access;
use stepwell::store::query::Query;
use stepwell::work::Gates;
use stepwell::{SessionId, Status};
use stepwell_agent::permission::Mode;
use stepwell_runtime::inspect::{meant_gate, open_gates, sessions_with_gates};
use stepwell_runtime::{
    Error, ErrorKind, FlowOptions, Given, Patience, RunOptions, RunRequest, Runtime,
};

use crate::test_env::TestEnv;
use crate::work::commit_all;

const PARENT: &str = "
- {text: I have it made., calls: [{tool: dispatch_subagent, arguments: {task: make it, agent: worker, workspace: worktree}}]}
- {text: All done.}
";

/// An environment of which the subagent asks before it runs a command, and all have paused.
struct Paused {
    env: TestEnv,
    runtime: Runtime,
    parent: SessionId,
    child: SessionId,
    /// The command's file, outside of every worktree.
    made: std::path::PathBuf,
}

impl Paused {
    fn new() -> Self {
        let env = TestEnv::new();
        let root = env.root();
        let outside = env.state();
        std::fs::create_dir_all(&outside).unwrap();
        let made = outside.join("made.txt");
        let command = format!("echo x >> {}", made.display());
        let worker = root.join("worker.yaml");
        let script = format!(
            "- {{calls: [{{tool: run_command, arguments: {{command: '{command}'}}}}]}}\n- {{text: Made.}}\n"
        );
        std::fs::write(&worker, script).unwrap();
        let config = format!(
            "[agents.worker]\nprompt = \"You work.\"\nmodel = \"script:{}\"\ntools = [\"run_command\"]\n",
            worker.display()
        );
        std::fs::write(outside.with_file_name("config").join("config.toml"), config).unwrap();
        std::fs::write(root.join(".gitignore"), ".stepwell/\n").unwrap();
        commit_all(&root);
        let runtime = env.elsewhere();
        let options = RunOptions {
            patience: Patience::Pause,
            mode: Some(Mode::ConfirmSensitive),
            ..env.options(PARENT)
        };
        let started = runtime.start(RunRequest { options, ..RunRequest::new("make it") }).unwrap();
        let parent = started.id().clone();
        assert_eq!(started.join().unwrap().status, Status::Paused);
        let well = runtime.workspace().open_existing(Access::Read).unwrap();
        // That the subagent is started may itself be asked.
        if well.sessions(Query::default()).count() == 1 {
            let mut request = env.resume(&parent);
            request.options.patience = Patience::Pause;
            request.answer = Some(Given { gate: None, answer: Answer::ALLOW_ONCE });
            assert_eq!(runtime.resume(request).unwrap().join().unwrap().status, Status::Paused);
        }
        let heads = well.sessions(Query::default()).map(|info| info.unwrap().head);
        let mut below = heads.filter(|head| matches!(head.origin, Origin::Subagent { .. }));
        let child = below.next().expect("there is a subagent").id;
        Self { env, runtime, parent, child, made }
    }

    /// The question's name in a session.
    fn gate(&self, session: &SessionId) -> String {
        let well = self.runtime.workspace().open_existing(Access::Read).unwrap();
        let open = Gates::waiting(&**well.store(), session).unwrap();
        open.open().next().unwrap_or_else(|| panic!("nothing waits in {session}")).gate.id.clone()
    }

    fn answer(&self, session: &SessionId, gate: &str, answer: &str) -> Result<bool, Error> {
        let given = Given { gate: Some(gate.to_owned()), answer: Answer::from(answer) };
        let answered = self.env.elsewhere().answer(session, &given, &FlowOptions::default())?;
        Ok(answered.goes_on)
    }

    fn made(&self) -> usize {
        std::fs::read_to_string(&self.made).unwrap_or_default().lines().count()
    }
}

#[test]
fn a_subagents_question_is_listed_once_and_has_one_answer_wherever_it_is_given() {
    for (above_first, first, second, times) in [
        (true, "no", "yes", 0),
        (false, "no", "yes", 0),
        (true, "yes", "no", 1),
        (false, "yes", "no", 1),
    ] {
        let paused = Paused::new();
        let (parent, child) = (paused.parent.clone(), paused.child.clone());
        let (above, below) = (paused.gate(&parent), paused.gate(&child));
        let well = paused.runtime.workspace().open_existing(Access::Read).unwrap();
        let listed = open_gates(&well, None).unwrap();
        assert_eq!(listed.len(), 1, "one question: {listed:?}");
        assert_eq!(sessions_with_gates(&well).unwrap(), std::slice::from_ref(&parent));
        // Both of its names mean it.
        let meant = meant_gate(paused.runtime.workspace(), &format!("{child}/{below}")).unwrap();
        assert_eq!(meant.session, child);
        let mut places = [(&parent, &above), (&child, &below)];
        if !above_first {
            places.reverse();
        }
        assert!(!paused.answer(places[0].0, places[0].1, first).unwrap());
        assert!(open_gates(&well, None).unwrap().is_empty());
        let late = paused.answer(places[1].0, places[1].1, second).unwrap_err();
        assert!(matches!(late, Error::AnsweredBefore { .. }), "{late}");
        assert_eq!(late.kind(), ErrorKind::Busy);
        let mut request = paused.env.resume(&parent);
        request.options.patience = Patience::Pause;
        let ended = paused.runtime.resume(request).unwrap().join().unwrap();
        assert_eq!(ended.status, Status::Success, "{ended:?}");
        assert_eq!(paused.made(), times, "{first} was first");
        for session in [&parent, &child] {
            let (asked, answered) = paused.env.gates(session);
            assert_eq!(asked, answered, "{session}");
        }
    }
}

#[test]
fn a_run_that_waits_goes_on_with_the_answer_to_either_of_a_subagents_questions() {
    for (above, answer, times) in
        [(true, "no", 0), (true, "yes", 1), (false, "no", 0), (false, "yes", 1)]
    {
        let paused = Paused::new();
        let (parent, child) = (paused.parent.clone(), paused.child.clone());
        let (ours, its) = (paused.gate(&parent), paused.gate(&child));
        let handle = paused.runtime.resume(paused.env.resume(&parent)).unwrap();
        crate::test_env::asked(&mut handle.events());
        let first = if above { (&parent, &ours) } else { (&child, &its) };
        let second = if above { (&child, &its) } else { (&parent, &ours) };
        assert!(paused.answer(first.0, first.1, answer).unwrap(), "its runner goes on");
        let late = paused.answer(second.0, second.1, "yes").unwrap_err();
        assert!(matches!(late, Error::AnsweredBefore { .. }), "{late}");
        assert_eq!(handle.join().unwrap().status, Status::Success);
        assert_eq!(paused.made(), times);
    }
}

#[test]
fn what_is_asked_of_a_subagent_is_done_by_its_runner_and_a_stop_reaches_it() {
    let paused = Paused::new();
    let handle = paused.runtime.resume(paused.env.resume(&paused.parent)).unwrap();
    crate::test_env::asked(&mut handle.events());
    let elsewhere = paused.env.elsewhere();
    let well = elsewhere.workspace().open_existing(Access::Write).unwrap();
    let held = || well.info(&paused.child).unwrap().held;
    while held().is_none() {
        std::thread::yield_now();
    }
    let named = Checkpoint { name: "here".to_owned(), ..Checkpoint::default() };
    well.checkpoint(&paused.child, named).unwrap();
    assert!(held().is_some(), "its runner did it");
    // Only on record, as from another machine: nobody is signalled.
    elsewhere.stop(&paused.child, None).unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Interrupted);
}
