//! The real Claude Code at work: prompts, what it sends its model, and the transcript it writes.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use stepwell::{SessionId, Stepwell};
use stepwell_strict::{Asked, Ending, Reply, Say, Stop, Tokens};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::next_request::assert_sent_next;
use super::sessions::view;
use super::test_env::{NAME, TestEnv, program, text_in};
use crate::mirror::taken;

/// The versions that are installed, newest first.
pub(super) fn programs() -> Vec<PathBuf> {
    ["STEPWELL_WITNESS_CLAUDE", "STEPWELL_WITNESS_CLAUDE_OLDER"]
        .into_iter()
        .filter_map(program)
        .collect()
}

/// A command of Claude Code that asks the test's model.
pub(super) fn command(env: &TestEnv, program: &Path, arguments: &[&str]) -> Command {
    let mut command = env.command(program, arguments);
    command
        .env("ANTHROPIC_BASE_URL", env.model.base_url().trim_end_matches("/v1"))
        .env("ANTHROPIC_API_KEY", env.model.key())
        .envs(
            [
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
                "DISABLE_AUTOUPDATER",
                "DISABLE_TELEMETRY",
                "DISABLE_ERROR_REPORTING",
            ]
            .map(|name| (name, "1")),
        );
    command
}

/// What the first request with this prompt shows the model, a line for each part.
pub(super) fn sent(env: &TestEnv, prompt: &str) -> Vec<String> {
    let has_prompt = |body: &Value| body["messages"].to_string().contains(prompt);
    let body = env.asked().into_iter().find(has_prompt).expect("Claude Code asked its model");
    body["messages"].as_array().unwrap().iter().flat_map(lines).collect()
}

fn lines(message: &Value) -> Vec<String> {
    let role = message["role"].as_str().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let block = |block: &Value| match block["type"].as_str().unwrap_or_default() {
        "tool_use" => {
            format!("call: {} {} {}", text(&block["id"]), text(&block["name"]), block["input"])
        }
        "tool_result" => {
            format!("result: {} {}", text(&block["tool_use_id"]), text_in(&block["content"]))
        }
        "image" => {
            let source = &block["source"];
            format!("image: {} {}", text(&source["media_type"]), text(&source["data"]))
        }
        // Texts that stand beside each other are kept apart by a line end.
        _ => format!("{role}: {}", text(&block["text"]).trim_end()),
    };
    match &message["content"] {
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        content => vec![format!("{role}: {}", text(content))],
    }
}

/// How lines begin that Claude Code adds to requests by itself: the environment, the tools, the
/// date, and words between a turn that was cut off and the next prompt.
const ADDED: [&str; 4] = [
    "user: <system-reminder>",
    "system: ",
    "assistant: No response requested.",
    "user: Continue from where you left off.",
];

pub(super) fn is_added(line: &str) -> bool {
    ADDED.iter().any(|front| line.starts_with(front))
}

/// What the model does where a prompt has this word.
pub(super) const BOTH_TOOLS: &str = "both-tools";
pub(super) const NO_FILE: &str = "no-file";
pub(super) const REFUSED: &str = "refused";
pub(super) const KILLED: &str = "killed";

/// Two commands side by side, of which the second fails; a file that is not there; a request
/// that the provider refuses; a command that kills Claude Code once the call is on disk.
fn answer(asked: &Asked, n: usize) -> Reply {
    let is_user = |message: &&Value| message["role"] == "user";
    let last = asked.body["messages"].as_array().and_then(|all| all.iter().rfind(is_user));
    let last = last.cloned().unwrap_or_default();
    let blocks = last["content"].as_array().cloned().unwrap_or_default();
    let text = blocks.last().map_or(last["content"].clone(), |block| block["text"].clone());
    let prompt = text.as_str().unwrap_or_default().to_owned();
    let id = |letter: &str| format!("toolu_{n}{letter}");
    let bash = |command: String| json!({"command": command}).to_string();
    let has = |word: &str| prompt.contains(word);
    if has(REFUSED) {
        return Reply::error(400, "the model refuses").into();
    }
    let tokens = Tokens { input: 10, output: 5, ..Tokens::default() };
    let said = Say::text(format!("Answer {n}.")).using(tokens).named(format!("msg_{n}"));
    if has(BOTH_TOOLS) {
        let (one, other) = (bash("echo one".to_owned()), bash("exit 3".to_owned()));
        return said.calling(id("a"), "Bash", &[&one]).calling(id("b"), "Bash", &[&other]).into();
    }
    if let Some(odd) = odd_answer(&prompt, n) {
        return odd.into();
    }
    if has(NO_FILE) {
        let input = json!({"file_path": "/nowhere/at-all"}).to_string();
        return said.calling(id("r"), "Read", &[&input]).into();
    }
    if has(KILLED) {
        let id = id("k");
        let wait = format!("until grep -q {id} ~/.claude/projects/*/*.jsonl; do :; done");
        let kill = bash(format!("{wait}; kill -KILL $PPID"));
        return said.calling(id, "Bash", &[&kill]).into();
    }
    said.into()
}

pub(super) const THINKING: &str = "thinking";
pub(super) const CUT_SHORT: &str = "cut-short";
pub(super) const BROKEN_OFF: &str = "broken-off";
pub(super) const PICTURE_FILE: &str = "scales.png";
pub(super) const FORBIDDEN: &str = "forbidden";
pub(super) const SUBAGENT: &str = "second-pair-of-eyes";

