//! A run's context: from settings and models to what the agent goes by, and back to what is
//! remembered.

use std::sync::Arc;

use stepwell::Compacted;
use stepwell_agent::context::plan::Why;
use stepwell_agent::context::tokens::{Calibration, Family};
use stepwell_agent::context::{Context, Policy, Summariser, Truncation};
use stepwell_workspace::Calibrations;

use super::model::Model;
use crate::app::App;
use crate::output::{Style, note};
use crate::text::grouped;

/// How a run with these models deals with a conversation that grows.
pub(super) fn of(model: &Model, summariser: Option<&Model>, app: &App) -> Context {
    let by = summariser.unwrap_or(model);
    let summariser = by.reachable.then(|| Summariser {
        provider: Arc::clone(&by.provider),
        model: by.name.clone(),
        cost: Arc::clone(&by.cost),
        length: by.length,
        family: Family::of(&by.provider_name, &by.name),
    });
    let unasked = unasked(model.length, &model.provider_name, &model.name, app);
    Context { summariser, ..unasked }
}

/// The context of a model that nobody asks.
pub(super) fn unasked(length: Option<u64>, provider: &str, model: &str, app: &App) -> Context {
    let settings = &app.config.settings;
    let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let known = learned(app).and_then(|known| known.get(&format!("{provider}/{model}")));
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

fn learned(app: &App) -> Option<Calibrations> {
    app.calibrations()
}

/// The model that writes summaries, if it is not the one that runs. One that cannot be had
/// is no reason not to run: most runs never need it.
pub(super) fn summariser(model: &Model, app: &App) -> Option<Model> {
    let named = app.config.settings.compaction_model.as_str();
    if named.is_empty() || named == model.named || app.config.settings.truncation {
        return None;
    }
    Model::find(named, app)
        .inspect_err(|failure| {
            note(format_args!(
                "warning: compaction.model {named}: {failure}; {} writes the summaries",
                model.named
            ));
        })
        .ok()
}

/// Remembers what was learned of how a model counts. A script's tokens are made up.
pub(super) fn remember(model: &Model, learned_now: &Calibration, app: &App) {
    let Some(known) = learned(app) else { return };
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

/// What a person is told when a conversation shrank.
pub(super) fn told(compacted: &Compacted, why: Why) -> (Style, String) {
    let why = match why {
        Why::Near => "it is near to what fits",
        Why::Long => "it has many messages",
        Why::Phase => "a new phase began",
        Why::Refused => "the provider said that it does not fit",
        Why::Asked => "as you wished",
    };
    let (before, after) = (grouped(compacted.tokens_before), grouped(compacted.tokens_after));
    let how = match (&compacted.fault, compacted.is_truncation()) {
        (Some(fault), _) => format!("truncated, not compacted ({fault})"),
        (None, true) => "truncated".to_owned(),
        (None, false) => "compacted".to_owned(),
    };
    let style = if compacted.fault.is_some() { Style::Yellow } else { Style::Dim };
    (style, format!("the conversation was {how}, from {before} to {after} tokens: {why}"))
}
