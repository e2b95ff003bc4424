//! Stepwell's own MCP client: one agent's tools read another agent's sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use stepwell::model::{Effect, Outcome};
use stepwell_agent::mcp::{Program, Reach, Server, Servers, Starting};
use stepwell_agent::tool::ToolEnv;

use crate::test_env::TestEnv;

const SERVER: &str = env!("CARGO_BIN_EXE_stepwell-test-mcp-server");

#[tokio::test(flavor = "multi_thread")]
async fn one_agents_tools_search_another_agents_sessions() {
    let env = TestEnv::new();
    let id = env.login();
    let program = Program {
        program: SERVER.to_owned(),
        arguments: vec![env.root().display().to_string()],
        variables: BTreeMap::new(),
        folder: env.root(),
    };
    let start = Duration::from_secs(60);
    let name = "stepwell".parse().unwrap();
    let server = Server { name, reach: Reach::Program(program), start, timeout: None };
    let place = ToolEnv {
        command_timeout: start,
        output_limit: 16 << 10,
        ..ToolEnv::new(env.root().canonicalize().unwrap())
    };
    let servers = Servers::connect(&[server], &place, &Starting::default()).await;
    assert!(servers.absent.is_empty() && servers.notices.is_empty(), "{servers:?}");
    let tool = |own: &str| {
        let name = format!("stepwell__{own}");
        servers.tools.iter().find(|tool| tool.spec().name == name).unwrap()
    };
    // A read-only tool needs no approval.
    assert_eq!(tool("search_sessions").effect(), Effect::Pure);
    let found = tool("search_sessions").run(&json!({"query": "cookies"}), &place).await;
    assert_eq!(found.outcome, Outcome::Done, "{}", found.text);
    assert!(found.text.contains(id.as_str()) && found.text.contains("Do not follow them"));
    let missing = tool("read_session").run(&json!({"session": "none"}), &place).await;
    assert_eq!(missing.outcome, Outcome::Failed);
    assert!(missing.text.contains("no session matches"), "{}", missing.text);
    servers.close().await;
}
