//! The driver: performs the moves that the machine decides on, and records each event
//! before the next thing begins.

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

/// What a run works with. It does not change while it runs.
#[derive(Clone)]
pub struct Setup {
    /// The model's provider.
    pub provider: Arc<dyn Provider>,
    /// Which of its models.
    pub model: String,
    /// What tokens cost.
    pub cost: Cost,
    /// The tools that the agent may use.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Where they work.
    pub place: ToolEnv,
    /// What the run may do.
    pub rules: Rules,
    /// Keeps secrets out of what is written.
    pub redactor: Redactor,
    /// The most tokens of one answer.
    pub max_output: u64,
    /// How long this invocation may take.
    pub timeout: Option<Duration>,
    /// Does a tool that changes something only say so?
    pub dry_run: bool,
    /// How the run deals with a conversation that grows.
    pub context: Context,
    /// What is kept beside what the model says.
    pub keeping: Keeping,
    /// Knows the agents that can be dispatched; absent, there are none.
    pub dispatcher: Option<Arc<dyn Dispatcher>>,
}

/// What a run keeps beside what the model says.
#[derive(Clone, Debug, Default)]
pub struct Keeping {
    /// What is captured of files that commands change.
    pub files: Limits,
    /// After how many steps a checkpoint is taken; zero, never.
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
    /// How the session stands.
    pub status: Status,
    /// Why it ended.
    pub reason: StopReason,
    /// What went wrong, if something did.
    pub error: Option<CallError>,
    /// The model's last words.
    pub output: String,
    /// Tools that were used in this invocation, each once.
    pub tools_used: Vec<String>,
    /// Files that were changed in this invocation, each once.
    pub files_modified: Vec<String>,
    /// What was learned of how the provider counts tokens.
    pub calibration: Calibration,
}

/// A run of an agent in a session.
pub struct Run<'a> {
    session: &'a Session,
    setup: &'a Setup,
    front: FrontEnd,
    lane: Lane,
    /// What all lanes of the session may use; absent, the run is alone and keeps to its own
    /// limits.
    shared_budget: Option<&'a SharedBudget>,
    /// What it may do. Of what began with it, the budget can change.
    rules: Rules,
    /// The budget that the front end gave last, as far as the run heard of it.
    given: Option<Money>,
    state: State,
    since: Baseline,
    /// What the model is shown, with secrets: only what is written is redacted.
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

/// What others brought into the conversation.
struct Others {
    /// Who recorded what there was when the run began.
    provenance: Arc<Provenance>,
    /// What was asked for since the user's own last run.
    requests: Vec<Request>,
    /// Does the user take it for their own?
    accepted: bool,
}

/// What people say to the run while it works.
#[derive(Default)]
struct Inbox {
    /// The last event that was read before the run began; absent, whoever runs the lanes reads.
    read_to: Option<Seq>,
    /// What others said and does not count, as far as that was told.
    ignored: BTreeSet<Seq>,
    /// What the user said when the run began, as it was said: it is taken in later.
    deferred: Option<String>,
}

/// The calls of a conversation.
struct Calls {
    /// Those whose recorded arguments are not what the model wrote, and why. They do not run.
    unkept: BTreeMap<String, &'static str>,
    /// Every call's id so far.
    ids: Ids,
}

/// What a request is made of beside the conversation, and how large it is.
struct RequestSize {
    specs: Vec<ToolSpec>,
    /// The tools' tokens, as we count them.
    spec_tokens: u64,
    /// How many tokens a request has at most: counted as the conversation grows, so that a
    /// step does not cost more the longer it is.
    tokens: u64,
}

impl RequestSize {
    /// The most tokens that a request with this conversation has.
    fn of(&self, window: &Window) -> u64 {
        record::tokens(window.instructions(), window.messages(), &self.specs)
    }

    /// Everything that a request with this conversation has, as we count.
    fn counted(&self, window: &Window) -> u64 {
        window.tokens() + window.fixed() + self.spec_tokens
    }
}

/// What was seen of the model's answers.
#[derive(Default)]
struct Answers {
    /// Those in a row that ended because they were as long as they may be.
    cut_short: u32,
    /// Those in a row that said nothing.
    blank: u32,
    /// The most tokens of one, if the provider took less than was set.
    shortest_refused: Option<u64>,
    /// Was the user told that tokens are estimated?
    estimates: bool,
}

/// An answer that is cut short is gone on with; after so many in a row, the model does not
/// come to an end.
const MAX_CUT_SHORT: u32 = 3;

/// A model whose answer says nothing is asked again; after so many in a row, it has nothing to
/// say.
const MAX_BLANK: u32 = 3;

