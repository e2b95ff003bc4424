use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::housekeeping::tidy;
use crate::output::note;

/// Reads sessions in that export wrote as json or jsonl.
///
/// Sessions that are here already are left as they are; one of the same id that differs is
/// refused, and nothing is imported.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file; - is stdin.
    file: PathBuf,
}

#[derive(serde::Serialize)]
struct Line<'a> {
    session: &'a str,
    imported: &'static str,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let mut from: Box<dyn BufRead> = match args.file.to_str() {
        Some("-") => Box::new(BufReader::new(std::io::stdin())),
        _ => {
            let fault = |error| Failure::file(&args.file, "reading it", &error);
            let file = File::open(&args.file).map_err(fault)?;
            // A folder opens, and only fails to be read.
            if file.metadata().map_err(fault)?.is_dir() {
                let message = format!("{} is a folder", args.file.display());
                return Err(Failure::new(Exit::Failed, message));
            }
            Box::new(BufReader::new(file))
        }
    };
    let well = app.make()?;
    let imported = stepwell_formats::import(&well, &mut *from)
        .map_err(|error| Failure::from(error).at(&args.file))?;
    let groups = [
        ("Imported", "made", &imported.made),
        ("Completed", "completed", &imported.completed),
        ("Already here:", "already_there", &imported.already_there),
    ];
    for (says, word, ids) in groups {
        for id in ids {
            let line = Line { session: id.as_str(), imported: word };
            app.out.answer(&line, format_args!("{says} {id}"))?;
        }
    }
    for id in &imported.cut_short {
        note(format_args!("{id} was damaged where it was exported; it ends before the damage"));
    }
    tidy(app, &well)?;
    Ok(Exit::Done)
}
