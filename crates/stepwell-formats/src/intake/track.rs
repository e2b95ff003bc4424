//! One session on its way into the store: laid beside what came in before, and appended
//! from where they part.

use std::collections::VecDeque;

use stepwell::model::{
    About, Edited, EventId, Kind, Provenance, Restored, Rewound, Scope, Source, StatusChanged, Time,
};
use stepwell::store::{Append, Create, Expected, NewEvents, Span, Write};
use stepwell::{Event, Message, NewEvent, Recorded, Seq, Session, SessionId, Stepwell};

use super::claim::{Ends, Precedence, Verdict, is_said, is_trailer};
use super::counted::Counted;
use super::gap::Gap;
use super::name::Marks;
use super::place::Places;
use super::writer_thread::Scribe;
use crate::original::{Lies, keep_files};
use crate::read::neutral::{Item, Opening};
use crate::{Error, Result};

/// How many events are written at a time, and of how many bytes, to bound memory. The first
/// ones are fewer, so that writing begins soon.
const BATCH: usize = 4096;
const BATCH_BYTES: usize = 2 << 20;
const FIRST_BATCH_BYTES: usize = BATCH_BYTES / 8;

/// How many events wait at most until it is clear whether they count.
const MAX_HELD_BACK: usize = 20_000;

/// How many events are read at a time.
const PAGE: usize = 256;

