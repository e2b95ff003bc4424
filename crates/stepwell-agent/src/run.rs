//! The driver: makes the moves that the machine decides on, and records each event before the next
//! move.

mod approval;
mod compact;
mod compactor;
mod dispatch;
mod event;
mod file_watch;
mod fit;
mod forward_gates;
mod front_end;
mod isolation;
mod lane;
mod limit;
mod model_call;
mod news;
mod notice;
mod others;
mod record;
mod resume;
mod sendable;
mod shared_budget;
mod subagents;
mod talk;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use stepwell::model::{Money, StatusChanged, Usage, Who};
use stepwell::{Event, Lane, Message, Recorded, Seq, Session, Status, StopReason};
use stepwell_files::capture::Limits;
use tokio::sync::watch as signal;

use crate::context::Context;
use crate::context::tokens::Calibration;
use crate::context::window::Window;
use crate::error::Result;
use crate::machine::{Baseline, Estimate, Move, Rules, Settled, State, Stop};
pub use crate::price::Cost;
use crate::provider::{CallError, NOT_DONE, Provider, ToolSpec};
use crate::tool::{Tool, ToolEnv};
pub use compact::Shrunk;
use compactor::Compactor;
pub use event::{EventSink, GateAnswer, Here, NodeStatus, OpenGate, RunEvent};
use file_watch::FileWatch;
pub use front_end::{FrontEnd, Patience, Wisher, Wishes};
pub use lane::{InLane, Past};
use model_call::Asked;
pub use news::News;
pub use notice::{Measure, Notice, Whole};
pub use others::Provenance;
use others::Request;
pub use resume::Ids;
pub use sendable::check_sendable;
pub use shared_budget::{Allowed, Remaining, Reserved, SharedBudget};
use stepwell::log::Redactor;
pub use subagents::{Dispatcher, SubagentRequest, SubagentSetup};

/// The parts of a run. They do not change while it runs.
#[derive(Clone)]
pub struct Setup {
    /// The provider of the model.
    pub provider: Arc<dyn Provider>,
    /// The model's name at that provider.
    pub model: String,
    /// What tokens cost.
    pub cost: Cost,
    /// The tools of the agent.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Where the tools work.
    pub place: ToolEnv,
    /// The run's limits and permissions.
    pub rules: Rules,
    /// Removes secrets from everything that is recorded.
    pub redactor: Redactor,
    /// The most tokens of one answer.
    pub max_output: u64,
    /// How long this run may take.
    pub timeout: Option<Duration>,
    /// In a dry run, tools that change something only describe the change.
    pub dry_run: bool,
    /// How the run compacts a growing conversation.
    pub context: Context,
    /// Which files and checkpoints the run keeps.
    pub keeping: Keeping,
    /// Starts subagents; `None` if the agent has none.
    pub dispatcher: Option<Arc<dyn Dispatcher>>,
}

/// Which files and checkpoints a run keeps.
#[derive(Clone, Debug, Default)]
pub struct Keeping {
    /// Limits on captured files that commands change.
    pub files: Limits,
    /// A checkpoint after this many steps; zero for none.
    pub every_steps: u64,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("model", &self.model).finish_non_exhaustive()
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The session's status.
    pub status: Status,
    /// Why the run ended.
    pub reason: StopReason,
    /// The error, if one ended the run.
    pub error: Option<CallError>,
    /// The model's last text.
    pub output: String,
    /// Tools used in this run, each once.
    pub tools_used: Vec<String>,
    /// Files changed in this run, each once.
    pub files_modified: Vec<String>,
    /// What the run learned of the provider's token counts.
    pub calibration: Calibration,
}

/// A run of an agent in a session.
pub struct Run<'a> {
    session: &'a Session,
    setup: &'a Setup,
    front: FrontEnd,
    lane: Lane,
    /// The limits shared by all lanes of the session; `None` if the run is alone and uses its own
    /// limits.
    shared_budget: Option<&'a SharedBudget>,
    /// The run's limits and permissions. Only the budget changes while it runs.
    rules: Rules,
    /// The latest budget from the front end that the run has applied.
    given: Option<Money>,
    state: State,
    since: Baseline,
    /// The messages for the model, with secrets: only records are redacted.
    window: Window,
    calls: Calls,
    request: RequestSize,
    answers: Answers,
    compactor: Compactor,
    files: FileWatch<'a>,
    ended: Ended,
    others: Others,
    inbox: Inbox,
}

