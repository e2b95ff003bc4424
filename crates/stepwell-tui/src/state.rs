//! Everything that is shown, and what the next key means.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell::SessionId;

use crate::clean::Clean;
use crate::composer::Composer;
use crate::effect::{Effect, RunSettings, StorePlace, Visit};
use crate::gates::{Asked, Gates};
use crate::helper::Helper;
use crate::page::Page;
use crate::phase::{Passage, Phase, StartList};
use crate::session::SessionCard;
use crate::theme::Theme;
use crate::transcript::{Block, Transcript};

/// How long a line about what just happened stays.
const FLASH: Duration = Duration::from_secs(4);

/// What the terminal is, as far as it is found out before it begins.
#[derive(Clone, Debug)]
pub struct Look {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
    /// How things look.
    pub theme: Theme,
    /// The model that a new session gets, as the configuration says.
    pub model: Clean,
    /// When a person is asked, as the configuration says.
    pub mode: stepwell::model::Mode,
    /// The folder, as it is shown.
    pub folder: Clean,
}

/// Everything that is shown, and what the next key means.
#[derive(Clone, Debug)]
pub struct State {
    /// The terminal.
    pub look: Look,
    /// The time since the program began.
    pub now: Duration,
    /// Which session is open.
    pub phase: Phase,
    /// Whether another session is being opened, or the user leaves.
    pub passage: Passage,
    /// Does a run work in the session?
    pub work: Work,
    /// The conversation.
    pub transcript: Transcript,
    /// What is typed, and what waits to be sent.
    pub composer: Composer,
    /// The questions of the run.
    pub gates: Gates,
    /// The commands of the user's own that run.
    pub(crate) shells: Shells,
    /// The page that covers the conversation.
    pub page: Option<Page>,
    /// What of the conversation is shown, and how.
    pub view: View,
    /// Subagents and the conversations of a flow's nodes, in the order in which they began.
    pub helpers: Vec<Helper>,
    /// What was changed here for later runs.
    pub settings: RunSettings,
    /// What the program was started with: new sessions get it.
    pub(crate) given: RunSettings,
    /// Where the open session lies, if not where the terminal began.
    pub away: Option<StorePlace>,
    /// Which visit this is.
    pub visit: Visit,
    /// The session that a command changes. No run begins in it meanwhile.
    pub(crate) changing: Option<SessionId>,
    /// What went to the trash last.
    pub(crate) deleted: Option<SessionId>,
    /// Is the run to go on in the background?
    pub(crate) detach: Detach,
    /// Did the input end, so that nobody types any more?
    pub(crate) closed: bool,
    /// How many sessions were opened, and how often sessions were searched.
    pub(crate) counts: Counts,
    /// When keys were pressed that mean something else the second time.
    pub(crate) presses: Presses,
}

/// The commands of the user's own that run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shells {
    /// How many run.
    pub(crate) running: usize,
    /// When the last of them began.
    pub(crate) since: Duration,
    /// The sessions of visits that are over, while commands of theirs run.
    pub(crate) earlier: BTreeMap<Visit, SessionId>,
}

/// What of the conversation is shown, and how.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Is the model's thinking shown?
    pub thinking: bool,
    /// Is all of tools' output shown?
    pub details: bool,
    /// Are whole lines typed, where the screen is not redrawn?
    pub(crate) lines: bool,
    /// A line about what just happened, and until when it is shown.
    pub(crate) flash: Option<(Duration, Clean)>,
}

/// Counters that distinguish late answers from current ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) openings: u64,
    pub(crate) searches: u64,
}

/// When keys were pressed that mean something else the second time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Presses {
    pub(crate) escape: Option<Duration>,
    pub(crate) cancel: Option<Duration>,
}

/// Whether the run goes on in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detach {
    /// It does not.
    #[default]
    No,
    /// It is to: it stops here first.
    Asked,
    /// It does.
    Done,
}

/// Whether a run works in the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// None does.
    #[default]
    Idle,
    /// One does.
    Working {
        /// Since when.
        since: Duration,
        /// Was it asked to stop?
        stopping: bool,
        /// Did it begin? Until then nothing of it is on record.
        began: bool,
    },
    /// One does elsewhere, and is watched.
    Watching {
        /// Since when.
        since: Duration,
        /// Who runs it.
        holder: Clean,
    },
}

impl State {
    /// A terminal in which nothing happened yet.
    #[must_use]
    pub fn new(look: Look) -> Self {
        Self {
            look,
            now: Duration::ZERO,
            phase: Phase::default(),
            passage: Passage::default(),
            work: Work::Idle,
            transcript: Transcript::default(),
            composer: Composer::default(),
            gates: Gates::default(),
            shells: Shells::default(),
            page: None,
            view: View::default(),
            helpers: Vec::new(),
            settings: RunSettings::default(),
            given: RunSettings::default(),
            away: None,
            visit: Visit::default(),
            changing: None,
            deleted: None,
            detach: Detach::No,
            closed: false,
            counts: Counts::default(),
            presses: Presses::default(),
        }
    }

