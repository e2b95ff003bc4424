//! Lists that are told along checkpoints: each says what it adds to an earlier one.
//!
//! `stepwell.langgraph` says what a record's data is like. A reader that has not seen a thread looks
//! at some tens of records; to unpack them in Python costs more than all the rest of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use stepwell::{Digest, Error, Record, RecordQuery};

use crate::convert::session;
use crate::reading::{key_range, records};
use crate::well::Well;

/// Stands between a namespace and a checkpoint's id.
const SEPARATOR: char = '\x1f';

/// A record that says more than this is not believed.
const MAX_BYTES: usize = 64 << 20;

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
        id: &str,
        first: &str,
        end: &str,
        count: usize,
        channels: Vec<(String, String)>,
        dictionaries: Vec<PyBackedBytes>,
    ) -> PyResult<Vec<Option<String>>> {
        let id = session(id)?;
        let query = RecordQuery::last(key_range(first, end), count);
        self.run(py, |well| {
            let found = records(well, &id, &query)?;
            let mut by_id: HashMap<&str, &Record> = HashMap::new();
            for (_, record) in &found {
                // Of records with one key the last one counts, and it comes first here.
                let id = record.key.rsplit(SEPARATOR).next().unwrap_or_default();
                by_id.entry(id).or_insert(record);
            }
            let mut packed = Packed { by_id, dictionaries: &dictionaries, texts: HashMap::new() };
            channels.iter().map(|(channel, base)| packed.chain(channel, base)).collect()
        })
    }
}

/// Records by their checkpoints' ids, and what those say that were looked into.
struct Packed<'a> {
    by_id: HashMap<&'a str, &'a Record>,
    dictionaries: &'a [PyBackedBytes],
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
            Entry::Vacant(new) => new.insert(unpacked(record, self.dictionaries)?),
        }))
    }
}

/// A record's data as JSON: what `packed` of `stepwell.langgraph` was given.
fn unpacked(record: &Record, dictionaries: &[PyBackedBytes]) -> stepwell::Result<String> {
    if record.data.starts_with('{') {
        return Ok(record.data.clone());
    }
    let (number, short) = record.data.split_at_checked(1).unwrap_or_default();
    let number = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let dictionary = number.and_then(|number| dictionaries.get(number));
    let dictionary = dictionary.ok_or_else(|| unreadable("it names no dictionary"))?;
    let short = STANDARD_NO_PAD.decode(short).map_err(unreadable)?;
    let text = String::from_utf8(inflated(&short, dictionary)?).map_err(unreadable)?;
    let mut whole = String::with_capacity(text.len());
    for (n, piece) in text.split('\0').enumerate() {
        if n % 2 == 0 {
            whole.push_str(piece);
        } else {
            let digest = piece.parse::<usize>().ok().and_then(|place| record.blobs.get(place));
            let digest = digest.ok_or_else(|| unreadable("it names a blob that it lacks"))?;
            STANDARD.encode_string(Digest::as_column(digest), &mut whole);
        }
    }
    Ok(whole)
}

/// The bytes that deflate made short, with a preset dictionary.
fn inflated(short: &[u8], dictionary: &[u8]) -> stepwell::Result<Vec<u8>> {
    let mut room = 8 * short.len() + 1024;
    loop {
        // To deflate, a dictionary is what came before.
        let mut bytes = dictionary.to_vec();
        bytes.resize(dictionary.len() + room, 0);
        let (mut state, flags) =
            (DecompressorOxide::new(), TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF);
        match decompress(&mut state, short, &mut bytes, dictionary.len(), flags) {
            (TINFLStatus::Done, _, written) => {
                bytes.truncate(dictionary.len() + written);
                return Ok(bytes.split_off(dictionary.len()));
            }
            (TINFLStatus::HasMoreOutput, ..) if room < MAX_BYTES => room *= 4,
            (status, ..) => return Err(unreadable(format!("{status:?}"))),
        }
    }
}

fn unreadable(why: impl ToString) -> Error {
    Error::Unreadable { what: "a checkpoint's record".to_owned(), why: why.to_string() }
}
