use stepwell::SessionId;
use stepwell::model::FileState;
use stepwell::sqlite::Access;
use stepwell_runtime::inspect;
use stepwell_terminal::note;
use stepwell_terminal::table::{Column, Table, left, right};
use stepwell_terminal::text::{count, one_line, second, word};
use stepwell_terminal::wording::{POINT_FORMS, tell_of_half};
use stepwell_wire::FileVersion;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Lists the versions of the files that a session changed, or prints one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Only this file, relative to the workspace.
    path: Option<String>,
    /// Prints what the file held there: a seq, a checkpoint's name, or -N for N steps back.
    #[arg(long, value_name = POINT_FORMS, allow_hyphen_values = true, requires = "path")]
    at: Option<String>,
}

const COLUMNS: &[Column] =
    &[right("SEQ"), left("WHEN"), left("CHANGE"), left("CONTENT"), left("PATH")];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
    let wanted_path = args.path.as_deref().map(|path| path.trim_start_matches("./"));
    if let (Some(path), Some(at)) = (wanted_path, &args.at) {
        let (answer, bytes) = inspect::content(&well, &id, path, well.point(&id, at)?)?;
        match app.out.is_json() {
            true => app.out.object(&answer)?,
            false => app.out.raw().write_all(&bytes)?,
        }
        return Ok(Exit::Done);
    }
    let versions = inspect::versions(&well, &id, wanted_path)?;
    tell_of_half(&well.info(&id)?);
    if app.out.is_json() {
        versions.iter().try_for_each(|version| app.out.object(version))?;
        return Ok(Exit::Done);
    }
    match wanted_path.filter(|_| versions.is_empty()) {
        None => list(&id, &versions, app),
        Some(path) => Err(inspect::not_changed(&id, path).into()),
    }
}

fn list(id: &SessionId, versions: &[FileVersion], app: &mut App) -> Result<Exit> {
    if versions.is_empty() {
        note(format_args!("{id} changed no files."));
        return Ok(Exit::Done);
    }
    let mut table = Table::new(COLUMNS);
    for version in versions {
        let from = version.renamed_from.as_ref().map(|from| format!(" (was {})", one_line(from)));
        table.push(vec![
            version.seq.to_string().into(),
            second(version.at).into(),
            word(version.change).into(),
            content(&version.after).into(),
            format!("{}{}", one_line(&version.path), from.unwrap_or_default()).into(),
        ]);
    }
    app.print(&table)?;
    note(format_args!(
        "{}; stepwell files {id} PATH --at SEQ prints one",
        count(versions.len(), "version")
    ));
    Ok(Exit::Done)
}

/// What stands there, in a few words.
fn content(state: &FileState) -> String {
    match state {
        FileState::Absent => "-".to_owned(),
        FileState::File { blob, mode } => format!("{:.12} {mode:o}", blob.to_string()),
        FileState::Symlink { target } => format!("-> {}", one_line(target)),
        FileState::NotCaptured { why, .. } => format!("not captured: {}", one_line(why)),
    }
}
