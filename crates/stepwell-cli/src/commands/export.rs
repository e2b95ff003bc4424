use std::path::PathBuf;

use stepwell::sqlite::Access;
use stepwell_formats::{
    Destination, Existing, Exported, Format, Length, Outlet, Shape, Wishes, write_to,
};
use stepwell_terminal::note;
use stepwell_terminal::text::{count, visible};
use stepwell_workspace::Estimates;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::foreign::tell_losses;

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
    let (well, id) = app.session(&args.session, Access::Read)?;
    let output = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let named = output.and_then(|path| path.extension()?.to_str()?.parse().ok());
    let format = args.format.or(named).unwrap_or(Format::JSON);
    let Some(writer) = format.writer() else { return Err(unwritten(format)) };
    let head = well.info(&id)?.head;
    let estimate = Estimates::new(app).of(&head, &head.spent);
    let wishes = Wishes { estimate, ..wishes(args.truncate, format)? };
    let exported = match output {
        None => {
            if [Format::MARKDOWN, Format::HTML].contains(&format) {
                app.out.refuse_json()?;
            }
            if writer.shape() == Shape::Folder {
                let message = format!("{format} is a folder, which does not go to stdout");
                return Err(Failure::new(Exit::Usage, message).hint("add -o FOLDER"));
            }
            writer.write(&well, &id, &mut Outlet::stream(app.out.raw()).wishing(wishes))?
        }
        Some(path) => {
            let existing = if args.force { Existing::Replace } else { Existing::Keep };
            write_to(
                &Destination { wishes, ..Destination::new(path, existing) },
                writer,
                &well,
                &id,
            )?
        }
    };
    let Exported { sessions, events, damaged, losses } = exported;
    if let Some(path) = output {
        let file = path.display().to_string();
        let line = format!("Wrote {} to {}", count(sessions, "session"), visible(&file));
        let format = format.as_str().to_owned();
        let answer = stepwell_wire::Exported { file, format, sessions, events };
        app.out.answer(&answer, line)?;
    }
    tell_losses(format, &losses);
    for (id, damage) in &damaged {
        app.remember_damage(id);
        note(format_args!("{id} is damaged at seq {}; what lies before was written", damage.seq));
    }
    Ok(if damaged.is_empty() { Exit::Done } else { Exit::Damaged })
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
