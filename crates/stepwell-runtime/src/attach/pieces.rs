//! What a model elsewhere says, told while it speaks, in order with its log.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stepwell::store::Span;
use stepwell::{Lane, Recorded, Seq, SessionId, Stepwell};
use stepwell_agent::provider::Delta;
use stepwell_agent::run::RunEvent;
use stepwell_wire::{LivePiece, LivePieceKind};

use crate::handle::Listeners;
use crate::live::InOrder;

/// Tells the pieces and the events of an attached session.
pub(super) struct Pieces {
    session: SessionId,
    well: Stepwell,
    order: Mutex<InOrder>,
    to: Arc<Listeners>,
}

impl Pieces {
    /// For a session whose events are told behind a seq.
    pub(super) fn new(session: SessionId, well: Stepwell, last: Seq, to: Arc<Listeners>) -> Self {
        let order = Mutex::new(InOrder::new(session.clone(), last));
        Self { session, well, order, to }
    }

    fn order(&self) -> MutexGuard<'_, InOrder> {
        self.order.lock()
    }

    /// Tells a piece, when its time has come.
    pub(super) fn hear(&self, piece: LivePiece) {
        // Held while it is told, so that no event comes between.
        let mut order = self.order();
        for piece in order.hear(piece) {
            self.tell(piece);
        }
    }

    /// Tells an event: first what is missing of the answer that it holds, then what waited for it.
    pub(super) fn record(&self, event: Recorded) {
        let mut order = self.order();
        let redact = |text: &str| self.well.redactor().redact(text).into_owned();
        for piece in order.missing(&event, redact) {
            self.tell(piece);
        }
        let waited = order.told(&event);
        self.to.tell(RunEvent::Recorded(event));
        for piece in waited {
            self.tell(piece);
        }
    }

    fn tell(&self, piece: LivePiece) {
        let LivePiece { session, lane, kind, .. } = piece;
        let event = match kind {
            LivePieceKind::Text { text } => RunEvent::Delta(Delta::Text(text)),
            LivePieceKind::Thinking { text } => RunEvent::Delta(Delta::Thinking(text)),
            LivePieceKind::Void => RunEvent::Delta(Delta::Void),
            LivePieceKind::Output { call, tool, ran_ms, tail } => {
                RunEvent::ToolOutput { call, tool, ran: Duration::from_millis(ran_ms), tail }
            }
            LivePieceKind::Waiting { waited_ms } => {
                RunEvent::Waiting(Duration::from_millis(waited_ms))
            }
            LivePieceKind::Recorded { seq } => match self.read(&session, seq) {
                Some(event) => RunEvent::Recorded(event),
                None => return,
            },
            // It was turned into what was missed.
            LivePieceKind::SoFar { .. } => return,
        };
        let event = match lane == Lane::main() {
            true => event,
            // Whoever is not the runner knows nodes by their conversations.
            false => RunEvent::Within { node: lane.to_string(), lane, event: Box::new(event) },
        };
        self.to.tell(match session == self.session {
            true => event,
            false => RunEvent::Child { session, event: Box::new(event) },
        });
    }

    /// An answer of a subagent, whose log is not followed.
    fn read(&self, session: &SessionId, seq: Seq) -> Option<Recorded> {
        let slice = self.well.store().events(session, Span { from: seq, to: seq, ..Span::ALL });
        slice.ok()?.events.into_iter().next()
    }
}
