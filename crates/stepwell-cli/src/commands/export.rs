use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use stepwell::Access;
use stepwell_formats::{Exported, Format};

use crate::app::{App, refuse_json};
use crate::config::beside;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::{count, visible};

/// Writes a session out.
///
/// json and jsonl are complete, with subagents' sessions and files, and read in again with
/// import; markdown and html are for people.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, its label, or @last.
    session: String,
    /// json, jsonl, markdown or html; else what the file's name says, else json.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// The file to write, in place of stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replaces a file that is there.
    #[arg(long, requires = "output")]
    force: bool,
}

#[derive(serde::Serialize)]
struct Answer<'a> {
    file: &'a Path,
    format: &'static str,
    sessions: usize,
    events: u64,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Read)?;
    let named = args.output.as_ref().and_then(|path| path.extension()?.to_str()?.parse().ok());
    let format = args.format.or(named).unwrap_or(Format::JSON);
    if args.output.is_none() && [Format::MARKDOWN, Format::HTML].contains(&format) {
        refuse_json(app)?;
    }
    let exported = match &args.output {
        None => stepwell_formats::export(&well, &id, format, app.out.raw())?,
        Some(path) => {
            if path.exists() && !args.force {
                let message = format!("{} exists already", path.display());
                return Err(Failure::new(Exit::Failed, message).hint("--force replaces it"));
            }
            // Under its name only when it is complete.
            let fault = |error| Failure::file(path, "writing it", &error);
            let draft = beside(path);
            let mut file = BufWriter::new(private(&draft).map_err(fault)?);
            let written = stepwell_formats::export(&well, &id, format, &mut file);
            let exported =
                written.map_err(|error| Failure::from(error).at(path)).and_then(|exported| {
                    file.flush().and_then(|()| file.get_ref().sync_all()).map_err(fault)?;
                    std::fs::rename(&draft, path).map_err(fault)?;
                    Ok(exported)
                });
            exported.inspect_err(|_| {
                // Half an export is of no use to anyone.
                let _ = std::fs::remove_file(&draft);
            })?
        }
    };
    let Exported { sessions, events, damaged, .. } = exported;
    if let Some(path) = &args.output {
        let answer = Answer { file: path, format: format.as_str(), sessions, events };
        let name = visible(&path.display().to_string());
        let line = format!("Wrote {} to {name}", count(sessions, "session"));
        app.out.answer(&answer, line)?;
    }
    for (id, damage) in &damaged {
        app.remember_damage(id);
        note(format_args!("{id} is damaged at seq {}; what lies before was written", damage.seq));
    }
    Ok(if damaged.is_empty() { Exit::Done } else { Exit::Damaged })
}

/// A new file that is the user's alone, as the store is.
fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)
}
