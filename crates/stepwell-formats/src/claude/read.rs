//! Reading transcripts, line by line.

mod begin;
mod compact;

use std::collections::HashSet;
use std::path::Path;

use stepwell::model::{
    Change, Edited, Elsewhere, Failure, Money, Part, Restored, Rewound, Role, Scope, StatusChanged,
    Step, Time,
};
use stepwell::{Lane, Message, Seq, Status, StopReason};

use compact::{Boundary, Summary};

use super::SYSTEM;
use super::content::{Said, hollow_line};
use super::cost::{self, Copied, Counted};
use super::ending::Ending;
use super::line::NO_MODEL;
use super::preserved::Preserved;
use super::said::{is_command, is_injected, label, lane, larger, usage};
use crate::journal::branches::{Branches, Named};
use crate::journal::tree::{self, Ended, Tip, Tree, key};
use crate::json::fields::{Fields, push_field, quoted};
use crate::read::input::{Input, Line};
use crate::read::neutral::{Item, Sink, Wanted, Warning, kept_event};
use crate::write::leftover_parts;
use crate::{Error, Result};

/// After how many bytes of lines a message is told, though more of it may come: so that a
/// transcript of nothing but one answer stays bounded, and what is told fits into an event.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// How often a transcript goes back to an earlier line. To record each time costs a look at
/// all those before; no conversation comes near this.
const MAX_REWINDS: u32 = 2_000;

/// Reads a transcript, and then those of its subagents.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let main = input.root().to_owned();
    let told = Reading::of(input, sink, &main, None)?.run()?;
    let folder = main.with_extension("");
    for path in input.list(&folder.join("subagents"))? {
        let is_transcript = path.extension().is_some_and(|it| it == "jsonl");
        // One that cannot be read does not stop the others.
        if is_transcript && let Err(error) = Reading::of(input, sink, &path, told.as_deref())?.run()
        {
            match error {
                Error::Unreadable { .. } | Error::Foreign { .. } | Error::FileTooLarge { .. } => {
                    sink.warn(Warning {
                        place: path.display().to_string(),
                        what: error.to_string(),
                    });
                }
                error => return Err(error),
            }
        }
    }
    Ok(())
}

/// One transcript as it is read.
struct Reading<'a> {
    input: &'a Input,
    sink: &'a mut dyn Sink,
    path: &'a Path,
    /// The session that started this one.
    parent: Option<&'a str>,
    told: Wanted,
    /// The session's name there, once it has begun.
    id: Option<String>,
    /// Lines that came before it did.
    front: Vec<String>,
    front_bytes: usize,
    tree: Tree,
    /// The message that is being put together.
    pending: Option<Pending>,
    /// A compaction whose summary is to come.
    boundary: Option<Boundary>,
    /// Calls of the model whose tokens were counted.
    counted: Counted,
    /// Where messages of the main lane were told.
    said: Vec<Seq>,
    /// The last message of the model, and its calls that have no result yet.
    answered: String,
    open: HashSet<String>,
    steps: u64,
    /// How often it went back.
    rewinds: u32,
    last: Seq,
    last_at: Option<Time>,
    /// Where it ends, by what its lines say.
    ending: Ending,
    /// Of a fork, the last that it copied of its parent, and what the parent had cost by then.
    copied: Option<Copied>,
    cost_before: Option<Money>,
}

/// The lines that a line names.
fn named(line: &Fields<'_>) -> Named {
    let name = |field: &str| line.text(field).map(|name| key(&name));
    let preserved = Preserved::of(line);
    Named {
        own: name("uuid"),
        parents: ["parentUuid", "logicalParentUuid", "leafUuid"]
            .into_iter()
            .filter_map(name)
            .collect(),
        others: preserved.iter().flat_map(Preserved::names).map(key).collect(),
    }
}

/// Why the model stopped before its answer was whole.
const CUT_OFF: [&str; 2] = ["max_tokens", "model_context_window_exceeded"];

/// A message of the model, whose parts come on lines of their own.
struct Pending {
    key: String,
    at: Option<Time>,
    message: Message,
    uuids: Vec<String>,
    lines: String,
    /// Lines that are no part of the conversation, and what each follows.
    beside: Vec<(String, Option<String>)>,
    /// How long its lines were.
    bytes: usize,
    /// Did the model stop in the middle of it?
    is_cut_off: bool,
}

