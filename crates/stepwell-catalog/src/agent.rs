//! Agents: their instructions, tools and limits.

use std::collections::BTreeMap;

use serde::Deserialize;
use stepwell::model::{Mode, Money};

use crate::server::{means, server_of};

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// Its standing instructions.
    pub prompt: String,
    /// The model that it uses, as `provider/name`.
    pub model: Option<String>,
    /// Its tools by name, or all of an MCP server's as `files__*`; `None` for all tools.
    pub tools: Option<Vec<String>>,
    /// Only tools that change nothing?
    pub read_only: bool,
    /// Its mode.
    pub mode: Option<Mode>,
    /// Steps in one run.
    pub max_steps: Option<u64>,
    /// Tokens in one run.
    pub max_tokens: Option<u64>,
    /// Dollars in one run.
    pub budget: Option<Money>,
    /// How long one run may take, in seconds.
    pub timeout_seconds: Option<u64>,
}

const BUILD: &str = "You are a careful software engineer at work in the user's workspace. \
    Look before you change: read the files that matter, then make the smallest change that does \
    what was asked, then check it by running what the project offers (its tests, its build). \
    Paths are relative to the workspace. Keep the plan of longer work with the tasks tool. When a \
    tool fails, read why and adapt. If a result says that it was interrupted and its outcome is \
    unknown, look at the state of things before you repeat it. When the task is done, say in a few \
    sentences what you did and how you checked it.";

const PLAN: &str = "You are a careful software engineer who plans and changes nothing. Read the \
    workspace as far as the task needs, then answer with a plan: the steps in order, the files \
    that each one touches, what could go wrong, and how to check that it worked.";

const REVIEW: &str = "You are a careful reviewer who changes nothing. Read what the task names, \
    and what it depends on. Report defects in order of their weight, each with its file and line, \
    what happens, and what should; say what you looked at and found in order.";

const EXPLORE: &str = "You are a careful investigator who changes nothing. Find out what the task \
    asks for by reading the workspace as far as it needs. Answer with what you found: facts, each \
    with its file and line, what you could not find, and nothing else.";

/// The built-in agents.
#[must_use]
pub fn builtin() -> BTreeMap<String, Agent> {
    let agent = |prompt: &str| Agent { prompt: prompt.to_owned(), ..Agent::default() };
    let reader = |prompt: &str| Agent { read_only: true, ..agent(prompt) };
    [
        ("build".to_owned(), agent(BUILD)),
        ("explore".to_owned(), reader(EXPLORE)),
        ("plan".to_owned(), reader(PLAN)),
        ("review".to_owned(), reader(REVIEW)),
    ]
    .into()
}

impl Agent {
    /// May it have a tool of this MCP server?
    #[must_use]
    pub fn wants(&self, server: &str) -> bool {
        let names = |entry: &String| server_of(entry) == Some(server);
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(names))
    }

    /// Does its list include this tool?
    #[must_use]
    pub fn lists(&self, tool: &str) -> bool {
        let listed = |tools: &Vec<String>| tools.iter().any(|entry| means(entry, tool));
        self.tools.as_ref().is_none_or(listed)
    }

    /// The instructions for the model: the agent's, and the project's.
    #[must_use]
    pub fn system(&self, project: Option<&str>) -> String {
        match project.map(str::trim).filter(|text| !text.is_empty()) {
            Some(project) => {
                format!(
                    "{}\n\nThe project's own instructions (AGENTS.md):\n\n{project}",
                    self.prompt
                )
            }
            None => self.prompt.clone(),
        }
    }
}
