//! Writing transcripts.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use serde_json::json;
use stepwell::log::{Head, MessageOrigin, Timeline};
use stepwell::model::{
    About, Change, Compacted, Edited, EventId, Foreign, Kind, Part, Role, Undone,
};
use stepwell::store::Span;
use stepwell::{Event, Lane, Message, Recorded, Seq, SessionId, Stepwell, View};

use super::content::{refill, whole_parts};
use super::line::{
    Envelope, Spot, boundary, ends_with, kept, marked, message, message_id, spare as spare_line,
    summary,
};
use super::rows::Rows;
use super::{PROVIDER, SYSTEM, is_uuid};
use crate::journal::call_names::Calls;
use crate::journal::tree::key;
use crate::json::fields::{Fields, quoted};
use crate::original;
use crate::read::mark::mark_of;
use crate::read::neutral::{KEPT, is_facts, to_be_kept, without_facts};
use crate::write::facts::{Form, Said, Transcript};
use crate::write::leftover_parts;
use crate::write::unanswered::Unanswered;
use crate::write::writer::{
    Exported, FOREIGN, Losses, Outlet, Purpose, SUBAGENTS, count_event, each_event, subagents,
    word_for,
};
use crate::{Error, Result};

/// Writes a session and those of its subagents.
pub(super) fn write(well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
    let head = well.info(id)?.head;
    let purpose = to.wishes().purpose;
    let named = to.name().filter(|name| is_uuid(name)).map(str::to_owned);
    let session = named.unwrap_or_else(|| name_of(&head));
    let envelope = Envelope { session, agent: None, cwd: head.workspace.clone(), purpose };
    let mut exported = Exported::default();
    let mut files = BTreeMap::new();
    let beside = to.has_folder().then_some(&mut files);
    transcript(well, &head, &envelope, to.main()?, beside, &mut exported)?;
    for (name, text) in files {
        put(to, &format!("tool-results/{name}"), &text)?;
    }
    let mut waiting = subagents(well, id)?;
    while let Some(info) = waiting.pop() {
        let head = info.head;
        waiting.extend(subagents(well, &head.id)?);
        let agent = agent_of(&head);
        let name = format!("subagents/agent-{agent}.jsonl");
        let cwd = head.workspace.clone();
        let envelope = Envelope {
            session: envelope.session.clone(),
            agent: Some(agent.clone()),
            cwd,
            purpose,
        };
        let Some(mut file) = to.file(&name)? else {
            exported.losses.name(SUBAGENTS, head.id.as_str());
            continue;
        };
        transcript(well, &head, &envelope, &mut file, None, &mut exported)?;
        file.flush().map_err(Error::Write)?;
        let meta = meta(well, &head)?;
        put(to, &format!("subagents/agent-{agent}.meta.json"), &meta)?;
    }
    Ok(exported)
}

fn put(to: &mut Outlet<'_>, name: &str, text: &str) -> Result<()> {
    let Some(mut file) = to.file(name)? else { return Err(Error::Shape { wants: "a folder" }) };
    file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(Error::Write)
}

/// The session's name there: its own if it came from there, else one that is made of the
/// name here.
pub(super) fn name_of(head: &Head) -> String {
    let source = head.source.as_ref().filter(|source| source.system == SYSTEM);
    match source {
        Some(source) if is_uuid(&source.id) => source.id.clone(),
        _ if is_uuid(head.id.as_str()) => head.id.to_string(),
        _ => EventId::derived(format!("claude\0{}", head.id).as_bytes()).to_string(),
    }
}

fn agent_of(head: &Head) -> String {
    let source = head.source.as_ref().filter(|source| source.system == SYSTEM);
    let own = source.and_then(|source| Some(source.id.rsplit_once('.')?.1.to_owned()));
    let plain = |name: &String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    own.filter(plain).unwrap_or_else(|| {
        let derived = EventId::derived(head.id.as_str().as_bytes()).to_string();
        derived.replace('-', "")[..16].to_owned()
    })
}

