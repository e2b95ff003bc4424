//! What the terminal reads from stores, on a thread of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use stepwell::log::{Head, Redactor, Timeline};
use stepwell::model::{Kind, Money, Role, Time};
use stepwell::sqlite::Access;
use stepwell::store::query::{Family, Filter, Query, Search};
use stepwell::store::{Order, Span};
use stepwell::work::Gates;
use stepwell::{Event, Recorded, Seq, SessionId, SessionInfo, Status, Stepwell};
use stepwell_files::walk::walker;
use stepwell_runtime::{Error, OpenGate, Runtime};
use stepwell_workspace::{Lies, NamedWell, Opening, OtherSessions, known_stores, other_sessions};

use super::follow::Follower;
use super::rows::{FILES_KEPT, card, foreign_row, point, preview, rests, row};
use crate::clean::Clean;
use crate::driver::Inputs;
use crate::effect::{Elsewhere, Grown, Input, Opened, OtherAgents, PointsFor, Reply, StorePlace};
use crate::from_runtime::{Listener, explained};
use crate::fuzzy;
use crate::helper::EventPage;
use crate::session::{LISTED, Point, Reach, SessionRow};

/// How many events are read at once.
const PAGE: usize = 300;
/// How many are read to open a session: more than a screen shows, and no more, so that it is there
/// at once. Earlier ones are read when somebody goes back to them.
const FIRST_PAGE: usize = 80;
/// How many hits of a search are looked at.
const HITS: usize = 100;
/// How many hits of one session are shown.
const HITS_SHOWN: usize = 5;
/// How many sessions of other agents are listed.
const FOREIGN: usize = 100;
/// How many points are listed.
const POINTS: usize = 2000;
/// How many sessions the start shows.
const STARTS: usize = 8;
/// The most files that are completed among.
const FILES: usize = 50_000;

type Result<T> = std::result::Result<T, Error>;

/// A session that is to be opened.
pub(super) struct Wanted {
    /// As it is named.
    pub(super) name: String,
    /// Does it go on at once?
    pub(super) resume: bool,
    /// Which opening it is.
    pub(super) opening: u64,
    /// Where it lies, if not where the reader is.
    pub(super) runtime: Option<Runtime>,
    /// The same, as it is shown, if not where the terminal began.
    pub(super) place: Option<StorePlace>,
}

/// Reads stores.
pub(crate) struct Reader {
    pub(super) runtime: Runtime,
    inputs: Inputs,
    well: Option<Stepwell>,
    others: Option<Vec<NamedWell>>,
    /// Their names.
    known: BTreeSet<PathBuf>,
    files: Option<(Time, Vec<String>)>,
    /// Other agents' sessions, if the user switched their index on.
    foreign: Option<Arc<Mutex<Option<OtherSessions>>>>,
    /// The session that is open.
    open: Option<SessionId>,
    follower: Follower,
    /// The store, opened so that a search can bring its index up to date.
    searched: Option<Stepwell>,
}

impl Reader {
    pub(super) fn new(runtime: Runtime, inputs: Inputs) -> Self {
        Self {
            runtime,
            inputs,
            well: None,
            others: None,
            known: BTreeSet::new(),
            files: None,
            foreign: None,
            open: None,
            follower: Follower::default(),
            searched: None,
        }
    }

    pub(super) fn go_to(&mut self, runtime: Runtime) {
        self.runtime = runtime;
        (self.well, self.files, self.searched) = (None, None, None);
        self.follower.stop();
    }

    pub(super) fn reply(&self, reply: Result<Reply>) {
        let reply = reply.unwrap_or_else(|error| {
            let (why, hint) = explained(&error);
            Reply::Failed { why, hint }
        });
        let _ = self.inputs.send(Input::Reply(reply));
    }

    /// The store, if there is one yet.
    fn well(&mut self) -> Result<Option<&Stepwell>> {
        if self.well.is_none() {
            self.well = self.runtime.workspace().open_if_present()?;
        }
        Ok(self.well.as_ref())
    }

    /// The store, so that a search brings its index up to date where that is possible.
    fn searched(&mut self) -> Result<Option<&Stepwell>> {
        if self.searched.is_none() && self.runtime.workspace().place.has_store() {
            self.searched = Some(
                self.runtime
                    .workspace()
                    .open_writable_if_possible(&self.runtime.workspace().place.store)?,
            );
        }
        Ok(self.searched.as_ref())
    }

