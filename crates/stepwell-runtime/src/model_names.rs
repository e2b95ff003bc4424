//! Names of models to choose from.

use stepwell_agent::provider::name::Providers;
use stepwell_workspace::Workspace;

/// Models that were used and that are liked; providers, and of the one that was typed, all of its
/// models that are known.
#[must_use]
pub fn model_names(workspace: &Workspace, typed: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(models) = workspace.recent_models().and_then(|it| it.read().ok()) {
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
            let models = workspace.prices().map(|it| it.models(provider)).unwrap_or_default();
            // A star stands for all of them.
            let named = models.keys().filter(|name| *name != "*");
            names.extend(named.map(|name| format!("{provider}/{name}")));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}
