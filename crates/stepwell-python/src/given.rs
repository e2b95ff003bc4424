//! Plain values that Python gives: what they cannot be is an `InvalidError` like any other.

use std::ops::Deref;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::invalid;

/// A text.
pub(crate) struct Text<'a>(&'a str);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl<'a> FromPyObject<'a, '_> for Text<'a> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, '_, PyAny>) -> PyResult<Self> {
        given.extract::<&'a str>().map(Self).map_err(|_| match given.cast::<PyString>() {
            Ok(_) => invalid(format!(
                "a text holds half a character (a lone surrogate), which no store keeps: {}",
                around_surrogate(&shown(given))
            )),
            Err(_) => invalid(format!("{} is no text", shown(given))),
        })
    }
}

/// A whole number that counts something, or a seq.
#[derive(Clone, Copy)]
pub(crate) struct Natural(pub(crate) u64);

impl Natural {
    /// How many.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromPyObject<'_, '_> for Natural {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let number = given.extract::<u64>().map(Self);
        number.map_err(|_| invalid(format!("{} is no whole number from 0 up", shown(given))))
    }
}

/// A text as Python writes it, around its first lone surrogate.
fn around_surrogate(shown: &str) -> String {
    const AROUND: usize = 24;
    let at = shown.find("\\ud").map_or(0, |at| shown[..at].chars().count());
    shown.chars().skip(at.saturating_sub(AROUND)).take(2 * AROUND).collect()
}

/// What was given, as Python writes it.
fn shown(given: Borrowed<'_, '_, PyAny>) -> String {
    let text = given.repr().map(|repr| repr.to_string_lossy().into_owned());
    text.unwrap_or_else(|_| "what was given".to_owned())
}
