//! What a record says: `stepwell.langgraph` packs it, and a reader wants it as it was.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use pyo3::pybacked::PyBackedBytes;
use stepwell::Error;
use stepwell::model::{Digest, Record};

/// A record that says more than this is not believed.
const MAX_BYTES: usize = 64 << 20;

/// Unpacks records, one after the other, with what it takes made once.
pub(crate) struct Unpacker<'a> {
    dictionaries: &'a [PyBackedBytes],
    state: Box<DecompressorOxide>,
    /// A dictionary, and behind it what was unpacked last.
    bytes: Vec<u8>,
    /// The dictionary's number.
    at: Option<usize>,
}

impl<'a> Unpacker<'a> {
    pub(crate) fn new(dictionaries: &'a [PyBackedBytes]) -> Self {
        Self { dictionaries, state: Box::default(), bytes: Vec::new(), at: None }
    }

    /// A record's data as JSON: what `packed` of `stepwell.langgraph` was given.
    pub(crate) fn unpacked(&mut self, record: &Record) -> stepwell::Result<String> {
        if record.data.starts_with('{') {
            return Ok(record.data.clone());
        }
        let (number, short) = record.data.split_at_checked(1).unwrap_or_default();
        let number = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let number = number.ok_or_else(|| unreadable("it names no dictionary"))?;
        let short = STANDARD_NO_PAD.decode(short).map_err(unreadable)?;
        let text = std::str::from_utf8(self.inflated(&short, number)?).map_err(unreadable)?;
        let mut whole = String::with_capacity(text.len() + 64 * record.blobs.len());
        for (n, piece) in text.split('\0').enumerate() {
            if n % 2 == 0 {
                whole.push_str(piece);
            } else {
                let digest = piece.parse::<usize>().ok().and_then(|place| record.blobs.get(place));
                let digest = digest.ok_or_else(|| unreadable("it names a blob that it lacks"))?;
                STANDARD.encode_string(Digest::as_bytes(digest), &mut whole);
            }
        }
        Ok(whole)
    }

    /// The bytes that deflate made short, with a preset dictionary.
    fn inflated(&mut self, short: &[u8], number: usize) -> stepwell::Result<&[u8]> {
        let dictionary = self.dictionaries.get(number);
        let dictionary: &[u8] = dictionary.ok_or_else(|| unreadable("it names no dictionary"))?;
        // To deflate, a dictionary is what came before.
        if self.at != Some(number) {
            self.bytes = dictionary.to_vec();
            self.at = Some(number);
        }
        let (start, mut room) = (dictionary.len(), 8 * short.len() + 1024);
        loop {
            if self.bytes.len() < start + room {
                self.bytes.resize(start + room, 0);
            }
            self.state.init();
            let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
            match decompress(&mut self.state, short, &mut self.bytes, start, flags) {
                (TINFLStatus::Done, _, written) => return Ok(&self.bytes[start..start + written]),
                (TINFLStatus::HasMoreOutput, ..) if room < MAX_BYTES => room *= 4,
                (status, ..) => return Err(unreadable(format!("{status:?}"))),
            }
        }
    }
}

pub(crate) fn unreadable(why: impl ToString) -> Error {
    Error::Unreadable { what: "a checkpoint's record".to_owned(), why: why.to_string() }
}
