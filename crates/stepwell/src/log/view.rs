//! The view: the messages of one lane that a model would be sent now.
//!
//! A pure function of the log. It applies rewinds and compactions, and pairs every tool call with a
//! result, whatever was killed, truncated or imported. It never changes the log.

use std::collections::{HashMap, HashSet};

use crate::log::timeline::Timeline;
use crate::model::{
    Compacted, Event, Lane, Message, Part, Recorded, Role, Scrubbed, Seq, SeqRanges, ToolResult,
    Undone,
};

/// The result shown for a call without one.
pub const INTERRUPTED: &str = "interrupted, outcome unknown";

/// The messages that a model would be sent for a lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The messages, in order.
    pub messages: Vec<ViewMessage>,
}

/// One message of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewMessage {
    /// The event it comes from: a message, or the compaction whose summary it is. A message of
    /// collected results has the seq of the message with the calls.
    pub seq: Seq,
    /// Its position for compactions: a summary has the last position that it replaced; everything
    /// else has its own seq.
    pub place: Seq,
    /// How it came into the view.
    pub made: MessageOrigin,
    /// For a message of collected results: the event of each part. A part without one is made up,
    /// because its call has no result.
    pub answers: Vec<Option<Seq>>,
    /// The message, without usage and cost, which belong to the log.
    pub message: Message,
}

/// How a message came into a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOrigin {
    /// As recorded.
    Recorded,
    /// As the summary of a compaction.
    Summary,
    /// As the collected results of the message before it.
    Results,
    /// As the rest of a tool's message, without its results. It is shown in the user's role,
    /// although the user did not write it.
    Aside,
}

/// How messages break the rules that all providers share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its variant means")]
pub enum Invalid {
    #[error("message {0} is empty, or has an empty text in it")]
    Empty(usize),
    #[error("message {0} has calls but is not the model's, or has results but is not a tool's")]
    Role(usize),
    #[error("message {0} has a call whose id {1:?} was used before")]
    RepeatedCall(usize, String),
    #[error("the calls of message {0} are not answered by the next one, each once and in order")]
    Unanswered(usize),
    #[error("message {0} answers a call that the message before it did not make")]
    Orphan(usize),
}

impl View {
    /// The view of `lane` after `events`: a session's events in order from the first. Kinds other
    /// than messages, compactions, rewinds, undoing and scrubs may be left out. It takes the events
    /// by value, so that a long conversation is moved and not copied.
    #[must_use]
    pub fn of(lane: &Lane, events: Vec<Recorded>) -> Self {
        Self { messages: pair(lane, items(lane, events)) }
    }

    /// The recorded messages in the view of `lane`, unchanged: calls may lack results, and
    /// summaries are left out. The events are as for [`View::of`].
    #[must_use]
    pub fn recorded(lane: &Lane, events: Vec<Recorded>) -> Vec<(Seq, Message)> {
        let items = items(lane, events).into_iter();
        let recorded = items.filter(|item| item.made == MessageOrigin::Recorded);
        recorded.map(|item| (item.seq, item.message)).collect()
    }

    /// Checks the rules that all providers share. [`View::of`] keeps them; this check is
    /// independent of it.
    pub fn check<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Result<(), Invalid> {
        let mut used: HashSet<&str> = HashSet::new();
        let mut asked: Vec<&str> = Vec::new();
        let mut count = 0;
        for (n, message) in messages.into_iter().enumerate() {
            count = n + 1;
            let answered: Vec<&str> = message.results().map(|r| r.call_id.as_str()).collect();
            let calls = message.calls().next().is_some();
            let results = message.results().next().is_some();
            if calls && message.role != Role::Assistant || results && message.role != Role::Tool {
                return Err(Invalid::Role(n));
            }
            if message.parts.is_empty() || message.parts.iter().any(is_blank) {
                return Err(Invalid::Empty(n));
            }
            if answered != asked {
                let orphan = answered.iter().any(|id| !asked.contains(id));
                return Err(if orphan { Invalid::Orphan(n) } else { Invalid::Unanswered(n - 1) });
            }
            asked = message.calls().map(|call| call.id.as_str()).collect();
            if let Some(id) = asked.iter().find(|id| !used.insert(id)) {
                return Err(Invalid::RepeatedCall(n, (*id).to_owned()));
            }
        }
        if asked.is_empty() { Ok(()) } else { Err(Invalid::Unanswered(count - 1)) }
    }
}

/// A message on its way into the view.
struct Item {
    seq: Seq,
    /// Its position for later compactions: a summary has the last position that it replaced.
    place: Seq,
    made: MessageOrigin,
    message: Message,
}

