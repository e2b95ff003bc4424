//! The run of the open session: started, talked to, stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stepwell::model::{Answer, Money, Phase, Said};
use stepwell::sqlite::Access;
use stepwell::{Lane, Seq, SessionId};
use stepwell_agent::permission::Rule;
use stepwell_flow::guided::Outline;
use stepwell_flow::spec::YesPhase;
use stepwell_runtime::{
    Answered, Attached, Error, FlowOptions, FlowRequest, Given, Interrupt, Patience, ResumeRequest,
    RunEvent, RunHandle, RunOptions, RunRequest, Runtime, WorkRequest,
};

use crate::clean::Clean;
use crate::driver::Inputs;
use crate::effect::{Input, Reply, RunSettings};
use crate::from_runtime::{Listener, explained, failure, report};
use crate::told::{Ended, Told};

/// How long whoever leaves waits until a run that is beginning has begun: then its task is on record.
const BEGINNING: Duration = Duration::from_secs(5);

/// How long a person who leaves at a question waits until the run has paused.
const PAUSING: Duration = Duration::from_secs(5);

/// The run of the open session.
pub(super) struct Runs {
    inputs: Inputs,
    now: Arc<Mutex<Now>>,
    thread: Option<JoinHandle<()>>,
    interrupt: Interrupt,
    /// Hears when the run has begun, or cannot begin.
    began: Option<Receiver<()>>,
    /// Is closed when the run is over.
    over: Option<Receiver<()>>,
    search: Arc<AtomicU64>,
}

/// The run, while there is one.
#[derive(Default)]
struct Now {
    handle: Option<RunHandle>,
    /// A run that goes on elsewhere.
    watched: Option<Attached>,
    /// The session of the newest run, once it has begun.
    session: Option<SessionId>,
    /// What is said to it as soon as it has.
    first: Vec<String>,
    /// What its session may cost, if that was said before it had begun.
    budget: Option<Money>,
}

