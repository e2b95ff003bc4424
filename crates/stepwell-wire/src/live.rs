//! Pieces of a run as it goes, which no log has: lines of its private socket, and of the HTTP stream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::{Lane, Seq, SessionId};

/// A piece of a run as it goes. It is not recorded, not redacted, and worth nothing later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LivePiece {
    /// The session that it belongs to: the run's, or that of one of its subagents.
    pub session: SessionId,
    /// Whose conversation: `main`, or the lane of a flow's node.
    pub lane: Lane,
    /// The last event that was recorded before it. A piece is stale if an answer of the same lane
    /// is on record behind this event: the answer holds it.
    pub after: Seq,
    /// What came.
    #[serde(flatten)]
    pub kind: LivePieceKind,
}

/// What a live piece is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LivePieceKind {
    /// All that came of the present answer, for whoever joins in its middle.
    SoFar {
        /// Its text.
        text: String,
        /// Its visible reasoning.
        thinking: String,
    },
    /// More of an answer's text.
    Text {
        /// The piece.
        text: String,
    },
    /// More of an answer's visible reasoning.
    Thinking {
        /// The piece.
        text: String,
    },
    /// What came of the present answer is void: it broke off, and is asked for anew.
    Void,
    /// The answer is whole and on record.
    Recorded {
        /// The event that holds the answer.
        seq: Seq,
    },
    /// A tool still runs.
    Output {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// For how many milliseconds it has run.
        ran_ms: u64,
        /// The last lines of what it wrote.
        tail: String,
    },
    /// The model was asked, and nothing of its answer has come yet.
    Waiting {
        /// For how many milliseconds.
        waited_ms: u64,
    },
}
