//! What was said in a lane, in order: what a model is shown, and folded away what it is not.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stepwell::log::{MessageOrigin, Timeline, ViewMessage};
use stepwell::model::{Compacted, Image, Part, Role, Spent, ToolCall, ToolResult, Undone};
use stepwell::{Event, Lane, Message, Recorded, Seq, Status, View};

use super::arguments::{gist, one_line, pretty};
use super::commands;
use super::edits::edits;
use super::{Answer, Block, Call, Conversation, Entry, Fold, Mark, Picture, Speaker, Turn};
use crate::write::unanswered::Unanswered;

/// Kinds of pictures that every browser shows and that hold no code. SVG does.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Why a model is not shown something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hidden {
    Rewound,
    Compacted,
    /// It was kept, and could not be sent as it is.
    Unsent,
}

/// An entry on its way to its place.
struct Placed {
    /// Where it stands; a summary stands behind what it replaced.
    place: (Seq, bool),
    hidden: Option<Hidden>,
    entry: Entry,
}

/// Every lane's conversation, the main one first, the others as they began.
pub(super) fn conversations(events: &[Recorded], timeline: &Timeline) -> Vec<Conversation> {
    let mut lanes = vec![Lane::main()];
    for lane in events.iter().filter_map(said_in) {
        if !lanes.contains(lane) {
            lanes.push(lane.clone());
        }
    }
    let alone = lanes.len() == 1;
    let conversation = |lane: Lane| Conversation {
        entries: entries(&lane, events, timeline),
        lane: Some(lane.as_str().to_owned()).filter(|_| !alone),
    };
    let all = lanes.into_iter().map(conversation);
    all.filter(|conversation| !conversation.entries.is_empty()).collect()
}

fn said_in(event: &Recorded) -> Option<&Lane> {
    matches!(event.event, Event::Message(_)).then(|| event.event.lane()).flatten()
}

fn entries(lane: &Lane, events: &[Recorded], timeline: &Timeline) -> Vec<Entry> {
    let of_lane = |event: &&Recorded| match &event.event {
        Event::Message(_) | Event::Compacted(_) => event.event.lane() == Some(lane),
        // A rewind moves every lane, those that begin later included.
        event => matches!(event, Event::Rewound(_) | Event::Undone(_)),
    };
    let log: Vec<Recorded> = events.iter().filter(of_lane).cloned().collect();
    let known: HashMap<Seq, &Recorded> = events.iter().map(|event| (event.seq, event)).collect();
    let compactions = compactions(&log, timeline);
    let mut view = View::of(lane, log.clone());
    Unanswered::of(events, timeline, lane).explain(&mut view.messages);
    let mut placed = shown(view, &known);
    let seen: HashSet<Seq> = placed.1;
    let why = |seq: Seq| match timeline.contains(seq) {
        false => Hidden::Rewound,
        true if compactions.iter().any(|(from, to)| (*from..=*to).contains(&seq)) => {
            Hidden::Compacted
        }
        true => Hidden::Unsent,
    };
    let mut all = std::mem::take(&mut placed.0);
    for event in log.iter().filter(|event| !seen.contains(&event.seq)) {
        let Event::Message(message) = &event.event else { continue };
        hide(&mut all, event, message, why(event.seq));
    }
    if *lane == Lane::main() {
        for event in events {
            let Some(text) = mark(&event.event) else { continue };
            let hidden = Some(why(event.seq)).filter(|why| *why != Hidden::Unsent);
            let entry = Entry::Mark(Mark { at: event.at, text });
            all.push(Placed { place: (event.seq, false), hidden, entry });
        }
    }
    all.sort_by_key(|it| it.place);
    folded(all)
}

/// The ranges that are out of the view.
fn compactions(log: &[Recorded], timeline: &Timeline) -> Vec<(Seq, Seq)> {
    let live = || log.iter().filter(|event| timeline.contains(event.seq));
    let undone: HashSet<Seq> = live()
        .filter_map(|event| match &event.event {
            Event::Undone(Undone::Compaction { of }) => Some(*of),
            _ => None,
        })
        .collect();
    let range = |event: &Recorded| match &event.event {
        Event::Compacted(Compacted { from, to, .. }) if !undone.contains(&event.seq) => {
            Some((*from, *to))
        }
        _ => None,
    };
    live().filter_map(range).collect()
}