    /// The store that holds a session.
    pub(super) fn existing(&mut self) -> Result<&Stepwell> {
        if self.well.is_none() {
            self.well = Some(self.runtime.workspace().open_existing(Access::Read)?);
        }
        Ok(self.well.as_ref().expect("it was just opened"))
    }

    pub(super) fn start(&mut self) {
        let rows = self.start_rows();
        self.reply(rows.map(Reply::Start));
    }

    /// What waits and what was cut off comes first, however old it is; then what was used last.
    fn start_rows(&mut self) -> Result<Vec<SessionRow>> {
        let of = |status: Status| Filter { status: vec![status], ..Filter::default() };
        let mut rows = Vec::new();
        for (filter, limit) in [
            (of(Status::Paused), STARTS),
            (of(Status::Interrupted), LISTED),
            (Filter::default(), STARTS * 6),
        ] {
            for row in self.listed(filter, limit)? {
                push_new(&mut rows, row);
            }
        }
        rows.sort_by_key(|row| (row.waiting == 0, !row.cut_off, std::cmp::Reverse(row.used_at)));
        rows.truncate(STARTS);
        Ok(rows)
    }

    fn listed(&mut self, filter: Filter, limit: usize) -> Result<Vec<SessionRow>> {
        let now = self.runtime.workspace().now();
        let Some(well) = self.well()? else { return Ok(Vec::new()) };
        let redactor = for_showing(well);
        let listed = list(well, filter, limit)?;
        Ok(listed.iter().map(|info| row(info, now, &redactor)).collect())
    }

    pub(super) fn open(&mut self, wanted: Wanted) {
        let (opening, before) = (wanted.opening, self.runtime.clone());
        let moves = wanted.runtime.is_some();
        let reply = match self.opened(wanted) {
            Ok(opened) => Reply::Opened(Box::new(opened)),
            Err(error) => {
                if moves {
                    self.go_to(before);
                }
                let (why, hint) = explained(&error);
                Reply::NotOpened { opening, why, hint }
            }
        };
        self.reply(Ok(reply));
    }

    fn opened(&mut self, wanted: Wanted) -> Result<Opened> {
        let Wanted { name, resume, opening, runtime, place } = wanted;
        let in_place = runtime.as_ref().unwrap_or(&self.runtime);
        let (well, id) = in_place.workspace().open_session(&name, Access::Read)?;
        if well.info(&id)?.trashed_at.is_some() {
            let lies = Lies::InTrash(id);
            return Err(stepwell_workspace::Error::NoMatch { name, lies }.into());
        }
        if let Some(runtime) = runtime {
            self.go_to(runtime);
        }
        // Before it is read, so that no change is missed.
        self.follower.follow(&well, &id, &self.inputs);
        let info = well.info(&id)?;
        let elsewhere = self.elsewhere(&well, &info)?;
        let head = info.head;
        let last = Last::at(head.seq, FIRST_PAGE);
        let EventPage { events, more } = last_events(&well, &id, last)?;
        let used = used_by(&well, &head, &events)?;
        let card = card(&well, &head, used, &self.runtime);
        self.open = Some(id);
        self.well = Some(well);
        Ok(Opened {
            opening,
            place,
            card,
            events,
            more,
            unheard: head.unheard,
            resume,
            rests: rests(&head),
            stopped: head.was_stopped(),
            waiting: head.open_gates,
            seq: head.seq,
            elsewhere,
        })
    }

    /// Works with a configuration that was read again.
    pub(super) fn work_with(&mut self, runtime: Runtime) {
        (self.runtime, self.foreign) = (runtime, None);
    }

    /// Sets what all of a session may cost, and shows what is left of it.
    pub(super) fn set_budget(&mut self, id: &SessionId, most: Money) {
        match self.runtime.set_budget(id, most) {
            Ok(()) => self.card(id),
            Err(error) => self.reply(Err(error)),
        }
    }

    /// Who runs a session, if another process does; and what it asks.
    fn elsewhere(&self, well: &Stepwell, info: &SessionInfo) -> Result<Option<Elsewhere>> {
        let this = self.runtime.workspace().host.processes.this();
        let id = &info.head.id;
        let Some(held) = info.held.as_ref().filter(|held| held.holder != this) else {
            return Ok(None);
        };
        let listener = Listener { session: id };
        let mut questions = Vec::new();
        let below = well.subagents(id)?.into_iter().map(|it| it.head.id);
        for session in std::iter::once(id.clone()).chain(below) {
            for asked in Gates::waiting(&**well.store(), &session)?.open() {
                let (session, gate) = (session.clone(), asked.gate.clone());
                let open = OpenGate::new(&**well.store(), session, gate, (asked.seq, asked.at));
                questions.push(listener.question(&open));
            }
        }
        let holder = Clean::line(&format!("process {} on {}", held.holder.pid, held.holder.host));
        Ok(Some(Elsewhere { holder, questions }))
    }

