//! Writing rollouts.

use std::collections::{HashSet, VecDeque};
use std::io::Write;

use serde_json::{Value, json};
use stepwell::log::Head;
use stepwell::model::{About, EventId, Foreign, Kind, Part, Role, Time, Usage};
use stepwell::store::Span;
use stepwell::{Event, Lane, Message, Recorded, Seq, SessionId, SessionInfo, Stepwell, View};

use super::item::refill;
use super::line::{Parent, items, meta, shown, tokens};
use super::order::in_order;
use super::{SUBAGENTS_FOLDER, SYSTEM, rollout_name};
use crate::json::fields::{Fields, quoted};
use crate::original;
use crate::read::mark::{CONTINUES, mark_of};
use crate::read::neutral::{KEPT, is_facts, to_be_kept};
use crate::snapshot::TimeForm;
use crate::write::facts::{Form, Said, Transcript};
use crate::write::leftover_parts;
use crate::write::unanswered::Unanswered;
use crate::write::writer::{
    Exported, FOREIGN, Losses, Outlet, Purpose, SUBAGENTS, count_event, each_event, is_uuid,
    subagents, word_for,
};
use crate::{Error, Result};

/// The kind of an item that calls a tool with free text.
const CUSTOM: &str = "custom_tool_call";

/// The kinds of items that call a tool.
const CALLS: [&str; 3] = ["function_call", CUSTOM, "local_shell_call"];

/// Writes a session and, into the folder beside it, those of its subagents.
pub(super) fn write(well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
    let head = well.info(id)?.head;
    let file = to.name().map(str::to_owned);
    let purpose = to.wishes().purpose;
    let name = thread(&head, file.as_deref());
    let there = file.as_deref().and_then(name_in).unwrap_or(&name);
    let mut exported = Exported::default();
    let named = Named { name: there, parent: None, purpose };
    rollout(well, &head, &named, to.main()?, &mut exported)?;
    let mut names = HashSet::from([there.to_owned()]);
    let above = Parent { thread: name, depth: 1 };
    let mut waiting: VecDeque<(Parent, SessionInfo)> =
        subagents(well, id)?.into_iter().map(|it| (above.clone(), it)).collect();
    while let Some((parent, SessionInfo { head, .. })) = waiting.pop_front() {
        let mut name = file_name(&head);
        if !names.insert(name.clone()) {
            // Sessions that came by different ways may have one name.
            name = derived(&head);
            names.insert(name.clone());
        }
        let above = Parent { thread: thread_of(&name).to_owned(), depth: parent.depth + 1 };
        let children = subagents(well, &head.id)?;
        waiting.extend(children.into_iter().map(|it| (above.clone(), it)));
        let file = rollout_name(&head, &name);
        let Some(mut file) = to.file(&format!("{SUBAGENTS_FOLDER}/{file}"))? else {
            exported.losses.name(SUBAGENTS, head.id.as_str());
            continue;
        };
        let named = Named { name: &name, parent: Some(&parent), purpose };
        rollout(well, &head, &named, &mut file, &mut exported)?;
    }
    Ok(exported)
}

/// Under which name a rollout is written, and what for.
struct Named<'a> {
    /// The name that its file bears.
    name: &'a str,
    /// The session that started it.
    parent: Option<&'a Parent>,
    purpose: Purpose,
}

/// Writes one session.
fn rollout(
    well: &Stepwell,
    head: &Head,
    named: &Named<'_>,
    to: &mut dyn Write,
    exported: &mut Exported,
) -> Result<()> {
    let there = (SYSTEM, named.name);
    if let Some(same) = original::write_file(well, head, there, named.purpose, to)? {
        exported.add(same);
        return Ok(());
    }
    let first = first_line(well, head, thread_of(named.name), named.parent)?;
    let mark = mark_of(well, head, there)?;
    let id = &head.id;
    let mut writing = Writing {
        well,
        id,
        to,
        losses: Losses::default(),
        waiting: None,
        total: Usage::default(),
        ordinal: None,
        itself: mark.is_none() && named.purpose == Purpose::Keep,
        unanswered: Unanswered::default(),
        custom: HashSet::new(),
        told: Transcript::default(),
    };
    writing.put(&first)?;
    if let Some(mark) = mark {
        writing.line(head.created_at, KEPT, &json!({CONTINUES: mark}))?;
    }
    let damage = each_event(well, id, &mut |event| {
        exported.events += 1;
        writing.event(event)
    })?;
    writing.flush_waiting()?;
    writing.answer_calls(None)?;
    let form = Form {
        system: SYSTEM,
        names_models: false,
        names_agent: false,
        names_costs: false,
        provider: None,
    };
    writing.told.name_losses(&mut writing.losses, head, form);
    writing.to.flush().map_err(Error::Write)?;
    exported.losses.extend(writing.losses);
    exported.sessions += 1;
    exported.damaged.extend(damage.map(|damage| (id.clone(), damage)));
    Ok(())
}

