//! Sessions brought from one place to another: to a stream, into another format, into another store.

pub(crate) mod convert;
pub(crate) mod copy;
pub(crate) mod dry_run;

use std::io::Write;

use stepwell::{SessionId, Stepwell};

use crate::registry::Format;
use crate::write::writer::{Exported, Outlet, Shape};
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