    /// What was added to a session behind an event.
    pub(super) fn grown(&mut self, id: &SessionId, after: Seq) {
        let grown = self.added(id, after);
        self.reply(grown);
    }

    /// What was added. If that is too much to be told one by one, the session is read anew.
    fn added(&mut self, id: &SessionId, after: Seq) -> Result<Reply> {
        let (well, id) = self.runtime.workspace().open_session(id.as_str(), Access::Read)?;
        let info = well.info(&id)?;
        let head = &info.head;
        let too_much = head.seq.get().saturating_sub(after.get()) > PAGE as u64;
        // A command that holds it for a moment does not run it.
        let runs = head.status == Status::Running || head.open_gates > 0;
        let elsewhere = if runs { self.elsewhere(&well, &info)? } else { None };
        let added = if too_much {
            Vec::new()
        } else {
            well.store().events(&id, Span::after(after))?.events
        };
        let events = shown(&well, added);
        let used = used_by(&well, head, &events)?;
        Ok(Reply::Grown(Box::new(Grown {
            card: card(&well, head, used, &self.runtime),
            seq: events.last().map_or(head.seq, |event| event.seq),
            events,
            too_much,
            waiting: head.open_gates,
            elsewhere,
        })))
    }

    pub(super) fn card(&mut self, id: &SessionId) {
        self.open = Some(id.clone());
        let runtime = self.runtime.clone();
        let inputs = self.inputs.clone();
        let mut follower = std::mem::take(&mut self.follower);
        let read = self.existing().and_then(|well| {
            follower.follow(well, id, &inputs);
            let head = well.info(id)?.head;
            let used = used_by(well, &head, &[])?;
            Ok(Reply::Card(Box::new(card(well, &head, used, &runtime))))
        });
        self.follower = follower;
        self.reply(read);
    }

    pub(super) fn earlier(&mut self, id: &SessionId, before: Seq) {
        let read = self.existing().and_then(|well| {
            let head = well.info(id)?.head;
            let last = Last { to: before.prev(), ..Last::at(head.seq, PAGE) };
            let EventPage { events, more } = last_events(well, id, last)?;
            Ok(Reply::Earlier { session: id.clone(), events, more })
        });
        self.reply(read);
    }

    pub(super) fn find(&mut self, search: u64, words: &str, reach: Reach) {
        let now = self.runtime.workspace().now();
        let rows = match reach {
            Reach::Everywhere => self.find_everywhere(words, now),
            reach => {
                let only = self.open.clone().filter(|_| reach == Reach::Session);
                match self.searched() {
                    Ok(Some(well)) => found(well, words, only.as_ref(), now),
                    Ok(None) => Ok(Vec::new()),
                    Err(error) => Err(error),
                }
            }
        };
        let others = match (reach, self.runtime.workspace().config.settings.index_others) {
            (Reach::Everywhere, true) => OtherAgents::On,
            (Reach::Everywhere, false) => OtherAgents::Off,
            _ => OtherAgents::Unasked,
        };
        self.reply(rows.map(|rows| Reply::Found { search, rows, others }));
    }

    /// Other agents' sessions that fit, and are not in a store.
    fn find_foreign(&mut self, words: &str, known: &mut Vec<SessionRow>, now: Time) {
        let foreign = Arc::clone(self.foreign.get_or_insert_with(|| {
            // Without an index nothing is found; that is no reason not to find the rest.
            let known = other_sessions::known(self.runtime.workspace()).unwrap_or_default();
            let foreign = Arc::new(Mutex::new(known));
            refresh(self.runtime.clone(), Arc::clone(&foreign), self.inputs.clone());
            foreign
        }));
        let index = foreign.lock();
        let Some(index) = &*index else { return };
        let wells = self.others.iter().flatten();
        let wells: Vec<_> = wells.map(|named| &named.well).collect();
        let is_here = |id: &SessionId| wells.iter().any(|well| well.info(id).is_ok());
        for session in index.find(words).into_iter().take(FOREIGN) {
            if let Some(row) = foreign_row(session, now)
                && !is_here(&row.id)
            {
                push_new(known, row);
            }
        }
    }

