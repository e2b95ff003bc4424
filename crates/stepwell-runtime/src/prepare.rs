//! What a run works with, settled before it begins: agent, model, mode, budget, tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stepwell::log::Head;
use stepwell::log::{RedactMessages as _, Redactor};
use stepwell::model::{Change, Edited, Effect, Money, PhaseSet, Settings, Usage, Who};
use stepwell::{Created, Message, NewEvent, Remedy, Session, SessionInfo, Stepwell};
use stepwell_agent::agent::Agent;
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::remote::Sampling;
use stepwell_agent::run::{Keeping, Setup};
use stepwell_agent::tool::{Tool, ToolEnv};
use stepwell_workspace::atomic_file::check_replaceable;
use stepwell_workspace::{Prior, Settled};

use crate::error::{Error, Result};
use crate::handle::About;
use crate::model::{Model, Tuning};
use crate::next_run::{self, find_agent};
use crate::notice::Notice;
use crate::request::{Interrupt, RunOptions, RunRequest};
use crate::runtime::Runtime;
use crate::trust::Trust;
use crate::{context, files, mcp, model, model_name, project};

/// The largest AGENTS.md that is read.
const MAX_INSTRUCTIONS: u64 = 256 << 10;

/// What a run needs that is settled before it begins.
pub(crate) struct Prepared {
    pub(crate) agent_name: String,
    pub(crate) agent: Agent,
    pub(crate) mode: Mode,
    /// Does what the session's log allows count?
    pub(crate) trust: Trust,
    pub(crate) model: Model,
    /// The model that writes summaries, if it is another one.
    pub(crate) summariser: Option<Model>,
    /// The keys of all providers that are in the environment, by their variables' names.
    pub(crate) keys: BTreeMap<String, String>,
    /// What else is secret in the environment, by its name.
    pub(crate) environment: Vec<String>,
    pub(crate) options: RunOptions,
    /// Who runs it, as the log names them.
    pub(crate) who: Who,
    /// What the whole session may cost.
    pub(crate) total: Option<Money>,
    /// The phases that a new session goes through.
    pub(crate) phases: Option<PhaseSet>,
    pub(crate) place: ToolEnv,
    pub(crate) mcp: mcp::Wanted,
}

/// Whose run is prepared.
#[derive(Clone, Copy)]
pub(crate) struct Of<'a> {
    /// The session; absent, a new one.
    pub(crate) session: Option<&'a Prior<'a>>,
    /// Does what its log allows count?
    pub(crate) trust: Trust,
}

impl Of<'_> {
    /// A new session.
    pub(crate) const NEW: Self = Of { session: None, trust: Trust::new_session() };
}

/// The variables that may hold the address of a team's store, or its password.
const STORE_VARIABLES: [&str; 3] = ["STEPWELL_STORE", "STEPWELL_STORE_URL", "PGPASSWORD"];

impl Prepared {
    /// Settles what a new run works with, or one of a session that is resumed.
    pub(crate) fn new(options: &RunOptions, of: Of<'_>, runtime: &Runtime) -> Result<Self> {
        let mut prepared = Self::with(options, of, runtime, |named| {
            let named = named.ok_or_else(|| no_model(runtime))?;
            let sampling = Sampling { effort: options.effort, ..Sampling::default() };
            Model::tuned(named, &Tuning { sampling, ..Tuning::default() }, runtime)
        })?;
        let wanted = mcp::Wanted::find(&prepared.agent, &prepared.place.root, runtime);
        prepared.mcp = wanted.with(&options.servers).keeping(options.kept_servers.clone());
        prepared.check_budget(of.session.map(|prior| prior.head))?;
        files::check_roots(&prepared.place, runtime)?;
        Ok(prepared)
    }

    /// Settles what makes a session's conversation shorter: also without a model, and without
    /// the tools of servers.
    pub(crate) fn for_shrinking(prior: &Prior<'_>, runtime: &Runtime) -> Result<Self> {
        let head = prior.head;
        let of = Of { session: Some(prior), trust: runtime.trust(&head.id) };
        Self::with(&RunOptions::default(), of, runtime, |named| {
            let named = named.unwrap_or_default();
            let unreachable = || Model::unreachable(named, head, runtime);
            if named.is_empty() || runtime.workspace().config.settings.truncation {
                return Ok(unreachable());
            }
            Model::find(named, runtime).or_else(|error| {
                runtime.tell(Notice::warning(format!("{named} cannot be asked"), &error));
                Ok(unreachable())
            })
        })
    }

