//! The scripted model: answers from a file, so that everything runs offline, and runs of
//! real models can be replayed.
//!
//! A script is YAML or JSON: a list of answers, or `{prices, answers}`. The answer to give
//! is the one after as many as the conversation already has, so that a run that is resumed
//! in another process goes on where it stopped.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell::{Message, Money, Part, Role, Text, ToolCall, Usage};

use super::{Answer, CallError, Delta, Ended, Fault, Provider, Request};

/// A model that answers from a script.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    /// How often each answer has failed already, in this process.
    failed: Mutex<BTreeMap<usize, usize>>,
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What tokens cost, in dollars per million. A script without prices costs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The answers, in order.
    pub answers: Vec<Line>,
}

/// What a scripted model's tokens cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Dollars per million tokens sent.
    pub input: Money,
    /// Dollars per million tokens received.
    pub output: Money,
}

impl Prices {
    /// What some tokens cost.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Money {
        self.input.per_million(usage.input).plus(self.output.per_million(usage.output))
    }
}

/// One answer of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Line {
    /// What the model thinks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thinking: String,
    /// What it says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tools that it calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptCall>,
    /// Its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it costs, whatever the prices say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Is it cut off, because it is as long as an answer may be?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// How long it takes, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// How it fails, one after the other, before it answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fail: Vec<ScriptFault>,
    /// Does the last failure come again and again?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forever: bool,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A call of a tool in a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// Its id; absent, one is made of its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its arguments: an object, or a text that is given as it stands.
    #[serde(default)]
    pub arguments: Value,
}

/// How a scripted model fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the faults that they stand for are described there")]
pub enum ScriptFault {
    Auth,
    UnknownModel,
    Refused,
    ContextFull,
    RateLimited,
    Unavailable,
    Truncated,
    TimedOut,
}

impl From<ScriptFault> for Fault {
    fn from(fault: ScriptFault) -> Self {
        match fault {
            ScriptFault::Auth => Self::Auth,
            ScriptFault::UnknownModel => Self::UnknownModel,
            ScriptFault::Refused => Self::Refused,
            ScriptFault::ContextFull => Self::ContextFull,
            ScriptFault::RateLimited => Self::RateLimited(None),
            ScriptFault::Unavailable => Self::Unavailable,
            ScriptFault::Truncated => Self::Truncated,
            ScriptFault::TimedOut => Self::TimedOut,
        }
    }
}

impl Script {
    /// Reads a script, YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, String> {
        // JSON is YAML, but its errors read better from its own parser.
        let json = text.trim_start().starts_with(['{', '[']);
        let value: Value = match json {
            true => serde_json::from_str(text).map_err(|error| error.to_string())?,
            false => serde_saphyr::from_str(text).map_err(|error| error.to_string())?,
        };
        let is_list = value.is_array();
        // Read as what it looks like, for an error that names the field.
        match is_list {
            true => serde_json::from_value(value).map(|answers| Self { prices: None, answers }),
            false => serde_json::from_value(value),
        }
        .map_err(|error| error.to_string())
    }

    /// The script that replays a conversation's answers, and what they cost.
    #[must_use]
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let answers = messages.into_iter().filter(|message| message.role == Role::Assistant);
        Self { prices: None, answers: answers.map(Line::of).collect() }
    }
}

impl Line {
    fn of(message: &Message) -> Self {
        let call = |call: &ToolCall| ScriptCall {
            id: Some(call.id.clone()),
            tool: call.name.clone(),
            // As the model wrote it, byte for byte.
            arguments: Value::from(call.arguments.clone()),
        };
        let thinking = message.parts.iter().filter_map(|part| match part {
            Part::Thinking(text) => Some(text.text.as_str()),
            _ => None,
        });
        Self {
            thinking: thinking.collect::<Vec<_>>().join("\n"),
            text: message.text(),
            calls: message.calls().map(call).collect(),
            usage: message.usage,
            cost: message.cost,
            ..Self::default()
        }
    }

    fn message(&self, place: usize) -> Message {
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            parts.push(Part::Thinking(Text { text: self.thinking.clone(), opaque: None }));
        }
        if !self.text.is_empty() {
            parts.push(Part::text(&self.text));
        }
        for (n, call) in self.calls.iter().enumerate() {
            let arguments = match &call.arguments {
                Value::String(text) => text.clone(),
                Value::Null => "{}".to_owned(),
                value => value.to_string(),
            };
            let id = call.id.clone().unwrap_or_else(|| format!("call_{}_{}", place + 1, n + 1));
            let name = call.tool.clone();
            parts.push(Part::ToolCall(ToolCall { id, name, arguments, opaque: None }));
        }
        Message::new(Role::Assistant, parts)
    }
}

