//! Everything that is shown, and what the next key means.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use stepwell::{Seq, SessionId};

use crate::choice::Choice;
use crate::clean::Clean;
use crate::completion::Completion;
use crate::editor::Editor;
use crate::effect::{Effect, RunSettings, StorePlace, Visit};
use crate::helper::Helper;
use crate::page::Page;
use crate::session::{SessionCard, SessionRow};
use crate::theme::Theme;
use crate::told::Question;
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
    /// The conversation.
    pub transcript: Transcript,
    /// What is typed.
    pub editor: Editor,
    /// What completes it.
    pub completion: Option<Completion>,
    /// The session that is open.
    pub session: Option<SessionCard>,
    /// Does a run work in it?
    pub work: Work,
    /// What was said and is not in the conversation yet.
    pub queue: Vec<Clean>,
    /// Questions that wait, the oldest first.
    pub questions: Vec<Asked>,
    /// Questions that were answered here; whether the answer was taken is not known yet.
    pub(crate) answering: Vec<Asked>,
    /// What is typed was meant for a question that somebody else answered: it is not sent unasked.
    pub(crate) typed_for_question: bool,
    /// Text that Tab put aside. It is typed again when no question waits.
    pub(crate) aside: Option<String>,
    /// When a question was answered elsewhere that a line may still be meant for.
    pub(crate) taken_away: Option<Duration>,
    /// Sessions to begin with, until something is said.
    pub start: Option<StartList>,
    /// The page that covers the conversation.
    pub page: Option<Page>,
    /// What was changed here for later runs.
    pub settings: RunSettings,
    /// What the program was started with: new sessions get it.
    pub(crate) given: RunSettings,
    /// Was another session open before? What was chosen for it is not for the next one.
    pub(crate) began_anew: bool,
    /// The session that is being opened.
    pub opening: Option<Opening>,
    pub(crate) openings: u64,
    /// What was typed meanwhile: it is for the session that is being opened.
    pub early: VecDeque<String>,
    /// Where the open session lies, if not where the terminal began.
    pub away: Option<StorePlace>,
    /// Which visit this is.
    pub visit: Visit,
    /// The sessions of visits that are over, while commands of theirs run.
    pub(crate) earlier: BTreeMap<Visit, SessionId>,
    /// Is the model's thinking shown?
    pub thinking: bool,
    /// Is all of tools' output shown?
    pub details: bool,
    /// Subagents and the conversations of a flow's nodes, in the order in which they began.
    pub helpers: Vec<Helper>,
    /// A line about what just happened, and until when it is shown.
    pub(crate) flash: Option<(Duration, Clean)>,
    pub(crate) last_escape: Option<Duration>,
    pub(crate) last_cancel: Option<Duration>,
    pub(crate) searches: u64,
    /// The last event of the open session that is known.
    pub(crate) seen: Seq,
    /// How many commands of the user's run.
    pub(crate) shells: usize,
    /// When the last of them began.
    pub(crate) shell_since: Duration,
    /// Does the user leave as soon as they are recorded?
    pub(crate) leaving: bool,
    /// What was typed meanwhile: it is sent behind what they write.
    pub(crate) held: VecDeque<String>,
    /// Does the session keep words for its next run?
    pub(crate) keeps_words: bool,
    /// For the task of a session that has not begun: what the user's own commands wrote.
    pub(crate) carried: Vec<String>,
    /// The session that a fork is being made of.
    pub(crate) forked: Option<SessionId>,
    /// What went to the trash last.
    pub(crate) deleted: Option<SessionId>,
    pub(crate) left: bool,
    /// Does nobody type any more?
    pub(crate) closed: bool,
    /// The session that a command changes. No run begins in it meanwhile.
    pub(crate) changing: Option<SessionId>,
    /// What is typed again when the session was taken back.
    pub(crate) retype: Option<String>,
    /// Words that a run is to begin with: they are on record when it has begun.
    pub(crate) sending: Option<String>,
    /// The words for which a run was begun last, with nothing else to do.
    pub(crate) tried: Vec<Clean>,
    /// What was open before something that has not begun yet.
    pub(crate) before: Option<Box<Before>>,
    /// Are whole lines typed, where the screen is not redrawn?
    pub(crate) lines: bool,
    /// Words that were not sent when the user left.
    pub(crate) unsent: Vec<String>,
    /// Is the run to go on in the background?
    pub(crate) detach: Detach,
}

