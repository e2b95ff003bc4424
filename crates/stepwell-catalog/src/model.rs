//! Model names, and the sources of providers' keys.

/// A model's full name: `provider/name`, or `script:FILE`.
#[must_use]
pub fn model_name(provider: &str, name: &str) -> String {
    match (provider, name) {
        ("", name) | (_, name @ "") => name.to_owned(),
        ("script", file) => format!("script:{file}"),
        (provider, name) => format!("{provider}/{name}"),
    }
}

/// The source of a provider's key. The front end reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable.
    Variable(String),
    /// The output of a command.
    Command(String),
    /// The provider needs no key.
    Nowhere,
}
