use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stepwell_mcp::{Access, HttpService, Scope};
use stepwell_server::{
    AccessFile, Caller, McpAnswer, McpHandler, McpRequest, Options, Origin, Reach, Role, Server,
    Shutdown, Token, TokenFiles, Tokens, Workspaces, certificate, listen,
};
use stepwell_terminal::note;
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

use super::detach;
use super::mcp::ALLOW;
use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::runner;
use crate::typed::one_of;

/// Serves your sessions to a browser and to programs, on this machine.
///
/// Open the link that it prints: it logs your browser in, once. Runs that are started there are
/// processes of their own; stopping the server stops none of them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The port; 0 picks a free one.
    #[arg(long, default_value_t = 7180)]
    port: u16,
    /// Read-only: changes nothing, whoever asks.
    #[arg(long)]
    read_only: bool,
    /// Allows runs in mode yolo. Without it, every run asks before it changes something.
    #[arg(long)]
    allow_yolo: bool,
    /// The workspace that is served, and that runs work in. A team's server starts none without it.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Serves this workspace's store alone, and not your others.
    #[arg(long)]
    only_here: bool,
    /// Lets agents with an operator's token write at /mcp: record (sessions of their own), manage
    /// (labels, tags, forks).
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = one_of(ALLOW))]
    allow: Vec<Access>,
    /// Shows agents with your own token at /mcp the sessions of all of your known stores, not only
    /// this workspace's.
    #[arg(long, conflicts_with = "only_here")]
    everywhere: bool,
    /// Prints the token that programs log in with, and exits.
    #[arg(long)]
    print_token: bool,
    /// Makes a new token. The old one stops working at once, on running servers too.
    #[arg(long)]
    new_token: bool,
    /// Appends a line of JSON to this file for each request: when, who, from where, method, path,
    /// status. No token, query or text is in it.
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// More tokens, one on a line: NAME viewer|operator TOKEN. The file is yours alone; when it
    /// changes, that counts at once.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Listens on this address, in place of this machine's own. Needs --tls-cert or --behind.
    #[arg(long, value_name = "IP")]
    listen: Option<IpAddr>,
    /// The name of the proxy that it is reached through, which does TLS: https://host.
    #[arg(long, value_name = "URL", conflicts_with = "tls_cert")]
    behind: Option<String>,
    /// The certificate chain (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_name"])]
    tls_cert: Option<PathBuf>,
    /// The certificate's key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The address that it is for: https://host:port.
    #[arg(long, value_name = "URL", requires = "tls_cert")]
    tls_name: Option<String>,
}

/// The file, in the user's state folder, that holds the token.
const TOKEN_FILE: &str = "serve.token";

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (own, token) = token(args, app)?;
    if args.print_token {
        app.out.line(token.reveal())?;
        return Ok(Exit::Done);
    }
    let name = app.workspace.host.processes.this().who().name;
    let files = TokenFiles { name, own, others: args.tokens.clone() };
    let tokens = Tokens::kept_in(files).map_err(|error| {
        Failure::new(Exit::Failed, format_args!("reading tokens: {error}"))
            .hint("each line is: NAME viewer|operator TOKEN, and each name is there once")
    })?;
    let reach = reach(args)?;
    let listeners = listen(args.listen, args.port).map_err(|error| {
        Failure::new(Exit::Failed, format_args!("port {}: {error}", args.port))
            .hint("stepwell serve --port N takes another one")
    })?;
    let port = listeners[0].local_addr()?.port();
    let home = home(args, app)?;
    let starts = home.place.team.is_none() || args.workspace.is_some();
    let (others, program) = (!args.only_here, detach::program(app).ok().filter(|_| starts));
    let workspaces = Workspaces { home, others, program };
    let (read_only, may_yolo) = (args.read_only, args.allow_yolo);
    let mcp =
        Some(Arc::new(Agents::new(args, &workspaces.home.with_short_timeout()))
            as Arc<dyn McpHandler>);
    let log = |path: &PathBuf| {
        let opened = AccessFile::open(path);
        opened.map_err(|error| Failure::file(path, "opening the access log", &error))
    };
    let access = args.access_log.as_ref().map(log).transpose()?;
    let options = Options { tokens, read_only, may_yolo, reach: reach.clone(), mcp, access };
    let server = Server::new(listeners, workspaces, options)
        .map_err(|error| Failure::new(Exit::Failed, error))?;
    let origin = match &reach {
        Reach::Local => format!("http://localhost:{port}"),
        Reach::Tls(_, origin) | Reach::Behind(origin) => origin.to_string(),
    };
    let link = server.link()?;
    app.out.line(format_args!("{origin}/login#{}", link.code.reveal()))?;
    app.out.flush()?;
    note("Open this link within a minute; it works once. Ctrl+C stops the server, and no run.");
    serve(server)
}