impl<'a> Reading<'a> {
    fn of(
        input: &'a Input,
        sink: &'a mut dyn Sink,
        path: &'a Path,
        parent: Option<&'a str>,
    ) -> Result<Self> {
        Ok(Self {
            input,
            sink,
            path,
            parent,
            told: Wanted::Yes,
            id: None,
            front: Vec::new(),
            front_bytes: 0,
            tree: Tree::default(),
            pending: None,
            boundary: None,
            counted: Counted::default(),
            said: Vec::new(),
            answered: String::new(),
            open: HashSet::new(),
            steps: 0,
            rewinds: 0,
            last: Seq::FIRST,
            last_at: None,
            ending: Ending::default(),
            copied: None,
            cost_before: None,
        })
    }

    /// Reads it to its end. The answer is the session's name there.
    fn run(mut self) -> Result<Option<String>> {
        let mut lines = self.input.lines(self.path)?;
        while let Some(line) = lines.next_line()? {
            self.line(&line)?;
            if self.told == Wanted::Known {
                return Ok(self.id);
            }
        }
        if self.id.is_none() && !self.begin_late()? {
            self.warn(None, "it holds no conversation, and was left out");
            return Ok(None);
        }
        if self.told == Wanted::Yes {
            self.end()?;
        }
        Ok(self.id)
    }

    fn line(&mut self, line: &Line<'_>) -> Result<()> {
        let (text, fields) = match line.object() {
            Ok(read) => read,
            Err(what) => {
                self.warn(Some(line.number), &what);
                return Ok(());
            }
        };
        if self.id.is_none() && !self.begin(text, &fields)? {
            return Ok(());
        }
        if self.told != Wanted::Yes {
            return Ok(());
        }
        if self.tree.is_full() {
            self.thin_out()?;
        }
        self.emit(text, &fields)
    }

    /// Lets go of the names of lines that nothing far below follows, in a long transcript.
    fn thin_out(&mut self) -> Result<()> {
        let Branches { names, cut_short } = Branches::of(self.input, self.path, &named)?;
        if cut_short {
            let most = tree::MAX_NAMES;
            let what = format!(
                "it branches at more than {most} lines; at the others the branch that is left \
                 stays in view"
            );
            self.warn(None, &what);
        }
        self.tree.keep(names);
        Ok(())
    }

    fn emit(&mut self, text: &str, fields: &Fields<'_>) -> Result<()> {
        self.ending.line(fields);
        let at = fields.time("timestamp");
        let kind = fields.text("type").unwrap_or_default();
        let subtype = fields.text("subtype").unwrap_or_default();
        match kind.as_ref() {
            "assistant" if fields.is_true("isApiErrorMessage") => self.failure(text, fields, at),
            "assistant" if fields.has("message") => self.assistant(text, fields, at),
            "user" if fields.has("message") => self.user(text, fields, at),
            "system" if subtype == "compact_boundary" => {
                self.flush_pending()?;
                self.follow(fields, at)?;
                let metadata = fields.object("compactMetadata").unwrap_or_default();
                let tokens = metadata.get("preTokens").unwrap_or(0);
                let uuid = fields.text("uuid").unwrap_or_default().into_owned();
                let preserved = Preserved::of(fields);
                let preserved = preserved.and_then(|it| it.messages(&self.tree, &self.said));
                let line = text.to_owned();
                self.boundary = Some(Boundary { at, uuid, line, tokens, preserved });
                Ok(())
            }
            "system" if subtype == "local_command" && fields.has("content") => {
                self.printed(text, fields, at)
            }
            "custom-title" => self.title(text, fields, at),
            "cost-state" => self.cost(text, fields, at),
            "last-prompt" => {
                self.beside(text, fields, at)?;
                match self.ending.held() {
                    Some(tip) => self.end_with(tip).map(drop),
                    None => Ok(()),
                }
            }
            "stepwell" if fields.has("part") => self.part(text, fields, at),
            "stepwell" => match fields.raw("event").and_then(kept_event) {
                Some(item) => {
                    self.flush_pending()?;
                    self.push(item).map(drop)
                }
                None => self.beside(text, fields, at),
            },
            _ => self.beside(text, fields, at),
        }
    }

