//! Running an agent: what was asked becomes a setup, a session and a run; how it ended
//! becomes an answer and an exit code.

mod model;
mod report;
mod screen;
mod signals;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stepwell::{Change, Edited, Effect, Head, Money, Session, Stepwell, StopReason, Usage};
use stepwell_agent::agent::{Agent, builtin};
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::Fault;
use stepwell_agent::provider::script::Script;
use stepwell_agent::redact::Redactor;
use stepwell_agent::run::{Ended, Run, Setup};
use stepwell_agent::tool::{self, Place};

use crate::app::App;
use crate::config::replace;
use crate::failure::{Exit, Failure, Result};
use crate::when;
use model::Model;
use screen::Screen;

/// What `run` and `resume` both take.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "How it runs")]
pub(crate) struct Flags {
    /// The agent: build, plan, review, or one of your own.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The model: openai/NAME, anthropic/NAME, gemini/NAME, ollama/NAME, or script:FILE.
    #[arg(long, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// When you are asked: confirm-all, confirm-sensitive (before changes) or yolo (never).
    #[arg(long)]
    pub(crate) mode: Option<Mode>,
    /// Stops before this invocation costs more than so many dollars.
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<Money>,
    /// Stops before the whole session costs more than so many dollars; kept for resumes.
    #[arg(long, value_name = "USD")]
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

fn timeout(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => when::length(text),
    }
}

/// What a run needs that is settled before it begins.
pub(crate) struct Prepared {
    pub(crate) agent_name: String,
    pub(crate) agent: Agent,
    pub(crate) mode: Mode,
    model: Model,
    flags: Flags,
}

/// The metadata key that holds when a person is asked.
const MODE: &str = "mode";

impl Prepared {
    /// Settles what a new run works with, or one of a session that is taken up.
    pub(crate) fn new(flags: &Flags, session: Option<&Head>, app: &App) -> Result<Self> {
        let settings = &app.config.settings;
        let before = session.map(|head| head.agent.clone()).filter(|name| !name.is_empty());
        let agent_name = flags.agent.clone().or(before);
        let agent_name = agent_name.unwrap_or_else(|| settings.agent_name.clone());
        let agent = find_agent(&agent_name, app)?;
        let kept = session.and_then(|head| head.metadata.get(MODE)?.as_str()?.parse().ok());
        let mode = flags.mode.or(kept).or(agent.mode).unwrap_or(settings.mode);
        let used =
            session.filter(|head| !head.model.is_empty()).map(|head| match &*head.provider {
                "" => head.model.clone(),
                "script" => format!("script:{}", head.model),
                provider => format!("{provider}/{}", head.model),
            });
        let named = flags.model.clone().or(used).or_else(|| agent.model.clone());
        let named = named.or_else(|| Some(settings.model_name.clone()));
        let named = named.filter(|name| !name.is_empty()).ok_or_else(|| {
            Failure::new(Exit::Absent, "no model was named")
                .hint("add --model provider/name, or: stepwell config set model.name provider/name")
        })?;
        let model = Model::find(&named, app)?;
        let prepared = Self { agent_name, agent, mode, model, flags: flags.clone() };
        prepared.check_budget(session)?;
        Ok(prepared)
    }

    /// A budget on a model whose price nobody knows cannot be kept.
    fn check_budget(&self, session: Option<&Head>) -> Result<()> {
        let total = self.flags.budget_total.or_else(|| session.and_then(|head| head.budget));
        let limited = self.flags.budget.is_some() || total.is_some();
        let one = Usage { input: 1, output: 1, ..Usage::default() };
        if limited && (self.model.cost)(&one).is_none() {
            let message = format!(
                "the price of {} is not known, so a budget cannot be kept",
                self.model.named
            );
            return Err(Failure::new(Exit::Absent, message)
                .hint("set its price in the configuration, or limit --max-tokens"));
        }
        Ok(())
    }

    /// A description of a new session for a task.
    pub(crate) fn draft(&self, well: &Stepwell, task: &str, app: &App) -> stepwell::Created {
        let task = self.redactor().redact(task).into_owned();
        well.draft(task)
            .with_agent(&self.agent_name)
            .with_model(&self.model.provider_name, &self.model.name)
            .in_workspace(app.place.root.display().to_string())
    }

    /// What is remembered of this invocation for those to come.
    pub(crate) fn remembered(&self) -> Edited {
        let budget = self.flags.budget_total.map_or(Change::Keep, Change::Set);
        let metadata = [(MODE.to_owned(), self.mode.as_str().into())].into();
        Edited { metadata, budget, ..Edited::default() }
    }

    /// The agent's standing instructions, with the project's.
    pub(crate) fn system(&self, app: &App) -> String {
        let project = std::fs::read_to_string(app.place.root.join("AGENTS.md")).ok();
        self.agent.system(project.as_deref())
    }

    fn redactor(&self) -> Redactor {
        Redactor::new(self.model.secrets.iter().cloned())
    }

