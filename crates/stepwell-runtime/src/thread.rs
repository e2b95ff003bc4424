//! A run's thread: it prepares the run, says that it has begun, and carries it out.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc};

use stepwell::Session;
use stepwell_agent::mcp::Servers;
use stepwell_agent::run::{EventSink, FrontEnd, Patience, RunEvent, Wisher, Wishes};

use crate::error::{Error, Result};
use crate::follower::{Followed, Follower, Subagents};
use crate::handle::{About, Listeners, RunHandle, Steering};
use crate::live::Publisher;
use crate::mcp::Connected;
use crate::notice::Notice;
use crate::notify::Notifier;
use crate::report::RunReport;
use crate::request::Interrupt;
use crate::runtime::Runtime;

/// What the work of a run's thread has at hand.
pub(crate) struct Job {
    pub(crate) runtime: Runtime,
    pub(crate) tokio: tokio::runtime::Runtime,
    pub(crate) interrupt: Interrupt,
    wisher: Wisher,
    wishes: Wishes,
    listeners: Arc<Listeners>,
    began: mpsc::Sender<Steering>,
    follower: Option<Follower>,
    /// Those that the run has, which are followed too.
    subagents: Subagents,
    /// Has the user's own command run, if they have one.
    notifier: Option<Arc<Notifier>>,
    /// Lets others hear the model while it speaks.
    publisher: Option<Publisher>,
    /// Servers that end with the run, however it ends.
    servers: Vec<Arc<Servers>>,
}

/// Starts a thread, and returns when its run has begun, or cannot.
pub(crate) fn spawn(
    runtime: &Runtime,
    interrupt: Interrupt,
    work: impl FnOnce(&mut Job) -> Result<RunReport> + Send + 'static,
) -> Result<RunHandle> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tokio = tokio.map_err(Error::Thread)?;
    let listeners = Arc::new(Listeners::default());
    let sink = {
        let listeners = Arc::clone(&listeners);
        EventSink::to(move |event| listeners.tell(event))
    };
    let (wisher, wishes) = Wisher::new();
    let (began, begun) = mpsc::channel();
    let mut job = Job {
        runtime: runtime.with_events(sink),
        tokio,
        interrupt,
        wisher,
        wishes,
        listeners: Arc::clone(&listeners),
        began,
        follower: None,
        subagents: Subagents::default(),
        notifier: None,
        publisher: None,
        servers: Vec::new(),
    };
    let thread = std::thread::Builder::new().name("stepwell-run".to_owned());
    let thread = thread.spawn(move || {
        // Whoever listens to a run that panicked has to learn that it is over.
        let report = std::panic::catch_unwind(AssertUnwindSafe(|| work(&mut job)));
        let report = report.unwrap_or(Err(Error::Panicked));
        job.finish(&report);
        report
    });
    let thread = thread.map_err(Error::Thread)?;
    match begun.recv() {
        Ok(steering) => Ok(RunHandle::new(steering, listeners, thread)),
        // It did not begin, and says why.
        Err(mpsc::RecvError) => match thread.join() {
            Ok(Ok(_)) | Err(_) => Err(Error::Panicked),
            Ok(Err(error)) => Err(error),
        },
    }
}

impl Job {
    /// Says that the run of a session begins now. From here on it can be talked to.
    pub(crate) fn begin(&mut self, session: &Session, about: About) {
        let About { spec, budget } = about;
        self.notifier = Notifier::new(session, budget, &self.runtime).map(Arc::new);
        // A session that is not saved is known to nobody else.
        let is_saved = self.runtime.workspace().config.settings.auto_save;
        self.publisher = is_saved.then(|| Publisher::open(session, &self.runtime)).flatten();
        let (well, lease) = (session.well().clone(), session.lease().clone());
        let interrupt = self.interrupt.clone();
        session.on_stop(move |_| interrupt.ask());
        let (id, runtime) = (session.id().clone(), self.runtime.clone());
        session.on_doubt(move |error| {
            runtime.tell(Notice::LeaseNotRenewed { session: id.clone(), why: error.to_string() });
        });
        let run = Followed {
            well: well.clone(),
            lease: lease.clone(),
            subagents: self.subagents.clone(),
            wisher: self.wisher.clone(),
            interrupt: self.interrupt.clone(),
        };
        self.follower = Follower::start(run);
        let (wisher, interrupt) = (self.wisher.clone(), self.interrupt.clone());
        let (who, in_run) =
            (self.runtime.who(), self.runtime.workspace().host.environment.is_in_run());
        let steering = Steering { well, lease, wisher, interrupt, spec, who, in_run, budget };
        // Whoever started it waits for this.
        let _ = self.began.send(steering);
    }

    /// Has servers end with the run, also if it does not begin.
    pub(crate) fn keep(&mut self, connected: &Connected) {
        self.servers.push(Arc::clone(&connected.servers));
    }

    /// Who watches the run.
    pub(crate) fn front_end(&self, events: EventSink, patience: Patience) -> FrontEnd {
        FrontEnd { events, patience, wishes: self.wishes.clone() }
    }

    /// Where the run's events go.
    pub(crate) fn sink(&self) -> EventSink {
        let (listeners, notifier) = (Arc::clone(&self.listeners), self.notifier.clone());
        let stage = self.publisher.as_ref().map(Publisher::stage);
        let subagents = self.subagents.clone();
        EventSink::to(move |event| {
            subagents.note(&event);
            stage.iter().for_each(|stage| stage.see(&event));
            notifier.iter().for_each(|notifier| notifier.see(&event));
            listeners.tell(event);
        })
    }

    /// Fails if the run was interrupted before it began.
    pub(crate) fn check_interrupt(&self) -> Result<()> {
        if self.interrupt.is_asked() { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn finish(&mut self, report: &Result<RunReport>) {
        self.follower = None;
        self.publisher = None;
        for servers in std::mem::take(&mut self.servers) {
            self.tokio.block_on(servers.close());
        }
        let report = match report {
            Ok(report) => Some(report),
            Err(Error::Unsaved { report, .. } | Error::Broken { report, .. }) => Some(&**report),
            Err(_) => None,
        };
        if let Some(report) = report {
            let (status, reason) = (report.status, report.reason);
            self.notifier.iter().for_each(|notifier| notifier.ended(status, reason));
            self.listeners.tell(RunEvent::Ended { status, reason });
        }
        self.listeners.close();
    }
}

#[cfg(test)]
mod tests {
    use stepwell::{Created, Stepwell};
    use stepwell_workspace::{Host, Notices, Wanted, Workspace};

    use super::*;

    #[test]
    #[allow(clippy::panic, reason = "the run panics, which is what this is about")]
    fn whoever_listens_to_a_run_that_panics_learns_that_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| Some(folder.path().join(name));
        let host = Host { folder: at(""), state: at("state"), ..Host::bare() };
        let wanted = Wanted { folder: at(""), ..Wanted::default() };
        let runtime = Runtime::new(Workspace::locate(host, wanted, Notices::to_nobody()).unwrap());
        let handle = spawn(&runtime, Interrupt::default(), |job| {
            let well = Stepwell::in_memory();
            let session = well.create(Created::new(well.new_id(), "x"))?;
            job.begin(&session, About { spec: None, budget: None });
            panic!("a mistake of ours");
        });
        let handle = handle.unwrap();
        assert_eq!(handle.events().count(), 0, "its events end");
        assert!(matches!(handle.join(), Err(Error::Panicked)));
    }
}
