//! What of a run's work is recorded: files as they were and are, and how large a
//! conversation is.

use stepwell::{Digest, FileChanged, FileState, Message, Part, Task};

use super::Run;
use crate::error::Result;
use crate::provider::ToolSpec;
use crate::tool::{Changed, Content};

/// Larger files are recorded by their digest only.
const MAX_KEPT: usize = 10 << 20;

impl Run<'_> {
    /// A file that changed, with its contents as blobs, unless they hold a secret.
    pub(super) fn file_event(&self, changed: &Changed) -> Result<FileChanged> {
        Ok(FileChanged {
            path: changed.path.clone(),
            before: self.state_of(&changed.before)?,
            after: self.state_of(&changed.after)?,
            renamed_from: None,
        })
    }

    fn state_of(&self, content: &Content) -> Result<FileState> {
        Ok(match content {
            Content::Absent => FileState::Absent,
            Content::Symlink(target) => FileState::Symlink { target: target.clone() },
            Content::NotKept(why) => FileState::NotCaptured { digest: None, why: why.clone() },
            Content::File { bytes, mode } => {
                let not =
                    |why: String| FileState::NotCaptured { digest: Some(Digest::of(bytes)), why };
                if bytes.len() > MAX_KEPT {
                    return Ok(not(format!("larger than {MAX_KEPT} bytes")));
                }
                match self.setup.redactor.holds_secret(bytes) {
                    Some(rule) => not(format!("holds a secret ({rule})")),
                    None => FileState::File { blob: self.session.put_blob(bytes)?, mode: *mode },
                }
            }
        })
    }
}

/// A task as it is written.
pub(super) fn without_secrets(task: &Task, plain: impl Fn(&str) -> String) -> Task {
    let all = |texts: &[String]| texts.iter().map(|text| plain(text)).collect();
    Task {
        id: plain(&task.id),
        action: plain(&task.action),
        description: plain(&task.description),
        deps: all(&task.deps),
        status: task.status,
        files: all(&task.files),
    }
}

/// Characters of a token, at the least: an estimate must not be too low.
const CHARACTERS: u64 = 3;

/// About how many tokens a request has.
pub(super) fn tokens(system: &str, messages: &[Message], tools: &[ToolSpec]) -> u64 {
    let part = |part: &Part| match part {
        Part::Text(text) | Part::Thinking(text) => text.text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len() + 20,
        Part::ToolResult(result) => result.text.len() + 20,
        // About what providers count for a picture.
        Part::Image(_) => 4_500,
    };
    let messages = messages.iter().flat_map(|message| &message.parts).map(part).sum::<usize>();
    let tools: usize = tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
        .sum();
    let characters = u64::try_from(system.len() + messages + tools).unwrap_or(u64::MAX);
    characters.div_ceil(CHARACTERS)
}