/// An answer that thinks, one that is cut short, one whose stream breaks off the first time;
/// calls that read a picture, that are not allowed, and that start a subagent.
fn odd_answer(prompt: &str, n: usize) -> Option<Say> {
    let has = |word: &str| prompt.contains(word);
    let tokens = Tokens { input: 10, output: 5, ..Tokens::default() };
    let said = Say::text(format!("Answer {n}.")).using(tokens).named(format!("msg_{n}"));
    let calling = |name: &str, input: Value| {
        Some(said.clone().calling(format!("toolu_{n}"), name, &[&input.to_string()]))
    };
    if has(THINKING) {
        let said = Say::default().thinking("Hm.", "signed").saying(format!("Thought {n}."));
        return Some(said.using(tokens).named(format!("msg_{n}")));
    }
    if has(CUT_SHORT) {
        return Some(said.stopping(Stop::Length));
    }
    if has(BROKEN_OFF) && n.is_multiple_of(2) {
        return Some(said.ending(Ending::BrokenAfter(4)));
    }
    if has(PICTURE_FILE) {
        return calling("Read", json!({"file_path": PICTURE_FILE}));
    }
    if has(FORBIDDEN) {
        return calling("Write", json!({"file_path": "x.txt", "content": "y"}));
    }
    has(SUBAGENT).then(|| {
        let input = json!({"description": "look", "prompt": "Look around."});
        said.clone().calling(format!("toolu_{n}"), "Agent", &[&input.to_string()])
    })
}

/// A session of the real Claude Code.
pub(super) struct Driven {
    pub(super) env: TestEnv,
    program: PathBuf,
    name: String,
}

impl Driven {
    pub(super) fn new(program: &Path) -> Self {
        let env = TestEnv::new();
        let mut n = 0;
        env.model.answer_with(move |asked| {
            n += 1;
            answer(asked, n)
        });
        Self { env, program: program.to_owned(), name: NAME.to_owned() }
    }

    /// The transcript as it stands now.
    pub(super) fn transcript(&self) -> PathBuf {
        self.folder().join(format!("{}.jsonl", self.name))
    }

    /// Where Claude Code keeps the sessions of the workspace.
    pub(super) fn folder(&self) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let slug: String = self.env.workspace().to_str().unwrap().chars().map(plain).collect();
        self.env.home().join(".claude/projects").join(slug)
    }

    /// The lines of the transcript.
    pub(super) fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.transcript()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The transcript, taken into a store of its own.
    pub(super) fn imported(&self) -> (Stepwell, SessionId) {
        let well = Stepwell::in_memory();
        let id = taken(&well, &self.transcript()).remove(0).id;
        (well, id)
    }

    /// What an import shows now.
    pub(super) fn shown(&self) -> Vec<String> {
        let (well, id) = self.imported();
        view(&well, &id)
    }

    /// Gives a prompt, and fails if the program shows its model something else than an import
    /// showed before.
    pub(super) fn say(&self, prompt: &str) {
        let shown = if self.transcript().exists() { self.shown() } else { Vec::new() };
        self.prompt(prompt);
        assert_sent_next(&shown, prompt, &sent(&self.env, prompt), is_added);
    }

    /// Gives a prompt, whatever comes of it.
    pub(super) fn prompt(&self, prompt: &str) {
        self.run(&["-p", prompt], "");
    }

    /// The session goes on as a fork of that name.
    pub(super) fn fork(&mut self, name: &str, prompt: &str) {
        let shown = self.shown();
        let from = std::mem::replace(&mut self.name, name.to_owned());
        let arguments = ["--resume", &from, "--fork-session", "--session-id", name, "-p", prompt];
        self.start(&arguments, "");
        assert_sent_next(&shown, prompt, &sent(&self.env, prompt), is_added);
    }

    /// Takes back the prompt with these words and all behind it, and says nothing after that.
    pub(super) fn rewind(&self, prompt: &str) {
        let lines = self.lines();
        let mut asked = lines.iter().filter(|line| line["type"] == "user");
        let last = asked.clone().next_back().unwrap()["uuid"].clone();
        let target = asked.find(|line| line["message"]["content"] == prompt).unwrap();
        let request = json!({"type": "control_request", "request_id": "1", "request": {
            "subtype": "rewind_conversation",
            "target_message_uuid": target["uuid"],
            "last_seen_user_message_uuid": last,
        }});
        let streamed =
            ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
        let said = self.run(&streamed, &format!("{request}\n"));
        assert!(said.contains("\"rewound\":true"), "{said}");
    }

    /// Runs it on the session.
    fn run(&self, arguments: &[&str], input: &str) -> String {
        let named = if self.transcript().exists() { "--resume" } else { "--session-id" };
        self.start(&[&[named, &self.name], arguments].concat(), input)
    }

    fn start(&self, arguments: &[&str], input: &str) -> String {
        let arguments = [&["--allowedTools", "Bash,Read"], arguments].concat();
        let mut command = command(&self.env, &self.program, &arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let input = input.to_owned();
        let out = self.env.wait(async move {
            let mut child = command.spawn().unwrap();
            let mut pipe = child.stdin.take().unwrap();
            pipe.write_all(input.as_bytes()).await.unwrap();
            drop(pipe);
            child.wait_with_output().await.unwrap()
        });
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
}
