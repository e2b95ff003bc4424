//! Running an agent: what was asked becomes a setup, a session and a run; how it ended
//! becomes an answer and an exit code.

mod context;
mod crew;
pub(crate) mod flow;
mod gauge;
mod mcp;
mod model;
mod project;
mod report;
mod screen;
mod shrink;
mod signals;
mod tally;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stepwell::{
    Change, Created, Driver, Edited, Effect, Head, Message, Money, NewEvent, PhaseSet, Session,
    Standing, Stepwell, Usage,
};
use stepwell_agent::agent::{Agent, builtin};
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::script::Script;
use stepwell_agent::redact::{RedactMessages as _, Redactor};
use stepwell_agent::run::{Charge, Ended, Happening, Keeping, Run, Setup, Watcher as _};
use stepwell_agent::tool::{Ground, Place, Tool};
use stepwell_workspace::atomic_file::{check_replaceable, replace_users_file};
use stepwell_workspace::{Mirror, Mirroring, parse_duration};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::readiness::Touch;
use crate::wire;
pub(crate) use gauge::Gauge;
use model::Model;
pub(crate) use model::check_name;
use screen::Screen;
pub(crate) use shrink::shrink;
use tally::{Tally, Tallying};

/// What `run` and `resume` both take.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "How it runs")]
pub(crate) struct Flags {
    /// The agent: build, explore, plan, review, or one of your own.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The model: openai/NAME, anthropic/NAME, gemini/NAME, ollama/NAME, or script:FILE.
    #[arg(long, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// When you are asked: confirm-all, confirm-sensitive (before changes) or yolo (never).
    #[arg(long)]
    pub(crate) mode: Option<Mode>,
    /// Stops before this invocation costs more than so many dollars.
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) budget: Option<Money>,
    /// Stops before the whole session costs more than so many dollars; kept for resumes.
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) budget_total: Option<Money>,
    /// Stops before this invocation uses more than so many tokens.
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Stops after so many steps of this invocation.
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<u64>,
    /// Stops after so long: 90s, 30m, or a number of seconds.
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,
    /// Changes nothing: tools that would only say so.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Repeats a command that was cut off, though nobody knows what it did.
    #[arg(long)]
    pub(crate) retry_unsafe: bool,
    /// Writes the model's answers to a script that replays them.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Prints every event as JSON, one per line, as it is recorded.
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
}

impl Flags {
    /// May the run change files?
    pub(crate) const fn touch(&self) -> Touch {
        if self.dry_run { Touch::Nothing } else { Touch::Files }
    }
}

fn dollars(text: &str) -> Result<Money, String> {
    let money: Money = text.parse().map_err(|error: stepwell::NotMoney| error.to_string())?;
    if money < Money::ZERO { Err("a budget is not negative".to_owned()) } else { Ok(money) }
}

fn timeout(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => parse_duration(text),
    }
}

/// The largest AGENTS.md that is read.
const MAX_INSTRUCTIONS: u64 = 256 << 10;

/// What a run needs that is settled before it begins.
pub(crate) struct Prepared {
    pub(crate) agent_name: String,
    pub(crate) agent: Agent,
    pub(crate) mode: Mode,
    /// Is the session the user's own, or is it from now on?
    own: bool,
    model: Model,
    /// The model that writes summaries, if it is another one.
    summariser: Option<Model>,
    /// The keys of all providers that are in the environment, by their variables' names.
    keys: BTreeMap<String, String>,
    /// What else is secret in the environment, by its name.
    environment: Vec<String>,
    flags: Flags,
    /// The phases that a new session goes through.
    phases: Option<PhaseSet>,
    place: Place,
    mcp: mcp::Wanted,
    tools: OnceCell<mcp::Connected>,
}

/// The variables that may hold the address of a team's store, or its password.
const STORE_VARIABLES: [&str; 3] = ["STEPWELL_STORE", "STEPWELL_STORE_URL", "PGPASSWORD"];

/// The metadata keys that hold when a person is asked, which model is used, and by whom.
const MODE: &str = "mode";
const MODEL: &str = "model";
const AGENT: &str = "agent";

