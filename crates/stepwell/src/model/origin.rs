//! Where a session comes from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::SessionId;
use super::phase::PhaseSet;
use super::position::Seq;
use super::spec_hash::SpecHash;
use super::time::Time;

/// The scope of sessions that are rows of the ledger. By it lists leave them out.
pub const LEDGER_SCOPE: &str = "stepwell/ledger";

/// The first record of a session: what was asked, of whom, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Created {
    /// The session's name.
    pub id: SessionId,
    /// What the user asked for.
    pub task: String,
    /// The agent that does it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The model that it uses.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Whose model that is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The folder that it works in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// Who moves the session on.
    #[serde(default)]
    pub driver: Driver,
    /// The phases that its work goes through, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhaseSet>,
    /// What it grew out of.
    #[serde(default)]
    pub origin: Origin,
    /// The workflow that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// The project that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// Where it was imported from, or which program keeps it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What it belongs to, such as an application and a user, in words of the program that
    /// keeps it here: sessions are listed by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Are secrets taken out of what is recorded? A [`Stepwell`](crate::sessions::Stepwell) sets it. It is
    /// absent in imports, which are kept byte for byte, and in what was recorded before it was noted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

/// Who moves a session on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// A runner that holds the lease while it works.
    #[default]
    Own,
    /// An agent that Stepwell does not run. It holds no lease between its short
    /// updates, and its status follows its phase.
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
    /// A parent's agent started it. It goes with its parent.
    Subagent {
        /// The session that started it.
        parent: SessionId,
    },
    /// Another session's first events. It stands on its own.
    Fork {
        /// The session whose events it shares.
        parent: SessionId,
        /// The last event that it shares.
        at: Seq,
    },
}

impl Origin {
    /// The session that it grew out of.
    #[must_use]
    pub fn parent(&self) -> Option<&SessionId> {
        match self {
            Self::Root => None,
            Self::Subagent { parent } | Self::Fork { parent, .. } => Some(parent),
        }
    }
}

/// The workflow that a session runs.
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
    /// What the user set its variables to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, serde_json::Value>,
}

/// The project that a session works on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Project {
    /// Such as `web` or `library`.
    pub project_type: String,
    /// Such as `react`.
    pub framework: String,
    /// What the user answered when asked about it.
    pub answers: BTreeMap<String, serde_json::Value>,
}

/// Where a session was imported from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The system.
    pub system: String,
    /// Its own name for the session.
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
    /// A session of that name for that task; everything else is left open.
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

    /// The same session going through phases.
    #[must_use]
    pub fn with_phases(mut self, phases: PhaseSet) -> Self {
        self.phases = Some(phases);
        self
    }

    /// The same session, belonging to a scope.
    #[must_use]
    pub fn in_scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// The same session, moved on by an agent that Stepwell does not run.
    #[must_use]
    pub fn driven_externally(mut self) -> Self {
        self.driver = Driver::External;
        self
    }
}