/// What a model is shown, and the messages that it is made of.
fn shown(view: View, known: &HashMap<Seq, &Recorded>) -> (Vec<Placed>, HashSet<Seq>) {
    let (mut all, mut seen): (Vec<Placed>, HashSet<Seq>) = (Vec::new(), HashSet::new());
    for ViewMessage { seq, place, made, answers, message } in view.messages {
        seen.extend(answers.into_iter().flatten());
        if made != MessageOrigin::Summary {
            seen.insert(seq);
        }
        let last = all.last_mut().and_then(|it| match &mut it.entry {
            Entry::Turn(turn) => Some(turn),
            _ => None,
        });
        match (made, last) {
            (MessageOrigin::Results, Some(asked)) => answer(asked, message.parts),
            _ => {
                let place = (place, made == MessageOrigin::Summary);
                let turn = turn(made, message, known.get(&seq).copied());
                all.push(Placed { place, hidden: None, entry: Entry::Turn(turn) });
            }
        }
    }
    (all, seen)
}

/// Adds a message that a model is not shown. Results stand behind their calls.
fn hide(all: &mut Vec<Placed>, event: &Recorded, message: &Message, why: Hidden) {
    let mut parts = message.parts.clone();
    for placed in all.iter_mut().rev().filter(|it| it.hidden == Some(why)) {
        if let Entry::Turn(turn) = &mut placed.entry {
            parts = answered(turn, parts);
        }
    }
    if parts.is_empty() && !message.parts.is_empty() {
        return;
    }
    let message = Message { parts, ..message.clone() };
    let entry = Entry::Turn(turn(MessageOrigin::Recorded, message, Some(event)));
    all.push(Placed { place: (event.seq, false), hidden: Some(why), entry });
}

/// Puts those of the results behind their calls whose calls are here; the answer is the rest.
fn answered(turn: &mut Turn, parts: Vec<Part>) -> Vec<Part> {
    let (mut here, mut rest) = (Vec::new(), Vec::new());
    for part in parts {
        let asked = |id: &str| {
            turn.blocks.iter().any(|block| {
                matches!(block, Block::Call(call) if call.id == id && call.result.is_none())
            })
        };
        match &part {
            Part::ToolResult(result) if asked(&result.call_id) => here.push(part),
            _ => rest.push(part),
        }
    }
    answer(turn, here);
    rest
}

/// Neighbours that are hidden for the same reason, under one title.
fn folded(all: Vec<Placed>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut group: Option<(Hidden, Vec<Entry>)> = None;
    for Placed { hidden, entry, .. } in all {
        match (hidden, &mut group) {
            (Some(why), Some((of, inner))) if why == *of => inner.push(entry),
            (why, _) => {
                entries.extend(group.take().and_then(fold));
                match why {
                    Some(why) => group = Some((why, vec![entry])),
                    None => entries.push(entry),
                }
            }
        }
    }
    entries.extend(group.and_then(fold));
    entries
}

fn fold((why, entries): (Hidden, Vec<Entry>)) -> Option<Entry> {
    let messages = entries.iter().filter(|entry| matches!(entry, Entry::Turn(_))).count();
    // Marks alone are not worth a fold: what happened there is told by what took it back.
    if messages == 0 {
        return None;
    }
    let reason = match why {
        Hidden::Rewound => "rewound",
        Hidden::Compacted => "compacted",
        Hidden::Unsent => "not sent to the model",
    };
    let title = match messages {
        1 => format!("1 message that was {reason}"),
        n => format!("{n} messages that were {reason}"),
    };
    Some(Entry::Fold(Fold { title, entries }))
}

/// What happened between messages, if people want to know it.
fn mark(event: &Event) -> Option<String> {
    let text = match event {
        Event::Gate(gate) => format!("Asked: {}", gate.prompt),
        Event::GateAnswered(answered) => format!("{} answered: {}", answered.who, answered.answer),
        Event::Error(failure) => format!("Error: {}", failure.message),
        Event::Checkpoint(checkpoint) => format!("Checkpoint: {}", checkpoint.name),
        Event::Phase(change) => format!("Phase: {} → {}", change.from, change.to),
        Event::Rewound(rewound) => format!("Rewound to event {}", rewound.to),
        Event::Undone(Undone::Rewind { .. }) => "The rewind was undone".to_owned(),
        Event::Status(change) if change.status == Status::Running => "Resumed".to_owned(),
        Event::Status(change) => {
            let reason = change.reason.map(|it| format!(" ({it})")).unwrap_or_default();
            let error = change.error.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
            format!("Status: {}{reason}{error}", change.status)
        }
        _ => return None,
    };
    Some(text)
}