impl Prepared {
    /// Settles what a new run works with, or one of a session that is taken up.
    pub(crate) fn new(flags: &Flags, session: Option<&Head>, app: &App) -> Result<Self> {
        let mut prepared = Self::with(flags, session, app, |named| {
            let named = named.ok_or_else(|| {
                Failure::new(Exit::Absent, "no model was named").hint(a_model(app))
            })?;
            Model::find(named, app)
        })?;
        prepared.mcp = mcp::Wanted::find(&prepared.agent, &prepared.place.root, app);
        prepared.check_budget(session)?;
        crate::files::check_roots(&prepared.place, app)?;
        Ok(prepared)
    }

    /// Settles what makes a session's conversation shorter: also without a model, and without
    /// the tools of servers.
    fn for_shrinking(flags: &Flags, head: &Head, app: &App) -> Result<Self> {
        Self::with(flags, Some(head), app, |named| {
            let named = named.unwrap_or_default();
            let unreachable = || Model::unreachable(named, head, app);
            if named.is_empty() || app.config.settings.truncation {
                return Ok(unreachable());
            }
            Model::find(named, app).or_else(|failure| {
                note(format_args!("warning: {named} cannot be asked: {failure}"));
                Ok(unreachable())
            })
        })
    }

    fn with(
        flags: &Flags,
        session: Option<&Head>,
        app: &App,
        find: impl FnOnce(Option<&str>) -> Result<Model>,
    ) -> Result<Self> {
        let settings = &app.config.settings;
        let kept = |key: &str| Some(session?.metadata.get(key)?.as_str()?.to_owned());
        let agent_name = flags.agent.clone().or_else(|| known_agent(session?, app));
        let agent_name = agent_name.unwrap_or_else(|| settings.agent_name.clone());
        let agent = find_agent(&agent_name, app)?;
        // Another program's session says nothing of how the user wants to be asked.
        let ran_here = session.is_none_or(|head| head.driver == Driver::Own);
        let mode = kept(MODE).filter(|_| ran_here).and_then(|mode| mode.parse().ok());
        let usual = agent.mode.unwrap_or(settings.mode);
        let is_own = |head: &Head| app.is_own(&head.id);
        let own = session.is_none_or(is_own) || flags.mode.is_some();
        // What someone else allowed in a session is not allowed by the user.
        let mode = mode.map(|mode: Mode| if own { mode } else { mode.min(usual) });
        let mode = flags.mode.or(mode).unwrap_or(usual);
        let named = flags.model.clone().or_else(|| used_model(session?));
        let named = named.or_else(|| agent.model.clone());
        let named = named.or_else(|| Some(settings.model_name.clone()));
        let model = find(named.as_deref().filter(|name| !name.is_empty()))?;
        let summariser = context::summariser(&model, app);
        let keys = model::keys(app)?;
        let environment = app.host.secrets();
        let mut place = place(session, app)?;
        place.withheld = withheld(&keys, app).collect();
        Ok(Self {
            agent_name,
            agent,
            mode,
            own,
            model,
            summariser,
            keys,
            environment,
            flags: flags.clone(),
            phases: None,
            place,
            mcp: mcp::Wanted::default(),
            tools: OnceCell::new(),
        })
    }

    /// What this invocation may cost.
    fn budget(&self) -> Option<Money> {
        self.flags.budget.or(self.agent.budget)
    }

    /// The agent's tools. The first time, MCP servers are started for it; whoever begins a
    /// session asks before, so that none is left behind where that fails.
    pub(crate) fn connect(&self) -> Result<()> {
        if let Some(path) = &self.flags.record {
            // Found out before a run is paid for.
            check_replaceable(path).map_err(|error| Failure::file(path, "writing it", &error))?;
        }
        self.connected().map(drop)
    }

    fn connected(&self) -> Result<&mcp::Connected> {
        if let Some(tools) = self.tools.get() {
            return Ok(tools);
        }
        let lists = mcp::Lists::of(&self.agent_name, &self.agent);
        let tools = self.mcp.connect(&lists, &self.place)?;
        Ok(self.tools.get_or_init(|| tools))
    }

