use stepwell::sqlite::Access;
use stepwell::{Seq, SessionId, Stepwell};
use stepwell_terminal::events::gist;
use stepwell_terminal::note;
use stepwell_wire::MessagePin;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Result};

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
    let (well, id) = app.workspace.open_session(&args.session, Access::Write)?;
    let seq = Seq::new(args.seq);
    let pinned = well.pin_message(&id, seq)?;
    answer(&well, &id, seq, &format!("is pinned: {}", gist(&pinned.message)), app)?;
    if !pinned.is_shown {
        note(format_args!(
            "It is not shown now: it was compacted or rewound. stepwell compact {id} --undo takes \
             the last compaction back."
        ));
    }
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

pub(crate) fn unpin(args: &UnpinArgs, app: &mut App) -> Result<Exit> {
    let (well, id) = app.workspace.open_session(&args.session, Access::Write)?;
    let seq = Seq::new(args.seq);
    well.unpin_message(&id, seq)?;
    answer(&well, &id, seq, "is not pinned", app)?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

fn answer(well: &Stepwell, id: &SessionId, seq: Seq, says: &str, app: &mut App) -> Result<()> {
    let pins = well.pins(id)?;
    let pinned = pins.contains(seq);
    let line = app.cut(&format!("{id}: message {seq} {says}"));
    let pins = pins.iter().collect();
    app.out.answer(&MessagePin { id: id.clone(), seq, pinned, pins }, line)
}