/// Messages and calls that other people added to the conversation.
struct Others {
    /// Who recorded the events that existed when the run began.
    provenance: Arc<Provenance>,
    /// Requests since the user's own last run.
    requests: Vec<Request>,
    /// Did the user accept them as their own?
    accepted: bool,
}

/// Messages that arrive while the run works.
#[derive(Default)]
struct Inbox {
    /// The last event that was read before the run began; `None` if the runner of the lanes reads
    /// it.
    read_to: Option<Seq>,
    /// Messages of other people that do not count and were already reported.
    ignored: BTreeSet<Seq>,
    /// The user's message at the start of the run, unredacted; it joins the conversation later.
    deferred: Option<String>,
}

/// The calls of a conversation.
struct Calls {
    /// Calls whose recorded arguments differ from the model's, and why. They do not run.
    unkept: BTreeMap<String, &'static str>,
    /// The id of every call so far.
    ids: Ids,
}

/// The size of a request apart from the conversation.
struct RequestSize {
    specs: Vec<ToolSpec>,
    /// The tokens of the tool descriptions, as counted here.
    spec_tokens: u64,
    /// The most tokens of a request. Updated as messages come, so that a step costs the same in a
    /// long conversation.
    tokens: u64,
}

impl RequestSize {
    /// The most tokens of a request with this conversation.
    fn of(&self, window: &Window) -> u64 {
        record::tokens(window.instructions(), window.messages(), &self.specs)
    }

    /// All tokens of a request with this conversation, as counted here.
    fn counted(&self, window: &Window) -> u64 {
        window.tokens() + window.fixed() + self.spec_tokens
    }
}

/// What the run saw of the model's answers.
#[derive(Default)]
struct Answers {
    /// Truncated answers in a row.
    cut_short: u32,
    /// Empty answers in a row.
    blank: u32,
    /// The lower output limit that the provider enforced, if it rejected the configured one.
    shortest_refused: Option<u64>,
    /// Was the user warned that token counts are estimates?
    estimates: bool,
}

/// A truncated answer is continued; after this many in a row, the run fails.
const MAX_CUT_SHORT: u32 = 3;

/// After an empty answer the model is asked again; after this many in a row, the run fails.
const MAX_BLANK: u32 = 3;