    /// A part of a message that a transcript has no place for.
    fn part(&mut self, text: &str, fields: &Fields<'_>, at: Option<Time>) -> Result<()> {
        if let Some(pending) = &mut self.pending
            && fields.text("of").as_deref() == Some(pending.key.as_str())
            && pending.bytes < MAX_ANSWER_BYTES
            && let Some(rest) = leftover_parts::take_up(fields, &mut pending.message.parts)
        {
            pending.bytes += text.len();
            pending.lines.push_str(&rest);
            pending.lines.push('\n');
            return Ok(());
        }
        self.beside(text, fields, at)
    }

    /// A line that is no part of the conversation.
    fn beside(&mut self, text: &str, fields: &Fields<'_>, at: Option<Time>) -> Result<()> {
        let named = fields.text("uuid").map(|uuid| (uuid, fields.text("parentUuid")));
        match (&mut self.pending, named) {
            // What it follows may not be told yet.
            (Some(pending), Some((uuid, parent))) => {
                let parent = parent.map(std::borrow::Cow::into_owned);
                pending.beside.push((uuid.into_owned(), parent));
            }
            (None, Some((uuid, parent))) => self.tree.alias(&uuid, parent.as_deref()),
            (_, None) => {}
        }
        // It must not come between the lines of one message.
        match &mut self.pending {
            Some(pending) if !fields.has("message") && pending.bytes < MAX_ANSWER_BYTES => {
                pending.bytes += text.len();
                pending.lines.push_str(text);
                pending.lines.push('\n');
                Ok(())
            }
            Some(pending) if pending.bytes >= MAX_ANSWER_BYTES => {
                self.settle_message()?;
                self.push(Item::alone(SYSTEM, at, text)).map(drop)
            }
            _ => self.push(Item::alone(SYSTEM, at, text)).map(drop),
        }
    }

    fn title(&mut self, text: &str, fields: &Fields<'_>, at: Option<Time>) -> Result<()> {
        let Some(title) = label(fields) else { return self.beside(text, fields, at) };
        self.flush_pending()?;
        let label = Change::Set(title);
        self.push(Item::new(at, Edited { label, ..Edited::default() }))?;
        self.push(Item::beside(SYSTEM, at, text)).map(drop)
    }

    /// What the session has cost so far.
    fn cost(&mut self, text: &str, fields: &Fields<'_>, at: Option<Time>) -> Result<()> {
        if let (Some(copied), None) = (&self.copied, self.cost_before) {
            self.cost_before = copied.cost(self.input, self.path)?;
        }
        // What a fork cost itself is not known without its parent.
        let before = match self.copied {
            Some(_) => self.cost_before,
            None => Some(Money::default()),
        };
        let (Some(sum), Some(before)) = (cost::told(fields), before) else {
            return self.beside(text, fields, at);
        };
        self.settle_message()?;
        let elsewhere = Some(Elsewhere { cost: sum.minus(before), ..Elsewhere::default() });
        self.push(Item::new(at, Edited { elsewhere, ..Edited::default() }))?;
        self.push(Item::beside(SYSTEM, at, text)).map(drop)
    }

    /// The provider failed, and the transcript says so in the model's place.
    fn failure(&mut self, text: &str, fields: &Fields<'_>, at: Option<Time>) -> Result<()> {
        self.flush_pending()?;
        let (parts, _) = Said::of(fields).unwrap_or_default().hollow();
        let said: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
        self.push(Item::new(at, Failure { message: said.join("\n") }))?;
        if let Some(uuid) = fields.text("uuid") {
            self.tree.alias(&uuid, fields.text("parentUuid").as_deref());
        }
        self.push(Item::beside(SYSTEM, at, text)).map(drop)
    }