/// A session that is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Which opening it is.
    pub number: u64,
    /// Since when.
    pub since: Duration,
}

/// What was open before something else was begun. If that does not begin, it is open again.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) session: SessionCard,
    pub(crate) transcript: Transcript,
    pub(crate) settings: RunSettings,
    pub(crate) helpers: Vec<Helper>,
    pub(crate) seen: Seq,
    pub(crate) keeps_words: bool,
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

/// A question, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The question.
    pub question: Question,
    /// Since when it is shown.
    pub since: Duration,
    /// The answer that the arrow keys chose. Enter gives it.
    pub choice: Option<Choice>,
    /// Is the text in the input line a reply to this question? Text that was there when the
    /// question came is a message.
    pub replying: bool,
    /// Was it shown to its end, on a page or as lines?
    pub read: bool,
    /// Is a pattern being typed that is allowed from now on?
    pub pattern: bool,
}

impl Asked {
    /// A question that comes up now.
    #[must_use]
    pub const fn new(question: Question, since: Duration) -> Self {
        Self { question, since, choice: None, replying: false, read: false, pattern: false }
    }

    /// Is it this one?
    #[must_use]
    pub fn is(&self, session: &SessionId, gate: &str) -> bool {
        self.question.gate == gate && self.question.session == *session
    }
}

/// Sessions to begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartList {
    /// The sessions: what was cut off and what waits first.
    pub rows: Vec<SessionRow>,
    /// Which is selected; absent, none.
    pub selected: Option<usize>,
}

