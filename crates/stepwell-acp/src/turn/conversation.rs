//! One session that a client has open: what it was given, and how a prompt reaches it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stepwell::log::{Head, Timeline};
use stepwell::model::{Answer, FileState, Mode, Money};
use stepwell::sessions::Subscription;
use stepwell::sqlite::Access;
use stepwell::store::{Order, Span};
use stepwell::work::Gates;
use stepwell::{ErrorKind, Event, Seq, SessionId, Stepwell};
use stepwell_agent::mcp::{KeptServers, Server};
use stepwell_agent::provider::remote::Effort;
use stepwell_runtime::{
    Attached, ContextUsage, Error, Given, Hears, Interrupt, NextRun, OpenGate, Patience,
    ResumeRequest, RunHandle, RunOptions, RunRequest, Runtime, SayRequest, check_model_name,
};
use stepwell_workspace::RecentModelsFile;

use super::narrate::{Contents, Source};
use super::{Narrator, TurnEvent, Usage};

type Result<T, E = Error> = std::result::Result<T, E>;

/// How often a prompt begins anew when somebody else was quicker, and how long a change of the
/// session is waited for before: it may be held already without saying so.
const RACES: u32 = 50;
const BETWEEN_RACES: Duration = Duration::from_millis(20);

/// What the user chose for the runs to come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// When they are asked.
    pub(crate) mode: Option<Mode>,
    /// The model.
    pub(crate) model: Option<String>,
    /// The agent.
    pub(crate) agent: Option<String>,
    /// How long the model thinks; absent, as its provider has it.
    pub(crate) effort: Option<Effort>,
    /// What the session may cost.
    pub(crate) budget: Option<Money>,
}

/// How many events are read at once when the last answer is looked for.
const LOOKED_AT: usize = 64;

/// What holds for a session's next run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holds {
    pub(crate) mode: Mode,
    /// Empty, if none is known.
    pub(crate) model: String,
    pub(crate) agent: String,
}

/// One session that a client has open.
#[derive(Debug)]
pub(crate) struct Conversation {
    id: SessionId,
    runtime: Runtime,
    chosen: Mutex<Chosen>,
    /// The client's MCP servers: they live as long as the session is open here.
    servers: Arc<KeptServers>,
    /// Folders besides the workspace that the client named.
    folders: Vec<PathBuf>,
    /// The last event that the client was told of.
    told: Mutex<Seq>,
}

/// What a client brings to a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brought {
    pub(crate) servers: Vec<Server>,
    pub(crate) folders: Vec<PathBuf>,
}

/// What the user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt(pub(crate) String);

/// How a run comes about.
#[derive(Debug)]
pub(crate) enum Begin {
    /// By a prompt.
    Prompt(Prompt),
    /// It goes on elsewhere already, and is watched from what the client was told last.
    Follow,
}

/// A run that began, or that is watched.
#[derive(Debug)]
pub(crate) enum Begun {
    /// This process carries it out.
    Here(RunHandle),
    /// Somebody else does.
    Elsewhere(Attached),
}

impl Conversation {
    pub(crate) fn new(id: SessionId, runtime: Runtime, brought: Brought) -> Self {
        let Brought { servers, folders } = brought;
        let servers = Arc::new(KeptServers::new(servers, tokio::runtime::Handle::current()));
        let (chosen, told) = (Mutex::default(), Mutex::new(Seq::ZERO));
        Self { id, runtime, chosen, servers, folders, told }
    }

    pub(crate) const fn id(&self) -> &SessionId {
        &self.id
    }

    pub(crate) const fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The names of the client's MCP servers.
    pub(crate) fn brought_servers(&self) -> impl Iterator<Item = &str> {
        self.servers.servers().iter().map(|server| server.name.as_str())
    }

    /// Ends the client's MCP servers.
    pub(crate) async fn close_servers(&self) {
        self.servers.close().await;
    }

