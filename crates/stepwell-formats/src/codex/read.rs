//! Reading rollouts, line by line.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use stepwell::model::{Compacted, Restored, Rewound, Role, Scope, StatusChanged, Time, Usage};
use stepwell::{Lane, Message, Seq, StopReason};

use super::base::{Base, chain};
use super::front::{Written, is_asked, not_one, opening, task};
use super::item::{self, hollow};
use super::{FORMER_BASE, SUBAGENTS_FOLDER, SYSTEM};
use crate::json::fields::{Fields, elements};
use crate::read::input::Input;
use crate::read::neutral::{Item, Opening, Sink, Wanted, Warning, kept_event};
use crate::read::steps::Steps;
use crate::write::leftover_parts;
use crate::{Error, Result};

/// After how many bytes of lines an answer is told, though more of it may come: so that a
/// rollout of nothing but one answer stays bounded, and what is told fits into an event.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// Reads a rollout, and then those of subagents that were written with it.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let main = input.root();
    read_one(input, main, sink)?;
    for path in subagents(input, main)? {
        // One that cannot be read does not stop the others.
        match read_one(input, &path, sink) {
            Err(
                error @ (Error::Unreadable { .. }
                | Error::Foreign { .. }
                | Error::FileTooLarge { .. }),
            ) => sink.warn(Warning { place: path.display().to_string(), what: error.to_string() }),
            read => read?,
        }
    }
    Ok(())
}

/// The rollouts of subagents beside one, each after the one that started it.
fn subagents(input: &Input, main: &Path) -> Result<Vec<PathBuf>> {
    let folder = main.with_extension("").join(SUBAGENTS_FOLDER);
    let mut openings: Vec<(PathBuf, Opening)> = Vec::new();
    for path in input.list(&folder)? {
        if path.extension() != Some("jsonl".as_ref()) {
            continue;
        }
        let mut lines = input.glance(&path)?;
        let opening = lines.next_line()?.and_then(|line| {
            let (_, line) = line.object().ok()?;
            opening(&path, &line, &line.object("payload")?).ok()
        });
        openings.push((path, opening.unwrap_or_else(|| Opening::new("", ""))));
    }
    let ids: HashSet<&str> = openings.iter().map(|(_, it)| it.id.as_str()).collect();
    let mut children: BTreeMap<Option<&str>, Vec<(&Path, &str)>> = BTreeMap::new();
    for (path, opening) in &openings {
        let parent = opening.parent.as_deref().filter(|parent| ids.contains(parent));
        children.entry(parent).or_default().push((path, &opening.id));
    }
    let mut ordered = Vec::new();
    let mut waiting: VecDeque<_> = children.remove(&None).unwrap_or_default().into();
    while let Some((path, id)) = waiting.pop_front() {
        ordered.push(path.to_owned());
        waiting.extend(children.remove(&Some(id)).unwrap_or_default());
    }
    // What is left name each other in a circle.
    ordered.extend(children.into_values().flatten().map(|(path, _)| path.to_owned()));
    Ok(ordered)
}

/// Reads one rollout, with what it shares with others in front.
fn read_one(input: &Input, path: &Path, sink: &mut dyn Sink) -> Result<()> {
    let path = path.to_owned();
    let mut lines = input.lines(&path)?;
    let Some(first) = lines.next_line()? else { return Err(not_one(&path, "it is empty")) };
    let mended = first.mended();
    let line = match mended.as_deref().and_then(|text| Fields::parse(text).ok()) {
        Some(line) => line,
        None => first.object().map_err(|why| not_one(&path, &why))?.1,
    };
    let meta =
        line.object("payload").filter(|_| line.text("type").as_deref() == Some("session_meta"));
    let Some(meta) = meta else { return Err(not_one(&path, "it does not begin with its session")) };
    let mut opening = opening(&path, &line, &meta)?;
    opening.created.task = task(input, &path)?.unwrap_or_default();
    Written::of(input, &path)?.complete(&mut opening);
    let base = Base::of(&meta);
    if base.is_some() {
        // What it shares lies in other files: this one does not hold all of it.
        opening.file = None;
    }
    let mut reading = Reading::new(sink, &path);
    if reading.sink.begin(opening)? == Wanted::Known {
        return Ok(());
    }
    reading.meta(&line, &meta)?;
    if let Some(base) = base {
        let (shared, missing) = chain(input, &path, base)?;
        if let Some(thread) = missing {
            reading.warn(None, &format!("it goes on from {thread}, which is not here"));
        }
        reading.origin = Origin::Shared;
        for mut shared in shared {
            while let Some(line) = shared.lines.next_line()? {
                let offset = line.offset;
                if let Ok((text, line)) = line.object()
                    && shared.end.shares(&line, offset)
                    && line.text("type").as_deref() != Some("session_meta")
                {
                    reading.line(text, &line)?;
                }
            }
        }
        reading.origin = Origin::Own;
    }
    while let Some(line) = lines.next_line()? {
        match line.object() {
            Ok((text, fields)) => reading.line(text, &fields)?,
            Err(what) => reading.warn(Some(line.number), &what),
        }
    }
    reading.end()
}

