//! The driver: performs the moves that the machine decides on, and records each event
//! before the next thing begins.

mod charge;
mod compact;
mod dispatch;
mod ground;
mod record;
mod relay;
mod watch;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use stepwell::{
    Compacted, Effect, Event, Failure, FileChanged, FileState, Gate, GateAnswered, Lane, Message,
    NewEvent, Outcome, Permission, Recorded, Role, Session, Span, Status, StatusChanged,
    StopReason, Timeline, ToolCall, ToolTarget, Usage, View,
};
use tokio::sync::watch as signal;

use crate::context::Context;
use crate::context::tokens::Calibration;
use crate::context::window::{Window, is_request};
use crate::error::Result;
use crate::files::capture::{Capture, Limits};
use crate::machine::{Baseline, Estimate, Found, Move, Rules, Settled, State, Stop, inspect, told};
pub use crate::price::Cost;
use crate::provider::{self, CallError, Fault, GO_ON, Provider, Purpose, Request, ToolSpec};
use crate::redact::Redactor;
use crate::tool::{self, Changed, Content, Done, Place, Plan, Tool};
pub use charge::Charge;
use compact::Due;
pub use compact::{Shrunk, TRUNCATED};
pub use dispatch::{Dispatcher, Hired, Terms};
pub use watch::{Happening, Question, Reply, Watcher};

/// What a run works with. It does not change while it runs.
#[derive(Clone)]
pub struct Setup {
    /// Answers.
    pub provider: Arc<dyn Provider>,
    /// Which of its models.
    pub model: String,
    /// What tokens cost.
    pub cost: Cost,
    /// The tools that the agent may use.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Where they work.
    pub place: Place,
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
    /// Why.
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
    session: &'a mut Session,
    setup: &'a Setup,
    watcher: &'a mut dyn Watcher,
    lane: Lane,
    state: State,
    since: Baseline,
    /// What the model is shown, with secrets: only what is written is redacted.
    window: Window,
    /// Calls whose recorded arguments are not what the model wrote.
    redacted: Vec<String>,
    /// Every call's id so far.
    ids: HashSet<String>,
    specs: Vec<ToolSpec>,
    /// The tools' tokens, as we count them.
    spec_tokens: u64,
    /// How many tokens a request has at most: counted as the conversation grows, so that a
    /// step does not cost more the longer it is.
    tokens: u64,
    /// Answers in a row that ended because they were as long as they may be.
    cut_short: u32,
    /// Was the user told that tokens are estimated?
    estimates: bool,
    calibration: Calibration,
    /// What is to go before the model is asked again.
    due: Option<Due>,
    /// Did the provider say that the conversation does not fit?
    refused: bool,
    /// Does the session say that messages are left out?
    truncated: bool,
    /// Looks at the workspace around commands, from the first on.
    capture: Option<Capture>,
    /// What the last command changed, until that is recorded.
    captured: Vec<FileChanged>,
    /// A command was killed together with the run that looked around it.
    blind: bool,
    ended: Ended,
}

/// An answer that is cut short is gone on with; after so many in a row, the model does not
/// come to an end.
const MAX_CUT_SHORT: u32 = 3;

/// Who answers where a person is asked.
const THE_USER: &str = "the user";

