use stepwell::sqlite::Access;
use stepwell_runtime::ServerQuery;
use stepwell_runtime::command::Command;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Lists the MCP servers that your own agents can use here.
///
/// They are named in your own configuration, as [mcp.NAME], and in flows' specs. Those of a spec are
/// not trusted: they are started only by flows that you begin.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Starts or reaches those that are trusted, and lists their tools.
    #[arg(long)]
    tools: bool,
    /// Only those that a session can use: its id, a part of it, its label, or @last.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only those that an agent can use.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let session = args
        .session
        .as_ref()
        .map(|name| app.workspace.open_session(name, Access::Read))
        .transpose()?;
    let session = session.map(|(_, id)| id);
    let query = ServerQuery { session, agent: args.agent.clone(), asks: args.tools };
    let reply = app.carry_out(Command::Servers(query))?;
    app.answer(&reply)
}