    /// A budget on a model whose price nobody knows cannot be kept.
    fn check_budget(&self, session: Option<&Head>) -> Result<()> {
        let total = self.flags.budget_total.or_else(|| session.and_then(|head| head.budget));
        let limited = self.budget().is_some() || total.is_some();
        let one = Usage { input: 1, output: 1, ..Usage::default() };
        if limited && (self.model.cost)(&one).is_none() {
            let message = format!(
                "the price of {} is not known, so a budget cannot be kept",
                self.model.named
            );
            return Err(Failure::new(Exit::Absent, message)
                .hint("set its price in the configuration, or limit --max-tokens"));
        }
        match session {
            Some(head) => self.check_priced(head, &[]),
            None => Ok(()),
        }
    }

    /// A budget for all of a session, and of its subagents, needs the price of all that they did.
    pub(crate) fn check_priced(&self, head: &Head, below: &[Standing]) -> Result<()> {
        let total = self.flags.budget_total.or(head.budget);
        let spent = below.iter().map(|it| &it.head.spent).chain([&head.spent]);
        let unpriced: u64 = spent.map(|spent| spent.unpriced).sum();
        if total.is_some() && unpriced > 0 {
            let message = format!(
                "the price of {unpriced} of the session's calls is not known, so a budget for \
                 all of it cannot be kept"
            );
            return Err(Failure::new(Exit::Absent, message)
                .hint("limit this invocation: --budget USD, or --max-tokens N"));
        }
        Ok(())
    }

    /// A description of a new session for a task.
    fn draft(&self, well: &Stepwell, task: &str, app: &App) -> Created {
        let draft = well.draft(self.redactor().redact(task).into_owned());
        Created { phases: self.phases, ..self.describe(draft, app) }
    }

    /// The same session, with who does it, with what and where.
    fn describe(&self, draft: Created, app: &App) -> Created {
        let draft = draft
            .with_agent(&self.agent_name)
            .with_model(&self.model.provider_name, &self.model.name)
            .in_workspace(app.place.root.display().to_string());
        Created { project: project::at(&app.place.root), ..draft }
    }

    /// The same run in a session that goes through phases.
    pub(crate) fn with_phases(self, phases: Option<PhaseSet>) -> Self {
        Self { phases, ..self }
    }

    /// The model's name, as it can be typed again.
    fn model_name(&self) -> String {
        wire::model(&self.model.provider_name, &self.model.name)
    }

    /// What is remembered of this invocation for those to come.
    pub(crate) fn remembered(&self) -> Edited {
        let budget = self.flags.budget_total.map_or(Change::Keep, Change::Set);
        let metadata = [
            (MODE.to_owned(), self.mode.as_str().into()),
            (MODEL.to_owned(), self.model_name().into()),
            (AGENT.to_owned(), self.agent_name.clone().into()),
        ];
        Edited { metadata: metadata.into(), budget, ..Edited::default() }
    }

    /// Makes the session of a new run, with all that it begins with, or nothing of it.
    pub(crate) fn begin(&self, well: &Stepwell, task: &str, app: &App) -> Result<Session> {
        let events = self.beginning(task, app);
        Ok(well.create_with(self.draft(well, task, app), events)?)
    }

    /// What a session for a task begins with.
    fn beginning(&self, task: &str, app: &App) -> Vec<NewEvent> {
        let redactor = self.redactor();
        let system = redactor.redact_message(Message::system(self.system(app))).0;
        let user = redactor.redact_message(Message::user(task)).0;
        vec![self.remembered().into(), system.into(), user.into()]
    }

    /// The agent's standing instructions, with the project's.
    fn system(&self, app: &App) -> String {
        let path = app.place.root.join("AGENTS.md");
        let project = match instructions(&path, &app.place.root) {
            Ok(text) => text,
            Err(why) => {
                note(format_args!("warning: AGENTS.md is not read: {why}"));
                None
            }
        };
        self.agent.system(project.as_deref())
    }

