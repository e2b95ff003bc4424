//! Conversations of a flow's agents, and which node each part of one belongs to.
//!
//! An agent's conversation is one list of messages over all that it did. A node's part of it
//! ends with the node's answer; what follows the last answer belongs to the node that was
//! under way.

use std::path::{Path, PathBuf};

use stepwell::model::{Compacted, Role, Step, Time, Usage};
use stepwell::{Lane, Seq};

use super::SYSTEM;
use crate::read::input::Input;
use crate::read::neutral::{Item, Sink, Warning};
use crate::read::steps::Steps;
use crate::strands_sdk::FOLDER;
use crate::strands_sdk::agent::{self, Agent, Heard, below, folders};
use crate::strands_sdk::kept::Kept;
use crate::{Error, Result};

/// One agent's conversation.
pub(super) struct Talk {
    /// The agent, by the name that the flow gives it.
    pub(super) name: String,
    lane: Lane,
    agent: Agent,
    next: usize,
    /// Could each answer be found in it so far?
    sure: bool,
    steps: Steps,
    first: Option<Seq>,
    boundary: Option<Seq>,
    last_at: Option<Time>,
    /// The tokens that its messages tell of.
    pub(super) spent: Usage,
}

/// Where the files of a flow's agents are: whose they are, and the folder.
fn found(root: &Path, session: &str) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for (folder, name) in folders(&root.join("agents"), "")? {
        // An agent's own folder, as older documents have it.
        if folder.join("agent.json").symlink_metadata().is_ok() {
            found.push((name, folder));
            continue;
        }
        let Some(name) = name.strip_prefix(FOLDER) else { continue };
        let own = name.strip_prefix(session).and_then(|rest| rest.strip_prefix('_'));
        let name = own.unwrap_or(name).to_owned();
        for (n, (folder, id)) in agent::folders_of(&folder)?.into_iter().enumerate() {
            let name = if n == 0 { name.clone() } else { format!("{name}/{id}") };
            found.push((name, folder));
        }
    }
    Ok(found)
}

/// The conversations of a flow's agents.
pub(super) fn talks(
    input: &Input,
    session: &str,
    lane: impl Fn(&str) -> String,
    sink: &mut dyn Sink,
) -> Result<Vec<Talk>> {
    let mut talks: Vec<Talk> = Vec::new();
    for (name, folder) in found(input.root(), session)? {
        let (agent, fault) = Agent::at(input, &folder, &name)?;
        if let Some(error) = fault {
            warn(sink, folder.join("agent.json").display().to_string(), &error);
        }
        let number = talks.len();
        let wanted = lane(&name).parse::<Lane>().ok();
        let free = |lane: &Lane| !talks.iter().any(|talk| talk.lane == *lane);
        let lane = wanted
            .filter(free)
            .unwrap_or_else(|| format!("agents/{number}").parse().unwrap_or_default());
        let (steps, sure, next) = (Steps::default(), true, 0);
        let (first, boundary, last_at) = (None, None, None);
        let spent = Usage::default();
        talks.push(Talk { name, lane, agent, next, sure, steps, first, boundary, last_at, spent });
    }
    Ok(talks)
}

impl Talk {
    /// Tells the part that ends with an answer. If there is none, nothing of the rest can be
    /// said to belong to any node.
    pub(super) fn tell_answer(
        &mut self,
        input: &Input,
        answer: &str,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if !self.sure {
            return Ok(());
        }
        let mut part = Vec::new();
        while self.next + part.len() < self.agent.messages.len() {
            let heard = self.heard(input, self.next + part.len());
            let is_answer = heard.as_ref().is_some_and(|heard| is_answer(heard, answer));
            part.push(heard);
            if is_answer {
                return self.emit(part, sink);
            }
        }
        self.sure = false;
        Ok(())
    }

