//! `dispatch_subagent`: gives a task to a subagent. This file describes and parses the call; the
//! driver runs it, because a subagent is a run of its own.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::model::Effect;
pub use stepwell::model::Isolation;

use super::{Done, Plan, Tool, ToolEnv, parse, spec, word};
use crate::provider::ToolSpec;

/// The tool's name.
const NAME: &str = "dispatch_subagent";

/// A request for a subagent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Its task.
    pub task: String,
    /// Its name in lists and in its commit. Only guided work sets it; a model is not offered it.
    #[serde(default)]
    pub name: Option<String>,
    /// The name of the agent; `None` for the default of its isolation.
    #[serde(default)]
    pub agent: Option<String>,
    /// The subset of the agent's tools; `None` for all.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// The folder in which it works.
    #[serde(default, rename = "workspace")]
    pub isolation: Isolation,
    /// Merge its changes into the checked-out branch?
    #[serde(default)]
    pub merge: bool,
    /// Does it begin with the workspace's uncommitted files, and write its changes back without a
    /// commit? Only guided work sets it; a model is not offered it.
    #[serde(default)]
    pub uncommitted: bool,
}

impl Order {
    /// Parses a call's arguments. The error is for the model.
    pub fn parse(arguments: &Value) -> Result<Self, String> {
        let order: Self = parse(NAME, arguments)?;
        if order.task.trim().is_empty() {
            return Err("the task is empty: describe what the subagent must do".to_owned());
        }
        if order.merge && order.isolation == Isolation::ReadOnly {
            return Err("merge only applies to workspace \"worktree\": nothing else changes files"
                .to_owned());
        }
        Ok(order)
    }

    /// Its name in lists and in its commit.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.task)
    }

    /// The name of its agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        match (&self.agent, self.isolation) {
            (Some(agent), _) => agent,
            (None, Isolation::ReadOnly) => "explore",
            (None, Isolation::Worktree) => "build",
        }
    }
}

/// Do these arguments ask for a read-only subagent?
#[must_use]
pub fn is_read_only(arguments: &str) -> bool {
    let read: Option<Value> = serde_json::from_str(arguments).ok();
    let order = read.and_then(|arguments| Order::parse(&arguments).ok());
    // Invalid arguments are refused before anything is done, so they need no approval.
    order.is_none_or(|order| order.isolation == Isolation::ReadOnly)
}

#[derive(Debug)]
pub(super) struct Dispatch {
    spec: ToolSpec,
}

pub(super) fn dispatch_subagent() -> Dispatch {
    let text = |says: &str| json!({ "type": "string", "description": says });
    let spec = spec(
        NAME,
        "Gives a task to a subagent with a conversation of its own, waits for it, and returns its \
         last words. It knows nothing of this conversation: the task says all that it needs. What \
         it spends counts for this session.",
        &json!({
            "task": text("What to do, with all that the subagent needs to know."),
            "agent": text("build, plan, review, explore, or one of the user's. Absent: explore, or \
                build in a worktree."),
            "tools": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Of the agent's tools, those that it may use. Absent: all.",
            },
            "workspace": {
                "type": "string",
                "enum": ["read_only", "worktree"],
                "description": "read_only (the default): it sees the workspace and changes nothing. \
                    worktree: it works in a git worktree of its own that begins at the last commit, \
                    on a branch of its own; what is not committed here, it does not see.",
            },
            "merge": {
                "type": "boolean",
                "description": "With worktree: merge its branch into what is checked out when it \
                    is done, if that goes without conflicts.",
            },
        }),
        &["task"],
    );
    Dispatch { spec }
}

impl Tool for Dispatch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        Effect::Resumable
    }

    fn preview(&self, arguments: &Value) -> String {
        let task = word(arguments, "task");
        match Order::parse(arguments) {
            Err(_) => format!("{NAME} {task}"),
            Ok(order) => {
                let place = match (order.isolation, order.merge) {
                    (Isolation::ReadOnly, _) => "",
                    (Isolation::Worktree, false) => " in a worktree of its own",
                    (Isolation::Worktree, true) => " in a worktree of its own, then merge",
                };
                let agent = word(&json!({ "a": order.agent() }), "a");
                // The person who approves the call sees the task, whatever its name is.
                match &order.name {
                    Some(_) => {
                        format!("subagent {agent}{place}: {}: {task}", word(arguments, "name"))
                    }
                    None => format!("subagent {agent}{place}: {task}"),
                }
            }
        }
    }

    fn plan(&self, arguments: &Value, _place: &ToolEnv) -> Result<Plan, String> {
        Order::parse(arguments).map(|_| Plan::default())
    }

    fn run<'a>(&'a self, _arguments: &'a Value, _place: &'a ToolEnv) -> BoxFuture<'a, Done> {
        Box::pin(async { Done::failed("no subagents are available here") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_makes_no_sense_is_refused() {
        for wrong in [
            json!({}),
            json!({ "task": "  " }),
            json!({ "task": "x", "merge": true }),
            json!({ "task": "x", "workspace": "moon" }),
            json!({ "task": "x", "model": "script:/etc/passwd" }),
        ] {
            assert!(Order::parse(&wrong).is_err(), "{wrong}");
        }
        let order = Order::parse(&json!({ "task": "x", "workspace": "worktree" })).unwrap();
        assert_eq!((order.agent(), order.merge), ("build", false));
    }

    #[test]
    fn a_name_stands_before_the_task_and_does_not_hide_it() {
        let arguments = json!({ "task": "# Goal\nx", "name": "task 1: Write x" });
        assert_eq!(Order::parse(&arguments).unwrap().name(), "task 1: Write x");
        let preview = dispatch_subagent().preview(&arguments);
        assert_eq!(preview, "subagent explore: task 1: Write x: # Goal\\nx");
    }

    #[test]
    fn only_what_changes_something_needs_consent() {
        assert!(is_read_only(r#"{"task":"look"}"#));
        assert!(!is_read_only(r#"{"task":"change","workspace":"worktree"}"#));
    }
}
