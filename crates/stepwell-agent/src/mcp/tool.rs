//! A server's tool as a Stepwell tool.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use stepwell::model::{Effect, Outcome};

use super::connection::{CallFault, Connection};
use super::content::told;
use super::offer::Offered;
use crate::provider::ToolSpec;
use crate::tool::{Done, Plan, Tool, ToolEnv, visible};

#[derive(Debug)]
pub(super) struct Remote {
    pub(super) offered: Offered,
    pub(super) connection: Arc<Connection>,
    /// How long a call may take; `None` for the limit of commands.
    pub(super) timeout: Option<Duration>,
}

impl Tool for Remote {
    fn spec(&self) -> &ToolSpec {
        &self.offered.spec
    }

    fn effect(&self) -> Effect {
        self.offered.effect
    }

    /// Shows all arguments: a person who approves a call must see them.
    fn preview(&self, arguments: &Value) -> String {
        let line = format!("call {} {arguments}", self.offered.spec.name);
        line.chars().flat_map(visible).collect()
    }

    fn plan(&self, arguments: &Value, _: &ToolEnv) -> Result<Plan, String> {
        match arguments {
            Value::Object(_) | Value::Null => Ok(Plan::default()),
            _ => Err(format!("the arguments of {} are not an object", self.offered.spec.name)),
        }
    }

    fn run<'a>(&'a self, arguments: &'a Value, place: &'a ToolEnv) -> BoxFuture<'a, Done> {
        Box::pin(async move {
            let limit = self.timeout.unwrap_or(place.command_timeout);
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            match self.connection.call(&self.offered.own, arguments, limit).await {
                Ok(result) => {
                    let failed = result.is_error.unwrap_or_default();
                    let outcome = if failed { Outcome::Failed } else { Outcome::Done };
                    let text = told(&result, place.output_limit);
                    Done { outcome, ..Done::ok(text) }
                }
                Err(fault) => self.failed(fault, limit),
            }
        })
    }
}

impl Remote {
    fn failed(&self, fault: CallFault, limit: Duration) -> Done {
        match fault {
            CallFault::Unasked(why) => {
                Done::failed(format!("the MCP server cannot be reached: {why}"))
            }
            CallFault::Refused(why) => Done::failed(format!("the MCP server refused: {why}")),
            CallFault::Lost(why) if self.offered.effect == Effect::Pure => {
                Done::failed(format!("the MCP server did not answer: {why}"))
            }
            CallFault::Lost(why) => {
                let text = format!(
                    "the MCP server did not answer the call, so its outcome is unknown: {why}"
                );
                Done { outcome: Outcome::Unknown, ..Done::failed(text) }
            }
            CallFault::TimedOut => {
                let text = format!("cancelled after {} s: the call took too long", limit.as_secs());
                Done { outcome: Outcome::TimedOut, ..Done::failed(text) }
            }
        }
    }
}
