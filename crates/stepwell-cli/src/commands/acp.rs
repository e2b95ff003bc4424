use std::io;

use stepwell_acp::Setup;
use stepwell_terminal::note;
use stepwell_workspace::{AcpClient, mcp_clients};
use tokio::signal::unix::{SignalKind, signal};

use super::mcp::{INSTALL, UNINSTALL, change};
use crate::app::App;
use crate::ask::Consent;
use crate::failure::{Exit, Failure, Result};
use crate::runner;
use crate::typed::one_of;

/// Serves an editor over the Agent Client Protocol, on stdin and stdout.
///
/// Zed, JetBrains IDEs, Neovim and others start it and talk to your agents in it. Sessions are
/// those of the project's store: they go on here and on the command line alike.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Clone, Copy, Debug, clap::Args)]
struct Serve {
    /// Offers methods that the protocol may still change: fork, titles, archive.
    #[arg(long)]
    unstable: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Adds Stepwell to an editor's settings. Shows the change first.
    Install {
        /// Which editor.
        #[arg(value_parser = one_of(EDITORS))]
        editor: AcpClient,
        #[command(flatten)]
        serve: Serve,
        #[command(flatten)]
        consent: Consent,
    },
    /// Takes Stepwell out of an editor's settings. Shows the change first.
    Uninstall {
        /// Which editor.
        #[arg(value_parser = one_of(EDITORS))]
        editor: AcpClient,
        #[command(flatten)]
        consent: Consent,
    },
}

/// Editors, and another client of the protocol.
const EDITORS: &[(&str, AcpClient)] =
    &[("zed", AcpClient::Zed), ("jetbrains", AcpClient::Jetbrains), ("acpx", AcpClient::Acpx)];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match &args.action {
        None => serve(args.serve, app),
        Some(Action::Install { editor, serve, consent }) => {
            let mut arguments = vec!["acp".to_owned()];
            if serve.unstable {
                arguments.push("--unstable".to_owned());
            }
            let arguments = mcp_clients::with_store(arguments, app.wanted.store.as_deref())?;
            let plan = mcp_clients::plan_acp_install(&app.workspace, *editor, &arguments)?;
            change(plan, INSTALL, *consent, app)
        }
        Some(Action::Uninstall { editor, consent }) => {
            let plan = mcp_clients::plan_acp_uninstall(&app.workspace, *editor)?;
            change(plan, UNINSTALL, *consent, app)
        }
    }
}

fn serve(args: Serve, app: &App) -> Result<Exit> {
    if app.terminal.can_ask {
        note("Waiting for an editor on stdin. Ctrl+D ends it.");
        note("hint: stepwell acp install zed adds Stepwell to Zed");
    }
    let failed = |error: io::Error| Failure::new(Exit::Failed, error);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(failed)?;
    let mut wanted = app.wanted.clone();
    // Each session has a folder of its own, and a store that is named stays where it is.
    if app.workspace.place.team.is_none() {
        let absolute = |store| std::path::absolute(&store).unwrap_or(store);
        wanted.store = wanted.store.map(absolute);
    }
    let setup = Setup {
        host: app.workspace.host.clone(),
        wanted,
        supervisor: runner::supervisor(),
        unstable: args.unstable,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let served = runtime.block_on(async {
        let stop = stopped()?;
        stepwell_acp::serve(setup, io::stdin(), io::stdout(), stop).await
    });
    runtime.shutdown_background();
    served.map_err(failed)?;
    Ok(Exit::Done)
}

/// Returns when somebody wants the process to end.
fn stopped() -> io::Result<impl Future<Output = ()>> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminates = signal(SignalKind::terminate())?;
    let mut hangups = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terminates.recv() => {}
            _ = hangups.recv() => {}
        }
    })
}
