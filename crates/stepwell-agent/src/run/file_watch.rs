//! Watches the workspace's files before and after each tool.

use stepwell::model::{Digest, Effect, FileChanged, FileState, Time, ToolTarget};
use stepwell::{Event, Recorded, Session, StopReason};
use stepwell_files::capture::Capture;
use stepwell_files::meanwhile::Meanwhile;
use stepwell_files::safe_fs::{AS_LINK, as_link, look};
use stepwell_files::site::{secret, too_large};

use super::Setup;
use crate::error::Result;
use crate::machine::Settled;
use crate::tool::{Changed, Content, Plan, Tool};

/// The file changes of a run's tools.
pub(super) struct FileWatch<'a> {
    session: &'a Session,
    setup: &'a Setup,
    /// Scans the workspace around commands; made before the first command.
    capture: Option<Capture>,
    /// The time of the last scan before a command.
    looked: Time,
    /// Changes of the last command that are not recorded yet.
    captured: Vec<FileChanged>,
    /// A command was killed together with the run that watched it.
    blind: bool,
    /// Files changed in this run, each once.
    modified: Vec<String>,
}

impl<'a> FileWatch<'a> {
    /// Watches the files of a session with these events.
    pub(super) fn new(session: &'a Session, setup: &'a Setup, events: &[Recorded]) -> Self {
        let blind = lost_sight(events);
        let (captured, modified) = (Vec::new(), Vec::new());
        Self { session, setup, capture: None, looked: Time::EPOCH, captured, blind, modified }
    }

    /// Scans the workspace before a command.
    pub(super) fn look_before(&mut self, tool: &dyn Tool) {
        if tool.effect() != Effect::Unsafe {
            return;
        }
        self.looked = self.session.now();
        let (now, setup) = (self.nanos(), self.setup);
        let new = || Capture::new(&setup.place.files(), setup.keeping.files.clone());
        self.capture.get_or_insert_with(new).before(now);
    }

    /// Scans the workspace after a command, and notes the changes.
    pub(super) fn look_after(&mut self, tool: &dyn Tool) -> Result<()> {
        let now = self.nanos();
        if let Some(capture) = self.capture.as_mut().filter(|_| tool.effect() == Effect::Unsafe) {
            self.captured = capture.after(now, self.session, &self.setup.redactor)?;
        }
        if !self.captured.is_empty() {
            // Another session in the same folder may have written some of them.
            let store = self.session.well().store();
            let others = Meanwhile::of(&**store, self.session.id(), self.looked)?;
            self.captured.retain(|change| !others.wrote(change));
        }
        Ok(())
    }

    /// The changes of an interrupted command, whose end is not known.
    pub(super) async fn after_cut_off(&mut self, tool: &dyn Tool) -> Result<Vec<Event>> {
        // Wait, so that its last changes are seen.
        self.setup.place.stopping.wait().await;
        self.look_after(tool)?;
        let events = self.take_captured();
        self.note(&events);
        Ok(events)
    }

    /// Takes the changes of the last command, to be recorded now.
    pub(super) fn take_captured(&mut self) -> Vec<Event> {
        self.captured.drain(..).map(Event::from).collect()
    }

    /// Notes that a command was killed together with its run, so that its changes are unknown. The
    /// note goes into the next record.
    pub(super) fn note_unseen(&mut self, tool: Option<&dyn Tool>, settled: &Settled) {
        let is_unsafe = tool.is_some_and(|it| it.effect() == Effect::Unsafe);
        if !self.blind || !is_unsafe || *settled != Settled::Unknown {
            return;
        }
        self.blind = false;
        let why = "a command was killed together with Stepwell; its changes are unknown";
        let unknown = FileState::NotCaptured { digest: None, why: why.to_owned() };
        self.captured.push(FileChanged {
            path: ".".to_owned(),
            before: unknown.clone(),
            after: unknown,
            renamed_from: None,
        });
    }

    /// Adds changed files to the report.
    pub(super) fn note(&mut self, events: &[Event]) {
        for event in events {
            if let Event::File(file) = event
                && file.path != "."
                && !self.modified.contains(&file.path)
            {
                self.modified.push(file.path.clone());
            }
        }
    }

    /// The files changed in this run.
    pub(super) fn into_modified(self) -> Vec<String> {
        self.modified
    }

    fn nanos(&self) -> i64 {
        self.session.now().as_micros().saturating_mul(1000)
    }

    /// Keeps the current content of a call's target before the call changes it, so that a rewind
    /// can restore it even if the process dies in between.
    pub(super) fn keep_before(&self, plan: &Plan) -> Result<()> {
        for target in &plan.targets {
            match look(&self.setup.place.files(), &target.path) {
                Ok(Content::Symlink(link)) => {
                    self.session.put_blob(as_link(&link).as_bytes())?;
                }
                Ok(content) => {
                    self.state_of(&content)?;
                }
                // The tool itself reports the problem.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The content before an interrupted call made its change, if it was kept.
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

    /// The event of a changed file, with its contents as blobs unless they hold a secret.
    pub(super) fn event_of(&self, changed: &Changed) -> Result<FileChanged> {
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
fn lost_sight(events: &[Recorded]) -> bool {
    let last = |is: fn(&Event) -> bool| events.iter().rposition(|event| is(&event.event));
    let begun = last(|it| matches!(it, Event::ToolStarted(it) if it.effect == Effect::Unsafe));
    let killed =
        last(|it| matches!(it, Event::Status(it) if it.reason == Some(StopReason::Crashed)));
    begun.is_some() && killed > begun
}
