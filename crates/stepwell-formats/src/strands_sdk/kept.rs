//! What is kept of a file with its words taken out, and where the file lies.

use stepwell::Lane;

use crate::json::fields::{Fields, push_field, quoted};
use crate::json::json_text::compact;

/// What is kept of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Where it lies, below the session's folder.
    pub(crate) file: String,
    /// The lane of the agent whose file it is.
    pub(crate) lane: Option<Lane>,
    /// The JSON in it.
    pub(crate) data: String,
}

impl Kept {
    /// A file that belongs to no lane, or is a message of one.
    pub(crate) fn new(file: impl Into<String>, raw: &str) -> Self {
        Self { file: file.into(), lane: None, data: compact(raw) }
    }

    /// The same, of an agent.
    pub(crate) fn of_lane(self, lane: &Lane) -> Self {
        Self { lane: Some(lane.clone()), ..self }
    }

    /// As it is recorded.
    pub(crate) fn to_json(&self) -> String {
        let mut json = String::from("{");
        push_field(&mut json, "file", &quoted(&self.file));
        if let Some(lane) = &self.lane {
            push_field(&mut json, "lane", &quoted(lane.as_str()));
        }
        push_field(&mut json, "data", &self.data);
        json.push('}');
        json
    }

    /// What was recorded.
    pub(crate) fn parse(json: &str) -> Option<Self> {
        let fields = Fields::parse(json).ok()?;
        Some(Self {
            file: fields.text("file")?.into_owned(),
            lane: fields.text("lane").and_then(|lane| lane.parse().ok()),
            data: fields.raw("data")?.to_owned(),
        })
    }
}
