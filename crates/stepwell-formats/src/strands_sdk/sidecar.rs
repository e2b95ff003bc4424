//! The file for what a Strands folder has no place for: a line for each such event.

use std::io::Write as _;
use std::path::Path;

use stepwell::Recorded;

use crate::input::Input;
use crate::neutral::{Sink, Warning, kept_event};
use crate::writer::Outlet;
use crate::{Error, Result};

/// Its name. The systems' own loaders leave it alone.
pub(crate) const NAME: &str = "stepwell.jsonl";

/// Tells what was kept.
pub(crate) fn read(input: &Input, folder: &Path, sink: &mut dyn Sink) -> Result<()> {
    let path = folder.join(NAME);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let mut lines = input.lines(&path)?;
    while let Some(line) = lines.next_line()? {
        let text = line.bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        match text.and_then(kept_event) {
            Some(item) => drop(sink.take(item)?),
            None => sink.warn(Warning {
                place: format!("{}, line {}", path.display(), line.number),
                what: "it is no event that is kept so, and was left out".to_owned(),
            }),
        }
    }
    Ok(())
}

/// Keeps events that have no other place.
pub(crate) fn write(to: &mut Outlet<'_>, events: &[&Recorded]) -> Result<()> {
    let kept = events.iter().filter_map(|event| {
        let line = serde_json::to_string(event).ok()?;
        kept_event(&line).map(|_| line)
    });
    let lines: String = kept.map(|line| line + "\n").collect();
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
