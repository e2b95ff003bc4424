//! A session as people read it: what is shown, in order, whatever it is written in.
//!
//! [`Document::of`] decides what is shown; the renderers only say how it looks. Everything that
//! was said is in it: what a model is no longer shown is folded away. All texts here are as
//! they were recorded: escaping is the renderers' work.

mod arguments;
mod build;
mod commands;
mod conversation;
mod edits;
mod lists;
mod passages;

use stepwell::model::Time;

pub(crate) use edits::{Edit, Line};
pub(crate) use passages::{Passage, passages};

/// A session as people read it.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    /// The first line of its task.
    pub(crate) title: String,
    /// Names and values.
    pub(crate) attributes: Vec<(&'static str, String)>,
    /// What a reader has to know first.
    pub(crate) notes: Vec<String>,
    pub(crate) conversations: Vec<Conversation>,
    /// What nodes came to, where no conversation says it.
    pub(crate) results: Vec<NodeResult>,
    /// Where it breaks off, if it is damaged.
    pub(crate) broken: Option<String>,
    /// What else it left: files, tasks, checkpoints, artifacts.
    pub(crate) lists: Vec<List>,
}

/// What was said in one lane.
#[derive(Debug, PartialEq)]
pub(crate) struct Conversation {
    /// The lane's name, unless there is only the main one.
    pub(crate) lane: Option<String>,
    pub(crate) entries: Vec<Entry>,
}

/// One thing in a conversation.
#[derive(Debug, PartialEq)]
pub(crate) enum Entry {
    /// A message.
    Turn(Turn),
    /// Something that happened in between.
    Mark(Mark),
    /// What a model is no longer shown.
    Fold(Fold),
}

/// What a model is no longer shown, under a title that says why.
#[derive(Debug, PartialEq)]
pub(crate) struct Fold {
    pub(crate) title: String,
    pub(crate) entries: Vec<Entry>,
}

/// Something that happened between messages.
#[derive(Debug, PartialEq)]
pub(crate) struct Mark {
    pub(crate) at: Time,
    pub(crate) text: String,
}

/// One message.
#[derive(Debug, PartialEq)]
pub(crate) struct Turn {
    pub(crate) speaker: Speaker,
    pub(crate) at: Option<Time>,
    /// The model, its tokens, and what they cost.
    pub(crate) detail: String,
    pub(crate) blocks: Vec<Block>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    System,
    /// The program that ran the agent, in the user's name.
    Context,
    User,
    Assistant,
    Tool,
    Summary,
}

impl Speaker {
    /// The speaker's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::Context => "Context",
            Self::User => "User",
            Self::Assistant => "Assistant",
            Self::Tool => "Tool",
            Self::Summary => "Summary of earlier messages",
        }
    }

    /// One word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Context => "context",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Summary => "summary",
        }
    }
}

/// A part of a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Block {
    /// What is said, perhaps with marks of Markdown in it.
    Text(String),
    /// What is said aside, folded away under a title.
    Aside(&'static str, String),
    /// A command that the user ran themselves.
    Command(Command),
    /// A picture.
    Picture(Picture),
    /// A tool's call and its result.
    Call(Call),
}

/// A command that the user ran themselves, or what it wrote.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Command {
    /// The command, as they typed it.
    pub(crate) typed: Option<String>,
    /// What it wrote.
    pub(crate) output: String,
    /// Why it failed, if it did.
    pub(crate) failed: Option<String>,
}

/// A picture.
#[derive(Debug, PartialEq)]
pub(crate) struct Picture {
    pub(crate) media_type: String,
    /// Its bytes in base64, if they are a picture of a kind that pages can show.
    pub(crate) base64: Option<String>,
}

/// A tool's call and its result.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    /// The front of its first argument.
    pub(crate) gist: Option<String>,
    /// What it changes in files, if its arguments say so.
    pub(crate) edits: Vec<Edit>,
    /// Its arguments, but for those that the edits tell.
    pub(crate) arguments: Option<String>,
    pub(crate) result: Option<Answer>,
}

/// A call's result.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) failed: bool,
    pub(crate) pictures: Vec<Picture>,
}

impl Answer {
    /// What stands above it.
    pub(crate) const fn title(&self) -> &'static str {
        if self.failed { "Failed" } else { "Result" }
    }
}

impl Call {
    /// Did it fail?
    pub(crate) fn failed(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.failed)
    }

    /// What is shown of it while it is folded.
    pub(crate) fn summary(&self) -> String {
        let failed = if self.failed() { " (failed)" } else { "" };
        match &self.gist {
            Some(gist) => format!("{} — {gist}{failed}", self.tool),
            None => format!("{}{failed}", self.tool),
        }
    }
}

impl Picture {
    /// The picture as an address that needs no request.
    pub(crate) fn data_uri(&self) -> Option<String> {
        let base64 = self.base64.as_ref()?;
        Some(format!("data:{};base64,{base64}", self.media_type))
    }

    /// What is said in its place where it cannot be shown.
    pub(crate) fn stand_in(&self) -> String {
        format!("[picture: {}]", self.media_type)
    }
}

/// What a node came to.
#[derive(Debug, PartialEq)]
pub(crate) struct NodeResult {
    pub(crate) key: String,
    /// How it stands, in a word.
    pub(crate) state: &'static str,
    pub(crate) text: String,
}

/// Things with a name.
#[derive(Debug, PartialEq)]
pub(crate) struct List {
    pub(crate) title: &'static str,
    /// Names, and what there is to say of each.
    pub(crate) items: Vec<(String, String)>,
}

/// A moment as people read it, to the second.
pub(crate) fn clock(at: Time) -> String {
    let text = at.to_string();
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    format!("{day} {} UTC", time.get(..8).unwrap_or(time.trim_end_matches('Z')))
}
