use stepwell::log::Redactor;
use stepwell::model::Scope;
use stepwell::sqlite::Access;
use stepwell::{Seq, SessionId, SessionInfo, Stepwell};
use stepwell_files::plan::Others;
use stepwell_files::rewind::{self, Done, Foreign};
use stepwell_files::rewind_history::{Asked, Direction};
use stepwell_runtime::detached::{DetachedRewind, RewindTo, rewind_answer, rewind_asked};
use stepwell_runtime::files::{Recorders, finish_rewind, root, site};
use stepwell_terminal::note;
use stepwell_terminal::rewind::{Move, cut_off};
use stepwell_terminal::wording::{POINT_FORMS, tell_of_half};
use stepwell_wire::UnfinishedRewind;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Failure, Result};
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
    let access = if args.dry_run { Access::Read } else { Access::Write };
    let (well, id) = app.workspace.open_session(&args.session, access)?;
    let way = if args.undo { Direction::Forth } else { Direction::Back };
    if args.dry_run {
        let info = well.info(&id)?;
        if info.head.rewinding.is_some() {
            return unfinished(&well, &info, app);
        }
        let asked = asked(args, &well, &id)?;
        let preview = app.runtime().preview_rewind(&id, &asked)?;
        let it = Move { id: &id, asked: &asked, head: &info.head, way, preview: &preview };
        say(&it, None, app)?;
        if preview.is_refused(&asked) && !app.out.is_json() {
            note("It would be refused; --force does it all the same.");
        }
        return Ok(Exit::Done);
    }
    let mut session = well.lock(&id)?;
    if args.finish {
        if !finish_rewind(&mut session, Foreign::Left, &app.runtime())? {
            note(format_args!("No rewind of {id} was cut off."));
        }
        return Ok(Exit::Done);
    }
    finish_rewind(&mut session, Foreign::Refused, &app.runtime())?;
    let mut asked = asked(args, &well, &id)?;
    let head = session.info()?.head;
    let mut done = app.runtime().rewind_held(&mut session, &asked)?;
    if let Done::Refused(preview) = &done
        && !preview.plan.conflicts.is_empty()
        && app.terminal.can_ask
    {
        let it = Move { id: &id, asked: &asked, head: &head, way, preview };
        it.refusal().0.into_iter().for_each(note);
        Consent::default().ask(app.terminal, "Overwrite them all the same?", Unasked::Refuse)?;
        asked.others = Others::Overwritten;
        done = app.runtime().rewind_held(&mut session, &asked)?;
    }
    match done {
        Done::Refused(preview) => {
            let it = Move { id: &id, asked: &asked, head: &head, way, preview: &preview };
            let (lines, why) = it.refusal();
            lines.into_iter().for_each(note);
            Err(Failure::explained(why, Exit::Failed))
        }
        Done::Rewound { seq, checkpoint, preview } => {
            let it = Move { id: &id, asked: &asked, head: &head, way, preview: &preview };
            say(&it, Some((seq, &checkpoint)), app)?;
            if !app.out.is_json() {
                note(it.hint());
            }
            drop(session);
            tidy(&app.workspace, &well);
            Ok(Exit::Done)
        }
    }
}

/// Says what was done, or would be: the event that ended it and the checkpoint before it say that
/// it was.
fn say(it: &Move<'_>, done: Option<(Seq, &str)>, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.object(&rewind_answer(it.id, it.asked, it.preview, done));
    }
    let lines = it.lines(done.is_some(), app.out.paint);
    lines.into_iter().try_for_each(|line| app.out.line(line))
}

/// Says what is left to do of a rewind that was cut off: another one comes only after it.
fn unfinished(well: &Stepwell, info: &SessionInfo, app: &mut App) -> Result<Exit> {
    if info.held.is_some() {
        info.refuse_half_rewound()?;
    }
    tell_of_half(info);
    let (root, redactor) = (root(&info.head, &app.workspace)?, Redactor::new([]));
    let id = &info.head.id;
    let whose = Recorders::of(well, id)?;
    let site = site(&root, &redactor, &whose, &app.workspace);
    if let Some(half) = rewind::cut_off(&**well.store(), id, &site)? {
        match app.out.is_json() {
            true => app.out.object(&UnfinishedRewind {
                id: id.clone(),
                to: half.asked.to,
                scope: half.asked.scope,
                cut_off: half.began,
                done: false,
                files: half.moves.iter().map(Into::into).collect(),
                left: half.left.clone(),
            })?,
            false => {
                let lines = cut_off(id, &half, app.out.paint);
                lines.into_iter().try_for_each(|line| app.out.line(line))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn asked(args: &Args, well: &Stepwell, id: &SessionId) -> Result<Asked> {
    let to = match (args.undo, args.redo, &args.to) {
        (true, ..) => RewindTo::Undo,
        (_, true, _) => RewindTo::Redo,
        (.., Some(point)) => RewindTo::Point(point.clone()),
        (.., None) => RewindTo::LastWords,
    };
    let scope = match (args.files, args.chat) {
        (true, _) => Scope::Files,
        (_, true) => Scope::Chat,
        _ => Scope::Both,
    };
    let (session, force, dry_run) = (id.clone(), args.force, args.dry_run);
    let request = DetachedRewind { session, to, scope, force, dry_run };
    Ok(rewind_asked(well, &request)?)
}
