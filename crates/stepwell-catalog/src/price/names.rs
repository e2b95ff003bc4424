//! Translates other programs' model names into the list's: with a region or vendor as prefix, a
//! version or date as suffix, another name of the provider, or no provider.

/// A possible name in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) provider: String,
    pub(super) model: String,
}

/// Other names of providers, each with the list's.
const PROVIDERS: &[(&str, &str)] = &[
    ("google", "gemini"),
    ("google_ai", "gemini"),
    ("google_vertex", "gemini"),
    ("vertex", "gemini"),
    ("vertex_ai", "gemini"),
    ("gcp_vertex_ai", "gemini"),
    ("amazon_bedrock", "bedrock"),
    ("aws_bedrock", "bedrock"),
    ("azure_openai", "azure"),
    ("claude", "anthropic"),
    ("codex", "openai"),
    ("openai_responses", "openai"),
    ("openai_compatible", "openai"),
    ("x_ai", "xai"),
    ("moonshot", "moonshotai"),
    ("z_ai", "zai"),
    ("mistralai", "mistral"),
];

/// The vendors of model names with these prefixes.
const VENDORS: &[(&str, &str)] = &[
    ("claude-", "anthropic"),
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("codex-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini-", "gemini"),
    ("grok-", "xai"),
    ("deepseek-", "deepseek"),
    ("mistral-", "mistral"),
    ("codestral", "mistral"),
    ("kimi-", "moonshotai"),
    ("glm-", "zai"),
];

/// Cloud regions in front of a model's name.
const REGIONS: [&str; 8] = ["us.", "us-gov.", "eu.", "apac.", "ap.", "jp.", "au.", "global."];

/// Vendors as clouds write them, in front of a model's name.
const IN_FRONT: [&str; 4] = ["anthropic.", "openai.", "mistral.", "deepseek."];

/// The possible names in the list for another program's model, the likeliest first.
pub(super) fn names(provider: &str, model: &str) -> Vec<Name> {
    let mut all: Vec<Name> = Vec::new();
    let mut add = |provider: &str, model: &str| {
        let name = Name { provider: provider.to_owned(), model: model.to_owned() };
        if !provider.is_empty() && !model.is_empty() && !all.contains(&name) {
            all.push(name);
        }
    };
    let whose = word_for(provider);
    let lower = model.to_lowercase();
    add(&whose, model);
    add(&whose, &lower);
    let (front, rest) = lower.split_once('/').unwrap_or(("", &lower));
    add(&word_for(front), rest);
    // The part after the last slash is the model, whatever gateway passes it on.
    let bare = bare(lower.rsplit('/').next().unwrap_or(&lower));
    add(&whose, bare);
    if let Some(vendor) = vendor(bare) {
        add(vendor, bare);
    }
    all
}

/// The vendor of a model, by the beginning of its name.
pub(super) fn vendor(model: &str) -> Option<&'static str> {
    VENDORS.iter().find(|(front, _)| model.starts_with(front)).map(|(_, vendor)| *vendor)
}

/// The list's name of a provider.
fn word_for(provider: &str) -> String {
    let word = provider.to_lowercase();
    let plain = word.replace('-', "_");
    PROVIDERS.iter().find(|(other, _)| *other == plain).map_or(word, |(_, own)| (*own).to_owned())
}

/// A model's name without a cloud's prefixes and suffixes.
fn bare(model: &str) -> &str {
    let after = |text, fronts: &[&str]| {
        fronts.iter().find_map(|front| str::strip_prefix(text, front)).unwrap_or(text)
    };
    let model = after(after(model, &REGIONS), &IN_FRONT);
    // Suffixes such as `:0`, `:free` and `:latest`.
    let model = model.split_once(':').map_or(model, |(front, _)| front);
    let version = model.rsplit_once("-v");
    let is_version = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    version.filter(|(_, version)| is_version(version)).map_or(model, |(front, _)| front)
}

#[cfg(test)]
mod tests {
    use crate::price::Prices;
    use stepwell::model::{Spent, Usage};

    #[test]
    fn models_of_other_programs_are_found_in_the_list() {
        let prices = Prices::default();
        let usage = Usage { input: 1_000_000, output: 0, ..Usage::default() };
        let mut spent = Spent::default();
        spent.count(usage, None);
        let input = |provider: &str, model: &str| {
            prices.estimate(provider, model, &spent).map(|cost| cost.to_string())
        };
        let sonnet = input("anthropic", "claude-sonnet-4");
        assert_eq!(sonnet.as_deref(), Some("3"));
        for (provider, model) in [
            ("anthropic", "claude-sonnet-4-20250514"),
            ("", "claude-sonnet-4-20250514"),
            ("anthropic", "anthropic/claude-sonnet-4"),
            ("", "anthropic/claude-sonnet-4"),
            ("bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0"),
            ("aws_bedrock", "global.anthropic.claude-sonnet-4-20250514-v1:0"),
            ("gcp_vertex_ai", "claude-sonnet-4@20250514"),
            ("litellm", "claude-sonnet-4"),
            ("Anthropic", "Claude-Sonnet-4"),
            ("openrouter", "anthropic/claude-sonnet-4"),
        ] {
            assert_eq!(input(provider, model), sonnet, "{provider} {model}");
        }
        assert_eq!(input("google", "gemini-2.5-pro"), input("gemini", "gemini-2.5-pro"));
        assert!(input("google", "gemini-2.5-pro").is_some());
        assert_eq!(input("", "gpt-4.1-2025-04-14"), input("openai", "gpt-4.1"));
        for (provider, model) in
            [("", ""), ("ollama", "llama3"), ("", "my-own-model"), ("local", "sonnet")]
        {
            assert_eq!(input(provider, model), None, "{provider} {model}");
        }
        // Real calls are priced by their exact name; nothing is guessed.
        assert_eq!(prices.cost("litellm", "claude-sonnet-4", &usage), None);
    }
}