    fn assistant(&mut self, text: &str, fields: &Fields<'_>, at: Option<Time>) -> Result<()> {
        let message = Said::of(fields).unwrap_or_default();
        let (parts, mut line) = hollow_line(text, fields, &message);
        let uuid = fields.text("uuid").unwrap_or_default().into_owned();
        let key = message.fields.text("id").unwrap_or_default().into_owned();
        let copied = Copied::of(fields);
        // What another session asked is counted there.
        let spent = usage(&message.fields).filter(|_| copied.is_none());
        self.copied = copied.or(self.copied.take());
        let usage = spent.filter(|_| {
            let request = fields.text("requestId").unwrap_or_default();
            key.is_empty() || self.counted.insert(&key, &request)
        });
        let lane = lane(fields);
        let bytes = line.len() + fields.raw("message").map_or(0, str::len);
        let stopped = message.fields.text("stop_reason");
        let is_cut_off = stopped.is_some_and(|why| CUT_OFF.contains(&why.as_ref()));
        if let Some(pending) = &mut self.pending
            && pending.key == key
            && !key.is_empty()
            && pending.message.lane == lane
            && pending.bytes < MAX_ANSWER_BYTES
        {
            pending.message.parts.extend(parts);
            // What is counted while an answer is written grows with it.
            if let (Some(known), Some(spent)) = (&mut pending.message.usage, spent) {
                *known = larger(*known, spent);
            }
            pending.uuids.push(uuid);
            pending.is_cut_off |= is_cut_off;
            pending.bytes += bytes;
            pending.lines.push_str(&line);
            pending.lines.push('\n');
            return Ok(());
        }
        self.flush_pending()?;
        self.follow(fields, at)?;
        let model = message.fields.text("model").filter(|model| model != NO_MODEL);
        let model = model.map(std::borrow::Cow::into_owned);
        let mut said = Message::new(Role::Assistant, parts).in_lane(lane);
        said.model = model;
        said.usage = usage;
        line.push('\n');
        let (uuids, lines, beside) = (vec![uuid], line, Vec::new());
        let message = said;
        self.pending = Some(Pending { key, at, message, uuids, lines, beside, bytes, is_cut_off });
        Ok(())
    }

    fn user(&mut self, text: &str, fields: &Fields<'_>, at: Option<Time>) -> Result<()> {
        self.settle_message()?;
        let message = Said::of(fields).unwrap_or_default();
        let (parts, mut line) = hollow_line(text, fields, &message);
        let uuid = fields.text("uuid").unwrap_or_default().into_owned();
        if fields.is_true("isCompactSummary")
            && let Some(boundary) = self.boundary.take()
        {
            return self.compact(boundary, Some(Summary { parts, uuid, line }));
        }
        self.flush_pending()?;
        self.follow(fields, at)?;
        let results = parts.iter().any(|part| matches!(part, Part::ToolResult(_)));
        let leaves_end = !results && is_command(&parts);
        let injected = !results && is_injected(fields, &parts);
        let role = if results { Role::Tool } else { Role::User };
        let mut said = Message::new(role, parts).in_lane(lane(fields));
        if injected {
            said = said.injected();
        }
        line.push('\n');
        self.say(said, at, &uuid, line)?;
        if !leaves_end && lane(fields) == Lane::main() {
            self.tree.stands(Ended::Waiting);
        }
        Ok(())
    }

    /// What a command of the program printed. The model is shown it in the user's name.
    fn printed(&mut self, text: &str, fields: &Fields<'_>, at: Option<Time>) -> Result<()> {
        self.flush_pending()?;
        self.follow(fields, at)?;
        let printed = fields.text("content").unwrap_or_default();
        let said = Message::user(printed).in_lane(lane(fields)).injected();
        // The whole line, behind a space.
        self.say(said, at, &fields.text("uuid").unwrap_or_default(), format!(" {text}\n"))
    }

    /// Tells a message that is not the model's, and its line.
    fn say(&mut self, said: Message, at: Option<Time>, uuid: &str, line: String) -> Result<()> {
        let answered: Vec<String> = said.results().map(|it| it.call_id.clone()).collect();
        let main = said.lane == Lane::main();
        if answered.is_empty() && main {
            self.tree.turn();
        }
        self.push(Item::new(at, said))?;
        let place = self.push(Item::beside(SYSTEM, at, line))?;
        if !main {
            return Ok(());
        }
        self.said.push(place.prev());
        self.tree.told([uuid], place);
        let waited = !self.open.is_empty();
        self.open.retain(|id| !answered.contains(id));
        if waited && !answered.is_empty() && self.open.is_empty() { self.step(at) } else { Ok(()) }
    }

    /// Goes back to what a line follows, if that is not what was told last.
    fn follow(&mut self, fields: &Fields<'_>, at: Option<Time>) -> Result<()> {
        if lane(fields) != Lane::main() {
            return Ok(());
        }
        let parent = fields.text("parentUuid").or_else(|| fields.text("logicalParentUuid"));
        let step = self.tree.follow(parent.as_deref());
        self.go(step, at)
    }

