//! From a model's name to what answers, and what it costs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use stepwell::Remedy;
use stepwell::log::Head;
use stepwell::log::Redactor;
use stepwell_agent::price::Prices;
use stepwell_agent::price::USUAL_CONTEXT;
use stepwell_agent::provider::name::{KeySource, ModelName, ProviderSpec, Providers};
use stepwell_agent::provider::remote::{Key, Protocol, Remote, Sampling};
use stepwell_agent::provider::retry::{Patience, Retrying};
use stepwell_agent::provider::script::{Script, Scripted};
use stepwell_agent::provider::{CallError, Fault, Provider};
use stepwell_agent::run::{Cost, Notice as Retry, RunEvent};
use stepwell_postgres::Address;
use stepwell_workspace::{RecentModelsFile, Workspace, prices};

use crate::error::{Error, ErrorKind, Result};
use crate::notice::Notice;
use crate::runtime::Runtime;

/// A model that can be asked.
pub(crate) struct Model {
    /// As the user named it.
    pub(crate) named: String,
    /// Its provider's name, as it is recorded.
    pub(crate) provider_name: String,
    /// Its own name.
    pub(crate) name: String,
    /// What answers.
    pub(crate) provider: Arc<dyn Provider>,
    /// What tokens cost; nothing, if nobody knows.
    pub(crate) cost: Cost,
    /// Keys that must not be written anywhere.
    pub(crate) secrets: Vec<String>,
    /// How many tokens fit it; absent, any number does.
    pub(crate) length: Option<u64>,
    /// Can it be asked?
    pub(crate) reachable: bool,
    /// Where it is asked, if that is not where the user has its provider.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// An address that a spec names, and not the user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Elsewhere {
    pub(crate) provider: String,
    pub(crate) address: String,
    /// Does the provider have a key, which this address is not sent?
    pub(crate) lacks_key: bool,
}

/// How many tokens fit a model that a user named, and whose it is. Asks nobody for a key.
pub(crate) fn length(named: &str, runtime: &Runtime) -> Result<(Option<u64>, String, String)> {
    let parsed = providers(runtime)?.parse(named);
    match parsed.map_err(|error| Error::config(error.to_string()))? {
        ModelName::Script(path) => {
            let (place, script) = script(&path, runtime)?;
            Ok((script.context, "script".to_owned(), place.display().to_string()))
        }
        ModelName::Remote { provider, model } => {
            let context = prices(runtime)?.context(&provider, &model).unwrap_or(USUAL_CONTEXT);
            Ok((Some(context), provider, model))
        }
    }
}

/// Does what a user typed name a script, and so a file of this machine?
#[must_use]
pub fn is_script(typed: &str) -> bool {
    ModelName::is_script(typed)
}

impl Runtime {
    /// Can a model of this name be asked? Asks nobody for a key, and no provider for anything.
    ///
    /// # Errors
    /// If there is no such provider or script; the error names the nearest.
    pub fn check_model(&self, named: &str) -> Result<()> {
        length(named, self).map(drop)
    }
}

/// A script, and where it is.
fn script(path: &Path, runtime: &Runtime) -> Result<(PathBuf, Script)> {
    // A session that is resumed from elsewhere finds its script where it was.
    let place = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let place = if place.exists() { place } else { runtime.workspace().place.root.join(path) };
    let wrong = |why: String| Error::config(format!("the script {}: {why}", place.display()));
    let text = std::fs::read_to_string(&place).map_err(|error| wrong(error.to_string()))?;
    let script = Script::parse(&text).map_err(wrong)?;
    Ok((place, script))
}

/// How a model is asked, where it is not as usual.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuning {
    /// Where its provider answers.
    pub(crate) host: Option<String>,
    pub(crate) sampling: Sampling,
    /// How long it is asked again.
    pub(crate) patience: Option<Patience>,
}

/// How long a script is asked again: as often as a provider, but nothing comes of waiting long for
/// what a file says.
const FOR_SCRIPTS: Patience = Patience {
    attempts: 6,
    first: Duration::from_millis(20),
    longest: Duration::from_millis(200),
    total: Duration::from_secs(60),
    seed: 0,
};

