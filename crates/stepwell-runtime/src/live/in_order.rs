//! Pieces and events in one order: they come by two ways, and neither waits for the other.

use stepwell::model::{Part, Role};
use stepwell::{Event, Lane, Message, Recorded, Seq, SessionId};
use stepwell_agent::provider::NO_ANSWER;
use stepwell_wire::{LivePiece, LivePieceKind};

use super::answers::{Answer, Answers};

/// Puts the pieces that a [listener](super::listen()) hears in order with the log of the session.
///
/// A piece waits until the events before it were told, and is dropped if its answer was. So whoever
/// shows first the pieces and then the answer shows nothing twice, and nothing too soon.
#[derive(Debug)]
pub struct InOrder {
    session: SessionId,
    /// The last event that was told.
    told: Seq,
    answers: Answers,
    /// Pieces that came before the events that they follow.
    early: Vec<LivePiece>,
}

impl InOrder {
    /// For a session whose events were told up to a seq.
    #[must_use]
    pub fn new(session: SessionId, told: Seq) -> Self {
        Self { session, told, answers: Answers::default(), early: Vec::new() }
    }

    /// What is to be shown of a piece now. [`SoFar`](LivePieceKind::SoFar) becomes what was missed.
    pub fn hear(&mut self, piece: LivePiece) -> Vec<LivePiece> {
        if piece.session == self.session && piece.after > self.told {
            self.early.push(piece);
            return Vec::new();
        }
        self.release(piece)
    }

    /// An event was told: the pieces that waited for it.
    pub fn told(&mut self, event: &Recorded) -> Vec<LivePiece> {
        self.told = self.told.max(event.seq);
        if let Some(answer) = answer(event) {
            self.answers.of(&self.session, &answer.lane).record(event.seq);
        }
        let (due, early) =
            std::mem::take(&mut self.early).into_iter().partition(|it| it.after <= self.told);
        self.early = early;
        let due: Vec<LivePiece> = due;
        due.into_iter().flat_map(|piece| self.release(piece)).collect()
    }

    /// What is missing of an answer that is about to be told, if some of it was shown: its end may
    /// not have come yet. `redact` does what was done to the answer before it was recorded.
    pub fn missing(&mut self, event: &Recorded, redact: impl Fn(&str) -> String) -> Vec<LivePiece> {
        let Some(message) = answer(event) else { return Vec::new() };
        let (whole, seq) = (spoken(message), event.seq);
        let session = self.session.clone();
        let shown = self.answers.of(&session, &message.lane);
        if shown.text.is_empty() || shown.after >= seq || whole == NO_ANSWER {
            return Vec::new();
        }
        let seen = redact(&shown.text);
        let kinds = match whole.strip_prefix(&seen) {
            Some(rest) => more(rest, |text| LivePieceKind::Text { text }),
            None => vec![LivePieceKind::Void, LivePieceKind::Text { text: whole }],
        };
        pieces(&session, &message.lane, shown.after, kinds)
    }

    /// What came of each answer that is on its way, for whoever joins now.
    #[must_use]
    pub fn so_far(&self) -> Vec<LivePiece> {
        self.answers.so_far()
    }

    /// Takes in a piece whose time has come.
    fn release(&mut self, piece: LivePiece) -> Vec<LivePiece> {
        let is_own = piece.session == self.session;
        let answer = self.answers.of(&piece.session, &piece.lane);
        if answer.is_past(&piece) {
            return Vec::new();
        }
        match &piece.kind {
            // The log of the session itself says so.
            LivePieceKind::Recorded { .. } if is_own => return Vec::new(),
            LivePieceKind::SoFar { text, thinking } => {
                let kinds = missed(answer, text, thinking);
                answer.add(&piece);
                return pieces(&piece.session, &piece.lane, piece.after, kinds);
            }
            _ => answer.add(&piece),
        }
        vec![piece]
    }
}

/// What was missed of an answer.
fn missed(shown: &Answer, text: &str, thinking: &str) -> Vec<LivePieceKind> {
    let rest = |all: &str, shown: &str| all.strip_prefix(shown).map(str::to_owned);
    match (rest(text, &shown.text), rest(thinking, &shown.thinking)) {
        (Some(text), Some(thinking)) => {
            let mut kinds = more(&thinking, |text| LivePieceKind::Thinking { text });
            kinds.extend(more(&text, |text| LivePieceKind::Text { text }));
            kinds
        }
        // It is another answer: the one that was shown broke off while nobody listened.
        _ => {
            let mut kinds = vec![LivePieceKind::Void];
            kinds.extend(more(thinking, |text| LivePieceKind::Thinking { text }));
            kinds.extend(more(text, |text| LivePieceKind::Text { text }));
            kinds
        }
    }
}

