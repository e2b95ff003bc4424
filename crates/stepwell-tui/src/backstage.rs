//! Carries out what the terminal wants done: over the runtime and the store.

mod choices;
mod commands;
mod follow;
mod helpers;
mod reads;
mod rows;
mod runs;
mod shell;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use stepwell::Stepwell;

use stepwell::model::Mode;
use stepwell::store::query::TrashScope;
use stepwell_runtime::detached::Launcher;
use stepwell_runtime::{Error, Runtime};
use stepwell_workspace::{Workspace, known_stores};

use crate::clean::Clean;
use crate::driver::{Backstage, Inputs};
use crate::effect::{Effect, Input, Reply, StorePlace};
use crate::from_runtime::explained;

pub(crate) use reads::Reader;
use reads::Wanted;
use runs::Runs;
use shell::Shells;

/// What the terminal needs of the program around it.
#[derive(Clone)]
pub struct Program {
    /// A runtime in a workspace.
    pub runtime: Arc<dyn Fn(Workspace) -> Runtime + Send + Sync>,
    /// Starts runs that go on in the background of a workspace.
    pub launcher: MakeLauncher,
    /// The user's own editor.
    pub editor: Vec<String>,
}

/// Makes what starts runs in the background of a workspace.
pub type MakeLauncher = Arc<dyn Fn(&Workspace) -> std::io::Result<Launcher> + Send + Sync>;

/// Something that only reads.
type Job = Box<dyn FnOnce(&mut Reader) + Send>;

/// Carries effects out over a runtime.
pub struct RuntimeBackstage {
    program: Program,
    runtime: Runtime,
    /// Where the terminal began.
    home: Runtime,
    /// Where the session lies that is being opened, if that is elsewhere; and which opening it is.
    next: Option<(u64, Runtime)>,
    inputs: Inputs,
    runs: Runs,
    shells: Shells,
    /// What only reads is done in turn, on a thread of its own.
    reads: Sender<Job>,
}

impl RuntimeBackstage {
    /// One that works in a workspace.
    #[must_use]
    pub fn new(workspace: Workspace, program: Program, inputs: Inputs) -> Self {
        let runtime = (program.runtime)(workspace);
        let (reads, jobs) = channel::<Job>();
        let mut reader = Reader::new(runtime.clone(), inputs.clone());
        std::thread::spawn(move || {
            for job in jobs {
                job(&mut reader);
            }
        });
        let (runs, shells) = (Runs::new(inputs.clone()), Shells::new(inputs.clone()));
        let home = runtime.clone();
        Self { program, runtime, home, next: None, inputs, runs, shells, reads }
    }

    fn read(&self, job: impl FnOnce(&mut Reader) + Send + 'static) {
        // The thread lives as long as this does.
        let _ = self.reads.send(Box::new(job));
    }

    fn fail(&self, error: &Error) {
        let (why, hint) = explained(error);
        let _ = self.inputs.send(Input::Reply(Reply::Failed { why, hint }));
    }

    /// Opens a session in the store that it lies in. Only when that is done, it is worked on there.
    fn open(&mut self, name: String, store: Option<PathBuf>, resume: bool, opening: u64) {
        let workspace = match self.workspace_of(&name, store) {
            Ok(workspace) => workspace,
            Err(error) => {
                let (why, hint) = explained(&error);
                let reply = Reply::NotOpened { opening, why, hint };
                return drop(self.inputs.send(Input::Reply(reply)));
            }
        };
        let (store, home) =
            (workspace.place.shown_store(), self.home.workspace().place.shown_store());
        let place = (store != home).then(|| place(&workspace));
        let runtime = match store == self.runtime.workspace().place.shown_store() {
            true => None,
            false if store == home => Some(self.home.clone()),
            false => Some((self.program.runtime)(workspace)),
        };
        self.next = runtime.clone().map(|runtime| (opening, runtime));
        self.read(move |reader| reader.open(Wanted { name, resume, opening, runtime, place }));
    }

    /// The workspace that a session lies in: the named store's; else where it is known, here first,
    /// then where the terminal began, then in the user's other stores.
    fn workspace_of(&self, name: &str, store: Option<PathBuf>) -> Result<Workspace, Error> {
        let (here, mut home) = (self.runtime.workspace(), self.home.workspace().clone());
        if let Some(store) = store {
            if store == here.place.shown_store() {
                return Ok(here.clone());
            }
            if store != home.place.shown_store() {
                home.go_to_store(&store)?;
            }
            return Ok(home);
        }
        let is_away = here.place.shown_store() != home.place.shown_store();
        let knows = |well: Stepwell| well.try_find(TrashScope::Kept, name).is_ok();
        if is_away && here.open_if_present()?.is_some_and(knows) {
            return Ok(here.clone());
        }
        known_stores::go_to_session(&mut home, name)?;
        Ok(home)
    }

    fn enter(&mut self, opening: u64) {
        if let Some((_, runtime)) = self.next.take().filter(|(next, _)| *next == opening) {
            self.runtime = runtime;
        }
    }

    fn go_home(&mut self) {
        self.runtime = self.home.clone();
        let runtime = self.home.clone();
        self.read(move |reader| reader.go_to(runtime));
    }

