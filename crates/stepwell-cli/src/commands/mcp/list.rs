use stepwell::Access;
use stepwell_runtime::ServerQuery;
use stepwell_terminal::note;
use stepwell_terminal::table::{Column, Table, left};
use stepwell_terminal::text::{count, one_line, visible};
use stepwell_wire::{McpServer, McpState};

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

const COLUMNS: &[Column] =
    &[left("NAME"), left("TRANSPORT"), left("TRUSTED"), left("STATE"), left("REACH"), left("FROM")];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let session = args.session.as_ref().map(|name| app.session(name, Access::Read)).transpose()?;
    let session = session.map(|(_, id)| id);
    let query = ServerQuery { session, agent: args.agent.clone(), asks: args.tools };
    let servers = app.runtime().mcp_servers(&query)?;
    if app.out.is_json() {
        servers.iter().try_for_each(|server| app.out.object(server))?;
        return Ok(Exit::Done);
    }
    if servers.is_empty() {
        app.out.line("No MCP servers are named.")?;
        if let Some(path) = app.host.user_config() {
            note(format_args!("hint: add [mcp.NAME] to {}", visible(&path.display().to_string())));
        }
        return Ok(Exit::Done);
    }
    let mut table = Table::new(COLUMNS);
    for server in &servers {
        table.push(vec![
            visible(&server.name).into(),
            server.transport.as_str().into(),
            if server.trusted { "yes" } else { "no" }.into(),
            state(server).into(),
            one_line(&server.reach).into(),
            one_line(&server.source).into(),
        ]);
    }
    app.print(&table)?;
    for server in &servers {
        tell_more(server, app)?;
    }
    Ok(Exit::Done)
}

fn state(server: &McpServer) -> String {
    match server.state {
        McpState::Ready => count(server.tools.len(), "tool"),
        state => state.as_str().to_owned(),
    }
}

/// What does not fit a line: why a server cannot be used, and its tools.
fn tell_more(server: &McpServer, app: &mut App) -> Result<()> {
    if let Some(why) = &server.problem {
        app.out.line(format_args!("\n{}: {}", visible(&server.name), one_line(why)))?;
    }
    if server.tools.is_empty() {
        return Ok(());
    }
    app.out.line(format_args!("\n{}", visible(&server.name)))?;
    for tool in &server.tools {
        let asked = if tool.read_only { "reads" } else { "asks" };
        let line = format!("  {} ({asked})  {}", tool.name, tool.description);
        let line = app.cut(&one_line(&line));
        app.out.line(line)?;
    }
    Ok(())
}