    fn with(
        options: &RunOptions,
        of: Of<'_>,
        runtime: &Runtime,
        find: impl FnOnce(Option<&str>) -> Result<Model>,
    ) -> Result<Self> {
        let session = of.session;
        let agent_name = options.agent.clone().or_else(|| known_agent(session?, runtime));
        let agent_name =
            agent_name.unwrap_or_else(|| runtime.workspace().config.settings.agent_name.clone());
        let agent = find_agent(&agent_name, runtime)?;
        let trust = of.trust.or_chosen(options.mode.is_some());
        let mode = options.mode_or(|| next_run::usual_mode(options, session, &agent, runtime));
        // Wherever the mode comes from: an agent could name another configuration.
        if mode > Mode::ConfirmSensitive {
            runtime.refuse_in_run("a run that asks less than usual")?;
        }
        let named = next_run::model(options, session, &agent, runtime)?;
        let model = find(named.as_deref())?;
        let summariser = context::summariser(&model, runtime);
        let keys = model::provider_keys(runtime)?;
        let environment = runtime.workspace().host.secrets();
        let mut place = place(session.map(|prior| prior.head), runtime)?;
        place.withheld = withheld(&keys, runtime).collect();
        place.also =
            options.folders.iter().filter_map(|it| std::fs::canonicalize(it).ok()).collect();
        Ok(Self {
            agent_name,
            agent,
            mode,
            trust,
            model,
            summariser,
            keys,
            environment,
            options: options.clone(),
            who: runtime.who(),
            total: options.budget_total.or_else(|| session.and_then(Prior::budget)),
            phases: None,
            place,
            mcp: mcp::Wanted::default(),
        })
    }

    /// What this run may cost.
    pub(crate) fn budget(&self) -> Option<Money> {
        self.options.budget.or(self.agent.budget)
    }

    /// What whoever holds a run of it knows.
    pub(crate) fn about(&self, session: &Session) -> Result<About> {
        let head = session.info()?.head;
        let below = session.well().subagents(session.id())?;
        let spent = below.iter().fold(head.spent.cost, |sum, it| sum.plus(it.head.spent.cost));
        let here = self.budget().map(|budget| spent.plus(budget));
        Ok(About { spec: None, budget: here.into_iter().chain(self.total).min() })
    }

    /// Starts and reaches the agent's MCP servers, and gives it its tools. Whoever begins a session
    /// does so before, so that none is left behind where that fails.
    pub(crate) async fn connect(
        &self,
        interrupt: &Interrupt,
        runtime: &Runtime,
    ) -> Result<mcp::Connected> {
        if let Some(path) = &self.options.record_script {
            // Found out before a run is paid for.
            let unwritable = stepwell_workspace::Error::file(path, "writing it");
            check_replaceable(path).map_err(unwritable)?;
        }
        let lists = mcp::Lists::of(&self.agent_name, &self.agent);
        self.mcp.connect(&lists, &self.place, interrupt, runtime).await
    }

    /// A budget on a model whose price nobody knows cannot be kept.
    fn check_budget(&self, session: Option<&Head>) -> Result<()> {
        let limited = self.budget().is_some() || self.total.is_some();
        let one = Usage { input: 1, output: 1, ..Usage::default() };
        if limited && (self.model.cost)(&one).is_none() {
            return Err(no_price(&self.model.named));
        }
        match session {
            Some(head) => self.check_priced(head, &[]),
            None => Ok(()),
        }
    }

    /// A budget for all of a session, and of its subagents, needs the price of all that they did.
    pub(crate) fn check_priced(&self, head: &Head, below: &[SessionInfo]) -> Result<()> {
        let spent = below.iter().map(|it| &it.head.spent).chain([&head.spent]);
        let calls: u64 = spent.map(|spent| spent.unpriced).sum();
        match self.total.is_some() && calls > 0 {
            true => {
                let why = format!(
                    "the price of {calls} of the session's calls is not known, so a budget for all \
                     of it cannot be kept"
                );
                Err(Error::config(why).helped_by(Remedy::LimitRun))
            }
            false => Ok(()),
        }
    }

