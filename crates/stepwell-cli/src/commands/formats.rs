use stepwell_formats::Format;
use stepwell_terminal::table::{Column, Table, left};
use stepwell_wire::FormatInfo;
use stepwell_workspace::other_agents;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Lists the formats of sessions that are read and written.
///
/// Says for each where import and watch look for sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

const COLUMNS: &[Column] =
    &[left("FORMAT"), left("READ"), left("WRITE"), left("OF"), left("IMPORT LOOKS IN")];

pub(crate) fn run(_args: &Args, app: &mut App) -> Result<Exit> {
    let mut table = Table::new(COLUMNS);
    let mut lines = Vec::new();
    for format in Format::all() {
        let places = other_agents::with_homes(&app.workspace, |homes| format.places(homes));
        let places: Vec<String> = places.iter().map(|it| it.display().to_string()).collect();
        let (read, write) = (format.reader().is_some(), format.writer().is_some());
        let word = |yes| if yes { "yes" } else { "-" };
        let shown = if places.is_empty() { "-".to_owned() } else { places.join(", ") };
        let cells = [format.as_str(), word(read), word(write), format.title(), &shown];
        table.push(cells.into_iter().map(Into::into).collect());
        let (format, title) = (format.as_str().to_owned(), format.title().to_owned());
        lines.push(FormatInfo { format, title, read, write, places });
    }
    match app.out.is_json() {
        true => lines.iter().try_for_each(|line| app.out.object(line))?,
        false => app.print(&table)?,
    }
    Ok(Exit::Done)
}
