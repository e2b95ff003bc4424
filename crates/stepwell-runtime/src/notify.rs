//! The user's own command, run when something happens in a run that they may want to know of.
//!
//! It learns what happened from its environment. It never delays or fails a run: a thread starts
//! it, and nobody waits for its end.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use stepwell::log::Redactor;
use stepwell::model::{Change, Edited, Gate, Money};
use stepwell::{Event, Session, SessionId, Status, StopReason};
use stepwell_agent::run::RunEvent;

use crate::runtime::Runtime;

/// A budget is nearly spent when this many hundredths of it are.
const NEARLY: i128 = 90;

/// The longest value of a variable, in bytes: enough to read, and far below what a system takes.
const MAX_VALUE: usize = 4 << 10;

/// How long the end of a run waits until the command was started, not until it is done. Otherwise
/// a process that exits with its run would not start it.
const STARTED_WITHIN: Duration = Duration::from_secs(1);

/// What the command is told: its variables.
type Variables = Vec<(&'static str, String)>;

/// Tells the user's command what happens in one run.
#[derive(Debug)]
pub(crate) struct Notifier {
    session: SessionId,
    task: String,
    workspace: String,
    redactor: Redactor,
    budget: Mutex<Budget>,
    /// What the session had cost when the run began.
    before: Money,
    to: mpsc::Sender<Order>,
}

/// What this run may spend, and what of it is spent. What the session cost before is no part of it.
#[derive(Debug)]
struct Budget {
    most: Option<Money>,
    spent: Money,
}

/// What the thread is asked for.
enum Order {
    Run(Variables),
    /// Says so when everything before was started.
    Flush(mpsc::Sender<()>),
}

impl Notifier {
    /// A notifier for a session's run; none, if its user wants none.
    pub(crate) fn new(session: &Session, budget: Option<Money>, runtime: &Runtime) -> Option<Self> {
        let line = runtime.workspace().config.settings.notify_command.trim().to_owned();
        if line.is_empty() {
            return None;
        }
        let head = session.info().ok()?.head;
        let below = session.well().subagents(session.id()).ok()?;
        let spent = below.iter().fold(head.spent.cost, |sum, it| sum.plus(it.head.spent.cost));
        let (to, orders) = mpsc::channel();
        let starter = Starter { line, private: runtime.workspace().host.private_variables() };
        let named = std::thread::Builder::new().name("stepwell-notify".to_owned());
        // Without a thread nobody is notified; the run goes on.
        named.spawn(move || starter.work(&orders)).ok()?;
        Some(Self {
            session: head.id,
            task: head.task,
            workspace: runtime.workspace().place.root.display().to_string(),
            redactor: session.well().redactor().with_own_count(),
            budget: Mutex::new(Budget {
                most: budget.map(|most| most.minus(spent)),
                spent: Money::ZERO,
            }),
            before: spent,
            to,
        })
    }

    /// Looks at something that happened in the run.
    pub(crate) fn see(&self, event: &RunEvent) {
        self.see_in(&self.session, event);
    }

    fn see_in(&self, session: &SessionId, event: &RunEvent) {
        match event {
            RunEvent::Child { session, event } => self.see_in(session, event),
            RunEvent::Within { event, .. } => self.see_in(session, event),
            // What is recorded is told once, by the run that records it.
            RunEvent::Recorded(recorded) => match &recorded.event {
                // A subagent's question is told of where it was asked, not again above.
                Event::Gate(gate) if gate.asker.is_none() => self.gate_opened(session, gate),
                Event::Message(message) => self.spent(message.cost),
                Event::Compacted(compacted) => self.spent(compacted.cost),
                Event::Edited(Edited { budget: Change::Set(most), .. })
                    if *session == self.session =>
                {
                    self.budget_set(*most);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// The run is over. One that pauses has asked something, which was told.
    pub(crate) fn ended(&self, status: Status, reason: Option<StopReason>) {
        if status != Status::Paused {
            let text = format!("{}: {status}", self.task);
            let mut variables = self.variables("run_ended", &self.session, text);
            variables.push(("STEPWELL_EVENT_STATUS", status.to_string()));
            if let Some(reason) = reason {
                variables.push(("STEPWELL_EVENT_REASON", reason.to_string()));
            }
            self.tell(variables);
        }
        let (started, until) = mpsc::channel();
        if self.to.send(Order::Flush(started)).is_ok() {
            let _ = until.recv_timeout(STARTED_WITHIN);
        }
    }

    fn gate_opened(&self, session: &SessionId, gate: &Gate) {
        let mut variables = self.variables("gate_opened", session, gate.prompt.clone());
        variables.push(("STEPWELL_EVENT_GATE", gate.id.clone()));
        if let Some(call) = &gate.call {
            variables.push(("STEPWELL_EVENT_TOOL", call.tool.clone()));
        }
        self.tell(variables);
    }

    /// Counts what a call cost. The one that brings the budget near its end is told of.
    fn spent(&self, cost: Option<Money>) {
        let Some(cost) = cost else { return };
        let mut budget = self.budget.lock();
        let before = budget.spent;
        budget.spent = before.plus(cost);
        let (now, Some(most)) = (budget.spent, budget.most) else { return };
        drop(budget);
        if is_low(now, most) && !is_low(before, most) {
            let text = format!("{}: ${now:.2} of ${most:.2} spent", self.task);
            let mut variables = self.variables("budget_low", &self.session, text);
            variables.push(("STEPWELL_EVENT_SPENT", now.to_string()));
            variables.push(("STEPWELL_EVENT_BUDGET", most.to_string()));
            self.tell(variables);
        }
    }

    /// The session may cost something else from now on.
    fn budget_set(&self, most: Money) {
        let mut budget = self.budget.lock();
        budget.most = Some(most.minus(self.before));
    }

    /// What every event says.
    fn variables(&self, event: &str, session: &SessionId, text: String) -> Variables {
        vec![
            ("STEPWELL_EVENT", event.to_owned()),
            ("STEPWELL_EVENT_SESSION", session.to_string()),
            ("STEPWELL_EVENT_RUN", self.session.to_string()),
            ("STEPWELL_EVENT_WORKSPACE", self.workspace.clone()),
            ("STEPWELL_EVENT_TASK", self.task.clone()),
            ("STEPWELL_EVENT_TEXT", text),
        ]
    }

    /// Has the command run, without secrets and within what an environment takes.
    fn tell(&self, variables: Variables) {
        let plain = |text: &str| {
            let text = self.redactor.redact(text).replace('\0', "");
            text[..text.floor_char_boundary(MAX_VALUE)].to_owned()
        };
        let variables = variables.into_iter().map(|(name, value)| (name, plain(&value)));
        // The thread is gone only if it panicked; nobody is notified then.
        let _ = self.to.send(Order::Run(variables.collect()));
    }
}

fn is_low(spent: Money, most: Money) -> bool {
    spent.as_picos().saturating_mul(100) >= most.as_picos().saturating_mul(NEARLY)
}

/// Starts the command, again and again, in its thread.
struct Starter {
    line: String,
    /// The variables that no program is given.
    private: Vec<String>,
}

impl Starter {
    fn work(&self, orders: &mpsc::Receiver<Order>) {
        let mut children: Vec<Child> = Vec::new();
        while let Ok(order) = orders.recv() {
            children.retain_mut(|child| !is_over(child));
            match order {
                Order::Run(variables) => match self.start(variables) {
                    Ok(child) => children.push(child),
                    Err(error) => tracing::warn!(%error, "notify_command_not_started"),
                },
                Order::Flush(started) => drop(started.send(())),
            }
        }
        // The run is over. Whoever is left is waited for, so that none stays behind as a zombie.
        for mut child in children {
            match child.wait() {
                Ok(status) if status.success() => {}
                ended => tracing::warn!(?ended, "notify_command_failed"),
            }
        }
    }

    fn start(&self, variables: Variables) -> std::io::Result<Child> {
        let mut command = Command::new("sh");
        command.args(["-c", &self.line]);
        for name in &self.private {
            command.env_remove(name);
        }
        command.envs(variables);
        // A group of its own: Ctrl+C at the run's terminal is not meant for it.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }
}

fn is_over(child: &mut Child) -> bool {
    match child.try_wait() {
        Ok(Some(status)) => {
            if !status.success() {
                tracing::warn!(%status, "notify_command_failed");
            }
            true
        }
        Ok(None) => false,
        Err(_) => true,
    }
}
