//! Reading a journal, line by line.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use stepwell::model::{
    Change, Compacted, Edited, MAX_NAME_BYTES, Restored, Rewound, Role, Scope, StatusChanged, Step,
    Time,
};
use stepwell::{Lane, Message, Seq, Status, StopReason};

use super::branches::Branches;
use super::hollow::{hollow, whole};
use super::live::LiveMessages;
use super::ours;
use super::row::{Compaction, End, LineReader, Link, Row, Said, What};
use super::tree::{self, Ended, Tree};
use crate::Result;
use crate::json::fields::Fields;
use crate::read::input::{Input, Line};
use crate::read::mark::mark_within;
use crate::read::neutral::{Item, Opening, Sink, Wanted, Warning, kept_event};
use crate::write::leftover_parts;

/// How many lines may come before the conversation, and of how many bytes, until a session is begun
/// without knowing what was asked.
const MAX_FRONT: usize = 200;
const MAX_FRONT_BYTES: usize = 4 << 20;

/// How often a journal goes back to an earlier line. To record each time costs a look at all those
/// before; no conversation comes near this.
const MAX_REWINDS: u32 = 2_000;

/// How many leftover parts may come before their message, and of how many bytes.
const MAX_SPARES: usize = 1_000;
const MAX_SPARE_BYTES: usize = 8 << 20;

/// What stands beside a message that a line tells with another one.
const WITH_THE_LINE_BEFORE: &str = "{}";

/// Reads a journal. The answer is the session's name there.
pub(crate) fn read(
    input: &Input,
    sink: &mut dyn Sink,
    form: &mut dyn LineReader,
    path: &Path,
) -> Result<Option<String>> {
    let path = path.to_owned();
    let reading = Reading {
        input,
        sink,
        form,
        path,
        told: Wanted::Yes,
        id: None,
        front: Vec::new(),
        front_bytes: 0,
        tree: Tree::default(),
        live: LiveMessages::default(),
        last_said: None,
        spares: Vec::new(),
        spare_bytes: 0,
        open: HashSet::new(),
        steps: 0,
        rewinds: 0,
        last: Seq::FIRST,
        last_at: None,
    };
    reading.run()
}

/// One journal as it is read.
struct Reading<'a> {
    input: &'a Input,
    sink: &'a mut dyn Sink,
    form: &'a mut dyn LineReader,
    path: PathBuf,
    told: Wanted,
    /// The session's name there, once it has begun.
    id: Option<String>,
    /// Lines that came before it did.
    front: Vec<String>,
    front_bytes: usize,
    tree: Tree,
    live: LiveMessages,
    /// The last line of the conversation, if it is a message: who said what.
    last_said: Option<(Seq, Role, String)>,
    /// Lines of parts whose message is to come.
    spares: Vec<String>,
    spare_bytes: usize,
    /// Calls of the last answer that have no result yet.
    open: HashSet<String>,
    steps: u64,
    /// How often it went back.
    rewinds: u32,
    last: Seq,
    last_at: Option<Time>,
}

