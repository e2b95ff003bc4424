//! What a flow would do next, found without doing or recording anything.
//!
//! The pattern is walked over what is recorded, as in a run. Each piece of work that has no
//! result yet is noted instead of being done.

use std::cell::RefCell;

use serde::Serialize;
use serde_json::{Value, json};
use stepwell::{NodeKey, Session};
use stepwell_agent::redact::Redactor;
use stepwell_agent::run::{Allowed, Purse, Setup};

use crate::agents::Agents;
use crate::error::Result;
use crate::flow::{Flow, Parts};
use crate::halt::Halt;
use crate::history::History;
use crate::node::Work;
use crate::observer::{FlowEvent, Observer};
use crate::pattern::walk;
use crate::spec::Spec;
use crate::template::Scope;

/// A piece of work that a flow would do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Upcoming {
    /// Its key, as the session's log names it.
    pub key: String,
    /// The agent that would be asked; nobody, if a person is.
    pub agent: Option<String>,
    /// What would be asked. Nothing, if that cannot be told yet.
    pub asks: Option<String>,
}

/// What a flow would do next, where its session stands. Nothing, if only its end is left.
pub async fn rehearse(
    (session, history): (&Session, History),
    (spec, variables): (&Spec, Scope),
    redactor: &Redactor,
) -> Result<Vec<Upcoming>> {
    let (agents, mut observer) = (Nobody(redactor), Deaf);
    let (_stop, interrupt) = tokio::sync::watch::channel(false);
    let purse = Purse::new(Allowed::default(), history.spent, history.calls);
    let parts = Parts {
        session,
        spec,
        agents: &agents,
        variables,
        observer: &mut observer,
        interrupt,
        purse,
    };
    let mut flow = Flow::new(parts, history);
    flow.rehearsal = Some(RefCell::default());
    let walked = walk(&flow).await;
    match walked {
        Err(Halt::Broken(error)) => Err(error),
        _ => Ok(flow.rehearsal.take().map(RefCell::into_inner).unwrap_or_default()),
    }
}

impl Flow<'_> {
    /// Notes a piece of work in place of doing it. An answer that was given and is not taken in
    /// yet is its result.
    pub(crate) fn note(
        &self,
        key: &NodeKey,
        work: &Work<'_>,
        noted: &RefCell<Vec<Upcoming>>,
    ) -> std::result::Result<Value, Halt> {
        let upcoming = match work {
            Work::Gate(question) => {
                let asked = self.state().memo.gate(&key.to_string()).cloned();
                if let Some(answer) = asked.and_then(|asked| asked.answer) {
                    return Ok(json!({ "response": answer.answer, "who": answer.who }));
                }
                let asks = question.gate.prompt.render(question.scope).ok();
                Upcoming { key: key.to_string(), agent: None, asks }
            }
            Work::Ask(ask) => {
                let (agent, asks) = (Some(ask.agent.to_owned()), (ask.prompt)().ok());
                Upcoming { key: key.to_string(), agent, asks }
            }
        };
        let plain = |text: String| self.agents.redactor().redact(&text).into_owned();
        noted.borrow_mut().push(Upcoming { asks: upcoming.asks.map(plain), ..upcoming });
        Err(Halt::NotStarted)
    }
}

/// Has no agents: nobody is asked.
struct Nobody<'a>(&'a Redactor);

impl Agents for Nobody<'_> {
    fn setup(
        &self,
        agent: &str,
        _: Option<&[String]>,
    ) -> std::result::Result<std::sync::Arc<Setup>, String> {
        Err(format!("{agent} is not asked in a rehearsal"))
    }

    fn redactor(&self) -> &Redactor {
        self.0
    }
}

/// Is told nothing and asked nothing.
struct Deaf;

impl Observer for Deaf {
    fn on_event(&mut self, _: FlowEvent<'_>) {}

    fn can_ask(&self) -> bool {
        false
    }
}
