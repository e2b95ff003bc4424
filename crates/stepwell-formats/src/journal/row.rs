//! What a line of a journal means.

use std::path::Path;

use stepwell::Message;
use stepwell::model::Time;

use super::branches::Named;
use super::form::Words;
use super::tree::key;
use crate::json::fields::Fields;
use crate::read::neutral::Opening;

/// Says what the lines of one session mean, one after the other.
pub(crate) trait LineReader {
    fn words(&self) -> &'static Words;

    /// What a line says of the session as a whole, if it does. The first answer counts.
    fn opening(&self, path: &Path, line: &Fields<'_>) -> Option<Opening>;

    /// What the user asked for in their own words, if the line says so.
    fn asked(&self, line: &Fields<'_>) -> Option<String>;

    /// What the line means. It is asked of each line once, in order.
    fn row<'a>(&mut self, line: &Fields<'a>) -> Row<'a>;

    /// Did Stepwell write the line?
    fn is_ours(&self, line: &Fields<'_>) -> bool;

    /// The lines that a line names.
    fn named(&self, line: &Fields<'_>) -> Named {
        let Words { own, parent, .. } = self.words();
        let name = |field: &str| line.text(field).map(|name| key(&name));
        Named { own: name(own), parents: name(parent).into_iter().collect(), others: Vec::new() }
    }

    /// What is on a line that Stepwell wrote.
    fn ours<'a>(&self, line: &Fields<'a>) -> Option<Fields<'a>> {
        if self.is_ours(line) { line.object(self.words().payload) } else { None }
    }
}

/// A line.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) name: Option<String>,
    pub(crate) link: Link,
    pub(crate) at: Option<Time>,
    pub(crate) what: What<'a>,
}

/// The line that a line follows. The conversation goes on from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The line before it.
    Last,
    /// None: it begins the conversation anew.
    First,
    /// The line of that name.
    After(String),
}

/// What a line is to the conversation.
#[derive(Debug)]
pub(crate) enum What<'a> {
    /// It is kept, and no part of the conversation.
    Nothing,
    /// It says what the whole session is.
    Header,
    /// Something was said.
    Said(Said),
    /// The model is shown something shorter from here on.
    Compacted(Compaction),
    /// The last message, which the user typed, was no question: the model is not shown it.
    Withdrawn(String),
    /// The session has that title.
    Title(String),
    /// A line that Stepwell wrote, and what is on it.
    Ours(Fields<'a>),
}

/// A message.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) message: Message,
    pub(crate) end: End,
}

/// How a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is whole.
    Whole,
    /// The model stopped in the middle of it.
    CutOff,
    /// It failed, and is not sent again.
    Failed,
}

impl Said {
    /// A message that is whole.
    pub(crate) fn whole(message: Message) -> Self {
        Self { message, end: End::Whole }
    }
}

/// What the model is shown in place of what was said before.
#[derive(Debug, Default)]
pub(crate) struct Compaction {
    /// It comes first.
    pub(crate) summary: Option<String>,
    /// The line from which on what was said stays, behind the summary.
    pub(crate) kept_from: Option<String>,
    /// What is shown behind that. The user and the model said it before, or nobody did.
    pub(crate) shown: Vec<Message>,
    pub(crate) tokens_before: u64,
}
