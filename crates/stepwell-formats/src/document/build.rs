//! What a document shows of a session.

use std::collections::{BTreeMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stepwell::{
    Damage, Event, FileState, Head, Image, Lane, Made, Message, Part, Recorded, Role, Seq, Shown,
    Slice, Standing, State, Timeline, ToolCall, ToolResult, Undone, View,
};

use super::arguments::{gist, one_line, pretty};
use super::passages::passages;
use super::{Answer, Block, Call, Conversation, Document, List, Picture, Turn};

/// Kinds of pictures that every browser shows and that hold no code. SVG does.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

impl Document {
    /// A session as people read it, given all of its events that can be read.
    pub(crate) fn of(standing: &Standing, slice: Slice) -> Self {
        let Slice { events, scrubbed, damage } = slice;
        let head = match State::fold(&events) {
            // A head may be what is damaged; one that counts what cannot be read misleads.
            Some(state) if damage.is_some() || standing.damage.is_some() => {
                state.head.without_runner()
            }
            _ => standing.head.clone(),
        };
        let last = events.last().map_or(Seq::ZERO, |event| event.seq);
        let timeline = Timeline::at(last, events.iter());
        let lists = lists(&events, &timeline);
        let mut notes = hidden(&events, &timeline);
        if scrubbed > 0 {
            notes.push(format!("{} erased by a scrub.", events_were(scrubbed)));
        }
        if standing.trashed_at.is_some() {
            notes.push("The session is in the trash.".to_owned());
        }
        let broken = damage.as_ref().map(broken);
        notes.extend(broken.clone());
        let title = head.task.lines().map(one_line).find(|line| !line.is_empty());
        Self {
            title: title.unwrap_or_else(|| head.id.to_string()),
            attributes: attributes(&head),
            notes,
            conversations: conversations(events),
            broken,
            lists,
        }
    }
}

fn attributes(head: &Head) -> Vec<(&'static str, String)> {
    let cost = match head.spent.unpriced {
        0 => format!("${:.4}", head.spent.cost),
        _ => "?".to_owned(),
    };
    let all = [
        ("id", head.id.to_string()),
        ("status", head.status.to_string()),
        ("agent", head.agent.clone()),
        ("model", head.model.clone()),
        ("steps", head.steps.to_string()),
        ("cost", cost),
        ("began", head.created_at.to_string()),
        ("updated", head.updated_at.to_string()),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn events_were(n: u64) -> String {
    if n == 1 { "1 event was".to_owned() } else { format!("{n} events were") }
}

/// What a reader would miss: messages that were rewound or compacted away.
fn hidden(events: &[Recorded], timeline: &Timeline) -> Vec<String> {
    let live = |event: &&Recorded| timeline.contains(event.seq);
    let message = |event: &&Recorded| matches!(event.event, Event::Message(_));
    let rewound = events.iter().filter(message).filter(|event| !live(event)).count();
    let undone: HashSet<Seq> = events
        .iter()
        .filter(live)
        .filter_map(|event| match &event.event {
            Event::Undone(Undone::Compaction { of }) => Some(*of),
            _ => None,
        })
        .collect();
    let compaction = |event: &&Recorded| {
        matches!(event.event, Event::Compacted(_)) && !undone.contains(&event.seq)
    };
    let compacted = events.iter().filter(live).filter(compaction).count();
    let mut notes = Vec::new();
    match rewound {
        0 => {}
        1 => notes.push("1 message is not shown: it was rewound.".to_owned()),
        n => notes.push(format!("{n} messages are not shown: they were rewound.")),
    }
    if compacted > 0 {
        notes.push("Earlier messages are not shown: they were compacted.".to_owned());
    }
    notes
}

fn broken(Damage { seq, what }: &Damage) -> String {
    format!("The session is damaged at event {seq} ({what}). What follows could not be read.")
}

/// Every lane's conversation, the main one first, the others as they began.
fn conversations(events: Vec<Recorded>) -> Vec<Conversation> {
    let mut lanes = vec![Lane::main()];
    let mut logs: Vec<Vec<Recorded>> = vec![Vec::new()];
    for event in events {
        match (&event.event, event.event.lane()) {
            (Event::Message(_) | Event::Compacted(_), Some(lane)) => {
                let known = lanes.iter().position(|known| known == lane);
                let index = known.unwrap_or_else(|| {
                    lanes.push(lane.clone());
                    // A rewind moves every lane, those that begin later included.
                    let moves = logs[0].iter().filter(|event| moves(&event.event)).cloned();
                    let moves = moves.collect();
                    logs.push(moves);
                    lanes.len() - 1
                });
                logs[index].push(event);
            }
            (other, _) if moves(other) => logs.iter_mut().for_each(|log| log.push(event.clone())),
            _ => {}
        }
    }
    let alone = lanes.len() == 1;
    let conversation = |(lane, log): (Lane, Vec<Recorded>)| Conversation {
        turns: turns(View::of(&lane, log)),
        lane: Some(lane.as_str().to_owned()).filter(|_| !alone),
    };
    let all = lanes.into_iter().zip(logs).map(conversation);
    all.filter(|conversation| !conversation.turns.is_empty()).collect()
}

fn moves(event: &Event) -> bool {
    matches!(event, Event::Rewound(_) | Event::Undone(_))
}

fn turns(view: View) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for Shown { made, message, .. } in view.messages {
        match (made, turns.last_mut()) {
            (Made::Results, Some(asked)) => answer(asked, message),
            _ => turns.push(turn(made, message)),
        }
    }
    turns
}

fn turn(made: Made, message: Message) -> Turn {
    let speaker = match (made, message.role) {
        (Made::Summary, _) => "Summary of earlier messages",
        (_, Role::System) => "System",
        (_, Role::Assistant) => "Assistant",
        (_, Role::User | Role::Tool) => "User",
    };
    let block = |part: Part| match part {
        Part::Text(text) if message.role == Role::System => {
            Block::Aside("Instructions", passages(&text.text))
        }
        Part::Text(text) => Block::Text(passages(&text.text)),
        Part::Thinking(text) if text.text.trim().is_empty() => {
            Block::Aside("Thinking", passages("(not readable)"))
        }
        Part::Thinking(text) => Block::Aside("Thinking", passages(&text.text)),
        Part::Image(image) => Block::Picture(picture(image)),
        Part::ToolCall(ToolCall { name, arguments, .. }) => Block::Call(Call {
            tool: one_line(&name),
            gist: gist(&arguments),
            arguments: pretty(&arguments),
            result: Answer::default(),
        }),
        // A view brings results together in messages of their own.
        Part::ToolResult(result) => Block::Text(passages(&result.text)),
    };
    Turn { speaker, blocks: message.parts.into_iter().map(block).collect() }
}

/// Puts results behind the calls that they answer: a view has them in the same order.
fn answer(asked: &mut Turn, results: Message) {
    let calls = asked.blocks.iter_mut().filter_map(|block| match block {
        Block::Call(call) => Some(call),
        _ => None,
    });
    let results = results.parts.into_iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    });
    for (call, ToolResult { text, is_error, images, .. }) in calls.zip(results) {
        let pictures = images.into_iter().map(picture).collect();
        call.result = Answer { text, failed: is_error, pictures };
    }
}