    /// The conversation ends with a line that may not be the last one. The answer is how it
    /// stands there.
    fn end_with(&mut self, tip: Tip) -> Result<Ended> {
        self.settle_message()?;
        let (step, ended) = self.tree.end_with(tip);
        self.go(step, self.last_at)?;
        Ok(ended)
    }

    fn go(&mut self, step: tree::Step, at: Option<Time>) -> Result<()> {
        if let tree::Step::BackTo(to) = step {
            self.open.clear();
            self.rewinds = self.rewinds.saturating_add(1);
            if self.rewinds > MAX_REWINDS {
                self.warn_of_rewinds();
                return Ok(());
            }
            let rewound = Rewound { to, scope: Scope::Chat, restored: Restored::default() };
            self.push(Item::new(at, rewound))?;
        }
        Ok(())
    }

    fn warn_of_rewinds(&mut self) {
        if self.rewinds == MAX_REWINDS + 1 {
            let what = format!(
                "it goes back to an earlier line more than {MAX_REWINDS} times; after that, \
                 branches that were left stay in view"
            );
            self.warn(None, &what);
        }
    }

    /// Tells what waits: a message, or a compaction without a summary.
    fn flush_pending(&mut self) -> Result<()> {
        self.settle_message()?;
        match self.boundary.take() {
            Some(boundary) => self.compact(boundary, None),
            None => Ok(()),
        }
    }

    fn settle_message(&mut self) -> Result<()> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let Pending { key, at, message, uuids, lines, beside, is_cut_off, .. } = pending;
        let (lane, calls) = (message.lane.clone(), message.calls().map(|it| it.id.clone()));
        let open: HashSet<String> = calls.collect();
        let main = lane == Lane::main();
        // Results may come between the lines of one message.
        let goes_on = main && !key.is_empty() && key == self.answered;
        if main && !goes_on {
            self.tree.turn();
            self.open.clear();
        }
        self.push(Item::new(at, message))?;
        let place = self.push(Item::beside(SYSTEM, at, lines))?;
        if main {
            self.said.push(place.prev());
            self.tree.told(uuids.iter().map(String::as_str), place);
        }
        for (name, parent) in &beside {
            self.tree.alias(name, parent.as_deref());
        }
        if !main {
            return Ok(());
        }
        self.answered = key;
        self.open.extend(open);
        let is_whole = self.open.is_empty() && !is_cut_off;
        self.tree.stands(if is_whole { Ended::Answered } else { Ended::Waiting });
        if self.open.is_empty() { self.step(at) } else { Ok(()) }
    }

    fn step(&mut self, at: Option<Time>) -> Result<()> {
        self.steps += 1;
        let place = self.push(Item::new(at, Step { lane: Lane::main(), n: self.steps }))?;
        self.tree.told([], place);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.flush_pending()?;
        let ended = match self.ending.tip(|line, other| self.tree.follows(line, other)) {
            Some(tip) => self.end_with(tip)?,
            None => self.tree.ended(),
        };
        for path in self.input.list(&self.path.with_extension("").join("tool-results"))? {
            self.kept_result(&path)?;
        }
        let (status, reason) = match ended {
            Ended::Answered => (Status::Success, Some(StopReason::LlmDone)),
            Ended::Empty | Ended::Waiting => (Status::Interrupted, None),
        };
        self.push(Item::new(self.last_at, StatusChanged { status, reason, error: None }))?;
        self.sink.end()
    }

    /// A result that was too long for the transcript, in a file of its own.
    fn kept_result(&mut self, path: &Path) -> Result<()> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let text = match self.input.text(path) {
            Ok(text) => text,
            Err(error) => {
                self.warn(None, &error.to_string());
                return Ok(());
            }
        };
        let mut data = String::from("{");
        push_field(&mut data, "toolResultFile", &quoted(name));
        push_field(&mut data, "text", &quoted(&text));
        data.push('}');
        self.push(Item::alone(SYSTEM, self.last_at, data)).map(drop)
    }

    fn push(&mut self, item: Item) -> Result<Seq> {
        self.last_at = item.at.max(self.last_at);
        self.last = self.sink.push(item)?;
        Ok(self.last)
    }

    fn warn(&mut self, line: Option<u64>, what: &str) {
        let path = self.path.display();
        let place = match line {
            Some(line) => format!("{path}, line {line}"),
            None => path.to_string(),
        };
        self.sink.warn(Warning { place, what: what.to_owned() });
    }
}
