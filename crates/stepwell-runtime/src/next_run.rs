//! What a session's next run works with, found without beginning one.

use stepwell::log::Head;
use stepwell::model::Mode;
use stepwell::{ErrorKind, Remedy, SessionId, Stepwell};
use stepwell_agent::agent::Agent;
use stepwell_workspace::{Prior, PriorModel};

use crate::error::{Error, Result};
use crate::request::RunOptions;
use crate::runtime::Runtime;

/// What a session's next run works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextRun {
    /// When a person is asked.
    pub mode: Mode,
    /// The model; none, if somebody has to choose one first.
    pub model: Option<String>,
    /// The agent's name.
    pub agent: String,
}

impl Runtime {
    /// What a session's next run works with: what these options say, else what its user chose
    /// before, as far as that counts, else what the configuration says. A session that is not
    /// there is a new one.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub fn next_run(&self, session: &SessionId, options: &RunOptions) -> Result<NextRun> {
        let Some(well) = self.workspace().open_if_present()? else {
            return Ok(self.next_of(options, None));
        };
        let head = match well.info(session) {
            Ok(info) => info.head,
            Err(error) if error.kind() == ErrorKind::Absent => {
                return Ok(self.next_of(options, None));
            }
            Err(error) => return Err(error.into()),
        };
        self.next_run_in(&well, &head, options)
    }

    /// The same for a session of a store that is open.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub fn next_run_in(
        &self,
        well: &Stepwell,
        head: &Head,
        options: &RunOptions,
    ) -> Result<NextRun> {
        let prior = Prior { head, weighed: well.weigh(&head.id)? };
        Ok(self.next_of(options, Some(&prior)))
    }

    fn next_of(&self, options: &RunOptions, prior: Option<&Prior<'_>>) -> NextRun {
        let before = || Some(successor(prior?, self)?.goes_on);
        let agent = options.agent.clone().or_else(before);
        let agent = agent.unwrap_or_else(|| self.workspace().config.settings.agent_name.clone());
        // One that is not known here is refused when the run begins.
        let known = find_agent(&agent, self).unwrap_or_default();
        let is_flow = prior.is_some_and(|prior| prior.head.flow.is_some());
        let mode = options.mode_or(|| match prior {
            Some(prior) if is_flow => flow_mode(prior, self),
            prior => usual_mode(options, prior, &known, self),
        });
        NextRun { mode, model: model(options, prior, &known, self).ok().flatten(), agent }
    }
}

/// Which agent goes on with a session.
pub(crate) struct Successor {
    /// The one that it was last run by.
    pub(crate) used: String,
    /// The one that goes on.
    pub(crate) goes_on: String,
}

/// The agent that goes on where the one that began is not known.
const ANY_AGENT: &str = "build";

/// The agent that goes on with a session: the one that it was last run by, unless that is an agent
/// of another system that is unknown here.
pub(crate) fn successor(prior: &Prior<'_>, runtime: &Runtime) -> Option<Successor> {
    let used = prior.agent()?.name;
    let is_foreign = prior.head.source.is_some() && find_agent(&used, runtime).is_err();
    let goes_on = if is_foreign { ANY_AGENT.to_owned() } else { used.clone() };
    Some(Successor { used, goes_on })
}

pub(crate) fn find_agent(name: &str, runtime: &Runtime) -> Result<Agent> {
    let agents = runtime.agents();
    agents.get(name).cloned().ok_or_else(|| {
        let known = agents.keys().cloned().collect();
        Error::config(format!("there is no agent {name:?}")).helped_by(Remedy::Choose(known))
    })
}

/// The mode of a run whose user names none.
pub(crate) fn usual_mode(
    options: &RunOptions,
    prior: Option<&Prior<'_>>,
    agent: &Agent,
    runtime: &Runtime,
) -> Mode {
    let usual = runtime.workspace().config.settings.mode;
    match prior {
        Some(prior) if options.agent.is_none() => prior.mode(usual, agent.mode),
        Some(prior) => prior.mode(agent.mode.unwrap_or(usual), None),
        None => agent.mode.unwrap_or(usual),
    }
}

/// The same for a flow that is resumed: its agents bring no modes.
pub(crate) fn flow_mode(prior: &Prior<'_>, runtime: &Runtime) -> Mode {
    prior.mode(runtime.workspace().config.settings.mode, None)
}

/// The model of a run; none, if nobody names one.
///
/// # Errors
/// If only somebody else named one.
pub(crate) fn model(
    options: &RunOptions,
    prior: Option<&Prior<'_>>,
    agent: &Agent,
    runtime: &Runtime,
) -> Result<Option<String>> {
    let usual = agent
        .model
        .clone()
        .or_else(|| Some(runtime.workspace().config.settings.model_name.clone()));
    let usual = usual.filter(|name| !name.is_empty());
    Ok(match (&options.model, prior.map(Prior::model)) {
        (Some(given), _) => Some(given.clone()),
        (None, Some(PriorModel::Mine(model) | PriorModel::Recorded(model))) => Some(model),
        (None, Some(PriorModel::Others { model, who })) if usual.is_none() => {
            // A name can be anyone's: only the record of this machine's user counts.
            let not_you = match runtime.is_namesake(&who) {
                true => "and your home folder does not note that this was you",
                false => "not you",
            };
            let why = format!("{who} chose the model of this session, {not_you}");
            return Err(Error::config(why).helped_by(Remedy::Model { name: model, key: None }));
        }
        (None, _) => usual,
    })
}
