//! Running a flow: its pattern is walked, and walked again after each answer, until it is done
//! or something stops it; then how it stands is recorded, once.

use std::time::Duration;

use serde_json::Value;
use stepwell::{Artifact, Gate, GateAnswered, NodeKey, Status, StatusChanged, StopReason};
use stepwell_agent::provider::Fault;

use crate::artifact::{Folder, Inside, Unwritten};
use crate::error::{Error, Result};
use crate::flow::Flow;
use crate::gate::{NoAnswer, accept};
use crate::halt::{Halt, NodeFailure};
use crate::observer::FlowEvent;
use crate::pattern::{Reached, walk};
use crate::revision::gate_of;

/// What is done while a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// The flow pauses.
    Pause,
    /// The flow waits for an answer, or for the end of its time.
    Wait,
}

/// How a flow ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How its session stands.
    pub status: Status,
    /// Why.
    pub reason: Option<StopReason>,
    /// What failed, if something did.
    pub error: Option<NodeFailure>,
    /// The last answer, if it came to its end.
    pub output: Value,
    /// Files that it left.
    pub artifacts: Vec<Artifact>,
    /// Questions that wait for an answer.
    pub open: Vec<Gate>,
}

/// How often it is looked whether somebody answered.
const LOOK: Duration = Duration::from_millis(200);

