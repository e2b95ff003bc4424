//! Writing a journal.

use std::collections::HashSet;
use std::io::Write;

use serde_json::Value;
use stepwell::log::{Head, MessageOrigin, Timeline};
use stepwell::model::{About, Change, Compacted, Edited, Foreign, Kind, Mark, Role, Time, Undone};
use stepwell::store::Span;
use stepwell::{Event, Lane, Message, Recorded, Seq, Stepwell, View};

use super::call_names::Calls;
use super::form::{Envelope, LeftOver, LineWriter, Spot, Words};
use super::hollow::refill;
use super::ours;
use super::tree::key;
use crate::json::fields::{Fields, quoted};
use crate::original;
use crate::read::mark::mark_of;
use crate::read::neutral::{is_facts, to_be_kept, without_facts};
use crate::write::facts::{Said, Transcript};
use crate::write::leftover_parts;
use crate::write::unanswered::Unanswered;
use crate::write::writer::{
    Exported, FOREIGN, Losses, Outlet, Purpose, SUBAGENTS, count_event, each_event, subagents,
    word_for,
};
use crate::{Error, Result};

/// Writes a session under a name as one journal.
pub(crate) fn write(
    well: &Stepwell,
    head: &Head,
    session: &str,
    form: &dyn LineWriter,
    to: &mut Outlet<'_>,
) -> Result<Exported> {
    let purpose = to.wishes().purpose;
    let there = (form.words().system, session);
    let mut exported = Exported::default();
    for child in subagents(well, &head.id)? {
        exported.losses.name(SUBAGENTS, child.head.id.as_str());
    }
    if let Some(same) = original::write_file(well, head, there, purpose, to.main()?)? {
        exported.add(same);
        return Ok(exported);
    }
    let workspace = to.workspace().map(|folder| folder.to_string_lossy().into_owned());
    let workspace = workspace.as_deref().filter(|folder| *folder != head.workspace);
    let mark = mark_of(well, head, there)?;
    let is_new = mark.is_some() && purpose == Purpose::Continue;
    let mut writing = Writing {
        well,
        envelope: Envelope { head, session, workspace },
        form,
        to: to.main()?,
        losses: Losses::default(),
        waiting: None,
        has_front: false,
        written: HashSet::new(),
        again: HashSet::new(),
        last_line: None,
        live: is_new.then(|| live(well, head)).transpose()?,
        tips: Vec::new(),
        calls: Calls::default(),
        itself: mark.is_none() && purpose == Purpose::Keep,
        open: Open::default(),
        told: Transcript::default(),
        mark,
    };
    let mut events = 0;
    let damage = each_event(well, &head.id, &mut |event| {
        events += 1;
        writing.event(event)
    })?;
    writing.flush_waiting()?;
    writing.answer_calls(None)?;
    writing.end()?;
    writing.told.name_losses(&mut writing.losses, head, form.form());
    exported.losses.extend(std::mem::take(&mut writing.losses));
    exported.sessions += 1;
    exported.events += events;
    exported.damaged.extend(damage.map(|damage| (head.id.clone(), damage)));
    writing.to.flush().map_err(Error::Write)?;
    Ok(exported)
}

/// The branch that another agent goes on with under a new name. Under its own name the session stays
/// whole: an import knows it again.
fn live(well: &Stepwell, head: &Head) -> Result<Timeline> {
    let moves = well.store().keyed_events(&head.id, &[Kind::Rewound, Kind::Undone])?;
    Ok(Timeline::at(head.seq, moves.iter()))
}

struct Writing<'a> {
    well: &'a Stepwell,
    envelope: Envelope<'a>,
    form: &'a dyn LineWriter,
    to: &'a mut dyn Write,
    losses: Losses,
    /// An event whose own data may follow.
    waiting: Option<Recorded>,
    /// Is the first line written?
    has_front: bool,
    /// The lines that were written, by the keys of their names; and those from there, by their own.
    written: HashSet<u64>,
    again: HashSet<u64>,
    /// The last line that was written, and the line of the conversation that it stands behind.
    last_line: Option<(String, Option<String>)>,
    /// The branch that is written, if others are left out.
    live: Option<Timeline>,
    /// The line of the conversation that the next one follows, after each event that changed that.
    tips: Vec<(Seq, Option<String>)>,
    calls: Calls,
    /// Is it written under its own name, to be what it was there?
    itself: bool,
    open: Open,
    told: Transcript,
    /// What says which session it goes on from, until it is written.
    mark: Option<Mark>,
}

