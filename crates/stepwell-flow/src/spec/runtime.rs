//! The models of a flow, and how much it may spend.

use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use stepwell::model::Money;

/// Models, limits and retries. Agents may override the model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Runtime {
    /// The provider: `openai`, `anthropic`, `gemini`, `ollama`, or one from the configuration.
    /// Without it, the configured model is used. `--model` overrides both.
    pub provider: Option<String>,
    /// The provider's name for the model.
    pub model_id: Option<String>,
    /// The provider's address, such as `http://localhost:11434`. An API key is sent there only if
    /// the configuration has the same address for the provider.
    pub host: Option<String>,
    /// Ignored: only for AWS Bedrock.
    pub region: Option<String>,
    /// Ignored: only for one provider of strands-cli.
    pub space_id: Option<String>,
    /// The sampling temperature, from 0 to 2.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold, from 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// The maximum number of tokens of one answer.
    pub max_tokens: Option<NonZeroU32>,
    /// How many agents may run at once. The default is 5.
    pub max_parallel: Option<NonZeroU32>,
    /// How much the whole flow may spend, including all its resumes.
    pub budgets: Budgets,
    /// How temporary failures of a provider are retried.
    pub failure_policy: FailurePolicy,
}

/// How many agents may run at once by default.
pub const MAX_PARALLEL: NonZeroU32 = NonZeroU32::new(5).expect("five is not zero");

impl Runtime {
    /// How many agents may run at once.
    #[must_use]
    pub fn max_parallel(&self) -> NonZeroU32 {
        self.max_parallel.unwrap_or(MAX_PARALLEL)
    }
}

/// How much a flow may spend. A limit stops it with status `partial`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// The maximum number of model calls.
    pub max_steps: Option<NonZeroU64>,
    /// The maximum number of tokens, sent and received.
    pub max_tokens: Option<NonZeroU64>,
    /// The maximum running time in seconds. Waiting for a person does not count.
    pub max_duration_s: Option<NonZeroU64>,
    /// The maximum cost in US dollars.
    #[serde(deserialize_with = "dollars")]
    #[schemars(with = "Option<f64>")]
    pub max_cost_usd: Option<Money>,
    /// The share of a limit, from 0 to 1, at which a warning is given. The default is 0.8.
    #[schemars(range(min = 0, max = 1))]
    pub warn_threshold: Option<f64>,
}

impl Budgets {
    /// The share of a limit at which a warning is given.
    #[must_use]
    pub fn warn_threshold(&self) -> f64 {
        self.warn_threshold.unwrap_or(0.8)
    }
}

pub(super) fn dollars<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Money>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    let amount = Money::from_f64(number).filter(|amount| *amount > Money::ZERO);
    let what = "expected an amount of dollars above 0, such as 0.50";
    amount.map(Some).ok_or_else(|| serde::de::Error::custom(what))
}

/// How temporary failures of a provider are retried: busy, slow, or unreachable. Other errors
/// are never retried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FailurePolicy {
    /// The number of retries. The default comes from the configuration.
    pub retries: Option<u32>,
    /// How the time between retries grows. The default is `exponential`.
    pub backoff: Option<Backoff>,
    /// The shortest wait in seconds. The default is 1.
    pub wait_min: Option<u64>,
    /// The longest wait in seconds. The default is 60.
    pub wait_max: Option<u64>,
}

/// How the time between retries grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// It stays the same.
    Constant,
    /// It doubles.
    #[default]
    Exponential,
    /// It doubles with random variation, so that many clients do not retry at once.
    Jittered,
}
