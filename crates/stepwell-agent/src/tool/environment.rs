//! What of our environment the programs that we start are not given.

use std::ffi::OsStr;
use std::process::Command;

use super::Place;

/// Keeps keys and our own settings from a program.
pub(crate) fn hide_keys(command: &mut Command, place: &Place) {
    // Nothing is read from the environment; it is passed on, with some names left out.
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| is_ours(name, place)) {
        command.env_remove(name);
    }
}

/// Is it a variable that holds a provider's key, or a setting of Stepwell's?
fn is_ours(name: &OsStr, place: &Place) -> bool {
    let name = name.to_string_lossy();
    let upper = name.to_ascii_uppercase();
    upper.ends_with("_API_KEY") || upper.starts_with("STEPWELL_") || place.withheld.contains(&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_our_settings_are_not_passed_on() {
        let mut place = Place::new(".".into());
        place.withheld.insert("LOCAL_KEY".to_owned());
        for name in ["OPENAI_API_KEY", "stepwell_model", "my_api_key", "LOCAL_KEY"] {
            assert!(is_ours(name.as_ref(), &place), "{name}");
        }
        for name in ["PATH", "API_KEYS", "NOT_STEPWELL_X", "local_key"] {
            assert!(!is_ours(name.as_ref(), &place), "{name}");
        }
    }
}
