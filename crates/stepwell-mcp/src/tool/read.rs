//! Reads a session, or one of its events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::log::{MessageOrigin, Timeline};
use stepwell::model::{Kind, Part, Role, Time};
use stepwell::store::Span;
use stepwell::{Event, Lane, Message, Recorded, Seq, SessionId, Stepwell, View};
use stepwell_wire::{Session, ViewMessageKind};

use crate::bounded::{LeftOut, PAGE_BYTES, Page, Shortened, Stretch};
use crate::error::{Error, Result};
use crate::input::{Direction, Limit, Point};
use crate::stores::{Located, Named, Purpose, Stores};

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadInput {
    /// The session: its id, a part of it, its label, or @last.
    pub(crate) session: String,
    /// Its store, as a hit or a list names it.
    #[serde(default)]
    pub(crate) store: Option<String>,
    /// The form.
    #[serde(default)]
    pub(crate) form: Form,
    /// The point: a seq, a checkpoint's name, or "-N" for N steps back; the session's end, if
    /// absent.
    #[serde(default)]
    pub(crate) at: Option<Point>,
    /// The lane, for turns and views; the main agent's, if absent.
    #[serde(default)]
    pub(crate) lane: Option<String>,
    /// Which come first, for turns and events.
    #[serde(default)]
    pub(crate) order: Direction,
    /// The most items; 20, if absent.
    #[serde(default)]
    pub(crate) limit: Option<Limit>,
    /// The end of the page before: its `next`.
    #[serde(default)]
    pub(crate) cursor: Option<u64>,
}

/// The form in which a session is read.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// Messages and tool calls, without rewound ones.
    #[default]
    Turns,
    /// What a model would be sent, with compactions.
    View,
    /// Everything recorded.
    Events,
}

/// A page of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadAnswer {
    /// The session in its current state.
    session: Shortened<Session>,
    /// The form.
    form: Form,
    /// The point at which it was read.
    at: Seq,
    /// For turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<Vec<Shortened<Turn>>>,
    /// For a view.
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<Vec<Shortened<ShownMessage>>>,
    /// For events.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AnyEvent>>")]
    events: Option<Vec<Shortened<Recorded>>>,
    /// Lists with omitted entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// The cursor of the next page; absent, if this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// An event, in a short schema. The full schema of all kinds would be most of what clients load at
/// their start; `stepwell schema` has it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct AnyEvent {
    /// Its seq.
    seq: Seq,
    /// When it was recorded.
    at: Time,
    /// Its kind: message, `tool_started`, file, gate, status and others.
    kind: String,
    /// The version of its kind.
    version: u16,
    /// The fields of its kind.
    body: serde_json::Map<String, serde_json::Value>,
}

/// One turn of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
struct Turn {
    /// The event.
    seq: Seq,
    /// When it was said.
    at: Time,
    /// Who said it.
    role: Role,
    /// The text.
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    /// The tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<TurnCall>,
    /// The results of tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<TurnResult>,
}

/// A tool call.
#[derive(Debug, Serialize, JsonSchema)]
struct TurnCall {
    /// The tool.
    tool: String,
    /// Its arguments, as JSON text.
    arguments: String,
}

/// The result of a tool.
#[derive(Debug, Serialize, JsonSchema)]
struct TurnResult {
    /// Its output.
    text: String,
    /// Did it fail?
    failed: bool,
}

/// A message as a model would be sent it.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownMessage {
    /// The event.
    seq: Seq,
    /// Its origin.
    made: ViewMessageKind,
    /// The message.
    #[serde(flatten)]
    message: Message,
}

/// Reads a page of a session.
pub(crate) fn read_session(stores: &Stores, input: ReadInput) -> Result<ReadAnswer> {
    let named = Named { session: input.session, store: input.store };
    let Located { well, id } = stores.session(&named, Purpose::Read)?;
    let info = well.info(&id)?;
    let last = info.head.seq;
    let at = Point::of(input.at.as_ref(), last, &well, &id)?;
    let lane: Lane = match &input.lane {
        Some(lane) => lane.parse().map_err(|error| Error::Arguments(format!("lane: {error}")))?,
        None => Lane::main(),
    };
    let session = Shortened::to(&info.into(), PAGE_BYTES / 4, &stores.redactor)?;
    let (form, limit, cursor) = (input.form, Limit::of(input.limit), input.cursor);
    let left_out = session.left_out("/session");
    let (turns, view, events) = (None, None, None);
    let mut answer = ReadAnswer { session, form, at, turns, view, events, left_out, next: None };
    let asked = Asked { well: &well, id: &id, at, lane, order: input.order, cursor };
    match form {
        Form::Turns => {
            let mut page = Page::new(&stores.redactor, limit);
            answer.next = asked.turns(&mut page)?;
            answer.left_out.extend(page.left_out("turns"));
            answer.turns = Some(page.into_items());
        }
        Form::View => {
            let mut page = Page::new(&stores.redactor, limit);
            answer.next = asked.view(&mut page)?;
            answer.left_out.extend(page.left_out("view"));
            answer.view = Some(page.into_items());
        }
        Form::Events => {
            let mut page = Page::new(&stores.redactor, limit);
            answer.next = asked.events(&mut page)?;
            answer.left_out.extend(page.left_out("events"));
            answer.events = Some(page.into_items());
        }
    }
    Ok(answer)
}

