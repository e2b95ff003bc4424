//! Points of a session, as people name them: a seq, a checkpoint, so many steps back.

use stepwell::{Event, Kind, Lane, Order, Recorded, Role, Seq, SessionId, Span, Timeline};

use crate::app::Well;
use crate::failure::{Exit, Failure, Result};
use crate::text::{count, one_line};

/// How points are written, for help and errors.
pub(crate) const FORMS: &str = "SEQ|CHECKPOINT|-N";

/// Does a text mean a point by itself, as a seq or as steps back?
pub(crate) fn is_numbered(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What stands before a checkpoint's name that would mean something else by itself.
const NAMED: &str = "checkpoint:";

/// What stands before a phase's name.
const PHASE: &str = "phase:";

/// The seq that a text means: a seq, `-N` for N steps back, or a checkpoint's name (the latest of
/// that name). A number is never a name: earlier versions took such names, which
/// `checkpoint:NAME` means.
pub(crate) fn point(well: &Well, id: &SessionId, text: &str) -> Result<Seq> {
    let last = well.standing(id)?.head.seq;
    let checkpoints = well.store().facts(id, &[Kind::Checkpoint])?;
    let named = |name: &str| {
        let is_it =
            |fact: &&Recorded| matches!(&fact.event, Event::Checkpoint(it) if it.name == name);
        checkpoints.iter().rev().find(is_it).map(|fact| fact.seq)
    };
    let of_phase = || named(&format!("phase-{}", text.strip_prefix(PHASE)?));
    let by_prefix = || text.strip_prefix(NAMED).and_then(&named).or_else(of_phase);
    if !is_numbered(text)
        && let Some(seq) = named(text).or_else(by_prefix)
    {
        return Ok(seq);
    }
    let digits = |steps: &&str| steps.bytes().all(|byte| byte.is_ascii_digit());
    let steps = text.strip_prefix('-').filter(digits).and_then(|steps| steps.parse().ok());
    match steps {
        Some(0) => {
            let message = "-0 is no step back: steps are counted from 1, the last one";
            return Err(Failure::new(Exit::Usage, message));
        }
        Some(steps) => return back(well, id, steps),
        None => {}
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

/// What the user said last to the main agent, of what counts, if anything was done about it.
pub(crate) fn last_words(well: &Well, id: &SessionId) -> Result<Seq> {
    let mut done = false;
    let said = newest(well, id, |event| {
        let Event::Message(message) = &event.event else { return None };
        let ours = message.lane == Lane::main();
        done |= ours && message.role == Role::Assistant;
        (ours && message.role == Role::User).then_some(event.seq)
    })?;
    match said {
        Some(said) if done => Ok(said),
        Some(said) => {
            let message = format!("{id}: nothing was done since what you said last, at seq {said}");
            Err(Failure::new(Exit::Failed, message)
                .hint(format_args!("--to {FORMS} goes further back; stepwell show {id} --events")))
        }
        None => {
            let message = format!("{id}: nobody said anything to its agent");
            Err(Failure::new(Exit::Failed, message)
                .hint(format_args!("--to {FORMS}; stepwell show {id} --events")))
        }
    }
}

/// Just before the Nth of the main agent's last answers that count.
fn back(well: &Well, id: &SessionId, steps: usize) -> Result<Seq> {
    let (mut found, mut passed) = (0, false);
    let before = newest(well, id, |event| {
        // The event that counts before the answer is the next one that is met.
        if passed {
            return Some(event.seq);
        }
        if let Event::Message(message) = &event.event
            && message.role == Role::Assistant
            && message.lane == Lane::main()
        {
            found += 1;
            passed = found == steps;
        }
        None
    })?;
    before.ok_or_else(|| {
        let message = format!("{id} has {}, not {steps}", count(found, "step"));
        Failure::new(Exit::Failed, message).hint(format_args!("stepwell show {id} --events"))
    })
}

/// The first answer to a question about the events that count, from the newest to the oldest.
fn newest<T>(
    well: &Well,
    id: &SessionId,
    mut ask: impl FnMut(&Recorded) -> Option<T>,
) -> Result<Option<T>> {
    /// How many events are read at a time.
    const PAGE: usize = 1_000;
    let moves = well.store().facts(id, &[Kind::Rewound, Kind::Undone])?;
    let timeline = Timeline::at(well.standing(id)?.head.seq, moves.iter());
    let mut span = Span::last(PAGE);
    loop {
        let slice = well.store().events(id, span)?;
        let Some(oldest) = slice.events.last().map(|event| event.seq) else { break };
        let mut counts = slice.events.iter().filter(|event| timeline.contains(event.seq));
        if let Some(answer) = counts.find_map(&mut ask) {
            return Ok(Some(answer));
        }
        if let Some(damage) = slice.damage {
            return Err(damage.into_error(id).into());
        }
        if oldest == Seq::FIRST {
            break;
        }
        span = Span { to: oldest.prev(), order: Order::Newest, ..Span::last(PAGE) };
    }
    Ok(None)
}
