//! Finds what a flow would do next, without running or recording anything.
//!
//! The pattern is walked over the recorded results, as in a run. Each node without a result is
//! noted instead of run.

use std::cell::RefCell;

use serde::Serialize;
use serde_json::{Value, json};
use stepwell::{NodeKey, Session};
use stepwell_agent::redact::Redactor;
use stepwell_agent::run::{Allowed, FrontEnd, Setup, SharedBudget};

use crate::agents::Agents;
use crate::error::Result;
use crate::flow::{Flow, Parts};
use crate::halt::Halt;
use crate::history::History;
use crate::node::Work;
use crate::pattern::walk;
use crate::spec::Spec;
use crate::template::Scope;

/// What [`next_nodes`] needs.
pub struct DryRun<'a> {
    /// The flow's session.
    pub session: &'a Session,
    /// The session's history.
    pub history: History,
    /// The checked spec.
    pub spec: &'a Spec,
    /// The values of its variables.
    pub variables: Scope,
    /// Removes secrets from the prompts.
    pub redactor: &'a Redactor,
}

/// A node that a flow would run next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Upcoming {
    /// Its key, as the session's log names it.
    pub key: String,
    /// The agent that would be asked; `None` for a question to a person.
    pub agent: Option<String>,
    /// The prompt or the question; `None` if it cannot be rendered yet.
    pub asks: Option<String>,
}

/// The nodes that a flow would run next; none if all of them are done.
pub async fn next_nodes(dry_run: DryRun<'_>) -> Result<Vec<Upcoming>> {
    let DryRun { session, history, spec, variables, redactor } = dry_run;
    let agents = NoAgents(redactor);
    let (_stop, interrupt) = tokio::sync::watch::channel(false);
    let shared_budget = SharedBudget::new(Allowed::default(), history.spent, history.calls);
    let parts = Parts {
        session,
        spec,
        agents: &agents,
        variables,
        front: FrontEnd::nobody(),
        interrupt,
        shared_budget,
    };
    let mut flow = Flow::new(parts, history);
    flow.dry_run = Some(RefCell::default());
    let walked = walk(&flow).await;
    match walked {
        Err(Halt::Broken(error)) => Err(error),
        _ => Ok(flow.dry_run.take().map(RefCell::into_inner).unwrap_or_default()),
    }
}

impl Flow<'_> {
    /// Notes a node instead of running it. A question that is already answered has the answer as
    /// its result.
    pub(crate) fn note_upcoming(
        &self,
        key: &NodeKey,
        work: &Work<'_>,
        upcoming: &RefCell<Vec<Upcoming>>,
    ) -> std::result::Result<Value, Halt> {
        let node = match work {
            Work::Gate(question) => {
                let asked = self.state().memo.gate(&key.to_string()).cloned();
                if let Some(answer) = asked.and_then(|asked| asked.answer) {
                    return Ok(json!({ "response": answer.answer.text(), "who": answer.who }));
                }
                let asks = question.gate.prompt.render(question.scope).ok();
                Upcoming { key: key.to_string(), agent: None, asks }
            }
            Work::Ask(ask) => {
                let (agent, asks) = (Some(ask.agent.to_owned()), (ask.prompt)().ok());
                Upcoming { key: key.to_string(), agent, asks }
            }
        };
        let redact = |text: String| self.agents.redactor().redact(&text).into_owned();
        upcoming.borrow_mut().push(Upcoming { asks: node.asks.map(redact), ..node });
        Err(Halt::NotStarted)
    }
}

/// A dry run asks no agents.
struct NoAgents<'a>(&'a Redactor);

impl Agents for NoAgents<'_> {
    fn setup(
        &self,
        agent: &str,
        _: Option<&[String]>,
    ) -> std::result::Result<std::sync::Arc<Setup>, String> {
        Err(format!("{agent} is not asked in a dry run"))
    }

    fn redactor(&self) -> &Redactor {
        self.0
    }
}
