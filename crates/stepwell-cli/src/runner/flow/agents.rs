//! A flow's agents: from what a spec says of each to what its runs work with.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use stepwell::{Head, Usage};
use stepwell_agent::agent::Agent;
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::remote::Sampling;
use stepwell_agent::provider::retry::Patience;
use stepwell_agent::redact::Redactor;
use stepwell_agent::run::Setup;
use stepwell_agent::selection::select;
use stepwell_agent::tool::{self, Tool};
use stepwell_flow::Agents;
use stepwell_flow::spec::{self, Backoff, FailurePolicy, SecretSource, Spec};

use super::super::model::{self, Elsewhere, Model, Tuning};
use super::super::{Flags, MODE, MODEL, Prepared, context, mcp, place, withheld};
use super::tools;
use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;

/// Knows what a flow's agents work with.
pub(super) struct Crew {
    /// By the agents' names.
    setups: BTreeMap<String, Arc<Setup>>,
    all: Vec<Arc<dyn Tool>>,
    spec: Spec,
    pub(super) connected: mcp::Connected,
    redactor: Redactor,
    /// The flow's own model, as it is recorded.
    pub(super) model: (String, String),
    /// Is the session the user's own, or is it from now on?
    pub(super) own: bool,
    /// Is the price of every agent's answers known?
    pub(super) priced: bool,
}

impl Crew {
    /// Finds every agent's model and tools, and starts the servers that some need: whatever
    /// can be refused is refused before anything is recorded.
    pub(super) fn new(spec: &Spec, flags: &Flags, head: Option<&Head>, app: &App) -> Result<Self> {
        let kept = |key: &str| Some(head?.metadata.get(key)?.as_str()?.to_owned());
        let typed = flags.model.clone().or_else(|| kept(MODEL));
        let usual = app.config.settings.mode;
        let is_own = |head: &Head| app.is_own(&head.id);
        let own = head.is_none_or(is_own) || flags.mode.is_some();
        refuse_servers(spec, own)?;
        tools::check_guardrails(spec, app)?;
        // What someone else allowed in a session is not allowed by the user.
        let mode = kept(MODE).and_then(|mode| mode.parse().ok());
        let mode = mode.map(|mode: Mode| if own { mode } else { mode.min(usual) });
        let mode = flags.mode.or(mode).unwrap_or(usual);
        let keys = model::keys(app)?;
        let mut place = place(head, app)?;
        place.withheld = withheld(&keys, app).collect();
        let (wanted, names) = tools::servers(spec, &place.root, app)?;
        let secrets = secrets(spec, app)?;
        let in_spec = spec.tools.mcp.iter().map(|server| server.id.as_str()).collect();
        let at = "the tools of the spec's agents".to_owned();
        let lists = mcp::Lists { agent: &names, at, in_spec };
        let connected = wanted.connect(&lists, &place)?;
        let mut all = tool::builtin();
        let ours = |tool: &Arc<dyn Tool>| all.iter().any(|own| own.spec().name == tool.spec().name);
        let more: Vec<_> =
            connected.selection.tools.iter().filter(|tool| !ours(tool)).cloned().collect();
        all.extend(more);
        let mut given: Vec<String> = keys.values().cloned().collect();
        given.extend(wanted.secrets.iter().cloned().chain(secrets));
        let (mut hires, mut first, mut priced) = (Vec::new(), None, true);
        for (name, agent) in &spec.agents {
            let model = find(&spec.runtime, agent, typed.as_deref(), app)
                .map_err(|failure| about(failure, name.as_str()))?;
            given.extend(model.secrets.iter().cloned());
            let one = Usage { input: 1, output: 1, ..Usage::default() };
            priced &= (model.cost)(&one).is_some();
            first.get_or_insert_with(|| (model.provider_name.clone(), model.name.clone()));
            hires.push((name.to_string(), agent, model));
        }
        let elsewhere = hires.iter().filter_map(|(_, _, model)| model.elsewhere.as_ref());
        tell_elsewhere(&elsewhere.collect(), own)?;
        let mut crew = Self {
            setups: BTreeMap::new(),
            all,
            spec: spec.clone(),
            connected,
            redactor: Redactor::with_environment(given, app.host.secrets()),
            model: first.unwrap_or_default(),
            own,
            priced,
        };
        for (name, agent, model) in hires {
            let flags = Flags {
                dry_run: flags.dry_run,
                retry_unsafe: flags.retry_unsafe,
                ..Flags::default()
            };
            let tools = crew.tools(&name, None).map_err(|why| Failure::new(Exit::Absent, why))?;
            let prepared = Prepared {
                agent_name: name.clone(),
                agent: Agent::default(),
                mode,
                own,
                summariser: context::summariser(&model, app),
                model,
                keys: keys.clone(),
                environment: app.host.secrets(),
                flags,
                phases: None,
                place: place.clone(),
                mcp: mcp::Wanted::default(),
                tools: OnceCell::new(),
            };
            let mut setup = prepared.setup_with(tools, None, app);
            setup.redactor = crew.redactor.clone();
            let most = agent.inference.max_tokens.or(spec.runtime.max_tokens);
            setup.max_output = most.map_or(setup.max_output, |most| most.get().into());
            if let Some(compaction) =
                spec.context_policy.as_ref().and_then(|it| it.compaction.as_ref())
            {
                setup.context.policy.auto = compaction.enabled;
                if let Some(over) = compaction.when_tokens_over {
                    let known = setup.context.length.unwrap_or(u64::MAX);
                    setup.context.length = Some(known.min(over.get()));
                    setup.context.policy.buffer = 0;
                }
            }
            crew.setups.insert(name, Arc::new(setup));
        }
        Ok(crew)
    }

