//! A session as people read it: what is shown, in order, whatever it is written in.
//!
//! [`Document::of`] decides what is shown; the renderers only say how it looks. All texts
//! here are as they were recorded: escaping is the renderers' work.

mod arguments;
mod build;
mod passages;

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
    /// Where it breaks off, if it is damaged.
    pub(crate) broken: Option<String>,
    /// What else it left: files, checkpoints, artifacts.
    pub(crate) lists: Vec<List>,
}

/// What was said in one lane.
#[derive(Debug, PartialEq)]
pub(crate) struct Conversation {
    /// The lane's name, unless there is only the main one.
    pub(crate) lane: Option<String>,
    pub(crate) turns: Vec<Turn>,
}

/// One message.
#[derive(Debug, PartialEq)]
pub(crate) struct Turn {
    pub(crate) speaker: &'static str,
    pub(crate) blocks: Vec<Block>,
}

/// A part of a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Block {
    /// What is said.
    Text(Vec<Passage>),
    /// What is said aside, folded away under a title.
    Aside(&'static str, Vec<Passage>),
    /// A picture.
    Picture(Picture),
    /// A tool's call and its result, folded away.
    Call(Call),
}

/// A part of a text.
#[derive(Debug, PartialEq)]
pub(crate) enum Passage {
    /// Words, perhaps with marks of Markdown in them.
    Prose(String),
    /// Code, in a language or none.
    Code { language: String, text: String },
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
    pub(crate) tool: String,
    /// The front of its first argument.
    pub(crate) gist: Option<String>,
    pub(crate) arguments: String,
    pub(crate) result: Answer,
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
    /// What is shown of it while it is folded.
    pub(crate) fn summary(&self) -> String {
        let failed = if self.result.failed { " (failed)" } else { "" };
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

/// Things with a name.
#[derive(Debug, PartialEq)]
pub(crate) struct List {
    pub(crate) title: &'static str,
    /// Names, and what there is to say of each.
    pub(crate) items: Vec<(String, String)>,
}
