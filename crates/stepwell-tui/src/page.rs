//! Pages that cover the conversation: lists of sessions and points, texts, choices.

use ratatui::text::Line;
use stepwell::SessionId;
use stepwell::model::{Mode, Scope};

use crate::clean::Clean;
use crate::editor::Editor;
use crate::effect::{OtherAgents, PointsFor};
use crate::session::{Point, Reach, SessionRow};
use crate::transcript::{Block, Transcript};

/// A page.
#[derive(Clone, Debug)]
pub enum Page {
    /// Sessions, found as words are typed.
    Picker(Picker),
    /// Points of a session.
    Points(PointsPage),
    /// A text to read.
    Text(TextPage),
    /// One of several things.
    Choice(ChoicePage),
}

/// Sessions, found as words are typed.
#[derive(Clone, Debug, Default)]
pub struct Picker {
    /// The words.
    pub words: Editor,
    /// How far the search goes.
    pub reach: Reach,
    /// Which search was asked for last.
    pub search: u64,
    /// What was found; absent while nothing was.
    pub rows: Option<Vec<SessionRow>>,
    /// Which is selected.
    pub selected: usize,
    /// Does the selection stay with its session when the list is read again?
    pub(crate) stays: bool,
    /// What is in the selected one.
    pub preview: Option<Clean>,
    /// What is done to the selected one.
    pub doing: Doing,
    /// Are other agents' sessions among them?
    pub others: OtherAgents,
}

/// What is done to the selected session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// Words are typed.
    #[default]
    Typing,
    /// An action is chosen.
    Choosing,
    /// It was just deleted, and one key brings it back.
    Deleted,
    /// A name is typed.
    Renaming(Editor),
    /// Tags are typed.
    Tagging(Editor),
}

impl Picker {
    /// The selected session.
    #[must_use]
    pub fn row(&self) -> Option<&SessionRow> {
        self.rows.as_ref()?.get(self.selected)
    }
}

/// Points of a session.
#[derive(Clone, Debug)]
pub struct PointsPage {
    /// What for.
    pub purpose: PointsFor,
    /// The points, the newest first.
    pub points: Vec<Point>,
    /// Which is selected.
    pub selected: usize,
    /// Which way back is selected, once a point was chosen.
    pub way: Option<usize>,
}

/// The ways back: the flags of the command line, and what they say.
pub(crate) const WAYS: [(Way, &str); 5] = [
    (Way { scope: Scope::Both, force: false }, "the conversation and the files"),
    (Way { scope: Scope::Chat, force: false }, "the conversation only"),
    (Way { scope: Scope::Files, force: false }, "the files only"),
    (Way { scope: Scope::Both, force: true }, "both, over what others changed"),
    (Way { scope: Scope::Files, force: true }, "files only, over what others changed"),
];

/// What going back moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// The conversation, the files or both.
    pub(crate) scope: Scope,
    /// Are files overwritten that someone else changed since?
    pub(crate) force: bool,
}

/// A text to read.
#[derive(Clone, Debug)]
pub struct TextPage {
    /// What it is.
    pub title: Clean,
    /// The text.
    pub content: Content,
    /// It as lines of the present width.
    pub lines: Vec<Line<'static>>,
    /// The first line that is shown.
    pub top: usize,
    /// The question that it shows all of: its session and its name.
    pub about: Option<(SessionId, String)>,
    /// How many blocks of a conversation are in `lines` for good.
    pub blocks: usize,
    /// How many of the lines are theirs; the others may still change.
    pub settled: usize,
}

/// What a page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The conversation.
    Transcript,
    /// The conversation of a subagent or a flow's node, by its name.
    Helper(Clean),
    /// A diff.
    Diff(Clean),
    /// Text as it is.
    Plain(Clean),
    /// Markdown.
    Markdown(Clean),
}

/// One of several things.
#[derive(Clone, Debug)]
pub struct ChoicePage {
    /// What is chosen.
    pub what: Choosing,
    /// The things.
    pub items: Vec<Clean>,
    /// What is typed to find one.
    pub filter: Editor,
    /// Which is selected, of those that fit.
    pub selected: usize,
}

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choosing {
    /// The model.
    Model,
    /// When a person is asked.
    Mode,
    /// The agent.
    Agent,
    /// Which subagent or node is watched.
    Helper,
}

impl ChoicePage {
    /// The modes.
    #[must_use]
    pub fn modes(now: Mode) -> Self {
        let items = Mode::ALL.map(|mode| Clean::new(mode.as_str())).to_vec();
        let selected = Mode::ALL.iter().position(|mode| *mode == now).unwrap_or(0);
        Self { what: Choosing::Mode, items, filter: Editor::default(), selected }
    }

    /// The things that fit what was typed.
    #[must_use]
    pub fn fitting(&self) -> Vec<&Clean> {
        match self.filter.is_empty() {
            true => self.items.iter().collect(),
            false => crate::fuzzy::best(&self.items, self.filter.text(), usize::MAX, |item| {
                item.as_str()
            }),
        }
    }
}

impl TextPage {
    /// A page that shows something from its beginning.
    #[must_use]
    pub fn new(title: &str, content: Content) -> Self {
        Self {
            title: Clean::line(title),
            content,
            lines: Vec::new(),
            top: 0,
            about: None,
            blocks: 0,
            settled: 0,
        }
    }

    /// Lays a conversation out. What stays as it is, is laid out once.
    pub(crate) fn lay_out(
        &mut self,
        transcript: &Transcript,
        lines: impl Fn(&Block) -> Vec<Line<'static>>,
    ) {
        let blocks = transcript.blocks();
        let settled = blocks.iter().take_while(|block| block.is_final()).count();
        self.lines.truncate(self.settled);
        for shown in &blocks[self.blocks.min(settled)..settled] {
            self.lines.extend(lines(shown));
        }
        (self.blocks, self.settled) = (settled, self.lines.len());
        for shown in blocks[settled..].iter().chain(&transcript.streaming()) {
            self.lines.extend(lines(shown));
        }
    }

    /// The last line that may be the first shown.
    #[must_use]
    pub fn last_top(&self, rows: usize) -> usize {
        self.lines.len().saturating_sub(rows)
    }
}
