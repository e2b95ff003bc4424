//! Running an agent in its session until something stops it.

use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use stepwell::store::Span;
use stepwell::work::Gates;
use stepwell::{Seq, Session};
use stepwell_agent::provider::script::Script;
use stepwell_agent::run::{Ended, EventSink, Run, RunEvent, Setup};
use stepwell_workspace::atomic_file::replace_users_file;
use stepwell_workspace::{Estimates, Mirror, RecentModelsFile, ownership};

use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::prepare::Prepared;
use crate::report::{Failure, RunReport};
use crate::run_fold::RunFold;
use crate::runtime::Runtime;
use crate::thread::Job;
use crate::{context, mcp};

/// What the user says to a run.
#[derive(Clone, Debug)]
pub(crate) enum UserTurn {
    /// The task that its session began with.
    Begun(String),
    /// More, to a session that has a past.
    More(String),
    /// Nothing: it goes on.
    Nothing,
}

/// An agent that is ready to run in its session.
pub(crate) struct Agent {
    pub(crate) session: Session,
    pub(crate) prepared: Prepared,
    pub(crate) connected: mcp::Connected,
    pub(crate) words: UserTurn,
    /// Where the session was when it was resumed.
    pub(crate) resumed_from: Option<Seq>,
    /// Was it finished before?
    pub(crate) was_done: bool,
}

impl Agent {
    /// Runs it until something stops it.
    pub(crate) fn drive(self, job: &mut Job) -> Result<RunReport> {
        let (runtime, session) = (job.runtime.clone(), &self.session);
        let begun = runtime.workspace().now();
        let head = session.info()?.head;
        let setup = self.prepared.setup(&head, &self.connected, &runtime);
        if self.prepared.trust.is_own() {
            ownership::mark(runtime.workspace(), session.id());
        }
        remember_model(&self.prepared, &runtime);
        let watched = Watched::new(session, job.sink(), &runtime)?;
        watched.replay(session, self.resumed_from)?;
        let front = job.front_end(watched.sink.clone(), self.prepared.options.patience);
        let ended = job.tokio.block_on(async {
            let run = Run::new(session, &setup, front)?;
            let ended = self.ready(run, &head.task, &runtime)?;
            ended.drive(job.interrupt.receiver()).await
        });
        job.tokio.block_on(self.connected.close());
        let took = runtime.workspace().now().since(begun);
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                return Err(watched.unsaved("run", error.into(), took, self.resumed_from));
            }
        };
        context::remember(&self.prepared.model, &ended.calibration, &runtime);
        let report = self.report(&ended, &setup, &runtime)?;
        if let Some(path) = &self.prepared.options.record_script {
            record_script(path, session)?;
        }
        Ok(RunReport { took, ..report })
    }

    /// A run with what it is told first.
    fn ready<'a>(
        &self,
        mut run: Run<'a>,
        task: &str,
        runtime: &Runtime,
    ) -> Result<Run<'a>, stepwell_agent::Error> {
        // Whoever says now when to be asked says it of all that is in the session.
        if self.prepared.options.mode.is_some() {
            run.accept_others();
        }
        // A session that is done stays as it is.
        let unfinished = run.is_unfinished();
        if !run.is_over() || unfinished || matches!(self.words, UserTurn::More(_)) {
            run.instruct(&self.prepared.system(runtime))?;
        }
        run.begin(task)?;
        match &self.words {
            // The model gets what was said, also what is not written.
            UserTurn::Begun(task) => run.show_unredacted(task),
            UserTurn::More(text) => run.say_as(text, runtime.acting())?,
            // Work that was cut off is not done because its model's last words asked for nothing.
            UserTurn::Nothing if unfinished => run.go_on()?,
            UserTurn::Nothing => {}
        }
        Ok(run)
    }

    fn report(&self, ended: &Ended, setup: &Setup, runtime: &Runtime) -> Result<RunReport> {
        let (session, head) = (&self.session, self.session.info()?.head);
        let plain = |text: &str| setup.redactor.redact(text).into_owned();
        let below = session.well().subagents(session.id())?;
        let mut spent = head.spent;
        below.iter().for_each(|below| spent += below.head.spent);
        let all = std::iter::once(&head).chain(below.iter().map(|it| &it.head));
        let estimate = Estimates::new(runtime.workspace()).of_all(all);
        let lanes = session.lanes()?.into_iter().map(|(lane, it)| (lane.to_string(), it.spent));
        let below = below.into_iter().map(|it| (format!("subagent:{}", it.head.id), it.head.spent));
        let gates = Gates::waiting(&**session.well().store(), session.id())?;
        Ok(RunReport {
            session: session.id().clone(),
            status: ended.status,
            reason: Some(ended.reason),
            error: ended.error.as_ref().map(|error| Failure {
                message: plain(&error.to_string()),
                fault: Some(error.fault),
                unwritten: None,
                node: None,
            }),
            output: ended.output.clone(),
            redacted_output: plain(&ended.output),
            tools_used: ended.tools_used.clone(),
            files_modified: ended.files_modified.iter().map(|path| plain(path)).collect(),
            steps: head.steps,
            model: head.model,
            took: std::time::Duration::ZERO,
            spent,
            estimate,
            by_source: lanes.chain(below).collect(),
            waiting: gates.open().map(|asked| asked.gate.clone()).collect(),
            budget_total: self.prepared.total,
            resumed_from: self.resumed_from,
            was_done: self.was_done,
            saved: runtime.workspace().config.settings.auto_save,
            flow: None,
        })
    }
}

