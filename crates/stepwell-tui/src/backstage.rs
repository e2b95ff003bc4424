//! Carries out what the terminal wants done: over the runtime, the store and the command line.

mod choices;
mod commands;
mod follow;
mod reads;
mod rows;
mod runs;
mod shell;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use stepwell_runtime::{Error, Runtime};
use stepwell_workspace::Workspace;

use crate::driver::{Backstage, Inputs};
use crate::effect::{Effect, Input, Reply};
use crate::from_runtime::explained;

pub(crate) use reads::Reader;
use runs::Runs;
use shell::Shells;

/// What the terminal needs of the program around it.
#[derive(Clone)]
pub struct Program {
    /// A runtime in a workspace.
    pub runtime: Arc<dyn Fn(Workspace) -> Runtime + Send + Sync>,
    /// The command line: a program and its first arguments.
    pub command: Vec<String>,
    /// The user's own editor.
    pub editor: Vec<String>,
}

/// Something that only reads.
type Job = Box<dyn FnOnce(&mut Reader) + Send>;

/// Carries effects out over a runtime.
pub struct RuntimeBackstage {
    program: Program,
    runtime: Runtime,
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
        Self { program, runtime, inputs, runs, shells, reads }
    }

    fn read(&self, job: impl FnOnce(&mut Reader) + Send + 'static) {
        // The thread lives as long as this does.
        let _ = self.reads.send(Box::new(job));
    }

    fn fail(&self, error: &Error) {
        let (why, hint) = explained(error);
        let _ = self.inputs.send(Input::Reply(Reply::Failed { why, hint }));
    }

    /// Goes to the workspace of a session that is elsewhere, then opens it.
    fn open(&mut self, name: String, resume: bool) {
        self.runs.let_go();
        let mut workspace = self.runtime.workspace().clone();
        if let Err(error) = workspace.go_to_session(&name) {
            return self.fail(&error.into());
        }
        if workspace.place.root != self.runtime.place.root {
            self.runtime = (self.program.runtime)(workspace);
            let runtime = self.runtime.clone();
            self.read(move |reader| reader.go_to(runtime));
        }
        self.read(move |reader| reader.open(&name, resume));
    }
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
            Effect::Shell(command) => self.shells.start(command, &self.runtime),
            Effect::StopShell => self.shells.stop(),
            Effect::Command { arguments, purpose } => {
                let errand = commands::Errand { arguments, purpose };
                commands::run(&self.program, &self.runtime, errand, &self.inputs);
            }
            Effect::ListStart => self.read(Reader::start),
            Effect::Open { session, resume, .. } => self.open(session, resume),
            Effect::ReadCard(session) => self.read(move |reader| reader.card(&session)),
            Effect::ReadNew { session, after } => {
                self.read(move |reader| reader.grown(&session, after));
            }
            Effect::CheckModel(name) => self.read(move |reader| reader.check_model(name)),
            Effect::CheckAgent(name) => self.read(move |reader| reader.check_agent(name)),
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
                self.read(move |reader| reader.preview(&session, store.as_ref()));
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
