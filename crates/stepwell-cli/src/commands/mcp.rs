mod list;

use std::io;

use stepwell_mcp::{Access, Options, Scope, Server};
use stepwell_terminal::note;
use stepwell_terminal::text::{indented, visible};
use stepwell_wire::McpInstalled;
use stepwell_workspace::{McpClient, SettingsChange, mcp_clients};

use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Failure, Result};
use crate::reach::Reach;
use crate::typed::one_of;

/// Serves your sessions to other agents over MCP, on stdin and stdout.
///
/// Agents can search and read the sessions of this workspace: what was said, which tools ran, what
/// became of files. Secrets are taken out. No agent can answer a question that waits for you.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Clone, Debug, clap::Args)]
struct Serve {
    /// Shows the sessions of all of your known stores, not only this workspace's.
    #[arg(long)]
    everywhere: bool,
    /// Lets agents write: record (sessions of their own), manage (labels, tags, forks).
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = one_of(ALLOW))]
    allow: Vec<Access>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Lists the MCP servers that your own agents can use here.
    List(list::Args),
    /// Adds this server to another agent's settings. Shows the change first.
    Install {
        /// Which agent's.
        #[arg(value_parser = one_of(AGENTS))]
        agent: McpClient,
        #[command(flatten)]
        serve: Serve,
        #[command(flatten)]
        consent: Consent,
    },
    /// Takes this server out of another agent's settings. Shows the change first.
    Uninstall {
        /// Which agent's.
        #[arg(value_parser = one_of(AGENTS))]
        agent: McpClient,
        #[command(flatten)]
        consent: Consent,
    },
}

/// What agents may do besides reading.
pub(super) const ALLOW: &[(&str, Access)] =
    &[("record", Access::Record), ("manage", Access::Manage)];

/// Agents that use MCP servers.
const AGENTS: &[(&str, McpClient)] = &[
    ("claude", McpClient::Claude),
    ("codex", McpClient::Codex),
    ("gemini", McpClient::Gemini),
    ("opencode", McpClient::Opencode),
    ("zed", McpClient::Zed),
];

impl Serve {
    fn options(&self) -> Options {
        let scope = if self.everywhere { Scope::Everywhere } else { Scope::Workspace };
        Options { scope, allow: self.allow.clone() }
    }
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match &self.action {
            None => Reach::widens_if(!self.serve.allow.is_empty(), Reach::Reads),
            Some(Action::List(_)) => Reach::Reads,
            Some(Action::Install { .. } | Action::Uninstall { .. }) => Reach::Widens,
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match &args.action {
        None => serve(&args.serve, app),
        Some(Action::List(args)) => list::run(args, app),
        Some(Action::Install { agent, serve, consent }) => {
            let store = app.wanted.store.as_deref();
            let arguments = mcp_clients::with_store(serve.options().arguments(), store)?;
            let plan = mcp_clients::plan_mcp_install(&app.workspace, *agent, &arguments)?;
            change(plan, INSTALL, *consent, app)
        }
        Some(Action::Uninstall { agent, consent }) => {
            let plan = mcp_clients::plan_mcp_uninstall(&app.workspace, *agent)?;
            change(plan, UNINSTALL, *consent, app)
        }
    }
}

fn serve(serve: &Serve, app: &App) -> Result<Exit> {
    if app.terminal.can_ask {
        note("Waiting for an MCP client on stdin. Ctrl+D ends it.");
        note("hint: stepwell mcp install claude adds this server to Claude Code");
    }
    let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all();
    let runtime = runtime.build().map_err(|error| failed(&error))?;
    let server = Server::new(app.workspace.clone(), serve.options());
    let served = runtime.block_on(server.serve(io::stdin(), io::stdout()));
    runtime.shutdown_background();
    served.map_err(|error| failed(&error))?;
    Ok(Exit::Done)
}

/// What is said of a change: of a part of a file, of a whole one, when it is done, and if there is
/// none.
pub(super) const INSTALL: [&str; 4] =
    ["Adds to", "Adds the file", "Added.", "It is there already."];
pub(super) const UNINSTALL: [&str; 4] =
    ["Takes out of", "Removes the file", "Taken out.", "It is not there."];

/// Shows a change, asks, and makes it.
pub(super) fn change(
    plan: Option<SettingsChange>,
    words: [&str; 4],
    consent: Consent,
    app: &mut App,
) -> Result<Exit> {
    let [part, whole, done, nothing] = words;
    let Some(plan) = plan else {
        let answer = McpInstalled { settings: None, piece: None, changed: false };
        app.out.answer(&answer, nothing)?;
        return Ok(Exit::Done);
    };
    let path = plan.path.display().to_string();
    let title = if plan.is_whole_file() { whole } else { part };
    let piece = plan.piece.trim_matches('\n');
    note(format_args!("{title} {}:\n{}", visible(&path), indented(&visible(piece), "  ")));
    consent.ask(app.terminal, "Do it?", Unasked::RefuseForeign)?;
    plan.apply()?;
    let piece = Some(plan.piece);
    app.out.answer(&McpInstalled { settings: Some(path), piece, changed: true }, done)?;
    Ok(Exit::Done)
}
