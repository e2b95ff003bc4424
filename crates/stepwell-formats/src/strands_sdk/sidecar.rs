//! The file for what a Strands folder has no place for: a line for each such event, after one
//! that says which session this one goes on from.

use std::io::Write as _;

use stepwell::Recorded;
use stepwell::model::Mark;

use super::kept::Kept;
use crate::json::fields::Fields;
use crate::read::input::Input;
use crate::read::mark::{CONTINUES, mark_json, mark_within};
use crate::read::neutral::{Item, Sink, Warning, kept_event, line_of};
use crate::write::writer::Outlet;
use crate::{Error, Result};

/// Its name. The systems' own loaders leave it alone.
pub(crate) const NAME: &str = "stepwell.jsonl";

/// The session that this one was written from, if it says so.
pub(crate) fn mark(input: &Input) -> Option<Mark> {
    let mut lines = input.lines(&input.root().join(NAME)).ok()?;
    let line = lines.next_line().ok()??;
    mark_within(&line.object().ok()?.1)
}

/// Tells what was kept, to a sink that takes sessions of that system.
pub(crate) fn read(input: &Input, system: &str, sink: &mut dyn Sink) -> Result<()> {
    let path = input.root().join(NAME);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let mut lines = input.lines(&path)?;
    while let Some(line) = lines.next_line()? {
        let text = line.bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        match text.and_then(kept_event) {
            Some(item) => drop(sink.push(item)?),
            None if is_mark(text) => {
                let kept = Kept::new(NAME, text.unwrap_or_default());
                sink.push(Item::of_session(system, kept.to_json()))?;
            }
            None => sink.warn(Warning {
                place: format!("{}, line {}", path.display(), line.number),
                what: "it is no event that is kept so, and was left out".to_owned(),
            }),
        }
    }
    Ok(())
}

fn is_mark(text: Option<&str>) -> bool {
    text.and_then(|text| Fields::parse(text).ok()).is_some_and(|line| mark_within(&line).is_some())
}

/// Keeps events that have no other place, and the mark: a new one, or else the one that the
/// session came with.
pub(crate) fn write(
    to: &mut Outlet<'_>,
    mark: Option<Mark>,
    files: &[Kept],
    events: &[&Recorded],
) -> Result<()> {
    let mark = mark.map(|mark| format!("{{\"{CONTINUES}\":{}}}\n", mark_json(&mark)));
    let came = || files.iter().find(|kept| kept.file == NAME);
    let mark = mark.or_else(|| came().map(|kept| format!("{}\n", kept.data)));
    let kept = events.iter().filter_map(|event| {
        let line = line_of(event, 6).ok()?;
        kept_event(&line).map(|_| line)
    });
    let lines: String = mark.into_iter().chain(kept.map(|line| line + "\n")).collect();
    if lines.is_empty() {
        return Ok(());
    }
    put(to, NAME, &lines)
}

/// Writes a file of the session.
pub(crate) fn put(to: &mut Outlet<'_>, name: &str, text: &str) -> Result<()> {
    let Some(mut file) = to.file(name)? else { return Err(Error::Shape { wants: "a folder" }) };
    file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(Error::Write)
}