/// A model that is asked again on passing faults, and says so.
fn patient(
    model: impl Provider + 'static,
    patience: Patience,
    runtime: &Runtime,
) -> Arc<dyn Provider> {
    let seed = u64::try_from(runtime.workspace().now().as_micros()).unwrap_or(0)
        ^ u64::from(std::process::id());
    let told = runtime.clone();
    let retrying = Retrying::new(model, Patience { seed, ..patience }).telling(move |waiting| {
        told.tell_event(RunEvent::Notice(Retry::Retrying {
            error: waiting.error.to_string(),
            wait: waiting.wait,
            attempt: waiting.attempt,
            attempts: waiting.attempts,
        }));
    });
    Arc::new(retrying)
}

impl Model {
    /// The model of that name.
    pub(crate) fn find(named: &str, runtime: &Runtime) -> Result<Self> {
        Self::tuned(named, &Tuning::default(), runtime)
    }

    /// The model of that name, asked in a way of its own.
    pub(crate) fn tuned(named: &str, tuning: &Tuning, runtime: &Runtime) -> Result<Self> {
        let providers = providers(runtime)?;
        let parsed = providers.parse(named).map_err(|error| Error::config(error.to_string()))?;
        match parsed {
            ModelName::Script(path) => Self::scripted(named, &path, tuning, runtime),
            ModelName::Remote { provider, model } => {
                let spec = providers.get(&provider).cloned();
                let mut spec = spec.ok_or_else(|| Error::config("no such provider"))?;
                let elsewhere = tuning.host.as_deref().and_then(|host| leave(&mut spec, host));
                let found = Self::remote(&spec, model, tuning, runtime)?;
                Ok(Self { named: named.to_owned(), elsewhere, ..found })
            }
        }
    }

    /// A provider's model, by its full name.
    fn remote(
        spec: &ProviderSpec,
        model: String,
        tuning: &Tuning,
        runtime: &Runtime,
    ) -> Result<Self> {
        let key = key(&spec.key, &spec.name, runtime)?;
        let timeout = runtime.workspace().config.settings.request_timeout;
        let endpoint = spec.endpoint(key.as_deref().map(Key::new), timeout);
        let remote = Remote::new(endpoint).map_err(|error| refused(&error, spec))?;
        let remote = remote.with_sampling(tuning.sampling);
        let provider = patient(remote, tuning.patience.unwrap_or_default(), runtime);
        let prices = prices(runtime)?;
        let length = prices.context(&spec.name, &model).unwrap_or(USUAL_CONTEXT);
        let price = prices.find(&spec.name, &model);
        Ok(Self {
            named: format!("{}/{model}", spec.name),
            provider_name: spec.name.clone(),
            name: model,
            provider,
            cost: Arc::new(move |usage| price.as_ref().map(|price| price.cost(usage))),
            secrets: key.into_iter().collect(),
            length: Some(length),
            reachable: true,
            elsewhere: None,
        })
    }

    fn scripted(named: &str, path: &Path, tuning: &Tuning, runtime: &Runtime) -> Result<Self> {
        let (place, script) = script(path, runtime)?;
        let length = script.context;
        let model = Arc::new(Scripted::new(script));
        let price = Arc::clone(&model);
        let model = patient(model, tuning.patience.unwrap_or(FOR_SCRIPTS), runtime);
        Ok(Self {
            named: named.to_owned(),
            provider_name: "script".to_owned(),
            name: place.display().to_string(),
            provider: model,
            cost: Arc::new(move |usage| Some(price.cost(usage))),
            secrets: Vec::new(),
            length,
            reachable: true,
            elsewhere: None,
        })
    }

    /// A model that cannot be asked, of which the name is known.
    pub(crate) fn unreachable(named: &str, head: &Head, runtime: &Runtime) -> Self {
        let unknown = || (None, head.model_provider().to_owned(), head.model.clone());
        let (length, provider_name, name) = length(named, runtime).unwrap_or_else(|_| unknown());
        Self {
            named: named.to_owned(),
            provider_name,
            name,
            // An empty script: whoever asks it is refused.
            provider: Arc::new(Scripted::new(Script::default())),
            cost: Arc::new(|_| None),
            secrets: Vec::new(),
            length,
            reachable: false,
            elsewhere: None,
        }
    }
}

