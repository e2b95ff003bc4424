//! One session on its way into the store: laid beside what came in before, and appended
//! from where they part.

use std::collections::VecDeque;

use stepwell::backend::write::{Prepared, PreparedEvents};
use stepwell::{
    About, Append, Create, Edited, Event, EventId, Kind, Message, NewEvent, Recorded, Restored,
    Rewound, Scope, Seq, Session, SessionId, Source, Span, Stepwell, Time, Write,
};

use super::claim::{Claim, is_trailer};
use super::counted::Counted;
use super::name::Marks;
use super::place::Places;
use super::writer_thread::Scribe;
use crate::read::neutral::{Item, Opening};
use crate::{Error, Result};

/// How many events are written at a time, and of how many bytes, to bound memory. The first
/// ones are fewer, so that writing begins soon.
const BATCH: usize = 4096;
const BATCH_BYTES: usize = 2 << 20;
const FIRST_BATCH_BYTES: usize = BATCH_BYTES / 8;

/// How many events are read at a time.
const PAGE: usize = 256;

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Yes.
    Write,
    /// No: it is only found out what would be.
    Look,
}

/// One session on its way into the store.
pub(super) struct Track<'a> {
    well: &'a Stepwell,
    mode: Mode,
    id: SessionId,
    marks: Marks,
    places: Places,
    /// What came in before and was not met again yet.
    past: Past,
    /// The last event that was met again, or written.
    last: Seq,
    /// The seq that the next event will have.
    next: Seq,
    /// Before the session, which is given back when nothing of it is being written.
    scribe: Scribe,
    session: Option<Session>,
    batch: PreparedEvents,
    /// After how many bytes it is written.
    batch_limit: usize,
    /// The latest time that was told: what tells none is taken to have happened then.
    told_at: Option<Time>,
    /// Was anything added?
    pub(super) grown: bool,
    /// How what is told stands to what was told before.
    pub(super) claim: Claim,
    /// What an older file tells last: it counts only if the file also tells something new.
    held_back: Vec<(Option<Time>, Event)>,
    /// Is more or newer known? Then nothing more is taken from this one.
    pub(super) overruled: bool,
}

/// What came in before.
struct Past {
    page: VecDeque<Recorded>,
    after: Seq,
    /// Ranges of events that were taken back when the session was told differently.
    dropped: Vec<(Seq, Seq)>,
    /// What was counted with those.
    counted: Counted,
    /// Was the conversation gone on with here?
    continued: bool,
    done: bool,
}

