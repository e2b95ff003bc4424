//! goose: `sessions.db`, a database of all sessions; before that a file of lines for each;
//! and the JSON that it exports. They are read, and not written.

mod content;
mod database;
mod file;
mod telling;

use std::path::PathBuf;

use crate::Result;
use crate::json::fields::Fields;
use crate::read::foreign_database::{SQLITE, mentions};
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Homes, Kind, Probe, Reader};
use crate::registry::Entry;

/// The system's name in a session's source.
const SYSTEM: &str = "goose";

pub(crate) static FORMAT: Entry =
    Entry { name: SYSTEM, aliases: &[], title: "goose", reader: Some(&Goose), writer: None };

struct Goose;

/// What a session is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Database,
    Lines,
    Export,
}

impl Form {
    fn of(head: &[u8], text: &str) -> Option<Self> {
        if head.starts_with(SQLITE) {
            let words = ["content_json", "working_dir", "created_timestamp"];
            return mentions(head, &words).then_some(Self::Database);
        }
        let mut lines = text.lines();
        let first = lines.next()?;
        match Fields::parse(first) {
            Ok(meta) if meta.has("conversation") && meta.has("working_dir") => Some(Self::Export),
            Ok(meta) => {
                let about = meta.raw("working_dir").is_some() && meta.raw("description").is_some();
                let second = lines.next().and_then(|line| Fields::parse(line).ok());
                let speaks = second
                    .is_none_or(|it| it.has("role") && it.has("created") && it.has("content"));
                (about && speaks).then_some(Self::Lines)
            }
            // Written over several lines.
            Err(_) => {
                let words = ["\"working_dir\"", "\"session_type\"", "\"conversation\""];
                let ours =
                    text.trim_start().starts_with('{') && words.iter().all(|it| text.contains(it));
                ours.then_some(Self::Export)
            }
        }
    }
}

impl Reader for Goose {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        let form = Form::of(&probe.head, probe.text()).filter(|_| probe.kind == Kind::File);
        form.map(|_| probe.path.clone())
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        let probe = Probe::of(input.root())?;
        let form = probe.as_ref().and_then(|probe| Form::of(&probe.head, probe.text()));
        match form {
            Some(Form::Database) => database::read(input, sink),
            Some(Form::Lines) => file::read_lines(input, sink),
            Some(Form::Export) => file::read_export(input, sink),
            None => Err(crate::Error::Foreign {
                path: input.root().to_owned(),
                why: "it is no session of goose".to_owned(),
            }),
        }
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        let root = (homes.variable)("GOOSE_PATH_ROOT").map(|root| root.join("data/sessions"));
        let data = homes.data.map(|data| data.join("goose/sessions"));
        root.or(data).into_iter().collect()
    }
}