    fn find_everywhere(&mut self, words: &str, now: Time) -> Result<Vec<SessionRow>> {
        let runtime = self.runtime.clone();
        match &mut self.others {
            None => {
                let wells = known_stores::open_all(runtime.workspace(), Opening::WriteIfPossible);
                self.known = wells.iter().map(|named| named.name.clone()).collect();
                self.others = Some(wells);
            }
            // Stores may have been made meanwhile; not at each key.
            Some(wells) if words.trim().is_empty() => {
                wells.extend(known_stores::open_new(
                    runtime.workspace(),
                    &mut self.known,
                    Opening::WriteIfPossible,
                ));
            }
            Some(_) => {}
        }
        let mut rows = Vec::new();
        for named in self.others.iter().flatten() {
            let is_here = named.name == runtime.workspace().place.shown_store();
            for mut row in found(&named.well, words, None, now)? {
                row.store = (!is_here).then(|| named.name.clone());
                rows.push(row);
            }
        }
        if words.trim().is_empty() {
            rows.sort_by_key(|row| std::cmp::Reverse(row.used_at));
        }
        self.find_foreign(words, &mut rows, now);
        Ok(rows)
    }

    pub(super) fn preview(&mut self, id: &SessionId, store: Option<&Path>) {
        let is_it = |named: &&NamedWell| store.is_some_and(|store| store == named.name);
        let other = self.others.iter().flatten().find(is_it);
        let last = match other {
            Some(named) => last_messages(&named.well, id),
            None => self.existing().and_then(|well| last_messages(well, id)),
        };
        self.reply(
            last.map(|events| Reply::Preview { session: id.clone(), text: preview(&events) }),
        );
    }

    pub(super) fn points(&mut self, id: &SessionId, purpose: PointsFor) {
        let now = self.runtime.workspace().now();
        let points = self.existing().and_then(|well| points(well, id, purpose, now));
        let session = id.clone();
        self.reply(points.map(|points| Reply::Points { session, purpose, points }));
    }

    pub(super) fn files(&mut self, typed: &str) {
        let now = self.runtime.workspace().now();
        let is_new = |(at, _): &(Time, Vec<String>)| now.since(*at) < FILES_KEPT;
        if !self.files.as_ref().is_some_and(is_new) {
            let place = &self.runtime.workspace().place;
            self.files = Some((now, files(&place.root, &place.store)));
        }
        let all = self.files.iter().flat_map(|(_, files)| files);
        let best = fuzzy::best(all, typed, crate::completion::MOST, |file| file.as_str());
        let best = best.into_iter().cloned().collect();
        self.reply(Ok(Reply::Files(best)));
    }
}

/// Looks through what other agents did meanwhile, on a thread of its own.
fn refresh(runtime: Runtime, into: Arc<Mutex<Option<OtherSessions>>>, inputs: Inputs) {
    std::thread::spawn(move || {
        if let Ok(Some(read)) = other_sessions::refresh(runtime.workspace()) {
            *into.lock() = Some(read);
            let _ = inputs.send(Input::Reply(Reply::OthersRead));
        }
    });
}

fn list(well: &Stepwell, filter: Filter, limit: usize) -> Result<Vec<SessionInfo>> {
    let filter = Filter { family: Family::Roots, ..filter };
    let query = Query { filter, limit, ..Query::default() };
    Ok(well.list(&query)?.sessions)
}

