//! The scripted model: answers from a file, so that everything runs offline and runs of real models
//! can be replayed.
//!
//! A script is YAML or JSON: a list of answers, or `{prices, context, answers, lanes, summaries}`.
//! The lane's number of earlier answers selects the next one, so that a run resumed in another
//! process continues at the right place. Summaries are counted separately. A flow's lanes have
//! their answers under `lanes`, by name.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell::model::{Compacted, Money, Part, Role, Text, ToolCall, Usage};
use stepwell::{Event, Lane, Message};

use super::{
    Answer, CallError, Delta, Ended, Fault, GO_ON, Provider, Purpose, Request, SAY_SOMETHING, Turn,
};

/// A model that answers from a script.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    /// How often each answer has already failed in this process.
    failed: Mutex<BTreeMap<(String, usize), usize>>,
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Token prices in dollars per million. Without prices everything is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The context length, at four bytes a token; `None` if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// The answers in order, also for lanes without answers of their own.
    #[serde(default)]
    pub answers: Vec<Line>,
    /// The answers of a flow's lanes, by name. A name that ends in `*` covers all lanes with that
    /// prefix.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lanes: BTreeMap<String, Vec<Line>>,
    /// The summaries in order; after the last one, a plain summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<SummaryLine>,
}

/// A summary of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SummaryLine {
    /// The number of the answer (from 1) before which the conversation must shrink: until then that
    /// answer is refused as too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Its text.
    pub text: String,
    /// Its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Its cost, which overrides the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Does it reach the output limit?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// How every request for it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<ScriptFault>,
}

/// The summary if a script has none left.
const PLAIN_SUMMARY: &str = "## Goal\n- what the user asked for\n## Done\n- the steps so far\n";

/// The token prices of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Dollars per million input tokens.
    pub input: Money,
    /// Dollars per million output tokens.
    pub output: Money,
}

impl Prices {
    /// The cost of this usage.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Money {
        self.input.per_million(usage.input).plus(self.output.per_million(usage.output))
    }
}

/// One answer of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Line {
    /// The model's thinking.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thinking: String,
    /// The model's text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptCall>,
    /// Its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Its cost, which overrides the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Does it reach the output limit?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// Its delay in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// Its failures, one for each request, before it succeeds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fail: Vec<ScriptFault>,
    /// Does the last failure repeat for ever?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forever: bool,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A tool call in a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// Its id; derived from its position if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its arguments: an object, or a text that is passed on unchanged.
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

impl std::fmt::Display for ScriptFault {
    /// The spelling in scripts.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
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

/// The longest error message, in characters: an error may quote a whole file that is not a script.
const LONGEST_ERROR: usize = 200;

fn brief(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    match text.char_indices().nth(LONGEST_ERROR) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl Script {
    /// Parses YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, String> {
        // JSON is valid YAML, but its own parser has better errors.
        let json = text.trim_start().starts_with(['{', '[']);
        let value: Value = match json {
            true => serde_json::from_str(text).map_err(brief)?,
            false => serde_saphyr::from_str(text).map_err(brief)?,
        };
        let is_list = value.is_array();
        // Parsed as the form that it resembles, so that the error names the field.
        match is_list {
            true => {
                serde_json::from_value(value).map(|answers| Self { answers, ..Self::default() })
            }
            // A script must have answers.
            false if value.get("answers").or_else(|| value.get("lanes")).is_none() => {
                serde_json::from_value::<Self>(value)
                    .and_then(|_| Err(serde::de::Error::missing_field("answers")))
            }
            false => serde_json::from_value(value),
        }
        .map_err(brief)
    }

    /// The answers of a lane.
    fn of_lane(&self, lane: &str) -> &[Line] {
        let begins =
            |name: &str| name.strip_suffix('*').is_some_and(|front| lane.starts_with(front));
        let own = self.lanes.get(lane);
        let own = own.or_else(|| Some(self.lanes.iter().find(|(name, _)| begins(name))?.1));
        own.unwrap_or(&self.answers)
    }

    fn lines_mut(&mut self, lane: &Lane) -> &mut Vec<Line> {
        match *lane == Lane::main() {
            true => &mut self.answers,
            false => self.lanes.entry(lane.to_string()).or_default(),
        }
    }

    /// The script that replays a log's answers, and its summaries at the same points.
    #[must_use]
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut script = Self::default();
        for event in events {
            match event {
                Event::Message(message) if message.role == Role::Assistant => {
                    script.lines_mut(&message.lane).push(Line::of(message));
                }
                Event::Message(message) if message.text() == GO_ON => {
                    if let Some(last) = script.lines_mut(&message.lane).last_mut() {
                        last.cut_short = true;
                    }
                }
                Event::Message(message) if message.text() == SAY_SOMETHING => {
                    if let Some(last) = script.lines_mut(&message.lane).last_mut() {
                        last.text.clear();
                    }
                }
                Event::Compacted(compacted) if compacted.model.is_some() => {
                    let before = script.lines_mut(&compacted.lane).len() + 1;
                    script.summaries.push(SummaryLine::of(compacted, before));
                }
                _ => {}
            }
        }
        script
    }
}

