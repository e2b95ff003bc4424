//! Selects the tools of an agent from all available ones. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use stepwell::model::Effect;
use stepwell_catalog::agent::Agent;
use stepwell_catalog::server::{means, server_of};

use crate::error::{Error, Result};
use crate::tool::Tool;

/// The most tools in a request. One provider accepts at most 128, and models choose worse long
/// before that.
pub const MOST_TOOLS: usize = 128;

/// The tools of an agent.
#[derive(Debug)]
pub struct Selection {
    /// In the order of the agent's list.
    pub tools: Vec<Arc<dyn Tool>>,
    /// How many tools were dropped because of the limit.
    pub left_out: usize,
}

/// May an agent have this tool?
#[must_use]
pub fn may_have(agent: &Agent, tool: &dyn Tool) -> bool {
    let is_pure = !agent.read_only || tool.effect() == Effect::Pure;
    is_pure && agent.lists(&tool.spec().name)
}

/// Selects an agent's tools. An entry of the agent's list that matches no tool is an error, because
/// the agent was written to need it. `absent` names the servers that could not be reached, with
/// reasons.
pub fn select(
    agent: &Agent,
    all: Vec<Arc<dyn Tool>>,
    absent: &BTreeMap<String, String>,
) -> Result<Selection> {
    for entry in agent.tools.iter().flatten() {
        if !all.iter().any(|tool| means(entry, &tool.spec().name)) {
            return Err(missing(entry, &all, absent));
        }
    }
    let mut tools: Vec<_> = all.into_iter().filter(|tool| may_have(agent, &**tool)).collect();
    let left_out = tools.len().saturating_sub(MOST_TOOLS);
    tools.truncate(MOST_TOOLS);
    Ok(Selection { tools, left_out })
}

fn missing(entry: &str, all: &[Arc<dyn Tool>], absent: &BTreeMap<String, String>) -> Error {
    let entry = entry.to_owned();
    if let Some((server, why)) = server_of(&entry).and_then(|name| absent.get_key_value(name)) {
        return Error::ServerAbsent { server: server.clone(), why: why.clone() };
    }
    let names: Vec<String> = all.iter().map(|tool| tool.spec().name.clone()).collect();
    let near = stepwell::sessions::nearest(&entry, names.iter().map(String::as_str))
        .map(ToOwned::to_owned);
    Error::NoTool { entry, near }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use serde_json::Value;

    use super::*;
    use stepwell_catalog::agent::builtin;

    use crate::provider::ToolSpec;
    use crate::tool::{self, Done, Plan, ToolEnv};

    #[derive(Debug)]
    struct Named(ToolSpec, Effect);

    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn effect(&self) -> Effect {
            self.1
        }

        fn preview(&self, _: &Value) -> String {
            String::new()
        }

        fn plan(&self, _: &Value, _: &ToolEnv) -> Result<Plan, String> {
            Ok(Plan::default())
        }

        fn run<'a>(&'a self, _: &'a Value, _: &'a ToolEnv) -> BoxFuture<'a, Done> {
            Box::pin(async { Done::ok("") })
        }
    }

    fn named(name: &str, effect: Effect) -> Arc<dyn Tool> {
        let (name, description) = (name.to_owned(), String::new());
        Arc::new(Named(ToolSpec { name, description, parameters: Value::Null }, effect))
    }

    fn all() -> Vec<Arc<dyn Tool>> {
        let mut all = tool::builtin();
        all.push(named("git__log", Effect::Pure));
        all.push(named("git__push", Effect::Unsafe));
        all
    }

    fn names(agent: &Agent) -> Result<Vec<String>> {
        let absent = [("gone".to_owned(), "it ended".to_owned())].into();
        let selected = select(agent, all(), &absent)?;
        Ok(selected.tools.iter().map(|tool| tool.spec().name.clone()).collect())
    }

    fn with(tools: &[&str]) -> Agent {
        let tools = Some(tools.iter().map(|&tool| tool.to_owned()).collect());
        Agent { tools, ..Agent::default() }
    }

    #[test]
    fn agents_that_only_read_get_only_pure_tools() {
        for name in ["plan", "review"] {
            let expected = ["read_file", "list_files", "search", "tasks", "git__log"];
            assert_eq!(names(&builtin()[name]).unwrap(), expected, "{name}");
        }
        assert_eq!(names(&builtin()["build"]).unwrap().len(), 11);
        let both = Agent { read_only: true, ..with(&["git__*"]) };
        assert_eq!(names(&both).unwrap(), ["git__log"]);
    }

    #[test]
    fn a_list_names_tools_and_whole_servers() {
        assert_eq!(names(&with(&["search", "git__push"])).unwrap(), ["search", "git__push"]);
        assert_eq!(names(&with(&["git__*"])).unwrap(), ["git__log", "git__push"]);
        assert!(with(&["git__*"]).wants("git") && !with(&["git__*"]).wants("github"));
        assert!(Agent::default().wants("git") && !with(&["search"]).wants("git"));
    }

    #[test]
    fn an_entry_that_means_nothing_is_an_error_that_says_why() {
        let told = |entry| names(&with(&["search", entry])).unwrap_err().to_string();
        assert_eq!(told("gone__x"), "MCP server gone: it ended");
        assert_eq!(told("gone__*"), "MCP server gone: it ended");
        assert_eq!(told("git__pull"), "there is no tool \"git__pull\"; did you mean git__push?");
        assert_eq!(told("raed_file"), "there is no tool \"raed_file\"; did you mean read_file?");
        assert_eq!(told("zzz"), "there is no tool \"zzz\"");
    }

    #[test]
    fn no_more_tools_are_given_than_a_provider_takes() {
        let many = (0..300).map(|n| named(&format!("many__{n}"), Effect::Pure));
        let all: Vec<_> = all().into_iter().chain(many).collect();
        let selected = select(&Agent::default(), all.clone(), &BTreeMap::new()).unwrap();
        assert_eq!((selected.tools.len(), selected.left_out), (128, 183));
        let one = select(&with(&["many__299"]), all, &BTreeMap::new()).unwrap();
        assert_eq!((one.tools.len(), one.left_out), (1, 0));
    }
}
