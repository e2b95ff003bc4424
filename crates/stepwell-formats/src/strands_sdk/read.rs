//! Reading a session: the messages of all its agents in the order of their times.

use std::path::Path;

use stepwell::model::{
    Checkpoint, CheckpointReason, Compacted, Edited, Role, StatusChanged, Step, Time,
};
use stepwell::{Lane, Message, Seq, Status};

use super::agent::{Agent, Heard, folders_of, moment, object, warn};
use super::group::{self, Group};
use super::kept::Kept;
use super::snapshots::{self, Snapshots};
use super::{FOLDER, SYSTEM, sidecar};
use crate::json::fields::Fields;
use crate::read::input::Input;
use crate::read::neutral::{Item, Opening, Sink, Wanted, Warning};
use crate::read::steps::Steps;
use crate::{Error, Result};

/// Among how many messages it is looked for what was asked.
const MAX_FRONT: usize = 20;

/// What a session's folder holds, in either form.
struct Found {
    session: Option<String>,
    agents: Vec<Agent>,
    groups: Vec<Group>,
    /// When it began, if `session.json` does not say so.
    began: Option<Time>,
}

impl Found {
    fn at(input: &Input, sink: &mut dyn Sink) -> Result<Self> {
        let root = input.root();
        if snapshots::is_session(root) {
            let Snapshots { agents, groups, began } = snapshots::read(input, sink)?;
            return Ok(Self { session: None, agents, groups, began });
        }
        let session = object(input, &root.join("session.json"), sink);
        let (agents, groups) = (agents(input, root, sink)?, group::groups(input, sink)?);
        Ok(Self { session, agents, groups, began: None })
    }

    /// What `session.json` says.
    fn fields(&self) -> Fields<'_> {
        self.session.as_deref().and_then(|raw| Fields::parse(raw).ok()).unwrap_or_default()
    }
}

/// Reads a session.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let found = Found::at(input, sink)?;
    let Some(mut opening) = opening(input, &found) else {
        let why = "it holds neither session.json nor an agent".to_owned();
        return Err(Error::Foreign { path: input.root().to_owned(), why });
    };
    opening.continues = sidecar::mark(input);
    // Snapshots are written as the other form.
    opening.folder = (!snapshots::is_session(input.root())).then(|| input.root().to_owned());
    if sink.begin(opening)? == Wanted::Known {
        return Ok(());
    }
    sidecar::read(input, SYSTEM, sink)?;
    let mut voices: Vec<Voice<'_>> = voices(&found.agents);
    for voice in &voices {
        if let Some(system) = &voice.agent.system {
            let message = Message::system(system.clone()).in_lane(voice.lane.clone());
            sink.push(Item::new(found.began, message))?;
        }
    }
    tell_messages(input, &mut voices, sink)?;
    let last_at = voices.iter().filter_map(|voice| voice.last_at).max();
    let last_at = last_at.or_else(|| moment(&found.fields(), "updated_at")).or(found.began);
    for group in &found.groups {
        group.emit(sink)?;
    }
    if let Some(elsewhere) = group::spent(&found.groups) {
        let elsewhere = Some(elsewhere);
        sink.push(Item::new(last_at, Edited { elsewhere, ..Edited::default() }))?;
    }
    for voice in &mut voices {
        voice.tell_removed(sink)?;
    }
    keep(&found, &voices, sink)?;
    let agents = voices.iter().map(|voice| match voice.steps.status().status {
        Status::Success => voice.steps.status(),
        _ => StatusChanged { status: Status::Interrupted, reason: None, error: None },
    });
    let status = group::together(agents.chain(found.groups.iter().map(Group::status)));
    sink.push(Item::new(last_at, status))?;
    sink.end()
}

/// Keeps the files themselves, without what was told of them.
fn keep(found: &Found, voices: &[Voice<'_>], sink: &mut dyn Sink) -> Result<()> {
    if let Some(raw) = &found.session {
        sink.push(Item::of_session(SYSTEM, Kept::new("session.json", raw).to_json()))?;
    }
    for voice in voices {
        if let Some(raw) = &voice.agent.raw {
            let kept = Kept::new(format!("{}/agent.json", voice.agent.below), raw);
            sink.push(Item::of_session(SYSTEM, kept.of_lane(&voice.lane).to_json()))?;
        }
    }
    Ok(())
}

/// A session's agents, the first one first.
fn agents(input: &Input, root: &Path, sink: &mut dyn Sink) -> Result<Vec<Agent>> {
    let mut agents = Vec::new();
    for (folder, id) in folders_of(root)? {
        let (agent, fault) = Agent::at(input, &folder, &id)?;
        if let Some(error) = fault {
            warn(sink, &folder.join("agent.json"), &error);
        }
        agents.push(agent);
    }
    agents.sort_by(|one, other| {
        let key = |it: &Agent| (it.created_at().is_none(), it.created_at(), it.id.clone());
        key(one).cmp(&key(other))
    });
    Ok(agents)
}

fn opening(input: &Input, found: &Found) -> Option<Opening> {
    let folder = input.root().file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (agents, groups) = (&found.agents, &found.groups);
    if found.session.is_none() && agents.is_empty() && groups.is_empty() {
        return None;
    }
    let fields = found.fields();
    let id = fields.text("session_id").map(String::from).filter(|id| !id.is_empty());
    let id = id.unwrap_or_else(|| folder.strip_prefix(FOLDER).unwrap_or(folder).to_owned());
    let asked = agents.first().map(|it| asked(input, it)).filter(|it| !it.is_empty());
    let task = asked.or_else(|| groups.iter().map(Group::task).find(|it| !it.is_empty()));
    let mut opening = Opening::new(id, task.unwrap_or_default());
    opening.created.agent = agents.first().map(|agent| agent.id.clone()).unwrap_or_default();
    opening.started_at = moment(&fields, "created_at").or(found.began);
    let changed = agents.iter().map(|agent| moment(&agent.fields(), "updated_at"));
    opening.updated_at = changed.max().flatten().max(moment(&fields, "updated_at"));
    Some(opening)
}

/// What an agent was first asked.
fn asked(input: &Input, agent: &Agent) -> String {
    let front = (0..agent.messages.len().min(MAX_FRONT)).filter_map(|n| {
        let said = agent.heard(input, n, &Lane::main()).ok()?.message;
        let text = said.text();
        (said.role == Role::User && !text.trim().is_empty()).then_some(text)
    });
    front.map(|text| text.trim().to_owned()).next().unwrap_or_default()
}

/// An agent that is being told of.
struct Voice<'a> {
    agent: &'a Agent,
    lane: Lane,
    /// How many of its messages were looked at, and the next one.
    looked_at: usize,
    next: Option<Heard>,
    steps: Steps,
    removed: usize,
    summary: Option<String>,
    /// The places of its first message, and of the last one out of its window.
    first: Option<Seq>,
    boundary: Option<Seq>,
    last_at: Option<Time>,
}