/// The session's thread there: what its file says, its own if it came from there, or one that
/// is made of the name here.
pub(super) fn thread(head: &Head, file: Option<&str>) -> String {
    let own = source_id(head).and_then(|id| id.get(..36));
    let names =
        [file.and_then(name_in).and_then(|name| name.get(..36)), own, Some(head.id.as_str())];
    names
        .into_iter()
        .flatten()
        .find(|name| is_uuid(name))
        .map_or_else(|| derived(head), str::to_owned)
}

fn derived(head: &Head) -> String {
    EventId::derived(format!("codex\0{}", head.id).as_bytes()).to_string()
}

/// The thread that a rollout's name begins with.
fn thread_of(name: &str) -> &str {
    name.get(..36).unwrap_or(name)
}

/// What a rollout's file is called after its time: its thread, and of one that goes on from
/// another its own name as well.
pub(super) fn file_name(head: &Head) -> String {
    let own = source_id(head).filter(|id| is_rollout(id));
    own.map_or_else(|| thread(head, None), str::to_owned)
}

/// Is it the name of a rollout: that of its thread, with or without one of its own?
fn is_rollout(name: &str) -> bool {
    let (thread, rollout) = name.split_once('_').unwrap_or((name, name));
    is_uuid(thread) && is_uuid(rollout)
}

/// The rollout that a file's name ends with.
fn name_in(file: &str) -> Option<&str> {
    let back = |n: usize| file.get(file.len().checked_sub(n)?..);
    let whole = back(73).filter(|name| name.contains('_') && is_rollout(name));
    whole.or_else(|| back(36).filter(|name| is_uuid(name)))
}

fn source_id(head: &Head) -> Option<&str> {
    let source = head.source.as_ref().filter(|source| source.system == SYSTEM);
    source.map(|source| source.id.as_str())
}

/// The line that is about the whole session: as it came, or made anew.
fn first_line(well: &Stepwell, head: &Head, name: &str, parent: Option<&Parent>) -> Result<String> {
    let facts = well.store().keyed_events(&head.id, &[Kind::Foreign])?;
    let kept = facts.into_iter().rev().find_map(|fact| match fact.event {
        Event::Foreign(foreign) if foreign.system == SYSTEM => Some(foreign.data),
        _ => None,
    });
    let Some(kept) = kept else {
        let (at, payload) = (TimeForm::Millis.text(head.created_at), meta(head, name, parent));
        let line = json!({"timestamp": at, "type": "session_meta", "payload": payload});
        return Ok(in_order(&line));
    };
    let Ok(line) = Fields::parse(&kept) else { return Ok(kept) };
    let payload = line.object("payload").unwrap_or_default();
    let name = quoted(name);
    let source = parent.and_then(|parent| renamed_parent(&payload, &parent.thread));
    if payload.raw("id") == Some(&name) && source.is_none() {
        return Ok(kept);
    }
    let source = source.as_deref().or(payload.raw("source"));
    let payload =
        payload.rewritten(&[("id", Some(&name)), ("session_id", Some(&name)), ("source", source)]);
    Ok(line.rewritten(&[("payload", Some(&payload))]))
}

/// The source of a subagent's session whose parent has another name now.
fn renamed_parent(meta: &Fields<'_>, parent: &str) -> Option<String> {
    let source = meta.object("source")?;
    let subagent = source.object("subagent")?;
    let spawn = subagent.object("thread_spawn")?;
    let parent = quoted(parent);
    if spawn.raw("parent_thread_id") == Some(&parent) {
        return None;
    }
    let spawn = spawn.rewritten(&[("parent_thread_id", Some(&parent))]);
    let subagent = subagent.rewritten(&[("thread_spawn", Some(&spawn))]);
    Some(source.rewritten(&[("subagent", Some(&subagent))]))
}