fn more(text: &str, kind: impl Fn(String) -> LivePieceKind) -> Vec<LivePieceKind> {
    if text.is_empty() { Vec::new() } else { vec![kind(text.to_owned())] }
}

fn pieces(
    session: &SessionId,
    lane: &Lane,
    after: Seq,
    kinds: Vec<LivePieceKind>,
) -> Vec<LivePiece> {
    let piece = |kind| LivePiece { session: session.clone(), lane: lane.clone(), after, kind };
    kinds.into_iter().map(piece).collect()
}

/// The answer of a model that an event holds.
pub(super) fn answer(event: &Recorded) -> Option<&Message> {
    match &event.event {
        Event::Message(message) if message.role == Role::Assistant => Some(message),
        _ => None,
    }
}

/// The text of an answer as it streams: its parts, one behind the other.
fn spoken(message: &Message) -> String {
    message.parts.iter().filter_map(Part::as_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: fn(&str) -> String = str::to_owned;

    fn session() -> SessionId {
        "s-1".parse().unwrap()
    }

    fn piece(after: u64, kind: LivePieceKind) -> LivePiece {
        LivePiece { session: session(), lane: Lane::main(), after: Seq::new(after), kind }
    }

    fn text(after: u64, text: &str) -> LivePiece {
        piece(after, LivePieceKind::Text { text: text.to_owned() })
    }

    fn said(seq: u64, text: &str) -> Recorded {
        let event = Event::Message(Message::assistant(text));
        Recorded { seq: Seq::new(seq), at: stepwell::model::Time::EPOCH, id: None, event }
    }

    fn shown(pieces: &[LivePiece]) -> String {
        let part = |piece: &LivePiece| match &piece.kind {
            LivePieceKind::Text { text } => text.clone(),
            LivePieceKind::Void => "!".to_owned(),
            kind => format!("{kind:?}"),
        };
        pieces.iter().map(part).collect()
    }

    #[test]
    fn a_piece_waits_for_the_events_before_it() {
        let mut order = InOrder::new(session(), Seq::new(4));
        assert_eq!(shown(&order.hear(text(5, "Next"))), "");
        assert_eq!(shown(&order.hear(text(5, " one."))), "");
        assert_eq!(shown(&order.told(&said(5, "Before."))), "Next one.");
    }

    #[test]
    fn a_piece_of_an_answer_that_was_told_is_dropped() {
        let mut order = InOrder::new(session(), Seq::new(4));
        assert_eq!(shown(&order.hear(text(4, "Hel"))), "Hel");
        assert_eq!(shown(&order.missing(&said(5, "Hello."), PLAIN)), "lo.");
        assert_eq!(shown(&order.told(&said(5, "Hello."))), "");
        assert_eq!(shown(&order.hear(text(4, "lo."))), "");
        assert_eq!(shown(&order.hear(text(5, "Next."))), "Next.");
        assert_eq!(shown(&order.missing(&said(6, "Next."), PLAIN)), "");
    }

    #[test]
    fn an_answer_of_which_nothing_was_shown_misses_nothing() {
        let mut order = InOrder::new(session(), Seq::new(4));
        assert_eq!(shown(&order.missing(&said(5, "Hello."), PLAIN)), "");
    }

    #[test]
    fn what_was_redacted_before_it_was_recorded_is_not_shown_twice() {
        let mut order = InOrder::new(session(), Seq::new(4));
        let _ = order.hear(text(4, "The key is sk-1."));
        let redact = |text: &str| text.replace("sk-1", "[secret]");
        assert_eq!(shown(&order.missing(&said(5, "The key is [secret]."), redact)), "");
    }

    #[test]
    fn whoever_comes_back_in_the_middle_is_shown_what_they_missed() {
        let so_far = |text: &str| {
            let (text, thinking) = (text.to_owned(), String::new());
            piece(4, LivePieceKind::SoFar { text, thinking })
        };
        let mut order = InOrder::new(session(), Seq::new(4));
        assert_eq!(shown(&order.hear(so_far("Hel"))), "Hel");
        assert_eq!(shown(&order.hear(so_far("Hello"))), "lo");
        assert_eq!(shown(&order.hear(so_far("Well"))), "!Well");
        assert_eq!(
            shown(
                &order
                    .so_far()
                    .iter()
                    .flat_map(|it| {
                        let mut anew = InOrder::new(session(), Seq::new(4));
                        anew.hear(it.clone())
                    })
                    .collect::<Vec<_>>()
            ),
            "Well"
        );
    }
}
