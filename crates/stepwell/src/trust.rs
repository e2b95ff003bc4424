//! Whose word counts: which of a log's permissions hold, judged by who gave them.
//!
//! A store can be shared, and a folder can come from someone else. So an event that widens a user's
//! risk (a looser mode, a model, "always allow", an approval) counts only from that user. It is
//! theirs if this machine [noted](Notes) it, or if the store's server recorded it under their
//! login. Events that make a run stricter count from anyone. Everything here but the notes is pure.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::{
    Answer, Digest, Event, Gate, GateAnswered, Grant, Kind, Mode, Money, NewEvent, NodeKey,
    Permission, Recorded, Seq, Settings, Time, Who, WorkAsked,
};

mod notes;
mod runs;

pub use notes::{MemoryNotes, Notebook, Notes};
pub use runs::Runs;

/// Whose answers and messages count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswersFrom {
    /// Only the user's own.
    #[default]
    Own,
    /// Those of everyone who may write to the store. Their "always" counts as "once".
    Store,
}

/// A note that the user gave an event: its seq, and the digest of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The event's seq.
    pub seq: Seq,
    /// The digest of its body.
    pub digest: Digest,
}

impl Note {
    /// The note for an event, if events of its kind are judged.
    #[must_use]
    pub fn on(seq: Seq, event: &Event) -> Option<Self> {
        if !is_judged(event) {
            return None;
        }
        Some(Self { seq, digest: Digest::of(&event.encode().ok()?) })
    }
}

/// The notes for new events, the first of which gets the seq `first`. Copied events were not given
/// here.
pub(crate) fn given_at(first: Seq, events: &[NewEvent]) -> Vec<Note> {
    let own = (first.get()..).zip(events).filter(|(_, new)| !new.copied);
    own.filter_map(|(seq, new)| Note::on(Seq::new(seq), &new.event)).collect()
}

/// What this machine's user gave in one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    notes: BTreeMap<Seq, Digest>,
    /// Grants that were announced before they were written, with the log's last seq at that moment.
    /// They count even if the process died before it could note where they landed.
    announced: BTreeSet<(Seq, Digest)>,
}

/// How far behind an announcement its event may land, since others may write in between. Later
/// events are not the announced one.
const SOON: u64 = 64;

impl Given {
    /// Adds a note, which settles its announcement.
    pub fn add(&mut self, note: Note) {
        self.announced.retain(|it| !is_announced(it, note.seq, &note.digest));
        self.notes.insert(note.seq, note.digest);
    }

    /// Announces an event that the user is about to append to a log that ends at `end`.
    pub fn announce(&mut self, end: Seq, digest: Digest) {
        self.announced.insert((end, digest));
    }

    /// The notes, in the log's order.
    pub fn notes(&self) -> impl DoubleEndedIterator<Item = Note> {
        self.notes.iter().map(|(seq, digest)| Note { seq: *seq, digest: *digest })
    }

    /// Did the user give this event, with exactly this body?
    #[must_use]
    pub fn has(&self, recorded: &Recorded) -> bool {
        let noted = self.notes.get(&recorded.seq);
        if noted.is_none() && self.announced.is_empty() {
            return false;
        }
        let Some(note) = Note::on(recorded.seq, &recorded.event) else { return false };
        match noted {
            Some(digest) => *digest == note.digest,
            None => self.announced.iter().any(|it| is_announced(it, note.seq, &note.digest)),
        }
    }
}

/// Is the event at this seq the announced one?
fn is_announced((end, announced): &(Seq, Digest), seq: Seq, digest: &Digest) -> bool {
    let soon = end.get().saturating_add(SOON);
    announced == digest && *end < seq && seq.get() <= soon
}

/// Does an event of this kind count only from some people?
const fn is_judged(event: &Event) -> bool {
    matches!(event, Event::Settings(_) | Event::Permission(_) | Event::GateAnswered(_))
}

/// A permission that does not count, because of who gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disregarded {
    /// The event's seq.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Time,
    /// Who gave it.
    pub who: Who,
    /// What it allowed.
    pub what: Allowed,
}

/// What a disregarded event allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// A looser mode.
    Mode(Mode),
    /// A model.
    Model(String),
    /// Every call that fits a rule.
    Always(String),
    /// One question's subject.
    Answer {
        /// The question's id.
        gate: String,
        /// The answer.
        answer: Answer,
    },
    /// Work on a message.
    Word(String),
}

/// How an answer counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// As this answer.
    As(Answer),
    /// Not at all: the question must be asked again.
    AskAgain(Disregarded),
}

