//! What a flow runs on, and how much it may spend.

use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use stepwell::Money;

/// What a flow's agents run on, unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Runtime {
    /// Whose models: `openai`, `anthropic`, `gemini`, `ollama`, or one of the configuration.
    /// Absent, the configuration's model is used. `--model` goes before both.
    pub provider: Option<String>,
    /// The model's name there.
    pub model_id: Option<String>,
    /// Where the provider answers, such as `http://localhost:11434`. A key is sent there only if
    /// the configuration has the provider there too.
    pub host: Option<String>,
    /// Has no meaning here: for AWS Bedrock alone.
    pub region: Option<String>,
    /// Has no meaning here: for one provider alone.
    pub space_id: Option<String>,
    /// How freely the model chooses its words, from 0 to 2.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Of how much of the likeliest it chooses, from 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// The most tokens of one answer.
    pub max_tokens: Option<NonZeroU32>,
    /// How many agents may work at once; absent, 5.
    pub max_parallel: Option<NonZeroU32>,
    /// How much the whole flow may spend, over all its resumes.
    pub budgets: Budgets,
    /// What happens when a provider fails for a moment.
    pub failure_policy: FailurePolicy,
}

/// How many agents work at once, if nothing is said.
pub const MAX_PARALLEL: NonZeroU32 = NonZeroU32::new(5).expect("five is not zero");

impl Runtime {
    /// How many agents may work at once.
    #[must_use]
    pub fn max_parallel(&self) -> NonZeroU32 {
        self.max_parallel.unwrap_or(MAX_PARALLEL)
    }
}

/// How much a flow may spend. A limit stops it with status `partial`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// The most calls of models.
    pub max_steps: Option<NonZeroU64>,
    /// The most tokens, sent and received.
    pub max_tokens: Option<NonZeroU64>,
    /// The longest that it may run, in seconds. Waiting for a human does not count.
    pub max_duration_s: Option<NonZeroU64>,
    /// The most that it may cost, in US dollars.
    #[serde(deserialize_with = "dollars")]
    #[schemars(with = "Option<f64>")]
    pub max_cost_usd: Option<Money>,
    /// The part of a limit, from 0 to 1, at which it is warned of; absent, 0.8.
    #[schemars(range(min = 0, max = 1))]
    pub warn_threshold: Option<f64>,
}

impl Budgets {
    /// The part of a limit at which it is warned of.
    #[must_use]
    pub fn warn_threshold(&self) -> f64 {
        self.warn_threshold.unwrap_or(0.8)
    }
}

fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Money>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    let amount = Money::from_f64(number).filter(|amount| *amount > Money::ZERO);
    let what = "expected an amount of dollars above 0, such as 0.50";
    amount.map(Some).ok_or_else(|| serde::de::Error::custom(what))
}

/// What happens when a provider fails for a moment: busy, slow, or not reached. Other errors
/// are never tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FailurePolicy {
    /// How often it is tried again; absent, as the configuration has it.
    pub retries: Option<u32>,
    /// How the time between tries grows; absent, `exponential`.
    pub backoff: Option<Backoff>,
    /// The shortest wait, in seconds; absent, 1.
    pub wait_min: Option<u64>,
    /// The longest wait, in seconds; absent, 60.
    pub wait_max: Option<u64>,
}

/// How the time between tries grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Not at all.
    Constant,
    /// It doubles.
    #[default]
    Exponential,
    /// It doubles, and varies, so that many do not come back at once.
    Jittered,
}
