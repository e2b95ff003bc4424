//! What programs get to read: the JSON forms of sessions, kept apart from what is stored
//! so that neither freezes the other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::value::RawValue;
use stepwell::{
    Driver, Money, Origin, Phase, Seq, Spent, Standing, Status, StopReason, Time, Usage,
};

/// A session in a list.
#[derive(Debug, Serialize)]
pub(crate) struct Session<'a> {
    id: &'a str,
    /// As lists show it: a damaged session is `damaged`, however it stood.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<StopReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    task: &'a str,
    agent: &'a str,
    model: &'a str,
    provider: &'a str,
    workspace: &'a str,
    driver: Driver,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_at: Option<Seq>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    tags: &'a BTreeSet<String>,
    metadata: &'a BTreeMap<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<&'a str>,
    pinned: bool,
    seq: Seq,
    steps: u64,
    messages: u64,
    #[serde(flatten)]
    spending: Spending,
    errors: u64,
    resumes: u64,
    open_gates: u64,
    /// Where a rewind began that moves files, or was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    rewinding: Option<Seq>,
    created_at: Time,
    updated_at: Time,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    trashed_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<Damage<'a>>,
}

/// What was spent.
#[derive(Debug, Serialize)]
pub(crate) struct Spending {
    /// Dollars, exact; a lower bound if `unpriced_calls` is not zero.
    cost: Box<RawValue>,
    unpriced_calls: u64,
    calls: u64,
    tokens: Usage,
}

impl From<&Spent> for Spending {
    fn from(spent: &Spent) -> Self {
        Self {
            cost: money(spent.cost),
            unpriced_calls: spent.unpriced,
            calls: spent.calls,
            tokens: spent.usage,
        }
    }
}

/// Money as a JSON number with all of its digits.
pub(crate) fn money(money: Money) -> Box<RawValue> {
    RawValue::from_string(money.to_string()).expect("an amount prints as a number")
}

/// Where a session is damaged.
#[derive(Debug, Serialize)]
pub(crate) struct Damage<'a> {
    seq: Seq,
    what: &'a str,
}

impl<'a> From<&'a stepwell::Damage> for Damage<'a> {
    fn from(damage: &'a stepwell::Damage) -> Self {
        Self { seq: damage.seq, what: &damage.what }
    }
}

impl<'a> From<&'a Standing> for Session<'a> {
    fn from(standing: &'a Standing) -> Self {
        let head = &standing.head;
        Self {
            id: head.id.as_str(),
            status: crate::selection::Shown::of(standing).as_str(),
            stop_reason: head.stop_reason,
            error: head.error.as_deref(),
            phase: head.phase,
            task: &head.task,
            agent: &head.agent,
            model: &head.model,
            provider: &head.provider,
            workspace: &head.workspace,
            driver: head.driver,
            parent: head.origin.parent().map(stepwell::SessionId::as_str),
            forked_at: match head.origin {
                Origin::Fork { at, .. } => Some(at),
                _ => None,
            },
            label: head.label.as_deref(),
            tags: &head.tags,
            metadata: &head.metadata,
            goal: head.goal.as_deref(),
            pinned: head.pinned,
            seq: head.seq,
            steps: head.steps,
            messages: head.messages,
            spending: (&head.spent).into(),
            errors: head.errors,
            resumes: head.resumes,
            open_gates: head.open_gates,
            rewinding: head.rewinding,
            created_at: head.created_at,
            updated_at: head.updated_at,
            bytes: standing.bytes,
            trashed_at: standing.trashed_at,
            held_by: standing.held.as_ref().map(|held| held.holder.to_string()),
            damage: standing.damage.as_ref().map(Damage::from),
        }
    }
}

/// A model's name, as it can be typed.
pub(crate) fn model(provider: &str, name: &str) -> String {
    match (provider, name) {
        ("", name) | (_, name @ "") => name.to_owned(),
        ("script", file) => format!("script:{file}"),
        (provider, name) => format!("{provider}/{name}"),
    }
}

/// How a session stands, for those who count.
pub(crate) fn is_over(status: Status) -> bool {
    !matches!(status, Status::Running | Status::Paused)
}

/// The word for a value that JSON knows by one.
pub(crate) fn word(value: impl Serialize) -> String {
    let json = serde_json::to_value(value).ok();
    json.as_ref().and_then(|json| json.as_str()).unwrap_or_default().to_owned()
}