/// The workspace that is served.
fn home(args: &Args, app: &App) -> Result<Workspace> {
    let Some(named) = &args.workspace else { return Ok(app.workspace.clone()) };
    let gone =
        |error| Failure::new(Exit::Absent, format!("--workspace {}: {error}", named.display()));
    let folder = named.canonicalize().map_err(gone)?;
    let host = Host { folder: Some(folder.clone()), ..app.workspace.host.clone() };
    let wanted = Wanted { folder: Some(folder), ..app.wanted.clone() };
    Ok(Workspace::locate(host, wanted, Notices::to_nobody())?)
}

fn serve(server: Server) -> Result<Exit> {
    let (shutdown, interrupt) = (Shutdown::default(), runner::interrupt());
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(async {
        let stop = shutdown.clone();
        let watched = tokio::spawn(async move {
            interrupt.asked().await;
            stop.ask();
        });
        let served = server.run(&shutdown).await;
        watched.abort();
        served
    })?;
    Ok(Exit::Done)
}

/// What other agents are answered at `/mcp`: the same as by `stepwell mcp`.
#[derive(Debug)]
struct Agents {
    own: stepwell_mcp::Server,
    /// For others, to whom the user's other stores are not shown.
    others: stepwell_mcp::Server,
    allow: Vec<Access>,
}

impl Agents {
    fn new(args: &Args, home: &Workspace) -> Self {
        let scope = if args.everywhere { Scope::Everywhere } else { Scope::Workspace };
        let [own, others] = [scope, Scope::Workspace].map(|scope| {
            let options = stepwell_mcp::Options { scope, allow: Vec::new() };
            stepwell_mcp::Server::new(home.clone(), options)
        });
        Self { own, others, allow: args.allow.clone() }
    }
}

impl McpHandler for Agents {
    fn answer(&self, request: McpRequest, caller: &Caller) -> McpAnswer {
        let server = if caller.is_user { &self.own } else { &self.others };
        let allow = match caller.role {
            Role::Viewer => Vec::new(),
            Role::Operator => self.allow.clone(),
        };
        let service = HttpService::new(server.allowing(allow).acting_as(caller.who()));
        Box::pin(async move { service.answer(request).await })
    }
}

/// The user's token, which is made the first time.
fn token(args: &Args, app: &App) -> Result<(PathBuf, Token)> {
    let state = app.workspace.host.state.as_deref().ok_or_else(|| {
        Failure::new(Exit::Failed, "there is no place to keep a token in")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    let failed = |path: &Path, error| Failure::file(path, "keeping the token", &error);
    std::fs::create_dir_all(state).map_err(|error| failed(state, error))?;
    let path = state.join(TOKEN_FILE);
    let token = if args.new_token { Token::renew(&path) } else { Token::kept_in(&path) };
    let token = token
        .map_err(|error| failed(&path, error).hint("stepwell serve --new-token makes a new one"))?;
    Ok((path, token))
}

/// How it is reached from elsewhere.
fn reach(args: &Args) -> Result<Reach> {
    let origin = |text: &str| {
        Origin::parse(text).ok_or_else(|| {
            Failure::new(Exit::Usage, format_args!("{text:?} is no address of a server"))
                .hint("write it as https://host or https://host:port")
        })
    };
    match (&args.behind, &args.tls_cert, &args.tls_key, &args.tls_name) {
        (Some(name), ..) => Ok(Reach::Behind(origin(name)?)),
        (None, Some(chain), Some(key), Some(name)) => {
            let config = certificate(chain, key)
                .map_err(|error| Failure::file(chain, "reading the certificate", &error))?;
            Ok(Reach::Tls(Arc::new(config), origin(name)?))
        }
        _ => Ok(Reach::Local),
    }
}
