//! What a record says: `stepwell.langgraph` packs it, and a reader wants it as it was.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use pyo3::pybacked::PyBackedBytes;
use stepwell::{Digest, Error, Record};

/// A record that says more than this is not believed.
const MAX_BYTES: usize = 64 << 20;

/// A record's data as JSON: what `packed` of `stepwell.langgraph` was given.
pub(crate) fn unpacked(
    record: &Record,
    dictionaries: &[PyBackedBytes],
) -> stepwell::Result<String> {
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

pub(crate) fn unreadable(why: impl ToString) -> Error {
    Error::Unreadable { what: "a checkpoint's record".to_owned(), why: why.to_string() }
}
