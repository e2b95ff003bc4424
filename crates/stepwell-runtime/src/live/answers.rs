//! The answers that are on their way, put together from their pieces.

use std::collections::HashMap;

use stepwell::{Lane, Seq, SessionId};
use stepwell_wire::{LivePiece, LivePieceKind};

/// What is known of the answers of a run's conversations.
#[derive(Debug, Default)]
pub(super) struct Answers(HashMap<SessionId, HashMap<Lane, Answer>>);

/// The answer of a conversation that is on its way.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) thinking: String,
    /// The last event that was recorded before its newest piece.
    pub(super) after: Seq,
    /// Where the answer before it is on record.
    recorded: Seq,
}

impl Answer {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.thinking.clear();
    }

    /// The answer is on record.
    pub(super) fn record(&mut self, seq: Seq) {
        if seq > self.recorded {
            self.recorded = seq;
            self.clear();
        }
    }

    /// Does a piece belong to an answer that is on record?
    pub(super) fn is_past(&self, piece: &LivePiece) -> bool {
        self.recorded > piece.after
    }

    /// Adds a piece that is not past.
    pub(super) fn add(&mut self, piece: &LivePiece) {
        self.after = piece.after;
        match &piece.kind {
            LivePieceKind::SoFar { text, thinking } => {
                (self.text, self.thinking) = (text.clone(), thinking.clone());
            }
            LivePieceKind::Text { text } => self.text.push_str(text),
            LivePieceKind::Thinking { text } => self.thinking.push_str(text),
            LivePieceKind::Void => self.clear(),
            LivePieceKind::Recorded { seq } => self.record(*seq),
            LivePieceKind::Output { .. } | LivePieceKind::Waiting { .. } => {}
        }
    }
}

impl Answers {
    /// The answer that is on its way in a conversation.
    pub(super) fn of(&mut self, session: &SessionId, lane: &Lane) -> &mut Answer {
        // Looked up first: an entry would have the names copied for every piece.
        if !self.0.contains_key(session) {
            self.0.insert(session.clone(), HashMap::new());
        }
        let lanes = self.0.get_mut(session).expect("it was just put there");
        if !lanes.contains_key(lane) {
            lanes.insert(lane.clone(), Answer::default());
        }
        lanes.get_mut(lane).expect("it was just put there")
    }

    /// What came of each answer that has begun.
    pub(super) fn so_far(&self) -> Vec<LivePiece> {
        let all = self.0.iter().flat_map(|(session, lanes)| {
            lanes.iter().map(move |(lane, answer)| (session, lane, answer))
        });
        let begun = all.filter(|(.., it)| !it.text.is_empty() || !it.thinking.is_empty());
        let piece = |(session, lane, answer): (&SessionId, &Lane, &Answer)| LivePiece {
            session: session.clone(),
            lane: lane.clone(),
            after: answer.after,
            kind: LivePieceKind::SoFar {
                text: answer.text.clone(),
                thinking: answer.thinking.clone(),
            },
        };
        begun.map(piece).collect()
    }
}