    /// The tools of an agent, or these in their place.
    fn tools(&self, agent: &str, instead: Option<&[String]>) -> Result<Vec<Arc<dyn Tool>>, String> {
        let own = self.spec.agents.get(agent).map(|agent| agent.tools.as_slice());
        let named = tools::named(&self.spec, instead.or(own).unwrap_or_default());
        let agent_with = Agent { tools: Some(named), ..Agent::default() };
        let selection = select(&agent_with, self.all.clone(), &BTreeMap::new());
        let selection = selection.map_err(|error| {
            let known: Vec<_> = self.all.iter().map(|tool| tool.spec().name.as_str()).collect();
            format!("agents.{agent}.tools: {error} (known are {})", known.join(", "))
        })?;
        // An agent of a flow starts no subagents: the flow's pattern says who works.
        let resumable = |tool: &Arc<dyn Tool>| tool.effect() == stepwell::Effect::Resumable;
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
    runtime: &spec::Runtime,
    agent: &spec::Agent,
    typed: Option<&str>,
    app: &App,
) -> Result<Model> {
    let provider = agent.provider.as_ref().or(runtime.provider.as_ref());
    let id = agent.model_id.as_ref().or(runtime.model_id.as_ref());
    let described = match (provider, id) {
        (Some(provider), Some(id)) => Some(format!("{provider}/{id}")),
        // A name that holds its provider.
        (None, Some(id)) => Some(id.clone()),
        _ => None,
    };
    let usual = Some(app.config.settings.model_name.clone()).filter(|name| !name.is_empty());
    let named = typed.map(str::to_owned).or(described.clone()).or(usual);
    let named = named.ok_or_else(|| {
        Failure::new(Exit::Absent, "no model was named")
            .hint("add --model provider/name, or runtime.provider and runtime.model_id to the spec")
    })?;
    let sampling = Sampling {
        temperature: agent.inference.temperature.or(runtime.temperature),
        top_p: agent.inference.top_p.or(runtime.top_p),
    };
    let is_described = described.as_ref() == Some(&named);
    let host = runtime.host.clone().filter(|_| is_described && agent.provider.is_none());
    let tuning = Tuning { host, sampling, patience: patience(&runtime.failure_policy) };
    Model::tuned(&named, &tuning, app)
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
fn secrets(spec: &Spec, app: &App) -> Result<Vec<String>> {
    let needed = spec.env.secrets.iter().filter(|secret| secret.source == SecretSource::Env);
    let value = |secret: &spec::Secret| {
        app.host.variable(&secret.key).ok_or_else(|| {
            let message = format!("the flow needs {} in the environment", secret.key);
            Failure::new(Exit::Absent, message).hint(format_args!("export {}=…", secret.key))
        })
    };
    needed.map(value).collect()
}

/// Knows the secrets that are known without asking or starting anything.
pub(super) fn redactor(spec: &Spec, app: &App) -> Result<Redactor> {
    let given = model::keys(app)?.into_values().chain(secrets(spec, app)?);
    Ok(Redactor::with_environment(given, app.host.secrets()))
}

/// A spec that came with someone else's session starts no programs and sends nothing to
/// addresses of its own unasked.
fn refuse_servers(spec: &Spec, own: bool) -> Result<()> {
    let does = |server: &spec::McpServer| match (&server.command, &server.url) {
        (Some(program), _) => Some(format!("start {program}")),
        (None, Some(url)) => Some(format!("connect to {url}")),
        (None, None) => None,
    };
    match spec.tools.mcp.iter().find_map(does).filter(|_| !own) {
        Some(does) => Err(not_yours(&does)),
        None => Ok(()),
    }
}

/// Says which models are asked at addresses that the spec names.
fn tell_elsewhere(places: &BTreeSet<&Elsewhere>, own: bool) -> Result<()> {
    for Elsewhere { provider, address, lacks_key } in places {
        if !own {
            return Err(not_yours(&format!("send its conversations to {address}")));
        }
        if *lacks_key {
            note(format_args!(
                "runtime.host: {address} is asked without your key for {provider}, which is not \
                 for a place that a spec names; to give it one, describe it in your own \
                 configuration: [providers.NAME] with base_url = \"{address}\" and key_env"
            ));
        }
    }
    Ok(())
}

fn not_yours(does: &str) -> Failure {
    let message = format!("this flow was not begun by you, and would {does}");
    Failure::new(Exit::Failed, message)
        .hint("if that is what you want, say when you are asked: --mode confirm-sensitive")
}

fn about(failure: Failure, agent: &str) -> Failure {
    match failure {
        Failure::Said { message, hint, exit } => {
            Failure::Said { message: format!("agent {agent}: {message}"), hint, exit }
        }
        closed => closed,
    }
}