struct Writing<'a> {
    well: &'a Stepwell,
    id: &'a SessionId,
    to: &'a mut dyn Write,
    losses: Losses,
    /// An event whose own data may follow.
    waiting: Option<Recorded>,
    /// Tokens until now.
    total: Usage,
    /// The last line's number, where lines have one.
    ordinal: Option<u64>,
    /// Is it written under its own name, to be what it was there?
    itself: bool,
    /// Calls that wait for their results, and those of them whose input is free text.
    unanswered: Unanswered,
    custom: HashSet<String>,
    told: Transcript,
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
        self.unanswered.happened(&recorded);
        match &recorded.event {
            Event::Message(_) | Event::Compacted(_) | Event::Rewound(_) => {
                self.waiting = Some(recorded);
                Ok(())
            }
            Event::Foreign(Foreign { system, about, data }) => match about {
                _ if system != SYSTEM => self.keep(&recorded, FOREIGN),
                About::Itself => self.put(data),
                About::Session | About::Event => Ok(()),
            },
            Event::Undone(_) => self.replace(&recorded),
            // Told by the lines themselves.
            Event::Step(_) | Event::Status(_) => Ok(()),
            Event::Created(created) => {
                let ours = created.source.as_ref().is_some_and(|it| it.system == SYSTEM);
                if ours { Ok(()) } else { self.put_aside(&recorded) }
            }
            event => self.keep(&recorded, word_for(event)),
        }
    }

    /// Writes what waits, which has no data of the system's own.
    fn flush_waiting(&mut self) -> Result<()> {
        let Some(recorded) = self.waiting.take() else { return Ok(()) };
        match &recorded.event {
            Event::Message(message) if message.lane != Lane::main() => {
                self.keep(&recorded, "messages of other lanes")
            }
            Event::Message(message) => {
                if message.role != Role::Tool {
                    self.answer_calls(Some(recorded.seq))?;
                }
                self.unanswered.said(&recorded, message);
                self.told.said(message, recorded.at, Said::Here);
                self.message(recorded.at, message)
            }
            Event::Compacted(compacted) if compacted.lane != Lane::main() => {
                self.keep(&recorded, "compactions of other lanes")
            }
            Event::Rewound(rewound) if !rewound.scope.moves_view() => {
                self.keep(&recorded, word_for(&recorded.event))
            }
            _ => self.replace(&recorded),
        }
    }

    fn message(&mut self, at: Time, message: &Message) -> Result<()> {
        let mut spares = Vec::new();
        for item in items(message, &mut spares) {
            self.line(at, "response_item", &item)?;
        }
        for spare in spares {
            self.losses.count(spare.what);
            self.line(at, KEPT, &spare.line())?;
        }
        if let Some(shown) = shown(message) {
            self.line(at, "event_msg", &shown)?;
        }
        if message.role == Role::Assistant {
            self.total += message.usage.unwrap_or_default();
            let line = tokens(message.usage, self.total);
            self.line(at, "event_msg", &line)?;
        }
        Ok(())
    }

    /// Says of calls that have no result what is known of them: no provider takes a call
    /// without one, and Codex would call it aborted.
    fn answer_calls(&mut self, before: Option<Seq>) -> Result<()> {
        let due = self.unanswered.due(self.well, self.id, before)?;
        let Some(at) = due.first().map(|call| call.at) else { return Ok(()) };
        let answer = self.unanswered.answer(&due);
        // That it is an error is said by its words.
        for mut item in items(&answer, &mut Vec::new()) {
            if item["call_id"].as_str().is_some_and(|id| self.custom.remove(id)) {
                item["type"] = json!("custom_tool_call_output");
            }
            self.line(at, "response_item", &item)?;
        }
        Ok(())
    }

    /// Replaces all that was said by what the model is shown now: whatever was rewound,
    /// compacted or taken back, that is what a rollout can say of it.
    fn replace(&mut self, recorded: &Recorded) -> Result<()> {
        let span = Span { to: recorded.seq, ..Span::ALL };
        let view = View::of(&Lane::main(), self.well.store().events(self.id, span)?.events);
        // In a view no call is without a result.
        self.unanswered.clear();
        self.told.went_back();
        let mut history: Vec<Value> = Vec::new();
        for shown in &view.messages {
            history.extend(items(&shown.message, &mut Vec::new()));
        }
        let message = match &recorded.event {
            Event::Compacted(compacted) => compacted.summary.as_deref().unwrap_or_default(),
            _ => "",
        };
        let payload = json!({"message": message, "replacement_history": history});
        self.line(recorded.at, "compacted", &payload)
    }

    /// Writes what came from there, as it was.
    fn returned(&mut self, recorded: &Recorded, data: &str) -> Result<()> {
        let parts = match &recorded.event {
            Event::Message(message) => {
                self.total += message.usage.unwrap_or_default();
                self.returned_message(recorded, message)?;
                &message.parts[..]
            }
            _ => {
                self.unanswered.clear();
                &[]
            }
        };
        let places: Vec<usize> = lines(data)
            .filter(|line| line.text("type").as_deref() == Some(KEPT))
            .filter_map(|line| leftover_parts::place(&line.object("payload")?))
            .collect();
        let within = leftover_parts::without(parts, &places);
        let mut within = within.into_iter();
        let mut calls = parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        });
        for text in data.lines().filter(|line| !line.is_empty()) {
            let Ok(line) = Fields::parse(text) else { continue };
            self.ordinal = line.get("ordinal").or(self.ordinal);
            let payload = line.object("payload");
            let kind = payload.as_ref().and_then(|it| it.text("type"));
            if kind.as_deref().is_some_and(|kind| CALLS.contains(&kind)) {
                let call = calls.next().filter(|_| kind.as_deref() == Some(CUSTOM));
                self.custom.extend(call.map(|call| call.id.clone()));
            }
            let payload = payload.and_then(|payload| match line.text("type").as_deref() {
                Some("response_item") => Some(refill(&payload, &mut within)),
                Some(KEPT) => leftover_parts::filled(&payload, parts),
                _ => None,
            });
            match payload {
                Some(payload) => self.put(&line.rewritten(&[("payload", Some(&payload))]))?,
                None => self.put(text)?,
            }
        }
        Ok(())
    }

    /// A message that came from there. In the session itself, calls that Codex left without a
    /// result stay so.
    fn returned_message(&mut self, recorded: &Recorded, message: &Message) -> Result<()> {
        if message.lane != Lane::main() {
            return Ok(());
        }
        self.told.said(message, recorded.at, Said::There);
        match message.role {
            Role::Tool => {}
            _ if self.itself => self.unanswered.clear(),
            _ => self.answer_calls(Some(recorded.seq))?,
        }
        if !self.itself || message.role == Role::Tool {
            self.unanswered.said(recorded, message);
        }
        Ok(())
    }

    /// Keeps an event that has no place in a rollout on a line that the system passes over,
    /// and says so.
    fn keep(&mut self, recorded: &Recorded, what: &'static str) -> Result<()> {
        if is_facts(&recorded.event) {
            return Ok(());
        }
        count_event(&mut self.losses, what, &recorded.event);
        self.put_aside(recorded)
    }

    /// Keeps an event on a line that the system passes over.
    fn put_aside(&mut self, recorded: &Recorded) -> Result<()> {
        let event = to_be_kept(recorded).and_then(|event| serde_json::from_str::<Value>(&event));
        let event = event.map_err(|error| Error::Write(error.into()))?;
        self.line(recorded.at, KEPT, &json!({"event": event}))
    }

    /// Writes a line for what was recorded here.
    fn line(&mut self, at: Time, kind: &str, payload: &Value) -> Result<()> {
        // What is kept for Stepwell is none of Codex's objects.
        let payload = if kind == KEPT { payload.to_string() } else { in_order(payload) };
        let ordinal = self.ordinal.as_mut().map_or_else(String::new, |ordinal| {
            *ordinal += 1;
            format!(r#""ordinal":{ordinal},"#)
        });
        let (at, kind) = (quoted(&TimeForm::Millis.text(at)), quoted(kind));
        self.put(&format!(r#"{{"timestamp":{at},{ordinal}"type":{kind},"payload":{payload}}}"#))
    }

    fn put(&mut self, line: &str) -> Result<()> {
        let written = self.to.write_all(line.as_bytes());
        written.and_then(|()| self.to.write_all(b"\n")).map_err(Error::Write)
    }
}

fn lines(data: &str) -> impl Iterator<Item = Fields<'_>> {
    data.lines().filter_map(|line| Fields::parse(line).ok())
}