fn picture(Image { media_type, data, .. }: Image) -> Picture {
    let known = PICTURES.contains(&media_type.as_str());
    let prefix = format!("data:{media_type};base64,");
    let data = data.strip_prefix(&prefix).unwrap_or(&data);
    let sound = known && !data.is_empty() && STANDARD.decode(data).is_ok();
    Picture { base64: sound.then(|| data.to_owned()), media_type: one_line(&media_type) }
}

/// Files, checkpoints and artifacts that count, by name.
fn lists(events: &[Recorded], timeline: &Timeline) -> Vec<List> {
    let mut files: BTreeMap<&str, (&FileState, &FileState, Option<&str>)> = BTreeMap::new();
    let mut checkpoints: Vec<(String, String)> = Vec::new();
    let mut artifacts: BTreeMap<&str, String> = BTreeMap::new();
    for Recorded { seq, at, event, .. } in events.iter().filter(|e| timeline.contains(e.seq)) {
        match event {
            Event::File(file) => {
                let first = (&file.before, &file.after, file.renamed_from.as_deref());
                files.entry(&file.path).or_insert(first).1 = &file.after;
            }
            Event::Checkpoint(checkpoint) => {
                // A later one of the same name takes its place.
                checkpoints.retain(|(name, _)| *name != checkpoint.name);
                checkpoints.push((checkpoint.name.clone(), format!("at event {seq}, {at}")));
            }
            Event::Artifact(artifact) => {
                artifacts.insert(&artifact.path, format!("SHA-256 {}", artifact.digest));
            }
            _ => {}
        }
    }
    let owned = |(name, detail): (&str, String)| (name.to_owned(), detail);
    let file = |(path, (before, after, from))| owned((path, change(before, after, from)));
    let lists = [
        ("Files changed", files.into_iter().map(file).collect()),
        ("Checkpoints", checkpoints),
        ("Artifacts", artifacts.into_iter().map(owned).collect()),
    ];
    let list = |(title, items): (&'static str, Vec<_>)| List { title, items };
    lists.into_iter().map(list).filter(|list| !list.items.is_empty()).collect()
}

/// What became of a file, from what was there first to what is there last.
fn change(before: &FileState, after: &FileState, renamed_from: Option<&str>) -> String {
    match (before, after, renamed_from) {
        (_, FileState::Absent, _) => "deleted".to_owned(),
        (_, _, Some(from)) => format!("renamed from {from}"),
        (FileState::Absent, _, None) => "created".to_owned(),
        _ => "changed".to_owned(),
    }
}
