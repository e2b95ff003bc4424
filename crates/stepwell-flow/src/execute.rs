//! Runs a flow: walks its pattern, again after each answer, until it is done or something stops
//! it. The final status is recorded once.

use serde_json::{Value, json};
use stepwell::model::{Artifact, Gate, Kind, Node, NodeState, StatusChanged};
use stepwell::store::Facts;
use stepwell::{Status, StopReason};
use stepwell_agent::provider::Fault;
use stepwell_agent::run::{Here, News, OpenGate, Patience, RunEvent};

use crate::artifact::{ArtifactPath, Folder, Unwritten, WriteError};
use crate::error::{Error, Result};
use crate::flow::Flow;
use crate::halt::{Halt, Left, NodeFailure};
use crate::pattern::step::Completed;
use crate::spec;
use crate::template::Scope;
use crate::walk::walk;

/// How a flow ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The session's final status.
    pub status: Status,
    /// Why it stopped.
    pub reason: Option<StopReason>,
    /// What failed, if anything did.
    pub error: Option<NodeFailure>,
    /// The last answer, if the flow completed.
    pub output: Value,
    /// The files that were written.
    pub artifacts: Vec<Artifact>,
    /// Questions without an answer.
    pub open: Vec<Gate>,
}

impl Flow<'_> {
    /// Runs until something stops the flow, then records its status. An error means that
    /// something could not be recorded.
    pub async fn run(&self, patience: Patience, folder: &Folder) -> Result<Ended> {
        let mut overdue = 0;
        loop {
            self.restart();
            let halt = match walk(self).await {
                Ok(completed) => return self.complete(completed, folder),
                Err(halt) => halt,
            };
            if let Halt::Paused = halt {
                let late = self.overdue();
                // The next walk resolves a question whose time is up.
                let newly_overdue = late > 0 && late != overdue;
                overdue = late;
                if newly_overdue || self.await_answer(patience, overdue).await? {
                    continue;
                }
                if *self.interrupt.borrow() {
                    return self.stop(Halt::Interrupted);
                }
                let ended = self.stop(halt)?;
                // Anyone who answers from here on sees the paused status and resumes the flow.
                if !self.read_new_answers().map_err(record_error)? {
                    return Ok(ended);
                }
                self.record(vec![running_again()]).map_err(record_error)?;
                continue;
            }
            return self.stop(halt);
        }
    }

    /// Gets an answer: a recorded one or, if `patience` says so, one that is waited for. Returns
    /// true if there is one or a question is overdue. The waiting does not count as running time.
    async fn await_answer(&self, patience: Patience, late: usize) -> Result<bool> {
        if self.read_new_answers().map_err(record_error)? {
            return Ok(true);
        }
        if patience == Patience::Pause || self.wishes.wants_pause() {
            return Ok(false);
        }
        let since = tokio::time::Instant::now();
        let (status, reason) = (Status::Paused, Some(StopReason::Gate));
        let paused = StatusChanged { status, reason, error: None };
        self.record(vec![paused.into()]).map_err(record_error)?;
        self.announce_open()?;
        let answered = self.wait(late).await?;
        self.shared_budget.extend(since.elapsed());
        if answered {
            self.record(vec![running_again()]).map_err(record_error)?;
        }
        Ok(answered)
    }

    /// Reports every open question to the front end, each once. Overdue ones are resolved, not
    /// asked.
    fn announce_open(&self) -> Result<()> {
        let open: Vec<Gate> = self.state().memo.open().into_iter().cloned().collect();
        for gate in open.into_iter().filter(|gate| !self.is_overdue(gate)) {
            if !self.announced.borrow_mut().insert(gate.id.clone()) {
                continue;
            }
            let facts = Facts::under(&[Kind::Gate], &gate.id);
            let asked = self.session.well().store().keyed(self.session.id(), facts)?;
            let Some(asked) = asked.last() else { continue };
            let (lease, preview) = (self.session.lease().clone(), gate.prompt.clone());
            let here = Some(Here { lease, call: None, preview, detail: None });
            let (store, session) = (self.session.well().store(), self.session.id().clone());
            let open = OpenGate::new(&**store, session, gate, (asked.seq, asked.at));
            let open = OpenGate { here, ..open };
            self.events.tell(RunEvent::Approval(Box::new(open)));
        }
        Ok(())
    }

    /// Waits for an answer, or until more than `late` questions are overdue. Returns false on an
    /// interrupt, or if the front end stops waiting.
    async fn wait(&self, late: usize) -> Result<bool> {
        let (mut interrupt, mut wishes) = (self.interrupt.clone(), self.wishes.clone());
        // Subscribed before the first check, so that no answer is missed in between.
        let news = News::of(self.session.well(), self.session.id())?;
        loop {
            if self.read_new_answers().map_err(record_error)? || self.overdue() > late {
                return Ok(true);
            }
            if *interrupt.borrow() || wishes.wants_pause() {
                return Ok(false);
            }
            tokio::select! {
                _ = interrupt.wait_for(|asked| *asked) => {}
                () = wishes.pause() => {}
                () = tokio::time::sleep(self.until_deadline()) => {}
                () = news.changed() => {}
            }
        }
    }

    /// Writes the artifacts, and records that the flow is done.
    fn complete(&self, completed: Completed, folder: &Folder) -> Result<Ended> {
        let (mut artifacts, mut paths) = (Vec::new(), Vec::new());
        // Stepwell has no trace like strands-cli's to write; the spec's warnings say so.
        let described = self.spec.outputs.artifacts.iter();
        for described in described.filter(|artifact| !artifact.is_trace()) {
            match write_artifact(described, &completed.scope, folder, &mut paths) {
                Ok(artifact) => {
                    if !self.is_recorded(&artifact) {
                        self.record(vec![artifact.clone().into()]).map_err(record_error)?;
                    }
                    artifacts.push(artifact);
                }
                Err(ArtifactFailure { path, error: WriteError { why, what } }) => {
                    let what = self.agents.redactor().redact(&what).into_owned();
                    let node = format!("artifact {path}").trim_end().to_owned();
                    let failure =
                        NodeFailure { unwritten: Some(why), ..NodeFailure::at(node, what) };
                    let ended = self.stop(Halt::Failed(failure))?;
                    return Ok(Ended { output: completed.last, artifacts, ..ended });
                }
            }
        }
        let (status, reason) = (Status::Success, Some(StopReason::LlmDone));
        let done = StatusChanged { status, reason, error: None };
        self.record(vec![done.into()]).map_err(record_error)?;
        let open = Vec::new();
        Ok(Ended { status, reason, error: None, output: completed.last, artifacts, open })
    }

    /// Whether an earlier run recorded that it wrote this file with this content.
    fn is_recorded(&self, artifact: &Artifact) -> bool {
        self.artifacts.get(&artifact.path) == Some(&artifact.digest)
    }

    /// Records the status that follows from what stopped the flow.
    fn stop(&self, halt: Halt) -> Result<Ended> {
        let (status, reason, error) = match halt {
            Halt::Broken(error) => return Err(error),
            Halt::Paused => (Status::Paused, Some(StopReason::Gate), None),
            Halt::Limit(reason) => (Status::Partial, Some(reason), None),
            Halt::Left(left) => return self.stop_with_rest(&left),
            Halt::Interrupted | Halt::NotStarted => {
                (Status::Interrupted, Some(StopReason::UserInterrupt), None)
            }
            Halt::Failed(NodeFailure { fault: Some(Fault::ContextFull), .. }) => {
                (Status::Partial, Some(StopReason::ContextFull), None)
            }
            Halt::Failed(failure) => {
                let reason = failure.fault.map(|fault| match fault {
                    Fault::Declined => StopReason::Refusal,
                    _ => StopReason::LlmError,
                });
                (Status::Failed, reason, Some(failure))
            }
        };
        let text = error.as_ref().map(ToString::to_string);
        let stopped = StatusChanged { status, reason, error: text };
        self.record(vec![stopped.into()]).map_err(record_error)?;
        let open = self.state().memo.open().into_iter().cloned().collect();
        let (output, artifacts) = (Value::Null, Vec::new());
        Ok(Ended { status, reason, error, output, artifacts, open })
    }
}