/// Has a provider answer at a host that a spec names. Its key is for where the user has it: a
/// spec comes from anywhere, and any other address could keep what it is sent.
fn leave(spec: &mut ProviderSpec, host: &str) -> Option<Elsewhere> {
    let address = at_host(host, spec.protocol);
    let usual = spec.base_url.as_deref().unwrap_or_else(|| spec.protocol.vendor_url());
    if usual.trim_end_matches('/') == address {
        return None;
    }
    spec.base_url = Some(address.clone());
    let key = std::mem::replace(&mut spec.key, KeySource::Nowhere);
    let (provider, lacks_key) = (spec.name.clone(), key != KeySource::Nowhere);
    Some(Elsewhere { provider, address, lacks_key })
}

/// An address at a host: below the path that the vendor has, unless one is named.
fn at_host(host: &str, protocol: Protocol) -> String {
    let host = host.trim_end_matches('/');
    let path = |address: &'static str| address.splitn(4, '/').nth(3).unwrap_or_default();
    match host.splitn(4, '/').count() < 4 {
        true => format!("{host}/{}", path(protocol.vendor_url()).trim_end_matches('/')),
        false => host.to_owned(),
    }
}

/// A model's name as it would be recorded, if it can be one: whether there is such a model,
/// its provider knows.
///
/// # Errors
/// If no model can be called so.
pub fn check_model_name(named: &str, runtime: &Runtime) -> Result<String> {
    let parsed = providers(runtime)?.parse(named);
    match parsed.map_err(|error| Error::config(error.to_string()))? {
        ModelName::Script(path) => {
            let path = std::path::absolute(&path).unwrap_or(path);
            Ok(format!("script:{}", path.display()))
        }
        ModelName::Remote { provider, model } => Ok(format!("{provider}/{model}")),
    }
}

/// A model that another program remembers, as it can be named here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownModel {
    /// Under this name.
    Named(String),
    /// Under any of these names: which is meant cannot be told.
    OneOf(Vec<String>),
    /// Only these providers have it, and none of them is set up here.
    NotSetUp(Vec<String>),
    /// Nobody is known to have it.
    Unknown,
}

/// What another program's name for a model is here. A name without a provider is looked up in the
/// list of prices.
///
/// # Errors
/// If the configuration's providers or prices are not sound.
pub fn known_model(named: &str, runtime: &Runtime) -> Result<KnownModel> {
    let providers = providers(runtime)?;
    if let Ok(ModelName::Remote { .. } | ModelName::Script(_)) = providers.parse(named) {
        return check_model_name(named, runtime).map(KnownModel::Named);
    }
    if let Some((provider, _)) = named.split_once('/') {
        return Ok(KnownModel::NotSetUp(vec![provider.to_owned()]));
    }
    let offering = prices::current(runtime.workspace())?.offering(named);
    let (here, elsewhere): (Vec<String>, Vec<String>) =
        offering.into_iter().partition(|provider| providers.get(provider).is_some());
    let mut names: Vec<String> = here.iter().map(|it| format!("{it}/{named}")).collect();
    Ok(match (names.len(), elsewhere.is_empty()) {
        (0, true) => KnownModel::Unknown,
        (0, false) => KnownModel::NotSetUp(elsewhere),
        (1, _) => KnownModel::Named(names.remove(0)),
        _ => KnownModel::OneOf(names),
    })
}

/// The providers that ship, and the user's own.
fn providers(runtime: &Runtime) -> Result<Providers> {
    let mut all = Providers::default();
    for (name, config) in &runtime.workspace().config.providers {
        let known = all.get(name).cloned();
        let protocol = match config.protocol.as_deref() {
            None => known.as_ref().map_or(Protocol::OpenAi, |known| known.protocol),
            Some("openai") => Protocol::OpenAi,
            Some("anthropic") => Protocol::Anthropic,
            Some("gemini") => Protocol::Gemini,
            Some(other) => {
                let why = format!("providers.{name}: {other:?} is no protocol");
                let known = ["openai", "anthropic", "gemini"].map(str::to_owned);
                return Err(Error::config(why).helped_by(Remedy::Choose(known.into())));
            }
        };
        let key = match (&config.key_command, &config.key_env) {
            (Some(command), _) => KeySource::Command(command.clone()),
            (None, Some(variable)) => KeySource::Variable(variable.clone()),
            (None, None) => known.as_ref().map_or(KeySource::Nowhere, |known| known.key.clone()),
        };
        let base_url = config.base_url.clone().or_else(|| known?.base_url);
        all = all.with(ProviderSpec { name: name.clone(), protocol, base_url, key });
    }
    Ok(all)
}