impl<'a> Run<'a> {
    /// Is the conversation still empty?
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.window.messages().is_empty()
    }

    /// Begins the conversation of a new session with its task. Without a task, the conversation
    /// stays empty until its first message.
    pub fn begin(&mut self, task: &str) -> Result<()> {
        match self.is_new() && !self.is_over() && !task.trim().is_empty() {
            true => self.say(task),
            false => Ok(()),
        }
    }

    /// Is the work done?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// Was the work stopped early although the model's last answer makes no calls? Then the run
    /// must ask the model to [continue](Self::go_on); it is done only when the model says so.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.state.is_unfinished()
    }

    /// Asks the model to continue unfinished work.
    pub fn go_on(&mut self) -> Result<()> {
        self.say(NOT_DONE)
    }

    /// The messages for the model.
    #[must_use]
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// Replaces the recorded form of the user's last message by the unredacted one, for the model
    /// only.
    pub fn show_unredacted(&mut self, text: &str) {
        self.window.show_unredacted(text);
    }

    /// Sets the standing instructions. Records them if they differ from the current ones, since the
    /// agent or the project's instructions may have changed.
    pub fn instruct(&mut self, text: &str) -> Result<()> {
        let stands = self.window.system() == self.setup.redactor.redact(text);
        if !stands {
            let message = Message::system(text).in_lane(self.lane.clone());
            self.record(vec![message.into()])?;
        }
        self.window.reveal_system(text);
        self.request.tokens = self.request.of(&self.window);
        Ok(())
    }

    /// Records a message of the user. The model receives it unredacted.
    pub fn say(&mut self, text: &str) -> Result<()> {
        self.say_as(text, None)
    }

    /// Like [`say`](Self::say), for another person whom a front end represents: the log names that
    /// person, and the message counts as theirs.
    pub fn say_as(&mut self, text: &str, who: Option<&Who>) -> Result<()> {
        // Open calls get their results first: no message may come between.
        for call in self.state.undecided() {
            let begun = self.state.is_started(&call.id);
            self.finish_unrun(&call, if begun { &Settled::Unknown } else { &Settled::Passed })?;
        }
        // A call that a person decided on runs first, as decided.
        let comes_first = self.state.pending().is_some();
        if comes_first || who.is_some() {
            let (lane, who) = (self.lane.clone(), who.cloned().unwrap_or_else(|| self.me()));
            let said = stepwell::model::Said { text: text.to_owned(), lane, who, now: false };
            self.inbox.deferred = Some(text.to_owned());
            self.record(vec![said.into()])?;
        }
        if comes_first {
            return Ok(());
        }
        if self.state.is_unsealed() {
            self.seal()?;
        }
        // Earlier messages come first.
        self.take_in()?;
        if who.is_some() {
            return Ok(());
        }
        let message = Message::user(text).in_lane(self.lane.clone());
        self.record(vec![message.into()])
    }

    /// Runs until something stops it. The caller sets `interrupt` to true to stop it.
    pub async fn drive(mut self, mut interrupt: signal::Receiver<bool>) -> Result<Ended> {
        if self.is_new() && !self.take_in()? && !self.is_over() {
            return Err(sendable::nothing(self.session.id(), sendable::UNSAID));
        }
        self.judge_others()?;
        // A deadline beyond what the clock can express never arrives.
        let now = tokio::time::Instant::now();
        let deadline = self.setup.timeout.and_then(|timeout| now.checked_add(timeout));
        let deadline =
            deadline.into_iter().chain(self.shared_budget.and_then(SharedBudget::until)).min();
        loop {
            // A finished run is finished, even if somebody asked it to stop.
            let over = self.state.is_over();
            if !over && *interrupt.borrow() {
                return self.stop(interrupted(), None);
            }
            let is_late = |deadline| tokio::time::Instant::now() >= deadline;
            if !over && deadline.is_some_and(is_late) {
                return self.stop(Stop::limit(StopReason::Timeout), None);
            }
            let Some(next) = self.next_move()? else { continue };
            let cut = Cancel { interrupt: &mut interrupt, deadline };
            let ended = match next {
                Move::CallModel => match self.ask(cut).await? {
                    // The reservation lasts until the answer says what the call cost.
                    Asked::Answered(answer, _reserved) => self.hear(*answer)?,
                    Asked::Unanswered(ended) => ended,
                },
                Move::Compact(by) => self.compact(by, cut).await?,
                Move::RunTool(call) => {
                    self.keep_choice(&call)?;
                    self.perform(call, cut).await?
                }
                Move::Inspect(call, targets) => {
                    self.inspect(call, &targets, cut).await?;
                    None
                }
                Move::Settle(call, settled) => {
                    self.keep_choice(&call)?;
                    self.finish_unrun(&call, &settled)?;
                    None
                }
                Move::Ask(call) => self.ask_person(call, cut).await?,
                Move::Seal => {
                    self.seal()?;
                    None
                }
                Move::Stop(stop) => {
                    self.tell_refusal(&stop);
                    Some((stop, None))
                }
            };
            if let Some((stop, error)) = ended {
                return self.stop(stop, error);
            }
        }
    }

    /// The next move; `None` if a new message must come first.
    fn next_move(&mut self) -> Result<Option<Move>> {
        self.hear_given_budget()?;
        let (compactor, conversation) = self.compaction();
        compactor.find_due(conversation)?;
        let estimate = self.estimate();
        let next = self.state.next(&self.rules, &self.since, &estimate);
        // New messages come before the next call of the model, and before the run ends as done.
        if next.can_listen() && self.take_in()? {
            return Ok(None);
        }
        let calls = matches!(next, Move::CallModel);
        let is_changed = calls && (self.hear_phase()? || self.hear_lower_budget()?);
        Ok((!is_changed).then_some(next))
    }

    /// Records the end of the step.
    fn seal(&mut self) -> Result<()> {
        self.record(self.sealed())?;
        self.tell_step();
        Ok(())
    }

    /// Notifies the front end that a step is complete.
    fn tell_step(&self) {
        let (steps, spent) = (self.state.steps, self.state.total());
        self.front.events.tell(RunEvent::Step { steps, spent });
    }

    /// The user of this run, as events name them.
    fn me(&self) -> Who {
        self.session.well().who().clone()
    }

    /// Records events, all or none, and folds them in: redacted on disk, unredacted in memory. This
    /// is the only place that records.
    fn record(&mut self, events: Vec<Event>) -> Result<()> {
        let written = self.session.record(&self.setup.redactor, events.clone())?;
        for (event, written) in events.into_iter().zip(written) {
            if let Event::Message(message) = &event {
                self.request.tokens += record::tokens("", std::slice::from_ref(message), &[]);
            }
            let recorded = Recorded { seq: written.seq, at: written.at, id: None, event };
            self.state.apply(&recorded);
            self.window.apply(&recorded);
            self.front.events.tell(RunEvent::Recorded(written));
        }
        Ok(())
    }

    /// Records the final status and ends the run.
    fn stop(mut self, stop: Stop, error: Option<CallError>) -> Result<Ended> {
        let said =
            error.as_ref().map(|error| self.setup.redactor.redact(&error.to_string()).into_owned());
        let Stop { status, reason } = stop;
        // A flow records its own status, after all lanes have stopped. A status from before the run
        // stays.
        let head = self.session.info()?.head;
        let stood = (head.status, head.stop_reason) == (status, Some(reason));
        if self.shared_budget.is_none() && !stood {
            let change = StatusChanged { status, reason: Some(reason), error: said };
            self.record(vec![change.into()])?;
        }
        Ok(Ended {
            status,
            reason,
            error,
            files_modified: self.files.into_modified(),
            calibration: self.compactor.seen.calibration,
            ..self.ended
        })
    }

    /// The most that the next call may cost: the last request, everything new, and the longest
    /// answer.
    fn estimate(&self) -> Estimate {
        let limits = &self.rules.limits;
        let limited = self.shared_budget.is_some()
            || limits.budget.is_some()
            || limits.budget_total.is_some()
            || limits.tokens.is_some();
        let shrink = self.shrink();
        if !limited {
            return Estimate { shrink, ..Estimate::default() };
        }
        let usage =
            Usage { input: self.request.tokens, output: self.max_output(), ..Usage::default() };
        // The provider may write all of the input to its cache, at a higher price.
        let written = Usage { cache_written: usage.input, ..usage };
        let cost = (self.setup.cost)(&usage).max((self.setup.cost)(&written));
        Estimate { tokens: usage.total(), cost, shrink }
    }
}

fn interrupted() -> Stop {
    Stop { status: Status::Interrupted, reason: StopReason::UserInterrupt }
}

/// What ends a call or a tool early.
struct Cancel<'a> {
    interrupt: &'a mut signal::Receiver<bool>,
    deadline: Option<tokio::time::Instant>,
}

impl Cancel<'_> {
    /// Must the run stop now?
    fn is_due(&self) -> bool {
        let late = self.deadline.is_some_and(|deadline| tokio::time::Instant::now() >= deadline);
        late || *self.interrupt.borrow()
    }

    /// Returns when the run must stop.
    async fn off(&mut self) -> Stop {
        let deadline = self.deadline;
        let time_up = async move {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let asked = async {
            // The sender is gone, so no interrupt can come.
            if self.interrupt.wait_for(|asked| *asked).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = asked => interrupted(),
            () = time_up => Stop::limit(StopReason::Timeout),
        }
    }
}
