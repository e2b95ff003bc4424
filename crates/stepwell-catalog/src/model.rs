//! A model's name, and where its provider's key comes from.

/// A model's name as it can be given again: `provider/name`, or `script:FILE`.
#[must_use]
pub fn model_name(provider: &str, name: &str) -> String {
    match (provider, name) {
        ("", name) | (_, name @ "") => name.to_owned(),
        ("script", file) => format!("script:{file}"),
        (provider, name) => format!("{provider}/{name}"),
    }
}

/// Where a provider's key comes from. Whoever runs the program reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable.
    Variable(String),
    /// What a command prints.
    Command(String),
    /// None is needed.
    Nowhere,
}