impl SummaryLine {
    fn of(compacted: &Compacted, before: usize) -> Self {
        let summary = compacted.summary.clone().filter(|_| compacted.fault.is_none());
        // Answers in vain are not recorded; an empty summary has the same effect.
        let unreached = compacted.fault.is_some() && compacted.usage.is_none();
        Self {
            before: u64::try_from(before).ok(),
            text: summary.unwrap_or_default(),
            usage: compacted.usage,
            cost: compacted.cost,
            cut_short: false,
            fail: unreached.then_some(ScriptFault::Unavailable),
        }
    }
}

impl Line {
    fn of(message: &Message) -> Self {
        let call = |call: &ToolCall| ScriptCall {
            id: Some(call.id.clone()),
            tool: call.name.clone(),
            // Byte for byte as the model wrote it.
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
    /// A model that answers from this script.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { script, failed: Mutex::default() }
    }

    /// The cost of this usage. Free without prices.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Money {
        self.script.prices.map_or(Money::ZERO, |prices| prices.cost(usage))
    }

    /// Its context length.
    #[must_use]
    pub const fn context(&self) -> Option<u64> {
        self.script.context
    }

    /// Refuses a request that is too long, or that comes before the scripted compaction.
    fn refuses(&self, request: &Request<'_>) -> Option<CallError> {
        let Turn { purpose, answers, summaries, .. } = request.turn;
        let tokens = bytes(request) / 4;
        if let Some(most) = self.script.context.filter(|most| tokens > *most) {
            let what = format!("the request has {tokens} tokens, and at most {most} fit");
            return Some(Self::error(what, Fault::ContextFull));
        }
        let due = |line: &&SummaryLine| line.before.is_some_and(|before| before <= answers + 1);
        let due = self.script.summaries.iter().filter(due).count();
        (purpose == Purpose::Answer && usize_of(summaries) < due).then(|| {
            let what = format!("the script shrinks before answer {}", answers + 1);
            Self::error(what, Fault::ContextFull)
        })
    }

    fn summary(&self, place: usize) -> Result<Answer, CallError> {
        let plain = SummaryLine { text: PLAIN_SUMMARY.to_owned(), ..SummaryLine::default() };
        let line = self.script.summaries.get(place).unwrap_or(&plain);
        if let Some(fault) = line.fail {
            let what = format!("summary {} fails: {fault}", place + 1);
            return Err(Self::error(what, fault.into()));
        }
        let message = Message::assistant(line.text.clone());
        let ended = if line.cut_short { Ended::OutputLimit } else { Ended::Complete };
        let usage = Some(line.usage.unwrap_or_default());
        Ok(Answer { message, usage, cost: line.cost, ended })
    }

    fn error(what: String, fault: Fault) -> CallError {
        CallError { provider: "script".to_owned(), what, fault }
    }