impl Item {
    fn message(seq: Seq, message: Message) -> Self {
        Self { seq, place: seq, made: MessageOrigin::Recorded, message }
    }
}

/// A lane's messages after rewinds and compactions.
fn items(lane: &Lane, events: Vec<Recorded>) -> Vec<Item> {
    let Some(last) = events.last() else { return Vec::new() };
    let timeline = Timeline::at(last.seq, events.iter());
    let undone: HashSet<Seq> = events
        .iter()
        .filter(|event| timeline.contains(event.seq))
        .filter_map(|event| match &event.event {
            Event::Undone(Undone::Compaction { of }) => Some(*of),
            _ => None,
        })
        .collect();
    let hidden: Vec<SeqRanges> = events
        .iter()
        .filter_map(|event| match &event.event {
            Event::Scrubbed(Scrubbed { hidden, .. }) if !hidden.is_empty() => Some(hidden.clone()),
            _ => None,
        })
        .collect();
    let mut shown: Vec<Item> = Vec::with_capacity(events.len());
    for Recorded { seq, event, .. } in events {
        let gone = || hidden.iter().any(|hidden| hidden.contains(seq));
        if event.lane() != Some(lane) || !timeline.contains(seq) || gone() {
            continue;
        }
        match event {
            Event::Message(message) => shown.push(Item::message(seq, message)),
            Event::Compacted(compacted) if !undone.contains(&seq) => {
                compact(&mut shown, seq, compacted);
            }
            _ => {}
        }
    }
    shown
}

/// Replaces the messages that a compaction covers with its summary.
fn compact(shown: &mut Vec<Item>, seq: Seq, compacted: Compacted) {
    let Compacted { lane, from, to, summary, pinned, .. } = compacted;
    let covered = |item: &Item| {
        let pinned = item.made == MessageOrigin::Recorded && pinned.contains(&item.seq);
        (from..=to).contains(&item.place) && !pinned
    };
    // The summary of what stays whole comes before it.
    let in_range = |item: &Item| (from..=to).contains(&item.place);
    let first = shown.iter().position(covered).or_else(|| shown.iter().position(in_range));
    shown.retain(|item| !covered(item));
    if let (Some(first), Some(summary)) = (first, summary) {
        let message = Message::user(summary).in_lane(lane);
        shown.insert(first, Item { seq, place: to, made: MessageOrigin::Summary, message });
    }
}

/// A call without a result so far.
struct Open {
    /// The id of the call and its result in the view.
    shown_id: String,
    /// The place of its result: the index of the message with results, and of the part in it.
    slot: (usize, usize),
}

/// Moves every result behind its call, makes up missing results, and drops results without a call.
/// Some providers reuse call ids in each step, so a repeated id gets a suffix, in the call and in
/// its result.
fn pair(lane: &Lane, items: Vec<Item>) -> Vec<ViewMessage> {
    let mut messages: Vec<ViewMessage> = Vec::with_capacity(items.len());
    let mut open: HashMap<String, Open> = HashMap::new();
    let mut used: HashMap<String, u64> = HashMap::new();
    for Item { seq, place, made, message } in items {
        let Message { role, author, parts, model, .. } = message;
        let mut answers = Vec::new();
        // Most messages need no change.
        let (mut own, parts) = match parts.iter().all(is_plain) {
            true => (parts, Vec::new()),
            false => (Vec::with_capacity(parts.len()), parts),
        };
        for part in parts {
            match part {
                Part::ToolResult(result) => {
                    if let Some(call) = open.remove(&result.call_id) {
                        let (index, part) = call.slot;
                        let renamed = ToolResult { call_id: call.shown_id, ..result };
                        messages[index].message.parts[part] = Part::ToolResult(renamed);
                        messages[index].answers[part] = Some(seq);
                    }
                }
                Part::ToolCall(mut call) => {
                    let shown_id = unused(&mut used, &call.id);
                    // The message itself gets the next index, and its results the one after.
                    let slot = (messages.len() + 1, answers.len());
                    answers.push(missing(&shown_id));
                    let recorded_id = std::mem::replace(&mut call.id, shown_id.clone());
                    own.push(Part::ToolCall(call));
                    open.insert(recorded_id, Open { shown_id, slot });
                }
                other if is_blank(&other) => {}
                other => own.push(other),
            }
        }
        let shown = |role, made, model, parts| {
            let message = Message { model, author, ..Message::new(role, parts) };
            let answers = Vec::new();
            ViewMessage { seq, place, made, answers, message: message.in_lane(lane.clone()) }
        };
        // Only a model makes calls. Whatever else a tool's message contains is shown in the user's
        // role.
        let (role, made) = match role {
            _ if !answers.is_empty() => (Role::Assistant, made),
            Role::Tool => (Role::User, MessageOrigin::Aside),
            role => (role, made),
        };
        if !own.is_empty() {
            messages.push(shown(role, made, model, own));
        }
        if !answers.is_empty() {
            let unanswered = vec![None; answers.len()];
            let results = shown(Role::Tool, MessageOrigin::Results, None, answers);
            messages.push(ViewMessage { answers: unanswered, ..results });
        }
    }
    messages
}