/// A request for a page.
struct Asked<'a> {
    well: &'a Stepwell,
    id: &'a SessionId,
    at: Seq,
    lane: Lane,
    order: Direction,
    cursor: Option<u64>,
}

impl Asked<'_> {
    /// The events from the cursor on.
    fn span(&self) -> Span {
        let all = Span { to: self.at, order: self.order.into(), ..Span::ALL };
        match (self.cursor.map(Seq::new), self.order) {
            (None, _) => all,
            (Some(from), Direction::Oldest) => Span { from, ..all },
            (Some(to), Direction::Newest) => Span { to: to.min(self.at), ..all },
        }
    }

    fn events(&self, page: &mut Page<'_, Recorded>) -> Result<Option<u64>> {
        for event in self.well.log(self.id, self.span()) {
            let event = event?;
            if !page.push(&event)? {
                return Ok(Some(event.seq.get()));
            }
        }
        Ok(None)
    }

    fn turns(&self, page: &mut Page<'_, Turn>) -> Result<Option<u64>> {
        let moves = self.well.store().keyed_events(self.id, &[Kind::Rewound, Kind::Undone])?;
        let timeline = Timeline::at(self.at, moves.iter());
        for event in self.well.log(self.id, self.span()) {
            let event = event?;
            let Event::Message(message) = event.event else { continue };
            if message.lane != self.lane || !timeline.contains(event.seq) {
                continue;
            }
            if !page.push(&turn(event.seq, event.at, &message))? {
                return Ok(Some(event.seq.get()));
            }
        }
        Ok(None)
    }

    fn view(&self, page: &mut Page<'_, ShownMessage>) -> Result<Option<u64>> {
        let span = Span { to: self.at, ..Span::ALL };
        let events = self.well.store().events(self.id, span)?.intact(self.id)?;
        let shown = View::of(&self.lane, events).messages;
        let passed = usize::try_from(self.cursor.unwrap_or(0)).unwrap_or(usize::MAX);
        for (n, shown) in shown.into_iter().enumerate().skip(passed) {
            let made = match shown.made {
                MessageOrigin::Summary => ViewMessageKind::Summary,
                MessageOrigin::Results => ViewMessageKind::Results,
                MessageOrigin::Recorded | MessageOrigin::Aside => ViewMessageKind::Message,
            };
            if !page.push(&ShownMessage { seq: shown.seq, made, message: shown.message })? {
                return Ok(Some(n as u64));
            }
        }
        Ok(None)
    }
}

fn turn(seq: Seq, at: Time, message: &Message) -> Turn {
    let calls = message
        .calls()
        .map(|call| TurnCall { tool: call.name.clone(), arguments: call.arguments.clone() });
    let results = message
        .results()
        .map(|result| TurnResult { text: result.text.clone(), failed: result.is_error });
    let is_image = |part: &&Part| matches!(part, Part::Image(_));
    let images = message.parts.iter().filter(is_image).count();
    let mut text = message.text();
    if images > 0 {
        text.push_str(&format!("\n[{images} image(s)]"));
    }
    let (calls, results) = (calls.collect(), results.collect());
    Turn { seq, at, role: message.role, text, calls, results }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventInput {
    /// The session: its id, a part of it, its label, or @last.
    pub(crate) session: String,
    /// Its store, as a hit or a list names it.
    #[serde(default)]
    pub(crate) store: Option<String>,
    /// The event's seq.
    pub(crate) seq: u64,
    /// The offset in a long event: the `next` of the part before.
    #[serde(default)]
    pub(crate) offset: usize,
}

/// One event.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventAnswer {
    /// The session.
    id: SessionId,
    /// The event's seq.
    seq: Seq,
    /// When it was recorded.
    at: Time,
    /// Its kind.
    kind: String,
    /// The event; absent, if it is too long for one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AnyEvent>")]
    event: Option<Recorded>,
    /// A part of a long event's JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    stretch: Option<Stretch>,
}

/// Reads one event in full.
pub(crate) fn read_event(stores: &Stores, input: EventInput) -> Result<EventAnswer> {
    let named = Named { session: input.session, store: input.store };
    let Located { well, id } = stores.session(&named, Purpose::Read)?;
    let seq = Seq::new(input.seq);
    let span = Span { from: seq, to: seq, ..Span::ALL };
    let found = well.store().events(&id, span)?.intact(&id)?.into_iter().next();
    let Some(event) = found.filter(|event| event.seq == seq) else {
        let last = well.info(&id)?.head.seq.get();
        return Err(Error::NoEvent { session: id, seq: input.seq, last });
    };
    let json = serde_json::to_string(&event)?;
    let (at, kind) = (event.at, event.event.kind().to_owned());
    let mut answer = EventAnswer { id, seq, at, kind, event: None, stretch: None };
    match json.len() <= PAGE_BYTES && input.offset == 0 {
        true => answer.event = Some(event),
        false => answer.stretch = Some(Stretch::of(&json, input.offset, &stores.redactor)),
    }
    Ok(answer)
}
