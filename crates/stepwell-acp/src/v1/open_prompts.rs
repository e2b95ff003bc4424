//! The prompts that are not answered yet, and what answers them.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use stepwell_runtime::Interrupt;
use tokio::task::JoinHandle;

use crate::rpc::Id;
use crate::turn::{Input, Running};

/// The prompts of a connection.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    /// Those that are not answered yet.
    open: Mutex<HashMap<Id, Prompted>>,
    /// What answers them.
    tasks: Mutex<Vec<Task>>,
}

/// What answers a prompt.
#[derive(Debug)]
struct Task {
    session: String,
    task: JoinHandle<()>,
}

/// A prompt that is not answered yet.
#[derive(Debug)]
pub(super) struct Prompted {
    session: String,
    /// Ends it: a command, or the waiting for a run that is not its own.
    pub(super) stop: Interrupt,
    /// The run that it began.
    pub(super) began: Option<Running>,
    is_command: bool,
    /// Was its turn cancelled?
    pub(super) cancelled: bool,
    /// Was the request itself?
    pub(super) withdrawn: bool,
}

impl Prompted {
    pub(super) fn new(session: &str, is_command: bool) -> Self {
        let (session, stop) = (session.to_owned(), Interrupt::default());
        Self { session, stop, began: None, is_command, cancelled: false, withdrawn: false }
    }
}

impl Prompts {
    pub(super) fn open(&self) -> MutexGuard<'_, HashMap<Id, Prompted>> {
        self.open.lock()
    }

    /// Cancels the prompts of some sessions. What a run answers ends with that run, which whoever
    /// calls this sees to.
    pub(super) fn cancel(&self, of: impl Fn(&str) -> bool) {
        for prompted in self.open().values_mut().filter(|it| of(&it.session)) {
            prompted.cancelled = true;
            if prompted.is_command {
                prompted.stop.ask();
            }
        }
    }

    /// Cancels one. A run that another prompt began goes on without it.
    pub(super) fn withdraw(&self, id: &Id) {
        let mut open = self.open();
        let Some(prompted) = open.get_mut(id) else { return };
        prompted.withdrawn = true;
        match &prompted.began {
            Some(running) => running.send(Input::Cancel),
            None => prompted.stop.ask(),
        }
    }

    /// Waits until the prompts of some sessions are answered, whose runs are over.
    pub(super) async fn answered(&self, of: impl Fn(&str) -> bool) {
        let tasks: Vec<Task> = self.tasks().extract_if(.., |task| of(&task.session)).collect();
        for task in tasks {
            // A panic of its task is its own.
            let _ = task.task.await;
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock()
    }

    pub(super) fn keep(&self, session: &str, task: JoinHandle<()>) {
        let mut tasks = self.tasks();
        tasks.retain(|task| !task.task.is_finished());
        tasks.push(Task { session: session.to_owned(), task });
    }
}