/// Sessions that words are found in: in their names and tasks first, then in what was said.
fn found(
    well: &Stepwell,
    words: &str,
    only: Option<&SessionId>,
    now: Time,
) -> Result<Vec<SessionRow>> {
    let words = words.trim();
    let (prefix, redactor) = (only.map(ToString::to_string), for_showing(well));
    let filter = || Filter { prefix: prefix.clone(), ..Filter::default() };
    if words.is_empty() {
        let all = list(well, filter(), LISTED)?;
        return Ok(all.iter().map(|info| row(info, now, &redactor)).collect());
    }
    let mut rows: Vec<SessionRow> = Vec::new();
    let named = [
        Filter { label: Some(words.to_owned()), ..filter() },
        Filter { task: Some(words.to_owned()), ..filter() },
    ];
    for filter in named {
        for info in list(well, filter, LISTED)? {
            push_new(&mut rows, row(&info, now, &redactor));
        }
    }
    let search = Search { limit: HITS, filter: filter(), ..Search::new(words) };
    for hit in well.search(&search)?.hits {
        let text = Clean::line(hit.snippet.text());
        match rows.iter_mut().find(|row| row.id == hit.session) {
            Some(row) if row.hits.len() < HITS_SHOWN => row.hits.push(text),
            Some(_) => {}
            None => {
                let mut row = row(&well.info(&hit.session)?, now, &redactor);
                row.hits.push(text);
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

fn push_new(rows: &mut Vec<SessionRow>, row: SessionRow) {
    if rows.iter().all(|known| known.id != row.id) {
        rows.push(row);
    }
}

/// Which events of a session are read.
#[derive(Clone, Copy)]
pub(super) struct Last {
    /// Where the session's head stands: what counts there is read.
    pub(super) head: Seq,
    /// The last of them.
    pub(super) to: Seq,
    /// How many at most.
    pub(super) most: usize,
}

impl Last {
    /// So many before the head.
    pub(super) const fn at(head: Seq, most: usize) -> Self {
        Self { head, to: head, most }
    }
}

/// The last events up to a seq, the oldest first.
pub(super) fn last_events(well: &Stepwell, id: &SessionId, last: Last) -> Result<EventPage> {
    let Last { head, to, most } = last;
    let timeline = timeline(well, id, head)?;
    let span = Span { to, ..Span::last(most) };
    let mut events = shown(well, well.store().events(id, span)?.events);
    let more = events.last().is_some_and(|event| event.seq > Seq::FIRST);
    events.reverse();
    events.retain(|event| timeline.contains(event.seq));
    Ok(EventPage { events, more })
}

/// What takes secrets out of what is only shown: that is not counted as written.
fn for_showing(well: &Stepwell) -> Redactor {
    well.redactor().with_own_count()
}

/// Events without their secrets: imports and other programs' records are kept as they came.
fn shown(well: &Stepwell, events: Vec<Recorded>) -> Vec<Recorded> {
    let redactor = for_showing(well);
    let redacted = |event: Recorded| Recorded { event: event.event.redacted(&redactor), ..event };
    events.into_iter().map(redacted).collect()
}

fn timeline(well: &Stepwell, id: &SessionId, head: Seq) -> Result<Timeline> {
    let moves = well.store().keyed_events(id, &[Kind::Rewound, Kind::Undone])?;
    Ok(Timeline::at(head, moves.iter()))
}

fn last_messages(well: &Stepwell, id: &SessionId) -> Result<Vec<Recorded>> {
    let head = well.info(id)?.head.seq;
    let mut events = last_events(well, id, Last::at(head, FIRST_PAGE))?.events;
    let spoken = |event: &Recorded| matches!(&event.event, Event::Message(message) if matches!(message.role, Role::User | Role::Assistant));
    events.retain(spoken);
    let from = events.len().saturating_sub(8);
    Ok(events.split_off(from))
}

/// The tokens of the last call: what the window holds. Where the last events that were read do not
/// say it, more are.
fn used_by(well: &Stepwell, head: &Head, known: &[Recorded]) -> Result<Option<u64>> {
    let used = |events: &[Recorded]| {
        events.iter().rev().find_map(|event| match &event.event {
            Event::Message(message) => message.usage.map(|usage| usage.total()),
            _ => None,
        })
    };
    // Nothing was used where no model was asked.
    if head.spent.usage.total() == 0 {
        return Ok(None);
    }
    for most in [0, FIRST_PAGE, PAGE] {
        let found = match most {
            0 => used(known),
            most => used(&last_events(well, &head.id, Last::at(head.seq, most))?.events),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Points of a session, the newest first.
fn points(well: &Stepwell, id: &SessionId, purpose: PointsFor, now: Time) -> Result<Vec<Point>> {
    let head = well.info(id)?.head.seq;
    let timeline = timeline(well, id, head)?;
    let (mut points, mut to) = (Vec::new(), head);
    while points.len() < POINTS && to >= Seq::FIRST {
        let span = Span { to, order: Order::Newest, limit: PAGE, ..Span::ALL };
        let events = shown(well, well.store().events(id, span)?.events);
        let Some(last) = events.last() else { break };
        to = last.seq.prev();
        let counting = events.iter().filter(|event| timeline.contains(event.seq));
        points.extend(counting.filter_map(|event| point(event, purpose, now)));
    }
    Ok(points)
}

/// Files of the workspace, as git sees them.
fn files(root: &Path, store: &Path) -> Vec<String> {
    let walk = walker(root, Some(store)).build();
    let files = walk
        .filter_map(std::result::Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let name = |entry: ignore::DirEntry| {
        Some(entry.path().strip_prefix(root).ok()?.to_string_lossy().into_owned())
    };
    files.filter_map(name).take(FILES).collect()
}