    /// The session that a description is of, with who does it, with what and where.
    pub(crate) fn describe(&self, draft: Created, runtime: &Runtime) -> Created {
        let draft = draft
            .with_agent(&self.agent_name)
            .with_model(&self.model.provider_name, &self.model.name)
            .in_workspace(runtime.workspace().place.root.display().to_string());
        Created { project: project::at(&runtime.workspace().place.root), ..draft }
    }

    /// The model's name, as it can be given again.
    pub(crate) fn model_name(&self) -> String {
        model_name(&self.model.provider_name, &self.model.name)
    }

    /// What is remembered of this run for those to come.
    pub(crate) fn remembered(&self) -> Vec<NewEvent> {
        let settings = Settings {
            agent: Some(self.agent_name.clone()),
            model: Some(self.model_name()),
            mode: Some(self.mode),
            budget: self.options.budget_total,
            flow: None,
            revokes: false,
            who: self.who.clone(),
        };
        let mut events: Vec<NewEvent> = vec![settings.into()];
        if let Some(budget) = self.options.budget_total {
            events.push(Edited { budget: Change::Set(budget), ..Edited::default() }.into());
        }
        events
    }

    /// Tells what others allowed in a session, and does not count for this run.
    pub(crate) fn tell_disregarded(&self, prior: &Prior<'_>, settled: &Settled, runtime: &Runtime) {
        if prior.weighed.altered {
            runtime.tell(Notice::LogAltered { session: prior.head.id.clone() });
        }
        let recorded = prior.head.budget;
        if let Some(counts) = self.total.filter(|_| self.options.budget_total.is_none())
            && recorded.is_none_or(|recorded| recorded > counts)
        {
            runtime.tell(Notice::BudgetNotYours { counts, recorded });
        }
        let (mode, model) = (self.mode, self.model_name());
        for it in prior.disregarded(mode, &model, settled) {
            let namesake = runtime.is_namesake(&it.who);
            let (it, model) = (Box::new(it), Some(model.clone()));
            runtime.tell(Notice::Disregarded { it, mode, model, namesake });
        }
    }

    /// Makes the session of a new run, with all that it begins with, or nothing of it.
    pub(crate) fn begin(
        &self,
        well: &Stepwell,
        request: &RunRequest,
        runtime: &Runtime,
    ) -> Result<Session> {
        let task = &request.task;
        let mut draft = well.draft(self.redactor().redact(task).into_owned());
        if let Some(id) = &request.session {
            draft.id = id.clone();
        }
        let draft = Created { phases: self.phases, ..self.describe(draft, runtime) };
        runtime.create_own(well, draft, self.beginning(task, runtime))
    }

    /// What a session for a task begins with.
    pub(crate) fn beginning(&self, task: &str, runtime: &Runtime) -> Vec<NewEvent> {
        let redactor = self.redactor();
        let system = redactor.redact_message(Message::system(self.system(runtime))).0;
        let user = redactor.redact_message(Message::user(task)).0;
        let mut events = self.remembered();
        events.extend([system.into(), user.into()]);
        events
    }

    /// The agent's standing instructions, with the project's.
    pub(crate) fn system(&self, runtime: &Runtime) -> String {
        let path = runtime.workspace().place.root.join("AGENTS.md");
        let project = match instructions(&path, &runtime.workspace().place.root) {
            Ok(text) => text,
            Err(why) => {
                runtime.tell(Notice::warning("AGENTS.md is not read", &why));
                None
            }
        };
        let system = self.agent.system(project.as_deref());
        if self.place.also.is_empty() {
            return system;
        }
        let also: Vec<String> =
            self.place.also.iter().map(|it| format!("- {}", it.display())).collect();
        format!(
            "{system}\n\nYou may also look into these folders, by absolute paths, and not change \
             them:\n{}",
            also.join("\n")
        )
    }

    /// Keeps this run's keys, and whatever looks like a secret, out of what is written.
    pub(crate) fn redactor(&self) -> Redactor {
        let models = [Some(&self.model), self.summariser.as_ref()].into_iter().flatten();
        let given = models.flat_map(|model| &model.secrets).chain(&self.mcp.secrets);
        let keys = given.chain(self.keys.values()).cloned();
        Redactor::with_environment(keys, self.environment.iter().cloned())
    }

