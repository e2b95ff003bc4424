//! A run with subagents, killed at every append, and before and after each call of the model, each
//! tool and each git command: after a resume it ends as if nothing had happened.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stepwell::log::Head;
use stepwell::model::{Money, Origin, Outcome, Role};
use stepwell::store::Span;
use stepwell::store::query::Query;
use stepwell::{Event, Message, Status, Stepwell};

const RUNNER: &str = env!("CARGO_BIN_EXE_stepwell-test-runner");

const PARENT: &str = "
prices: {input: '3', output: '15'}
answers:
  - text: I hand it on.
    calls:
      - {tool: dispatch_subagent, arguments: {task: change it, agent: worker, workspace: worktree, merge: true}}
      - {tool: dispatch_subagent, arguments: {task: look at it, agent: looker}}
    usage: {input: 1000, output: 10}
  - {text: All done., usage: {input: 2000, output: 20}}
";

const WORKER: &str = "
prices: {input: '3', output: '15'}
answers:
  - text: I change.
    calls:
      - {tool: write_file, arguments: {path: a.txt, content: changed}}
      - {tool: run_command, arguments: {command: 'echo ran >> log.txt'}}
    usage: {input: 300, output: 3}
  - {text: Changed., usage: {input: 400, output: 4}}
";

const LOOKER: &str = "
prices: {input: '3', output: '15'}
answers:
  - text: I look.
    calls: [{tool: read_file, arguments: {path: a.txt}}]
    usage: {input: 500, output: 5}
  - {text: Looked., usage: {input: 600, output: 6}}
";

/// A git that kills its calling process before or after its Nth call. The runner's variables do not
/// reach it, so its parameters are written into it. Reading the configuration changes nothing and
/// does not count.
fn killing_git(count: &Path, path: &str, kill: &str) -> String {
    format!(
        r#"#!/bin/sh
PATH='{path}'
case " $* " in *" config "*) exec git "$@" ;; esac
n=$(cat '{count}' 2>/dev/null || echo 0)
n=$((n + 1))
echo $n > '{count}'
if [ '{kill}' = "before $n" ]; then kill -9 $PPID; exit 1; fi
git "$@"
code=$?
if [ '{kill}' = "after $n" ]; then kill -9 $PPID; fi
exit $code
"#,
        count = count.display()
    )
}

/// The folders of a test.
struct Bench {
    top: PathBuf,
    path: String,
}

impl Bench {
    fn new(top: &Path) -> Self {
        let top = std::fs::canonicalize(top).unwrap();
        for (name, text) in
            [("parent.yaml", PARENT), ("worker.yaml", WORKER), ("looker.yaml", LOOKER)]
        {
            std::fs::write(top.join(name), text).unwrap();
        }
        std::fs::create_dir(top.join("bin")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "git is where the environment says")]
        let path = std::env::var("PATH").unwrap();
        Self { top, path }
    }

    /// A workspace with one commit.
    fn workspace(&self, name: &str) -> PathBuf {
        let root = self.top.join(name);
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a.txt"), "as it was").unwrap();
        std::fs::write(root.join(".gitignore"), ".stepwell/\n").unwrap();
        git(&root, &["init", "-q", "-b", "main"]);
        git(&root, &["config", "user.name", "someone"]);
        git(&root, &["config", "user.email", "someone@example.org"]);
        git(&root, &["add", "."]);
        git(&root, &["commit", "-q", "-m", "begin"]);
        root
    }

    /// Runs until the end, or until the process dies at the given point.
    fn run(&self, root: &Path, kind: &str, n: usize) -> Option<i32> {
        let mut command = Command::new(RUNNER);
        command.arg(root).arg(self.top.join("parent.yaml"));
        match kind {
            "before" | "after" => {
                let text =
                    killing_git(&root.join(".git/count"), &self.path, &format!("{kind} {n}"));
                std::fs::write(self.top.join("bin/git"), text).unwrap();
                let executable = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(self.top.join("bin/git"), executable).unwrap();
                let path = format!("{}:{}", self.top.join("bin").display(), self.path);
                command.args(["never", "0"]).env("PATH", path);
            }
            kind => {
                command.arg(kind).arg(n.to_string());
            }
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        let code = output.status.code();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(code.is_none() || code == Some(0), "{kind} {n}: {said}");
        code
    }
}

