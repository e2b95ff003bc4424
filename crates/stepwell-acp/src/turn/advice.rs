//! What would help against an error, in the words of an editor. Pure.

use stepwell::Remedy;
use stepwell_runtime::{Error, ErrorKind};

/// How another model is chosen.
pub(crate) const CHOOSE_MODEL: &str =
    "Choose another model with this thread's Model option, or type /model NAME.";

/// An error, and what would help against it.
pub(crate) fn explained(error: &Error) -> String {
    match hint(error) {
        Some(hint) => sentences(&error.to_string(), &hint),
        None => error.to_string(),
    }
}

/// A message with another sentence behind it.
pub(crate) fn sentences(message: &str, more: &str) -> String {
    format!("{}. {more}", message.trim_end_matches('.'))
}

fn hint(error: &Error) -> Option<String> {
    let hints: Vec<String> = error.remedies().iter().map(worded).collect();
    match error.kind() {
        _ if !hints.is_empty() => Some(hints.join(" ")),
        ErrorKind::Credentials => Some(CHOOSE_MODEL.to_owned()),
        _ => None,
    }
}

fn worded(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Model { name, key } => {
            let key = key.as_ref().map(|key| format!(" ({key} set)")).unwrap_or_default();
            format!(
                "Type /model NAME, such as /model {name}{key}; `stepwell config set model.name \
                 NAME` names one for every thread."
            )
        }
        Remedy::SetVariable(name) => {
            format!("Set {name} where the editor starts Stepwell. {CHOOSE_MODEL}")
        }
        other => {
            let text = other.to_string();
            let mut letters = text.chars();
            let first = letters.next().map(|first| first.to_uppercase().collect::<String>());
            format!("{}{}.", first.unwrap_or_default(), letters.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_named_no_model_is_told_how() {
        let remedy = Remedy::Model { name: "a/b".to_owned(), key: Some("A_KEY".to_owned()) };
        let error = Error::refused(ErrorKind::Config, "no model was named").helped_by(remedy);
        let said = explained(&error);
        assert!(said.starts_with("no model was named. Type /model NAME"), "{said}");
        assert!(said.contains("/model a/b (A_KEY set)"), "{said}");
        let no_key = Error::refused(ErrorKind::Credentials, "the command for the key failed");
        assert!(explained(&no_key).contains("/model NAME"));
        let unknown = Remedy::Choose(vec!["a".to_owned(), "b".to_owned()]);
        let error = Error::refused(ErrorKind::Config, "no such agent").helped_by(unknown);
        assert_eq!(explained(&error), "no such agent. Expected one of: a, b.");
        assert_eq!(explained(&Error::Panicked), Error::Panicked.to_string());
    }
}
