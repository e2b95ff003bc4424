//! What would help against an error, in the words of an editor. Pure.

use stepwell_runtime::{Error, ErrorKind, Remedy};

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
    Some(match error.remedy() {
        Some(Remedy::NameModel(it)) => {
            let key = if it.has_key { String::new() } else { format!(" ({} set)", it.variable) };
            let model = it.model;
            format!(
                "Type /model NAME, such as /model {model}{key}; `stepwell config set model.name \
                 NAME` names one for every thread."
            )
        }
        Some(Remedy::NameFlowModel) => "Type /model NAME.".to_owned(),
        Some(Remedy::TakeModel(model)) => format!("Type /model {model} to take it."),
        Some(Remedy::SetVariable(name)) => {
            format!("Set {name} where the editor starts Stepwell. {CHOOSE_MODEL}")
        }
        Some(Remedy::NameOneOf(known)) => format!("Expected one of: {}.", known.join(", ")),
        _ if error.kind() == ErrorKind::Credentials => CHOOSE_MODEL.to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use stepwell_runtime::SuggestedModel;

    use super::*;

    #[test]
    fn whoever_named_no_model_is_told_how() {
        let suggested = SuggestedModel { model: "a/b", variable: "A_KEY", has_key: false };
        let said = explained(&Error::NoModel { suggested });
        assert!(said.starts_with("no model was named. Type /model NAME"), "{said}");
        assert!(said.contains("/model a/b (A_KEY set)"), "{said}");
        assert!(explained(&Error::KeyCommand { of: "a".to_owned() }).contains("/model NAME"));
        assert_eq!(explained(&Error::Panicked), Error::Panicked.to_string());
    }
}