    fn setup(&self, total: Option<Money>, app: &App) -> Result<Setup> {
        let tools: Vec<_> =
            tool::builtin().into_iter().filter(|it| self.agent.has(&it.spec().name)).collect();
        let effects: std::collections::BTreeMap<String, Effect> =
            tools.iter().map(|tool| (tool.spec().name.clone(), tool.effect())).collect();
        let root = std::fs::canonicalize(&app.place.root)
            .map_err(|error| Failure::file(&app.place.root, "looking for the workspace", &error))?;
        let supervisor = std::env::current_exe().ok();
        let supervisor =
            supervisor.map(|program| (program, vec!["__supervise".to_owned(), "--".to_owned()]));
        Ok(Setup {
            provider: Arc::clone(&self.model.provider),
            model: self.model.name.clone(),
            cost: Arc::clone(&self.model.cost),
            tools,
            place: Place {
                root,
                command_timeout: app.config.settings.command_timeout,
                output_limit: 32 << 10,
                supervisor,
            },
            rules: Rules {
                mode: self.mode,
                retry_unsafe: self.flags.retry_unsafe,
                effects,
                limits: Limits {
                    steps: self.flags.max_steps.or(self.agent.max_steps),
                    tokens: self.flags.max_tokens,
                    budget: self.flags.budget,
                    budget_total: self.flags.budget_total.or(total),
                },
            },
            redactor: self.redactor(),
            max_output: u64::from(app.config.settings.max_output.get()),
            timeout: self.flags.timeout,
            dry_run: self.flags.dry_run,
        })
    }
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

/// What a run is to begin with, beside what the session says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// Standing instructions, for a new session.
    pub(crate) system: Option<String>,
    /// What the user says.
    pub(crate) user: Option<String>,
}

/// Runs an agent in a session until something stops it, and answers.
pub(crate) fn drive(
    mut session: Session,
    prepared: &Prepared,
    words: Words,
    resumed_from: Option<u64>,
    app: &mut App,
) -> Result<Exit> {
    let head = session.standing()?.head;
    let setup = prepared.setup(head.budget, app)?;
    let begun = app.now();
    let mut screen = Screen::new(app, &prepared.flags);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::new(Exit::Failed, format_args!("no threads to run on: {error}"))
        })?;
    let ended: stepwell_agent::Result<Ended> = runtime.block_on(async {
        let interrupt = signals::watch();
        let mut run = Run::new(&mut session, &setup, &mut screen)?;
        if let Some(system) = words.system {
            run.instruct(&system)?;
        }
        if let Some(user) = words.user {
            run.say(&user)?;
        }
        run.drive(interrupt).await
    });
    screen.finish();
    let ended = ended.map_err(|error| unsaved(error, &session))?;
    if let Some(path) = &prepared.flags.record {
        record(path, &session)?;
    }
    let standing = session.standing()?;
    let report = report::Report {
        standing: &standing,
        ended: &ended,
        took: app.now().since(begun),
        resumed_from,
        lanes: session.lanes()?,
        waiting: waiting(&session)?,
    };
    report.print(&prepared.flags, app)?;
    drop(session);
    Ok(exit(&ended))
}

/// The last question that was asked.
fn waiting(session: &Session) -> Result<Option<String>> {
    let gates = session.facts(&[stepwell::Kind::Gate])?;
    Ok(gates.into_iter().next_back().and_then(|gate| match gate.event {
        stepwell::Event::Gate(gate) => Some(gate.prompt),
        _ => None,
    }))
}

/// The exit code that tells how a run ended.
fn exit(ended: &Ended) -> Exit {
    use stepwell::Status::{Failed, Interrupted, Partial, Paused, Success};
    match (ended.status, &ended.error) {
        (Failed, Some(error)) if error.fault == Fault::Auth => Exit::Credentials,
        (Failed, Some(error)) if error.fault == Fault::UnknownModel => Exit::Absent,
        (Success, _) => Exit::Done,
        (Partial, _) => Exit::Partial,
        (Paused, _) => Exit::Paused,
        (Interrupted, _) => Exit::Interrupted,
        _ => Exit::Failed,
    }
}

/// A run whose work could not be saved says so loudly, with its own exit code.
fn unsaved(error: stepwell_agent::Error, session: &Session) -> Failure {
    match error {
        stepwell_agent::Error::Store(error) => {
            let message = format!("the run stopped: what it did could not be saved: {error}");
            Failure::new(Exit::Damaged, message)
                .hint(format_args!("when that is mended: stepwell resume {}", session.id()))
        }
        error => Failure::new(Exit::Failed, error),
    }
}

/// Writes the script that replays a session's answers.
fn record(path: &std::path::Path, session: &Session) -> Result<()> {
    let events = session.events(stepwell::Span::ALL)?.intact(session.id())?;
    let messages: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.event {
            stepwell::Event::Message(message) => Some(message),
            _ => None,
        })
        .collect();
    let script = Script::of(messages, None);
    let text = serde_json::to_string_pretty(&script).unwrap_or_default();
    replace(path, &format!("{text}\n")).map_err(|error| Failure::file(path, "writing it", &error))
}

/// Why a run stopped, as one word.
pub(crate) fn word(reason: StopReason) -> String {
    crate::wire::word(reason)
}
