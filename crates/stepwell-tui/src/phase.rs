//! Which session is open, whether another one is being opened, and whether the user leaves.

use std::collections::VecDeque;
use std::time::Duration;

use stepwell::{Seq, SessionId};

use crate::clean::Clean;
use crate::effect::RunSettings;
use crate::helper::Helper;
use crate::session::{SessionCard, SessionRow};
use crate::transcript::Transcript;

/// The session that is open, or none yet.
#[derive(Clone, Debug)]
pub enum Phase {
    /// No session is open. The next words begin one.
    Start(Start),
    /// A session is open.
    Open(Box<Open>),
}

/// The state of the chat while no session is open.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Sessions to choose from, until something is said.
    pub list: Option<StartList>,
    /// Was another session open before? Its settings are not for the next one.
    pub(crate) follows_another: bool,
    /// The conversation to return to if the flow that begins now fails to begin.
    pub(crate) instead_of: Option<Box<Before>>,
}

/// Sessions to begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartList {
    /// The sessions: what was cut off and what waits first.
    pub rows: Vec<SessionRow>,
    /// Which is selected; absent, none.
    pub selected: Option<usize>,
}

/// A session that is open.
#[derive(Clone, Debug)]
pub struct Open {
    /// What is known of it.
    pub card: SessionCard,
    /// Its last known event.
    pub(crate) seen: Seq,
    /// Does it keep words for its next run?
    pub(crate) keeps_words: bool,
    /// Words that a run is to begin with: they are on record when it has begun.
    pub(crate) sending: Option<String>,
    /// The words for which a run was begun last, with nothing else to do.
    pub(crate) tried: Vec<Clean>,
    /// The words to type again once a rewind is done.
    pub(crate) retype: Option<String>,
}

/// The conversation that was open before a flow was begun instead.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) open: Open,
    pub(crate) transcript: Transcript,
    pub(crate) settings: RunSettings,
    pub(crate) helpers: Vec<Helper>,
}

impl Open {
    /// A session of which nothing was read yet.
    pub(crate) const fn new(card: SessionCard) -> Self {
        Self {
            card,
            seen: Seq::new(0),
            keeps_words: false,
            sending: None,
            tried: Vec::new(),
            retype: None,
        }
    }
}

impl Default for Phase {
    fn default() -> Self {
        Self::Start(Start::default())
    }
}

impl Phase {
    /// Is a session open?
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// The session that is open.
    #[must_use]
    pub fn open(&self) -> Option<&Open> {
        match self {
            Self::Open(open) => Some(open),
            Self::Start(_) => None,
        }
    }

    pub(crate) fn open_mut(&mut self) -> Option<&mut Open> {
        match self {
            Self::Open(open) => Some(open),
            Self::Start(_) => None,
        }
    }

    /// What is known of the open session.
    #[must_use]
    pub fn card(&self) -> Option<&SessionCard> {
        self.open().map(|open| &open.card)
    }

    pub(crate) fn card_mut(&mut self) -> Option<&mut SessionCard> {
        self.open_mut().map(|open| &mut open.card)
    }

    /// The state of the chat while no session is open.
    #[must_use]
    pub const fn start(&self) -> Option<&Start> {
        match self {
            Self::Start(start) => Some(start),
            Self::Open(_) => None,
        }
    }

    pub(crate) const fn start_mut(&mut self) -> Option<&mut Start> {
        match self {
            Self::Start(start) => Some(start),
            Self::Open(_) => None,
        }
    }

    /// The last known event of the open session.
    pub(crate) fn seen(&self) -> Seq {
        self.open().map_or(Seq::new(0), |open| open.seen)
    }

    /// Closes the open session. Nothing is open any more.
    pub(crate) fn close(&mut self) -> Option<Open> {
        match std::mem::take(self) {
            Self::Open(open) => Some(*open),
            Self::Start(start) => {
                *self = Self::Start(start);
                None
            }
        }
    }
}

/// Whether the user stays, goes to another session, or leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Passage {
    /// The user stays where they are.
    #[default]
    Staying,
    /// Another session is being opened.
    Opening(Opening),
    /// The user leaves as soon as their commands, or the session that their words are for, allow it.
    Leaving(Option<Opening>),
    /// The user left.
    Left,
}

/// A session that is being opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Which opening it is.
    pub number: u64,
    /// Since when.
    pub since: Duration,
    /// What was typed meanwhile: it is for this session.
    pub early: VecDeque<String>,
    /// The session of which it is a fork.
    pub(crate) fork_of: Option<SessionId>,
}

impl Passage {
    /// The session that is being opened.
    #[must_use]
    pub const fn opening(&self) -> Option<&Opening> {
        match self {
            Self::Opening(opening) | Self::Leaving(Some(opening)) => Some(opening),
            Self::Staying | Self::Leaving(None) | Self::Left => None,
        }
    }

    pub(crate) const fn opening_mut(&mut self) -> Option<&mut Opening> {
        match self {
            Self::Opening(opening) | Self::Leaving(Some(opening)) => Some(opening),
            Self::Staying | Self::Leaving(None) | Self::Left => None,
        }
    }

    /// Begins to open a session. Words for a session that was being opened are for this one. A user
    /// who left opens none.
    pub(crate) fn open(&mut self, mut opening: Opening) {
        if let Some(before) = self.take_opening() {
            opening.early = before.early;
        }
        match self {
            Self::Staying | Self::Opening(_) => *self = Self::Opening(opening),
            Self::Leaving(before) => *before = Some(opening),
            Self::Left => {}
        }
    }

    /// Takes the opening of a number out: it is over. Only the newest one counts.
    pub(crate) fn end(&mut self, number: u64) -> Option<Opening> {
        self.opening().filter(|opening| opening.number == number)?;
        self.take_opening()
    }

    fn take_opening(&mut self) -> Option<Opening> {
        match std::mem::take(self) {
            Self::Opening(opening) => Some(opening),
            Self::Leaving(opening) => {
                *self = Self::Leaving(None);
                opening
            }
            other => {
                *self = other;
                None
            }
        }
    }

    /// The user wants to leave, and something is waited for.
    pub(crate) fn leave_later(&mut self) {
        if *self != Self::Left {
            *self = Self::Leaving(self.take_opening());
        }
    }

    /// The user left. Returns the words for a session that was not open yet.
    pub(crate) fn leave_now(&mut self) -> VecDeque<String> {
        let opening = self.take_opening();
        *self = Self::Left;
        opening.map(|it| it.early).unwrap_or_default()
    }

    /// Is the user about to leave?
    #[must_use]
    pub const fn is_leaving(&self) -> bool {
        matches!(self, Self::Leaving(_))
    }

    /// Did the user leave?
    #[must_use]
    pub const fn has_left(&self) -> bool {
        matches!(self, Self::Left)
    }
}
