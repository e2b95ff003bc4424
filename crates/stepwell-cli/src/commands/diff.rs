use stepwell::{Access, Kind, Seq};
use stepwell_files::diff::Patch;
use stepwell_files::history::History;
use stepwell_wire::FileDiff;

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::files::side;
use crate::output::Style;
use crate::point::FORMS;
use crate::text::visible;

/// Shows what a session did to files, as a unified diff.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// From where: a seq, a checkpoint's name, or -N for N steps back (default: its beginning).
    #[arg(long, value_name = FORMS, allow_hyphen_values = true)]
    from: Option<String>,
    /// Up to where (default: its end).
    #[arg(long, value_name = FORMS, allow_hyphen_values = true)]
    to: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Read)?;
    let at = |text: &Option<String>, usual: Seq| match text {
        Some(text) => well.point(&id, text),
        None => Ok(usual),
    };
    let (from, to) = (at(&args.from, Seq::ZERO)?, at(&args.to, Seq::MAX)?);
    let history = History::of(well.store().facts(&id, &[Kind::File])?);
    let net = history.net(from, to);
    // What was moved is shown where it came, not where it went.
    let moved: Vec<&String> = net.values().filter_map(|it| it.renamed_from.as_ref()).collect();
    for (path, change) in net.iter().filter(|(path, _)| !moved.contains(path)) {
        let before = match &change.renamed_from {
            Some(old) => net.get(old).map_or(&change.before, |old| &old.before),
            None => &change.before,
        };
        let (before, after) = (side(&well, before)?, side(&well, &change.after)?);
        let patch = Patch::of(path, change.renamed_from.as_deref(), &before, &after);
        match app.out.is_json() {
            true => app.out.object(&FileDiff::from(patch))?,
            false => show(&patch, app)?,
        }
    }
    Ok(Exit::Done)
}

fn show(patch: &Patch, app: &mut App) -> Result<()> {
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
