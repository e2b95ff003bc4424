//! What stores and commands answer.

use stepwell::Status;

use super::watch::left_open;
use crate::clean::Clean;
use crate::completion::{Completion, Wanted, wanted};
use crate::effect::{Done, Effect, Opened, OtherAgents, Purpose, Reply, RunSettings};
use crate::page::{ChoicePage, Choosing, Content, Doing, Page, PointsPage};
use crate::session::{Reach, SessionRow};
use crate::state::{Detach, StartList, State, Work};
use crate::transcript::{Block, Transcript, Whose};

/// An answer of more lines goes to a page.
const SHORT: usize = 12;

impl State {
    pub(super) fn reply(&mut self, reply: Reply) -> Vec<Effect> {
        match reply {
            Reply::Start(rows) => {
                if self.session.is_none() && !self.is_working() {
                    self.start = Some(StartList { rows, selected: None });
                }
            }
            Reply::Opened(opened) => return self.opened(*opened),
            Reply::Card(card) => {
                let is_new = self.session.as_ref().is_none_or(|open| open.id != card.id);
                if is_new && self.session.is_some() && !self.is_working() {
                    return Vec::new();
                }
                self.session = Some(*card);
            }
            Reply::Changed(session) => return self.changed(&session),
            Reply::Grown(grown) => return self.grown(*grown),
            Reply::Model(name) => self.set_model(&name),
            Reply::Agent(name) => self.set_agent(&name),
            Reply::Earlier { session, events, more } => {
                if self.session.as_ref().is_some_and(|card| card.id == session) {
                    self.put_before(&events, more);
                }
            }
            Reply::Found { search, rows, others } => return self.found(search, rows, others),
            Reply::OthersRead => {
                if let Some(Page::Picker(picker)) = &self.page
                    && picker.reach == Reach::Everywhere
                {
                    return self.find();
                }
            }
            Reply::Preview { session, text } => {
                if let Some(Page::Picker(picker)) = &mut self.page
                    && picker.row().is_some_and(|row| row.id == session)
                {
                    picker.preview = Some(text);
                }
            }
            Reply::Points { purpose, points } => {
                if points.is_empty() {
                    self.say_briefly("there is nothing to go back to yet");
                    return Vec::new();
                }
                let page = PointsPage { purpose, points, selected: 0, way: None };
                self.open_page(Page::Points(page));
            }
            Reply::Files(files) => {
                if let Wanted::Files { from, .. } = wanted(&self.editor) {
                    self.completion = Completion::files(from, &files);
                }
            }
            Reply::Models(items) => self.choose_among(Choosing::Model, items),
            Reply::Agents(items) => self.choose_among(Choosing::Agent, items),
            Reply::Done(done) => return self.done(&done),
            Reply::ShellDone { command, output, failed } => {
                return self.shell_done(&command, &output, failed.as_ref());
            }
            Reply::Edited(text) => self.editor.set(text.trim_end()),
            Reply::NotAnswered { session, gate, why, again } => {
                self.not_answered((&session, &gate), &why, again);
            }
            Reply::Failed { why, hint } => self.failed(&why, hint.as_ref()),
        }
        Vec::new()
    }

    pub(super) fn choose_among(&mut self, what: Choosing, items: Vec<Clean>) {
        let filter = crate::editor::Editor::default();
        self.open_page(Page::Choice(ChoicePage { what, items, filter, selected: 0 }));
    }

    fn opened(&mut self, opened: Opened) -> Vec<Effect> {
        let Opened { card, events, more, unheard, resume, rests, waiting, seq, elsewhere } = opened;
        let is_same = self.seen == seq;
        if self.is_watching() {
            self.work = Work::Idle;
        }
        self.helpers.clear();
        let before = self.session.take().map(|open| open.id);
        let whose = if card.is_flow { Whose::Flow } else { Whose::Agent };
        self.transcript = Transcript::of(&events, more, whose);
        self.page = None;
        self.start = None;
        self.queue.clear();
        self.questions.clear();
        self.answering.clear();
        match before {
            // It changed: what of it still counts is not printed again.
            Some(open) if open == card.id => {
                self.transcript.skip_printing();
                if !is_same {
                    self.note("the session was changed; Ctrl+T shows what counts now");
                }
            }
            // What was chosen for another session is not meant for this one.
            Some(_) => self.settings = RunSettings::default(),
            None => {}
        }
        if let Some(from) = self.forked.take().filter(|from| *from != card.id) {
            self.note(format!("this is another session: {}, a fork of {from}", card.id));
        }
        if more {
            self.note("earlier messages: Ctrl+T");
        }
        (self.seen, self.keeps_words) = (seq, false);
        let (session, status) = (card.id.clone(), card.status);
        self.session = Some(card);
        if let Some(elsewhere) = elsewhere {
            return self.watch(elsewhere, seq);
        }
        // What was cut off goes on, and what waits is asked again: a run does both. What ended
        // before it was done, or was forked or taken back, waits for a word.
        let goes_on = waiting > 0 || unheard > 0 || (status == Status::Interrupted && !rests);
        if !resume || !goes_on {
            self.transcript.end_open_calls(left_open(waiting));
            if resume && status == Status::Partial {
                self.note("it ended before it was done: say what is next, or /continue");
            }
            return Vec::new();
        }
        self.begin_work();
        vec![Effect::Resume { session, say: None, settings: self.settings.clone() }]
    }