    /// Begins with what was chosen on the command line.
    #[must_use]
    pub fn with_settings(mut self, settings: RunSettings) -> Self {
        (self.settings, self.given) = (settings.clone(), settings);
        self
    }

    /// The folder that is worked in, as it is shown.
    #[must_use]
    pub fn folder(&self) -> &Clean {
        self.away.as_ref().map_or(&self.look.folder, |place| &place.folder)
    }

    /// The model that a new session gets here.
    #[must_use]
    pub fn default_model(&self) -> &Clean {
        self.away.as_ref().map_or(&self.look.model, |place| &place.model)
    }

    /// Does a run of this process work?
    #[must_use]
    pub const fn is_working(&self) -> bool {
        matches!(self.work, Work::Working { .. })
    }

    /// Is a run watched that goes on elsewhere?
    #[must_use]
    pub const fn is_watching(&self) -> bool {
        matches!(self.work, Work::Watching { .. })
    }

    /// Does a run work, here or elsewhere?
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.is_working() || self.is_watching()
    }

    /// Does the run go on in the background, now that the user left?
    #[must_use]
    pub fn is_detached(&self) -> bool {
        self.detach == Detach::Done
    }

    /// Did the user leave?
    #[must_use]
    pub const fn has_left(&self) -> bool {
        self.passage.has_left()
    }

    /// What is known of the open session.
    #[must_use]
    pub fn session(&self) -> Option<&SessionCard> {
        self.phase.card()
    }

    /// Sessions to begin with, while none is open.
    #[must_use]
    pub fn start_list(&self) -> Option<&StartList> {
        self.phase.start()?.list.as_ref()
    }

    pub(crate) fn start_list_mut(&mut self) -> Option<&mut StartList> {
        self.phase.start_mut()?.list.as_mut()
    }

    /// Is a session being opened?
    #[must_use]
    pub const fn is_opening(&self) -> bool {
        self.passage.opening().is_some()
    }

    /// What is said when the user has left: what was not sent, and how to come back.
    #[must_use]
    pub fn farewell(&self) -> Option<String> {
        let unsent = self.composer.unsent.join("\n\n");
        let unsent = (!unsent.is_empty()).then(|| format!("Not sent:\n{unsent}"));
        let parts: Vec<String> = unsent.into_iter().chain(self.way_back()).collect();
        (!parts.is_empty()).then(|| parts.join("\n"))
    }

    /// How to come back. What is typed for that stays on one line, also on a narrow screen.
    fn way_back(&self) -> Option<String> {
        let id = &self.phase.card()?.id;
        let (says, command, ends) = match (self.is_detached(), self.is_watching()) {
            (true, _) => ("It goes on in the background;", "attach", "shows it"),
            (_, true) => ("It goes on;", "attach", "comes back to it"),
            _ => ("Saved.", "chat", "comes back to it"),
        };
        let line = format!("{says} stepwell {command} {id} {ends}");
        Some(match crate::wrap::width(&line) <= usize::from(self.look.columns) {
            true => line,
            false => format!("{says}\n  stepwell {command} {id}\n{ends}"),
        })
    }

    /// The question that keys answer now.
    #[must_use]
    pub fn asked(&self) -> Option<&Asked> {
        self.gates.asked()
    }

    /// A line about what just happened, while it is new.
    #[must_use]
    pub fn flash(&self) -> Option<&Clean> {
        let (until, text) = self.view.flash.as_ref()?;
        (self.now < *until).then_some(text)
    }

    /// The blocks that are to be printed above the live part now.
    pub fn take_printable(&mut self) -> Vec<Block> {
        let blocks = self.transcript.take_printable();
        let shown = |block: &Block| self.view.thinking || !matches!(block, Block::Thinking(_));
        blocks.into_iter().filter(shown).collect()
    }

    pub(crate) fn say_briefly(&mut self, text: impl AsRef<str>) {
        self.say_for(FLASH, text);
    }

    /// Says something for as long as it holds.
    pub(crate) fn say_for(&mut self, time: Duration, text: impl AsRef<str>) {
        self.view.flash = Some((self.now + time, Clean::line(text.as_ref())));
    }

    /// Covers the conversation with a page. What was said of the conversation is not about it.
    pub(crate) fn open_page(&mut self, page: Page) {
        self.view.flash = None;
        self.page = Some(page);
    }

    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        self.transcript.push(Block::Note(Clean::new(text.as_ref())));
    }

    pub(crate) fn trouble(&mut self, why: &Clean, hint: Option<&Clean>) {
        self.transcript.push(Block::Trouble(why.clone()));
        if let Some(hint) = hint {
            self.note(format!("hint: {hint}"));
        }
    }

    /// Sends what was typed: to the run, to the session, or as a new session's task.
    pub(crate) fn send(&mut self, text: String) -> Vec<Effect> {
        self.hide_start_list();
        match self.phase.card() {
            Some(card) if card.is_flow => {
                self.say_briefly("a flow takes no words; /new begins a conversation");
                self.composer.editor.set(&text);
                Vec::new()
            }
            Some(card) if self.changing.as_ref() == Some(&card.id) => {
                self.say_briefly("one moment: the session is being changed");
                self.composer.editor.set(&text);
                Vec::new()
            }
            Some(_) => self.say(text),
            None if self.is_working() => {
                self.composer.queue.push(Clean::new(&text));
                vec![Effect::SayFirst(text)]
            }
            None => self.begin_with(text),
        }
    }

    /// Says something to the open session: its run hears it, or begins with it.
    fn say(&mut self, text: String) -> Vec<Effect> {
        let is_busy = self.is_busy();
        let Some(open) = self.phase.open_mut() else { return Vec::new() };
        let session = open.card.id.clone();
        self.composer.queue.push(Clean::new(&text));
        if is_busy {
            return vec![Effect::Say { session, text }];
        }
        let follows = std::mem::take(&mut open.keeps_words);
        open.tried.clear();
        let say = (!follows).then(|| text.clone());
        if !follows {
            open.sending.clone_from(&say);
        }
        self.begin_work();
        // Behind what waits for the run already.
        let said = follows.then(|| Effect::Say { session: session.clone(), text });
        let resume = Effect::Resume { session, say, settings: self.settings.clone() };
        said.into_iter().chain([resume]).collect()
    }

    /// Begins a session: its task is what the user's own commands wrote, then these words.
    fn begin_with(&mut self, words: String) -> Vec<Effect> {
        let mut task = std::mem::take(&mut self.composer.carried);
        task.push(words);
        let task = task.join("\n\n");
        self.composer.queue.push(Clean::new(&task));
        self.begin_work();
        vec![Effect::Start { task, settings: self.settings.clone() }]
    }

    /// Gives words back that were not sent: they are typed again, before what is typed by now.
    pub(crate) fn give_back(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if self.has_left() || self.passage.is_leaving() {
            self.composer.unsent.push(words.to_owned());
        } else if self.view.lines {
            self.note(format!("not sent: {words}"));
        } else {
            self.composer.type_again(words);
        }
    }

    /// Nothing is chosen to begin with any more.
    pub(crate) fn hide_start_list(&mut self) {
        if let Some(start) = self.phase.start_mut() {
            start.list = None;
        }
    }

    pub(crate) fn begin_work(&mut self) {
        // The run asks again what still waits.
        self.gates.questions.clear();
        self.work = Work::Working { since: self.now, stopping: false, began: false };
    }

    /// Asks the run to stop.
    pub(crate) fn stop(&mut self) -> Vec<Effect> {
        if self.shells.running > 0 {
            return vec![Effect::StopShell];
        }
        match &mut self.work {
            Work::Working { stopping, .. } => {
                *stopping = true;
                vec![Effect::Interrupt]
            }
            Work::Watching { .. } => {
                self.say_briefly("it runs elsewhere: /stop stops it there");
                Vec::new()
            }
            Work::Idle => Vec::new(),
        }
    }

    /// Leaves. A command of the user's is ended first, and what it wrote is kept; whoever leaves
    /// again does not wait for that.
    pub(crate) fn leave(&mut self) -> Vec<Effect> {
        let stays = !self.passage.is_leaving() && !self.has_left();
        if self.shells.running > 0 && stays {
            self.passage.leave_later();
            self.say_briefly("your command is stopped first");
            return vec![Effect::StopShell];
        }
        let has_early = self.passage.opening().is_some_and(|opening| !opening.early.is_empty());
        if has_early && stays {
            self.passage.leave_later();
            self.say_briefly("the session is opened first: your words are for it");
            return Vec::new();
        }
        self.composer.unsent.extend(self.passage.leave_now());
        let mut effects = self.keep_held();
        effects.push(Effect::Leave);
        effects
    }

    /// Has the session keep the words that waited for a command of the user's. Where none is open
    /// yet, one begins with them.
    fn keep_held(&mut self) -> Vec<Effect> {
        let held: Vec<String> =
            self.composer.held.drain(..).filter(|typed| !typed.starts_with('!')).collect();
        match self.phase.card() {
            Some(card) if !card.is_flow => {
                let say = |text| Effect::Say { session: card.id.clone(), text };
                held.into_iter().map(say).collect()
            }
            Some(_) => {
                self.composer.unsent.extend(held);
                Vec::new()
            }
            None if self.is_working() => held.into_iter().map(Effect::SayFirst).collect(),
            None if held.is_empty() => Vec::new(),
            None => {
                self.composer.queue.clear();
                self.begin_with(held.join("\n\n"))
            }
        }
    }

    /// Asks for sessions, for the page that is open.
    pub(crate) fn find(&mut self) -> Vec<Effect> {
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        self.counts.searches += 1;
        picker.search = self.counts.searches;
        let (words, reach) = (picker.words.text().to_owned(), picker.reach);
        vec![Effect::Find { search: self.counts.searches, words, reach }]
    }
}