impl<'a> Run<'a> {
    /// Takes up a session where it stands.
    pub fn new(
        session: &'a mut Session,
        setup: &'a Setup,
        watcher: &'a mut dyn Watcher,
    ) -> Result<Self> {
        let lane = Lane::main();
        let events = session.events(Span::ALL)?.intact(session.id())?;
        let mut state = State::new(lane.clone());
        let last = events.last().map(|event| event.seq).unwrap_or_default();
        let timeline = Timeline::at(last, events.iter());
        for event in &events {
            // What was spent stays spent, whatever was rewound.
            if timeline.contains(event.seq) {
                state.apply(event);
            } else {
                state.count(event);
            }
        }
        state.below = dispatch::below(session)?;
        let since = Baseline { spent: state.total(), steps: state.steps };
        let blind = record::lost_sight(&events);
        let (mut redacted, mut ids, mut first_request) = (Vec::new(), HashSet::new(), None);
        for event in events.iter().filter(|event| timeline.contains(event.seq)) {
            let Event::Message(message) = &event.event else { continue };
            // Also of calls that are no longer shown: no other may bear their ids.
            for call in message.calls() {
                ids.insert(call.id.clone());
                if Redactor::is_redacted(&call.arguments) {
                    redacted.push(call.id.clone());
                }
            }
            if message.lane == lane && is_request(message) {
                first_request.get_or_insert(event.seq);
            }
        }
        let head = session.standing()?.head;
        let truncated = head.metadata.contains_key(TRUNCATED);
        let view = View::of(&lane, events);
        for call in view.messages.iter().flat_map(|shown| shown.message.calls()) {
            ids.insert(call.id.clone());
        }
        let (counter, calibration) = (setup.context.counter(), setup.context.calibration);
        // A call that has no result yet is not the view's to answer: the run does.
        let window = Window::new(lane.clone(), counter)
            .of(view, first_request, |id| state.is_pending(id))
            .with_goal(head.goal);
        let specs: Vec<ToolSpec> = setup.tools.iter().map(|tool| tool.spec().clone()).collect();
        let spec_tokens = counter.tools(&specs);
        let tokens = record::tokens(window.instructions(), window.messages(), &specs);
        let ended = Ended {
            status: Status::Running,
            reason: StopReason::LlmDone,
            error: None,
            output: window
                .messages()
                .last()
                .filter(|last| last.role == Role::Assistant)
                .map_or_else(String::new, Message::text),
            tools_used: Vec::new(),
            files_modified: Vec::new(),
            calibration,
        };
        Ok(Self {
            session,
            setup,
            watcher,
            lane,
            state,
            since,
            window,
            redacted,
            ids,
            specs,
            spec_tokens,
            tokens,
            cut_short: 0,
            estimates: false,
            calibration,
            due: None,
            refused: false,
            truncated,
            capture: None,
            captured: Vec::new(),
            blind,
            ended,
        })
    }