fn turn(made: MessageOrigin, message: Message, recorded: Option<&Recorded>) -> Turn {
    let speaker = match (made, message.role) {
        (MessageOrigin::Summary, _) => Speaker::Summary,
        (_, Role::System) => Speaker::System,
        (_, Role::Assistant) => Speaker::Assistant,
        (MessageOrigin::Recorded, Role::Tool) => Speaker::Tool,
        (_, Role::User) if !message.is_from_user() => Speaker::Context,
        (_, Role::User | Role::Tool) => Speaker::User,
    };
    let block = |part: Part| match part {
        Part::Text(text) if speaker == Speaker::Context => {
            vec![Block::Aside("Context", text.text)]
        }
        Part::Text(text) if message.role == Role::User => commands::blocks(text.text),
        part => vec![plain_block(part, message.role)],
    };
    let blocks = message.parts.into_iter().flat_map(block).collect();
    let detail = recorded.map(detail).unwrap_or_default();
    Turn { speaker, at: recorded.map(|it| it.at), detail, blocks }
}

fn plain_block(part: Part, role: Role) -> Block {
    match part {
        Part::Text(text) if role == Role::System => Block::Aside("Instructions", text.text),
        Part::Text(text) => Block::Text(text.text),
        Part::Thinking(text) if text.text.trim().is_empty() => {
            Block::Aside("Thinking", "(not readable)".to_owned())
        }
        Part::Thinking(text) => Block::Aside("Thinking", text.text),
        Part::Image(image) => Block::Picture(picture(image)),
        Part::ToolCall(call) => Block::Call(called(call)),
        // A result without a call.
        Part::ToolResult(result) => Block::Text(result.text),
    }
}

fn called(ToolCall { id, name, arguments, .. }: ToolCall) -> Call {
    let gist = gist(&arguments);
    let (edits, rest) = edits(&name, &arguments);
    let arguments = rest.map(|rest| pretty(&rest)).filter(|it| it != "{}");
    Call { id, tool: one_line(&name), gist, edits, arguments, result: None }
}

/// The model, its tokens, and what they cost.
fn detail(event: &Recorded) -> String {
    let Event::Message(Message { model, usage, cost, .. }) = &event.event else {
        return String::new();
    };
    let mut detail: Vec<String> = model.iter().cloned().collect();
    if let Some(usage) = usage.filter(|usage| !usage.is_nothing()) {
        detail.push(format!("{} in, {} out", grouped(usage.input), grouped(usage.output)));
        let mut spent = Spent::default();
        spent.count(usage, *cost);
        detail.push(spent.price());
    }
    detail.join(" · ")
}

/// A number with its thousands apart.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Puts results behind the calls that they answer: by their names, or in the same order.
fn answer(asked: &mut Turn, parts: Vec<Part>) {
    for part in parts {
        let Part::ToolResult(ToolResult { call_id, text, is_error, images, .. }) = part else {
            continue;
        };
        let mut open = asked.blocks.iter_mut().filter_map(|block| match block {
            Block::Call(call) if call.result.is_none() => Some(call),
            _ => None,
        });
        let Some(first) = open.next() else { return };
        let call = match first.id == call_id {
            true => first,
            // A view names calls anew where two bear one name.
            false => open.find(|call| call.id == call_id).unwrap_or(first),
        };
        let pictures = images.into_iter().map(picture).collect();
        call.result = Some(Answer { text, failed: is_error, pictures });
    }
}

fn picture(Image { media_type, data, .. }: Image) -> Picture {
    let known = PICTURES.contains(&media_type.as_str());
    let prefix = format!("data:{media_type};base64,");
    let data = data.strip_prefix(&prefix).unwrap_or(&data);
    let sound = known && !data.is_empty() && STANDARD.decode(data).is_ok();
    Picture { base64: sound.then(|| data.to_owned()), media_type: one_line(&media_type) }
}
