//! What of our environment the programs that we start are not given.

use std::process::Command;

use super::Place;

/// Keeps from a program the variables that it must not see.
pub(crate) fn hide_keys(command: &mut Command, place: &Place) {
    for name in &place.withheld {
        command.env_remove(name);
    }
}

/// Is it the name of a variable that no program is given: one that holds a provider's key, or a
/// setting of Stepwell's?
#[must_use]
pub fn is_private_variable(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper.ends_with("_API_KEY") || upper.starts_with("STEPWELL_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_our_settings_are_private() {
        for name in ["OPENAI_API_KEY", "stepwell_model", "my_api_key"] {
            assert!(is_private_variable(name), "{name}");
        }
        for name in ["PATH", "API_KEYS", "NOT_STEPWELL_X", "LOCAL_KEY"] {
            assert!(!is_private_variable(name), "{name}");
        }
    }

    #[test]
    fn what_is_withheld_is_not_passed_on() {
        let mut place = Place::new(".".into());
        place.withheld.insert("LOCAL_KEY".to_owned());
        let mut command = Command::new("true");
        hide_keys(&mut command, &place);
        let hidden: Vec<_> = command.get_envs().collect();
        assert_eq!(hidden, [("LOCAL_KEY".as_ref(), None)]);
    }
}