    /// Reads the configuration again, and works with it from now on.
    fn read_config(&mut self) {
        let again = |runtime: &Runtime| -> Result<Runtime, Error> {
            let mut workspace = runtime.workspace().clone();
            workspace.reload_config()?;
            Ok((self.program.runtime)(workspace))
        };
        match (again(&self.home), again(&self.runtime)) {
            (Ok(home), Ok(runtime)) => {
                (self.home, self.runtime) = (home, runtime.clone());
                let StorePlace { model, mode, .. } = place(runtime.workspace());
                let _ = self.inputs.send(Input::Reply(Reply::Configured { model, mode }));
                self.read(move |reader| reader.work_with(runtime));
            }
            (Err(error), _) | (_, Err(error)) => self.fail(&error),
        }
    }
}

/// A workspace, as it is shown.
fn place(workspace: &Workspace) -> StorePlace {
    let settings = &workspace.config.settings;
    StorePlace {
        store: workspace.place.shown_store(),
        folder: shown_folder(workspace),
        model: Clean::line(&settings.model_name),
        mode: settings.mode.as_str().parse().unwrap_or(Mode::ConfirmSensitive),
    }
}

/// The folder of a workspace, as it is shown.
#[must_use]
pub fn shown_folder(workspace: &Workspace) -> Clean {
    let (home, root) = (workspace.host.home.as_deref(), &workspace.place.root);
    let folder = match home.and_then(|home| root.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => root.display().to_string(),
    };
    Clean::line(folder.trim_end_matches('/'))
}

impl Backstage for RuntimeBackstage {
    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Start { task, settings } => self.runs.start(&self.runtime, task, &settings),
            Effect::StartWork { goal, unasked, settings } => {
                self.runs.start_work(&self.runtime, goal, unasked, &settings);
            }
            Effect::StartFlow { spec, variables, settings } => {
                self.runs.start_flow(&self.runtime, &spec, &variables, &settings);
            }
            Effect::Resume { session, say, settings } => {
                self.runs.resume(&self.runtime, session, say, &settings);
            }
            Effect::Say { session, text } => self.runs.say(&self.runtime, &session, text),
            Effect::SayFirst(text) => self.runs.say_first(&self.runtime, text),
            Effect::Answer { session, gate, answer } => {
                self.runs.answer(&self.runtime, session, gate, answer);
            }
            Effect::AllowLike { session, gate, rule } => {
                self.runs.allow_like(session, gate, &rule);
            }
            Effect::Watch { session, after } => self.runs.watch(&self.runtime, session, after),
            Effect::LetGo => self.runs.let_go(),
            Effect::StopElsewhere(session) => self.runs.stop_elsewhere(&self.runtime, session),
            Effect::Pause => self.runs.pause(),
            Effect::Interrupt => self.runs.interrupt(),
            Effect::Shell { command, visit } => self.shells.start(command, visit, &self.runtime),
            Effect::StopShell => self.shells.stop(),
            Effect::Run { command, visit } => {
                commands::run(&self.runtime, command, visit, &self.inputs);
            }
            Effect::Import { path, session, visit } => {
                commands::import(&self.runtime, path.into(), (session, visit), &self.inputs);
            }
            Effect::GoOnDetached(session) => {
                commands::go_on_detached(&self.program, &self.runtime, session, &self.inputs);
            }
            Effect::ListStart => self.read(Reader::start),
            Effect::Open { session, store, resume, opening } => {
                self.open(session, store, resume, opening);
            }
            Effect::Enter { opening } => self.enter(opening),
            Effect::GoHome => self.go_home(),
            Effect::ReadConfig => self.read_config(),
            Effect::SetBudget { session, most } => {
                self.runs.set_budget(session.as_ref(), most);
                if let Some(session) = session {
                    self.read(move |reader| reader.set_budget(&session, most));
                }
            }
            Effect::ListHelpers(session) => self.read(move |reader| reader.helpers(&session)),
            Effect::ReadCard(session) => self.read(move |reader| reader.card(&session)),
            Effect::ReadNew { session, after } => {
                self.read(move |reader| reader.grown(&session, after));
            }
            Effect::CheckModel { name, visit } => {
                self.read(move |reader| reader.check_model(name, visit));
            }
            Effect::CheckAgent { name, visit } => {
                self.read(move |reader| reader.check_agent(name, visit));
            }
            Effect::ReadEarlier { session, before } => {
                self.read(move |reader| reader.earlier(&session, before));
            }
            Effect::Find { search, words, reach } => {
                let newest = self.runs.newest_search(search);
                self.read(move |reader| {
                    // Only the newest search is worth an answer.
                    if newest.load(std::sync::atomic::Ordering::Relaxed) == search {
                        reader.find(search, &words, reach);
                    }
                });
            }
            Effect::Preview { session, store, words: _ } => {
                self.read(move |reader| reader.preview(&session, store.as_deref()));
            }
            Effect::ListPoints { session, purpose } => {
                self.read(move |reader| reader.points(&session, purpose));
            }
            Effect::ListFiles(typed) => self.read(move |reader| reader.files(&typed)),
            Effect::ListModels => self.read(Reader::models),
            Effect::ListAgents => self.read(Reader::agents),
            // The loop does these itself.
            Effect::Copy(_)
            | Effect::Edit(_)
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Leave => {}
        }
    }

    fn editor(&self) -> Vec<String> {
        self.program.editor.clone()
    }

    fn close(&mut self) {
        self.shells.stop();
        self.runs.close();
    }
}
