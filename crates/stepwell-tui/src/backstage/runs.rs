//! The run of the open session: started, talked to, stopped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use stepwell::{Access, Answer, Lane, Said, SessionId};
use stepwell_flow::NoAnswer;
use stepwell_runtime::{
    Error, Interrupt, Patience, ResumeRequest, RunHandle, RunOptions, RunRequest, Runtime,
};

use super::Wording;
use crate::clean::Clean;
use crate::driver::Inputs;
use crate::effect::{Input, Reply, RunSettings};
use crate::from_runtime::{Listener, failure, report};
use crate::told::{Ended, Told};

/// The run of the open session.
pub(super) struct Runs {
    wording: Wording,
    inputs: Inputs,
    now: Arc<Mutex<Now>>,
    thread: Option<JoinHandle<()>>,
    interrupt: Interrupt,
    search: Arc<AtomicU64>,
}

/// The run, while there is one.
#[derive(Default)]
struct Now {
    handle: Option<RunHandle>,
}

impl Runs {
    pub(super) fn new(wording: Wording, inputs: Inputs) -> Self {
        Self {
            wording,
            inputs,
            now: Arc::default(),
            thread: None,
            interrupt: Interrupt::default(),
            search: Arc::default(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which search is the newest.
    pub(super) fn newest_search(&self, search: u64) -> Arc<AtomicU64> {
        self.search.store(search, Ordering::Relaxed);
        Arc::clone(&self.search)
    }

    pub(super) fn start(&mut self, runtime: &Runtime, task: String, settings: &RunSettings) {
        let interrupt = self.begin();
        let runtime = runtime.clone();
        match options(settings) {
            Err(why) => self.cannot(&why),
            Ok(options) => self.spawn(move || {
                runtime.start(RunRequest { options, interrupt, ..RunRequest::new(task) })
            }),
        }
    }

    pub(super) fn resume(
        &mut self,
        runtime: &Runtime,
        session: SessionId,
        say: Option<String>,
        settings: &RunSettings,
    ) {
        let interrupt = self.begin();
        let runtime = runtime.clone();
        match options(settings) {
            Err(why) => self.cannot(&why),
            Ok(options) => self.spawn(move || {
                let request = ResumeRequest::new(session.clone(), runtime.trust(&session));
                runtime.resume(ResumeRequest { say, options, interrupt, ..request })
            }),
        }
    }

    /// A run at a time: one before it is over when another begins.
    fn begin(&mut self) -> Interrupt {
        if let Some(thread) = self.thread.take() {
            // It told of its end, and has nothing left to do.
            let _ = thread.join();
        }
        self.interrupt = Interrupt::default();
        self.interrupt.clone()
    }

    fn cannot(&self, why: &str) {
        let ended = Ended { status: stepwell::Status::Failed, why: Clean::new(why), hint: None };
        let _ = self.inputs.send(Input::Run(Told::Ended(ended)));
    }

    /// Begins a run on a thread that passes on what it tells, up to its end.
    fn spawn(&mut self, begin: impl FnOnce() -> Result<RunHandle, Error> + Send + 'static) {
        let (now, inputs, wording) = (Arc::clone(&self.now), self.inputs.clone(), self.wording);
        self.thread = Some(std::thread::spawn(move || {
            let tell = |told| drop(inputs.send(Input::Run(told)));
            let handle = match begin() {
                Ok(handle) => handle,
                Err(error) => return tell(Told::Ended(failure(error, &wording))),
            };
            let (session, who, events) =
                (handle.id().clone(), handle.who().clone(), handle.events());
            {
                let mut now = now.lock().unwrap_or_else(PoisonError::into_inner);
                now.handle = Some(handle);
            }
            tell(Told::Began(session.clone()));
            let listener = Listener { session: &session, who: &who, wording: &wording };
            events.filter_map(|event| listener.hear(event)).for_each(tell);
            let handle = now.lock().unwrap_or_else(PoisonError::into_inner).handle.take();
            let ended = match handle.map(RunHandle::join) {
                Some(Ok(done)) => report(&done),
                Some(Err(error)) => failure(error, &wording),
                None => return,
            };
            tell(Told::Ended(ended));
        }));
    }

    pub(super) fn say(&self, runtime: &Runtime, session: &SessionId, text: String) {
        let said = match &self.now().handle {
            Some(handle) if handle.id() == session => handle.say(text, false),
            _ => keep(runtime, session, text),
        };
        self.tell_failure(said);
    }

    /// Answers a question. One that was not answered is asked again, if it still waits.
    pub(super) fn answer(&self, session: SessionId, gate: String, answer: Answer) {
        let answered = match &self.now().handle {
            Some(handle) => handle.answer(&gate, answer, handle.who().clone()).map(drop),
            None => return,
        };
        let Err(error) = answered else { return };
        let again = match &error {
            Error::BadAnswer { why, .. } => !matches!(why, NoAnswer::Late { .. }),
            Error::Unclear { .. } => true,
            _ => false,
        };
        let why = Clean::new(&(self.wording.failure)(error).0);
        let _ = self.inputs.send(Input::Reply(Reply::NotAnswered { session, gate, why, again }));
    }

    fn tell_failure(&self, done: Result<(), Error>) {
        if let Err(error) = done {
            let (why, hint) = (self.wording.failure)(error);
            let hint = hint.map(|hint| Clean::new(&hint));
            let _ = self.inputs.send(Input::Reply(Reply::Failed { why: Clean::new(&why), hint }));
        }
    }

    pub(super) fn pause(&self) {
        if let Some(handle) = &self.now().handle {
            handle.pause();
        }
    }

    pub(super) fn interrupt(&self) {
        self.interrupt.ask();
    }

    /// Stops the run, and waits until it is saved.
    pub(super) fn close(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.interrupt.ask();
        // A run that is interrupted ends soon: its tools are ended first.
        let _ = thread.join();
    }
}

/// Keeps words for a session's next run.
fn keep(runtime: &Runtime, session: &SessionId, text: String) -> Result<(), Error> {
    let said = Said { text, lane: Lane::main(), who: runtime.who(), now: false };
    runtime.existing(Access::Write)?.say(session, said)?;
    Ok(())
}

/// What was changed here, as the runtime understands it. Someone sits here, so a run waits for
/// answers.
fn options(settings: &RunSettings) -> Result<RunOptions, String> {
    let budget = settings
        .budget
        .as_deref()
        .map(|dollars| dollars.parse().map_err(|error| format!("/budget {dollars}: {error}")));
    let mode = settings.mode.map(|mode| mode.as_str().parse()).transpose()?;
    Ok(RunOptions {
        agent: settings.agent.clone(),
        model: settings.model.clone(),
        mode,
        budget_total: budget.transpose()?,
        patience: Patience::Wait,
        ..RunOptions::default()
    })
}
