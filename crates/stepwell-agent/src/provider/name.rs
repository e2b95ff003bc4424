//! Parses a model's name: `provider/name` or `script:FILE`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use stepwell_catalog::KeySource;

use super::remote::{Endpoint, Key, Protocol};

/// A parsed model name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelName {
    /// `script:FILE`: answers from a file.
    Script(PathBuf),
    /// `provider/name`.
    Remote {
        /// A known provider.
        provider: String,
        /// The model's name at the provider, as typed. It may contain slashes.
        model: String,
    },
}

impl ModelName {
    /// Does this name a script, and so a local file?
    #[must_use]
    pub fn is_script(typed: &str) -> bool {
        script(typed).is_some()
    }
}

/// The file of `script:FILE`.
fn script(typed: &str) -> Option<&str> {
    typed.trim().strip_prefix("script:")
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script(file) => write!(f, "script:{}", file.display()),
            Self::Remote { provider, model } => write!(f, "{provider}/{model}"),
        }
    }
}

/// A provider that a model name can refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSpec {
    /// The part before the slash.
    pub name: String,
    /// The protocol that it speaks.
    pub protocol: Protocol,
    /// Its base URL; `None` for the vendor's.
    pub base_url: Option<String>,
    /// The source of its key.
    pub key: KeySource,
}

impl ProviderSpec {
    /// A provider with an OpenAI-compatible API.
    pub fn compatible(
        name: impl Into<String>,
        base_url: impl Into<String>,
        key: KeySource,
    ) -> Self {
        Self { name: name.into(), protocol: Protocol::OpenAi, base_url: Some(base_url.into()), key }
    }

    /// The endpoint with a resolved key.
    #[must_use]
    pub fn endpoint(&self, key: Option<Key>, timeout: Duration) -> Endpoint {
        Endpoint {
            provider: self.name.clone(),
            protocol: self.protocol,
            base_url: self.base_url.clone(),
            key,
            timeout,
            proxy: None,
        }
    }
}

/// The providers that a model name can refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Providers(Vec<ProviderSpec>);

impl Default for Providers {
    /// The built-in ones: `openai`, `anthropic`, `gemini` and `ollama`.
    fn default() -> Self {
        let vendor = |name: &str, protocol, variable: &str| ProviderSpec {
            name: name.to_owned(),
            protocol,
            base_url: None,
            key: KeySource::Variable(variable.to_owned()),
        };
        let ollama = "http://localhost:11434/v1";
        Self(vec![
            vendor("openai", Protocol::OpenAi, "OPENAI_API_KEY"),
            vendor("anthropic", Protocol::Anthropic, "ANTHROPIC_API_KEY"),
            vendor("gemini", Protocol::Gemini, "GEMINI_API_KEY"),
            ProviderSpec::compatible("ollama", ollama, KeySource::Nowhere),
        ])
    }
}

impl Providers {
    /// Adds a provider, or replaces the one of the same name.
    #[must_use]
    pub fn with(mut self, spec: ProviderSpec) -> Self {
        self.0.retain(|known| known.name != spec.name);
        self.0.push(spec);
        self
    }

    /// Finds a provider by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ProviderSpec> {
        self.0.iter().find(|known| known.name == name)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|known| known.name.as_str())
    }

    /// Parses what the user typed.
    pub fn parse(&self, typed: &str) -> Result<ModelName, BadModel> {
        let typed = typed.trim();
        if typed.is_empty() {
            return Err(BadModel::Empty);
        }
        if let Some(file) = script(typed) {
            return match file {
                "" => Err(BadModel::NoFile),
                file => Ok(ModelName::Script(PathBuf::from(file))),
            };
        }
        let Some((provider, model)) = typed.split_once('/') else {
            let hint = self.get(typed).map(|known| format!("{}/NAME", known.name));
            let hint = hint.or_else(|| vendor_of(typed).map(|vendor| format!("{vendor}/{typed}")));
            return Err(BadModel::NoProvider { typed: typed.to_owned(), hint });
        };
        if self.get(provider).is_none() {
            let nearest = self.nearest(provider).map(|name| format!("{name}/{model}"));
            let known = self.names().collect::<Vec<_>>().join(", ");
            return Err(BadModel::UnknownProvider {
                provider: provider.to_owned(),
                known,
                nearest,
            });
        }
        if model.is_empty() {
            return Err(BadModel::NoModel { provider: provider.to_owned() });
        }
        Ok(ModelName::Remote { provider: provider.to_owned(), model: model.to_owned() })
    }

    fn nearest(&self, typed: &str) -> Option<&str> {
        stepwell::sessions::nearest(typed, self.names())
    }
}