impl<'a> Track<'a> {
    /// A session that is new.
    pub(super) fn create(
        (well, mode): (&'a Stepwell, Mode),
        opening: Opening,
        source: &Source,
    ) -> Result<Self> {
        let (id, began) = (opening.created.id.clone(), opening.started_at);
        let marks = Marks::of(source);
        let session = match mode {
            Mode::Look => None,
            Mode::Write => {
                let create = Create {
                    created: opening.created,
                    event_id: Some(marks.told(Seq::FIRST)),
                    at: opening.started_at,
                    claim: Some(well.claim()),
                };
                let written = well.store().write(Write::Create(create))?;
                written.lease.map(|lease| well.adopt(lease))
            }
        };
        let past = Past {
            page: VecDeque::new(),
            after: Seq::FIRST,
            dropped: Vec::new(),
            counted: Counted::default(),
            continued: false,
            done: true,
        };
        Ok(Self { told_at: began, ..Self::at((well, mode), id, marks, past, session) })
    }

    /// A session that came in before.
    pub(super) fn lay_beside(
        (well, mode): (&'a Stepwell, Mode),
        id: SessionId,
        source: &Source,
    ) -> Result<Self> {
        let began = source.started_at;
        let marks = Marks::of(source);
        let dropped = dropped(&well.store().keyed_events(&id, &[Kind::Rewound])?, &marks);
        let past = Past {
            page: VecDeque::new(),
            after: Seq::FIRST,
            dropped,
            counted: Counted::default(),
            continued: false,
            done: false,
        };
        Ok(Self { told_at: began, ..Self::at((well, mode), id, marks, past, None) })
    }

    fn at(
        (well, mode): (&'a Stepwell, Mode),
        id: SessionId,
        marks: Marks,
        past: Past,
        session: Option<Session>,
    ) -> Self {
        let mut places = Places::default();
        places.push(Seq::FIRST);
        let (last, next) = (Seq::FIRST, Seq::new(2));
        let (batch, told_at, grown) = (PreparedEvents::default(), None, false);
        let scribe = Scribe::new(well.store());
        Self {
            well,
            mode,
            id,
            marks,
            places,
            past,
            last,
            next,
            scribe,
            session,
            batch,
            batch_limit: FIRST_BATCH_BYTES,
            told_at,
            grown,
            claim: Claim::Sole,
            held_back: Vec::new(),
            overruled: false,
        }
    }

    /// The next thing that is told.
    pub(super) fn take(&mut self, item: Item) -> Result<Seq> {
        let Item { at, event } = item;
        self.told_at = at.max(self.told_at);
        // Events are large, and hardly any names a seq: the others are not passed around.
        let event = if Places::concern(&event) { self.places.translate(event) } else { event };
        let claim = self.claim;
        while !self.overruled
            && let Some(known) = self.peek()?
        {
            // What is told last is told anew each time.
            let passing = is_trailer(&known.event);
            let yields = !passing && claim.yields(known, &event);
            if self.past.meets(at, &event) {
                self.last = self.past.page.pop_front().map_or(self.last, |known| known.seq);
                return Ok(self.places.push(self.last));
            }
            match passing {
                true => drop(self.past.page.pop_front()),
                false if yields => self.overruled = true,
                false => self.take_back()?,
            }
        }
        if self.overruled {
            return Ok(self.places.push(self.last));
        }
        if claim == Claim::Earlier && !self.grown && is_trailer(&event) {
            self.held_back.push((at, event));
            return Ok(self.places.push(self.last));
        }
        for (at, event) in std::mem::take(&mut self.held_back) {
            self.append(at, event)?;
        }
        self.append(at, event)
    }

    /// The session was told to its end. The answer says whether anything was written, or
    /// would have been.
    pub(super) fn close(&mut self, provenance: Edited) -> Result<bool> {
        while !self.overruled
            && let Some(known) = self.peek()?
        {
            match is_trailer(&known.event) {
                true => drop(self.past.page.pop_front()),
                false if self.claim != Claim::Sole => self.overruled = true,
                false => self.take_back()?,
            }
        }
        self.overruled |= !self.held_back.is_empty();
        if self.grown {
            self.append(None, provenance.into())?;
        }
        self.finish()?;
        Ok(self.grown)
    }

    /// Writes what was told until now, of a session that cannot be told to its end.
    pub(super) fn cut_off(&mut self) -> Result<()> {
        self.finish()
    }

    /// What came in before at this place.
    fn peek(&mut self) -> Result<Option<&Recorded>> {
        while self.past.page.is_empty() && !self.past.done {
            let span = Span { limit: PAGE, ..Span::after(self.past.after) };
            let events = self.well.store().events(&self.id, span)?.intact(&self.id)?;
            let Some(last) = events.last() else {
                self.past.done = true;
                break;
            };
            self.past.after = last.seq;
            self.next = last.seq.next();
            for event in events {
                let ours = self.marks.is_told(event.id, event.seq);
                if !ours && !self.marks.is_again(event.id, event.seq) && !is_trailer(&event.event) {
                    self.past.continued = true;
                }
                match ours {
                    true if self.past.is_dropped(event.seq) => self.past.counted.add(&event),
                    true => self.past.page.push_back(event),
                    false => {}
                }
            }
        }
        Ok(self.past.page.front())
    }

    /// The session is told differently from here on: what came in before is taken out of
    /// the view, and stays in the log.
    fn take_back(&mut self) -> Result<()> {
        while self.peek()?.is_some() {
            self.past.let_go();
        }
        let (to, scope) = (self.last, Scope::Chat);
        let id = self.marks.again(self.next);
        self.write(None, Rewound { to, scope, restored: Restored::default() }.into(), id)
    }

    fn append(&mut self, at: Option<Time>, event: Event) -> Result<Seq> {
        let seq = self.next;
        let event = match self.past.counted.is_empty() {
            true => event,
            false => self.past.counted.rest(at.or(self.told_at), event),
        };
        self.write(at, event, self.marks.told(seq))?;
        self.last = seq;
        Ok(self.places.push(seq))
    }

    fn write(&mut self, at: Option<Time>, event: Event, id: EventId) -> Result<()> {
        if self.past.continued {
            return Err(Error::Continued { session: self.id.clone() });
        }
        self.grown = true;
        let beside = matches!(&event, Event::Foreign(it) if it.about == About::Event);
        if !beside && (self.batch.len() >= BATCH || self.batch.bytes() >= self.batch_limit) {
            self.flush()?;
        }
        if self.mode == Mode::Write {
            let at = at.or(self.told_at);
            // Encoded at once, while its texts are at hand: they are not kept besides.
            self.batch.push(NewEvent {
                id: Some(id),
                at,
                copied: true,
                ..NewEvent::from(event)
            })?;
        }
        self.next = self.next.next();
        Ok(())
    }

    /// Has what waits written. Where somebody changed the session meanwhile, the seqs that
    /// were counted on are taken, and it fails: whoever imports begins again.
    fn flush(&mut self) -> Result<()> {
        match self.gather()? {
            Some(append) => self.scribe.hand_over(append),
            None => Ok(()),
        }
    }

    /// The same, and waits until all of it is durable.
    fn finish(&mut self) -> Result<()> {
        let last = self.gather()?;
        self.scribe.finish(last)
    }

    fn gather(&mut self) -> Result<Option<Prepared>> {
        if self.batch.is_empty() {
            return Ok(None);
        }
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(self.well.lock(&self.id)?),
        };
        // The next one is likely to be as large.
        let room = self.batch.room_for();
        let batch = std::mem::replace(&mut self.batch, room);
        self.batch_limit = BATCH_BYTES.min(2 * self.batch_limit);
        let first = self.next.get() - batch.len() as u64;
        let append = Append {
            session: self.id.clone(),
            epoch: Some(session.lease().epoch),
            expected: Some(Seq::new(first).prev()),
            events: Vec::new(),
        };
        Ok(Some(Prepared::append(append, batch)))
    }
}

impl Past {
    /// Is what is told now what came in before at this place? What was counted for it then is
    /// its own.
    fn meets(&mut self, at: Option<Time>, event: &Event) -> bool {
        let Some(known) = self.page.front() else { return false };
        if !is_same(known, at, event, &self.counted) {
            return false;
        }
        if let (Event::Message(message), Event::Message(told)) = (&known.event, event) {
            self.counted.claim(message, known.at, told);
        }
        true
    }

    /// Lets go of what was read of the past: it leaves the view, and stays counted.
    fn let_go(&mut self) {
        self.page.iter().for_each(|gone| self.counted.add(gone));
        self.page.clear();
    }

    fn is_dropped(&self, seq: Seq) -> bool {
        self.dropped.iter().any(|(from, to)| (*from..=*to).contains(&seq))
    }
}

/// What was taken back, by the rewinds that did it.
fn dropped(rewinds: &[Recorded], marks: &Marks) -> Vec<(Seq, Seq)> {
    let mut ranges = Vec::new();
    for Recorded { seq, id, event, .. } in rewinds {
        if let Event::Rewound(rewound) = event
            && marks.is_again(*id, *seq)
        {
            ranges.push((rewound.to.next(), *seq));
        }
    }
    ranges
}

/// Is this what came in before?
fn is_same(known: &Recorded, at: Option<Time>, event: &Event, counted: &Counted) -> bool {
    if at.is_some_and(|at| at != known.at) {
        return false;
    }
    match (&known.event, event) {
        // The store fills in what a rewind brings back.
        (Event::Rewound(known), Event::Rewound(rewound)) => {
            known.to == rewound.to && known.scope == rewound.scope
        }
        // What was counted when the message was shorter is not counted again.
        (Event::Message(said), Event::Message(message)) if said.usage != message.usage => {
            let Message { lane, role, parts, model, .. } = said;
            *lane == message.lane
                && *role == message.role
                && *parts == message.parts
                && *model == message.model
                && counted.covers(said, known.at, message)
        }
        (known, event) => known == event,
    }
}