impl Flow<'_> {
    /// Ends with unfinished work. That is recorded together with the status: a resume means that
    /// the user knows it and wants to continue.
    fn stop_with_rest(&self, left: &Left) -> Result<Ended> {
        let what = self.agents.redactor().redact(&left.what).into_owned();
        let node = Node {
            key: left.key.to_string(),
            state: NodeState::Done,
            output: Some(json!({ "response": what })),
            usage: None,
            error: None,
        };
        let (status, reason) = (Status::Partial, None);
        let stopped = StatusChanged { status, reason, error: Some(what.clone()) };
        self.record(vec![node.into(), stopped.into()]).map_err(record_error)?;
        let open = self.state().memo.open().into_iter().cloned().collect();
        let error = Some(NodeFailure::at(String::new(), what.clone()));
        Ok(Ended { status, reason, error, output: what.into(), artifacts: Vec::new(), open })
    }
}

/// An artifact that could not be written, and its path if that could be rendered.
struct ArtifactFailure {
    path: String,
    error: WriteError,
}

/// Renders and writes one artifact. `paths` are those of the artifacts before it.
fn write_artifact(
    described: &spec::Artifact,
    scope: &Scope,
    folder: &Folder,
    paths: &mut Vec<ArtifactPath>,
) -> std::result::Result<Artifact, ArtifactFailure> {
    let invalid = |path: &str, what: String| ArtifactFailure {
        path: path.to_owned(),
        error: WriteError::new(Unwritten::Described, what),
    };
    let text = described.path.render(scope);
    let text = text.map_err(|error| invalid("", format!("outputs.artifacts.path: {error}")))?;
    let path = ArtifactPath::parse(&text).map_err(|what| invalid(&text, what))?;
    // A path with template holes is known only now, so the check of the spec cannot do this.
    if paths.iter().any(|other| other.clashes(&path)) {
        return Err(invalid(&text, "another artifact has this path".to_owned()));
    }
    paths.push(path.clone());
    let content = described.from.render(scope);
    let content = content.map_err(|error| invalid(&text, format!("from: {error}")))?;
    folder.write(&path, &content).map_err(|error| ArtifactFailure { path: text, error })
}

/// The event that a paused flow runs again.
fn running_again() -> stepwell::Event {
    StatusChanged { status: Status::Running, reason: None, error: None }.into()
}

/// The error of a failed record.
fn record_error(halt: Halt) -> Error {
    match halt {
        Halt::Broken(error) => error,
        // Recording halts for no other reason.
        other => Error::Unexpected(format!("{other:?}")),
    }
}