impl Runs {
    pub(super) fn new(inputs: Inputs) -> Self {
        Self {
            inputs,
            now: Arc::default(),
            thread: None,
            interrupt: Interrupt::default(),
            began: None,
            over: None,
            search: Arc::default(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock()
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

    /// Begins guided work: a goal, and the phases in which nobody is asked.
    pub(super) fn start_work(
        &mut self,
        runtime: &Runtime,
        goal: String,
        unasked: Vec<Phase>,
        settings: &RunSettings,
    ) {
        let interrupt = self.begin();
        let runtime = runtime.clone();
        let yes = unasked.into_iter().filter_map(|phase| match phase {
            Phase::Discuss => Some(YesPhase::Discuss),
            Phase::Plan => Some(YesPhase::Plan),
            Phase::Execute => Some(YesPhase::Execute),
            _ => None,
        });
        let outline = Outline { yes: yes.collect(), ..Outline::default() };
        match options(settings) {
            Err(why) => self.cannot(&why),
            Ok(options) => self.spawn(move || {
                // Guided work has agents of its own.
                let options = RunOptions { agent: None, ..options };
                runtime.start_work(WorkRequest { goal, outline, options, interrupt })
            }),
        }
    }

    /// Begins a flow: its spec, and its variables as they were typed.
    pub(super) fn start_flow(
        &mut self,
        runtime: &Runtime,
        spec: &str,
        variables: &[String],
        settings: &RunSettings,
    ) {
        let interrupt = self.begin();
        let runtime = runtime.clone();
        match (options(settings), named(variables)) {
            (Err(why), _) | (_, Err(why)) => self.cannot(&why),
            (Ok(options), Ok(variables)) => {
                let (path, spec) = (runtime.workspace().place.root.join(spec), spec.to_owned());
                self.spawn(move || {
                    let options = RunOptions { agent: None, ..options };
                    let request = FlowRequest::read(path, &spec)?;
                    let request = request.with_variables(&variables)?;
                    runtime.start_flow(FlowRequest { options, interrupt, ..request })
                });
            }
        }
    }

    /// Watches a session that runs elsewhere, from behind an event on.
    pub(super) fn watch(&mut self, runtime: &Runtime, session: SessionId, after: Seq) {
        self.begin();
        let attached = match runtime.attach(&session, after.next()) {
            Ok(attached) => attached,
            Err(error) => return self.tell_failure(Err(error)),
        };
        let events = attached.events();
        self.now().watched = Some(attached);
        let inputs = self.inputs.clone();
        self.thread = Some(std::thread::spawn(move || {
            let listener = Listener { session: &session };
            for event in events {
                let told = match event {
                    RunEvent::Ended { status, .. } => {
                        Some(Told::Ended(Ended { status, why: Clean::default(), hint: None }))
                    }
                    event => listener.hear(event),
                };
                let session = session.clone();
                if let Some(told) = told
                    && inputs.send(Input::Elsewhere { session, told }).is_err()
                {
                    return;
                }
            }
        }));
    }

    /// Watches no longer. What is watched goes on.
    pub(super) fn let_go(&mut self) {
        if self.now().watched.take().is_some()
            && let Some(thread) = self.thread.take()
        {
            // It ends as soon as it sees that nobody watches.
            drop(thread);
        }
    }

    /// Asks whoever runs a session to stop.
    pub(super) fn stop_elsewhere(&self, runtime: &Runtime, session: SessionId) {
        let (runtime, inputs) = (runtime.clone(), self.inputs.clone());
        std::thread::spawn(move || {
            if let Err(error) = runtime.stop(&session, None) {
                let _ = inputs.send(Input::Reply(failed(&error)));
            }
        });
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
        self.let_go();
        if let Some(thread) = self.thread.take() {
            // It told of its end, and has nothing left to do.
            let _ = thread.join();
        }
        let mut now = self.now();
        (now.session, now.first, now.budget) = (None, Vec::new(), None);
        drop(now);
        self.interrupt = Interrupt::default();
        self.interrupt.clone()
    }

    fn cannot(&self, why: &str) {
        let ended = Ended { status: stepwell::Status::Failed, why: Clean::new(why), hint: None };
        let _ = self.inputs.send(Input::Run(Told::Ended(ended)));
    }

    /// Begins a run on a thread that passes on what it tells, up to its end.
    fn spawn(&mut self, begin: impl FnOnce() -> Result<RunHandle, Error> + Send + 'static) {
        let (now, inputs) = (Arc::clone(&self.now), self.inputs.clone());
        let (tell_begun, began) = channel();
        let (runs, over) = channel::<()>();
        (self.began, self.over) = (Some(began), Some(over));
        self.thread = Some(std::thread::spawn(move || {
            let _runs = runs;
            let tell = |told| drop(inputs.send(Input::Run(told)));
            let handle = match begin() {
                Ok(handle) => handle,
                Err(error) => return tell(Told::Ended(failure(&error))),
            };
            let (session, events) = (handle.id().clone(), handle.events());
            {
                let mut now = now.lock();
                for text in std::mem::take(&mut now.first) {
                    let said = handle.say(text.clone(), false);
                    tell_unsaid(text, said, &inputs);
                }
                if let Some(most) = now.budget.take() {
                    handle.set_budget(most);
                }
                (now.handle, now.session) = (Some(handle), Some(session.clone()));
            }
            let _ = tell_begun.send(());
            tell(Told::Began(session.clone()));
            let listener = Listener { session: &session };
            events.filter_map(|event| listener.hear(event)).for_each(tell);
            let handle = now.lock().handle.take();
            let ended = match handle.map(RunHandle::join) {
                Some(Ok(done)) => report(&done),
                Some(Err(error)) => failure(&error),
                None => return,
            };
            tell(Told::Ended(ended));
        }));
    }

    pub(super) fn say(&self, runtime: &Runtime, session: &SessionId, text: String) {
        let said = match &self.now().handle {
            Some(handle) if handle.id() == session => handle.say(text.clone(), false),
            _ => keep(runtime, session, text.clone()),
        };
        tell_unsaid(text, said, &self.inputs);
    }

    /// Has the run keep to a budget from its next call on; one that is beginning, from its first.
    pub(super) fn set_budget(&self, session: Option<&SessionId>, most: Money) {
        let mut now = self.now();
        match &now.handle {
            Some(handle) if session.is_none_or(|it| it == handle.id()) => handle.set_budget(most),
            Some(_) => {}
            None => now.budget = Some(most),
        }
    }

    /// Says something to the run that is beginning.
    pub(super) fn say_first(&self, runtime: &Runtime, text: String) {
        let mut now = self.now();
        match now.session.clone() {
            None => now.first.push(text),
            Some(session) => {
                drop(now);
                self.say(runtime, &session, text);
            }
        }
    }

    /// Answers a question. One that was not answered is asked again, if it still waits.
    pub(super) fn answer(
        &self,
        runtime: &Runtime,
        session: SessionId,
        gate: String,
        answer: Answer,
    ) {
        let inputs = self.inputs.clone();
        if let Some(handle) = &self.now().handle {
            let answered = handle.answer(&gate, answer, handle.who().clone());
            return not_answered(session, gate, answered, &inputs);
        }
        let runtime = runtime.clone();
        // It is looked for a while who takes the answer up.
        std::thread::spawn(move || {
            let given = Given { gate: Some(gate.clone()), answer };
            let answered = runtime.answer(&session, &given, &FlowOptions::default());
            not_answered(session, gate, answered, &inputs);
        });
    }

    /// Allows what is asked, and from now on what is like it. Only who runs the session knows the
    /// call that a rule has to fit.
    pub(super) fn allow_like(&self, session: SessionId, gate: String, rule: &Rule) {
        let now = self.now();
        let Some(handle) = &now.handle else { return };
        let who = handle.who().clone();
        let answered = handle.answer_remembering(&gate, Answer::ALLOW_ONCE, Some(rule), who);
        not_answered(session, gate, answered, &self.inputs);
    }

    fn tell_failure(&self, done: Result<(), Error>) {
        if let Err(error) = done {
            let _ = self.inputs.send(Input::Reply(failed(&error)));
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

    /// Stops the run, and waits until it is saved. A run that asks something is not stopped by a
    /// person who leaves: it pauses, and asks again later.
    pub(super) fn close(&mut self) {
        self.let_go();
        let Some(thread) = self.thread.take() else { return };
        if let Some(began) = self.began.take() {
            let _ = began.recv_timeout(BEGINNING);
        }
        let asks = self.now().handle.as_ref().is_some_and(|it| !it.open_gates().is_empty());
        if asks {
            self.pause();
            if let Some(over) = self.over.take() {
                // Something else may still run beside the question: that is stopped.
                let _ = over.recv_timeout(PAUSING);
            }
        }
        self.interrupt.ask();
        // A run that is interrupted ends soon: its tools are ended first.
        let _ = thread.join();
    }
}

/// Tells of words that were not said.
fn tell_unsaid(text: String, said: Result<(), Error>, inputs: &Inputs) {
    if let Err(error) = said {
        let (why, hint) = explained(&error);
        let _ = inputs.send(Input::Reply(Reply::NotSaid { text, why, hint }));
    }
}

/// Tells of an answer that was not taken. Its question is asked again, if it still waits.
fn not_answered(
    session: SessionId,
    gate: String,
    answered: Result<Answered, Error>,
    inputs: &Inputs,
) {
    let Err(error) = answered else { return };
    let again = matches!(error, Error::BadAnswer { is_late: false, .. });
    let (why, _) = explained(&error);
    let _ = inputs.send(Input::Reply(Reply::NotAnswered { session, gate, why, again }));
}

fn failed(error: &Error) -> Reply {
    let (why, hint) = explained(error);
    Reply::Failed { why, hint }
}

/// Variables of a flow, as they were typed.
fn named(typed: &[String]) -> Result<BTreeMap<String, String>, String> {
    let mut variables = BTreeMap::new();
    for word in typed {
        let (name, value) = word.split_once('=').ok_or(format!("{word}: write NAME=VALUE"))?;
        variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(variables)
}

/// Keeps words for a session's next run.
fn keep(runtime: &Runtime, session: &SessionId, text: String) -> Result<(), Error> {
    let said = Said { text, lane: Lane::main(), who: runtime.who(), now: false };
    runtime.workspace().open_existing(Access::Write)?.say(session, said)?;
    Ok(())
}

/// What was changed here, as the runtime understands it. Someone sits here, so a run waits for
/// answers.
fn options(settings: &RunSettings) -> Result<RunOptions, String> {
    let mode = settings.mode.map(|mode| mode.as_str().parse()).transpose()?;
    Ok(RunOptions {
        agent: settings.agent.clone(),
        model: settings.model.clone(),
        mode,
        budget_total: settings.budget,
        patience: Patience::Wait,
        ..RunOptions::default()
    })
}
