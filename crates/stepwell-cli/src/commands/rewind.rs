use std::path::PathBuf;

use serde::Serialize;
use stepwell::{Access, FileChanged, FileState, Head, Kind, Scope, Seq, SessionId};
use stepwell_agent::files::history::History;
use stepwell_agent::files::plan::{Others, Plan, Remark};
use stepwell_agent::files::rewind::{self, Asked, Done};
use stepwell_agent::files::site::Site;
use stepwell_agent::redact::Redactor;
use stepwell_agent::tool::Place;

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::files::{let_go, limits, place, settle};
use crate::housekeeping::tidy;
use crate::output::{Style, note};
use crate::point::{FORMS, point};
use crate::text::{count, one_line};
use crate::wire::word;

/// Moves a session back: what the model is shown, and the files that it changed.
///
/// A file that someone else changed since is in the way, unless --force overwrites it. What
/// is overwritten is kept first, so that --undo brings all of it back.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, its label, or @last.
    session: String,
    /// Where to: a seq, a checkpoint's name, or -N for N steps back (default: -1).
    #[arg(long, value_name = FORMS, allow_hyphen_values = true)]
    to: Option<String>,
    /// Takes the last rewind back.
    #[arg(long, conflicts_with_all = ["to", "files", "chat", "both"])]
    undo: bool,
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
    /// Overwrites files that someone else changed.
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    to: Seq,
    scope: &'a str,
    /// The rewind that was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    undone: Option<Seq>,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<Seq>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<&'a str>,
    files: Vec<Moved<'a>>,
    left: &'a [Remark],
    conflicts: &'a [Remark],
}

#[derive(Serialize)]
struct Moved<'a> {
    path: &'a str,
    action: &'static str,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let access = if args.dry_run { Access::Read } else { Access::Write };
    let (well, id) = app.session(&args.session, access)?;
    if args.dry_run {
        let asked = asked(args, &well, &id)?;
        let plan = plan(&well, &id, &asked, app)?;
        say(&id, &asked, &plan, None, app)?;
        return Ok(Exit::Done);
    }
    let mut session = well.hold(&id)?;
    settle(&mut session, app)?;
    let asked = asked(args, &well, &id)?;
    let place = workspace(&asked, &session.standing()?.head, app)?;
    let redactor = Redactor::new([]);
    let site = Site { place: &place, redactor: &redactor, max_file: limits(app).max_file };
    match rewind::rewind(&mut session, &site, &asked, &mut |_| {})? {
        Done::Refused(plan) => Err(refused(&id, &plan)),
        Done::Rewound { seq, checkpoint, plan } => {
            say(&id, &asked, &plan, Some((seq, &checkpoint)), app)?;
            let_go(&well, &session, app)?;
            drop(session);
            tidy(app, &well)?;
            Ok(Exit::Done)
        }
    }
}

fn asked(args: &Args, well: &Well, id: &SessionId) -> Result<Asked> {
    let others = if args.force { Others::Overwritten } else { Others::Respected };
    if args.undo {
        let (facts, head) = (well.store().facts(id, &rewind::MOVES)?, well.standing(id)?.head.seq);
        return rewind::undoing(&facts, head, others).ok_or_else(|| {
            Failure::new(Exit::Failed, format_args!("{id} has no rewind to take back"))
                .hint(format_args!("stepwell show {id} --events shows what it did"))
        });
    }
    let scope = match (args.files, args.chat) {
        (true, _) => Scope::Files,
        (_, true) => Scope::Chat,
        _ => Scope::Both,
    };
    let to = point(well, id, args.to.as_deref().unwrap_or("-1"))?;
    Ok(Asked { to, scope, undoes: None, others })
}

/// The folder whose files are moved. A chat can be moved back where there is none.
fn workspace(asked: &Asked, head: &Head, app: &App) -> Result<Place> {
    match asked.scope.moves_files() {
        true => place(head, app),
        false => Ok(Place::new(PathBuf::new())),
    }
}

fn plan(well: &Well, id: &SessionId, asked: &Asked, app: &App) -> Result<Plan> {
    let place = workspace(asked, &well.standing(id)?.head, app)?;
    let redactor = Redactor::new([]);
    let site = Site { place: &place, redactor: &redactor, max_file: limits(app).max_file };
    Ok(rewind::preview(&History::of(well.store().facts(id, &[Kind::File])?), asked, &site))
}

fn refused(id: &SessionId, plan: &Plan) -> Failure {
    for conflict in &plan.conflicts {
        note(format_args!("conflict {}: {}", one_line(&conflict.path), conflict.why));
    }
    let many = count(plan.conflicts.len(), "file");
    let message = format!("{many} that {id} changed, someone else changed since; nothing was done");
    Failure::new(Exit::Failed, message)
        .hint("add --force to overwrite them (--undo brings them back), or --chat to leave files")
}

/// Says what was done, or would be.
fn say(
    id: &SessionId,
    asked: &Asked,
    plan: &Plan,
    done: Option<(Seq, &String)>,
    app: &mut App,
) -> Result<()> {
    let scope = word(asked.scope);
    if app.out.is_json() {
        let answer = Answer {
            id: id.as_str(),
            to: asked.to,
            scope: &scope,
            undone: asked.undoes,
            done: done.is_some(),
            seq: done.map(|(seq, _)| seq),
            checkpoint: done.map(|(_, name)| name.as_str()),
            files: plan
                .moves
                .iter()
                .map(|it| Moved { path: &it.path, action: action(it) })
                .collect(),
            left: &plan.left,
            conflicts: &plan.conflicts,
        };
        return app.out.object(&answer);
    }
    let what = match asked.scope {
        Scope::Chat => "the chat",
        Scope::Files => "files",
        Scope::Both => "chat and files",
    };
    let goal = match asked.undoes {
        Some(of) => format!("the rewind at seq {of} is taken back"),
        None => format!("back to seq {}", asked.to),
    };
    let would = if done.is_some() { "" } else { " (not done: --dry-run)" };
    app.out.line(format_args!("{id}: {goal}, {what}{would}"))?;
    let paint = app.out.paint;
    for change in &plan.moves {
        let word = paint.paint(Style::Green, &format!("{:<8}", action(change)));
        app.out.line(format_args!("  {word} {}", one_line(&change.path)))?;
    }
    let remarks = [(Style::Yellow, "left", &plan.left), (Style::Red, "conflict", &plan.conflicts)];
    for (style, word, remarks) in remarks {
        for Remark { path, why } in remarks {
            let word = paint.paint(style, &format!("{word:<8}"));
            app.out.line(format_args!("  {word} {}: {}", one_line(path), one_line(why)))?;
        }
    }
    if done.is_some() && asked.undoes.is_none() {
        let goes_on = match asked.scope.moves_view() {
            true => format!("stepwell resume {id} goes on from there; "),
            false => String::new(),
        };
        note(format_args!("{goes_on}stepwell rewind {id} --undo takes it back"));
    }
    Ok(())
}

/// What is done to a file.
fn action(change: &FileChanged) -> &'static str {
    match (&change.before, &change.after) {
        (_, FileState::Absent) => "remove",
        (FileState::File { blob: now, .. }, FileState::File { blob: then, .. }) if now == then => {
            "mode"
        }
        _ => "restore",
    }
}