    /// What the user chose.
    pub(crate) fn chosen(&self) -> MutexGuard<'_, Chosen> {
        self.chosen.lock()
    }

    fn told_mut(&self) -> MutexGuard<'_, Seq> {
        self.told.lock()
    }

    /// The last event that the client was told of.
    pub(crate) fn told(&self) -> Seq {
        *self.told_mut()
    }

    /// Notes that the client was told of an event, and of those before it.
    pub(crate) fn set_told(&self, seq: Seq) {
        let mut told = self.told_mut();
        *told = seq.max(*told);
    }

    /// The session's head; none, if it is not recorded yet.
    pub(crate) fn head(&self) -> Result<Option<Head>> {
        Ok(self.info()?.map(|it| it.head))
    }

    fn info(&self) -> Result<Option<stepwell::SessionInfo>> {
        let Some(well) = self.runtime.workspace().open_if_present()? else { return Ok(None) };
        match well.info(&self.id) {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.kind() == ErrorKind::Absent => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Does somebody run it?
    pub(crate) fn is_held(&self) -> Result<bool> {
        Ok(self.info()?.is_some_and(|it| it.held.is_some()))
    }

    /// Chooses when the user is asked, from the next turn on.
    ///
    /// # Errors
    /// In words, if there is no such mode; so for the others.
    pub(crate) fn choose_mode(&self, name: &str) -> Result<(), String> {
        let mode = name.parse::<Mode>()?;
        self.chosen().mode = Some(mode);
        Ok(())
    }

    /// Chooses the model.
    pub(crate) fn choose_model(&self, name: &str) -> Result<(), String> {
        let named = check_model_name(name, &self.runtime).map_err(|error| error.to_string())?;
        self.chosen().model = Some(named);
        Ok(())
    }

    /// Chooses the agent.
    pub(crate) fn choose_agent(&self, name: &str) -> Result<(), String> {
        let agents = self.runtime.agents();
        if !agents.contains_key(name) {
            let known: Vec<String> = agents.into_keys().collect();
            return Err(format!(
                "there is no agent {name:?}; expected one of: {}",
                known.join(", ")
            ));
        }
        self.chosen().agent = Some(name.to_owned());
        Ok(())
    }

    /// What holds for the next run: what it would work with if it began now.
    pub(crate) fn holds(&self) -> Result<Holds> {
        let NextRun { mode, model, agent } = self.runtime.next_run(&self.id, &self.options())?;
        Ok(Holds { mode, model: model.unwrap_or_default(), agent })
    }

    fn options(&self) -> RunOptions {
        let chosen = self.chosen().clone();
        RunOptions {
            agent: chosen.agent,
            model: chosen.model,
            mode: chosen.mode,
            patience: Patience::Wait,
            effort: chosen.effort,
            budget_total: chosen.budget,
            kept_servers: Some(Arc::clone(&self.servers)),
            folders: self.folders.clone(),
            ..RunOptions::default()
        }
    }

    /// Begins, blocking until it has begun.
    pub(crate) fn begin(&self, begin: &Begin, interrupt: &Interrupt) -> Result<Begun> {
        match begin {
            Begin::Follow => {
                Ok(Begun::Elsewhere(self.runtime.attach(&self.id, self.told().next())?))
            }
            Begin::Prompt(prompt) => self.begin_with(prompt, interrupt),
        }
    }

    /// Begins with a prompt. Where somebody else is quicker, it is said to their run.
    fn begin_with(&self, prompt: &Prompt, interrupt: &Interrupt) -> Result<Begun> {
        let mut tries = RACES;
        loop {
            match self.try_begin_with(prompt, interrupt) {
                Err(Error::RunsElsewhere(_)) if tries > 0 && !interrupt.is_asked() => {
                    tries -= 1;
                    if let Some(changes) = self.subscribe()? {
                        changes.next(BETWEEN_RACES)?;
                    }
                }
                begun => return begun,
            }
        }
    }

    fn try_begin_with(&self, Prompt(text): &Prompt, interrupt: &Interrupt) -> Result<Begun> {
        let (options, interrupt) = (self.options(), interrupt.clone());
        let Some(info) = self.info()? else {
            let session = Some(self.id.clone());
            let request = RunRequest { session, options, interrupt, ..RunRequest::new(text) };
            return self.runtime.start(request).map(Begun::Here);
        };
        let head = &info.head;
        if info.held.is_some() {
            let attached = self.runtime.attach(&self.id, self.told().next())?;
            return match self.say(text)?.is_running() {
                true => Ok(Begun::Elsewhere(attached)),
                // It ended meanwhile; what was said is on record, and is taken in now.
                false => {
                    let request = ResumeRequest::new(self.id.clone(), self.runtime.trust(&self.id));
                    let request = ResumeRequest { options, interrupt, ..request };
                    self.runtime.resume(request).map(Begun::Here)
                }
            };
        }
        let request = ResumeRequest::new(self.id.clone(), self.runtime.trust(&self.id));
        let mut request = ResumeRequest { options, interrupt, ..request };
        let answer = match head.flow.is_some() {
            true => Answer::from(text.as_str()),
            false => Answer::read(text.trim()),
        };
        let waits = head.open_gates > 0;
        // A flow asks for words, an agent for leave: other words are something new to do.
        match (waits, head.flow.is_some(), &answer) {
            (true, true, _) | (true, false, Answer::Allow { .. } | Answer::Deny { .. }) => {
                request.answer = Some(Given { gate: None, answer });
            }
            (false, true, _) => {}
            (_, false, _) => request.say = Some(text.clone()),
        }
        self.runtime.resume(request).map(Begun::Here)
    }

    /// Says something to whoever runs it.
    pub(crate) fn say(&self, text: &str) -> Result<Hears> {
        let words = SayRequest { text: text.to_owned(), lane: None, now: false };
        self.runtime.say(&self.id, words)
    }

    /// Answers a question of a run that goes on elsewhere.
    pub(crate) fn answer(&self, open: &OpenGate, answer: Answer) -> Result<()> {
        let given = Given { gate: Some(open.gate.id.clone()), answer };
        let flow = stepwell_runtime::FlowOptions::default();
        let seen = Some(open.seq);
        self.runtime.answer_having_seen(&open.session, &given, &flow, seen).map(drop)
    }

    /// The questions that wait.
    pub(crate) fn open_gates(&self) -> Result<Vec<OpenGate>> {
        let Some(well) = self.runtime.workspace().open_if_present()? else { return Ok(Vec::new()) };
        let gates = Gates::waiting(&**well.store(), &self.id)?;
        let open = gates.open().map(|asked| {
            let (id, gate) = (self.id.clone(), asked.gate.clone());
            OpenGate::new(&**well.store(), id, gate, (asked.seq, asked.at))
        });
        Ok(open.collect())
    }

    /// The conversation up to an event, compacted parts included, as far as rewinds left it; and
    /// the last event of it.
    pub(crate) fn history(&self, to: Seq) -> Result<(Vec<TurnEvent>, Seq)> {
        let well = self.runtime.workspace().open_existing(Access::Read)?;
        let info = well.info(&self.id)?;
        let head = info.head;
        let last = head.seq.min(to);
        let events = well.store().events(&self.id, Span { to: last, ..Span::ALL })?;
        let events = events.intact(&self.id)?;
        let timeline = Timeline::at(last, events.iter());
        let mut narrator = self.narrator(Some(&head), Seq::ZERO);
        let mut told = Vec::new();
        for event in events.iter().filter(|event| timeline.contains(event.seq)) {
            told.extend(narrator.recorded(event));
        }
        if info.held.is_none() {
            let gates = Gates::waiting(&**well.store(), &self.id)?;
            let asked: Vec<&str> = gates.open().map(|asked| asked.gate.id.as_str()).collect();
            // A call's own question has its name; those of its subagent begin with it.
            let is_for = |gate: &str, call: &str| gate.split('/').next() == Some(call);
            told.extend(narrator.end_calls(|call| asked.iter().any(|gate| is_for(gate, call))));
        }
        // Each change of the plan is in its call; the plan itself is told once.
        told.retain(|event| !matches!(event, TurnEvent::Plan(_) | TurnEvent::Title(_)));
        let plan = narrator.plan();
        if !plan.is_empty() {
            told.push(TurnEvent::Plan(plan));
        }
        told.push(TurnEvent::Usage(narrator.usage()));
        Ok((told, last))
    }

    /// What was recorded since the client was last told of something, by whomever. From now on it
    /// was told of that.
    pub(crate) fn catch_up(&self) -> Result<Vec<TurnEvent>> {
        // Held, so that nobody else tells the same.
        let mut last = self.told_mut();
        let before = *last;
        let Some(well) = self.runtime.workspace().open_if_present()? else { return Ok(Vec::new()) };
        let head = match well.info(&self.id) {
            Ok(info) if info.head.seq > before => info.head,
            Ok(_) => return Ok(Vec::new()),
            Err(error) if error.kind() == ErrorKind::Absent => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let events = well.store().events(&self.id, Span::after(before))?.events;
        let mut narrator = self.narrator(Some(&head), before);
        let told = events.iter().flat_map(|event| narrator.recorded(event)).collect();
        *last = narrator.told();
        Ok(told)
    }

    /// What becomes of the session from now on, whoever changes it; none, if it is not recorded
    /// yet.
    pub(crate) fn subscribe(&self) -> Result<Option<Subscription>> {
        let Some(well) = self.runtime.workspace().open_if_present()? else { return Ok(None) };
        Ok(match self.head()? {
            Some(_) => Some(well.subscribe_to(&self.id)?),
            None => None,
        })
    }

    /// Someone who tells what comes behind an event.
    pub(crate) fn narrator(&self, head: Option<&Head>, before: Seq) -> Narrator {
        let (usage, tasks) = match head {
            Some(head) => {
                let size = ContextUsage::of(head, &self.runtime).context.length.unwrap_or_default();
                let tasks = self
                    .runtime
                    .workspace()
                    .open_if_present()
                    .ok()
                    .flatten()
                    .and_then(|well| well.work(&self.id).ok());
                let tasks = tasks.map(|work| work.tasks.iter().cloned().collect());
                let used = self.used(before).unwrap_or_default();
                let usage = Usage { used, size, cost: head.spent.known_cost() };
                (usage, tasks.unwrap_or_default())
            }
            None => (Usage::default(), Vec::new()),
        };
        let source = Source {
            root: self.root(),
            contents: contents(self.runtime.clone()),
            redactor: self.runtime.workspace().redactor().with_own_count(),
        };
        Narrator::new(source, before).with_usage(usage).with_tasks(tasks)
    }

    /// How many tokens the model was shown and said, when it last answered up to an event; none, if
    /// nobody knows.
    fn used(&self, to: Seq) -> Option<u64> {
        let well = self.runtime.workspace().open_if_present().ok().flatten()?;
        let mut span = Span { to, order: Order::Newest, limit: LOOKED_AT, ..Span::ALL };
        while span.to > Seq::ZERO {
            let events = well.store().events(&self.id, span).ok()?.events;
            let used = events.iter().find_map(|it| match &it.event {
                Event::Message(message) => message.usage.map(|usage| usage.total()),
                _ => None,
            });
            if used.is_some() {
                return used;
            }
            span.to = events.last()?.seq.prev();
        }
        None
    }

    /// Models that can be chosen: those that were used, the newest first.
    pub(crate) fn models(&self) -> Vec<String> {
        let known =
            RecentModelsFile::of(&self.runtime.workspace().host).and_then(|file| file.read().ok());
        let known = known.unwrap_or_default();
        let liked = known.favourites().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let mut models = known.recent;
        models.extend(liked);
        let mut seen = std::collections::BTreeSet::new();
        models.retain(|model| seen.insert(model.clone()));
        models
    }

    /// The workspace's root.
    pub(crate) fn root(&self) -> PathBuf {
        Path::new(&self.runtime.workspace().place.root).to_owned()
    }
}

/// Finds the bytes of recorded files in a runtime's store.
fn contents(runtime: Runtime) -> Contents {
    let well: OnceLock<Option<Stepwell>> = OnceLock::new();
    Box::new(move |state| {
        let FileState::File { blob, .. } = state else { return None };
        let well = well.get_or_init(|| runtime.workspace().open_existing(Access::Read).ok());
        well.as_ref()?.store().blob(blob).ok()
    })
}