    /// The next scripted failure of an answer, if one is left.
    fn failure(&self, lane: &str, place: usize, line: &Line) -> Option<CallError> {
        let mut failed = self.failed.lock();
        let times = failed.entry((lane.to_owned(), place)).or_default();
        let last = line.fail.len().checked_sub(1)?;
        let turn = if line.forever { (*times).min(last) } else { *times };
        let fault = *line.fail.get(turn)?;
        *times += 1;
        Some(Self::error(format!("answer {} fails: {fault}", place + 1), fault.into()))
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
        let (place, lane) = (usize_of(request.turn.answers), request.turn.lane);
        Box::pin(async move {
            if let Some(error) = self.refuses(&request) {
                return Err(error);
            }
            if request.turn.purpose == Purpose::Summary {
                return self.summary(usize_of(request.turn.summaries));
            }
            let lines = self.script.of_lane(lane);
            let line = lines.get(place).ok_or_else(|| {
                let (answers, whose) =
                    (stepwell::model::counted(lines.len(), "answer"), whose(lane));
                let what =
                    format!("the script has {answers}{whose}, and the run asked for one more");
                Self::error(what, Fault::Refused)
            })?;
            if line.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(line.delay_ms)).await;
            }
            if let Some(error) = self.failure(lane, place, line) {
                return Err(error);
            }
            if !line.thinking.is_empty() {
                told(Delta::Thinking(line.thinking.clone()));
            }
            if !line.text.is_empty() {
                told(Delta::Text(line.text.clone()));
            }
            if !line.calls.is_empty() {
                told(Delta::Call);
            }
            // A scripted answer without usage used no tokens, so its cost is known: zero.
            let (message, usage) = (line.message(place), Some(line.usage.unwrap_or_default()));
            let ended = if line.cut_short { Ended::OutputLimit } else { Ended::Complete };
            Ok(Answer { message, usage, cost: line.cost, ended })
        })
    }
}

/// Names the lane whose answers ran out, if there are several lanes.
fn whose(lane: &str) -> String {
    match lane {
        "" | "main" => String::new(),
        lane => format!(" for lane {lane:?}"),
    }
}