impl Scripted {
    /// A model that answers from a script.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { script, failed: Mutex::default() }
    }

    /// What its tokens cost. A script without prices costs nothing.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Money {
        self.script.prices.map_or(Money::ZERO, |prices| prices.cost(usage))
    }

    fn error(what: String, fault: Fault) -> CallError {
        CallError { provider: "script".to_owned(), what, fault }
    }

    /// The next failure of an answer, if it has one left.
    fn failure(&self, place: usize, line: &Line) -> Option<CallError> {
        let mut failed = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let times = failed.entry(place).or_default();
        let last = line.fail.len().checked_sub(1)?;
        let turn = if line.forever { (*times).min(last) } else { *times };
        let fault = *line.fail.get(turn)?;
        *times += 1;
        Some(Self::error(format!("answer {} fails: {fault:?}", place + 1), fault.into()))
    }
}

impl Provider for Scripted {
    fn name(&self) -> &str {
        "script"
    }

    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        told: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        let is_answer = |message: &&Message| message.role == Role::Assistant;
        let place = request.messages.iter().filter(is_answer).count();
        Box::pin(async move {
            let answers = self.script.answers.len();
            let line = self.script.answers.get(place).ok_or_else(|| {
                let what = format!("the script has {answers} answers, and one more was asked for");
                Self::error(what, Fault::Refused)
            })?;
            if line.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(line.delay_ms)).await;
            }
            if let Some(error) = self.failure(place, line) {
                return Err(error);
            }
            if !line.thinking.is_empty() {
                told(Delta::Thinking(line.thinking.clone()));
            }
            if !line.text.is_empty() {
                told(Delta::Text(line.text.clone()));
            }
            // A script without tokens used none; what they cost is known.
            let (message, usage) = (line.message(place), Some(line.usage.unwrap_or_default()));
            let ended = if line.cut_short { Ended::OutputLimit } else { Ended::Complete };
            Ok(Answer { message, usage, cost: line.cost, ended })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "
prices: {input: '3', output: '15'}
answers:
  - text: I look.
    calls:
      - tool: read_file
        arguments: {path: a.rs}
      - {id: x, tool: run, arguments: 'not json'}
    usage: {input: 1000, output: 10}
  - fail: [rate_limited, truncated]
    text: Done.
";

    fn ask(model: &Scripted, messages: &[Message]) -> Result<Answer, CallError> {
        let request = Request { model: "", system: "", messages, tools: &[], max_output: 1 };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(model.answer(request, &mut |_| ()))
    }

    #[test]
    fn answers_come_in_their_order_and_fail_as_told() {
        let model = Scripted::new(Script::parse(SCRIPT).unwrap());
        let first = ask(&model, &[Message::user("go")]).unwrap();
        let calls: Vec<_> =
            first.message.calls().map(|call| (&*call.id, &*call.arguments)).collect();
        assert_eq!(calls, [("call_1_1", r#"{"path":"a.rs"}"#), ("x", "not json")]);
        let cost = model.cost(&first.usage.unwrap());
        assert_eq!(cost.to_string(), "0.00315");
        let later = [Message::user("go"), first.message];
        assert_eq!(ask(&model, &later).unwrap_err().fault, Fault::RateLimited(None));
        assert_eq!(ask(&model, &later).unwrap_err().fault, Fault::Truncated);
        assert_eq!(ask(&model, &later).unwrap().message.text(), "Done.");
        // Another process starts where the conversation stands.
        let model = Scripted::new(Script::parse(SCRIPT).unwrap());
        let done = [later[0].clone(), later[1].clone(), Message::assistant("Done.")];
        assert_eq!(ask(&model, &done).unwrap_err().fault, Fault::Refused);
    }

    #[test]
    fn a_recorded_script_replays_what_was_said() {
        let model = Scripted::new(Script::parse(SCRIPT).unwrap());
        let first = ask(&model, &[Message::user("go")]).unwrap();
        let cost = model.cost(&first.usage.unwrap());
        let message = first.message.spending(first.usage.unwrap(), Some(cost));
        let script = Script::of([&message]);
        let text = serde_json::to_string(&script).unwrap();
        let again = Scripted::new(Script::parse(&text).unwrap());
        let answer = ask(&again, &[Message::user("go")]).unwrap();
        assert_eq!(answer.message.parts, message.parts);
        assert_eq!(answer.usage, message.usage);
        assert_eq!(answer.cost, Some(cost));
    }

    #[test]
    fn a_wrong_script_is_refused_with_its_place() {
        for wrong in ["", "answers: 3", "- txt: x", "[{\"fail\":[\"tired\"]}]", "{"] {
            assert!(Script::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Script::parse("- text: hi").unwrap().prices.is_none());
    }
}
