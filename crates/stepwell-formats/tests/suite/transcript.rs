//! Transcripts of Claude Code, line by line, for tests.

use std::path::{Path, PathBuf};

pub(crate) const ID: &str = "11111111-2222-4333-8444-555555555555";

/// A transcript as it grows.
pub(crate) struct Transcript {
    folder: tempfile::TempDir,
    pub(crate) lines: Vec<String>,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), lines: Vec::new() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A line of any kind.
    pub(crate) fn line(&mut self, kind: &str, uuid: &str, parent: &str, rest: &str) -> &mut Self {
        let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
        let second = self.lines.len() % 60;
        self.lines.push(format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/w","sessionId":"{ID}","version":"2","type":"{kind}","uuid":"{uuid}","timestamp":"2026-05-04T06:00:{second:02}.000Z",{rest}}}"#
        ));
        self
    }

    pub(crate) fn user(&mut self, uuid: &str, parent: &str, text: &str) -> &mut Self {
        let message = format!(r#""message":{{"role":"user","content":"{text}"}}"#);
        self.line("user", uuid, parent, &message)
    }

    pub(crate) fn result(&mut self, uuid: &str, parent: &str, call: &str, text: &str) -> &mut Self {
        let message = format!(
            r#""message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"{text}"}}]}}"#
        );
        self.line("user", uuid, parent, &message)
    }

    /// A line of an answer: a block of the message `id`, with the tokens of all of it.
    pub(crate) fn said(&mut self, uuid: &str, parent: &str, id: &str, block: &str) -> &mut Self {
        let message = format!(
            r#""requestId":"req_{id}","message":{{"id":"{id}","model":"m","role":"assistant","content":[{block}],"usage":{{"input_tokens":10,"output_tokens":5}}}}"#
        );
        self.line("assistant", uuid, parent, &message)
    }

    pub(crate) fn text(&mut self, uuid: &str, parent: &str, id: &str, text: &str) -> &mut Self {
        self.said(uuid, parent, id, &format!(r#"{{"type":"text","text":"{text}"}}"#))
    }

    pub(crate) fn call(&mut self, uuid: &str, parent: &str, id: &str, call: &str) -> &mut Self {
        let block = format!(r#"{{"type":"tool_use","id":"{call}","name":"Read","input":{{}}}}"#);
        self.said(uuid, parent, id, &block)
    }

    /// Writes it as it stands now.
    pub(crate) fn write(&self) -> PathBuf {
        let path = self.folder.path().join(format!("{ID}.jsonl"));
        std::fs::write(&path, self.lines.join("\n") + "\n").unwrap();
        path
    }
}
