//! Which fields of each event a scrub may change. A new kind of event does not compile until it is
//! listed here.

use crate::model::Event;

impl Event {
    /// Fields of the body that hold JSON of any shape from the user: every name, text and number in
    /// them may be erased.
    #[must_use]
    pub fn user_fields(&self) -> &'static [&'static str] {
        match self {
            Self::Created(_) => &["flow.variables", "project.answers"],
            Self::Edited(_) | Self::Checkpoint(_) => &["metadata"],
            Self::WorkAsked(_) => &["change.checkpoint.metadata"],
            Self::Node(_) => &["output"],
            // An unknown event is the user's as a whole.
            Self::Unknown(_)
            | Self::Message(_)
            | Self::ToolStarted(_)
            | Self::ToolFinished(_)
            | Self::Step(_)
            | Self::Status(_)
            | Self::Phase(_)
            | Self::File(_)
            | Self::Gate(_)
            | Self::GateAnswered(_)
            | Self::Compacted(_)
            | Self::Rewinding(_)
            | Self::Rewound(_)
            | Self::Undone(_)
            | Self::Permission(_)
            | Self::Scrubbed(_)
            | Self::Artifact(_)
            | Self::Task(_)
            | Self::Question(_)
            | Self::Error(_)
            | Self::Settings(_)
            | Self::Said(_)
            | Self::StopAsked(_)
            | Self::Record(_)
            | Self::Foreign(_) => &[],
        }
    }

    /// Fields of the body that link records and hold no one's text. A scrub leaves them.
    #[must_use]
    pub fn unscrubbable_fields(&self) -> &'static [&'static str] {
        match self {
            Self::Created(_) => {
                &["id", "driver", "phases", "origin", "flow.hash", "source.started_at"]
            }
            Self::Message(_) => &["role", "author", "cost", "call.asked_at", "call.first_at"],
            Self::Compacted(_) => &["cost"],
            Self::ToolStarted(_) => {
                &["effect", "arguments", "targets.before", "targets.after", "child"]
            }
            Self::ToolFinished(_) => &["outcome"],
            Self::Status(_) => &["status", "reason"],
            Self::Phase(_) => &["from", "to"],
            Self::File(_) => &[
                "before.file",
                "after.file",
                "before.not_captured.digest",
                "after.not_captured.digest",
            ],
            Self::Node(_) => &["state"],
            Self::Gate(_) => &["deadline", "asker", "call.effect", "call.choices"],
            Self::GateAnswered(_) => &["answer.allow.scope"],
            Self::Checkpoint(_) => &["reason"],
            Self::Rewinding(_) => &["begun.to", "begun.scope", "begun.undoes", "dropped.of"],
            Self::Rewound(_) => &["to", "scope", "restored.phase"],
            Self::Undone(_) => &["rewind.of", "rewind.scope", "rewind.restored.phase"],
            Self::Scrubbed(_) => &["erased", "pruned", "hidden"],
            Self::Artifact(_) => &["digest"],
            Self::Task(_) => &["status"],
            Self::Edited(_) => &["budget", "elsewhere.cost"],
            Self::Foreign(_) => &["about"],
            Self::Settings(_) => &["mode"],
            Self::WorkAsked(_) => &["change.phase"],
            Self::Record(_) => &["system", "topic", "blobs"],
            Self::Step(_)
            | Self::Permission(_)
            | Self::Question(_)
            | Self::Error(_)
            | Self::Said(_)
            | Self::StopAsked(_)
            | Self::Unknown(_) => &[],
        }
    }
}
