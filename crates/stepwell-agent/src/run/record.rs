//! What of a run's work is recorded: files as they were and are, checkpoints, and how large
//! a conversation is.

use std::time::Duration;

use stepwell::{
    Checkpoint, Digest, Effect, Event, FileChanged, FileState, Message, Part, Recorded, Step,
    StopReason, ToolCall, ToolTarget,
};
use stepwell_files::capture::Capture;
use stepwell_files::safe_fs::{AS_LINK, as_link, look};
use stepwell_files::site::{secret, too_large};

use super::Run;
use crate::error::Result;
use crate::machine::Settled;
use crate::provider::ToolSpec;
use crate::tool::{Changed, Content, Plan, Tool};

/// A command that was cut off is given this long to be gone, so that what it did last is seen.
const GONE: Duration = Duration::from_millis(600);

impl Run<'_> {
    /// Looks at the workspace before a command.
    pub(super) fn look_before(&mut self, tool: &dyn Tool) {
        if tool.effect() != Effect::Unsafe {
            return;
        }
        let (now, setup) = (self.nanos(), self.setup);
        let new = || Capture::new(&setup.place.files(), setup.keeping.files.clone());
        self.files.capture.get_or_insert_with(new).before(now);
    }

    /// Looks at the workspace after a command, and notes what it changed.
    pub(super) fn look_after(&mut self, tool: &dyn Tool) -> Result<()> {
        let now = self.nanos();
        if let Some(capture) =
            self.files.capture.as_mut().filter(|_| tool.effect() == Effect::Unsafe)
        {
            self.files.captured = capture.after(now, self.session, &self.setup.redactor)?;
        }
        Ok(())
    }

    /// Records what a command changed that was cut off, though nothing is known of how it
    /// ended.
    pub(super) async fn look_after_cut_off(&mut self, tool: &dyn Tool) -> Result<()> {
        if tool.effect() == Effect::Unsafe {
            tokio::time::sleep(GONE).await;
        }
        self.look_after(tool)?;
        let events: Vec<Event> = self.files.captured.drain(..).map(Event::from).collect();
        if events.is_empty() {
            return Ok(());
        }
        self.note_files(&events);
        self.record(events)
    }

    /// Says of a command that was killed together with its run that nobody saw what it
    /// changed.
    pub(super) fn unseen(&mut self, call: &ToolCall, settled: &Settled) -> Option<FileChanged> {
        let unsafely = self.tool(&call.name).is_some_and(|it| it.effect() == Effect::Unsafe);
        let unseen = self.files.blind && unsafely && *settled == Settled::Unknown;
        let why = "a command was killed together with Stepwell; what it changed was not seen";
        let unknown = FileState::NotCaptured { digest: None, why: why.to_owned() };
        self.files.blind &= !unseen;
        unseen.then(|| FileChanged {
            path: ".".to_owned(),
            before: unknown.clone(),
            after: unknown,
            renamed_from: None,
        })
    }

    /// Notes which files were changed, for the report.
    pub(super) fn note_files(&mut self, events: &[Event]) {
        for event in events {
            if let Event::File(file) = event
                && file.path != "."
                && !self.ended.files_modified.contains(&file.path)
            {
                self.ended.files_modified.push(file.path.clone());
            }
        }
    }

    fn nanos(&self) -> i64 {
        self.session.now().as_micros().saturating_mul(1000)
    }

    /// What completes a step: a checkpoint too, now and then.
    pub(super) fn sealed(&self) -> Vec<Event> {
        let n = self.state.steps + 1;
        let mut events = vec![Step { lane: self.lane.clone(), n }.into()];
        let every = self.setup.keeping.every_steps;
        if every > 0 && n.is_multiple_of(every) {
            events.push(Checkpoint::automatic(format!("step-{n}")).into());
        }
        events
    }

    /// Keeps what stands where a call is about to make its change: if the process dies with
    /// the change made, it can still be gone back on.
    pub(super) fn keep_before(&self, plan: &Plan) -> Result<()> {
        for target in &plan.targets {
            match look(&self.setup.place.files(), &target.path) {
                Ok(Content::Symlink(link)) => {
                    self.session.put_blob(as_link(&link).as_bytes())?;
                }
                Ok(content) => {
                    self.state_of(&content)?;
                }
                // The tool itself says what is wrong with it.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// What stood where a call that was cut off made its change, if that was kept earlier.
    pub(super) fn before_interruption(&self, target: &ToolTarget, after: &Content) -> Content {
        let Some(digest) = &target.before else { return Content::Absent };
        let mode = if let Content::File { mode, .. } = after { *mode } else { 0o644 };
        match self.session.blob(digest) {
            Ok(bytes) => match bytes.strip_prefix(AS_LINK.as_bytes()) {
                Some(link) => Content::Symlink(String::from_utf8_lossy(link).into_owned()),
                None => Content::File { bytes, mode },
            },
            Err(_) => Content::NotKept("the run was interrupted".to_owned()),
        }
    }

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
                let limit = self.setup.keeping.files.max_file;
                if bytes.len() as u64 > limit {
                    return Ok(not(too_large(limit)));
                }
                match self.setup.redactor.holds_secret(bytes) {
                    Some(rule) => not(secret(rule)),
                    None => FileState::File { blob: self.session.put_blob(bytes)?, mode: *mode },
                }
            }
        })
    }
}

/// Was the run killed while a command ran?
pub(super) fn lost_sight(events: &[Recorded]) -> bool {
    let last = |is: fn(&Event) -> bool| events.iter().rposition(|event| is(&event.event));
    let begun = last(|it| matches!(it, Event::ToolStarted(it) if it.effect == Effect::Unsafe));
    let killed =
        last(|it| matches!(it, Event::Status(it) if it.reason == Some(StopReason::Crashed)));
    begun.is_some() && killed > begun
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