    /// Keeps this run's keys, and whatever looks like a secret, out of what is written.
    pub(crate) fn redactor(&self) -> Redactor {
        let models = [Some(&self.model), self.summariser.as_ref()].into_iter().flatten();
        let given = models.flat_map(|model| &model.secrets).chain(&self.mcp.secrets);
        let keys = given.chain(self.keys.values()).cloned();
        Redactor::with_environment(keys, self.environment.iter().cloned())
    }

    fn setup(&self, head: &Head, app: &App) -> Result<Setup> {
        let mut tools = self.connected()?.selection.tools.clone();
        let crew = crew::Crew::new(&tools, &self.mcp.secrets, app);
        if let Some(set) = head.phases {
            tools.push(stepwell_agent::tool::phases(set));
        }
        let ground = Charge::of(head).map(|charge| charge.ground);
        // A subagent that is taken up by hand may do what it might before.
        if ground == Some(Ground::ReadOnly) {
            tools.retain(|tool| tool.effect() == Effect::Pure);
        }
        let mut setup = self.setup_with(tools, head.budget, app);
        setup.dispatcher = Some(Arc::new(crew));
        // A worktree lies in the store, and nothing of the store lies in it.
        if ground == Some(Ground::Worktree) {
            setup.place.grounds = setup.place.store.take();
        }
        Ok(setup)
    }

    /// What a run works with, given its tools and what its session may cost.
    fn setup_with(&self, tools: Vec<Arc<dyn Tool>>, budget: Option<Money>, app: &App) -> Setup {
        let effects: BTreeMap<String, Effect> =
            tools.iter().map(|tool| (tool.spec().name.clone(), tool.effect())).collect();
        Setup {
            provider: Arc::clone(&self.model.provider),
            model: self.model.name.clone(),
            cost: Arc::clone(&self.model.cost),
            tools,
            // A new session's store is there only now.
            place: Place {
                store: std::fs::canonicalize(&app.place.store).ok(),
                ..self.place.clone()
            },
            rules: Rules {
                // What changes nothing needs no consent.
                mode: if self.flags.dry_run { Mode::Yolo } else { self.mode },
                retry_unsafe: self.flags.retry_unsafe,
                effects,
                limits: Limits {
                    steps: self.flags.max_steps.or(self.agent.max_steps),
                    tokens: self.flags.max_tokens.or(self.agent.max_tokens),
                    budget: self.budget(),
                    budget_total: self.flags.budget_total.or(budget),
                },
            },
            redactor: self.redactor(),
            max_output: u64::from(app.config.settings.max_output.get()),
            timeout: self.flags.timeout.or(self.agent.timeout_seconds.map(Duration::from_secs)),
            dry_run: self.flags.dry_run,
            context: context::of(&self.model, self.summariser.as_ref(), app),
            keeping: Keeping {
                files: crate::files::limits(app),
                every_steps: app.config.settings.every_steps.get().into(),
            },
            dispatcher: None,
        }
    }
}

/// The project's instructions, if there are any: a file, or a link to one of the workspace,
/// and of a size that someone wrote.
fn instructions(path: &Path, root: &Path) -> Result<Option<String>, String> {
    if std::fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    let real = std::fs::canonicalize(path).map_err(|error| error.to_string())?;
    let root = std::fs::canonicalize(root).map_err(|error| error.to_string())?;
    let meta = std::fs::metadata(&real).map_err(|error| error.to_string())?;
    if !real.starts_with(root) {
        return Err("it leads out of the workspace".to_owned());
    }
    if !meta.is_file() {
        return Err("it is no file".to_owned());
    }
    if meta.len() > MAX_INSTRUCTIONS {
        return Err(format!("it is larger than {} KiB", MAX_INSTRUCTIONS >> 10));
    }
    std::fs::read_to_string(real).map(Some).map_err(|error| error.to_string())
}

/// The variables that no command gets to see.
fn withheld(keys: &BTreeMap<String, String>, app: &App) -> impl Iterator<Item = String> {
    // The address of a team's store may hold a password.
    let addresses = STORE_VARIABLES.iter().filter(|_| app.place.team.is_some());
    let addresses = addresses.map(|name| (*name).to_owned());
    let private = app.host.private_variables();
    keys.keys().cloned().chain(mcp::key_variables(app)).chain(addresses).chain(private)
}

