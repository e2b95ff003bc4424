//! Where bytes are cut so that a value that grew shares most of its pieces with what it was.
//!
//! A cut depends on the 64 bytes before it alone. So bytes that come in or go change the pieces
//! around them, and the others stay the same blobs.

use pyo3::prelude::*;

/// No piece is shorter, but for the last: a piece costs a row.
const SHORTEST: usize = 2 << 10;
/// One in so many places is a cut.
const AVERAGE: u64 = 8 << 10;
/// None is longer.
const LONGEST: usize = 32 << 10;

/// Where each piece of some bytes ends.
#[pyfunction]
pub(crate) fn cut_points(py: Python<'_>, data: &[u8]) -> Vec<usize> {
    py.detach(|| cuts(data))
}

fn cuts(data: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let (mut start, mut hash) = (0, 0_u64);
    for (at, byte) in data.iter().enumerate() {
        hash = (hash << 1).wrapping_add(scatter(*byte));
        let length = at + 1 - start;
        let is_cut = length >= SHORTEST && (hash >> 32) % AVERAGE == 0;
        if is_cut || length >= LONGEST {
            ends.push(at + 1);
            start = at + 1;
        }
    }
    if start < data.len() {
        ends.push(data.len());
    }
    ends
}

/// A number for each byte that looks random: what follows one another must not cancel out.
const fn scatter(byte: u8) -> u64 {
    let mixed = (byte as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
