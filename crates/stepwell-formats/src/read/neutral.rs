//! The form between formats: a session as a reader tells it, event by event.
//!
//! It is Stepwell's own: a reader tells a session in the words of [`stepwell::Event`], and a
//! writer finds it in a store in the same words. What has no word travels as
//! [`stepwell::model::Foreign`].

use std::io::BufRead;
use std::path::PathBuf;

use stepwell::model::{About, Edited, EventId, Facts, Foreign, Mark, Time};
use stepwell::{Created, Event, NewEvent, Recorded, Seq, SessionId};

use crate::Result;
use crate::json::fields::Fields;
use crate::read::seen::Seen;

/// What an edit says besides the facts, which are this store's own and go back to no system.
pub(crate) fn without_facts(edited: &Edited) -> Edited {
    Edited { facts: Facts::default(), ..edited.clone() }
}

/// Is it one of the records that keep a session's files?
pub(crate) fn is_original(event: &Event) -> bool {
    matches!(event, Event::Record(record) if record.keeps_original())
}

/// Does an event say only what this store keeps for itself?
pub(crate) fn is_facts(event: &Event) -> bool {
    matches!(event, Event::Edited(edited) if !edited.facts.is_empty()
        && without_facts(edited) == Edited::default())
}

/// A line of a file, as the program that wrote the file also keeps it here by itself. The last of
/// its events bears its id.
#[derive(Debug)]
pub struct KeptLine {
    /// The id.
    pub id: EventId,
    /// The events.
    pub events: Vec<NewEvent>,
}

/// A session begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// The system's own name for it. With the system it is the session's identity.
    pub id: String,
    /// What it is. Its id, its origin and its source are filled in by whoever takes it.
    pub created: Created,
    /// The system's own name for the session that started it as a subagent.
    pub parent: Option<String>,
    /// When it began.
    pub started_at: Option<Time>,
    /// When it changed last, if its files say so: of two that tell of one session, the later is
    /// believed.
    pub updated_at: Option<Time>,
    /// Was it put together from other files, because its own is broken? It says less than that
    /// one did.
    pub recovered: bool,
    /// The one file that holds all of it, if that is so: while that file is the same, so
    /// is the session, and it is not read again.
    pub file: Option<PathBuf>,
    /// The folder that holds all of it, if that is so.
    pub folder: Option<PathBuf>,
    /// The session that it was written from here, if it says so.
    pub continues: Option<Mark>,
    /// The session of which it says no more than how that ended: where that one is here itself, this
    /// is not needed.
    pub row_of: Option<String>,
    /// How it is known again when its files give it another name, or none.
    pub stand_in: Option<StandIn>,
}

/// What a session is called while none of its files names it, and what it begins with. Such
/// files tell of the same session as before if they lie where its files lay and begin alike.
#[derive(Clone, Debug, PartialEq)]
pub struct StandIn {
    /// The name. If it is the opening's own, no file names the session now.
    pub name: String,
    /// Its first message.
    pub first: Item,
}

impl Opening {
    /// A session of that name for that task; everything else is left open.
    pub fn new(id: impl Into<String>, task: impl Into<String>) -> Self {
        let unnamed: SessionId = "unnamed".parse().expect("it keeps the rules");
        let created = Created::new(unnamed, task);
        Self {
            id: id.into(),
            created,
            parent: None,
            started_at: None,
            updated_at: None,
            recovered: false,
            file: None,
            folder: None,
            continues: None,
            row_of: None,
            stand_in: None,
        }
    }
}

/// One thing that is told of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// When it happened, if that is known.
    pub at: Option<Time>,
    /// What happened. Where it names seqs, these are the places that [`Sink::push`] gave.
    pub event: Event,
}

impl Item {
    /// Something that happened then.
    pub fn new(at: Option<Time>, event: impl Into<Event>) -> Self {
        Self { at, event: event.into() }
    }

    /// What a system keeps beside the item before this one.
    pub fn beside(system: &str, at: Option<Time>, data: impl Into<String>) -> Self {
        Self::foreign(system, at, About::Event, data)
    }

    /// What a system keeps about the whole session.
    pub fn of_session(system: &str, data: impl Into<String>) -> Self {
        Self::foreign(system, None, About::Session, data)
    }

    /// What a system keeps at this place of the session.
    pub fn alone(system: &str, at: Option<Time>, data: impl Into<String>) -> Self {
        Self::foreign(system, at, About::Itself, data)
    }

    fn foreign(system: &str, at: Option<Time>, about: About, data: impl Into<String>) -> Self {
        let system = system.to_owned();
        Self { at, event: Foreign { system, about, data: data.into() }.into() }
    }