/// Where tools work.
fn place(session: Option<&Head>, app: &App) -> Result<Place> {
    let root = app.session_folder(session)?;
    let supervisor = std::env::current_exe().ok();
    let supervisor =
        supervisor.map(|program| (program, vec!["__supervise".to_owned(), "--".to_owned()]));
    let command_timeout = app.config.settings.command_timeout;
    Ok(Place { command_timeout, supervisor, ..Place::new(root) })
}

/// The agent that a session was last run by.
fn used_agent(head: &Head) -> Option<String> {
    let kept = head.metadata.get(AGENT).and_then(|name| name.as_str());
    let name = kept.unwrap_or(&head.agent);
    (!name.is_empty()).then(|| name.to_owned())
}

/// The same, or the one that goes on with a session of another system whose agent is unknown here.
fn known_agent(head: &Head, app: &App) -> Option<String> {
    let used = used_agent(head)?;
    match &head.source {
        Some(source) if find_agent(&used, app).is_err() => {
            note(format_args!(
                "{used:?} is an agent of {}; {ANY_AGENT} goes on with its session \
                 (--agent NAME names another)",
                source.system
            ));
            Some(ANY_AGENT.to_owned())
        }
        _ => Some(used),
    }
}

/// The agent that goes on where the one that began is not known.
const ANY_AGENT: &str = "build";

/// How a model is named, with one that can be asked here if there is a key.
fn a_model(app: &App) -> String {
    let models = [
        ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"),
        ("OPENAI_API_KEY", "openai/gpt-4.1"),
        ("GEMINI_API_KEY", "gemini/gemini-2.5-pro"),
    ];
    let found = models.iter().find(|(variable, _)| app.host.variable(variable).is_some());
    let (variable, model) = found.unwrap_or(&models[0]);
    let key = if found.is_some() { String::new() } else { format!(", with a key in {variable}") };
    format!(
        "add --model {model}{key}; stepwell config set --user model.name {model} keeps it; \
         stepwell demo needs none"
    )
}

/// The model that a session was last run with, as the user would type it.
fn used_model(head: &Head) -> Option<String> {
    let kept = head.metadata.get(MODEL).and_then(|name| name.as_str());
    let named = || wire::model(&head.provider, &head.model);
    Some(kept.map_or_else(named, ToOwned::to_owned)).filter(|name| !name.is_empty())
}

fn find_agent(name: &str, app: &App) -> Result<Agent> {
    let mut agents = builtin();
    agents.extend(app.config.agents.clone());
    agents.get(name).cloned().ok_or_else(|| {
        let known: Vec<_> = agents.keys().map(String::as_str).collect();
        Failure::new(Exit::Absent, format_args!("there is no agent {name:?}"))
            .hint(format_args!("known are {}", known.join(", ")))
    })
}

/// Keeps secrets out of what a command writes into a session.
pub(crate) fn redactor(app: &App) -> Result<Redactor> {
    Ok(Redactor::with_environment(model::keys(app)?.into_values(), app.host.secrets()))
}

/// What the user says to a run.
#[derive(Clone, Debug)]
pub(crate) enum Words {
    /// The task that its session began with.
    Begun(String),
    /// More, to a session that has a past.
    More(String),
    /// Nothing: it goes on.
    Nothing,
}

