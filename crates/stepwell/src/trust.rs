//! Whose word counts: what a log says was allowed, judged by who allowed it.
//!
//! A store can be shared, and a folder can come from someone else. So what widens a user's risk
//! (a looser mode, a model, "always", an approval) counts only if that user gave it: on this
//! machine, which [notes](Notes) what its user gives, or under the same login of the store's
//! server. What makes a run stricter counts from anyone. Pure, but for the notes.

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

/// Whose answers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswersFrom {
    /// The user's own.
    #[default]
    Own,
    /// Those of everyone who may write to the store. "Always" of others means "once".
    Store,
}

/// That the user gave what an event says: its place, and the digest of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where the event stands.
    pub seq: Seq,
    /// The digest of what it says.
    pub digest: Digest,
}

impl Note {
    /// The note on an event, if it is one of those that are judged.
    #[must_use]
    pub fn on(seq: Seq, event: &Event) -> Option<Self> {
        if !is_judged(event) {
            return None;
        }
        Some(Self { seq, digest: Digest::of(&event.encode().ok()?) })
    }
}

/// The notes on new events of which the first stands at `first`. What was copied was not given.
pub(crate) fn given_at(first: Seq, events: &[NewEvent]) -> Vec<Note> {
    let own = (first.get()..).zip(events).filter(|(_, new)| !new.copied);
    own.filter_map(|(seq, new)| Note::on(Seq::new(seq), &new.event)).collect()
}

/// What this machine's user gave in one session, as it was noted here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    notes: BTreeMap<Seq, Digest>,
    /// What the user was about to give when the log ended with a seq. It counts where a process died
    /// before it could note where that stands.
    announced: BTreeSet<(Seq, Digest)>,
}

/// How many events after the end of the log something stands at the most that was announced there:
/// others may write meanwhile. What stands later was not meant.
const SOON: u64 = 64;

impl Given {
    /// Adds a note. What it says is no longer only announced.
    pub fn add(&mut self, note: Note) {
        self.announced.retain(|it| !is_announced(it, note.seq, &note.digest));
        self.notes.insert(note.seq, note.digest);
    }

    /// Adds what the user is about to give, in a log that ends with a seq.
    pub fn announce(&mut self, end: Seq, digest: Digest) {
        self.announced.insert((end, digest));
    }

    /// The notes, in the order of the log.
    pub fn notes(&self) -> impl DoubleEndedIterator<Item = Note> {
        self.notes.iter().map(|(seq, digest)| Note { seq: *seq, digest: *digest })
    }

    /// Is this event noted, as it is?
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

/// Is what stands at a seq what was announced?
fn is_announced((end, announced): &(Seq, Digest), seq: Seq, digest: &Digest) -> bool {
    let soon = end.get().saturating_add(SOON);
    announced == digest && *end < seq && seq.get() <= soon
}

/// Is an event one of those that count only from some?
const fn is_judged(event: &Event) -> bool {
    matches!(event, Event::Settings(_) | Event::Permission(_) | Event::GateAnswered(_))
}

/// Something that was allowed by someone whose word does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disregarded {
    /// The event.
    pub seq: Seq,
    /// When it was given.
    pub at: Time,
    /// Who gave it.
    pub who: Who,
    /// What they allowed.
    pub what: Allowed,
}

/// What was allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// That fewer questions are asked.
    Mode(Mode),
    /// A model.
    Model(String),
    /// All calls that a rule fits.
    Always(String),
    /// What one question was about.
    Answer {
        /// The question's id.
        gate: String,
        /// What was answered.
        answer: Answer,
    },
    /// That a run works on what they said.
    Word(String),
}

/// How an answer counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// It counts as this answer.
    As(Answer),
    /// Not at all: the question has to be asked again.
    AskAgain(Disregarded),
}

/// Judges what one session's log says was allowed.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The user: their name here, and the login that the store's server knows them by.
    pub me: Who,
    /// What they gave in this session, as this machine noted it.
    pub given: Given,
    /// Whose answers count.
    pub answers: AnswersFrom,
}

/// The kinds of events that a judge weighs.
pub const JUDGED: [Kind; 4] = [Kind::Settings, Kind::Permission, Kind::Gate, Kind::GateAnswered];

impl Judge {
    /// Did the user give this?
    #[must_use]
    pub fn gave(&self, recorded: &Recorded) -> bool {
        self.given.has(recorded) || self.is_signed(&recorded.event)
    }

    /// Does the store's server say that the user wrote it? Several people may share a login, so
    /// their names have to be the same as well.
    fn is_signed(&self, event: &Event) -> bool {
        let Some(who) = event.who().filter(|_| is_judged(event)) else { return false };
        self.me.login.is_some() && self.me.login == who.login && self.me.user() == who.user()
    }

    /// How an answer counts. One from before all was [revoked](Settings::revokes) is only
    /// [weighed](Self::weigh).
    #[must_use]
    pub fn answer(&self, recorded: &Recorded) -> Option<Counted> {
        let Event::GateAnswered(given) = &recorded.event else { return None };
        let answer = given.answer.clone();
        if self.gave(recorded) || is_denial(&given.id, &answer) {
            return Some(Counted::As(answer));
        }
        // What was copied here was not given here by anyone.
        let by_member = self.me.login.is_none() || given.who.login.is_some();
        if self.answers == AnswersFrom::Store && by_member {
            return Some(Counted::As(match answer {
                Answer::Allow { scope: Grant::Always } => Answer::ALLOW_ONCE,
                answer => answer,
            }));
        }
        Some(Counted::AskAgain(unanswered(recorded, given, &given.who)))
    }

