//! A flow's agents: from what a spec says of each to what its runs work with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use stepwell::Remedy;
use stepwell::log::Redactor;
use stepwell::model::Usage;
use stepwell_agent::agent::Agent;
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::remote::Sampling;
use stepwell_agent::provider::retry::Patience;
use stepwell_agent::run::Setup;
use stepwell_agent::selection::select;
use stepwell_agent::tool::{self, Tool, ToolEnv};
use stepwell_flow::Agents;
use stepwell_flow::spec::{self, Backoff, FailurePolicy, Pattern, SecretSource, Spec};

use super::tools;
use crate::error::{Error, Result};
use crate::model::{self, Elsewhere, Model, Tuning};
use crate::notice::Notice;
use crate::prepare::{Of, Prepared, no_model, place, withheld};
use crate::request::{Interrupt, RunOptions};
use crate::runtime::Runtime;
use crate::trust::Trust;
use crate::{context, mcp, next_run};

/// What a flow's agents need, before their servers are started.
pub(crate) struct Hiring {
    spec: Arc<Spec>,
    models: Vec<(String, Model)>,
    mode: Mode,
    trust: Trust,
    options: RunOptions,
    keys: BTreeMap<String, String>,
    place: ToolEnv,
    wanted: mcp::Wanted,
    names: Agent,
    redactor: Redactor,
    priced: bool,
}

/// Knows what a flow's agents work with.
pub(crate) struct Crew {
    /// By the agents' names.
    setups: BTreeMap<String, Arc<Setup>>,
    all: Vec<Arc<dyn Tool>>,
    spec: Arc<Spec>,
    pub(crate) connected: mcp::Connected,
    redactor: Redactor,
    /// The flow's own model, as it is recorded.
    pub(crate) model: (String, String),
    /// Does what the session's log allows count?
    pub(crate) trust: Trust,
    /// Is the price of every agent's answers known?
    pub(crate) priced: bool,
}

impl Hiring {
    /// Finds every agent's model: whatever can be refused is refused before anything is started or
    /// recorded.
    pub(crate) fn new(
        spec: &Spec,
        options: &RunOptions,
        of: Of<'_>,
        runtime: &Runtime,
    ) -> Result<Self> {
        // Only what the user chose before counts: the spec says the rest.
        let chosen = || of.session?.weighed.mine.model.clone();
        let typed = options.model.clone().or_else(chosen);
        let usual = runtime.workspace().config.settings.mode;
        let trust = of.trust.or_chosen(options.mode.is_some());
        refuse_servers(spec, trust)?;
        tools::check_guardrails(spec, runtime)?;
        let before = || of.session.map_or(usual, |prior| next_run::flow_mode(prior, runtime));
        let mode = options.mode_or(before);
        let keys = model::provider_keys(runtime)?;
        let mut place = place(of.session.map(|prior| prior.head), runtime)?;
        place.withheld = withheld(&keys, runtime).collect();
        let (wanted, names) = tools::servers(spec, &place.root, runtime)?;
        let mut given: Vec<String> = keys.values().cloned().collect();
        given.extend(wanted.secrets.iter().cloned().chain(secrets(spec, runtime)?));
        let (mut models, mut priced) = (Vec::new(), true);
        for (name, agent) in &spec.agents {
            let model = find(&spec.runtime, agent, typed.as_deref(), runtime);
            let model = model.map_err(|error| Error::OfAgent {
                agent: name.to_string(),
                error: Box::new(error),
            })?;
            given.extend(model.secrets.iter().cloned());
            let one = Usage { input: 1, output: 1, ..Usage::default() };
            priced &= (model.cost)(&one).is_some();
            models.push((name.to_string(), model));
        }
        let elsewhere = models.iter().filter_map(|(_, model)| model.elsewhere.as_ref());
        tell_elsewhere(&elsewhere.collect(), trust, runtime)?;
        Ok(Self {
            spec: Arc::new(spec.clone()),
            models,
            mode,
            trust,
            options: options.clone(),
            keys,
            place,
            wanted,
            names,
            redactor: Redactor::with_environment(given, runtime.workspace().host.secrets()),
            priced,
        })
    }

