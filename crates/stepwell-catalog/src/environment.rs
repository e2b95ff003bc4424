//! Environment variables that started programs do not receive.

/// Marks the processes that a run started: they cannot answer in their user's name.
pub const IN_RUN: &str = "STEPWELL_IN_RUN";

/// Must this variable be withheld from every started program, because it holds a provider's key or
/// a setting of Stepwell?
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
