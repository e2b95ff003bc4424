//! The first event of a session: what it is and where it comes from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::SessionId;
use super::phase::PhaseSet;
use super::position::Seq;
use super::spec_hash::SpecHash;
use super::time::Time;

/// The scope of the ledger's sessions, by which lists skip them.
pub const LEDGER_SCOPE: &str = "stepwell/ledger";

/// The first event of a session: its task, its agent, its place and its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Created {
    /// The session's id.
    pub id: SessionId,
    /// The task, in the user's words.
    pub task: String,
    /// The agent that works on it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The model that it uses.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The model's provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The folder that it works in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// Who drives the session.
    #[serde(default)]
    pub driver: Driver,
    /// The phases of its work, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhaseSet>,
    /// What it grew out of: nothing, a parent's tool call, or a fork.
    #[serde(default)]
    pub origin: Origin,
    /// The flow that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// The project that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// Where it was imported from, or which program stores it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What it belongs to, such as an application and a user, in the terms of the program that
    /// stores it here. Lists can be restricted to a scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Are secrets redacted before they are recorded? A [`Stepwell`](crate::sessions::Stepwell)
    /// sets it. It is absent in imports, which are kept byte for byte, and in events from before
    /// this was recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

/// Who drives a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// A runner of Stepwell's, which holds the lease while it works.
    #[default]
    Own,
    /// An external agent. It holds no lease between its short updates, and its status follows its
    /// phase.
    External,
}

/// What a session grew out of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Nothing: a user started it.
    #[default]
    Root,
    /// An agent of the parent started it. It is deleted with its parent.
    Subagent {
        /// The session that started it.
        parent: SessionId,
    },
    /// It starts with another session's first events. It is independent otherwise.
    Fork {
        /// The session whose first events it shares.
        parent: SessionId,
        /// The last shared event.
        at: Seq,
    },
}

impl Origin {
    /// The parent, if there is one.
    #[must_use]
    pub fn parent(&self) -> Option<&SessionId> {
        match self {
            Self::Root => None,
            Self::Subagent { parent } | Self::Fork { parent, .. } => Some(parent),
        }
    }
}

/// The flow that a session runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its pattern, such as `chain`.
    pub pattern: String,
    /// The spec's raw text.
    pub spec: String,
    /// SHA-256 of the spec's raw bytes.
    pub hash: SpecHash,
    /// The values that the user set for its variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, serde_json::Value>,
}

/// The project that a session works on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Project {
    /// The type, such as `web` or `library`.
    pub project_type: String,
    /// The framework, such as `react`.
    pub framework: String,
    /// The user's answers to questions about it.
    pub answers: BTreeMap<String, serde_json::Value>,
}

/// Where a session was imported from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The other system's name.
    pub system: String,
    /// The session's id there.
    pub id: String,
    /// When the session began there.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "super::time::to_micros"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Time>"))]
    pub started_at: Option<Time>,
}

impl Created {
    /// A session with this id and task, and defaults otherwise.
    pub fn new(id: SessionId, task: impl Into<String>) -> Self {
        Self {
            id,
            task: task.into(),
            agent: String::new(),
            model: String::new(),
            provider: String::new(),
            workspace: String::new(),
            driver: Driver::Own,
            phases: None,
            origin: Origin::Root,
            flow: None,
            project: None,
            source: None,
            scope: None,
            redacted: false,
        }
    }

    /// The same session for another agent.
    #[must_use]
    pub fn with_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = agent.into();
        self
    }

    /// The same session on another model.
    #[must_use]
    pub fn with_model(mut self, provider: impl Into<String>, model: impl Into<String>) -> Self {
        self.provider = provider.into();
        self.model = model.into();
        self
    }

    /// The same session in another folder.
    #[must_use]
    pub fn in_workspace(mut self, workspace: impl Into<String>) -> Self {
        self.workspace = workspace.into();
        self
    }

    /// The same session with phases.
    #[must_use]
    pub fn with_phases(mut self, phases: PhaseSet) -> Self {
        self.phases = Some(phases);
        self
    }

    /// The same session in a scope.
    #[must_use]
    pub fn in_scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// The same session, driven by an external agent.
    #[must_use]
    pub fn driven_externally(mut self) -> Self {
        self.driver = Driver::External;
        self
    }
}
