use stepwell::model::Scope;
use stepwell_files::rewind::Done;
use stepwell_runtime::command::{MoveCommand, MoveOutcome, Reply, RewindTo, SessionCommand};
use stepwell_terminal::note;
use stepwell_terminal::reply::words;
use stepwell_terminal::wording::POINT_FORMS;

use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Result};
use crate::reach::Reach;

/// Moves a session back: what the model is shown, and the files that it changed.
///
/// A file that someone else changed since is in the way, unless --force overwrites it. What
/// is overwritten is kept first, so that --undo brings all of it back.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Where to: a seq, a checkpoint's name, phase:NAME, or -N for N steps back. Without it, to what you
    /// said last: all that was done about it is taken back.
    #[arg(long, value_name = POINT_FORMS, allow_hyphen_values = true)]
    to: Option<String>,
    /// Undoes the last rewind; typed again, the one before it.
    #[arg(long, conflicts_with_all = ["to", "files", "chat", "both", "redo"])]
    undo: bool,
    /// Undoes the last --undo.
    #[arg(long, conflicts_with_all = ["to", "files", "chat", "both"])]
    redo: bool,
    /// Finishes a rewind that was cut off; files that someone else changed since stay as they
    /// are.
    #[arg(long, conflicts_with_all = ["to", "files", "chat", "both", "undo", "redo", "force", "dry_run"])]
    finish: bool,
    /// Moves files only.
    #[arg(long, conflicts_with_all = ["chat", "both"])]
    files: bool,
    /// Moves what the model is shown only, with tasks, phase and goal.
    #[arg(long, conflicts_with = "both")]
    chat: bool,
    /// Moves both; so does leaving it out.
    #[arg(long)]
    both: bool,
    /// Shows what would be done, and does nothing.
    #[arg(long)]
    dry_run: bool,
    /// Overwrites files that someone else changed; with --undo or --redo, also sets aside work
    /// that was done since.
    #[arg(long)]
    force: bool,
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        Reach::Erases.unless_dry(self.dry_run)
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.finish {
        return app.do_to(&args.session, SessionCommand::FinishRewind);
    }
    let wanted = args.wanted();
    let mut reply = app.of_session(&args.session, SessionCommand::Rewind(wanted.clone()))?;
    if is_in_the_way(&reply) && app.terminal.can_ask {
        words(&reply, &app.style()).notes.into_iter().for_each(note);
        Consent::default().ask(app.terminal, "Overwrite them all the same?", Unasked::Refuse)?;
        let forced = MoveCommand { force: true, ..wanted };
        reply = app.of_session(&args.session, SessionCommand::Rewind(forced))?;
    }
    app.answer(&reply)
}

/// Are files in the way that someone else changed since?
fn is_in_the_way(reply: &Reply) -> bool {
    match reply {
        Reply::Rewind(moved) => match &moved.outcome {
            MoveOutcome::Tried(Done::Refused(preview)) => !preview.plan.conflicts.is_empty(),
            _ => false,
        },
        _ => false,
    }
}

impl Args {
    fn wanted(&self) -> MoveCommand {
        let to = match (self.undo, self.redo, &self.to) {
            (true, ..) => RewindTo::Undo,
            (_, true, _) => RewindTo::Redo,
            (.., Some(point)) => RewindTo::Point(point.clone()),
            (.., None) => RewindTo::LastWords,
        };
        let scope = match (self.files, self.chat) {
            (true, _) => Scope::Files,
            (_, true) => Scope::Chat,
            _ => Scope::Both,
        };
        MoveCommand { to, scope, force: self.force, dry_run: self.dry_run }
    }
}
