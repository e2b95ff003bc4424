use stepwell::sqlite::Access;
use stepwell_runtime::ServerQuery;
use stepwell_terminal::text::visible;
use stepwell_terminal::{note, servers};

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
    let found = app.runtime().mcp_servers(&query)?;
    if app.out.is_json() {
        found.iter().try_for_each(|server| app.out.object(server))?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        app.out.line("No MCP servers are named.")?;
        if let Some(path) = app.workspace.host.user_config() {
            note(format_args!("hint: add [mcp.NAME] to {}", visible(&path.display().to_string())));
        }
        return Ok(Exit::Done);
    }
    app.print(&servers::table(&found))?;
    let columns = app.terminal.width;
    for line in found.iter().flat_map(|server| servers::more(server, columns)) {
        app.out.line(line)?;
    }
    Ok(Exit::Done)
}
