//! Stepwell in a terminal: talk with an agent, pick up any session.
//!
//! The core is pure. A [`State`] takes [`Input`]s in, keys as well as what a run tells and a store
//! answers, and gives [`Effect`]s back: what it wants done. [`draw`] says how a state looks. So every
//! key can be tested without a terminal, a store or a model.
//!
//! Finished parts of the conversation are printed above a small live part and stay in the terminal's
//! own scrollback; only pages cover the screen. Text from models, tools and other people is
//! [`Clean`] before it is drawn, so that it cannot drive the terminal.

mod backstage;
mod blanks;
mod choice;
mod clean;
mod completion;
mod composer;
mod diff;
mod draw;
mod driver;
mod editor;
mod effect;
mod from_runtime;
mod fuzzy;
mod gates;
mod helper;
mod markdown;
mod own_editor;
mod page;
mod page_layout;
mod phase;
mod plain;
mod plain_driver;
mod raw;
mod screen;
mod session;
mod signals;
mod state;
mod theme;
mod told;
mod transcript;
mod update;
mod wrap;

pub use backstage::{MakeLauncher, Program, RuntimeBackstage, shown_folder};
pub use choice::Choice;
pub use clean::Clean;
pub use completion::{Completion, CompletionKind, Offer};
pub use composer::Composer;
pub use draw::{Picture, draw, printed};
pub use driver::{Backstage, InputChannel, Inputs, inputs, run};
pub use editor::{Editor, Move, Row};
pub use effect::{
    Effect, Elsewhere, Grown, Input, Opened, OtherAgents, Outcome, PointsFor, Ran, Reply,
    RunSettings, StorePlace, Visit,
};
pub use gates::{Asked, Gates};
pub use helper::Helper;
pub use page::{ChoicePage, Choosing, Content, Doing, Page, Picker, PointsPage, TextPage};
pub use phase::{Open, Opening, Passage, Phase, Start, StartList};
pub use plain::{plain_lines, plain_question, plain_start};
pub use plain_driver::run_plain;
pub use screen::Screen;
pub use session::{Foreign, Point, Reach, SessionCard, SessionRow};
pub use state::{Detach, Look, State, View, Work};
pub use theme::Theme;
pub use told::{Always, Ended, Question, QuestionKind, Told, ToolOutcome, ToolRun};
pub use transcript::{Block, ToolBlock, ToolState, Transcript, Whose};
pub use update::KEYS;
