//! What of our environment the programs that we start are not given.

use std::process::Command;

use super::ToolEnv;

/// The variable that marks what a run started: such a program cannot answer in its user's name.
pub const IN_RUN: &str = "STEPWELL_IN_RUN";

/// Keeps from a program the variables that it must not see.
pub(crate) fn hide_keys(command: &mut Command, place: &ToolEnv) {
    for name in &place.withheld {
        command.env_remove(name);
    }
    command.env(IN_RUN, "1");
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
        let mut place = ToolEnv::new(".".into());
        place.withheld.insert("LOCAL_KEY".to_owned());
        let mut command = Command::new("true");
        hide_keys(&mut command, &place);
        let hidden: Vec<_> = command.get_envs().collect();
        let marked = (IN_RUN.as_ref(), Some("1".as_ref()));
        assert_eq!(hidden, [("LOCAL_KEY".as_ref(), None), marked]);
    }
}