/// Whose lines are being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The rollout's own.
    Own,
    /// Another rollout's, whose tokens are counted there.
    Shared,
}

/// One rollout as it is read.
struct Reading<'a> {
    sink: &'a mut dyn Sink,
    path: &'a Path,
    origin: Origin,
    model: Option<String>,
    /// The answer that is being put together.
    pending: Option<Pending>,
    /// The places before each turn of the user that counts.
    turns: Vec<Seq>,
    /// The tokens of the whole session when they were last told.
    total: Option<String>,
    steps: Steps,
    aborted: bool,
    /// Did a turn begin that did not end?
    in_turn: bool,
    last: Seq,
    last_at: Option<Time>,
}

/// An answer of the model, whose items come on lines of their own.
struct Pending {
    at: Option<Time>,
    message: Message,
    lines: String,
    /// How long its lines were.
    bytes: usize,
    /// Results of its calls, which may come before its tokens are told.
    results: Vec<Results>,
}

/// A message with results, and its line.
struct Results {
    at: Option<Time>,
    message: Message,
    lines: String,
}

impl Pending {
    fn new(at: Option<Time>, message: Message) -> Self {
        Self { at, message, lines: String::new(), bytes: 0, results: Vec::new() }
    }

    /// Adds a line behind what is there.
    fn push_line(&mut self, line: &str) {
        self.bytes += line.len();
        let lines = self.results.last_mut().map_or(&mut self.lines, |last| &mut last.lines);
        lines.push_str(line);
        lines.push('\n');
    }
}

impl<'a> Reading<'a> {
    fn new(sink: &'a mut dyn Sink, path: &'a Path) -> Self {
        Self {
            sink,
            path,
            origin: Origin::Own,
            model: None,
            pending: None,
            turns: Vec::new(),
            total: None,
            steps: Steps::default(),
            aborted: false,
            in_turn: false,
            last: Seq::FIRST,
            last_at: None,
        }
    }

    /// The first line, which is about the whole session.
    fn meta(&mut self, line: &Fields<'_>, meta: &Fields<'_>) -> Result<()> {
        let mut payload = meta.rewritten(&[("history_base", None)]);
        if let Some(base) = meta.raw("history_base") {
            payload.pop();
            crate::json::fields::push_field(&mut payload, FORMER_BASE, base);
            payload.push('}');
        }
        let line = line.rewritten(&[("payload", Some(&payload))]);
        self.push(Item::of_session(SYSTEM, line)).map(drop)
    }

