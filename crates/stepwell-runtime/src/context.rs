//! A run's context: from settings and models to what the agent goes by, and back to what is
//! remembered.

use std::sync::Arc;

use stepwell_agent::context::tokens::{Calibration, Family};
use stepwell_agent::context::{Context, Policy, Summariser, Truncation};
use stepwell_workspace::Calibrations;

use crate::model::Model;
use crate::notice::Notice;
use crate::runtime::Runtime;

/// How a run with these models deals with a conversation that grows.
pub(crate) fn of(model: &Model, summariser: Option<&Model>, runtime: &Runtime) -> Context {
    let by = summariser.unwrap_or(model);
    let summariser = by.reachable.then(|| Summariser {
        provider: Arc::clone(&by.provider),
        model: by.name.clone(),
        cost: Arc::clone(&by.cost),
        length: by.length,
        family: Family::of(&by.provider_name, &by.name),
    });
    let unasked = unasked(model.length, &model.provider_name, &model.name, runtime);
    Context { summariser, ..unasked }
}

/// The context of a model that nobody asks.
pub(crate) fn unasked(
    length: Option<u64>,
    provider: &str,
    model: &str,
    runtime: &Runtime,
) -> Context {
    let settings = &runtime.workspace().config.settings;
    let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let known = learned(runtime).and_then(|known| known.get(&format!("{provider}/{model}")));
    Context {
        length,
        family: Family::of(provider, model),
        calibration: Calibration::new(known.unwrap_or(1.0), settings.token_ema_alpha.get()),
        policy: Policy {
            auto: settings.compaction_auto,
            buffer: settings.compaction_buffer.get().into(),
            keep: settings.compaction_keep.get().into(),
            truncates: settings.truncation,
            truncation: Truncation {
                above: number(settings.truncation_above.get()),
                keep: number(settings.truncation_keep.get()),
            },
        },
        summariser: None,
    }
}

fn learned(runtime: &Runtime) -> Option<Calibrations> {
    Calibrations::of(&runtime.workspace().host)
}

/// The model that writes summaries, if it is not the one that runs. One that cannot be had
/// is no reason not to run: most runs never need it.
pub(crate) fn summariser(model: &Model, runtime: &Runtime) -> Option<Model> {
    let named = runtime.workspace().config.settings.compaction_model.as_str();
    if named.is_empty() || named == model.named || runtime.workspace().config.settings.truncation {
        return None;
    }
    Model::find(named, runtime)
        .inspect_err(|error| {
            let instead = &model.named;
            let what =
                format!("compaction.model {named} is not used, and {instead} writes summaries");
            runtime.tell(Notice::warning(what, error));
        })
        .ok()
}

/// Remembers what was learned of how a model counts. A script's tokens are made up.
pub(crate) fn remember(model: &Model, learned_now: &Calibration, runtime: &Runtime) {
    let Some(known) = learned(runtime) else { return };
    if model.provider_name == "script" {
        return;
    }
    let name = format!("{}/{}", model.provider_name, model.name);
    // Nothing learned is nothing to write down.
    let before = known.get(&name).unwrap_or(1.0);
    if learned_now.factor() != before
        && let Err(error) = known.put(&name, learned_now.factor())
    {
        tracing::warn!(%error, "calibration_not_saved");
    }
}