impl Flow<'_> {
    /// Runs until something stops it, and records how it stands then. An error says that what
    /// was done could not be recorded.
    pub async fn run(&self, patience: Patience, folder: &Folder) -> Result<Ended> {
        let mut overdue = 0;
        loop {
            self.restart();
            let halt = match walk(self).await {
                Ok(reached) => return self.complete(reached, folder),
                Err(halt) => halt,
            };
            if let Halt::Paused = halt {
                let late = self.overdue();
                // Walked again, a question whose time is up is settled.
                let settles = late > 0 && late != overdue;
                overdue = late;
                if settles || self.heard(patience, overdue).await? {
                    continue;
                }
                if *self.interrupt.borrow() {
                    return self.stop(Halt::Interrupted);
                }
                let ended = self.stop(halt)?;
                // Whoever answers after this sees that it has paused, and goes on with it.
                if !self.take_answers().map_err(broken)? {
                    return Ok(ended);
                }
                self.record(vec![runs()]).map_err(broken)?;
                continue;
            }
            return self.stop(halt);
        }
    }

    /// Did somebody answer, elsewhere or here, or is a question's time up? Whoever can be asked
    /// is, and if the flow has the patience it waits. That is no time in which it runs.
    async fn heard(&self, patience: Patience, late: usize) -> Result<bool> {
        if self.take_answers().map_err(broken)? {
            return Ok(true);
        }
        let can_ask = self.state().observer.can_ask();
        if !can_ask && patience == Patience::Pause {
            return Ok(false);
        }
        let since = tokio::time::Instant::now();
        let (status, reason) = (Status::Paused, Some(StopReason::Gate));
        let paused = StatusChanged { status, reason, error: None };
        self.record(vec![paused.into()]).map_err(broken)?;
        let heard = can_ask && self.ask_people()?;
        let heard = heard || (patience == Patience::Wait && self.wait(late).await?);
        self.purse.extend(since.elapsed());
        if heard {
            self.record(vec![runs()]).map_err(broken)?;
        }
        Ok(heard)
    }

    /// Asks whoever is there all that is open. What is late is settled, not asked.
    fn ask_people(&self) -> Result<bool> {
        let open: Vec<Gate> = self.state().memo.open().into_iter().cloned().collect();
        let mut heard = false;
        for gate in open.iter().filter(|gate| !self.is_late(gate)) {
            if *self.interrupt.borrow() {
                break;
            }
            heard |= self.ask_person(gate)?;
        }
        Ok(heard)
    }

    /// Asks whoever is there, until the answer can be used, or is no longer wanted. True, if
    /// there is something to go on with.
    fn ask_person(&self, gate: &Gate) -> Result<bool> {
        // It is looked at what is stored: the state belongs to whoever asks.
        let is_over =
            || *self.interrupt.borrow() || self.is_late(gate) || self.is_answered(&gate.id);
        loop {
            let said = self.state().observer.ask(gate, &is_over);
            let Some(said) = said else {
                return Ok(self.take_answers().map_err(broken)? || self.is_late(gate));
            };
            let key = gate.id.parse::<NodeKey>().ok();
            let described = key.and_then(|key| gate_of(self.spec, &key));
            let why = match accept(gate, described, &said, self.session.now()) {
                Ok(answer) => {
                    let answer = self.agents.redactor().redact(&answer).into_owned();
                    let (id, who) = (gate.id.clone(), self.state().observer.who());
                    self.give(GateAnswered::new(id, answer, who)).map_err(broken)?;
                    return Ok(true);
                }
                Err(why) => why,
            };
            self.state().observer.on_event(FlowEvent::Notice(&why.to_string()));
            if let NoAnswer::Late { .. } = why {
                return Ok(true);
            }
        }
    }

    /// Waits until somebody answered, or another question's time is up than these. False, if
    /// the user wants it to stop.
    async fn wait(&self, late: usize) -> Result<bool> {
        let mut interrupt = self.interrupt.clone();
        loop {
            if *interrupt.borrow() {
                return Ok(false);
            }
            if self.take_answers().map_err(broken)? || self.overdue() > late {
                return Ok(true);
            }
            tokio::select! {
                _ = interrupt.wait_for(|asked| *asked) => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Writes the artifacts, and records that the flow is done.
    fn complete(&self, reached: Reached, folder: &Folder) -> Result<Ended> {
        let (mut artifacts, mut taken) = (Vec::new(), Vec::<Inside>::new());
        // There is no trace of strands-cli's kind to write; the spec's warnings say so.
        let artifacts_of = self.spec.outputs.artifacts.iter();
        for described in artifacts_of.filter(|artifact| !artifact.is_trace()) {
            let written = described
                .path
                .render(&reached.scope)
                .map_err(|error| format!("outputs.artifacts.path: {error}"))
                .map_err(|what| (String::new(), Unwritten::Described, what));
            let written = written.and_then(|path| {
                let wrong = |what: String| (path.clone(), Unwritten::Described, what);
                let inside = Inside::parse(&path).map_err(wrong)?;
                // Paths that are filled in are known only here.
                if taken.iter().any(|other| other.clashes(&inside)) {
                    return Err(wrong("another artifact is written there".to_owned()));
                }
                taken.push(inside.clone());
                let text = described.from.render(&reached.scope);
                let text = text.map_err(|error| wrong(format!("from: {error}")))?;
                folder.write(&inside, &text).map_err(|(why, what)| (path, why, what))
            });
            match written {
                Ok(artifact) => {
                    if self.wrote(&artifact) {
                        self.record(vec![artifact.clone().into()]).map_err(broken)?;
                    }
                    artifacts.push(artifact);
                }
                Err((path, why, what)) => {
                    let what = self.agents.redactor().redact(&what).into_owned();
                    let node = format!("artifact {path}").trim_end().to_owned();
                    let failure =
                        NodeFailure { unwritten: Some(why), ..NodeFailure::at(node, what) };
                    let ended = self.stop(Halt::Failed(failure))?;
                    return Ok(Ended { output: reached.last, artifacts, ..ended });
                }
            }
        }
        let (status, reason) = (Status::Success, Some(StopReason::LlmDone));
        self.record(vec![StatusChanged { status, reason, error: None }.into()]).map_err(broken)?;
        let open = Vec::new();
        Ok(Ended { status, reason, error: None, output: reached.last, artifacts, open })
    }

    /// Is it not recorded yet that this file was written?
    fn wrote(&self, artifact: &Artifact) -> bool {
        self.artifacts.get(&artifact.path) != Some(&artifact.digest)
    }

    /// Records how the flow stands.
    fn stop(&self, halt: Halt) -> Result<Ended> {
        let (status, reason, error) = match halt {
            Halt::Broken(error) => return Err(error),
            Halt::Paused => (Status::Paused, Some(StopReason::Gate), None),
            Halt::Limit(reason) => (Status::Partial, Some(reason), None),
            Halt::Interrupted | Halt::NotStarted => {
                (Status::Interrupted, Some(StopReason::UserInterrupt), None)
            }
            Halt::Failed(NodeFailure { fault: Some(Fault::ContextFull), .. }) => {
                (Status::Partial, Some(StopReason::ContextFull), None)
            }
            Halt::Failed(failure) => {
                let reason = failure.fault.map(|_| StopReason::LlmError);
                (Status::Failed, reason, Some(failure))
            }
        };
        let said = error.as_ref().map(ToString::to_string);
        self.record(vec![StatusChanged { status, reason, error: said }.into()]).map_err(broken)?;
        let open = self.state().memo.open().into_iter().cloned().collect();
        let (output, artifacts) = (Value::Null, Vec::new());
        Ok(Ended { status, reason, error, output, artifacts, open })
    }
}

/// That a flow which paused runs again.
fn runs() -> stepwell::Event {
    StatusChanged { status: Status::Running, reason: None, error: None }.into()
}

/// What could not be recorded.
fn broken(halt: Halt) -> Error {
    match halt {
        Halt::Broken(error) => error,
        // Recording does nothing else.
        other => Error::Unexpected(format!("{other:?}")),
    }
}
