use std::sync::Arc;

use stepwell::model::Mode;
use stepwell_runtime::detached::Launcher;
use stepwell_runtime::{Runtime, ToldOnce};
use stepwell_terminal::{Paint, note, wording};
use stepwell_tui::{
    Clean, Effect, Input, Inputs, Look, Program, RunSettings, RuntimeBackstage, State, Theme, Told,
    inputs, shown_folder,
};
use stepwell_workspace::{RunLogs, Workspace};

use super::{detach, resume};
use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::{runner, terminal};

/// Talks with an agent: every turn is saved, and any session can be picked up.
///
/// Without a session, it shows what was cut off, what waits for you and what you used last; what
/// you type begins a new one. ? shows the keys and commands. Leaving loses nothing.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The session to go on with: its id, a part of it, its label, or @last.
    session: Option<String>,
    /// Writes lines and redraws nothing, for screen readers.
    #[arg(long)]
    plain: bool,
    /// The agent: build, explore, plan, review, or one of your own.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The model: openai/NAME, anthropic/NAME, gemini/NAME, ollama/NAME, or script:FILE.
    #[arg(long, value_name = "PROVIDER/NAME")]
    model: Option<String>,
    /// When you are asked: confirm-all, confirm-sensitive (before changes) or yolo (never).
    #[arg(long)]
    mode: Option<Mode>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if app.out.is_json() {
        return Err(Failure::new(Exit::Usage, "a conversation has no form in JSON"));
    }
    if !args.plain && !has_screen(app) {
        let failure = Failure::new(Exit::Usage, "a conversation needs a terminal");
        return Err(failure.hint("stepwell run \"TASK\" works in a pipe; chat --plain reads lines"));
    }
    resume::refuse_unsaved(app)?;
    let first = first(args, app)?;
    show(args, first, app)
}

/// Can a conversation be shown on a screen?
pub(super) fn has_screen(app: &App) -> bool {
    app.terminal.output && app.terminal.can_ask && !app.out.is_json()
}

/// Shows a session without going on with it: one that runs elsewhere is watched.
pub(super) fn watch(session: &str, app: &mut App) -> Result<Exit> {
    resume::refuse_unsaved(app)?;
    show(&Args::default(), Some(First { session: session.to_owned(), resume: false }), app)
}

/// The session that is shown first.
struct First {
    session: String,
    /// Does it go on at once?
    resume: bool,
}

fn show(args: &Args, first: Option<First>, app: &mut App) -> Result<Exit> {
    let mut state = state(args, app);
    let first = match first {
        Some(First { session, resume }) => state.open_session(session, None, resume),
        None => vec![Effect::ListStart],
    };
    let channel = inputs();
    let mut workspace = app.workspace.clone();
    let telling = channel.to.clone();
    // Nothing may write over the screen.
    workspace.notices = stepwell_workspace::Notices::to(move |notice| {
        tell(&telling, &wording::notice(notice));
    });
    let mut backstage =
        RuntimeBackstage::new(workspace, program(app, &channel.to), channel.to.clone());
    // A terminal that cannot move its cursor gets lines.
    let is_dumb = app.workspace.host.variable("TERM").is_some_and(|term| term == "dumb");
    let state = match args.plain || is_dumb {
        true => stepwell_tui::run_plain(state, &mut backstage, channel, first)?,
        false => stepwell_tui::run(state, &mut backstage, channel.from, first)?,
    };
    state.farewell().into_iter().for_each(note);
    Ok(Exit::Done)
}

/// What is shown first: the session that was named, the newest if the user wants that, or a list.
fn first(args: &Args, app: &App) -> Result<Option<First>> {
    let newest = match (&args.session, app.workspace.config.settings.resume_on_startup) {
        (None, true) => resume::newest_to_resume(app)?.map(|id| id.to_string()),
        _ => None,
    };
    let session = args.session.clone().or(newest);
    Ok(session.map(|session| First { session, resume: true }))
}

fn state(args: &Args, app: &App) -> State {
    let (columns, rows) = terminal::size();
    let settings = &app.workspace.config.settings;
    let state = State::new(Look {
        columns,
        rows,
        theme: if app.out.paint == Paint::Colour { Theme::COLOUR } else { Theme::PLAIN },
        model: Clean::new(&settings.model_name),
        mode: settings.mode.as_str().parse().unwrap_or(Mode::ConfirmSensitive),
        folder: shown_folder(&app.workspace),
    });
    state.with_settings(RunSettings {
        model: args.model.clone(),
        mode: args.mode,
        agent: args.agent.clone(),
        budget: None,
    })
}

/// What the terminal needs of this program.
fn program(app: &App, to: &Inputs) -> Program {
    let supervisor = runner::supervisor();
    let (to, now, known) = (to.clone(), app.workspace.now(), Arc::new(ToldOnce::default()));
    let runtime = move |workspace: Workspace| {
        let (to, known) = (to.clone(), Arc::clone(&known));
        let notices = stepwell_runtime::Notices::to(move |notice| {
            if let Some(text) = wording::runtime_notice(notice, now, true)
                && known.is_news(notice)
            {
                tell(&to, &text);
            }
        });
        Runtime::new(workspace).telling(notices).supervised_by(supervisor.clone())
    };
    let variable = |name: &str| app.workspace.host.variable(name);
    let editor =
        variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let global = app.global.clone();
    let launcher = move |workspace: &Workspace| {
        Ok(Launcher {
            program: detach::program_at(&workspace.place, &global)?,
            folder: workspace.place.root.clone(),
            logs: RunLogs::of(&workspace.place.store).folder().to_owned(),
        })
    };
    Program {
        runtime: Arc::new(runtime),
        launcher: Arc::new(launcher),
        editor: editor.split_whitespace().map(str::to_owned).collect(),
    }
}

/// Tells the person of something.
fn tell(to: &Inputs, text: &str) {
    // Nobody is left to tell when the screen is closed.
    let _ = to.send(Input::Run(Told::Notice(Clean::new(text))));
}