    /// What a run works with, given its tools.
    pub(crate) fn setup_with(&self, tools: Vec<Arc<dyn Tool>>, runtime: &Runtime) -> Setup {
        let effects: BTreeMap<String, Effect> =
            tools.iter().map(|tool| (tool.spec().name.clone(), tool.effect())).collect();
        let options = &self.options;
        Setup {
            provider: Arc::clone(&self.model.provider),
            model: self.model.name.clone(),
            cost: Arc::clone(&self.model.cost),
            tools,
            // A new session's store is there only now.
            place: ToolEnv {
                store: std::fs::canonicalize(&runtime.workspace().place.store).ok(),
                ..self.place.clone()
            },
            rules: Rules {
                // What changes nothing needs no consent.
                mode: if options.dry_run { Mode::Yolo } else { self.mode },
                retry_unsafe: options.retry_unsafe,
                effects,
                limits: Limits {
                    steps: options.max_steps.or(self.agent.max_steps),
                    tokens: options.max_tokens.or(self.agent.max_tokens),
                    budget: self.budget(),
                    budget_total: self.total,
                },
            },
            redactor: self.redactor(),
            max_output: u64::from(runtime.workspace().config.settings.max_output.get()),
            timeout: options.timeout.or(self.agent.timeout_seconds.map(Duration::from_secs)),
            dry_run: options.dry_run,
            context: context::of(&self.model, self.summariser.as_ref(), runtime),
            keeping: Keeping {
                files: files::limits(runtime.workspace()),
                every_steps: runtime.workspace().config.settings.every_steps.get().into(),
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
pub(crate) fn withheld(
    keys: &BTreeMap<String, String>,
    runtime: &Runtime,
) -> impl Iterator<Item = String> {
    // The address of a team's store may hold a password.
    let addresses = STORE_VARIABLES.iter().filter(|_| runtime.workspace().place.team.is_some());
    let addresses = addresses.map(|name| (*name).to_owned());
    let private = runtime.workspace().host.private_variables();
    keys.keys().cloned().chain(mcp::key_variables(runtime)).chain(addresses).chain(private)
}

/// Where tools work.
pub(crate) fn place(session: Option<&Head>, runtime: &Runtime) -> Result<ToolEnv> {
    let root = runtime.workspace().session_folder(session)?;
    let supervisor = runtime.supervisor().cloned();
    let command_timeout = runtime.workspace().config.settings.command_timeout;
    Ok(ToolEnv { command_timeout, supervisor, ..ToolEnv::new(root) })
}

/// The agent that goes on with a session; one that takes another's place is told of.
fn known_agent(prior: &Prior<'_>, runtime: &Runtime) -> Option<String> {
    let next_run::Successor { used, goes_on } = next_run::successor(prior, runtime)?;
    if let Some(source) = prior.head.source.as_ref().filter(|_| used != goes_on) {
        let (system, instead) = (source.system.clone(), goes_on.clone());
        runtime.tell(Notice::OtherAgent { used, system, instead });
    }
    Some(goes_on)
}

/// A budget cannot be kept on a model without a price.
pub(crate) fn no_price(model: &str) -> Error {
    let why = format!(
        "the price of {model} is not known, so a budget cannot be kept; it can be set in the \
         configuration"
    );
    Error::config(why).helped_by(Remedy::LimitRun)
}

/// Neither the user nor the configuration names a model. One is suggested that can be asked here,
/// or could be with a key.
pub(crate) fn no_model(runtime: &Runtime) -> Error {
    let models = [
        ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"),
        ("OPENAI_API_KEY", "openai/gpt-4.1"),
        ("GEMINI_API_KEY", "gemini/gemini-2.5-pro"),
    ];
    let found =
        models.iter().find(|(variable, _)| runtime.workspace().host.variable(variable).is_some());
    let (variable, model) = found.unwrap_or(&models[0]);
    let key = found.is_none().then(|| (*variable).to_owned());
    Error::config("no model was named").helped_by(Remedy::Model { name: (*model).to_owned(), key })
}