    /// The part that follows the last answer, if it can be told whose it is.
    pub(super) fn is_open(&self, input: &Input) -> bool {
        let rest = self.next..self.agent.messages.len();
        self.sure
            && rest
                .into_iter()
                .any(|n| self.heard(input, n).is_some_and(|heard| heard.message.role == Role::User))
    }

    /// When the last message was said.
    pub(super) fn ends_at(&self, input: &Input) -> Option<Time> {
        self.heard(input, self.agent.messages.len().checked_sub(1)?)?.at
    }

    /// Tells what follows the last answer.
    pub(super) fn tell_rest(&mut self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        while self.next < self.agent.messages.len() {
            let heard = self.heard(input, self.next);
            if heard.is_none() {
                let place = self.agent.messages[self.next].place().display().to_string();
                sink.warn(Warning {
                    place,
                    what: "it cannot be read, and was left out".to_owned(),
                });
            }
            self.emit(vec![heard], sink)?;
        }
        Ok(())
    }

    /// Tells what was moved out of the agent's window, and keeps its files.
    pub(super) fn tell_files(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        if let (Some(first), Some(boundary)) = (self.first, self.boundary) {
            let mut compacted = Compacted::new(self.lane.clone(), first, boundary);
            compacted.summary = self.agent.removed().1;
            sink.push(Item::new(self.last_at, compacted))?;
            sink.push(Item::beside(SYSTEM, self.last_at, "{}"))?;
        }
        if let Some(raw) = &self.agent.raw {
            let kept = Kept::new(format!("{}/agent.json", self.agent.below), raw);
            sink.push(Item::of_session(SYSTEM, kept.of_lane(&self.lane).to_json()))?;
        }
        // The session that an agent has of its own.
        let folder = input.root().join(&self.agent.below);
        if let Some(session) = folder.parent().and_then(Path::parent)
            && session != input.root()
            && let Ok(text) = input.text(&session.join("session.json"))
            && crate::json::fields::Fields::parse(&text).is_ok()
        {
            let kept = Kept::new(below(input, &session.join("session.json")), &text);
            sink.push(Item::of_session(SYSTEM, kept.to_json()))?;
        }
        Ok(())
    }

    fn heard(&self, input: &Input, n: usize) -> Option<Heard> {
        self.agent.heard(input, n, &self.lane).ok()
    }

    fn emit(&mut self, part: Vec<Option<Heard>>, sink: &mut dyn Sink) -> Result<()> {
        for heard in part {
            self.next += 1;
            let Some(Heard { at, message, kept, .. }) = heard else { continue };
            let at = at.or(self.last_at);
            self.last_at = at.max(self.last_at);
            let step = self.steps.said(&message);
            self.spent += message.usage.unwrap_or_default();
            let place = sink.push(Item::new(at, message))?;
            self.first.get_or_insert(place);
            if self.next <= self.agent.removed().0 {
                self.boundary = Some(place);
            }
            sink.push(Item::beside(SYSTEM, at, kept.to_json()))?;
            if let Some(step) = step {
                sink.push(Item::new(at, Step { lane: self.lane.clone(), ..step }))?;
            }
        }
        Ok(())
    }
}

/// Is it what a node came to? The system joins an answer's blocks by line ends.
fn is_answer(heard: &Heard, answer: &str) -> bool {
    let message = &heard.message;
    if message.role != Role::Assistant || message.calls().next().is_some() {
        return false;
    }
    let texts: Vec<&str> = message.parts.iter().filter_map(|part| part.as_text()).collect();
    texts.join("\n").trim_end() == answer.trim_end()
        || texts.concat().trim_end() == answer.trim_end()
}

/// Something could not be read, and reading goes on.
pub(super) fn warn(sink: &mut dyn Sink, place: String, error: &Error) {
    let what = match error {
        Error::Unreadable { error, .. } => error.to_string(),
        Error::Foreign { why, .. } => why.clone(),
        other => other.to_string(),
    };
    sink.warn(Warning { place, what });
}
