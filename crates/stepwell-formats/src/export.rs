//! Writing a session out, in any of the formats.

use std::io::Write;

use stepwell::{SessionId, Stepwell};

use crate::document::Document;
use crate::registry::Format;
use crate::writer::{Exported, Losses, Outlet, Shape};
use crate::{Error, Result};

/// Writes a session to a stream. A format that is a folder cannot be written so.
pub fn export(
    well: &Stepwell,
    id: &SessionId,
    format: Format,
    to: &mut dyn Write,
) -> Result<Exported> {
    match format.writer() {
        Some(writer) if writer.shape() == Shape::File => {
            writer.write(well, id, &mut Outlet::stream(to))
        }
        Some(_) => Err(Error::Shape { wants: "a folder" }),
        None => Err(Error::NotWritten { format: format.as_str() }),
    }
}

/// Writes the conversation as a page for people.
pub(crate) fn page(
    well: &Stepwell,
    id: &SessionId,
    to: &mut Outlet<'_>,
    render: fn(&Document) -> String,
) -> Result<Exported> {
    let standing = well.standing(id)?;
    let span = stepwell::Span { to: standing.head.seq, ..stepwell::Span::ALL };
    let slice = well.store().events(id, span)?;
    let events = slice.events.len() as u64;
    let damaged = slice.damage.iter().map(|damage| (id.clone(), damage.clone())).collect();
    let document = Document::of(&standing, slice);
    to.main()?.write_all(render(&document).as_bytes()).map_err(Error::Write)?;
    Ok(Exported { sessions: 1, events, damaged, losses: Losses::default() })
}