impl Runtime {
    /// Keeps secrets out of what a person types into a session: the providers' keys, and what the
    /// environment holds.
    ///
    /// # Errors
    /// If the configuration of a provider is wrong.
    pub fn typed_redactor(&self) -> Result<Redactor> {
        let keys = provider_keys(self)?;
        Ok(Redactor::with_environment(keys.into_values(), self.workspace().host.secrets()))
    }
}

/// The providers' keys that are in the environment, and the password of the team's store, by
/// their variables' names.
///
/// # Errors
/// If the configuration of a provider is wrong.
pub(crate) fn provider_keys(runtime: &Runtime) -> Result<BTreeMap<String, String>> {
    let providers = providers(runtime)?;
    let specs = providers.names().filter_map(|name| providers.get(name));
    let variables = specs.filter_map(|spec| match &spec.key {
        KeySource::Variable(name) => Some(name.clone()),
        _ => None,
    });
    let keys = variables
        .filter_map(|name| Some((name.clone(), runtime.workspace().host.variable(&name)?)));
    let team = runtime.workspace().place.team.as_ref().and_then(Address::password);
    Ok(keys.chain(team.map(|password| ("PGPASSWORD".to_owned(), password))).collect())
}

/// A key, from where the user keeps it.
pub(crate) fn key(source: &KeySource, of: &str, runtime: &Runtime) -> Result<Option<String>> {
    match source {
        KeySource::Nowhere => Ok(None),
        KeySource::Variable(name) => Ok(runtime.workspace().host.variable(name)),
        KeySource::Command(line) => {
            let output = Command::new("sh").args(["-c", line]).stderr(Stdio::inherit()).output();
            match output {
                Ok(output) if output.status.success() => {
                    // Some tools write more below the key.
                    let text = String::from_utf8_lossy(&output.stdout);
                    Ok(Some(text.trim().lines().next().unwrap_or_default().trim().to_owned()))
                }
                _ => {
                    let why = format!("the command for the key of {of} failed");
                    Err(Error::refused(ErrorKind::Credentials, why))
                }
            }
        }
    }
}

fn refused(error: &CallError, spec: &ProviderSpec) -> Error {
    if error.fault != Fault::Auth {
        return Error::config(error.to_string());
    }
    let refused = Error::refused(ErrorKind::Credentials, error.to_string());
    match &spec.key {
        KeySource::Variable(name) => refused.helped_by(Remedy::SetVariable(name.clone())),
        _ => refused,
    }
}

/// The user's prices: the newest list, and their own over it.
fn prices(runtime: &Runtime) -> Result<Prices> {
    let (list, why) = prices::newest_list(runtime.workspace());
    if let Some(why) = why {
        runtime.tell(Notice::warning(
            "the newest prices are not read, and those that ship are used",
            &why,
        ));
    }
    Ok(prices::with_list(runtime.workspace(), list)?)
}

/// Models that were used and that are liked; providers, and of the one that was typed, all of its
/// models that are known.
#[must_use]
pub fn model_names(workspace: &Workspace, typed: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(models) = RecentModelsFile::of(&workspace.host).and_then(|it| it.read().ok()) {
        names.extend(models.favourites().into_iter().map(str::to_owned));
        names.extend(models.recent.clone());
    }
    match typed.split_once('/') {
        None => {
            let known = Providers::default();
            let own = workspace.config.providers.keys().map(String::as_str);
            names.extend(known.names().chain(own).map(|it| format!("{it}/")));
        }
        Some((provider, _)) => {
            let models =
                prices::current(workspace).map(|it| it.models(provider)).unwrap_or_default();
            // `*` is the price of all other models, and no model.
            let named = models.keys().filter(|name| *name != "*");
            names.extend(named.map(|name| format!("{provider}/{name}")));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}