/// What is known of calls that wait for their results where the journal stands.
#[derive(Default)]
struct Open {
    calls: Unanswered,
    /// Did it go back, so that they are to be found anew?
    went_back: bool,
    /// The names of lines that say what became of calls without a result.
    answers: HashSet<String>,
    /// A line that another one was put behind: what followed it follows that one.
    moved: Option<(String, String)>,
}

impl Writing<'_> {
    fn words(&self) -> &'static Words {
        self.form.words()
    }

    fn event(&mut self, recorded: Recorded) -> Result<()> {
        let system = self.words().system;
        if let Event::Created(created) = &recorded.event {
            self.open.calls.happened(&recorded);
            if created.source.as_ref().is_some_and(|it| it.system == system) {
                return Ok(());
            }
            self.front(None)?;
            return self.put_aside(&recorded);
        }
        if let Event::Foreign(foreign) = &recorded.event
            && foreign.system == system
        {
            match foreign.about {
                About::Session if !self.has_front => {
                    let own = Fields::parse(&foreign.data).ok();
                    return self.front(own.as_ref());
                }
                About::Session => return Ok(()),
                About::Event => {
                    if let Some(event) = self.waiting.take() {
                        return self.returned(&event, &foreign.data);
                    }
                }
                About::Itself => {}
            }
        }
        self.front(None)?;
        self.flush_waiting()?;
        self.open.calls.happened(&recorded);
        if self.live.as_ref().is_some_and(|live| !live.contains(recorded.seq)) {
            return Ok(());
        }
        self.on_the_branch(recorded)
    }

    fn on_the_branch(&mut self, recorded: Recorded) -> Result<()> {
        match &recorded.event {
            Event::Message(_) | Event::Edited(_) | Event::Compacted(_) => {
                self.waiting = Some(recorded);
                Ok(())
            }
            Event::Foreign(Foreign { system, about, data }) => match about {
                _ if system != self.words().system => self.keep(&recorded, FOREIGN),
                About::Itself => self.again(data),
                About::Session | About::Event => Ok(()),
            },
            Event::Rewound(rewound) if rewound.scope.moves_view() => {
                let tip = self.tip_at(rewound.to);
                self.go_back(recorded.seq, tip);
                Ok(())
            }
            Event::Undone(Undone::Rewind { of, scope, .. }) if scope.moves_view() => {
                let tip = self.tip_at(of.prev());
                self.go_back(recorded.seq, tip);
                Ok(())
            }
            Event::Undone(Undone::Compaction { of }) => {
                let tip = self.tip_at(of.prev());
                self.go_back(recorded.seq, tip);
                self.show_again(&recorded, *of)
            }
            // Told by the lines themselves.
            Event::Step(_) | Event::Status(_) => Ok(()),
            _ => self.keep(&recorded, word_for(&recorded.event)),
        }
    }

    /// Writes what comes before the conversation.
    fn front(&mut self, own: Option<&Fields<'_>>) -> Result<()> {
        if std::mem::replace(&mut self.has_front, true) {
            return Ok(());
        }
        if let Some(line) = self.form.header(&self.envelope, own) {
            self.put(&line)?;
        }
        let Some(mark) = self.mark.take() else { return Ok(()) };
        let body = self.form.ours(ours::marked(&mark));
        let name = self.form.name(&self.envelope, Seq::FIRST, MARKS);
        self.linked(&name, self.envelope.head.created_at, body)?;
        self.last_line = Some((name, None));
        Ok(())
    }

    /// Writes what waits, which has no data of the system's own.
    fn flush_waiting(&mut self) -> Result<()> {
        let Some(recorded) = self.waiting.take() else { return Ok(()) };
        match &recorded.event {
            Event::Message(said) => self.message(&recorded, said),
            Event::Compacted(compacted) if compacted.lane == Lane::main() => {
                self.compacted(&recorded, compacted)
            }
            Event::Edited(edited) => self.edited(&recorded, edited),
            event => self.keep(&recorded, word_for(event)),
        }
    }

    fn edited(&mut self, recorded: &Recorded, edited: &Edited) -> Result<()> {
        if let Change::Set(label) = &edited.label {
            self.add(recorded, vec![self.form.title(label)], Stands::Beside)?;
        }
        let rest = Edited { label: Change::Keep, ..without_facts(edited) };
        match rest == Edited::default() {
            true => Ok(()),
            false => self.keep(recorded, word_for(&recorded.event)),
        }
    }

    fn message(&mut self, recorded: &Recorded, said: &Message) -> Result<()> {
        if said.lane != Lane::main() {
            return self.keep(recorded, "messages of other lanes");
        }
        if said.role == Role::System {
            return self.keep(recorded, "system messages");
        }
        if said.results().next().is_none() {
            self.answer_calls(Some(recorded.seq))?;
        }
        let mut left = LeftOver::default();
        let (at, calls) = (recorded.at, &mut self.calls);
        let bodies = self.form.message(&self.envelope, said, at, calls, &mut left);
        self.losses.extend(left.losses);
        if bodies.is_empty() {
            return self.keep(recorded, "messages without a word that can be sent");
        }
        let name = self.form.name(&self.envelope, recorded.seq, 0);
        for (n, it) in left.spares.iter().enumerate() {
            self.losses.count(it.what);
            let body = self.form.ours(ours::spare(&name, it));
            self.named(recorded, bodies.len() + n, body, Stands::Beside)?;
        }
        self.open.calls.said(recorded, said);
        self.told.said(said, recorded.at, Said::Here);
        self.add(recorded, bodies, Stands::Within)
    }

    /// The next line follows an earlier one.
    fn go_back(&mut self, seq: Seq, tip: Option<String>) {
        self.tips.push((seq, tip));
        self.told.went_back();
        self.open.calls.clear();
        self.open.went_back = true;
    }

    /// Says of calls that have no result what is known of them. Without that, their commands may
    /// run again.
    fn answer_calls(&mut self, before: Option<Seq>) -> Result<()> {
        let (well, id) = (self.well, &self.envelope.head.id);
        if std::mem::take(&mut self.open.went_back) && !(self.itself && before.is_none()) {
            let to = before.map_or(well.info(id)?.head.seq, Seq::prev);
            let is_answered = self.tip().is_some_and(|tip| self.open.answers.contains(&tip));
            if !is_answered {
                self.open.calls = Unanswered::after(well, id, to)?;
            }
        }
        let due = self.open.calls.due(well, id, before)?;
        let Some(first) = due.first() else { return Ok(()) };
        let answer = self.open.calls.answer(&due);
        let (seq, at) = (first.seq, first.at);
        let calls = &mut self.calls;
        let left = &mut LeftOver::default();
        let bodies = self.form.message(&self.envelope, &answer, at, calls, left);
        let was = self.tip();
        let place = self.tips.last().map_or(seq, |(seq, _)| *seq);
        for (n, body) in bodies.into_iter().enumerate() {
            let name = self.form.name(&self.envelope, seq, ANSWERS + n);
            self.linked(&name, at, body)?;
            self.tips.push((place, Some(name.clone())));
            self.open.answers.insert(name.clone());
            self.last_line = Some((name, self.tip()));
        }
        self.open.moved = was.zip(self.tip());
        Ok(())
    }

    /// A compaction, and what stays in view behind its summary.
    fn compacted(&mut self, recorded: &Recorded, compacted: &Compacted) -> Result<()> {
        self.open.calls.clear();
        self.open.went_back = false;
        let shown = self.shown(recorded, Seq::ZERO)?;
        let bodies = self.form.compaction(&self.envelope, compacted, &shown, recorded.at);
        self.add(recorded, bodies, Stands::Within)
    }

    /// Writes again what the model is shown, after `after`, but for a summary.
    fn show_again(&mut self, recorded: &Recorded, after: Seq) -> Result<()> {
        self.open.calls.clear();
        self.open.went_back = false;
        let (mut calls, mut bodies) = (Calls::default(), Vec::new());
        for message in self.shown(recorded, after)? {
            let left = &mut LeftOver::default();
            let at = recorded.at;
            bodies.extend(self.form.message(&self.envelope, &message, at, &mut calls, left));
        }
        self.add(recorded, bodies, Stands::Within)
    }

    /// The messages that the model is shown then, after `after`, but for a summary.
    fn shown(&self, recorded: &Recorded, after: Seq) -> Result<Vec<Message>> {
        let span = Span { to: recorded.seq, ..Span::ALL };
        let events = self.well.store().events(&self.envelope.head.id, span)?.events;
        let view = View::of(&Lane::main(), events).messages.into_iter();
        let shown = view.filter(|it| it.made != MessageOrigin::Summary && it.seq > after);
        let shown = shown.map(|it| it.message).filter(|it| it.role != Role::System);
        Ok(shown.collect())
    }

    /// Writes lines for what was recorded here, each behind the one before it.
    fn add(&mut self, recorded: &Recorded, bodies: Vec<Value>, stands: Stands) -> Result<()> {
        let mut bodies = bodies.into_iter().enumerate();
        bodies.try_for_each(|(n, body)| self.named(recorded, n, body, stands))
    }

    fn named(
        &mut self,
        recorded: &Recorded,
        nth: usize,
        body: Value,
        stands: Stands,
    ) -> Result<()> {
        let name = self.form.name(&self.envelope, recorded.seq, nth);
        self.linked(&name, recorded.at, body)?;
        if stands == Stands::Within {
            self.tips.push((recorded.seq, Some(name.clone())));
        }
        self.last_line = Some((name, self.tip()));
        Ok(())
    }

    /// Writes a line behind the last one, or behind the one that the conversation went back to.
    fn linked(&mut self, name: &str, at: Time, body: Value) -> Result<()> {
        let parent = self.parent();
        let spot = Spot { name, parent: parent.as_deref(), at };
        let line = self.form.line(&self.envelope, &spot, body);
        self.written.insert(key(name));
        self.put(&line)
    }

    fn parent(&self) -> Option<String> {
        let tip = self.tip();
        match &self.last_line {
            Some((name, stands)) if *stands == tip => Some(name.clone()),
            _ => tip,
        }
    }

    /// Says where the conversation ends, if it went back at last.
    fn end(&mut self) -> Result<()> {
        let tip = self.tip();
        match &self.last_line {
            Some((_, stands)) if *stands != tip => {
                let (seq, _) = self.tips.last().cloned().unwrap_or_default();
                let name = self.form.name(&self.envelope, seq, ENDS);
                let body = self.form.ours(serde_json::json!({ "goes_on_from": tip }));
                self.linked(&name, self.envelope.head.updated_at, body)
            }
            _ => Ok(()),
        }
    }

    /// Writes what came from there, as it was.
    fn returned(&mut self, recorded: &Recorded, data: &str) -> Result<()> {
        let empty = Message::new(Role::User, Vec::new());
        let message = match &recorded.event {
            Event::Message(message) => {
                self.returned_message(recorded, message)?;
                message
            }
            _ => {
                if let Event::Compacted(_) = &recorded.event {
                    self.open.calls.clear();
                }
                &empty
            }
        };
        for text in data.lines().filter(|line| !matches!(line.trim(), "" | "{}")) {
            let is_spare = Fields::parse(text).ok().and_then(|line| self.filled(&line, message));
            match is_spare {
                Some(text) => self.again(&text)?,
                None => {
                    let text = refill(text, &self.without_spares(data, message));
                    self.again(&text)?;
                    let within = matches!(recorded.event, Event::Message(_) | Event::Compacted(_));
                    let name = Fields::parse(&text).ok();
                    let name = name.and_then(|it| Some(it.text(self.words().own)?.into_owned()));
                    if let Some(name) = name.filter(|_| within) {
                        self.tips.push((recorded.seq, Some(name.clone())));
                        self.last_line = Some((name, self.tip()));
                    }
                }
            }
        }
        if let Event::Message(message) = &recorded.event {
            message.calls().for_each(|call| self.calls.known(&call.id, &call.name));
        }
        Ok(())
    }

    /// The line of a leftover part, with the part in it again.
    fn filled(&self, line: &Fields<'_>, message: &Message) -> Option<String> {
        let payload = self.words().payload;
        let ours = line.object(payload).filter(|ours| ours.has("of"))?;
        let filled = leftover_parts::filled(&ours, &message.parts)?;
        Some(line.rewritten(&[(payload, Some(&filled))]))
    }

    /// The message that its own line was made of.
    fn without_spares(&self, data: &str, message: &Message) -> Message {
        let ours = |text: &str| {
            let line = Fields::parse(text).ok()?;
            let ours = line.object(self.words().payload).filter(|ours| ours.has("of"))?;
            leftover_parts::place(&ours)
        };
        let places: Vec<usize> = data.lines().filter_map(ours).collect();
        let parts = leftover_parts::without(&message.parts, &places).into_iter().cloned();
        Message { parts: parts.collect(), ..Message::new(message.role, Vec::new()) }
    }

    /// A message that came from there. In the session itself, calls that the agent left without a
    /// result stay so.
    fn returned_message(&mut self, recorded: &Recorded, message: &Message) -> Result<()> {
        if message.lane != Lane::main() {
            return Ok(());
        }
        self.told.said(message, recorded.at, Said::There);
        let answers = message.results().next().is_some();
        match answers {
            true => {}
            false if self.itself => self.open.calls.clear(),
            false => self.answer_calls(Some(recorded.seq))?,
        }
        if self.itself {
            self.open.went_back = false;
        }
        if !self.itself || answers {
            self.open.calls.said(recorded, message);
        }
        Ok(())
    }

    /// Writes a line from there once, under the journal's own session.
    fn again(&mut self, text: &str) -> Result<()> {
        let Ok(fields) = Fields::parse(text) else { return Ok(()) };
        let Words { own, parent, session, folder, .. } = *self.words();
        let name = fields.text(own).map(std::borrow::Cow::into_owned);
        // Several lines may bear one name.
        if name.is_some() && !self.again.insert(key(text)) {
            return Ok(());
        }
        let mut changes: Vec<(&str, String)> = Vec::new();
        let quoted_session = quoted(self.envelope.session);
        if let Some(field) = session
            && fields.raw(field).is_some_and(|raw| raw != quoted_session)
        {
            changes.push((field, quoted_session));
        }
        if let (Some(field), Some(workspace)) = (folder, self.envelope.workspace) {
            changes.push((field, quoted(workspace)));
        }
        let there = fields.text(parent);
        let follows = there.as_deref().and_then(|there| self.follows(there));
        if there.as_deref() != follows.as_deref() {
            changes.push((parent, follows.as_deref().map_or("null".to_owned(), quoted)));
        }
        if let Some(name) = name {
            self.written.insert(key(&name));
            self.last_line = Some((name, self.tip()));
        }
        if changes.is_empty() {
            return self.put(text);
        }
        let changes: Vec<_> =
            changes.iter().map(|(name, raw)| (*name, Some(raw.as_str()))).collect();
        self.put(&fields.rewritten(&changes))
    }

    /// What a line follows: what it followed there, or what was put behind that. Where branches are
    /// left out, it may have followed one of them.
    fn follows(&self, there: &str) -> Option<String> {
        match &self.open.moved {
            Some((from, to)) if from == there => Some(to.clone()),
            _ if self.live.is_some() && !self.written.contains(&key(there)) => self.parent(),
            _ => Some(there.to_owned()),
        }
    }

    /// Keeps an event that has no place in a journal on a line that the system passes over, and
    /// says so.
    fn keep(&mut self, recorded: &Recorded, what: &'static str) -> Result<()> {
        if is_facts(&recorded.event) {
            return Ok(());
        }
        count_event(&mut self.losses, what, &recorded.event);
        self.put_aside(recorded)
    }

    /// Keeps an event on a line that the system passes over.
    fn put_aside(&mut self, recorded: &Recorded) -> Result<()> {
        let event = to_be_kept(recorded).map_err(|error| Error::Write(error.into()))?;
        let body = self.form.ours(ours::kept(&event));
        self.named(recorded, KEPT_EVENT, body, Stands::Beside)
    }

    fn put(&mut self, line: &str) -> Result<()> {
        self.to
            .write_all(line.as_bytes())
            .and_then(|()| self.to.write_all(b"\n"))
            .map_err(Error::Write)
    }

    fn tip(&self) -> Option<String> {
        self.tips.last().and_then(|(_, tip)| tip.clone())
    }

    fn tip_at(&self, seq: Seq) -> Option<String> {
        let after = self.tips.partition_point(|(at, _)| *at <= seq);
        after.checked_sub(1).and_then(|at| self.tips[at].1.clone())
    }
}

/// Is a line part of the conversation?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Within,
    Beside,
}

/// Which line of an event it is, where it is none of what the event says.
const ANSWERS: usize = 1_000_000;
const ENDS: usize = 2_000_000;
const KEPT_EVENT: usize = 3_000_000;
const MARKS: usize = 4_000_000;
