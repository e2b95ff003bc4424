//! Parts of a message that a form has no place for: each is kept on a line of its own behind
//! the message, with its place among the parts.

use serde_json::{Value, json};
use stepwell::model::Part;

use crate::json::fields::{Fields, with_fields};

/// A part that a message is written without.
#[derive(Debug)]
pub(crate) struct Spare {
    /// What it is called in a warning.
    pub(crate) what: &'static str,
    /// Its place among the message's parts.
    at: usize,
    part: Part,
}

impl Spare {
    pub(crate) fn new(what: &'static str, at: usize, part: &Part) -> Self {
        Self { what, at, part: part.clone() }
    }

    /// What its line says.
    pub(crate) fn line(&self) -> Value {
        json!({"at": self.at, "part": self.part})
    }
}

/// Gives a message the part that a line holds. The answer is the line without it; nothing, if
/// the line holds none that is missing. Only thinking is: of the rest the message tells in
/// another way, and the line stays what it is.
pub(crate) fn take_up(line: &Fields<'_>, parts: &mut Vec<Part>) -> Option<String> {
    let part: Part = serde_json::from_str(line.raw("part")?).ok()?;
    let at = line.get::<usize>("at")?.min(parts.len());
    if !matches!(part, Part::Thinking(_)) {
        return None;
    }
    parts.insert(at, part);
    Some(line.rewritten(&[("part", None), ("at", Some(&at.to_string()))]))
}

/// Where the part belongs that was taken from a line.
pub(crate) fn place(line: &Fields<'_>) -> Option<usize> {
    line.get::<usize>("at").filter(|_| !line.has("part"))
}

/// A line with the part in it again, if the message has it still.
pub(crate) fn filled(line: &Fields<'_>, parts: &[Part]) -> Option<String> {
    let part = parts.get(place(line)?)?;
    let part = serde_json::to_string(part).ok()?;
    Some(with_fields(&line.rewritten(&[]), &[("part", &part)]))
}

/// The parts that are not on lines of their own.
pub(crate) fn without<'a>(parts: &'a [Part], places: &[usize]) -> Vec<&'a Part> {
    let kept = parts.iter().enumerate().filter(|(n, _)| !places.contains(n));
    kept.map(|(_, part)| part).collect()
}