/// Is the part empty? All providers refuse empty parts.
fn is_blank(part: &Part) -> bool {
    match part {
        Part::Text(text) => text.text.trim().is_empty(),
        Part::Thinking(text) => text.text.is_empty() && text.opaque.is_none(),
        _ => false,
    }
}

/// Does the part need no change?
fn is_plain(part: &Part) -> bool {
    !matches!(part, Part::ToolCall(_) | Part::ToolResult(_)) && !is_blank(part)
}

fn missing(call_id: &str) -> Part {
    Part::ToolResult(ToolResult {
        call_id: call_id.to_owned(),
        text: INTERRUPTED.to_owned(),
        is_error: true,
        ..ToolResult::default()
    })
}

/// The id, or if it is in use, the id with the first free suffix.
fn unused(used: &mut HashMap<String, u64>, id: &str) -> String {
    let mut times = used.get(id).copied().unwrap_or(0);
    let mut candidate = id.to_owned();
    while times > 0 && used.contains_key(&candidate) {
        times += 1;
        candidate = format!("{id}_{times}");
    }
    used.insert(id.to_owned(), times.max(1));
    if candidate != id {
        used.insert(candidate.clone(), 1);
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Restored, Rewound, Scope, Time};

    fn log(events: Vec<Event>) -> Vec<Recorded> {
        let recorded = |(event, n): (Event, u64)| Recorded {
            seq: Seq::new(n),
            at: Time::EPOCH,
            id: None,
            event,
        };
        events.into_iter().zip(1..).map(recorded).collect()
    }

    /// A view as short text: role initial, then its parts.
    fn shown(events: Vec<Event>) -> Vec<String> {
        let view = View::of(&Lane::main(), log(events));
        View::check(view.messages.iter().map(|shown| &shown.message)).unwrap();
        let part = |part: &Part| match part {
            Part::Text(text) | Part::Thinking(text) => text.text.clone(),
            Part::ToolCall(call) => format!("call {}", call.id),
            Part::ToolResult(result) => format!("{}={}", result.call_id, result.text),
            Part::Image(_) => "image".to_owned(),
        };
        let line = |shown: &ViewMessage| {
            let parts: Vec<_> = shown.message.parts.iter().map(part).collect();
            format!("{:?}: {}", shown.message.role, parts.join(", "))
        };
        view.messages.iter().map(line).collect()
    }

    fn user(text: &str) -> Event {
        Message::user(text).into()
    }

    fn call(id: &str) -> Event {
        Message::assistant("").calling(id, "t", "{}").into()
    }

    fn result(id: &str, text: &str) -> Event {
        Message::tool_result(id, text).into()
    }

    fn compacted(from: u64, to: u64, summary: &str, pinned: &[u64]) -> Event {
        Compacted {
            summary: Some(summary.to_owned()),
            pinned: pinned.iter().copied().map(Seq::new).collect(),
            ..Compacted::new(Lane::main(), Seq::new(from), Seq::new(to))
        }
        .into()
    }

    #[test]
    fn an_unanswered_call_is_answered_as_unknown() {
        assert_eq!(
            shown(vec![user("go"), call("a"), user("and now?")]),
            [
                "User: go",
                "Assistant: call a",
                "Tool: a=interrupted, outcome unknown",
                "User: and now?"
            ]
        );
    }

    #[test]
    fn injected_messages_are_shown_but_are_not_the_users() {
        let events = vec![Message::user("<context>").injected().into(), user("fix it")];
        let view = View::of(&Lane::main(), log(events));
        let own: Vec<bool> = view.messages.iter().map(|it| it.message.is_from_user()).collect();
        assert_eq!(own, [false, true]);
    }

    #[test]
    fn an_orphan_result_is_left_out() {
        assert_eq!(shown(vec![result("x", "1"), user("go")]), ["User: go"]);
    }

    #[test]
    fn a_late_result_moves_behind_its_call() {
        assert_eq!(
            shown(vec![call("a"), user("hm"), result("a", "1"), result("a", "twice")]),
            ["Assistant: call a", "Tool: a=1", "User: hm"]
        );
    }

    #[test]
    fn parallel_calls_are_answered_together_and_in_their_order() {
        let both = Message::assistant("ok").calling("a", "t", "{}").calling("b", "t", "{}");
        assert_eq!(
            shown(vec![both.into(), result("b", "2"), result("a", "1")]),
            ["Assistant: ok, call a, call b", "Tool: a=1, b=2"]
        );
    }

    #[test]
    fn a_repeated_call_id_is_told_apart() {
        assert_eq!(
            shown(vec![call("0"), result("0", "1"), call("0"), result("0", "2"), call("0_2")]),
            [
                "Assistant: call 0",
                "Tool: 0=1",
                "Assistant: call 0_2",
                "Tool: 0_2=2",
                "Assistant: call 0_2_2",
                "Tool: 0_2_2=interrupted, outcome unknown"
            ]
        );
    }

    #[test]
    fn a_result_in_a_user_message_leaves_its_text_behind() {
        let mut mixed = Message::tool_result("a", "1");
        mixed.role = Role::User;
        mixed.parts.push(Part::text("and more"));
        assert_eq!(
            shown(vec![call("a"), mixed.into()]),
            ["Assistant: call a", "Tool: a=1", "User: and more"]
        );
    }

    #[test]
    fn other_lanes_are_not_shown() {
        let other = Message::user("psst").in_lane("critic".parse().unwrap());
        assert_eq!(shown(vec![user("go"), other.into()]), ["User: go"]);
    }

    #[test]
    fn a_rewind_between_a_call_and_its_result_leaves_no_half() {
        let back = |to| -> Event {
            let to = Seq::new(to);
            Rewound { to, scope: Scope::Chat, restored: Restored::default() }.into()
        };
        let events = vec![user("go"), call("a"), result("a", "1"), back(2), user("again")];
        assert_eq!(
            shown(events),
            [
                "User: go",
                "Assistant: call a",
                "Tool: a=interrupted, outcome unknown",
                "User: again"
            ]
        );
    }

    #[test]
    fn a_compaction_shows_its_summary_and_keeps_what_is_pinned() {
        let events = vec![
            user("1"),
            user("2"),
            user("3"),
            user("4"),
            compacted(1, 3, "sum", &[2]),
            user("5"),
        ];
        assert_eq!(shown(events), ["User: sum", "User: 2", "User: 4", "User: 5"]);
    }

    #[test]
    fn a_compaction_that_keeps_everything_shows_its_summary_before_it() {
        let events = vec![user("1"), user("2"), compacted(1, 2, "sum", &[1, 2]), user("3")];
        assert_eq!(shown(events), ["User: sum", "User: 1", "User: 2", "User: 3"]);
    }

    #[test]
    fn a_later_compaction_replaces_an_earlier_summary() {
        let events = vec![
            user("1"),
            user("2"),
            compacted(1, 2, "sum", &[]),
            user("3"),
            compacted(1, 4, "sum of sums", &[]),
        ];
        assert_eq!(shown(events), ["User: sum of sums"]);
    }

    #[test]
    fn an_undone_compaction_shows_the_originals_and_what_came_since() {
        let events = vec![
            user("1"),
            user("2"),
            compacted(1, 2, "sum", &[]),
            user("3"),
            Undone::Compaction { of: Seq::new(3) }.into(),
        ];
        assert_eq!(shown(events), ["User: 1", "User: 2", "User: 3"]);
    }

    #[test]
    fn the_check_refuses_what_providers_refuse() {
        let check = |messages: Vec<Message>| View::check(&messages);
        let ask = || Message::assistant("x").calling("a", "t", "{}");
        assert_eq!(check(vec![ask()]), Err(Invalid::Unanswered(0)));
        assert_eq!(check(vec![ask(), Message::user("y")]), Err(Invalid::Unanswered(0)));
        assert_eq!(check(vec![Message::tool_result("a", "1")]), Err(Invalid::Orphan(0)));
        assert_eq!(check(vec![Message::user(" ")]), Err(Invalid::Empty(0)));
        let answer = || Message::tool_result("a", "1");
        assert_eq!(
            check(vec![ask(), answer(), ask(), answer()]),
            Err(Invalid::RepeatedCall(2, "a".to_owned()))
        );
        assert_eq!(check(vec![ask(), answer(), Message::user("y")]), Ok(()));
    }
}