/// Judges which permissions in a session's log count.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The user: their name here, and their login at the store's server.
    pub me: Who,
    /// What they gave in this session, as this machine noted it.
    pub given: Given,
    /// Whose answers and messages count.
    pub answers: AnswersFrom,
}

/// The kinds of events that [`Judge::weigh`] reads.
pub const JUDGED: [Kind; 4] = [Kind::Settings, Kind::Permission, Kind::Gate, Kind::GateAnswered];

impl Judge {
    /// Did the user give this?
    #[must_use]
    pub fn gave(&self, recorded: &Recorded) -> bool {
        self.given.has(recorded) || self.is_signed(&recorded.event)
    }

    /// Does the store's server say that the user wrote it? Several people can share a login, so
    /// their names must be equal, too.
    fn is_signed(&self, event: &Event) -> bool {
        let Some(who) = event.who().filter(|_| is_judged(event)) else { return false };
        self.me.login.is_some() && self.me.login == who.login && self.me.user() == who.user()
    }

    /// How an answer counts. Answers from before a [revocation](Settings::revokes) are judged by
    /// [`weigh`](Self::weigh) only.
    #[must_use]
    pub fn answer(&self, recorded: &Recorded) -> Option<Counted> {
        let Event::GateAnswered(given) = &recorded.event else { return None };
        let answer = given.answer.clone();
        if self.gave(recorded) || is_denial(&given.id, &answer) {
            return Some(Counted::As(answer));
        }
        // A copied answer has no login, because no one gave it here.
        let by_member = self.me.login.is_none() || given.who.login.is_some();
        if self.answers == AnswersFrom::Store && by_member {
            return Some(Counted::As(match answer {
                Answer::Allow { scope: Grant::Always } => Answer::ALLOW_ONCE,
                answer => answer,
            }));
        }
        Some(Counted::AskAgain(unanswered(recorded, given, &given.who)))
    }

    /// Returns the reason if a queued message is not to be delivered. On a server, only the user's
    /// own messages are, or everyone's in the store if the user chose that. In a folder, all
    /// messages are: anyone who can write there can write anything into its sessions.
    #[must_use]
    pub fn hears(&self, recorded: &Recorded) -> Option<Disregarded> {
        let Event::Said(said) = &recorded.event else { return None };
        let what = || Allowed::Word(said.text.clone());
        (!self.listens_to(&said.who)).then(|| disregarded(recorded, &said.who, what()))
    }

    /// Does the runner apply a change of the work that someone requested? Its text can reach the
    /// model, as messages do, so the same people count.
    #[must_use]
    pub fn obeys(&self, asked: &WorkAsked) -> bool {
        self.listens_to(&asked.who)
    }

    /// Do this person's messages count?
    #[must_use]
    pub fn listens_to(&self, who: &Who) -> bool {
        match (&self.me.login, self.answers) {
            (None, _) => true,
            (Some(_), AnswersFrom::Store) => who.login.is_some(),
            (login, AnswersFrom::Own) => *login == who.login && self.me.user() == who.user(),
        }
    }