/// The provider of a bare model name, guessed from the vendors' naming.
fn vendor_of(model: &str) -> Option<&'static str> {
    let vendors = [
        ("gpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("claude", "anthropic"),
        ("gemini", "gemini"),
        ("llama", "ollama"),
        ("qwen", "ollama"),
    ];
    vendors.iter().find(|(start, _)| model.starts_with(start)).map(|(_, vendor)| *vendor)
}

/// Why a text does not name a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadModel {
    /// The text is empty.
    #[error("a model name has the form provider/name, for example openai/gpt-4.1")]
    Empty,
    /// `script:` without a file.
    #[error("script: needs a file, for example script:answers.yaml")]
    NoFile,
    /// A name without a provider.
    #[error("model {typed:?} has no provider{}", did_you_mean(.hint.as_deref()))]
    NoProvider {
        /// The text.
        typed: String,
        /// A suggestion.
        hint: Option<String>,
    },
    /// The provider is unknown.
    #[error("unknown provider {provider:?}{} (expected one of: {known})", did_you_mean(.nearest.as_deref()))]
    UnknownProvider {
        /// The part before the slash.
        provider: String,
        /// The known providers.
        known: String,
        /// The most similar provider.
        nearest: Option<String>,
    },
    /// A provider without a model.
    #[error("which model of {provider}? Name it as {provider}/NAME")]
    NoModel {
        /// The provider.
        provider: String,
    },
}

fn did_you_mean(hint: Option<&str>) -> String {
    hint.map(|hint| format!("; did you mean {hint}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(typed: &str) -> Result<ModelName, String> {
        Providers::default().parse(typed).map_err(|error| error.to_string())
    }

    #[test]
    fn a_model_is_split_at_the_first_slash() {
        let remote = |provider: &str, model: &str| {
            Ok(ModelName::Remote { provider: provider.to_owned(), model: model.to_owned() })
        };
        assert_eq!(read("openai/gpt-4.1"), remote("openai", "gpt-4.1"));
        assert_eq!(read(" ollama/library/llama3:8b "), remote("ollama", "library/llama3:8b"));
        assert_eq!(read("script:a/b.yaml"), Ok(ModelName::Script(PathBuf::from("a/b.yaml"))));
    }

    #[test]
    fn a_wrong_name_says_what_was_perhaps_meant() {
        let told = |typed| read(typed).unwrap_err();
        assert_eq!(
            told("antropic/claude-sonnet-4"),
            "unknown provider \"antropic\"; did you mean anthropic/claude-sonnet-4? \
             (expected one of: openai, anthropic, gemini, ollama)"
        );
        assert!(!told("zzz/x").contains("did you mean"));
        assert_eq!(
            told("gpt-4.1"),
            "model \"gpt-4.1\" has no provider; did you mean openai/gpt-4.1?"
        );
        assert!(told("ollama").contains("ollama/NAME"));
        assert!(told("openai/").contains("openai/NAME"));
        assert!(told("script:").contains("needs a file"));
        assert!(told("  ").contains("provider/name"));
    }

    #[test]
    fn a_provider_of_the_users_own_is_known_too() {
        let key = KeySource::Command("pass show mine".to_owned());
        let mine = ProviderSpec::compatible("mine", "http://localhost:8000/v1", key);
        let providers = Providers::default().with(mine.clone());
        let named = providers.parse("mine/qwen").unwrap();
        assert_eq!(named.to_string(), "mine/qwen");
        assert_eq!(providers.get("mine"), Some(&mine));
        let replaced = providers.with(ProviderSpec { base_url: None, ..mine });
        assert_eq!(replaced.names().filter(|name| *name == "mine").count(), 1);
    }
}
