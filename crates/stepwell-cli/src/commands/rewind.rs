mod say;

use std::path::PathBuf;

use stepwell::{Access, Head, Scope, SessionId, SessionInfo};
use stepwell_agent::redact::Redactor;
use stepwell_files::plan::Others;
use stepwell_files::rewind::{self, Done, Foreign};
use stepwell_files::rewind_history::{self, Asked, Direction};
use stepwell_files::safe_path::Root;

use self::say::{Said, refused, say, say_cut_off};
use stepwell_workspace::housekeeping::tidy;

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::files::{root, settle, site, tell_of_half};
use crate::output::note;
use crate::point::FORMS;
use crate::runner;

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
    #[arg(long, value_name = FORMS, allow_hyphen_values = true)]
    to: Option<String>,
    /// Takes the last rewind back; typed again, the one before it.
    #[arg(long, conflicts_with_all = ["to", "files", "chat", "both", "redo"])]
    undo: bool,
    /// Takes the last --undo back.
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

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let access = if args.dry_run { Access::Read } else { Access::Write };
    let (well, id) = app.session(&args.session, access)?;
    let redactor = Redactor::new([]);
    let way = if args.undo { Direction::Forth } else { Direction::Back };
    if args.dry_run {
        let standing = well.info(&id)?;
        if standing.head.rewinding.is_some() {
            return unfinished(&well, &standing, app);
        }
        let asked = asked(args, &well, &id)?;
        let root = workspace(&asked, &standing.head, app)?;
        let preview = rewind::preview(&**well.store(), &id, &asked, &site(&root, &redactor, app))?;
        say(
            &Said {
                id: &id,
                asked: &asked,
                head: &standing.head,
                way,
                preview: &preview,
                done: None,
            },
            app,
        )?;
        return Ok(Exit::Done);
    }
    let mut session = well.lock(&id)?;
    if args.finish {
        if !settle(&mut session, Foreign::Left, &runner::runtime(app))? {
            note(format_args!("No rewind of {id} was cut off."));
        }
        return Ok(Exit::Done);
    }
    settle(&mut session, Foreign::Refused, &runner::runtime(app))?;
    let asked = asked(args, &well, &id)?;
    let head = session.info()?.head;
    match runner::runtime(app).rewind_held(&mut session, &asked)? {
        Done::Refused(preview) => Err(refused(&id, &asked, &preview)),
        Done::Rewound { seq, checkpoint, preview } => {
            let done = Some((seq, checkpoint.as_str()));
            say(&Said { id: &id, asked: &asked, head: &head, way, preview: &preview, done }, app)?;
            drop(session);
            tidy(app, &well);
            Ok(Exit::Done)
        }
    }
}

/// Says what is left to do of a rewind that was cut off: another one comes only after it.
fn unfinished(well: &Well, standing: &SessionInfo, app: &mut App) -> Result<Exit> {
    if standing.held.is_some() {
        standing.refuse_half_rewound()?;
    }
    tell_of_half(standing);
    let (root, redactor) = (root(&standing.head, app)?, Redactor::new([]));
    let id = &standing.head.id;
    if let Some(half) = rewind::cut_off(&**well.store(), id, &site(&root, &redactor, app))? {
        say_cut_off(id, &half, app)?;
    }
    Ok(Exit::Done)
}

fn asked(args: &Args, well: &Well, id: &SessionId) -> Result<Asked> {
    let others = if args.force { Others::Overwritten } else { Others::Respected };
    if args.undo || args.redo {
        let back = if args.undo { Direction::Back } else { Direction::Forth };
        let (facts, head) =
            (well.store().keyed_events(id, &rewind_history::MOVES)?, well.info(id)?.head.seq);
        return rewind_history::taking_back(&facts, head, back, others).ok_or_else(|| {
            let what = if args.undo { "rewind" } else { "--undo" };
            Failure::new(Exit::Failed, format_args!("{id} has no {what} to take back"))
                .hint(format_args!("stepwell show {id} --events shows what it did"))
        });
    }
    let scope = match (args.files, args.chat) {
        (true, _) => Scope::Files,
        (_, true) => Scope::Chat,
        _ => Scope::Both,
    };
    let to = match &args.to {
        Some(text) => well.point(id, text)?,
        None => well.last_words(id)?,
    };
    Ok(Asked { to, scope, undoes: None, others })
}

/// The folder whose files are moved. A chat can be moved back where there is none.
fn workspace(asked: &Asked, head: &Head, app: &App) -> Result<Root> {
    match asked.scope.moves_files() {
        true => Ok(root(head, app)?),
        false => Ok(Root::new(PathBuf::new())),
    }
}
