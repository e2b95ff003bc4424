use stepwell::Seq;
use stepwell::sqlite::Access;
use stepwell_runtime::inspect;
use stepwell_terminal::Style;
use stepwell_terminal::text::visible;
use stepwell_terminal::wording::POINT_FORMS;
use stepwell_wire::FileDiff;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Shows what a session did to files, as a unified diff.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// From where: a seq, a checkpoint's name, or -N for N steps back (default: its beginning).
    #[arg(long, value_name = POINT_FORMS, allow_hyphen_values = true)]
    from: Option<String>,
    /// Up to where (default: its end).
    #[arg(long, value_name = POINT_FORMS, allow_hyphen_values = true)]
    to: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
    let at = |text: &Option<String>, usual: Seq| match text {
        Some(text) => well.point(&id, text),
        None => Ok(usual),
    };
    let (from, to) = (at(&args.from, Seq::ZERO)?, at(&args.to, Seq::MAX)?);
    for patch in inspect::patches(&well, &id, from, to)? {
        match app.out.is_json() {
            true => app.out.object(&patch)?,
            false => show(&patch, app)?,
        }
    }
    Ok(Exit::Done)
}

fn show(patch: &FileDiff, app: &mut App) -> Result<()> {
    // In a pipe it is for `git apply`, byte for byte.
    if !app.terminal.output {
        app.out.raw().write_all(patch.diff.as_bytes())?;
        return Ok(());
    }
    for line in patch.diff.lines() {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("diff ")
                || line.starts_with("--- ")
                || line.starts_with("+++ ") =>
            {
                Style::Bold
            }
            Some(b'+') => Style::Green,
            Some(b'-') => Style::Red,
            Some(b'@') => Style::Cyan,
            _ => Style::Plain,
        };
        app.out.line(app.out.paint.paint(style, &visible(line)))?;
    }
    Ok(())
}
