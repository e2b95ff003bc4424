//! Values as users type them, for several commands.

use std::collections::BTreeMap;
use std::io::Read;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::Value;

use crate::failure::{Exit, Failure, Result};

/// One of a few words, each with what it means.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    words: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let known = PossibleValuesParser::new(words.iter().map(|(word, _)| *word));
    known.try_map(|text| {
        let meant = words.iter().find(|(word, _)| *word == text);
        meant.map(|(_, value)| *value).ok_or("no such word")
    })
}

/// A task as it was typed, or from stdin.
pub(crate) fn task(task: String) -> Result<String> {
    text("task", task)
}

/// A text as it was typed, or from stdin; `what` says what it is.
pub(crate) fn text(what: &str, mut text: String) -> Result<String> {
    if text == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).map_err(|error| {
            Failure::new(Exit::Usage, format!("the {what} cannot be read from stdin: {error}"))
        })?;
    }
    if text.trim().is_empty() {
        return Err(Failure::new(Exit::Usage, format!("the {what} is empty")));
    }
    Ok(text)
}

/// A number that is not zero.
pub(crate) fn positive<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a whole number above 0".to_owned())
}

/// An entry of metadata: `K=V` is a text, `K:=JSON` any value.
pub(crate) fn entry(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("use K=V, or K:=JSON")?;
    let (name, value) = match name.strip_suffix(':') {
        Some(name) => {
            let value =
                serde_json::from_str(value).map_err(|error| format!("not JSON: {error}"))?;
            (name, value)
        }
        None => (name, Value::from(value)),
    };
    if name.is_empty() {
        return Err("the key is empty".to_owned());
    }
    Ok((name.to_owned(), value))
}

/// Variables that were typed, each once.
pub(crate) fn each_once(typed: &[(String, String)]) -> Result<BTreeMap<String, String>> {
    let mut set = BTreeMap::new();
    for (name, value) in typed {
        if set.insert(name.clone(), value.clone()).is_some() {
            let message = format!("--var sets {name} twice");
            return Err(Failure::new(Exit::Usage, message));
        }
    }
    Ok(set)
}

/// `NAME=VALUE`.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err(format!("{text:?} sets nothing; write NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_text_unless_it_says_that_it_is_json() {
        assert_eq!(entry("n=1.10"), Ok(("n".into(), Value::from("1.10"))));
        assert_eq!(entry("n:=1.5"), Ok(("n".into(), Value::from(1.5))));
        assert_eq!(entry("tags:=[\"a\"]"), Ok(("tags".into(), serde_json::json!(["a"]))));
        assert_eq!(entry("a=b=c"), Ok(("a".into(), Value::from("b=c"))));
        assert_eq!(entry("gone:=null"), Ok(("gone".into(), Value::Null)));
        for wrong in ["", "x", "=1", ":=1", "n:=nonsense"] {
            assert!(entry(wrong).is_err(), "{wrong}");
        }
    }
}