    fn put_before(&mut self, events: &[stepwell::Recorded], more: bool) {
        let before = self.transcript.blocks().len();
        self.transcript.put_before(events, more);
        let added = self.transcript.blocks().len() - before;
        let Some(Page::Text(page)) = &self.page else { return };
        if page.content != Content::Transcript || added == 0 {
            return;
        }
        let (old, from_end) = (page.lines.len(), page.lines.len() - page.top);
        self.lay_out_anew();
        if let Some(Page::Text(page)) = &mut self.page
            && page.lines.len() > old
        {
            // What was read stays where it was.
            page.top = page.lines.len() - from_end;
        }
    }

    fn found(&mut self, search: u64, rows: Vec<SessionRow>, others: OtherAgents) -> Vec<Effect> {
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        if picker.search != search {
            return Vec::new();
        }
        picker.selected = picker.selected.min(rows.len().saturating_sub(1));
        (picker.rows, picker.others) = (Some(rows), others);
        self.preview()
    }

    pub(super) fn preview(&mut self) -> Vec<Effect> {
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        picker.preview = None;
        let Some(row) = picker.row() else { return Vec::new() };
        if let Some(foreign) = &row.foreign {
            picker.preview = Some(foreign.about.clone());
            return Vec::new();
        }
        let (session, store) = (row.id.clone(), row.store.clone());
        vec![Effect::Preview { session, store, words: picker.words.text().to_owned() }]
    }

    fn done(&mut self, done: &Done) -> Vec<Effect> {
        if done.purpose == Purpose::Reload {
            self.changing = false;
        }
        if done.purpose == Purpose::Detached {
            self.detach = if done.ok { Detach::Done } else { Detach::No };
        }
        if !done.ok {
            let (mut why, mut hint) = (done.errors.as_str().trim(), None);
            if let Some((before, after)) = why.split_once("hint: ") {
                (why, hint) = (before.trim(), Some(Clean::new(after.trim())));
            }
            let why = Clean::new(why.trim_start_matches("error: "));
            self.failed(&why, hint.as_ref());
            return Vec::new();
        }
        match &done.purpose {
            Purpose::Show(title) => {
                let text = done.output.as_str().trim_end();
                let said = done.errors.as_str().trim_end();
                match text.lines().count() {
                    0 if said.is_empty() => self.say_briefly(format!("{title}: done")),
                    0 => self.note(said),
                    lines if lines <= SHORT => {
                        self.transcript.push(Block::Output(Clean::new(text)));
                    }
                    _ => self.open_text(title, Content::Plain(done.output.clone())),
                }
                self.session
                    .as_ref()
                    .map_or_else(Vec::new, |card| vec![Effect::ReadCard(card.id.clone())])
            }
            Purpose::Diff => {
                match done.output.as_str().trim().is_empty() {
                    true => self.say_briefly("no file was changed"),
                    false => self.open_text("diff", Content::Diff(done.output.clone())),
                }
                Vec::new()
            }
            Purpose::Open if self.is_working() => {
                let said = done.output.as_str().trim();
                self.note(format!("{said}; it can be opened when the agent is done"));
                Vec::new()
            }
            Purpose::Open => {
                self.forked = self.session.as_ref().map(|card| card.id.clone());
                let session = done.output.as_str().split_whitespace().next_back();
                let session = session.unwrap_or("@last").to_owned();
                vec![Effect::Open { session, store: None, resume: false }]
            }
            Purpose::Reload => {
                let said = format!("{}{}", done.output, done.errors);
                self.say_briefly(said.lines().next().unwrap_or("done"));
                self.session.as_ref().map_or_else(Vec::new, |card| {
                    vec![Effect::Open { session: card.id.to_string(), store: None, resume: false }]
                })
            }
            Purpose::Relist => self.list_anew(),
            Purpose::Detached => self.leave(),
            Purpose::Imported(session) => {
                vec![Effect::Open { session: session.to_string(), store: None, resume: false }]
            }
            Purpose::Deleted(session) => {
                self.deleted = Some(session.clone());
                if let Some(Page::Picker(picker)) = &mut self.page
                    && picker.doing == Doing::Typing
                {
                    picker.doing = Doing::Deleted;
                    self.say_briefly("in the trash");
                } else {
                    self.note(format!("in the trash; stepwell trash restore {session}"));
                }
                if self.session.as_ref().is_some_and(|card| card.id == *session) {
                    self.begin_anew();
                    self.start.get_or_insert_default();
                }
                self.list_anew()
            }
        }
    }

    /// Lists sessions again wherever they are listed: what is listed has changed.
    fn list_anew(&mut self) -> Vec<Effect> {
        let mut effects = self.find();
        effects.extend(self.start.is_some().then_some(Effect::ListStart));
        effects
    }

    /// Nothing is open any more.
    pub(super) fn begin_anew(&mut self) {
        self.session = None;
        self.transcript = Transcript::default();
        self.queue.clear();
        self.questions.clear();
        self.answering.clear();
        self.helpers.clear();
    }
}
