//! A graph or a swarm: how it stands, what it was asked, and what its nodes came to.

use std::path::Path;

use stepwell::model::{Elsewhere, Node, NodeState, StatusChanged, Usage};
use stepwell::{Status, StopReason};

use super::SYSTEM;
use super::agent::{below, counted, folders, object};
use super::content::words;
use super::kept::Kept;
use crate::Result;
use crate::json::fields::{Fields, elements, text_of};
use crate::json::json_text::value;
use crate::read::input::Input;
use crate::read::neutral::{Item, Sink};

/// What stands before a group's id in the name of its folder.
pub(super) const FOLDER: &str = "multi_agent_";

/// A graph or a swarm.
#[derive(Debug)]
pub(super) struct Group {
    /// Its name.
    pub(super) id: String,
    /// Where the SDK keeps it, below the session's folder.
    pub(super) file: String,
    /// Its state.
    pub(super) raw: String,
}

/// The groups of a session; what is wrong with one is told.
pub(super) fn groups(input: &Input, sink: &mut dyn Sink) -> Result<Vec<Group>> {
    let mut groups = Vec::new();
    for (folder, id) in folders(&input.root().join("multi_agents"), FOLDER)? {
        let path = folder.join("multi_agent.json");
        if let Some(raw) = object(input, &path, sink) {
            groups.push(Group { id, file: below(input, &path), raw });
        }
    }
    Ok(groups)
}

impl Group {
    fn fields(&self) -> Fields<'_> {
        Fields::parse(&self.raw).unwrap_or_default()
    }

    /// What it was asked: a text, or blocks of one.
    pub(super) fn task(&self) -> String {
        let fields = self.fields();
        let Some(raw) = fields.raw("current_task") else { return String::new() };
        let text = text_of(raw).map(std::borrow::Cow::into_owned);
        let blocks = || {
            let blocks = elements(raw).ok()?;
            let text = |raw: &str| Some(Fields::parse(raw).ok()?.text("text")?.into_owned());
            Some(blocks.into_iter().filter_map(text).collect::<Vec<_>>().join("\n"))
        };
        text.or_else(blocks).unwrap_or_default().trim().to_owned()
    }

    /// The tokens that all of its nodes used.
    pub(super) fn usage(&self) -> Usage {
        self.fields().object("accumulated_usage").map(|it| counted(&it)).unwrap_or_default()
    }

    /// How it stands.
    pub(super) fn status(&self) -> StatusChanged {
        let (status, reason) = match self.fields().text("status").as_deref() {
            Some("completed") => (Status::Success, Some(StopReason::LlmDone)),
            Some("failed") => (Status::Failed, None),
            // Nobody runs it here.
            _ => (Status::Interrupted, None),
        };
        let error = (status == Status::Failed).then(|| self.error()).flatten();
        StatusChanged { status, reason, error }
    }

    /// What went wrong in the first of its nodes that failed.
    fn error(&self) -> Option<String> {
        let nodes = self.nodes();
        let failed = nodes.iter().find(|node| node.state == NodeState::Failed)?;
        let name = failed.key.rsplit('/').next().unwrap_or_default();
        Some(format!("{name}: {}", failed.error.as_deref().unwrap_or("it failed")))
    }

    /// Its nodes that were begun, in their order.
    fn nodes(&self) -> Vec<Node> {
        let results = self.fields().object("node_results").unwrap_or_default();
        results.each().map(|(name, raw)| self.node(name, raw)).collect()
    }

    fn node(&self, name: &str, raw: &str) -> Node {
        let result = Fields::parse(raw).unwrap_or_default();
        let came_to = result.object("result").unwrap_or_default();
        let state = match result.text("status").as_deref() {
            Some("completed") => NodeState::Done,
            Some("failed") => NodeState::Failed,
            _ => NodeState::Started,
        };
        let fault = match came_to.text("type").as_deref() {
            Some("exception") => came_to.text("message").map(String::from),
            _ => None,
        };
        // What an agent said is its answer; what another group came to is told whole.
        let said = came_to.object("message").map(|message| words(&message));
        let response = said.map(serde_json::Value::from);
        let response =
            response.or_else(|| value(result.raw("result")?).filter(|_| fault.is_none()));
        let output = response.map(|response| serde_json::json!({"response": response}));
        let key: String = format!("group/{}/{name}", self.id).chars().take(200).collect();
        let usage = result.object("accumulated_usage").map(|it| counted(&it));
        Node { key, state, output, usage: usage.filter(|it| !it.is_nothing()), error: fault }
    }

    /// Tells its nodes, and keeps all that it holds.
    pub(super) fn emit(&self, sink: &mut dyn Sink) -> Result<()> {
        for node in self.nodes() {
            sink.push(Item::new(None, node))?;
        }
        let kept = Kept::new(self.file.clone(), &self.raw);
        sink.push(Item::of_session(SYSTEM, kept.to_json())).map(drop)
    }
}

/// How a session stands whose agents and groups stand so: the worst of them says it.
pub(super) fn together(all: impl IntoIterator<Item = StatusChanged>) -> StatusChanged {
    let rank = |it: &StatusChanged| match it.status {
        Status::Failed => 2,
        Status::Success => 0,
        _ => 1,
    };
    let none = StatusChanged { status: Status::Interrupted, reason: None, error: None };
    all.into_iter()
        .reduce(|one, other| if rank(&other) > rank(&one) { other } else { one })
        .unwrap_or(none)
}

/// The tokens of groups, which no message tells of.
pub(super) fn spent(groups: &[Group]) -> Option<Elsewhere> {
    let mut usage = Usage::default();
    groups.iter().for_each(|group| usage += group.usage());
    (!usage.is_nothing()).then(|| Elsewhere { usage, ..Elsewhere::default() })
}

/// A path that a group would have in a folder of `FileSessionManager`.
pub(super) fn file_of(id: &str) -> String {
    let id = super::conversation::plain_name(id);
    Path::new("multi_agents")
        .join(format!("{FOLDER}{id}"))
        .join("multi_agent.json")
        .display()
        .to_string()
}