fn usize_of(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// The total bytes of a request's texts.
fn bytes(request: &Request<'_>) -> u64 {
    let part = |part: &Part| match part {
        Part::Text(text) | Part::Thinking(text) => text.text.len(),
        Part::Image(image) => image.data.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.text.len(),
    };
    let messages: usize =
        request.messages.iter().flat_map(|message| &message.parts).map(part).sum();
    let tools = request.tools.iter().map(|tool| tool.name.len() + tool.description.len());
    let bytes = request.system.len() + messages + tools.sum::<usize>();
    u64::try_from(bytes).unwrap_or(u64::MAX)
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
        let answers = messages.iter().filter(|message| message.role == Role::Assistant);
        let turn = Turn { answers: answers.count().try_into().unwrap(), ..Turn::default() };
        ask_at(model, messages, turn)
    }

    fn ask_at(model: &Scripted, messages: &[Message], turn: Turn<'_>) -> Result<Answer, CallError> {
        let request = Request { model: "", system: "", messages, tools: &[], max_output: 1, turn };
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
        // Another process continues at the same answer.
        let model = Scripted::new(Script::parse(SCRIPT).unwrap());
        let done = [later[0].clone(), later[1].clone(), Message::assistant("Done.")];
        assert_eq!(ask(&model, &done).unwrap_err().fault, Fault::Refused);
    }

    #[test]
    fn a_lane_has_answers_of_its_own() {
        let script = "
answers: [{text: anyone}]
lanes:
  router: [{text: first}, {fail: [unavailable], text: second}]
  worker-*: [{text: work}]
";
        let model = Scripted::new(Script::parse(script).unwrap());
        let said = [Message::user("go")];
        let at = |lane, answers| {
            let turn = Turn { answers, lane, ..Turn::default() };
            ask_at(&model, &said, turn).map(|answer| answer.message.text())
        };
        assert_eq!(at("router", 0).unwrap(), "first");
        assert_eq!(at("router", 1).unwrap_err().fault, Fault::Unavailable);
        assert_eq!(at("router", 1).unwrap(), "second");
        assert_eq!(at("worker-1-0", 0).unwrap(), "work");
        assert_eq!(at("writer", 0).unwrap(), "anyone");
        let over = at("worker-1-0", 1).unwrap_err();
        assert!(over.what.contains("lane \"worker-1-0\""), "{over}");
        let router: Lane = "router".parse().unwrap();
        let event = Event::from(Message::assistant("first").in_lane(router));
        assert_eq!(Script::of([&event]).lanes["router"][0].text, "first");
    }

    #[test]
    fn a_recorded_script_replays_what_was_said() {
        let model = Scripted::new(Script::parse(SCRIPT).unwrap());
        let first = ask(&model, &[Message::user("go")]).unwrap();
        let cost = model.cost(&first.usage.unwrap());
        let message = first.message.spending(first.usage.unwrap(), Some(cost));
        let script = Script::of([&Event::from(message.clone())]);
        let text = serde_json::to_string(&script).unwrap();
        let again = Scripted::new(Script::parse(&text).unwrap());
        let answer = ask(&again, &[Message::user("go")]).unwrap();
        assert_eq!(answer.message.parts, message.parts);
        assert_eq!(answer.usage, message.usage);
        assert_eq!(answer.cost, Some(cost));
    }

    #[test]
    fn summaries_come_in_their_order_and_where_they_are_due() {
        let script =
            "context: 100\nanswers: [{text: a}, {text: b}]\nsummaries: [{before: 2, text: s}]\n";
        let model = Scripted::new(Script::parse(script).unwrap());
        let said = [Message::user("go")];
        let at = |answers, summaries, purpose| {
            let turn = Turn { purpose, answers, summaries, lane: "main" };
            ask_at(&model, &said, turn).map(|answer| answer.message.text())
        };
        assert_eq!(at(0, 0, Purpose::Answer).unwrap(), "a");
        assert_eq!(at(1, 0, Purpose::Answer).unwrap_err().fault, Fault::ContextFull);
        assert_eq!(at(1, 0, Purpose::Summary).unwrap(), "s");
        assert_eq!(at(1, 1, Purpose::Answer).unwrap(), "b");
        assert!(at(1, 1, Purpose::Summary).unwrap().contains("## Done"));
        let long = [Message::user("word ".repeat(100))];
        let full = ask_at(&model, &long, Turn::default()).unwrap_err();
        assert_eq!(
            (full.fault, full.what.as_str()),
            (Fault::ContextFull, "the request has 125 tokens, and at most 100 fit")
        );
    }

    #[test]
    fn a_recorded_script_shrinks_where_the_run_did() {
        let seq = stepwell::Seq::FIRST;
        let compacted = |summary: Option<&str>, fault: Option<&str>, usage| Compacted {
            summary: summary.map(str::to_owned),
            fault: fault.map(str::to_owned),
            model: Some("m".to_owned()),
            usage,
            ..Compacted::new(Lane::main(), seq, seq)
        };
        let usage = Some(Usage { input: 5, output: 1, ..Usage::default() });
        let events: [Event; 5] = [
            Message::assistant("a").into(),
            compacted(Some("s"), None, usage).into(),
            compacted(Some("kept"), Some("too large"), usage).into(),
            Message::assistant("b").into(),
            compacted(None, Some("gone"), None).into(),
        ];
        let script = Script::of(&events);
        let line = |n: usize| &script.summaries[n];
        assert_eq!((line(0).before, &*line(0).text, line(0).usage), (Some(2), "s", usage));
        assert_eq!((line(1).before, &*line(1).text, line(1).fail), (Some(2), "", None));
        assert_eq!((line(2).before, line(2).fail), (Some(3), Some(ScriptFault::Unavailable)));
        let again = Script::parse(&serde_json::to_string(&script).unwrap()).unwrap();
        assert_eq!(again, script);
    }

    #[test]
    fn a_wrong_script_is_refused_with_its_place() {
        for wrong in
            ["", "{}", "answers: 3", "lanes: 3", "- txt: x", "[{\"fail\":[\"tired\"]}]", "{"]
        {
            assert!(Script::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Script::parse("- text: hi").unwrap().prices.is_none());
    }
}
