//! Sessions of agents that follow the lifecycle phases.

use std::collections::BTreeMap;
use std::time::Duration;

use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use stepwell::model::Driver;
use stepwell::sessions::ResumeLimits;
use stepwell::sessions::lifecycle::{self, Begin, Finalized, Outcome, Said, Update};
use stepwell::upkeep::Policy;
use stepwell_wire::{Agent, AgentTurn};

use crate::convert::{read, session};
use crate::errors::{invalid, raised};
use crate::given::{Natural, Text};
use crate::well::Well;

/// A new agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenAgent {
    id: Option<String>,
    agent: String,
    #[serde(default)]
    purpose: String,
    #[serde(default)]
    workspace: String,
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
}

/// What an agent tells of itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenUpdate {
    phase: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
    goal: Option<String>,
    error: Option<String>,
    ready: Option<bool>,
}

/// What is said of an agent's end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenEnd {
    summary: Option<String>,
    error: Option<String>,
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[pymethods]
impl Well {
    /// Makes an agent's session. Returns its id.
    fn agent_create(&self, py: Python<'_>, given: Text<'_>) -> PyResult<String> {
        let GivenAgent { id, agent, purpose, workspace, metadata } = read("agent", &given)?;
        let id = id.as_deref().map(session).transpose()?;
        let begin = Begin { id, agent, purpose, workspace, metadata };
        Ok(self.run(py, |well| lifecycle::create(well, begin))?.to_string())
    }

    /// An agent's session, as JSON.
    fn agent_state(&self, py: Python<'_>, id: Text<'_>) -> PyResult<String> {
        let id = session(&id)?;
        self.run(py, |well| Ok(json(&Agent::from(lifecycle::read(well, &id)?))))
    }

    /// Records what an agent tells of itself, all or none.
    fn agent_update(&self, py: Python<'_>, id: Text<'_>, given: Text<'_>) -> PyResult<()> {
        let id = session(&id)?;
        let GivenUpdate { phase, metadata, goal, error, ready } = read("update", &given)?;
        let phase = phase.map(|name| lifecycle::phase(&name)).transpose();
        let phase = phase.map_err(|error| raised(&error))?;
        let update = Update { phase, metadata, goal, error, ready };
        self.run(py, |well| lifecycle::update(well, &id, update))
    }

    /// Ends an agent's session. Says whether it ended now; it may have ended so before.
    fn agent_finalize(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        outcome: Text<'_>,
        given: Text<'_>,
    ) -> PyResult<bool> {
        let id = session(&id)?;
        let outcome = match &*outcome {
            "completed" => Outcome::Completed,
            "failed" => Outcome::Failed,
            "abandoned" => Outcome::Abandoned,
            other => {
                let known = "expected one of: completed, failed, abandoned";
                return Err(invalid(format!("{other:?} is no outcome; {known}")));
            }
        };
        let GivenEnd { summary, error } = read("end", &given)?;
        let said = Said { summary, error, ..Said::default() };
        self.run(py, |well| match lifecycle::finalize(well, &id, outcome, said)? {
            Finalized::Now => Ok(true),
            Finalized::Before => Ok(false),
            Finalized::Otherwise(phase) => Err(lifecycle::is_final(&id, phase)),
        })
    }

    /// The last turns of an agent's conversation, oldest first, as JSON.
    fn agent_turns(&self, py: Python<'_>, id: Text<'_>, most: Natural) -> PyResult<String> {
        let id = session(&id)?;
        self.run(py, |well| {
            let turns = lifecycle::turns(well, &id, most.count())?.into_iter();
            Ok(json(&turns.map(AgentTurn::from).collect::<Vec<_>>()))
        })
    }

    /// Whether a session can be resumed now, and why not, as JSON.
    fn resume_decision(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        timeout: f64,
        max_errors: Natural,
    ) -> PyResult<String> {
        let id = session(&id)?;
        let timeout = Duration::try_from_secs_f64(timeout)
            .map_err(|error| invalid(format!("timeout: {error}")))?;
        let limits = ResumeLimits { timeout, max_errors: max_errors.0, ..ResumeLimits::default() };
        self.run(py, |well| Ok(json(&well.resume_decision(&id, limits)?)))
    }

    /// Moves sessions of agents without activity for so long to the trash. Returns their ids.
    fn cleanup_agents(&self, py: Python<'_>, seconds: f64) -> PyResult<Vec<String>> {
        let older_than = Duration::try_from_secs_f64(seconds)
            .map_err(|error| invalid(format!("hours: {error}")))?;
        let policy = Policy {
            older_than: Some(older_than),
            driver: Some(Driver::External),
            ..Policy::default()
        };
        self.run(py, |well| {
            let removal = well.clean_up(&well.plan_cleanup(&policy)?)?;
            Ok(removal.taken.iter().map(ToString::to_string).collect())
        })
    }
}
