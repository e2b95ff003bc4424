//! Lists that are kept by parts: the elements of one, put together in one go.
//!
//! `stepwell.langgraph` says what a segment is. A state of thousands of messages is as many small
//! blobs; to fetch and join them in Python costs as much as to read what is in them.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use serde_json::Value;
use stepwell::model::Digest;
use stepwell::{Error, Stepwell};

use crate::convert::read;
use crate::given::Text;
use crate::well::Well;

/// A segment whose type is this holds segments.
const NODE: &str = "node";

/// How many elements it has, their type, where they are, and what is there.
#[derive(Deserialize)]
struct Segment(u64, String, String, Value);

/// How many elements, their type, and their bytes.
type Leaf = (u64, String, Vec<u8>);

/// So many segments are read at once: enough that one piece more costs nothing, and few enough
/// that the first is there soon.
const PIECE: usize = 128;

/// So many are read before any is given: a thread of its own would cost more than it saves.
const AT_ONCE: usize = 256;

#[pymethods]
impl Well {
    /// Gives the elements of a list's segments to `take`, and those of nodes in their place. Of
    /// many it gives some at a time, and while `take` works, the next ones are read.
    fn elements(
        &self,
        py: Python<'_>,
        segments: Text<'_>,
        take: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let segments: Vec<Segment> = read("segments", &segments)?;
        let given = |leaves: Vec<Leaf>| {
            let leaf = |(count, kind, bytes): Leaf| (count, kind, PyBytes::new(py, &bytes));
            take.call1((leaves.into_iter().map(leaf).collect::<Vec<_>>(),)).map(drop)
        };
        let (segments, few) = self.run(py, |well| {
            let segments = expanded(well, segments)?;
            let is_few = segments.len() <= AT_ONCE;
            let few = is_few.then(|| leaves(well, &segments)).transpose()?;
            Ok((segments, few))
        })?;
        if let Some(few) = few {
            return given(few);
        }
        let work = |well: &Stepwell, send: &mut dyn FnMut(Vec<Leaf>) -> bool| {
            for piece in segments.chunks(PIECE) {
                if !send(leaves(well, piece)?) {
                    break;
                }
            }
            Ok(())
        };
        self.handle.run_ahead(py, work, given)
    }
}

/// The segments with those of nodes in their place.
fn expanded(well: &Stepwell, mut segments: Vec<Segment>) -> stepwell::Result<Vec<Segment>> {
    while segments.iter().any(|segment| segment.1 == NODE) {
        let is_node = |segment: &&Segment| segment.1 == NODE;
        let nodes = Blobs::of(well, segments.iter().filter(is_node))?;
        let inner = segments.iter().filter(is_node).map(|node| {
            let inner = serde_json::from_slice::<Vec<Segment>>(&nodes.bytes(node)?);
            inner.map_err(|error| unreadable(error.to_string()))
        });
        let mut inner = inner.collect::<stepwell::Result<Vec<_>>>()?.into_iter();
        let mut expanded = Vec::new();
        for segment in segments {
            match segment.1 == NODE {
                true => expanded.extend(inner.next().unwrap_or_default()),
                false => expanded.push(segment),
            }
        }
        segments = expanded;
    }
    Ok(segments)
}

fn leaves(well: &Stepwell, segments: &[Segment]) -> stepwell::Result<Vec<Leaf>> {
    let blobs = Blobs::of(well, segments.iter())?;
    let leaf = |segment: &Segment| Ok((segment.0, segment.1.clone(), blobs.bytes(segment)?));
    segments.iter().map(leaf).collect()
}

/// The blobs that some segments name, by their names.
struct Blobs<'a>(HashMap<&'a str, Vec<u8>>);

impl<'a> Blobs<'a> {
    fn of(well: &Stepwell, segments: impl Iterator<Item = &'a Segment>) -> stepwell::Result<Self> {
        let mut names: Vec<&'a str> = segments.flat_map(names).collect();
        names.sort_unstable();
        names.dedup();
        let digest = |name: &&str| {
            let bytes = STANDARD.decode(name).ok();
            let digest = bytes.and_then(|bytes| Digest::from_slice(&bytes));
            digest.ok_or_else(|| unreadable(format!("{name:?} names no blob")))
        };
        let digests = names.iter().map(digest).collect::<stepwell::Result<Vec<_>>>()?;
        let found = well.store().blobs(&digests)?;
        Ok(Self(names.into_iter().zip(found).collect()))
    }

    /// The bytes that a segment stands for.
    fn bytes(&self, Segment(_, _, place, what): &Segment) -> stepwell::Result<Vec<u8>> {
        let text = |what: &Value| what.as_str().map(plain).unwrap_or_default();
        let blob = |name: &Value| {
            let found = name.as_str().and_then(|name| self.0.get(name));
            found.ok_or_else(|| unreadable(format!("{name} names no blob")))
        };
        match (place.as_str(), what) {
            ("x", what) => Ok(text(what)),
            ("d", name) => blob(name).cloned(),
            ("i", what) => {
                let bytes = STANDARD.decode(what.as_str().unwrap_or_default());
                bytes.map_err(|error| unreadable(error.to_string()))
            }
            ("c", Value::Array(pieces)) => {
                let mut bytes = Vec::new();
                for (n, piece) in pieces.iter().enumerate() {
                    match n % 2 {
                        0 => bytes.extend(text(piece)),
                        _ => bytes.extend_from_slice(blob(piece)?),
                    }
                }
                Ok(bytes)
            }
            _ => Err(unreadable(format!("{place:?} is no place of elements"))),
        }
    }
}

/// The names of the blobs that a segment is made of.
fn names(Segment(_, _, place, what): &Segment) -> Vec<&str> {
    match (place.as_str(), what) {
        ("d", Value::String(name)) => vec![name],
        ("c", Value::Array(pieces)) => {
            pieces.iter().skip(1).step_by(2).filter_map(Value::as_str).collect()
        }
        _ => Vec::new(),
    }
}

/// Bytes that were written as so many characters.
fn plain(text: &str) -> Vec<u8> {
    if text.is_ascii() {
        return text.as_bytes().to_vec();
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        bytes.push(u8::try_from(u32::from(c)).unwrap_or(b'?'));
    }
    bytes
}

fn unreadable(why: String) -> Error {
    Error::Unreadable { what: "a list's segments".to_owned(), why }
}