    /// Is what somebody said to the session taken in? On a server the user's own words are, and
    /// everyone's in the store if the user wants that. Who can write to a folder can write
    /// anything into its sessions, so there all words are.
    #[must_use]
    pub fn hears(&self, recorded: &Recorded) -> Option<Disregarded> {
        let Event::Said(said) = &recorded.event else { return None };
        let what = || Allowed::Word(said.text.clone());
        (!self.listens_to(&said.who)).then(|| disregarded(recorded, &said.who, what()))
    }

    /// Does a runner do what somebody asked of the session's work? What is noted there can reach
    /// the model, as words do, so the same people are listened to.
    #[must_use]
    pub fn obeys(&self, asked: &WorkAsked) -> bool {
        self.listens_to(&asked.who)
    }

    /// Do somebody's words count?
    #[must_use]
    pub fn listens_to(&self, who: &Who) -> bool {
        match (&self.me.login, self.answers) {
            (None, _) => true,
            (Some(_), AnswersFrom::Store) => who.login.is_some(),
            (login, AnswersFrom::Own) => *login == who.login && self.me.user() == who.user(),
        }
    }

    /// Weighs a session's settings, permissions, questions and answers: all of them, in order,
    /// also those that a rewind took back. Other events are passed over.
    #[must_use]
    pub fn weigh(&self, events: &[Recorded]) -> Weighed {
        let mut weighed = Weighed::default();
        let is_last = |note: Note| {
            let place = events.partition_point(|event| event.seq < note.seq);
            events.get(place).is_some_and(|event| self.given.has(event))
        };
        // Where what was noted last is gone, somebody took it out, with who knows what else.
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
                    // It was asked again.
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

/// What counts of what a log says was allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weighed {
    /// What the user chose: each part as they last gave it.
    pub mine: Settings,
    /// What others chose since the user did.
    pub theirs: Settings,
    /// Permissions, questions and answers that do not count. A question goes with its answer:
    /// it is asked again.
    pub ignored: BTreeSet<Seq>,
    /// Answers of others that allow something once, though they say always.
    pub once: BTreeSet<Seq>,
    /// What others allowed, and does not count.
    pub disregarded: Vec<Disregarded>,
    /// Whose runs recorded what.
    pub runs: Runs,
    /// Is the log not the one in which the user gave what this machine noted? Then nothing counts.
    pub altered: bool,
}

impl Weighed {
    /// In which mode the session runs, unless its user names another: the one that they last
    /// chose, else their `usual` one. Others can only make it stricter.
    #[must_use]
    pub fn mode(&self, usual: Mode) -> Mode {
        let chosen = self.mine.mode.unwrap_or(usual);
        chosen.min(self.theirs.mode.unwrap_or(chosen))
    }

    /// What the whole session may cost, unless its user says otherwise: what they said last.
    /// Others can only make it less. `recorded` is what its attributes say, which anyone can
    /// change.
    #[must_use]
    pub fn budget(&self, recorded: Option<Money>) -> Option<Money> {
        [self.mine.budget, self.theirs.budget, recorded].into_iter().flatten().min()
    }

    /// An event as it counts, if it does.
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

    /// The modes and models of others that do not count, given what does.
    #[must_use]
    pub fn refused(&self, mode: Mode, model: &str) -> Vec<Disregarded> {
        let looser = |it: &Disregarded| match &it.what {
            Allowed::Mode(theirs) => *theirs > mode,
            Allowed::Model(theirs) => theirs != model,
            Allowed::Always(_) | Allowed::Answer { .. } | Allowed::Word(_) => false,
        };
        self.disregarded.iter().filter(|it| looser(it)).cloned().collect()
    }

    /// Takes in what the user chose.
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

    /// Takes in what the user chose before all was revoked. What makes nothing riskier stays their
    /// choice; an agent can bring a looser mode.
    fn chosen_before(&mut self, recorded: &Recorded, settings: &Settings) {
        let Settings { agent, mode, who, .. } = settings;
        self.chosen(&Settings { agent: None, mode: None, ..settings.clone() });
        let (agent, mode, who) = (agent.clone(), *mode, from_parent(who));
        self.set_by_others(recorded, &Settings { agent, mode, who, ..Settings::default() });
    }

    /// Takes in what somebody else chose.
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

/// Sets what new settings name.
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

/// An answer that does not count.
fn unanswered(recorded: &Recorded, given: &GateAnswered, who: &Who) -> Disregarded {
    let what = Allowed::Answer { gate: given.id.clone(), answer: given.answer.clone() };
    disregarded(recorded, who, what)
}

const fn is_revocation(event: &Event) -> bool {
    matches!(event, Event::Settings(Settings { revokes: true, .. }))
}

/// What a session begins with in which nothing is to count that was allowed before: a fork that
/// somebody else made in the user's name. A login that vouches for the user's own events does
/// not help there, nor do their notes.
#[must_use]
pub fn revocation(who: Who) -> NewEvent {
    let event: Event = Settings { revokes: true, who, ..Settings::default() }.into();
    NewEvent { copied: true, ..event.into() }
}

/// Does an answer deny something? It makes nothing riskier. A flow's question, which is named
/// after its node, is answered in words, of which none is just a denial.
fn is_denial(gate: &str, answer: &Answer) -> bool {
    match answer {
        Answer::Allow { .. } => false,
        Answer::Deny { .. } => true,
        Answer::Text(_) => !answer.allows() && gate.parse::<NodeKey>().is_err(),
    }
}

/// What a fork begins with, so that it is no looser than its parent is now: how strict the parent
/// became, and what was forbidden in it, after the event that is shared last. It is said by
/// nobody whose word would count: it can only make the fork stricter.
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
    // Otherwise a fork of a fork could lie before what was revoked there.
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