    /// When a person is asked.
    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Starts the servers that some agent needs, and gives every agent what it works with.
    pub(crate) async fn connect(self, interrupt: &Interrupt, runtime: &Runtime) -> Result<Crew> {
        let in_spec = self.spec.tools.mcp.iter().map(|server| server.id.as_str()).collect();
        let at = "the tools of the spec's agents".to_owned();
        let lists = mcp::Lists { agent: &self.names, at, in_spec };
        let connected = self.wanted.connect(&lists, &self.place, interrupt, runtime).await?;
        let mut all = tool::builtin();
        let ours = |tool: &Arc<dyn Tool>| all.iter().any(|own| own.spec().name == tool.spec().name);
        let more: Vec<_> =
            connected.selection.tools.iter().filter(|tool| !ours(tool)).cloned().collect();
        all.extend(more);
        let first = self.models.first().map(|(_, model)| model);
        let mut crew = Crew {
            setups: BTreeMap::new(),
            all,
            spec: Arc::clone(&self.spec),
            connected,
            redactor: self.redactor.clone(),
            model: first.map(|it| (it.provider_name.clone(), it.name.clone())).unwrap_or_default(),
            trust: self.trust,
            priced: self.priced,
        };
        let Self { spec, models, mode, trust, options, keys, place, .. } = self;
        for (name, model) in models {
            let options = RunOptions {
                dry_run: options.dry_run,
                retry_unsafe: options.retry_unsafe,
                ..RunOptions::default()
            };
            let tools = match crew.tools(&name, None) {
                Ok(tools) => tools,
                Err(why) => {
                    crew.connected.close().await;
                    return Err(Error::config(why));
                }
            };
            let prepared = Prepared {
                agent_name: name.clone(),
                agent: Agent::default(),
                mode,
                trust,
                summariser: context::summariser(&model, runtime),
                model,
                keys: keys.clone(),
                environment: runtime.workspace().host.secrets(),
                total: options.budget_total,
                options,
                who: runtime.who(),
                phases: None,
                place: place.clone(),
                mcp: mcp::Wanted::default(),
            };
            let mut setup = prepared.setup_with(tools, runtime);
            setup.redactor = crew.redactor.clone();
            limit(&mut setup, &spec, &name);
            if matches!(spec.pattern, Pattern::Guided(_)) {
                let dispatcher = crate::crew::Crew::new(&[], &prepared, runtime);
                setup.dispatcher = Some(Arc::new(dispatcher));
            }
            crew.setups.insert(name, Arc::new(setup));
        }
        Ok(crew)
    }
}

/// Holds an agent to what the spec says of its answers and its conversation.
fn limit(setup: &mut Setup, spec: &Spec, agent: &str) {
    let own = spec.agents.get(agent).and_then(|agent| agent.inference.max_tokens);
    let most = own.or(spec.runtime.max_tokens);
    setup.max_output = most.map_or(setup.max_output, |most| most.get().into());
    let Some(compaction) = spec.context_policy.as_ref().and_then(|it| it.compaction.as_ref())
    else {
        return;
    };
    setup.context.policy.auto = compaction.enabled;
    if let Some(over) = compaction.when_tokens_over {
        let known = setup.context.length.unwrap_or(u64::MAX);
        setup.context.length = Some(known.min(over.get()));
        setup.context.policy.buffer = 0;
    }
}

impl Crew {
    /// The tools of an agent, or these in their place.
    fn tools(&self, agent: &str, instead: Option<&[String]>) -> Result<Vec<Arc<dyn Tool>>, String> {
        let own = self.spec.agents.get(agent).map(|agent| agent.tools.as_slice());
        let named = tools::named(&self.spec, instead.or(own).unwrap_or_default());
        let agent_with = Agent { tools: Some(named), ..Agent::default() };
        let selection = select(&agent_with, self.all.clone(), &BTreeMap::new());
        let selection = selection.map_err(|error| {
            let known: Vec<_> = self.all.iter().map(|tool| tool.spec().name.as_str()).collect();
            format!("agents.{agent}.tools: {error} (expected one of: {})", known.join(", "))
        })?;
        // An agent of a flow starts no subagents: the flow's pattern says who works.
        let resumable = |tool: &Arc<dyn Tool>| tool.effect() == stepwell::model::Effect::Resumable;
        Ok(selection.tools.into_iter().filter(|tool| !resumable(tool)).collect())
    }
}

