use std::fs;
use std::path::PathBuf;

use stepwell_terminal::text::{count, visible};
use stepwell_wire::ManualPages;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Prints the manual page, or writes all pages to a folder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder for a page of every command.
    #[arg(value_name = "DIR")]
    pages: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.pages.is_none() {
        app.out.refuse_json()?;
    }
    let Some(folder) = &args.pages else {
        let mut page = Vec::new();
        clap_mangen::Man::new((app.definition)()).render(&mut page)?;
        app.out.raw().write_all(&page)?;
        return Ok(Exit::Done);
    };
    let fault = |error| Failure::file(folder, "writing the pages", &error);
    fs::create_dir_all(folder).map_err(fault)?;
    clap_mangen::generate_to((app.definition)(), folder).map_err(fault)?;
    let entries = fs::read_dir(folder).map_err(fault)?.flatten();
    let ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("stepwell");
    let pages = entries.filter(ours).count();
    let folder = folder.display().to_string();
    let line = format!("Wrote {} to {}", count(pages, "page"), visible(&folder));
    app.out.answer(&ManualPages { folder, pages }, line)?;
    Ok(Exit::Done)
}