    /// Was nothing said in it yet?
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.window.messages().is_empty()
    }

    /// Is nothing left to be done?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// What the model is shown.
    #[must_use]
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// Shows the model what the user said as it was said, in place of what was recorded.
    pub fn reveal(&mut self, text: &str) {
        self.window.reveal(text);
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
        self.tokens = self.most();
        Ok(())
    }

    /// Records what the user says. The model is shown it as it was said.
    pub fn say(&mut self, text: &str) -> Result<()> {
        // Calls that still wait are answered first: nobody may speak in between.
        while let Some(call) = self.state.pending() {
            let begun = self.state.is_started(&call.id);
            self.settle(&call, if begun { &Settled::Unknown } else { &Settled::Passed })?;
        }
        if self.state.is_unsealed() {
            self.seal()?;
        }
        let message = Message::user(text).in_lane(self.lane.clone());
        self.record(vec![message.into()])
    }

    /// Runs until something stops it. `interrupt` becomes true when the user wants it to.
    pub async fn drive(mut self, mut interrupt: signal::Receiver<bool>) -> Result<Ended> {
        // A time that cannot be told is never up.
        let now = tokio::time::Instant::now();
        let deadline = self.setup.timeout.and_then(|timeout| now.checked_add(timeout));
        loop {
            if *interrupt.borrow() {
                return self.stop(interrupted(), None);
            }
            if deadline.is_some_and(|deadline| tokio::time::Instant::now() >= deadline) {
                return self.stop(Stop::limit(StopReason::Timeout), None);
            }
            self.due = self.due()?;
            let estimate = self.estimate();
            let next = self.state.next(&self.setup.rules, &self.since, &estimate);
            let cut = Cut { interrupt: &mut interrupt, deadline };
            if let Some((stop, error)) = self.make(next, cut).await? {
                return self.stop(stop, error);
            }
        }
    }

    /// Makes one move. An answer ends the run.
    async fn make(
        &mut self,
        next: Move,
        cut: Cut<'_>,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        match next {
            Move::CallModel => return self.ask(cut).await,
            Move::Compact(by) => return self.compact(by, cut).await,
            Move::RunTool(call) => return self.perform(call, cut).await,
            Move::Inspect(call, targets) => self.inspect(call, &targets, cut).await?,
            Move::Settle(call, settled) => self.settle(&call, &settled)?,
            Move::Ask(call) => return self.permit(call, cut).await,
            Move::Seal => self.seal()?,
            Move::Stop(stop) => return Ok(Some((stop, None))),
        }
        Ok(None)
    }

    /// Records that the step is complete.
    fn seal(&mut self) -> Result<()> {
        self.record(self.sealed())?;
        self.watcher.saw(Happening::Step(self.state.steps, &self.state.total()));
        Ok(())
    }

    /// Asks the model, and records its answer if it gave one.
    async fn ask(&mut self, mut cut: Cut<'_>) -> Result<Option<(Stop, Option<CallError>)>> {
        let request = Request {
            model: &self.setup.model,
            system: self.window.instructions(),
            messages: self.window.messages(),
            tools: &self.specs,
            max_output: self.setup.max_output,
            turn: self.turn(Purpose::Answer),
        };
        let watcher = &mut self.watcher;
        let mut told = |delta| watcher.saw(Happening::Delta(delta));
        let answered = tokio::select! {
            answer = self.setup.provider.answer(request, &mut told) => Ok(answer),
            stop = cut.off() => Err(stop),
        };
        let answer = match answered {
            Err(stop) => return Ok(Some((stop, None))),
            Ok(Err(error)) => return self.call_failed(error),
            Ok(Ok(answer)) => answer,
        };
        self.learn(answer.usage);
        self.hear(answer)
    }

    /// Records an answer, and with it that the step is complete if it asks for nothing.
    fn hear(&mut self, answer: provider::Answer) -> Result<Option<(Stop, Option<CallError>)>> {
        let provider::Answer { message, usage, cost, ended } = answer;
        let mut message = message.in_lane(self.lane.clone());
        self.name_calls(&mut message);
        if message.parts.is_empty() {
            // No provider takes a message back that says nothing.
            message.parts.push(stepwell::Part::text("(no answer)"));
        }
        let usage = usage.unwrap_or_else(|| self.estimated(&message));
        message.model = Some(self.setup.model.clone());
        message.usage = Some(usage);
        message.cost = cost.or_else(|| (self.setup.cost)(&usage));
        let asks = message.calls().next().is_some();
        let cut_short = !asks && ended == provider::Ended::OutputLimit;
        let text = message.text();
        match self.cut_short {
            0 => self.ended.output = text,
            _ => self.ended.output.push_str(&text),
        }
        self.cut_short = if cut_short { self.cut_short + 1 } else { 0 };
        let mut events: Vec<Event> = vec![message.clone().into()];
        if !asks {
            events.extend(self.sealed());
        }
        // Together with the answer: taken up after a crash, it must not look complete.
        let go_on = Message::user(GO_ON).in_lane(self.lane.clone());
        if cut_short {
            events.push(go_on.into());
        }
        self.record(events)?;
        self.watcher.saw(Happening::Answered(&message));
        if !asks {
            self.watcher.saw(Happening::Step(self.state.steps, &self.state.total()));
        }
        let what = match ended {
            provider::Ended::Filtered => "the provider filtered its answer".to_owned(),
            _ if self.cut_short >= MAX_CUT_SHORT => format!(
                "{MAX_CUT_SHORT} answers in a row were cut off at {} tokens (model.max_output)",
                self.setup.max_output
            ),
            _ => return Ok(None),
        };
        let provider = self.setup.provider.name().to_owned();
        self.call_failed(CallError { provider, what, fault: Fault::Refused })
    }

    /// About what an answer took, for a provider that does not say.
    fn estimated(&mut self, message: &Message) -> Usage {
        if !std::mem::replace(&mut self.estimates, true) {
            let notice = format!(
                "{} does not say how many tokens it used: they are estimated",
                self.setup.provider.name()
            );
            self.watcher.saw(Happening::Notice(&notice));
        }
        let output = record::tokens("", std::slice::from_ref(message), &[]);
        Usage { input: self.tokens, output, ..Usage::default() }
    }

    /// Gives each call an id that none had before: what was said about one call must never
    /// be taken for another.
    fn name_calls(&mut self, message: &mut Message) {
        for part in &mut message.parts {
            if let stepwell::Part::ToolCall(call) = part {
                let mut id = call.id.clone();
                let mut n = 1;
                while id.is_empty() || !self.ids.insert(id.clone()) {
                    n += 1;
                    id = format!("{}-{n}", if call.id.is_empty() { "call" } else { &call.id });
                }
                call.id = id;
                if Redactor::is_redacted(&call.arguments) {
                    self.redacted.push(call.id.clone());
                }
            }
        }
    }

    fn call_failed(&mut self, error: CallError) -> Result<Option<(Stop, Option<CallError>)>> {
        if error.fault == Fault::ContextFull && self.can_shrink()? {
            return Ok(None);
        }
        self.record(vec![Failure { message: error.to_string() }.into()])?;
        let stop = match error.fault {
            Fault::ContextFull => Stop::limit(StopReason::ContextFull),
            _ => Stop { status: Status::Failed, reason: StopReason::LlmError },
        };
        Ok(Some((stop, Some(error))))
    }

    /// Asks a person whether a call may run.
    async fn permit(
        &mut self,
        call: ToolCall,
        cut: Cut<'_>,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        let preview = self.preview(&call);
        let detail = self.detail(&call);
        let question = Question { call: &call, preview: &preview, detail };
        let reply = self.watcher.ask(&question, &|| cut.is_due());
        // Whoever took too long to answer allows nothing any more.
        if cut.is_due() {
            return Ok(None);
        }
        match reply {
            Reply::Yes if self.state.is_asked(&call.id) => self.answer(&call, "approve")?,
            Reply::Yes => return self.perform(call, cut).await,
            Reply::No(reason) => {
                self.settle(&call, &Settled::Denied(reason))?;
            }
            Reply::Always => self.remember(&call, true)?,
            Reply::Never => self.remember(&call, false)?,
            // What is not kept cannot be allowed later.
            Reply::Later if self.is_secret(&call) => {
                let why = "nobody can be asked, and what it holds that looks like a secret is \
                           not kept until someone can";
                self.settle(&call, &Settled::Denied(why.to_owned()))?;
            }
            Reply::Later => {
                let gate = Gate { id: call.id, prompt: preview, default: None, deadline: None };
                // A gate that was asked before the run was paused waits on.
                if !self.state.is_asked(&gate.id) {
                    self.record(vec![gate.into()])?;
                }
                let (status, reason) = (Status::Paused, StopReason::Gate);
                return Ok(Some((Stop { status, reason }, None)));
            }
        }
        Ok(None)
    }

    /// Answers the question that was asked about a call.
    fn answer(&mut self, call: &ToolCall, answer: &str) -> Result<()> {
        let answered = self.closed_gate(call, answer, THE_USER.to_owned());
        self.record(answered.into_iter().collect())
    }

    /// A question that was asked about a call, and that nothing waits for any more.
    fn closed_gate(&self, call: &ToolCall, answer: &str, who: String) -> Option<Event> {
        let (id, answer) = (call.id.clone(), answer.to_owned());
        self.state.is_asked(&call.id).then(|| GateAnswered { id, answer, who }.into())
    }

    /// Would the arguments of a call not be kept as they are?
    fn is_secret(&self, call: &ToolCall) -> bool {
        let message = Message::assistant("").calling(&call.id, &call.name, &call.arguments);
        self.setup.redactor.redact_message(message).1
    }

    /// Forgets what the log says, up to a seq, that the user allowed: it is not known that
    /// they did.
    pub fn distrust(&mut self, to: stepwell::Seq) {
        self.state.distrust(to);
    }

    fn remember(&mut self, call: &ToolCall, allow: bool) -> Result<()> {
        let permission = Permission { rule: call.name.clone(), allow };
        self.record(vec![permission.into()])
    }

    fn preview(&self, call: &ToolCall) -> String {
        let arguments = serde_json::from_str(&call.arguments);
        match (self.tool(&call.name), arguments) {
            (Some(tool), Ok(arguments)) => tool.preview(&arguments),
            _ => format!("{} {}", call.name, call.arguments),
        }
    }

    fn detail(&self, call: &ToolCall) -> Option<String> {
        let arguments = serde_json::from_str(&call.arguments).ok()?;
        self.tool(&call.name)?.detail(&arguments, &self.setup.place)
    }

    fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.setup.tools.iter().find(|tool| tool.spec().name == name).cloned()
    }

    /// Runs a tool: that it starts is on disk before it does.
    async fn run_tool(&mut self, call: ToolCall, mut cut: Cut<'_>) -> Result<()> {
        let Some(tool) = self.tool(&call.name) else {
            return self.settle(&call, &Settled::NoSuchTool);
        };
        if self.redacted.contains(&call.id) {
            let why = "where its arguments should hold a secret they hold a placeholder: secrets \
                       are not kept, so it has to be given anew"
                .to_owned();
            return self.finish(&call, &Done { outcome: Outcome::Denied, ..Done::failed(why) }, 0);
        }
        let arguments: serde_json::Value = match serde_json::from_str(&call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                let why = format!("the arguments are no JSON: {error}");
                return self.finish(&call, &Done::failed(why), 0);
            }
        };
        let plan = match tool.plan(&arguments, &self.setup.place) {
            Ok(plan) => plan,
            Err(why) => return self.finish(&call, &Done::failed(why), 0),
        };
        if self.setup.dry_run && tool.effect() != Effect::Pure {
            let text = format!("dry run, not done: {}", tool.preview(&arguments));
            return self.finish(&call, &Done::ok(text), 0);
        }
        self.look_before(&*tool);
        self.keep_before(&plan)?;
        self.start(&call, &*tool, plan)?;
        let begun = tokio::time::Instant::now();
        let place = &self.setup.place;
        let done = match tool.decide(&arguments, place, &self.state.tasks) {
            Some(done) => done,
            None => tokio::select! {
                done = tool.run(&arguments, place) => done,
                // As after a crash: the run that takes it up finds what became of it.
                _ = cut.off() => {
                    self.watcher.saw(Happening::CutOff(&call));
                    return self.look_after_cut_off(&*tool).await;
                }
            },
        };
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.look_after(&*tool)?;
        self.finish(&call, &done, took)
    }

    fn start(&mut self, call: &ToolCall, tool: &dyn Tool, plan: Plan) -> Result<()> {
        let started = stepwell::ToolStarted {
            lane: self.lane.clone(),
            call_id: call.id.clone(),
            tool: call.name.clone(),
            effect: tool.effect(),
            arguments: stepwell::Digest::of(call.arguments.as_bytes()),
            targets: plan.targets,
            child: plan.child,
        };
        let who = format!("mode {}", self.setup.rules.mode.as_str());
        let mut events: Vec<Event> = Vec::from_iter(self.closed_gate(call, "approve", who));
        events.push(started.into());
        self.record(events)?;
        if !self.ended.tools_used.contains(&call.name) {
            self.ended.tools_used.push(call.name.clone());
        }
        self.watcher.saw(Happening::ToolStarted(call, &self.preview(call)));
        Ok(())
    }

    /// A call that changes files was cut off: was the change made?
    async fn inspect(
        &mut self,
        call: ToolCall,
        targets: &[ToolTarget],
        cut: Cut<'_>,
    ) -> Result<()> {
        let look = |target: &ToolTarget| tool::look(&self.setup.place, &target.path);
        let now: Result<Vec<Content>, String> = targets.iter().map(look).collect();
        let found = now.map_or(Found::Other, |now| {
            inspect(targets, &now.iter().map(Content::digest).collect::<Vec<_>>())
        });
        match found {
            Found::Made => {
                let changed = targets.iter().filter_map(|target| {
                    let (path, after) = (target.path.clone(), look(target).ok()?);
                    let before = self.before_interruption(target, &after);
                    Some(Changed { path, before, after })
                });
                let changed = changed.collect();
                let text = "done (found to be done after an interruption)";
                self.finish(&call, &Done { changed, ..Done::ok(text) }, 0)
            }
            Found::Untouched => self.run_tool(call, cut).await,
            Found::Other => self.settle(&call, &Settled::Unknown),
        }
    }

    /// Answers a call without running it.
    fn settle(&mut self, call: &ToolCall, settled: &Settled) -> Result<()> {
        let (text, outcome) = told(settled);
        let unseen = self.unseen(call, settled);
        self.captured.extend(unseen);
        self.finish(call, &Done { outcome, ..Done::failed(text) }, 0)
    }

    /// Records what a tool did, together with what the model is told of it.
    fn finish(&mut self, call: &ToolCall, done: &Done, duration_ms: u64) -> Result<()> {
        let who = match done.outcome {
            Outcome::Denied if !self.setup.dry_run => THE_USER,
            _ => "stepwell",
        };
        let closed = self.closed_gate(call, "deny", who.to_owned());
        let mut events: Vec<Event> = Vec::from_iter(closed);
        for changed in &done.changed {
            events.push(self.file_event(changed)?.into());
        }
        events.extend(self.captured.drain(..).map(Event::from));
        events.extend(done.tasks.iter().cloned().map(Event::from));
        self.note_files(&events);
        let finished = stepwell::ToolFinished {
            lane: self.lane.clone(),
            call_id: call.id.clone(),
            outcome: done.outcome,
            duration_ms,
        };
        let is_error = done.outcome != Outcome::Done;
        let text = if done.text.is_empty() { "(no output)".to_owned() } else { done.text.clone() };
        let mut message = Message::tool_result(call.id.clone(), text).in_lane(self.lane.clone());
        for part in &mut message.parts {
            if let stepwell::Part::ToolResult(result) = part {
                result.is_error = is_error;
            }
        }
        events.push(finished.into());
        events.push(message.into());
        self.record(events)?;
        self.watcher.saw(Happening::ToolFinished(call, done));
        Ok(())
    }

    /// An event as it is written: without secrets.
    fn written(&self, event: &Event) -> Event {
        let plain = |text: &str| self.setup.redactor.redact(text).into_owned();
        match event {
            Event::Message(message) => self.setup.redactor.redact_message(message.clone()).0.into(),
            Event::Error(failure) => Failure { message: plain(&failure.message) }.into(),
            Event::Compacted(compacted) => {
                let (summary, fault) = (compacted.summary.as_deref(), compacted.fault.as_deref());
                let (summary, fault) = (summary.map(plain), fault.map(plain));
                Compacted { summary, fault, ..compacted.clone() }.into()
            }
            Event::Gate(gate) => Gate { prompt: plain(&gate.prompt), ..gate.clone() }.into(),
            Event::Status(change) => {
                let error = change.error.as_deref().map(plain);
                StatusChanged { error, ..change.clone() }.into()
            }
            Event::ToolStarted(started) => {
                let mut started = started.clone();
                started.tool = plain(&started.tool);
                started.targets.iter_mut().for_each(|target| target.path = plain(&target.path));
                started.into()
            }
            Event::File(file) => {
                let hide = |state: &FileState| match state {
                    FileState::Symlink { target } => FileState::Symlink { target: plain(target) },
                    other => other.clone(),
                };
                let (before, after) = (hide(&file.before), hide(&file.after));
                FileChanged { path: plain(&file.path), before, after, ..file.clone() }.into()
            }
            Event::Task(task) => record::without_secrets(task, plain).into(),
            other => other.clone(),
        }
    }

    /// Records events, all or none, and takes them in: without secrets on disk, as they are
    /// in memory. Nothing is recorded in any other way.
    fn record(&mut self, events: Vec<Event>) -> Result<()> {
        let written: Vec<Event> = events.iter().map(|event| self.written(event)).collect();
        let at = self.session.now();
        let entries = written.iter().cloned().map(|event| NewEvent::from(event).at(at)).collect();
        let mut seq = self.session.append_all(entries)?.first;
        for (event, written) in events.into_iter().zip(written) {
            if let Event::Message(message) = &event {
                self.tokens += record::tokens("", std::slice::from_ref(message), &[]);
            }
            let recorded = Recorded { seq, at, id: None, event };
            self.state.apply(&recorded);
            self.window.apply(&recorded);
            self.watcher.saw(Happening::Recorded(&Recorded { seq, at, id: None, event: written }));
            seq = seq.next();
        }
        Ok(())
    }

    /// Records how the run stands, and ends it.
    fn stop(mut self, stop: Stop, error: Option<CallError>) -> Result<Ended> {
        let said =
            error.as_ref().map(|error| self.setup.redactor.redact(&error.to_string()).into_owned());
        let Stop { status, reason } = stop;
        let change = StatusChanged { status, reason: Some(reason), error: said };
        self.record(vec![change.into()])?;
        Ok(Ended { status, reason, error, calibration: self.calibration, ..self.ended })
    }

    /// What the next call may cost: what was sent last time and what has come since, and
    /// the longest answer.
    fn estimate(&self) -> Estimate {
        let limits = &self.setup.rules.limits;
        let limited =
            limits.budget.is_some() || limits.budget_total.is_some() || limits.tokens.is_some();
        let shrink = self.shrink();
        if !limited {
            return Estimate { shrink, ..Estimate::default() };
        }
        let usage = Usage { input: self.tokens, output: self.setup.max_output, ..Usage::default() };
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
struct Cut<'a> {
    interrupt: &'a mut signal::Receiver<bool>,
    deadline: Option<tokio::time::Instant>,
}

impl Cut<'_> {
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