    fn line(&mut self, text: &str, line: &Fields<'_>) -> Result<()> {
        let at = line.time("timestamp");
        let kind = line.text("type").unwrap_or_default();
        let payload = line.object("payload").unwrap_or_default();
        let said = payload.text("type").unwrap_or_default();
        match (kind.as_ref(), said.as_ref()) {
            ("response_item", _) => match hollow(&payload) {
                Some(item) => self.item(line, item, text.len(), at),
                None => self.beside(text, at),
            },
            ("event_msg", "token_count") => self.tokens(text, &payload, at),
            ("event_msg", "thread_rolled_back") => {
                self.flush_pending()?;
                let turns = payload.get::<usize>("num_turns").unwrap_or(0);
                self.roll_back(text, turns, at)
            }
            ("event_msg", "turn_aborted") => {
                self.aborted = true;
                self.beside(text, at)
            }
            ("event_msg", "task_started" | "turn_started") => {
                self.in_turn = true;
                self.beside(text, at)
            }
            ("event_msg", "task_complete" | "turn_complete") => {
                self.in_turn = false;
                self.beside(text, at)
            }
            ("turn_context", _) => {
                self.model = payload.text("model").map(std::borrow::Cow::into_owned);
                self.beside(text, at)
            }
            ("compacted", _) => self.compacted(text, &payload, at),
            ("stepwell", _) if payload.has("part") => self.part(text, line, &payload, at),
            ("stepwell", _) => match payload.raw("event").and_then(kept_event) {
                Some(item) => {
                    self.flush_pending()?;
                    self.push(item).map(drop)
                }
                None => self.beside(text, at),
            },
            _ => self.beside(text, at),
        }
    }

    fn item(
        &mut self,
        line: &Fields<'_>,
        item: item::Item,
        bytes: usize,
        at: Option<Time>,
    ) -> Result<()> {
        let asked = is_asked(&item);
        let item::Item { role, parts, rest } = item;
        let line = format!("{}\n", line.rewritten(&[("payload", Some(&rest))]));
        self.aborted = false;
        self.settle_if_full()?;
        match (role, &mut self.pending) {
            (Role::Assistant, Some(pending)) if pending.results.is_empty() => {
                pending.bytes += bytes;
                pending.message.parts.extend(parts);
                pending.lines.push_str(&line);
                return Ok(());
            }
            (Role::Assistant, _) => {
                self.flush_pending()?;
                let mut message = Message::new(role, parts);
                message.model.clone_from(&self.model);
                let pending = Pending { lines: line, bytes, ..Pending::new(at, message) };
                self.pending = Some(pending);
                return Ok(());
            }
            // Its tokens are told when its calls have run.
            (Role::Tool, Some(pending)) => {
                pending.bytes += bytes;
                let message = Message::new(role, parts);
                pending.results.push(Results { at, message, lines: line });
                return Ok(());
            }
            _ => {}
        }
        self.flush_pending()?;
        if asked {
            self.turns.push(self.last);
        }
        let message = Message::new(role, parts);
        let injected = role == Role::User && !asked;
        self.message(at, if injected { message.injected() } else { message }, line)
    }

    /// A part of an answer that Codex has no item for.
    fn part(
        &mut self,
        text: &str,
        line: &Fields<'_>,
        payload: &Fields<'_>,
        at: Option<Time>,
    ) -> Result<()> {
        self.settle_if_full()?;
        let mut message = Message::new(Role::Assistant, vec![]);
        message.model.clone_from(&self.model);
        let mut pending = self.pending.take().unwrap_or_else(|| Pending::new(at, message));
        let taken = leftover_parts::take_up(payload, &mut pending.message.parts);
        if let Some(rest) = &taken {
            pending.push_line(&line.rewritten(&[("payload", Some(rest))]));
        }
        if !pending.lines.is_empty() {
            self.pending = Some(pending);
        }
        if taken.is_some() { Ok(()) } else { self.beside(text, at) }
    }

    fn message(&mut self, at: Option<Time>, message: Message, lines: String) -> Result<()> {
        let step = self.steps.said(&message);
        self.push(Item::new(at, message))?;
        self.push(Item::beside(SYSTEM, at, lines))?;
        match step {
            Some(step) => self.push(Item::new(at, step)).map(drop),
            None => Ok(()),
        }
    }

    /// A line that is no part of the conversation.
    fn beside(&mut self, text: &str, at: Option<Time>) -> Result<()> {
        self.settle_if_full()?;
        // It must not come between the lines of one answer.
        match &mut self.pending {
            Some(pending) => {
                pending.push_line(text);
                Ok(())
            }
            None => self.push(Item::alone(SYSTEM, at, text)).map(drop),
        }
    }