    /// Does it belong to the item before it?
    #[must_use]
    pub fn is_beside(&self) -> bool {
        matches!(&self.event, Event::Foreign(foreign) if foreign.about == About::Event)
    }
}

/// An event that a writer kept where the format has room for it but no word. Only kinds that
/// say nothing about the events around them are taken; the rest stays what it is, foreign.
#[must_use]
pub fn kept_event(raw: &str) -> Option<Item> {
    let Recorded { at, event, .. } = serde_json::from_str(raw).ok()?;
    let sound = matches!(
        event,
        Event::Message(_)
            | Event::ToolStarted(_)
            | Event::ToolFinished(_)
            | Event::Checkpoint(_)
            | Event::Permission(_)
            | Event::Artifact(_)
            | Event::Task(_)
            | Event::Question(_)
            | Event::Error(_)
    );
    // The longest name that a store finds an event by.
    let named = event.key().is_none_or(|key| key.len() <= 4 << 10);
    (sound && named).then_some(Item { at: Some(at), event })
}

/// An event as a writer keeps it where it has no word for it. One that another system's file
/// kept before is not wrapped again, or it would grow with each file that it goes through.
pub(crate) fn to_be_kept(recorded: &Recorded) -> serde_json::Result<String> {
    let inside = match &recorded.event {
        Event::Foreign(foreign) => kept_inside(&foreign.data),
        _ => None,
    };
    // The formats that have such lines write moments to the millisecond.
    inside.map_or_else(|| line_of(recorded, 3), |event| Ok(event.to_owned()))
}

/// An event as a line of JSON, its moment with so many digits behind the second.
pub(crate) fn line_of(recorded: &Recorded, digits: usize) -> serde_json::Result<String> {
    let (seq, at, line) = (recorded.seq, recorded.at, serde_json::to_string(recorded)?);
    Ok(match line.strip_prefix(&format!(r#"{{"seq":{seq},"at":"{at}""#)) {
        Some(rest) => format!(r#"{{"seq":{seq},"at":"{at:.digits$}"{rest}"#),
        None => line,
    })
}

fn kept_inside(line: &str) -> Option<&str> {
    let line = Fields::parse(line).ok()?;
    let is_kept = |field: &str| line.text(field).as_deref() == Some(KEPT);
    ["type", "subtype", "customType"].into_iter().find(|field| is_kept(field))?;
    let within = ["payload", "systemPayload", "data"].into_iter();
    within
        .filter_map(|field| line.object(field))
        .find_map(|it| it.raw("event"))
        .or(line.raw("event"))
}

/// The type of lines on which a writer keeps what the form has no word for.
pub(crate) const KEPT: &str = "stepwell";

/// Something that could not be read as it should have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where: a file, and a line of it.
    pub place: String,
    /// What is wrong there, and what became of it.
    pub what: String,
}

/// Whether a session is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Go on.
    Yes,
    /// It is known already: go on to the next one.
    Known,
}

/// Who a reader tells sessions to, one after the other.
pub trait Sink {
    /// A session begins. If it is not [wanted](Wanted::Yes), nothing of it is to be
    /// told, its end included. A subagent's session comes after the one that started it.
    fn begin(&mut self, opening: Opening) -> Result<Wanted>;

    /// Is all of that session of a database here, because the database looks as it did when it was
    /// read to its end? Then the session is not to be begun.
    fn knows(&mut self, _id: &str, _database: Option<&Seen>) -> Result<bool> {
        Ok(false)
    }

    /// The session here that its own program keeps, line by line, if it keeps this one. Then it is
    /// not begun, and its lines are brought by [`meet`](Sink::meet).
    fn keeper(&mut self, _opening: &Opening) -> Result<Option<SessionId>> {
        Ok(None)
    }

    /// Adds the lines that such a session does not have.
    fn meet(
        &mut self,
        _session: &SessionId,
        _lines: &mut dyn FnMut() -> Result<Option<KeptLine>>,
    ) -> Result<()> {
        Ok(())
    }

    /// The next thing of the session that began last. The answer is its place: the opening
    /// is at [`Seq::FIRST`], and each thing at the place after the one before it.
    ///
    /// Reading a file that has grown MUST tell the same things again and then the new
    /// ones, but for status, attributes and what is foreign, which may differ at the end.
    fn push(&mut self, item: Item) -> Result<Seq>;

    /// The session was told to its end.
    fn end(&mut self) -> Result<()>;

    /// Something was not as it should be, and reading goes on.
    fn warn(&mut self, warning: Warning);

    /// Sessions of Stepwell's own archive, which are taken as they are.
    fn restore(&mut self, from: &mut dyn BufRead) -> Result<()>;
}
