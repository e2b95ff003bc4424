use std::path::PathBuf;

use stepwell_formats::{Conversion, Existing, Format};
use stepwell_runtime::command::ImportedPlace;
use stepwell_terminal::note;
use stepwell_terminal::reply::Verbosity;
use stepwell_terminal::text::visible;
use stepwell_terminal::wording::losses;
use stepwell_wire::Converted;

use super::export::{unwritten, wishes};
use super::import::report_import;
use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Turns sessions of one format into another, without a store.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file or folder to read.
    input: PathBuf,
    /// The file or folder to write. What is in a folder goes into one, and so does everything if
    /// this is a folder already.
    output: PathBuf,
    /// The format to write; stepwell formats lists them.
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// The format to read. Default: detected.
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// Overwrites what is there.
    #[arg(long)]
    force: bool,
    /// Writes no more of a long conversation than the other system keeps itself.
    #[arg(long)]
    truncate: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.to.writer().is_none() {
        return Err(unwritten(args.to));
    }
    if let Err(error) = args.input.symlink_metadata() {
        let message = format!("{}: {error}", args.input.display());
        return Err(Failure::new(Exit::Absent, message));
    }
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    let wishes = wishes(args.truncate, args.to)?;
    let how = Conversion { from: args.from, to: args.to, existing, wishes };
    let converted = stepwell_formats::convert(&args.input, &args.output, how)?;
    for (found, report) in converted.read {
        let place = ImportedPlace { path: found.path, format: found.format, report };
        report_import(&place, app, Verbosity::NotSessions)?;
    }
    for error in &converted.faults {
        note(format_args!("damaged: {error}"));
    }
    for (id, path, exported) in &converted.written {
        let sessions = exported.sessions;
        let file = path.display().to_string();
        let name = visible(&file);
        let (session, format) = (id.clone(), args.to.as_str().to_owned());
        let line = Converted { session, file, format, sessions };
        app.out.answer(&line, format_args!("Wrote {id} to {name}"))?;
        losses(args.to, &exported.losses).into_iter().for_each(note);
    }
    let none = converted.written.is_empty();
    for (id, error) in converted.unwritten {
        if let Failure::Said { message, hint, .. } = Failure::from(error) {
            note(format_args!("not written: {id}: {message}"));
            hint.iter().for_each(|hint| note(format_args!("hint: {hint}")));
        }
    }
    Ok(if none { Exit::Damaged } else { Exit::Done })
}
