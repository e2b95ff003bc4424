//! What of our environment the programs that we start are not given.

/// The variable that marks what a run started: such a program cannot answer in its user's name.
pub const IN_RUN: &str = "STEPWELL_IN_RUN";

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
}