fn voices(agents: &[Agent]) -> Vec<Voice<'_>> {
    agents
        .iter()
        .enumerate()
        .map(|(n, agent)| {
            let lane = lane_of(n, agent);
            let (removed, summary) = agent.removed();
            Voice {
                agent,
                lane,
                looked_at: 0,
                next: None,
                steps: Steps::default(),
                removed,
                summary,
                first: None,
                boundary: None,
                last_at: None,
            }
        })
        .collect()
}

/// The first agent speaks in the main lane, and stays there if others come.
fn lane_of(n: usize, agent: &Agent) -> Lane {
    match n {
        0 => Lane::main(),
        n => {
            let own = agent.id.parse::<Lane>().ok().filter(|lane| *lane != Lane::main());
            own.unwrap_or_else(|| format!("agent-{n}").parse().unwrap_or_default())
        }
    }
}

/// Tells messages in the order of their times, each agent's in their own order.
fn tell_messages(input: &Input, voices: &mut [Voice<'_>], sink: &mut dyn Sink) -> Result<()> {
    for voice in voices.iter_mut() {
        voice.look(input, sink)?;
    }
    loop {
        let first = voices
            .iter_mut()
            .filter(|voice| voice.next.is_some())
            .min_by_key(|voice| voice.next.as_ref().and_then(|next| next.at));
        let Some(voice) = first else { return Ok(()) };
        voice.emit(sink)?;
        voice.look(input, sink)?;
    }
}

impl Voice<'_> {
    /// Looks at the next message that can be read.
    fn look(&mut self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        while self.next.is_none() && self.looked_at < self.agent.messages.len() {
            let n = self.looked_at;
            self.looked_at += 1;
            match self.agent.heard(input, n, &self.lane) {
                Ok(mut heard) => {
                    // What names no time was said after what came before it.
                    heard.at = heard.at.or(self.last_at);
                    self.next = Some(heard);
                }
                Err(error) => {
                    let what = format!("{}, and was left out", error_text(&error));
                    let place = self.agent.messages[n].place().display().to_string();
                    sink.warn(Warning { place, what });
                }
            }
        }
        Ok(())
    }

    fn emit(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let Some(Heard { at, message, kept, unshown }) = self.next.take() else { return Ok(()) };
        for kind in unshown {
            let what = format!("its {kind} is kept, and shown to no model here");
            sink.warn(Warning { place: kept.file.clone(), what });
        }
        self.last_at = at.max(self.last_at);
        let step = self.steps.said(&message);
        let place = sink.push(Item::new(at, message))?;
        self.first.get_or_insert(place);
        if self.looked_at <= self.removed {
            self.boundary = Some(place);
        }
        sink.push(Item::beside(SYSTEM, at, kept.to_json()))?;
        if let Some(step) = step {
            sink.push(Item::new(at, Step { lane: self.lane.clone(), ..step }))?;
        }
        for copy in self.agent.copies.iter().filter(|copy| copy.messages == self.looked_at) {
            let (name, reason) = (copy.name.clone(), CheckpointReason::Automatic);
            let metadata = Default::default();
            sink.push(Item::new(copy.at.or(at), Checkpoint { name, reason, metadata }))?;
        }
        Ok(())
    }

    /// What was moved out of the agent's window.
    fn tell_removed(&mut self, sink: &mut dyn Sink) -> Result<()> {
        if let (Some(first), Some(boundary)) = (self.first, self.boundary) {
            let mut compacted = Compacted::new(self.lane.clone(), first, boundary);
            compacted.summary = self.summary.take();
            sink.push(Item::new(self.last_at, compacted))?;
            sink.push(Item::beside(SYSTEM, self.last_at, "{}"))?;
        } else if self.summary.is_some() {
            sink.warn(Warning {
                place: format!("{}/agent.json", self.agent.below),
                what: "it has a summary of no message; it is kept, and shown to no model here"
                    .to_owned(),
            });
        }
        if self.removed > self.agent.messages.len() {
            sink.warn(Warning {
                place: format!("{}/agent.json", self.agent.below),
                what: format!(
                    "messages that are out of its window: {}; messages that there are: {}",
                    self.removed,
                    self.agent.messages.len()
                ),
            });
        }
        Ok(())
    }
}

fn error_text(error: &Error) -> String {
    match error {
        Error::Unreadable { error, .. } => error.to_string(),
        Error::Foreign { why, .. } => why.clone(),
        other => other.to_string(),
    }
}
