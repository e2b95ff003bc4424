//! Pieces of a working run that no log contains: the lines of its private socket and of the HTTP
//! stream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::{Lane, Seq, SessionId};

/// A piece of a working run. It is neither recorded nor redacted, and useless later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LivePiece {
    /// The session that it belongs to: the run's, or that of one of its subagents.
    pub session: SessionId,
    /// The conversation: `main`, or the lane of a flow's node.
    pub lane: Lane,
    /// The last event recorded before it. A piece is stale once the log has a later answer of the
    /// same lane, because that answer contains it.
    pub after: Seq,
    /// The piece.
    #[serde(flatten)]
    pub kind: LivePieceKind,
}

/// The kind of a live piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LivePieceKind {
    /// The current answer so far, for a client that joins in the middle.
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
    /// The current answer is void: it was interrupted and is requested again.
    Void,
    /// The answer is complete and recorded.
    Recorded {
        /// The event of the answer.
        seq: Seq,
    },
    /// A tool still runs.
    Output {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// How long it has been running, in milliseconds.
        ran_ms: u64,
        /// The last lines of its output.
        tail: String,
    },
    /// The model has not begun its answer.
    Waiting {
        /// How long it has been waiting, in milliseconds.
        waited_ms: u64,
    },
}