fn git(root: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(root).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a finished run shows.
#[derive(Debug, PartialEq)]
struct Seen {
    /// Each session: its task, cost, answers and steps.
    sessions: Vec<(String, Money, usize, u64)>,
    /// The results that the run's model received, without ids.
    told: Vec<String>,
    /// Calls with an unknown outcome.
    unknown: usize,
    log: String,
    commits: usize,
}

fn look(root: &Path) -> Seen {
    let well = Stepwell::open(root.join(".stepwell")).unwrap();
    let mut heads: Vec<Head> =
        well.list(&Query::default()).unwrap().sessions.into_iter().map(|it| it.head).collect();
    heads.sort_by(|one, other| one.task.cmp(&other.task));
    let (mut sessions, mut told, mut unknown) = (Vec::new(), Vec::new(), 0);
    for head in &heads {
        assert_eq!(head.status, Status::Success, "{}", head.task);
        assert!(well.store().maintain().verify(&head.id).unwrap().is_sound());
        let events = well.store().events(&head.id, Span::ALL).unwrap().events;
        let of = |role: Role| {
            let said = |event: &Event| match event {
                Event::Message(message) if message.role == role => Some(message.clone()),
                _ => None,
            };
            events.iter().filter_map(|event| said(&event.event)).collect::<Vec<Message>>()
        };
        if head.origin == Origin::Root {
            let results = of(Role::Tool);
            let texts = results.iter().flat_map(Message::results).map(|it| it.text.clone());
            told = texts.map(|text| nameless(&text, &heads)).collect();
        }
        let cut_off = |event: &&stepwell::Recorded| matches!(&event.event, Event::ToolFinished(it) if it.outcome == Outcome::Unknown);
        unknown += events.iter().filter(cut_off).count();
        sessions.push((head.task.clone(), head.spent.cost, of(Role::Assistant).len(), head.steps));
    }
    assert_eq!(std::fs::read_to_string(root.join("a.txt")).unwrap(), "changed");
    // No worktree is left, and nothing is half merged.
    assert_eq!(git(root, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(root, &["branch", "--list", "stepwell/*"]), "");
    assert_eq!(git(root, &["status", "--porcelain"]), "");
    let log = std::fs::read_to_string(root.join("log.txt")).unwrap_or_default();
    let commits = git(root, &["rev-list", "HEAD"]).lines().count();
    Seen { sessions, told, unknown, log, commits }
}

fn nameless(text: &str, heads: &[Head]) -> String {
    heads.iter().fold(text.to_owned(), |text, head| text.replace(head.id.as_str(), "ID"))
}

#[test]
fn a_run_that_is_killed_anywhere_in_its_subagents_ends_as_one_that_was_not() {
    let top = tempfile::tempdir().unwrap();
    let bench = Bench::new(top.path());
    let whole = bench.workspace("whole");
    assert_eq!(bench.run(&whole, "never", 0), Some(0));
    let expected = look(&whole);
    assert_eq!(expected.sessions.len(), 3);
    assert_eq!((expected.unknown, expected.log.as_str(), expected.commits), (0, "ran\n", 2));
    assert!(expected.told[0].contains("Changed.") && expected.told[0].contains("merged"));
    assert!(expected.told[1].starts_with("Looked."));

    let mut killed = 0;
    for kind in ["append", "ask", "answered", "tool", "ran", "before", "after"] {
        for n in 1.. {
            let root = bench.workspace(&format!("{kind}-{n}"));
            if bench.run(&root, kind, n).is_some() {
                // The run ended before that point.
                break;
            }
            killed += 1;
            assert_eq!(bench.run(&root, "never", 0), Some(0), "{kind} {n}");
            let seen = look(&root);
            // One session for each call, and each answer present and paid for once.
            assert_eq!(seen.sessions, expected.sessions, "{kind} {n}");
            assert_eq!(seen.commits, expected.commits, "{kind} {n}");
            if seen.unknown == 0 {
                assert_eq!(seen, expected, "{kind} {n}");
            } else {
                // An interrupted command ran once or not at all, never twice.
                assert!(seen.unknown == 1 && seen.log.lines().count() <= 1, "{kind} {n}: {seen:?}");
            }
            std::fs::remove_dir_all(&root).unwrap();
        }
    }
    assert!(killed > 80, "{killed}");
}