impl Reading<'_> {
    fn run(mut self) -> Result<Option<String>> {
        let mut lines = self.input.lines(&self.path)?;
        while let Some(line) = lines.next_line()? {
            self.line(&line)?;
            if self.told == Wanted::Known {
                return Ok(self.id);
            }
        }
        if self.id.is_none() && !self.begin_late()? {
            self.warn(None, "it holds no conversation, and was left out");
            return Ok(None);
        }
        if self.told == Wanted::Yes {
            self.end()?;
        }
        Ok(self.id)
    }

    fn line(&mut self, line: &Line<'_>) -> Result<()> {
        // The rest means nothing without the first line.
        let mended = if line.number == 1 { line.mended() } else { None };
        let parsed = match &mended {
            Some(text) => {
                Fields::parse(text).map(|it| (text.as_str(), it)).map_err(|_| String::new())
            }
            None => line.object(),
        };
        let (text, fields) = match parsed {
            Ok(read) => read,
            Err(what) => {
                self.warn(Some(line.number), &what);
                return Ok(());
            }
        };
        if self.id.is_none() {
            return self.before_the_conversation(text, &fields);
        }
        if self.tree.is_full() {
            self.thin_out()?;
        }
        self.emit(text, &fields)
    }

    /// Lines wait until it is known what was asked.
    fn before_the_conversation(&mut self, text: &str, fields: &Fields<'_>) -> Result<()> {
        self.front_bytes += text.len();
        // What comes before any conversation is kept, within bounds.
        if self.front_bytes <= 2 * MAX_FRONT_BYTES {
            self.front.push(text.to_owned());
        }
        let asked = self.form.asked(fields);
        let full = self.front.len() >= MAX_FRONT || self.front_bytes > MAX_FRONT_BYTES;
        if asked.is_some() || full {
            self.begin(asked)?;
        }
        Ok(())
    }

    /// Begins a session in which nothing was asked.
    fn begin_late(&mut self) -> Result<bool> {
        self.begin(None)?;
        Ok(self.id.is_some())
    }

    /// Tells of the session, and of what waited for that.
    fn begin(&mut self, asked: Option<String>) -> Result<()> {
        let front = std::mem::take(&mut self.front);
        let lines: Vec<Fields<'_>> =
            front.iter().filter_map(|text| Fields::parse(text).ok()).collect();
        let opening = lines.iter().find_map(|line| self.form.opening(&self.path, line));
        let Some(mut opening) = opening else {
            self.front = front;
            return Ok(());
        };
        opening.created.task = asked.unwrap_or_default();
        opening.file.get_or_insert_with(|| self.path.clone());
        self.complete(&mut opening, &lines);
        self.id = Some(opening.id.clone());
        self.told = self.sink.begin(opening)?;
        if self.told == Wanted::Known {
            return Ok(());
        }
        for (text, fields) in front.iter().zip(&lines) {
            self.emit(text, fields)?;
        }
        Ok(())
    }

    /// What lines of ours say of the session.
    fn complete(&mut self, opening: &mut Opening, lines: &[Fields<'_>]) {
        for line in lines {
            let Some(ours) = self.form.ours(line) else { continue };
            opening.continues = opening.continues.take().or_else(|| mark_within(&ours));
            if let Some(created) = ours::created(&ours) {
                ours::complete(opening, created);
            }
        }
    }

    /// Lets go of the names of lines that nothing far below follows, in a long journal.
    fn thin_out(&mut self) -> Result<()> {
        let form = &*self.form;
        let Branches { names, cut_short } =
            Branches::of(self.input, &self.path, &|line| form.named(line))?;
        if cut_short {
            let most = tree::MAX_NAMES;
            let what = format!(
                "it branches at more than {most} lines; at the others the branch that is left \
                 stays in view"
            );
            self.warn(None, &what);
        }
        self.tree.keep(names);
        Ok(())
    }

    fn emit(&mut self, text: &str, fields: &Fields<'_>) -> Result<()> {
        let Row { name, link, at, what } = self.form.row(fields);
        if let What::Ours(ours) = &what
            && ours::is_spare(ours)
            && self.spares.len() < MAX_SPARES
            && self.spare_bytes < MAX_SPARE_BYTES
        {
            self.spare_bytes += text.len();
            self.spares.push(text.to_owned());
            return Ok(());
        }
        self.follow(&link, at)?;
        match what {
            What::Said(said) => self.say(said, at, name.as_deref(), text),
            what => {
                self.flush_spares(at)?;
                self.beside_the_conversation(what, at, name.as_deref(), text)
            }
        }
    }

    fn beside_the_conversation(
        &mut self,
        what: What<'_>,
        at: Option<Time>,
        name: Option<&str>,
        text: &str,
    ) -> Result<()> {
        match what {
            What::Compacted(compaction) => return self.compact(compaction, at, name, text),
            What::Header => self.push(Item::of_session(self.form.words().system, text))?,
            What::Title(title) if is_label(&title) => {
                let label = Change::Set(title);
                self.push(Item::new(at, Edited { label, ..Edited::default() }))?;
                self.push(Item::beside(self.form.words().system, at, whole(text)))?
            }
            What::Withdrawn(command) => {
                self.withdraw(&command, at)?;
                self.push(Item::alone(self.form.words().system, at, text))?
            }
            What::Ours(ours) => match ours.raw("event").and_then(kept_event) {
                Some(item) => self.push(item)?,
                None => self.push(Item::alone(self.form.words().system, at, text))?,
            },
            What::Nothing | What::Title(_) | What::Said(_) => {
                self.push(Item::alone(self.form.words().system, at, text))?
            }
        };
        if let Some(name) = name {
            // The line adds nothing, so its name means the end of the conversation so far.
            self.tree.alias(name, None);
        }
        Ok(())
    }

    fn say(&mut self, said: Said, at: Option<Time>, name: Option<&str>, text: &str) -> Result<()> {
        let Said { mut message, end } = said;
        let line = hollow(text, &message);
        let mut lines = self.spare_lines(name, at, &mut message)?;
        lines.push_str(&line);
        let (role, words) = (message.role, message.text());
        let answered: Vec<String> = message.results().map(|it| it.call_id.clone()).collect();
        let calls: HashSet<String> = message.calls().map(|it| it.id.clone()).collect();
        let injected = role == Role::User && !message.is_from_user();
        self.tree.turn();
        let place = self.push(Item::new(at, message))?;
        let beside = self.push(Item::beside(self.form.words().system, at, lines))?;
        self.live.add(place);
        self.last_said = Some((place, role, words));
        self.tree.told(name, beside);
        if end == End::Failed {
            self.open.clear();
            self.tree.stands(Ended::Waiting);
            return self.hide(place, at);
        }
        match role {
            Role::Assistant => {
                self.open = calls;
                let is_whole = self.open.is_empty() && end == End::Whole;
                self.tree.stands(if is_whole { Ended::Answered } else { Ended::Waiting });
                if self.open.is_empty() { self.step(at) } else { Ok(()) }
            }
            Role::Tool => {
                let waited = !self.open.is_empty();
                self.open.retain(|id| !answered.contains(id));
                self.tree.stands(Ended::Waiting);
                if waited && self.open.is_empty() { self.step(at) } else { Ok(()) }
            }
            Role::User if !injected => {
                self.tree.stands(Ended::Waiting);
                Ok(())
            }
            Role::User | Role::System => Ok(()),
        }
    }

    /// Gives a message the parts that came before it. The answer is their lines without them.
    fn spare_lines(
        &mut self,
        name: Option<&str>,
        at: Option<Time>,
        message: &mut Message,
    ) -> Result<String> {
        let mut lines = String::new();
        self.spare_bytes = 0;
        for text in std::mem::take(&mut self.spares) {
            let taken = Fields::parse(&text).ok().and_then(|line| {
                let ours = self.form.ours(&line)?;
                if ours.text("of").as_deref() != name {
                    return None;
                }
                let rest = leftover_parts::take_up(&ours, &mut message.parts)?;
                Some(line.rewritten(&[(self.form.words().payload, Some(&rest))]))
            });
            match taken {
                Some(line) => {
                    lines.push_str(&line);
                    lines.push('\n');
                }
                None => drop(self.push(Item::alone(self.form.words().system, at, text))?),
            }
        }
        Ok(lines)
    }

    fn flush_spares(&mut self, at: Option<Time>) -> Result<()> {
        self.spare_bytes = 0;
        for text in std::mem::take(&mut self.spares) {
            self.push(Item::alone(self.form.words().system, at, text))?;
        }
        Ok(())
    }

    /// Tells of a compaction.
    fn compact(
        &mut self,
        compaction: Compaction,
        at: Option<Time>,
        name: Option<&str>,
        text: &str,
    ) -> Result<()> {
        let Compaction { summary, kept_from, shown, tokens_before } = compaction;
        let from = kept_from.and_then(|name| self.tree.place(&name));
        let live: Vec<Seq> = self.live.back().collect();
        let kept = |place: &&Seq| from.is_some_and(|from| **place >= from);
        let mut pinned: Vec<Seq> = live.iter().filter(kept).copied().collect();
        pinned.reverse();
        self.tree.turn();
        self.last_said = None;
        let mut beside = match live.is_empty() {
            // What was summarised is in another journal: the summary is the first that the model
            // is shown.
            true => {
                let place = self.push(Item::alone(self.form.words().system, at, text))?;
                let summary = summary.into_iter().map(|text| Message::user(text).injected());
                self.show(summary.collect(), at)?.unwrap_or(place)
            }
            false => {
                let mut compacted = Compacted::new(Lane::main(), Seq::FIRST, self.last);
                compacted.summary = summary;
                compacted.pinned = pinned;
                compacted.tokens_before = tokens_before;
                self.push(Item::new(at, compacted))?;
                self.push(Item::beside(self.form.words().system, at, whole(text)))?
            }
        };
        beside = self.show(shown, at)?.unwrap_or(beside);
        self.tree.told(name, beside);
        Ok(())
    }

    /// Tells what the model is shown again.
    fn show(&mut self, messages: Vec<Message>, at: Option<Time>) -> Result<Option<Seq>> {
        let mut last = None;
        for message in messages {
            let place = self.push(Item::new(at, message))?;
            self.live.add(place);
            let system = self.form.words().system;
            last = Some(self.push(Item::beside(system, at, WITH_THE_LINE_BEFORE))?);
        }
        Ok(last)
    }

    /// Hides the last message, if it is that command.
    fn withdraw(&mut self, command: &str, at: Option<Time>) -> Result<()> {
        if let Some((place, Role::User, said)) = &self.last_said
            && said == command
        {
            let place = *place;
            self.last_said = None;
            self.hide(place, at)?;
        }
        Ok(())
    }

    /// Hides one message.
    fn hide(&mut self, place: Seq, at: Option<Time>) -> Result<()> {
        self.push(Item::new(at, Compacted::new(Lane::main(), place, place)))?;
        let place = self.push(Item::beside(self.form.words().system, at, WITH_THE_LINE_BEFORE))?;
        self.tree.told([], place);
        Ok(())
    }

    /// Goes back to what a line follows, if that is not what was told last.
    fn follow(&mut self, link: &Link, at: Option<Time>) -> Result<()> {
        let step = match link {
            Link::Last => tree::Step::On,
            Link::First => self.tree.follow(None),
            Link::After(name) => self.tree.follow(Some(name)),
        };
        let tree::Step::BackTo(to) = step else { return Ok(()) };
        self.open.clear();
        self.last_said = None;
        self.rewinds = self.rewinds.saturating_add(1);
        if self.rewinds > MAX_REWINDS {
            if self.rewinds == MAX_REWINDS + 1 {
                let what = format!(
                    "it goes back to an earlier line more than {MAX_REWINDS} times; after that, \
                     branches that were left stay in view"
                );
                self.warn(None, &what);
            }
            return Ok(());
        }
        self.live.go_back(to);
        let rewound = Rewound { to, scope: Scope::Chat, restored: Restored::default() };
        self.push(Item::new(at, rewound)).map(drop)
    }

    fn step(&mut self, at: Option<Time>) -> Result<()> {
        self.steps += 1;
        let place = self.push(Item::new(at, Step { lane: Lane::main(), n: self.steps }))?;
        self.tree.told([], place);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.flush_spares(self.last_at)?;
        let (status, reason) = match self.tree.ended() {
            Ended::Answered => (Status::Success, Some(StopReason::LlmDone)),
            Ended::Empty | Ended::Waiting => (Status::Interrupted, None),
        };
        self.push(Item::new(self.last_at, StatusChanged { status, reason, error: None }))?;
        self.sink.end()
    }

    fn push(&mut self, item: Item) -> Result<Seq> {
        self.last_at = item.at.max(self.last_at);
        self.last = self.sink.push(item)?;
        Ok(self.last)
    }

    fn warn(&mut self, line: Option<u64>, what: &str) {
        let path = self.path.display();
        let place = match line {
            Some(line) => format!("{path}, line {line}"),
            None => path.to_string(),
        };
        self.sink.warn(Warning { place, what: what.to_owned() });
    }
}

/// Can a title be a label?
fn is_label(title: &str) -> bool {
    !title.trim().is_empty()
        && title.len() <= MAX_NAME_BYTES
        && !title.starts_with('@')
        && !title.chars().any(char::is_control)
}