/// The files that a session is kept in, in the form of a system.
#[derive(Debug)]
pub(super) struct KeptFiles {
    pub(super) system: &'static str,
    pub(super) lies: Lies,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sessions are written.
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
    batch: NewEvents,
    /// After how many bytes it is written.
    batch_limit: usize,
    /// The latest time that was told: what tells none is taken to have happened then.
    told_at: Option<Time>,
    /// Was anything added?
    pub(super) grown: bool,
    /// How what is told stands to what was told before.
    pub(super) claim: Precedence,
    /// What was told in place of something that is known, and waits: it counts if the session is
    /// not told shorter than it is.
    held_back: Vec<(Option<Time>, Event)>,
    /// What is known behind the place where the telling left something out, if it did.
    gap: Option<Gap>,
    /// The last status that was told and known.
    met_status: Option<(Option<Time>, StatusChanged)>,
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
        well: &'a Stepwell,
        mode: Mode,
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
        Ok(Self { mode, session, told_at: began, ..Self::at(well, id, marks, past) })
    }

    /// A session that came in before.
    pub(super) fn lay_beside(
        well: &'a Stepwell,
        mode: Mode,
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
        Ok(Self { mode, told_at: began, ..Self::at(well, id, marks, past) })
    }

    /// A track that only looks, at the beginning of a session.
    fn at(well: &'a Stepwell, id: SessionId, marks: Marks, past: Past) -> Self {
        let mut places = Places::default();
        places.push(Seq::FIRST);
        let (last, next) = (Seq::FIRST, Seq::new(2));
        let (batch, told_at, grown) = (NewEvents::default(), None, false);
        let scribe = Scribe::new(well.store());
        Self {
            well,
            mode: Mode::Look,
            id,
            marks,
            places,
            past,
            last,
            next,
            scribe,
            session: None,
            batch,
            batch_limit: FIRST_BATCH_BYTES,
            told_at,
            grown,
            claim: Precedence::Newer,
            held_back: Vec::new(),
            gap: None,
            met_status: None,
            overruled: false,
        }
    }

    /// The next thing that is told.
    pub(super) fn push(&mut self, item: Item) -> Result<Seq> {
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
            let verdict = claim.judge(known, &event);
            if self.past.meets(at, &event) {
                // What waits was told in between, and not at the end.
                self.overruled = !self.held_back.iter().all(|(_, held)| may_move(held));
                if let Event::Status(status) = &event {
                    self.met_status = Some((at, status.clone()));
                }
                self.last = self.past.page.pop_front().map_or(self.last, |known| known.seq);
                return Ok(self.places.push(self.last));
            }
            match verdict {
                _ if passing => drop(self.past.page.pop_front()),
                Verdict::Replace => self.take_back()?,
                Verdict::Wait => return self.hold_back(at, event),
                Verdict::Search => self.open_gap()?,
                Verdict::LeaveOut => self.overruled = true,
            }
        }
        if let Some(gap) = &mut self.gap {
            if !is_said(&event) || gap.finds(&event) {
                return self.hold_back(at, event);
            }
            self.gap = None;
            self.take_back()?;
        }
        if self.overruled {
            return Ok(self.places.push(self.last));
        }
        if matches!(claim, Precedence::Older | Precedence::Outdated)
            && !self.grown
            && is_trailer(&event)
        {
            return self.hold_back(at, event);
        }
        if claim == Precedence::Outdated {
            self.overruled = true;
            return Ok(self.places.push(self.last));
        }
        self.append_held()?;
        self.append(at, event)
    }

    fn hold_back(&mut self, at: Option<Time>, event: Event) -> Result<Seq> {
        self.held_back.push((at, event));
        // A telling of which so much is known tells nothing new.
        self.overruled |= self.held_back.len() > MAX_HELD_BACK;
        Ok(self.places.push(self.last))
    }

    /// Reads what is known from here on.
    fn open_gap(&mut self) -> Result<()> {
        let mut gap = Gap::default();
        while let Some(known) = self.peek()? {
            if is_said(&known.event) {
                gap.add(&known.event);
            }
            self.past.pass();
        }
        self.gap = Some(gap);
        Ok(())
    }

    fn append_held(&mut self) -> Result<()> {
        for (at, event) in std::mem::take(&mut self.held_back) {
            self.append(at, event)?;
        }
        Ok(())
    }

    /// The session was told to its end. The answer says whether anything was written, or
    /// would have been.
    pub(super) fn close(
        &mut self,
        provenance: Provenance,
        files: Option<KeptFiles>,
    ) -> Result<bool> {
        if !self.overruled {
            self.settle_end()?;
        }
        let kept = files.filter(|_| !self.overruled && !self.past.continued);
        if let Some(KeptFiles { system, lies }) = kept.filter(|_| self.mode == Mode::Write) {
            let (well, id) = (self.well, self.id.clone());
            keep_files(well, &id, (system, &lies), &mut |record| {
                let id = self.marks.told(self.next);
                self.write_new(NewEvent { id: Some(id), at: self.told_at, ..record })
            })?;
        }
        if self.grown {
            self.append(None, Edited::from(provenance).into())?;
        }
        self.finish()?;
        Ok(self.grown)
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    /// Is all of it as it was told, and none of it said here?
    pub(super) fn is_as_told(&self) -> bool {
        !self.overruled && !self.past.continued
    }

    /// Says anew where a session that was told to its end came from.
    pub(super) fn note_origin(&mut self, provenance: Provenance) -> Result<()> {
        self.append(None, Edited::from(provenance).into())?;
        self.finish()
    }

    /// Decides about what was known and not told again, and what was told in its place.
    fn settle_end(&mut self) -> Result<()> {
        let mut ends = Ends::default();
        self.held_back.iter().for_each(|(_, held)| ends.told(held));
        while let Some(known) = self.peek()? {
            ends.known(&known.event);
            self.past.pass();
        }
        let differs = ends.differ() || self.gap.is_some();
        self.overruled = match self.claim {
            // All that was told was known.
            _ if self.gap.is_some() => self.gap.take().is_some_and(|gap| gap.leaves_out()),
            Precedence::Newer => false,
            Precedence::Unclear => ends.is_shorter(),
            Precedence::Older | Precedence::Outdated => ends.differ() || !self.held_back.is_empty(),
        };
        if self.overruled {
            return Ok(());
        }
        if differs {
            self.take_back()?;
            // To take messages back leaves the status as it is: it is told again.
            if let Some((at, status)) = self.met_status.take() {
                self.append(at, status.into())?;
            }
        }
        self.append_held()
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
            self.past.pass();
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
        let at = at.or(self.told_at);
        self.write_new(NewEvent { id: Some(id), at, ..NewEvent::from(event) })
    }

    fn write_new(&mut self, new: NewEvent) -> Result<()> {
        if self.past.continued {
            return Err(Error::Continued { session: self.id.clone() });
        }
        self.grown = true;
        let beside = matches!(&new.event, Event::Foreign(it) if it.about == About::Event);
        if !beside && (self.batch.len() >= BATCH || self.batch.bytes() >= self.batch_limit) {
            self.flush()?;
        }
        if self.mode == Mode::Write {
            // Encoded at once, while its texts are at hand: they are not kept besides.
            self.batch.push(NewEvent { copied: true, ..new })?;
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

    fn gather(&mut self) -> Result<Option<Append>> {
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
        Ok(Some(Append {
            session: self.id.clone(),
            epoch: Some(session.lease().epoch),
            expected: Some(Expected::At(Seq::new(first).prev())),
            events: batch,
        }))
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

    /// Passes over what is known at this place: if it leaves the view, it stays counted.
    fn pass(&mut self) {
        if let Some(gone) = self.page.pop_front() {
            self.counted.add(&gone);
        }
    }

    fn is_dropped(&self, seq: Seq) -> bool {
        self.dropped.iter().any(|(from, to)| (*from..=*to).contains(&seq))
    }
}

/// Does it count wherever it is told? What stands beside another event does not.
fn may_move(event: &Event) -> bool {
    match event {
        Event::Foreign(foreign) => foreign.about == About::Session,
        event => is_trailer(event),
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
