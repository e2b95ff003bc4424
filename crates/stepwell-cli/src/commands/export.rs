use std::path::PathBuf;

use stepwell::sqlite::Access;
use stepwell_formats::{Existing, Format, Length, Outlet, Shape, Wishes};
use stepwell_runtime::command::{Export, Folder, Reply, SessionCommand};
use stepwell_terminal::note;
use stepwell_terminal::wording::losses;
use stepwell_workspace::{Estimates, doctor};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Exports a session.
///
/// json and jsonl are complete, with subagents' sessions and files, and read in again with
/// import; markdown and html are for people; the others are for other agents. What a format
/// cannot hold is named. stepwell formats lists them all.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The format. Default: by the file's name, else json.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// The file or folder to write; without one, or with -, stdout.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Overwrites what is there.
    #[arg(long, requires = "output")]
    force: bool,
    /// Writes no more of a long conversation than the other system keeps itself.
    #[arg(long)]
    truncate: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let output = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let named = output.and_then(|path| path.extension()?.to_str()?.parse().ok());
    let format = args.format.or(named).unwrap_or(Format::JSON);
    let wishes = wishes(args.truncate, format)?;
    let Some(path) = output else { return to_stdout(args, format, wishes, app) };
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    let (path, folder, length) = (path.clone(), Folder::Process, wishes.length);
    let export = Export { format, path, folder, existing, length };
    let reply = app.of_session(&args.session, SessionCommand::Export(export))?;
    let done = app.answer(&reply)?;
    match reply {
        Reply::Exported(exported) if !exported.written.damaged.is_empty() => Ok(Exit::Damaged),
        _ => Ok(done),
    }
}

fn to_stdout(args: &Args, format: Format, wishes: Wishes, app: &mut App) -> Result<Exit> {
    let Some(writer) = format.writer() else { return Err(unwritten(format)) };
    let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
    if [Format::MARKDOWN, Format::HTML].contains(&format) {
        app.out.refuse_json()?;
    }
    if writer.shape() == Shape::Folder {
        let message = format!("{format} is a folder, which does not go to stdout");
        return Err(Failure::new(Exit::Usage, message).hint("add -o FOLDER"));
    }
    let head = well.info(&id)?.head;
    let wishes =
        Wishes { estimate: Estimates::new(&app.workspace).of(&head, &head.spent), ..wishes };
    let written = writer.write(&well, &id, &mut Outlet::stream(app.out.raw()).wishing(wishes))?;
    losses(format, &written.losses).into_iter().for_each(note);
    for (id, damage) in &written.damaged {
        doctor::note_damage(&app.workspace, id);
        note(format_args!("{id} is damaged at seq {}; what lies before was written", damage.seq));
    }
    Ok(if written.damaged.is_empty() { Exit::Done } else { Exit::Damaged })
}

/// What was typed, as a wish.
pub(super) fn wishes(truncate: bool, to: Format) -> Result<Wishes> {
    if truncate && !to.shortens() {
        let message = format!("{to} keeps whole conversations: there is nothing to truncate");
        return Err(Failure::new(Exit::Usage, message).hint("--truncate is for architect"));
    }
    let length = if truncate { Length::AsThere } else { Length::Whole };
    Ok(Wishes { length, ..Wishes::default() })
}

/// The failure to write a format that is only read.
pub(super) fn unwritten(format: Format) -> Failure {
    let message = format!("{format} is read, and not written");
    Failure::new(Exit::Usage, message).hint("stepwell formats lists what is written")
}