/// Runs an agent in a session until something stops it, and answers.
pub(crate) fn drive(
    session: Session,
    prepared: &Prepared,
    words: &Words,
    resumed_from: Option<u64>,
    app: &mut App,
) -> Result<Exit> {
    let head = session.standing()?.head;
    let setup = prepared.setup(&head, app)?;
    let begun = app.now();
    if prepared.own {
        app.own(session.id());
    }
    remember_model(prepared, app);
    let mirror = Mirror::of(app).filter(|_| app.config.settings.auto_save);
    let below = session.well().subagents(session.id())?;
    let spent = below.iter().fold(head.spent.cost, |sum, it| sum.plus(it.head.spent.cost));
    let screen = Mirroring::new(Screen::new(app, prepared, &head, spent), mirror);
    let below = below.into_iter().map(|it| it.head).collect();
    let tally = Tally::new(head.clone(), session.lanes()?, below);
    let mut screen = Tallying { watcher: screen, tally };
    // What was recorded before the run itself began is this invocation's too.
    let before = stepwell::Seq::new(resumed_from.unwrap_or(0));
    for event in session.events(stepwell::Span::after(before))?.intact(session.id())? {
        screen.saw(Happening::Recorded(&event));
    }
    let tools = prepared.connected()?;
    let ended: stepwell_agent::Result<Ended> = tools.runtime.block_on(async {
        let interrupt = tools.interrupt.clone();
        let mut run = Run::new(&session, &setup, &mut screen)?;
        if !prepared.own {
            run.distrust(before);
        }
        // A session that is done stays as it is.
        let unfinished = run.is_unfinished();
        if !run.is_over() || unfinished || matches!(words, Words::More(_)) {
            run.instruct(&prepared.system(app))?;
        }
        run.begin(&head.task)?;
        match words {
            // The model gets what was said, also what is not written.
            Words::Begun(task) => run.reveal(task),
            Words::More(text) => run.say(text)?,
            // Work that was cut off is not done because its model's last words asked for nothing.
            Words::Nothing if unfinished => run.go_on()?,
            Words::Nothing => {}
        }
        run.drive(interrupt).await
    });
    tools.close();
    let Tallying { watcher, tally } = screen;
    let written = watcher.into_inner().finish();
    let took = app.now().since(begun);
    let redactor = &setup.redactor;
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => {
            let failure = unsaved(error, &session);
            report::unsaved(&tally, &failure.to_string(), (took, resumed_from), app)?;
            return Err(failure);
        }
    };
    context::remember(&prepared.model, &ended.calibration, app);
    let standing = session.standing()?;
    let report = report::Report {
        standing: &standing,
        ended: &ended,
        took,
        redactor,
        resumed_from,
        lanes: session.lanes()?,
        subagents: session.well().subagents(session.id())?,
        waiting: report::waiting(&session)?,
    };
    report.print(&prepared.flags, app)?;
    if let Some(path) = &prepared.flags.record {
        record(path, &session)?;
    }
    drop(session);
    written?;
    Ok(report::exit(&ended))
}

/// Remembers for the user that they used this model. Not being able to is no reason to stop.
fn remember_model(prepared: &Prepared, app: &App) {
    let most = usize::try_from(app.config.settings.max_recent.get()).unwrap_or(usize::MAX);
    let name = prepared.model_name();
    let noted = app.recent_models().map(|shelf| shelf.change(|models| models.used(&name, most)));
    if let Some(Err(failure)) = noted {
        note(format_args!("warning: the model was not remembered: {failure}"));
    }
}

/// A run whose work could not be saved says so loudly, with its own exit code.
fn unsaved(error: stepwell_agent::Error, session: &Session) -> Failure {
    match error {
        stepwell_agent::Error::Store(error) => {
            let message = format!("the run stopped: what it did could not be saved: {error}");
            Failure::new(Exit::Damaged, message).hint(after_unsaved(&error, session.id()))
        }
        error => Failure::new(Exit::Failed, error),
    }
}

/// What to type after something could not be saved.
fn after_unsaved(error: &stepwell::Error, id: &stepwell::SessionId) -> String {
    match error {
        // Somebody else went on with it, and may be done.
        stepwell::Error::Fenced { .. } => format!("stepwell show {id} shows what became of it"),
        _ => format!("when that is mended: stepwell resume {id}"),
    }
}

/// Writes the script that replays a session's answers.
fn record(path: &Path, session: &Session) -> Result<()> {
    let events = session.events(stepwell::Span::ALL)?.intact(session.id())?;
    let script = Script::of(events.iter().map(|event| &event.event));
    let text = serde_json::to_string_pretty(&script).unwrap_or_default();
    let private = || {
        // Only its owner reads it: what is said in a run is nobody else's.
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(path);
        file?.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        replace_users_file(path, &format!("{text}\n"))
    };
    private().map_err(|error| Failure::file(path, "writing it", &error))
}