/// A run's events on their way out: they are tallied, and mirrored in files, as they pass.
pub(crate) struct Watched {
    pub(crate) sink: EventSink,
    fold: Arc<Mutex<RunFold>>,
}

impl Watched {
    pub(crate) fn new(session: &Session, to: EventSink, runtime: &Runtime) -> Result<Self> {
        let below = session.well().subagents(session.id())?.into_iter().map(|it| it.head).collect();
        let fold = RunFold::new(session.info()?.head, session.lanes()?, below);
        let fold = Arc::new(Mutex::new(fold));
        let mirror = Mirror::of(runtime.workspace())
            .filter(|_| runtime.workspace().config.settings.auto_save);
        mirror.iter().for_each(Mirror::refresh);
        let seen = Arc::clone(&fold);
        let sink = EventSink::to(move |event| {
            seen.lock().see(&event);
            if let RunEvent::Recorded(recorded) = &event {
                mirror.iter().for_each(|mirror| mirror.on_event(&recorded.event));
            }
            to.tell(event);
        });
        Ok(Self { sink, fold })
    }

    /// Tells of what was recorded before the run itself began: it is this run's too.
    pub(crate) fn replay(&self, session: &Session, resumed_from: Option<Seq>) -> Result<()> {
        let before = resumed_from.unwrap_or_default();
        for event in session.events(Span::after(before))?.intact(session.id())? {
            self.sink.tell(RunEvent::Recorded(event));
        }
        Ok(())
    }

    /// The error of a run whose work could not be saved: it says so loudly, and how far it was.
    pub(crate) fn unsaved(
        &self,
        what: &'static str,
        error: Error,
        took: std::time::Duration,
        resumed_from: Option<Seq>,
    ) -> Error {
        let fold = self.fold.lock();
        let report = Box::new(fold.report(error.to_string(), took, resumed_from));
        match error {
            Error::Agent(stepwell_agent::Error::Store(error))
            | Error::Flow(stepwell_flow::Error::Store(error))
            | Error::Store(error) => Error::Unsaved { what, error, report },
            error => Error::Broken { error: Box::new(error), report },
        }
    }
}

/// Remembers for the user that they used this model. Not being able to is no reason to stop.
fn remember_model(prepared: &Prepared, runtime: &Runtime) {
    let most =
        usize::try_from(runtime.workspace().config.settings.max_recent.get()).unwrap_or(usize::MAX);
    let name = prepared.model_name();
    let noted = RecentModelsFile::of(&runtime.workspace().host)
        .map(|file| file.change(|models| models.used(&name, most)));
    if let Some(Err(error)) = noted {
        runtime.tell(Notice::warning("the model was not remembered", &error));
    }
}

/// Writes the script that replays a session's answers.
pub(crate) fn record_script(path: &Path, session: &Session) -> Result<()> {
    let events = session.events(Span::ALL)?.intact(session.id())?;
    let script = Script::of(events.iter().map(|event| &event.event));
    let text = serde_json::to_string_pretty(&script).unwrap_or_default();
    let private = || {
        // Only its owner reads it: what is said in a run is nobody else's.
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(path);
        file?.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        replace_users_file(path, &format!("{text}\n"))
    };
    Ok(private().map_err(stepwell_workspace::Error::file(path, "writing it"))?)
}