    /// Weighs a session's settings, permissions, questions and answers. The events must be complete
    /// and in order, also those before a rewind. Events of other kinds are skipped.
    #[must_use]
    pub fn weigh(&self, events: &[Recorded]) -> Weighed {
        let mut weighed = Weighed::default();
        let is_last = |note: Note| {
            let place = events.partition_point(|event| event.seq < note.seq);
            events.get(place).is_some_and(|event| self.given.has(event))
        };
        // If the newest note's event is gone, someone removed it, perhaps with others.
        if !self.given.notes().next_back().is_none_or(is_last) {
            let nobody =
                Self { me: Who::default(), given: Given::default(), answers: self.answers };
            return Weighed { altered: true, ..nobody.weigh(events) };
        }
        let revoked = events.iter().rfind(|it| is_revocation(&it.event)).map(|it| it.seq);
        let is_revoked = |recorded: &Recorded| revoked.is_some_and(|at| recorded.seq < at);
        let mut asked: BTreeMap<&str, Seq> = BTreeMap::new();
        for recorded in events {
            match &recorded.event {
                Event::Settings(settings) => {
                    let by_me = self.gave(recorded);
                    weighed.runs.begin(recorded.seq, (!by_me).then(|| settings.who.clone()));
                    match by_me {
                        true if is_revoked(recorded) => weighed.chosen_before(recorded, settings),
                        true => weighed.chosen(settings),
                        false => weighed.set_by_others(recorded, settings),
                    }
                }
                Event::Permission(permission)
                    if permission.allow && (is_revoked(recorded) || !self.gave(recorded)) =>
                {
                    weighed.ignored.insert(recorded.seq);
                    let who = permission.who.clone().unwrap_or_default();
                    let who = if is_revoked(recorded) { from_parent(&who) } else { who };
                    let what = Allowed::Always(permission.rule.clone());
                    weighed.disregarded.push(disregarded(recorded, &who, what));
                }
                Event::Gate(Gate { id, .. }) => {
                    asked.insert(id, recorded.seq);
                    // The question was asked again.
                    weighed.forget(|it| matches!(it, Allowed::Answer { gate, .. } if gate == id));
                }
                Event::GateAnswered(given)
                    if is_revoked(recorded) && !is_denial(&given.id, &given.answer) =>
                {
                    weighed.ignored.insert(recorded.seq);
                    weighed.ignored.extend(asked.get(given.id.as_str()));
                    weighed.disregarded.push(unanswered(recorded, given, &from_parent(&given.who)));
                }
                Event::GateAnswered(given) => match self.answer(recorded) {
                    Some(Counted::AskAgain(why)) => {
                        weighed.ignored.insert(recorded.seq);
                        weighed.ignored.extend(asked.get(given.id.as_str()));
                        weighed.disregarded.push(why);
                    }
                    Some(Counted::As(answer)) if answer != given.answer => {
                        weighed.once.insert(recorded.seq);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        weighed
    }
}

/// Which permissions of a log count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weighed {
    /// The user's own settings: the newest of each part.
    pub mine: Settings,
    /// Settings of others that are newer than the user's.
    pub theirs: Settings,
    /// Permissions, questions and answers that do not count. A question goes with its answer: it is
    /// asked again.
    pub ignored: BTreeSet<Seq>,
    /// Answers of others that count as "once" although they say "always".
    pub once: BTreeSet<Seq>,
    /// Permissions of others that do not count.
    pub disregarded: Vec<Disregarded>,
    /// Who started each run.
    pub runs: Runs,
    /// Is this not the log in which the user gave what this machine noted? Then nothing counts.
    pub altered: bool,
}

impl Weighed {
    /// The session's mode, unless its user names another now: the one they last chose, else their
    /// `usual` one. Others can make it stricter, and so can `before`: the mode in the metadata of a
    /// session that has no settings.
    #[must_use]
    pub fn mode(&self, usual: Mode, before: Option<Mode>) -> Mode {
        let chosen = self.mine.mode.unwrap_or_else(|| usual.min(before.unwrap_or(usual)));
        chosen.min(self.theirs.mode.unwrap_or(chosen))
    }

    /// The session's budget, unless its user names another now: the smallest of theirs, others' and
    /// the `recorded` one, an attribute that anyone can change.
    #[must_use]
    pub fn budget(&self, recorded: Option<Money>) -> Option<Money> {
        [self.mine.budget, self.theirs.budget, recorded].into_iter().flatten().min()
    }

    /// An event in the form in which it counts; `None` if it does not.
    #[must_use]
    pub fn counted<'a>(&self, recorded: &'a Recorded) -> Option<Cow<'a, Recorded>> {
        if self.ignored.contains(&recorded.seq) {
            return None;
        }
        match &recorded.event {
            Event::GateAnswered(given) if self.once.contains(&recorded.seq) => {
                let given = GateAnswered { answer: Answer::ALLOW_ONCE, ..given.clone() };
                Some(Cow::Owned(Recorded { event: given.into(), ..*recorded }))
            }
            _ => Some(Cow::Borrowed(recorded)),
        }
    }

    /// The modes and models of others that do not count, besides those that the session uses.
    #[must_use]
    pub fn refused(&self, mode: Mode, model: &str) -> Vec<Disregarded> {
        let looser = |it: &Disregarded| match &it.what {
            Allowed::Mode(theirs) => *theirs > mode,
            Allowed::Model(theirs) => theirs != model,
            Allowed::Always(_) | Allowed::Answer { .. } | Allowed::Word(_) => false,
        };
        self.disregarded.iter().filter(|it| looser(it)).cloned().collect()
    }

    /// Applies the user's own settings.
    fn chosen(&mut self, settings: &Settings) {
        put(&mut self.mine, settings);
        self.forget(|what| match what {
            Allowed::Mode(_) => settings.mode.is_some(),
            Allowed::Model(_) => settings.model.is_some(),
            _ => false,
        });
        let Settings { agent, model, mode, budget, flow, .. } = settings;
        self.theirs.agent.take_if(|_| agent.is_some());
        self.theirs.model.take_if(|_| model.is_some());
        self.theirs.mode.take_if(|_| mode.is_some());
        self.theirs.budget.take_if(|_| budget.is_some());
        self.theirs.flow.take_if(|_| flow.is_some());
    }

    /// Applies the user's settings from before a revocation. Settings without risk stay theirs. The
    /// agent and the mode do not: an agent can bring a looser mode.
    fn chosen_before(&mut self, recorded: &Recorded, settings: &Settings) {
        let Settings { agent, mode, who, .. } = settings;
        self.chosen(&Settings { agent: None, mode: None, ..settings.clone() });
        let (agent, mode, who) = (agent.clone(), *mode, from_parent(who));
        self.set_by_others(recorded, &Settings { agent, mode, who, ..Settings::default() });
    }

    /// Applies another person's settings.
    fn set_by_others(&mut self, recorded: &Recorded, settings: &Settings) {
        put(&mut self.theirs, settings);
        let who = &settings.who;
        if let Some(mode) = settings.mode {
            self.forget(|what| matches!(what, Allowed::Mode(_)));
            self.disregarded.push(disregarded(recorded, who, Allowed::Mode(mode)));
        }
        if let Some(model) = &settings.model {
            self.forget(|what| matches!(what, Allowed::Model(_)));
            self.disregarded.push(disregarded(recorded, who, Allowed::Model(model.clone())));
        }
    }

    fn forget(&mut self, which: impl Fn(&Allowed) -> bool) {
        self.disregarded.retain(|it| !which(&it.what));
    }
}

/// Overwrites the parts that new settings name.
fn put(settings: &mut Settings, new: &Settings) {
    let Settings { agent, model, mode, budget, flow, revokes: _, who } = new;
    settings.agent = agent.clone().or(settings.agent.take());
    settings.model = model.clone().or(settings.model.take());
    settings.mode = mode.or(settings.mode);
    settings.budget = budget.or(settings.budget);
    settings.flow = flow.clone().or(settings.flow.take());
    settings.who.clone_from(who);
}

fn disregarded(recorded: &Recorded, who: &Who, what: Allowed) -> Disregarded {
    Disregarded { seq: recorded.seq, at: recorded.at, who: who.clone(), what }
}

/// An answer as one that does not count.
fn unanswered(recorded: &Recorded, given: &GateAnswered, who: &Who) -> Disregarded {
    let what = Allowed::Answer { gate: given.id.clone(), answer: given.answer.clone() };
    disregarded(recorded, who, what)
}

const fn is_revocation(event: &Event) -> bool {
    matches!(event, Event::Settings(Settings { revokes: true, .. }))
}

/// The first event of a session in which no earlier permission is to count: a fork that someone
/// made in another user's name. Neither their login nor their notes can bring one back.
#[must_use]
pub fn revocation(who: Who) -> NewEvent {
    let event: Event = Settings { revokes: true, who, ..Settings::default() }.into();
    NewEvent { copied: true, ..event.into() }
}

/// Does the answer deny something? A denial makes nothing riskier. A flow's question, which is
/// named after its node, is answered in free text, never by a mere denial.
fn is_denial(gate: &str, answer: &Answer) -> bool {
    match answer {
        Answer::Allow { .. } => false,
        Answer::Deny { .. } => true,
        Answer::Text(_) => !answer.allows() && gate.parse::<NodeKey>().is_err(),
    }
}

/// The first events of a fork, so that it is not looser than its parent is now: the parent's mode
/// and prohibitions from after the last shared event. They carry no one's authority, so they can only
/// make the fork stricter.
pub(crate) fn carried_over(parent: &[Recorded], at: Seq) -> Vec<NewEvent> {
    let (mut mode, mut carried) = (None, Vec::new());
    for recorded in parent.iter().filter(|event| event.seq > at) {
        match &recorded.event {
            Event::Settings(Settings { mode: Some(set), who, .. }) => mode = Some((*set, who)),
            Event::Permission(permission) if !permission.allow => {
                let who = permission.who.as_ref().map(from_parent);
                let rule = permission.rule.clone();
                carried.push(Permission { rule, allow: false, who }.into());
            }
            _ => {}
        }
    }
    // Otherwise a fork of a fork could reach behind the revocation.
    carried.extend(parent.iter().rfind(|it| it.seq > at && is_revocation(&it.event)).map(|it| {
        let who = it.event.who().map(from_parent).unwrap_or_default();
        Settings { revokes: true, who, ..Settings::default() }.into()
    }));
    if let Some((mode, who)) = mode {
        let who = from_parent(who);
        carried.push(Settings { mode: Some(mode), who, ..Settings::default() }.into());
    }
    carried.into_iter().map(|event: Event| NewEvent { copied: true, ..event.into() }).collect()
}

fn from_parent(who: &Who) -> Who {
    Who::from(format!("in its parent: {who}"))
}

#[cfg(test)]
mod tests;
