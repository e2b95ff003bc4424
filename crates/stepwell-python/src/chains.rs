//! Lists that are told along checkpoints: each says what it adds to an earlier one.
//!
//! `stepwell.langgraph` says what a record's data is like. A reader that has not seen a thread looks
//! at some tens of records; to unpack them in Python costs more than all the rest of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use stepwell::model::Record;
use stepwell::store::query::RecordQuery;

use crate::convert::session;
use crate::given::Text;
use crate::packing::{Unpacker, unreadable};
use crate::reading::{key_range, records};
use crate::well::Well;

/// Stands between a namespace and a checkpoint's id.
const SEPARATOR: char = '\x1f';

/// What a checkpoint says of its channels: of each its version and its value.
#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow)]
    v: HashMap<String, (IgnoredAny, &'a RawValue)>,
}

/// What a list says of the checkpoint that it builds on.
#[derive(Deserialize)]
struct Link {
    b: Option<String>,
}

#[pymethods]
impl Well {
    /// What checkpoints say of some channels' lists, each from the checkpoint that is named with the
    /// channel back to the one that tells all of it, as JSON. Only the last `count` records with
    /// keys from `first` to before `end` are looked at: None, if one is not among them.
    fn list_chains(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        first: Text<'_>,
        end: Text<'_>,
        count: usize,
        channels: Vec<(String, String)>,
        dictionaries: Vec<PyBackedBytes>,
    ) -> PyResult<Vec<Option<String>>> {
        let id = session(&id)?;
        let query = RecordQuery::last(key_range(&first, &end), count);
        self.run(py, |well| {
            let found = records(well, &id, &query)?;
            let mut by_id: HashMap<&str, &Record> = HashMap::new();
            for (_, record) in &found {
                // Of records with one key the last one counts, and it comes first here.
                let id = record.key.rsplit(SEPARATOR).next().unwrap_or_default();
                by_id.entry(id).or_insert(record);
            }
            let mut packed =
                Packed { by_id, unpacker: Unpacker::new(&dictionaries), texts: HashMap::new() };
            channels.iter().map(|(channel, base)| packed.chain(channel, base)).collect()
        })
    }
}

/// Records by their checkpoints' ids, and what those say that were looked into.
struct Packed<'a> {
    by_id: HashMap<&'a str, &'a Record>,
    unpacker: Unpacker<'a>,
    texts: HashMap<String, String>,
}

impl Packed<'_> {
    fn chain(&mut self, channel: &str, base: &str) -> stepwell::Result<Option<String>> {
        let (mut chain, mut next) = (String::from("["), Some(base.to_owned()));
        while let Some(id) = next {
            let Some(text) = self.text(&id)? else { return Ok(None) };
            let told: Told<'_> = serde_json::from_str(text).map_err(unreadable)?;
            let Some((_, value)) = told.v.get(channel) else { return Ok(None) };
            // A channel without a value is no list.
            let link: Option<Link> = serde_json::from_str(value.get()).map_err(unreadable)?;
            let Some(link) = link else { return Ok(None) };
            if chain.len() > 1 {
                chain.push(',');
            }
            chain.push_str(value.get());
            next = link.b;
        }
        chain.push(']');
        Ok(Some(chain))
    }

    /// The JSON of a checkpoint's record, if there is one.
    fn text(&mut self, id: &str) -> stepwell::Result<Option<&str>> {
        let record = self.by_id.get(id).filter(|record| !record.data.is_empty());
        let Some(record) = record else { return Ok(None) };
        Ok(Some(match self.texts.entry(id.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.unpacker.unpacked(record)?),
        }))
    }
}
