//! The archive among the other formats.

use std::io::BufReader;
use std::path::PathBuf;

use stepwell::{SessionId, Stepwell};

use super::MAGIC;
use super::write::{Form, export};
use crate::json::fields::Fields;
use crate::read::input::{self, Input};
use crate::read::neutral::Sink;
use crate::read::reader::{Kind, Probe, Reader};
use crate::registry::Entry;
use crate::write::writer::{Exported, Outlet, Writer};
use crate::{Error, Result};

pub(crate) static JSON: Entry = Entry {
    name: "json",
    aliases: &[],
    title: "Stepwell, one JSON object",
    reader: Some(&Form::Object),
    writer: Some(&Form::Object),
};

pub(crate) static JSONL: Entry = Entry {
    name: "jsonl",
    aliases: &["ndjson"],
    title: "Stepwell, lines of JSON",
    reader: Some(&Form::Lines),
    writer: Some(&Form::Lines),
};

impl Reader for Form {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        let front = probe.text().trim_start();
        let begins = front.strip_prefix('{').map(str::trim_start)?;
        let begins = begins.strip_prefix('"').is_some_and(|key| key.starts_with(MAGIC));
        let header = front.lines().next().and_then(|line| Fields::parse(line).ok());
        let counts = header.is_some_and(|header| header.get::<u64>("sessions").is_some());
        let form = if counts { Self::Lines } else { Self::Object };
        (probe.kind == Kind::File && begins && form == *self).then(|| probe.path.clone())
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        // Entries are bounded as they are read; an archive as a whole may be of any size.
        let file = input::open(input.root())?;
        sink.restore(&mut BufReader::new(file)).map_err(|error| match error {
            Error::Read(error) => input::unreadable(input.root(), error),
            error => error,
        })
    }
}

impl Writer for Form {
    fn ending(&self) -> &'static str {
        match self {
            Self::Object => "json",
            Self::Lines => "jsonl",
        }
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        export(well, id, *self, to.main()?)
    }
}