impl Agents for Crew {
    fn setup(&self, agent: &str, instead: Option<&[String]>) -> Result<Arc<Setup>, String> {
        let known = self.setups.get(agent);
        let setup = known.ok_or_else(|| format!("there is no agent {agent:?}"))?;
        let Some(instead) = instead else { return Ok(Arc::clone(setup)) };
        let tools = self.tools(agent, Some(instead))?;
        let mut setup = Setup::clone(setup);
        let effects = tools.iter().map(|tool| (tool.spec().name.clone(), tool.effect()));
        setup.rules.effects = effects.collect();
        setup.tools = tools;
        Ok(Arc::new(setup))
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// The model of an agent: what was typed, what it says, what the flow says, what is usual.
fn find(
    defaults: &spec::Runtime,
    agent: &spec::Agent,
    typed: Option<&str>,
    runtime: &Runtime,
) -> Result<Model> {
    let provider = agent.provider.as_ref().or(defaults.provider.as_ref());
    let id = agent.model_id.as_ref().or(defaults.model_id.as_ref());
    let described = match (provider, id) {
        (Some(provider), Some(id)) => Some(format!("{provider}/{id}")),
        // A name that holds its provider.
        (None, Some(id)) => Some(id.clone()),
        _ => None,
    };
    let usual = Some(runtime.workspace().config.settings.model_name.clone())
        .filter(|name| !name.is_empty());
    let named = typed.map(str::to_owned).or(described.clone()).or(usual);
    let named = named.ok_or_else(|| {
        let keys = "runtime.provider and runtime.model_id in the spec".to_owned();
        no_model(runtime).helped_by(Remedy::Correct(keys))
    })?;
    let sampling = Sampling {
        temperature: agent.inference.temperature.or(defaults.temperature),
        top_p: agent.inference.top_p.or(defaults.top_p),
        effort: None,
    };
    let is_described = described.as_ref() == Some(&named);
    let host = defaults.host.clone().filter(|_| is_described && agent.provider.is_none());
    let tuning = Tuning { host, sampling, patience: patience(&defaults.failure_policy) };
    Model::tuned(&named, &tuning, runtime)
}

/// How long a model is asked again, if the spec says.
fn patience(policy: &FailurePolicy) -> Option<Patience> {
    let usual = Patience::default();
    let retries = policy.retries?;
    let first = Duration::from_secs(policy.wait_min.unwrap_or(1));
    let longest = Duration::from_secs(policy.wait_max.unwrap_or(60)).max(first);
    Some(Patience {
        attempts: usize::try_from(retries).unwrap_or(usize::MAX).saturating_add(1),
        first,
        longest: if policy.backoff == Some(Backoff::Constant) { first } else { longest },
        // Who says how often means it.
        total: Duration::from_secs(24 * 3600),
        ..usual
    })
}

/// The values of the secrets that a flow needs, which must be set.
fn secrets(spec: &Spec, runtime: &Runtime) -> Result<Vec<String>> {
    let needed = spec.env.secrets.iter().filter(|secret| secret.source == SecretSource::Env);
    let value = |secret: &spec::Secret| {
        runtime.workspace().host.variable(&secret.key).ok_or_else(|| {
            let why = format!("the flow needs {} in the environment", secret.key);
            Error::config(why).helped_by(Remedy::SetVariable(secret.key.clone()))
        })
    };
    needed.map(value).collect()
}

/// Knows the secrets that are known without asking or starting anything.
pub(crate) fn redactor(spec: &Spec, runtime: &Runtime) -> Result<Redactor> {
    let given = model::provider_keys(runtime)?.into_values().chain(secrets(spec, runtime)?);
    Ok(Redactor::with_environment(given, runtime.workspace().host.secrets()))
}

/// A spec that came with someone else's session starts no programs and sends nothing to
/// addresses of its own unasked.
fn refuse_servers(spec: &Spec, trust: Trust) -> Result<()> {
    let does = |server: &spec::McpServer| match (&server.command, &server.url) {
        (Some(program), _) => Some(format!("start {program}")),
        (None, Some(url)) => Some(format!("connect to {url}")),
        (None, None) => None,
    };
    let commands = matches!(spec.pattern, Pattern::Guided(_));
    let commands = commands.then(|| "run the commands of its plan".to_owned());
    match spec.tools.mcp.iter().find_map(does).or(commands).filter(|_| !trust.is_own()) {
        Some(does) => Err(not_yours(&does)),
        None => Ok(()),
    }
}

/// A flow that someone else began would do something that the user did not allow.
pub(super) fn not_yours(does: &str) -> Error {
    let why = format!("this flow was not begun by you, and would {does}");
    Error::invalid(why).helped_by(Remedy::ChooseMode)
}

/// Says which models are asked at addresses that the spec names.
fn tell_elsewhere(places: &BTreeSet<&Elsewhere>, trust: Trust, runtime: &Runtime) -> Result<()> {
    for Elsewhere { provider, address, lacks_key } in places {
        if !trust.is_own() {
            let does = format!("send its conversations to {address}");
            return Err(not_yours(&does));
        }
        if *lacks_key {
            let (address, provider) = (address.clone(), provider.clone());
            runtime.tell(Notice::WithoutKey { address, provider });
        }
    }
    Ok(())
}
