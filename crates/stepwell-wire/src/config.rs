//! Settings.

use schemars::JsonSchema;
use serde::Serialize;

/// A setting, and the source of its value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Setting {
    /// Its name, such as `sessions.cleanup_after_days`.
    pub key: String,
    /// Its value.
    pub value: serde_json::Value,
    /// A file, a variable, a flag or the default.
    pub source: String,
}

/// A setting that was removed from a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SettingUnset {
    /// Its name.
    pub key: String,
    /// Was it in the file?
    pub unset: bool,
    /// The file.
    pub source: String,
}
