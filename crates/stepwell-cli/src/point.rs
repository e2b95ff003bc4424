//! Points of a session, as people name them: a seq, a checkpoint, so many steps back.

use stepwell::{Event, Kind, Lane, Order, Role, Seq, SessionId, Span, Timeline};

use crate::app::Well;
use crate::failure::{Exit, Failure, Result};
use crate::text::{count, one_line};

/// How points are written, for help and errors.
pub(crate) const FORMS: &str = "SEQ|CHECKPOINT|-N";

/// The seq that a text means: a checkpoint's name (the latest of that name), a seq, or `-N`
/// for N steps back.
pub(crate) fn point(well: &Well, id: &SessionId, text: &str) -> Result<Seq> {
    let last = well.standing(id)?.head.seq;
    let checkpoints = well.store().facts(id, &[Kind::Checkpoint])?;
    let named = checkpoints.iter().rev().find(
        |fact| matches!(&fact.event, Event::Checkpoint(checkpoint) if checkpoint.name == text),
    );
    if let Some(checkpoint) = named {
        return Ok(checkpoint.seq);
    }
    if let Some(steps) = text.strip_prefix('-').and_then(|steps| steps.parse().ok()) {
        return back(well, id, steps, last);
    }
    match text.parse() {
        Ok(n) if n >= 1 && n <= last.get() => Ok(Seq::new(n)),
        Ok(n) => Err(Failure::new(
            Exit::Failed,
            format_args!("{id} has the events 1 to {last}, not {n}"),
        )),
        Err(_) => {
            let message = format!("{id} has no checkpoint {text:?}");
            let names: Vec<_> = checkpoints
                .iter()
                .filter_map(|fact| fact.event.key().map(|key| one_line(&key)))
                .collect();
            Err(Failure::new(Exit::Failed, message).hint(match names.is_empty() {
                true => format!("stepwell checkpoint {id} NAME makes one"),
                false => format!("it has {}", names.join(", ")),
            }))
        }
    }
}

/// Just before the Nth of the main agent's last answers that count.
fn back(well: &Well, id: &SessionId, steps: usize, last: Seq) -> Result<Seq> {
    /// How many events are read at a time.
    const PAGE: usize = 1_000;
    if steps == 0 {
        return Ok(last);
    }
    let moves = well.store().facts(id, &[Kind::Rewound, Kind::Undone])?;
    let timeline = Timeline::at(last, moves.iter());
    let (mut found, mut span) = (0, Span::last(PAGE));
    let mut answer: Option<Seq> = None;
    loop {
        let slice = well.store().events(id, span)?;
        let damage = slice.damage.clone();
        let Some(oldest) = slice.events.last().map(|event| event.seq) else { break };
        for event in slice.events.iter().filter(|event| timeline.contains(event.seq)) {
            // The event that counts before the answer is the next one that is met.
            if answer.is_some() {
                return Ok(event.seq);
            }
            let Event::Message(message) = &event.event else { continue };
            if message.role == Role::Assistant && message.lane == Lane::main() {
                found += 1;
                answer = (found == steps).then_some(event.seq);
            }
        }
        if let Some(damage) = damage {
            return Err(damage.into_error(id).into());
        }
        if oldest == Seq::FIRST {
            break;
        }
        span = Span { to: oldest.prev(), order: Order::Newest, ..Span::last(PAGE) };
    }
    let message = format!("{id} has {}, not {steps}", count(found, "step"));
    Err(Failure::new(Exit::Failed, message).hint(format_args!("stepwell show {id} --events")))
}