    /// Tokens of the answer that is complete now. They are told again and again; only what
    /// has grown counts.
    fn tokens(&mut self, text: &str, payload: &Fields<'_>, at: Option<Time>) -> Result<()> {
        if self.origin == Origin::Shared {
            return Ok(());
        }
        let info = payload.object("info").unwrap_or_default();
        let total = info.raw("total_token_usage").map(str::to_owned);
        let usage = info.object("last_token_usage").map(|usage| counted(&usage));
        let usage = usage.filter(|usage| total != self.total && *usage != Usage::default());
        let Some(usage) = usage else {
            // It tells nothing new, but that an answer is complete.
            self.beside(text, at)?;
            return self.flush_pending();
        };
        self.total = total;
        // An answer that was told already: its tokens stand alone.
        let silent = || Pending::new(at, Message::new(Role::Assistant, vec![]));
        let pending = self.pending.get_or_insert_with(silent);
        pending.message.usage = Some(usage);
        pending.push_line(text);
        self.flush_pending()
    }

    /// Tells an answer that is long enough.
    fn settle_if_full(&mut self) -> Result<()> {
        match &self.pending {
            Some(pending) if pending.bytes >= MAX_ANSWER_BYTES => self.flush_pending(),
            _ => Ok(()),
        }
    }

    fn flush_pending(&mut self) -> Result<()> {
        let Some(Pending { at, message, lines, results, .. }) = self.pending.take() else {
            return Ok(());
        };
        if message.parts.is_empty() {
            self.push(Item::new(at, message))?;
            self.push(Item::beside(SYSTEM, at, lines))?;
        } else {
            self.message(at, message, lines)?;
        }
        for Results { at, message, lines } in results {
            self.message(at, message, lines)?;
        }
        Ok(())
    }

    fn roll_back(&mut self, text: &str, turns: usize, at: Option<Time>) -> Result<()> {
        let first = self.turns.len().saturating_sub(turns);
        let Some(to) = self.turns.get(first).copied() else { return self.beside(text, at) };
        self.turns.truncate(first);
        self.steps.went_back();
        self.push(Item::new(
            at,
            Rewound { to, scope: Scope::Chat, restored: Restored::default() },
        ))?;
        self.push(Item::beside(SYSTEM, at, format!("{text}\n"))).map(drop)
    }

    /// All that was said is replaced, by a summary or by other messages.
    fn compacted(&mut self, text: &str, payload: &Fields<'_>, at: Option<Time>) -> Result<()> {
        self.flush_pending()?;
        let summary = payload.text("message").filter(|text| !text.is_empty());
        let items: Vec<item::Item> = payload
            .raw("replacement_history")
            .and_then(|raw| elements(raw).ok())
            .unwrap_or_default()
            .into_iter()
            .filter_map(|raw| hollow(&Fields::parse(raw).ok()?))
            .collect();
        let said = |item: &item::Item| Message::new(item.role, item.parts.clone()).text();
        // The messages may hold the summary already.
        let summary = summary.filter(|text| !items.iter().any(|item| said(item).contains(&**text)));
        let mut compacted = Compacted::new(Lane::main(), Seq::FIRST, self.last);
        compacted.summary = summary.map(std::borrow::Cow::into_owned);
        self.push(Item::new(at, compacted))?;
        self.push(Item::beside(SYSTEM, at, format!("{text}\n")))?;
        self.turns.clear();
        for item in items {
            let asked = is_asked(&item);
            if asked {
                self.turns.push(self.last);
            }
            let mut message = Message::new(item.role, item.parts);
            if message.role == Role::User && !asked {
                message = message.injected();
            }
            self.push(Item::new(at, message))?;
            // It is on the line of the compaction.
            self.push(Item::beside(SYSTEM, at, ""))?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.flush_pending()?;
        let mut status: StatusChanged = self.steps.status();
        // The model may have said what it was about to do.
        if self.in_turn {
            status.status = stepwell::Status::Interrupted;
            status.reason = None;
        }
        if self.aborted {
            status.status = stepwell::Status::Interrupted;
            status.reason = Some(StopReason::UserInterrupt);
        }
        self.push(Item::new(self.last_at, status))?;
        self.sink.end()
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

/// Tokens, as they are counted here: those of the cache are part of the input.
fn counted(usage: &Fields<'_>) -> Usage {
    let count = |name: &str| usage.get::<u64>(name).unwrap_or(0);
    Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cached: count("cached_input_tokens"),
        cache_written: count("cache_write_input_tokens"),
        reasoning: count("reasoning_output_tokens"),
    }
}