impl State {
    /// A terminal in which nothing happened yet.
    #[must_use]
    pub fn new(look: Look) -> Self {
        Self {
            look,
            now: Duration::ZERO,
            transcript: Transcript::default(),
            editor: Editor::default(),
            completion: None,
            session: None,
            work: Work::Idle,
            queue: Vec::new(),
            questions: Vec::new(),
            answering: Vec::new(),
            typed_for_question: false,
            aside: None,
            taken_away: None,
            start: None,
            page: None,
            settings: RunSettings::default(),
            given: RunSettings::default(),
            began_anew: false,
            opening: None,
            openings: 0,
            early: VecDeque::new(),
            away: None,
            visit: Visit::default(),
            earlier: BTreeMap::new(),
            thinking: false,
            details: false,
            helpers: Vec::new(),
            flash: None,
            last_escape: None,
            last_cancel: None,
            searches: 0,
            seen: Seq::default(),
            shells: 0,
            shell_since: Duration::ZERO,
            leaving: false,
            held: VecDeque::new(),
            keeps_words: false,
            carried: Vec::new(),
            forked: None,
            deleted: None,
            left: false,
            closed: false,
            changing: None,
            retype: None,
            sending: None,
            tried: Vec::new(),
            before: None,
            lines: false,
            unsent: Vec::new(),
            detach: Detach::No,
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
        self.left
    }

    /// What is said when the user has left: what was not sent, and how to come back.
    #[must_use]
    pub fn farewell(&self) -> Option<String> {
        let unsent = self.unsent.join("\n\n");
        let unsent = (!unsent.is_empty()).then(|| format!("Not sent:\n{unsent}"));
        let parts: Vec<String> = unsent.into_iter().chain(self.way_back()).collect();
        (!parts.is_empty()).then(|| parts.join("\n"))
    }

    /// How to come back. What is typed for that stays on one line, also on a narrow screen.
    fn way_back(&self) -> Option<String> {
        let id = &self.session.as_ref()?.id;
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
        self.questions.first()
    }

    /// A line about what just happened, while it is new.
    #[must_use]
    pub fn flash(&self) -> Option<&Clean> {
        let (until, text) = self.flash.as_ref()?;
        (self.now < *until).then_some(text)
    }

    /// The blocks that are to be printed above the live part now.
    pub fn take_printable(&mut self) -> Vec<Block> {
        let blocks = self.transcript.take_printable();
        let shown = |block: &Block| self.thinking || !matches!(block, Block::Thinking(_));
        blocks.into_iter().filter(shown).collect()
    }

    pub(crate) fn say_briefly(&mut self, text: impl AsRef<str>) {
        self.say_for(FLASH, text);
    }

    /// Says something for as long as it holds.
    pub(crate) fn say_for(&mut self, time: Duration, text: impl AsRef<str>) {
        self.flash = Some((self.now + time, Clean::line(text.as_ref())));
    }

    /// Covers the conversation with a page. What was said of the conversation is not about it.
    pub(crate) fn open_page(&mut self, page: Page) {
        self.flash = None;
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
        self.start = None;
        let settings = self.settings.clone();
        match &self.session {
            Some(card) if card.is_flow => {
                self.say_briefly("a flow takes no words; /new begins a conversation");
                self.editor.set(&text);
                Vec::new()
            }
            Some(card) if self.changing.as_ref() == Some(&card.id) => {
                self.say_briefly("one moment: the session is being changed");
                self.editor.set(&text);
                Vec::new()
            }
            Some(card) => {
                let session = card.id.clone();
                self.queue.push(Clean::new(&text));
                if self.is_busy() {
                    return vec![Effect::Say { session, text }];
                }
                let follows = std::mem::take(&mut self.keeps_words);
                self.begin_work();
                self.tried.clear();
                if follows {
                    // Behind what waits for the run already.
                    let said = Effect::Say { session: session.clone(), text };
                    return vec![said, Effect::Resume { session, say: None, settings }];
                }
                self.sending = Some(text.clone());
                vec![Effect::Resume { session, say: Some(text), settings }]
            }
            None if self.is_working() => {
                self.queue.push(Clean::new(&text));
                vec![Effect::SayFirst(text)]
            }
            None => self.begin_with(text),
        }
    }

    /// Begins a session: its task is what the user's own commands wrote, then these words.
    fn begin_with(&mut self, words: String) -> Vec<Effect> {
        let mut task = std::mem::take(&mut self.carried);
        task.push(words);
        let task = task.join("\n\n");
        self.queue.push(Clean::new(&task));
        self.begin_work();
        vec![Effect::Start { task, settings: self.settings.clone() }]
    }

    /// Gives words back that were not sent: they are typed again, before what is typed by now.
    pub(crate) fn give_back(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if self.left || self.leaving {
            self.unsent.push(words.to_owned());
        } else if self.lines {
            self.note(format!("not sent: {words}"));
        } else if self.editor.is_empty() {
            self.editor.set(words);
        } else {
            let both = format!("{words}\n\n{}", self.editor.text());
            self.editor.set(&both);
        }
    }

    pub(crate) fn begin_work(&mut self) {
        // The run asks again what still waits.
        self.questions.clear();
        self.work = Work::Working { since: self.now, stopping: false, began: false };
    }

    /// Asks the run to stop.
    pub(crate) fn stop(&mut self) -> Vec<Effect> {
        if self.shells > 0 {
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
        if self.shells > 0 && !self.leaving {
            self.leaving = true;
            self.say_briefly("your command is stopped first");
            return vec![Effect::StopShell];
        }
        if self.opening.is_some() && !self.early.is_empty() && !self.leaving {
            self.leaving = true;
            self.say_briefly("the session is opened first: your words are for it");
            return Vec::new();
        }
        self.left = true;
        self.unsent.extend(self.early.drain(..));
        let mut effects = self.keep_held();
        effects.push(Effect::Leave);
        effects
    }

    /// Has the session keep the words that waited for a command of the user's. Where none is open
    /// yet, one begins with them.
    fn keep_held(&mut self) -> Vec<Effect> {
        let held: Vec<String> =
            self.held.drain(..).filter(|typed| !typed.starts_with('!')).collect();
        match &self.session {
            Some(card) if !card.is_flow => {
                let say = |text| Effect::Say { session: card.id.clone(), text };
                held.into_iter().map(say).collect()
            }
            Some(_) => {
                self.unsent.extend(held);
                Vec::new()
            }
            None if self.is_working() => held.into_iter().map(Effect::SayFirst).collect(),
            None if held.is_empty() => Vec::new(),
            None => {
                self.queue.clear();
                self.begin_with(held.join("\n\n"))
            }
        }
    }

    /// Asks for sessions, for the page that is open.
    pub(crate) fn find(&mut self) -> Vec<Effect> {
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        self.searches += 1;
        picker.search = self.searches;
        let (words, reach) = (picker.words.text().to_owned(), picker.reach);
        vec![Effect::Find { search: self.searches, words, reach }]
    }
}