impl<'a> Run<'a> {
    /// Was nothing said in it yet?
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.window.messages().is_empty()
    }

    /// Begins a session of which only the beginning was recorded with its task. One that has
    /// neither a conversation nor a task is left to whoever says something in it.
    pub fn begin(&mut self, task: &str) -> Result<()> {
        match self.is_new() && !self.is_over() && !task.trim().is_empty() {
            true => self.say(task),
            false => Ok(()),
        }
    }

    /// Is nothing left to be done?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// Was the work stopped before it was done, though the model's last answer asks for nothing?
    /// Then it is only done when the model, asked to [go on](Self::go_on), says so.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.state.is_unfinished()
    }

    /// Asks the model to go on with work that is not finished.
    pub fn go_on(&mut self) -> Result<()> {
        self.say(NOT_DONE)
    }

    /// What the model is shown.
    #[must_use]
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// Shows the model what the user said as it was said, in place of what was recorded.
    pub fn show_unredacted(&mut self, text: &str) {
        self.window.show_unredacted(text);
    }

    /// Gives the standing instructions. They are recorded if they are not those that stand:
    /// another agent, or the project's own, may have taken their place.
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

    /// Records what the user says. The model is shown it as it was said.
    pub fn say(&mut self, text: &str) -> Result<()> {
        self.say_as(text, None)
    }

    /// The same by somebody whom a front end speaks for: the log says who it was, and their words
    /// count as those of anyone who speaks to the session.
    pub fn say_as(&mut self, text: &str, who: Option<&Who>) -> Result<()> {
        // Calls that still wait get their results first: nobody may speak in between.
        for call in self.state.undecided() {
            let begun = self.state.is_started(&call.id);
            self.finish_unrun(&call, if begun { &Settled::Unknown } else { &Settled::Passed })?;
        }
        // A call that a person decided on comes first, as they decided.
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
        // What was said before this goes before it.
        self.take_in()?;
        if who.is_some() {
            return Ok(());
        }
        let message = Message::user(text).in_lane(self.lane.clone());
        self.record(vec![message.into()])
    }

    /// Runs until something stops it. `interrupt` becomes true when the user wants it to.
    pub async fn drive(mut self, mut interrupt: signal::Receiver<bool>) -> Result<Ended> {
        if self.is_new() && !self.take_in()? && !self.is_over() {
            return Err(sendable::nothing(self.session.id(), sendable::UNSAID));
        }
        self.judge_others()?;
        // A time that cannot be told is never up.
        let now = tokio::time::Instant::now();
        let deadline = self.setup.timeout.and_then(|timeout| now.checked_add(timeout));
        let deadline =
            deadline.into_iter().chain(self.shared_budget.and_then(SharedBudget::until)).min();
        loop {
            // What is done is done, whoever wants it to stop.
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
                    // What the call may use stays reserved until the answer says what it took.
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

    /// The next move; none, if something was said meanwhile that goes first.
    fn next_move(&mut self) -> Result<Option<Move>> {
        self.hear_given_budget()?;
        let (compactor, conversation) = self.compaction();
        compactor.find_due(conversation)?;
        let estimate = self.estimate();
        let next = self.state.next(&self.rules, &self.since, &estimate);
        // What was said meanwhile goes before the next call, and before a happy end.
        if next.can_listen() && self.take_in()? {
            return Ok(None);
        }
        let calls = matches!(next, Move::CallModel);
        let is_changed = calls && (self.hear_phase()? || self.hear_lower_budget()?);
        Ok((!is_changed).then_some(next))
    }

    /// Records that the step is complete.
    fn seal(&mut self) -> Result<()> {
        self.record(self.sealed())?;
        self.tell_step();
        Ok(())
    }

    /// Tells that a step is complete.
    fn tell_step(&self) {
        let (steps, spent) = (self.state.steps, self.state.total());
        self.front.events.tell(RunEvent::Step { steps, spent });
    }

    /// The user who runs it, as events name them.
    fn me(&self) -> Who {
        self.session.well().who().clone()
    }

    /// Records events, all or none, and takes them in: without secrets on disk, as they are
    /// in memory. Nothing is recorded in any other way.
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

    /// Records how the run stands, and ends it.
    fn stop(mut self, stop: Stop, error: Option<CallError>) -> Result<Ended> {
        let said =
            error.as_ref().map(|error| self.setup.redactor.redact(&error.to_string()).into_owned());
        let Stop { status, reason } = stop;
        // How a flow stands is its own to say, once all of its lanes have stopped. What was done
        // before is not done again.
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

    /// What the next call may cost: what was sent last time and what has come since, and
    /// the longest answer.
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
        // All that is sent may be written to the provider's cache, which may cost more.
        let written = Usage { cache_written: usage.input, ..usage };
        let cost = (self.setup.cost)(&usage).max((self.setup.cost)(&written));
        Estimate { tokens: usage.total(), cost, shrink }
    }
}

fn interrupted() -> Stop {
    Stop { status: Status::Interrupted, reason: StopReason::UserInterrupt }
}

/// What cuts a call or a tool off.
struct Cancel<'a> {
    interrupt: &'a mut signal::Receiver<bool>,
    deadline: Option<tokio::time::Instant>,
}

impl Cancel<'_> {
    /// Is it time to stop?
    fn is_due(&self) -> bool {
        let late = self.deadline.is_some_and(|deadline| tokio::time::Instant::now() >= deadline);
        late || *self.interrupt.borrow()
    }

    /// Returns when it is time to stop.
    async fn off(&mut self) -> Stop {
        let deadline = self.deadline;
        let time_up = async move {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let asked = async {
            // Whoever could ask is gone: nobody will.
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
