use std::collections::BTreeSet;

use stepwell::{Access, Edited, Event, Kind, Message, Pins, Seq, SessionId, Span, View};

use super::show::gist;
use stepwell_wire::MessagePin;
use stepwell_workspace::housekeeping::tidy;

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;

/// Keeps a message in the conversation, word for word, whatever is compacted.
///
/// A call stays with its results. stepwell show SESSION --view shows the seqs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The message's seq.
    seq: u64,
}

/// Lets compaction take a message again.
#[derive(Debug, clap::Args)]
pub(crate) struct UnpinArgs {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The message's seq.
    seq: u64,
}

pub(crate) fn pin(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Write)?;
    well.info(&id)?.refuse_half_rewound()?;
    let seq = Seq::new(args.seq);
    let message = message(&well, &id, seq)?;
    well.edit(&id, Edited { pin_messages: BTreeSet::from([seq]), ..Edited::default() })?;
    answer(&well, &id, seq, &format!("is pinned: {}", gist(&message)), app)?;
    let events = well.store().events(&id, Span::ALL)?.intact(&id)?;
    let view = View::of(&message.lane, events).messages;
    let is_shown =
        |shown: &stepwell::ViewMessage| shown.seq == seq || shown.answers.contains(&Some(seq));
    if !view.iter().any(is_shown) {
        note(format_args!(
            "It is not shown now: it was compacted or rewound. stepwell compact {id} --undo takes \
             the last compaction back."
        ));
    }
    tidy(app, &well);
    Ok(Exit::Done)
}

pub(crate) fn unpin(args: &UnpinArgs, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Write)?;
    well.info(&id)?.refuse_half_rewound()?;
    let seq = Seq::new(args.seq);
    message(&well, &id, seq)?;
    well.edit(&id, Edited { unpin_messages: BTreeSet::from([seq]), ..Edited::default() })?;
    answer(&well, &id, seq, "is not pinned", app)?;
    tidy(app, &well);
    Ok(Exit::Done)
}

fn answer(well: &Well, id: &SessionId, seq: Seq, says: &str, app: &mut App) -> Result<()> {
    let pins = Pins::of(&well.store().keyed_events(id, &[Kind::Edited])?);
    let pinned = pins.contains(seq);
    let pins = pins.iter().collect();
    let line = format!("{id}: message {seq} {says}");
    let line = app.cut(&line);
    app.out.answer(&MessagePin { id: id.clone(), seq, pinned, pins }, line)
}

/// The message at a seq, or what stands there instead.
fn message(well: &Well, id: &SessionId, seq: Seq) -> Result<Message> {
    let wrong = |why: String| {
        Err(Failure::new(Exit::Failed, why)
            .hint(format_args!("stepwell show {id} --view shows messages with their seqs")))
    };
    let last = well.info(id)?.head.seq;
    if seq < Seq::FIRST || seq > last {
        return wrong(format!("{id} has the events 1 to {last}, not {seq}"));
    }
    let events = well.store().events(id, Span { from: seq, to: seq, ..Span::ALL })?.intact(id)?;
    match events.into_iter().next().map(|event| event.event) {
        Some(Event::Message(message)) => Ok(message),
        Some(other) => wrong(format!("event {seq} of {id} is {}, not a message", other.kind())),
        None => wrong(format!("{id} has no event {seq}")),
    }
}