/// What a subagent's own file says of it.
fn meta(well: &Stepwell, head: &Head) -> Result<String> {
    let facts = well.store().keyed_events(&head.id, &[Kind::Foreign])?;
    let kept = facts.into_iter().rev().find_map(|fact| match fact.event {
        Event::Foreign(foreign) if foreign.system == SYSTEM => Some(foreign.data),
        _ => None,
    });
    let description = head.task.lines().next().unwrap_or_default();
    Ok(kept.unwrap_or_else(|| {
        json!({"agentType": head.agent, "description": description}).to_string()
    }))
}

fn transcript(
    well: &Stepwell,
    head: &Head,
    envelope: &Envelope,
    to: &mut dyn Write,
    files: Option<&mut BTreeMap<String, String>>,
    exported: &mut Exported,
) -> Result<()> {
    let there = envelope.id();
    let same = original::write_file(well, head, (SYSTEM, &there), envelope.purpose, to)?;
    // What lies beside a transcript that is written as it came is found on the way.
    let mut nowhere = std::io::sink();
    let to: &mut dyn Write = if same.is_some() { &mut nowhere } else { to };
    let mark = mark_of(well, head, (SYSTEM, &there))?;
    let is_new = mark.is_some() && envelope.purpose == Purpose::Continue;
    let mut writing = Writing {
        well,
        id: &head.id,
        envelope,
        to,
        files,
        losses: Losses::default(),
        waiting: None,
        rows: Rows::default(),
        live: is_new.then(|| live(well, head)).transpose()?,
        tips: Vec::new(),
        calls: Calls::default(),
        itself: mark.is_none() && envelope.purpose == Purpose::Keep,
        open: Open::default(),
        told: Transcript::default(),
    };
    if let Some(mark) = mark {
        writing.put(&marked(&envelope.session, &mark))?;
    }
    let mut events = 0;
    let damage = each_event(well, &head.id, &mut |event| {
        events += 1;
        writing.event(event)
    })?;
    writing.flush_waiting()?;
    writing.answer_calls(None)?;
    writing.end()?;
    let form = Form {
        system: SYSTEM,
        names_models: true,
        names_agent: envelope.agent.is_some(),
        names_costs: false,
        provider: Some(PROVIDER),
    };
    writing.told.name_losses(&mut writing.losses, head, form);
    if same.is_none() {
        exported.losses.extend(std::mem::take(&mut writing.losses));
    }
    exported.sessions += 1;
    exported.events += events;
    exported.damaged.extend(damage.map(|damage| (head.id.clone(), damage)));
    to.flush().map_err(Error::Write)
}

/// The branch that another agent goes on with under a new name. The others are left out, since
/// Claude Code brings back results of calls that it finds on any branch. Under its own name the
/// session stays whole: an import knows it again.
fn live(well: &Stepwell, head: &Head) -> Result<Timeline> {
    let moves = well.store().keyed_events(&head.id, &[Kind::Rewound, Kind::Undone])?;
    Ok(Timeline::at(head.seq, moves.iter()))
}

struct Writing<'a> {
    well: &'a Stepwell,
    id: &'a SessionId,
    envelope: &'a Envelope,
    to: &'a mut dyn Write,
    /// Files that belong beside the transcript, if there can be any.
    files: Option<&'a mut BTreeMap<String, String>>,
    losses: Losses,
    /// An event whose own data may follow.
    waiting: Option<Recorded>,
    /// The lines that were written.
    rows: Rows,
    /// The branch that is written, if others are left out.
    live: Option<Timeline>,
    /// The line that the next one follows, after each event that changed that.
    tips: Vec<(Seq, Option<String>)>,
    calls: Calls,
    /// Is it written under its own name, to be what it was there?
    itself: bool,
    open: Open,
    told: Transcript,
}

/// What is known of calls that wait for their results where the transcript stands.
#[derive(Default)]
struct Open {
    calls: Unanswered,
    /// Did it go back, so that they are to be found anew?
    went_back: bool,
    /// The names of lines that say what became of calls without a result.
    answers: HashSet<String>,
    /// A line that another one was put behind: what followed it follows that one.
    moved: Option<(String, String)>,
}

impl Writing<'_> {
    fn event(&mut self, recorded: Recorded) -> Result<()> {
        if let Event::Foreign(Foreign { system, about: About::Event, data }) = &recorded.event
            && system == SYSTEM
            && let Some(event) = self.waiting.take()
        {
            return self.returned(&event, data);
        }
        self.flush_waiting()?;
        self.open.calls.happened(&recorded);
        if self.live.as_ref().is_some_and(|live| !live.contains(recorded.seq)) {
            return Ok(());
        }
        match &recorded.event {
            Event::Message(_) | Event::Edited(_) | Event::Compacted(_) | Event::Error(_) => {
                self.waiting = Some(recorded);
                Ok(())
            }
            Event::Foreign(Foreign { system, about, data }) => match about {
                _ if system != SYSTEM => self.keep(&recorded, FOREIGN),
                About::Itself => self.alone(&recorded, data),
                // A subagent's is written to a file of its own; nothing else has one.
                About::Session | About::Event => Ok(()),
            },
            Event::Rewound(rewound) if rewound.scope.moves_view() => {
                let tip = self.tip_at(rewound.to);
                self.go_back(recorded.seq, tip);
                Ok(())
            }
            Event::Undone(Undone::Rewind { of, scope, .. }) if scope.moves_view() => {
                let tip = self.tip_at(of.prev());
                self.go_back(recorded.seq, tip);
                Ok(())
            }
            Event::Undone(Undone::Compaction { of }) => {
                let tip = self.tip_at(of.prev());
                self.tips.push((recorded.seq, tip));
                self.show_again(&recorded, *of)
            }
            // Told by the lines themselves.
            Event::Step(_) | Event::Status(_) => Ok(()),
            Event::Created(created) => {
                let ours = created.source.as_ref().is_some_and(|it| it.system == SYSTEM);
                if ours { Ok(()) } else { self.put_aside(&recorded) }
            }
            _ => self.keep(&recorded, word_for(&recorded.event)),
        }
    }

    /// Writes what waits, which has no data of the system's own.
    fn flush_waiting(&mut self) -> Result<()> {
        let Some(recorded) = self.waiting.take() else { return Ok(()) };
        match &recorded.event {
            Event::Message(said) => self.message(&recorded, said),
            Event::Compacted(compacted) if compacted.lane == Lane::main() => {
                self.compacted(&recorded, compacted)
            }
            Event::Edited(edited) => self.edited(&recorded, edited),
            event => self.keep(&recorded, word_for(event)),
        }
    }

    fn edited(&mut self, recorded: &Recorded, edited: &Edited) -> Result<()> {
        if let Change::Set(label) = &edited.label {
            let session = &self.envelope.session;
            let line = json!({"type": "custom-title", "customTitle": label, "sessionId": session});
            self.put(&line.to_string())?;
        }
        let rest = Edited { label: Change::Keep, ..without_facts(edited) };
        match rest == Edited::default() {
            true => Ok(()),
            false => self.keep(recorded, word_for(&recorded.event)),
        }
    }

    fn message(&mut self, recorded: &Recorded, said: &Message) -> Result<()> {
        if said.lane != Lane::main() {
            return self.keep(recorded, "messages of other lanes");
        }
        if said.role == Role::System {
            return self.keep(recorded, "system messages");
        }
        if said.results().next().is_none() {
            self.answer_calls(Some(recorded.seq))?;
        }
        let uuid = self.uuid(recorded.seq, 0);
        let mut spares = Vec::new();
        let Some(line) = message(said, &uuid, &mut self.calls, &mut spares) else {
            return self.keep(recorded, "messages without a word that can be sent");
        };
        self.open.calls.said(recorded, said);
        self.told.said(said, recorded.at, Said::Here);
        self.line(recorded, &uuid, &line)?;
        for it in spares {
            self.losses.count(it.what);
            self.put(&spare_line(&self.envelope.session, &message_id(&uuid), &it))?;
        }
        Ok(())
    }

    /// The next line follows an earlier one.
    fn go_back(&mut self, seq: Seq, tip: Option<String>) {
        self.tips.push((seq, tip));
        self.told.went_back();
        self.open.calls.clear();
        self.open.went_back = true;
    }

    /// Says of calls that have no result what is known of them. Without that, some versions
    /// leave out the whole answer that made them, and its commands run again.
    fn answer_calls(&mut self, before: Option<Seq>) -> Result<()> {
        if std::mem::take(&mut self.open.went_back) && !(self.itself && before.is_none()) {
            let to = match before {
                Some(before) => before.prev(),
                None => self.well.info(self.id)?.head.seq,
            };
            let is_answered = self.tip().is_some_and(|tip| self.open.answers.contains(&tip));
            if !is_answered {
                self.open.calls = Unanswered::after(self.well, self.id, to)?;
            }
        }
        let due = self.open.calls.due(self.well, self.id, before)?;
        let Some(first) = due.first() else { return Ok(()) };
        let (uuid, parent) = (self.uuid(first.seq, 1), self.tip());
        let answer = self.open.calls.answer(&due);
        let Some(line) = message(&answer, &uuid, &mut self.calls, &mut Vec::new()) else {
            return Ok(());
        };
        let spot = Spot { uuid: &uuid, parent: parent.as_deref(), at: first.at };
        let line = self.envelope.line(&spot, &line);
        self.note(&line);
        let seq = self.tips.last().map_or(first.seq, |(seq, _)| *seq);
        self.tips.push((seq, Some(uuid.clone())));
        self.open.answers.insert(uuid.clone());
        self.open.moved = parent.map(|parent| (parent, uuid));
        self.put(&line)
    }

    /// A message that came from there. In the session itself, calls that Claude Code left
    /// without a result stay so.
    fn returned_message(&mut self, recorded: &Recorded, message: &Message) -> Result<()> {
        if message.lane != Lane::main() {
            return Ok(());
        }
        self.told.said(message, recorded.at, Said::There);
        let answers = message.results().next().is_some();
        match answers {
            true => {}
            false if self.itself => self.open.calls.clear(),
            false => self.answer_calls(Some(recorded.seq))?,
        }
        if self.itself {
            self.open.went_back = false;
        }
        if !self.itself || answers {
            self.open.calls.said(recorded, message);
        }
        Ok(())
    }

    /// A compaction, and what stays in view behind its summary.
    fn compacted(&mut self, recorded: &Recorded, compacted: &Compacted) -> Result<()> {
        let uuid = self.uuid(recorded.seq, 0);
        let line = boundary(self.tip().as_deref(), compacted.tokens_before);
        self.line(recorded, &uuid, &line)?;
        if let Some(text) = &compacted.summary {
            let uuid = self.uuid(recorded.seq, 1);
            self.line(recorded, &uuid, &summary(text))?;
        }
        self.show_again(recorded, Seq::ZERO)
    }

    /// Writes again what the model is shown, after `after`, but for a summary.
    fn show_again(&mut self, recorded: &Recorded, after: Seq) -> Result<()> {
        let span = Span { to: recorded.seq, ..Span::ALL };
        let events = self.well.store().events(self.id, span)?.events;
        let view = View::of(&Lane::main(), events);
        // In a view no call is without a result.
        self.open.calls.clear();
        self.open.went_back = false;
        let mut calls = Calls::default();
        for (n, shown) in view.messages.iter().enumerate() {
            if shown.made == MessageOrigin::Summary || shown.seq <= after {
                continue;
            }
            let uuid = self.uuid(recorded.seq, n + 2);
            if let Some(line) = message(&shown.message, &uuid, &mut calls, &mut Vec::new()) {
                self.line(recorded, &uuid, &line)?;
            }
        }
        Ok(())
    }

    /// Writes a line for what was recorded here, behind the last one.
    fn line(&mut self, recorded: &Recorded, uuid: &str, more: &serde_json::Value) -> Result<()> {
        let parent = self.tip();
        let spot = Spot { uuid, parent: parent.as_deref(), at: recorded.at };
        let line = self.envelope.line(&spot, more);
        self.note(&line);
        self.tips.push((recorded.seq, Some(uuid.to_owned())));
        self.put(&line)
    }

    /// A line of ours is written.
    fn note(&mut self, line: &str) {
        if let Ok(fields) = Fields::parse(line) {
            self.rows.note(&fields, fields.text("parentUuid").as_deref());
        }
    }

    /// Says where the conversation ends, if Claude Code would go on elsewhere.
    fn end(&mut self) -> Result<()> {
        let tip = self.tip();
        let spoken = self.tips.iter().filter_map(|(_, tip)| tip.as_deref().map(key));
        match self.rows.end(&spoken.collect()) {
            Some(end) if end != tip.as_deref().map(key) => {
                self.put(&ends_with(&self.envelope.session, tip.as_deref()))
            }
            _ => Ok(()),
        }
    }

    /// Writes what came from there, as it was.
    fn returned(&mut self, recorded: &Recorded, data: &str) -> Result<()> {
        let summary;
        let parts = match &recorded.event {
            Event::Message(message) => &message.parts[..],
            Event::Compacted(compacted) => {
                summary = compacted.summary.as_deref().map(Part::text);
                summary.as_slice()
            }
            _ => &[],
        };
        match &recorded.event {
            Event::Message(message) => self.returned_message(recorded, message)?,
            Event::Compacted(_) => self.open.calls.clear(),
            _ => {}
        }
        let whole = matches!(recorded.event, Event::Error(_) | Event::Edited(_));
        let places: Vec<usize> = data
            .lines()
            .filter_map(|line| Fields::parse(line).ok())
            .filter(is_spare)
            .filter_map(|line| leftover_parts::place(&line))
            .collect();
        let within = leftover_parts::without(parts, &places);
        let mut within = within.into_iter();
        for text in data.lines().filter(|line| !line.is_empty()) {
            let Ok(fields) = Fields::parse(text) else { continue };
            if is_spare(&fields)
                && let Some(text) = leftover_parts::filled(&fields, parts)
                && let Ok(fields) = Fields::parse(&text)
            {
                self.again(&text, &fields, None)?;
                continue;
            }
            let message = match (fields.object("message"), whole_parts(text, &fields)) {
                (Some(message), None) if !whole => Some(refill(&message, &mut within)),
                (Some(_), Some(parts)) if parts > 0 => {
                    within.nth(parts - 1);
                    None
                }
                _ => None,
            };
            self.again(text.trim_start(), &fields, message.as_deref())?;
            let uuid = fields.text("uuid").filter(|_| is_told(&fields));
            if let Some(uuid) = uuid {
                self.tips.push((recorded.seq, Some(uuid.into_owned())));
            }
        }
        if let Event::Message(message) = &recorded.event {
            message.calls().for_each(|call| self.calls.known(&call.id, &call.name));
        }
        Ok(())
    }

    /// A line that stands alone, or a file beside the transcript.
    fn alone(&mut self, recorded: &Recorded, data: &str) -> Result<()> {
        let Ok(fields) = Fields::parse(data) else { return Ok(()) };
        // A transcript may say what it likes: a name that leads elsewhere is only a line.
        let name = fields.text("toolResultFile");
        let name = name.filter(|name| !name.contains(['/', '\\', '\0']) && !name.starts_with('.'));
        match (name, fields.text("text")) {
            (Some(name), Some(text)) => match &mut self.files {
                Some(files) => {
                    // It is told again whenever the session has grown; the last word counts.
                    files.insert(name.into_owned(), text.into_owned());
                    Ok(())
                }
                None => {
                    self.losses.name("files beside the transcript", name);
                    self.put_aside(recorded)
                }
            },
            _ => self.again(data, &fields, None),
        }
    }

    /// Writes a line once, under the transcript's own session.
    fn again(&mut self, text: &str, fields: &Fields<'_>, message: Option<&str>) -> Result<()> {
        if fields.text("uuid").is_some_and(|uuid| self.rows.has(&uuid)) {
            return Ok(());
        }
        let mut changes: Vec<(&str, String)> = Vec::new();
        changes.extend(message.map(|message| ("message", message.to_owned())));
        let session = quoted(&self.envelope.session);
        if fields.raw("sessionId").is_some_and(|raw| raw != session) {
            changes.push(("sessionId", session));
        }
        let parent = fields.text("parentUuid");
        let parent = parent.and_then(|parent| self.parent(parent.into_owned()));
        if parent.as_deref() != fields.text("parentUuid").as_deref() {
            changes.push(("parentUuid", parent.as_deref().map_or("null".to_owned(), quoted)));
        }
        self.rows.note(fields, parent.as_deref());
        if changes.is_empty() {
            return self.put(text);
        }
        let changes: Vec<_> =
            changes.iter().map(|(name, raw)| (*name, Some(raw.as_str()))).collect();
        self.put(&fields.rewritten(&changes))
    }

    /// What a line follows: what it followed there, or what was put behind that. Where branches are
    /// left out, it may have followed one of them.
    fn parent(&self, there: String) -> Option<String> {
        match &self.open.moved {
            Some((from, to)) if *from == there => Some(to.clone()),
            _ if self.live.is_some() && !self.rows.has(&there) => self.tip(),
            _ => Some(there),
        }
    }

    /// Keeps an event that has no place in a transcript on a line that the system passes
    /// over, and says so.
    fn keep(&mut self, recorded: &Recorded, what: &'static str) -> Result<()> {
        if is_facts(&recorded.event) {
            return Ok(());
        }
        count_event(&mut self.losses, what, &recorded.event);
        self.put_aside(recorded)
    }

    /// Keeps an event on a line that the system passes over.
    fn put_aside(&mut self, recorded: &Recorded) -> Result<()> {
        let event = to_be_kept(recorded).map_err(|error| Error::Write(error.into()))?;
        self.put(&kept(&self.envelope.session, &event))
    }

    fn put(&mut self, line: &str) -> Result<()> {
        self.to
            .write_all(line.as_bytes())
            .and_then(|()| self.to.write_all(b"\n"))
            .map_err(Error::Write)
    }

    fn tip(&self) -> Option<String> {
        self.tips.last().and_then(|(_, tip)| tip.clone())
    }

    fn tip_at(&self, seq: Seq) -> Option<String> {
        let after = self.tips.partition_point(|(at, _)| *at <= seq);
        after.checked_sub(1).and_then(|at| self.tips[at].1.clone())
    }

    fn uuid(&self, seq: Seq, n: usize) -> String {
        let agent = self.envelope.agent.as_deref().unwrap_or_default();
        let of = format!("{}\0{agent}\0{seq}\0{n}", self.envelope.session);
        EventId::derived(of.as_bytes()).to_string()
    }
}

/// Is it the line of a part that has no place in a message?
fn is_spare(line: &Fields<'_>) -> bool {
    line.text("type").as_deref() == Some(KEPT) && line.has("of")
}

/// Is the line part of the conversation?
fn is_told(fields: &Fields<'_>) -> bool {
    matches!(fields.text("type").as_deref(), Some("user" | "assistant" | "system"))
        && (!fields.is_true("isSidechain") || fields.has("agentId"))
}
