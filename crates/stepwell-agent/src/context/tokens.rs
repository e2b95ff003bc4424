//! Token counts: exact where the vocabulary is public, by measured ratios elsewhere, corrected by
//! the provider's own reports.

use stepwell::Message;
use stepwell::model::{Opaque, Part};

use crate::provider::ToolSpec;

/// Models with the same tokenizer, or nearly the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// OpenAI's since GPT-4o.
    O200k,
    /// OpenAI's GPT-4 and GPT-3.5.
    Cl100k,
    /// Anthropic's.
    Claude,
    /// Google's.
    Gemini,
    /// All other models.
    Other,
}

impl Family {
    /// The family of a provider's model. A model keeps its vendor's family at other providers:
    /// `openrouter/openai/gpt-4o`.
    #[must_use]
    pub fn of(provider: &str, model: &str) -> Self {
        let base = model.rsplit('/').next().unwrap_or(model).to_lowercase();
        let begins = |stems: &[&str]| stems.iter().any(|stem| base.starts_with(stem));
        let newer = ["gpt-4o", "gpt-4.", "gpt-5", "gpt-6", "gpt-oss", "chatgpt", "o1", "o3", "o4"];
        if begins(&newer) {
            Self::O200k
        } else if begins(&["gpt-4", "gpt-3.5"]) {
            Self::Cl100k
        } else if base.contains("claude") || provider == "anthropic" {
            Self::Claude
        } else if begins(&["gemini", "gemma"]) || provider == "gemini" {
            Self::Gemini
        } else if provider == "openai" {
            Self::O200k
        } else {
            Self::Other
        }
    }

    /// Tokens per hundred that [`by_ratio`] counts. Anthropic documents 3.5 English characters a
    /// token, Google 4, as in OpenAI's newer vocabulary; smaller vocabularies need more tokens for
    /// code and other scripts.
    const fn percent(self) -> u64 {
        match self {
            Self::O200k | Self::Gemini => 100,
            Self::Cl100k => 110,
            Self::Claude => 120,
            Self::Other => 115,
        }
    }
}

/// Overhead of each message, call and result in a request.
const FRAME: u64 = 4;

/// Roughly what vendors count for a picture.
const PICTURE: u64 = 1_500;

/// Bytes per token of a provider's opaque data, which is mostly base64.
const OPAQUE: usize = 3;

/// Counts tokens for a family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(pub Family);

impl Counter {
    /// Tokens of a text.
    #[must_use]
    pub fn text(self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        match vocabulary::count(self.0, text) {
            Some(tokens) => tokens,
            None => (by_ratio(text) * self.0.percent()).div_ceil(100),
        }
    }

    /// Tokens of a message.
    #[must_use]
    pub fn message(self, message: &Message) -> u64 {
        FRAME + message.parts.iter().map(|part| self.part(part)).sum::<u64>()
    }

    /// Tokens of one part of a message.
    #[must_use]
    pub fn part(self, part: &Part) -> u64 {
        let own = |opaque: &Option<Opaque>| {
            opaque.as_ref().map_or(0, |opaque| count(opaque.data.len() / OPAQUE))
        };
        match part {
            Part::Text(text) | Part::Thinking(text) => self.text(&text.text) + own(&text.opaque),
            Part::Image(_) => PICTURE,
            Part::ToolCall(call) => {
                FRAME
                    + self.text(&call.id)
                    + self.text(&call.name)
                    + self.text(&call.arguments)
                    + own(&call.opaque)
            }
            Part::ToolResult(result) => {
                let pictures = PICTURE * count(result.images.len());
                FRAME + self.text(&result.call_id) + self.text(&result.text) + pictures
            }
        }
    }

    /// Tokens of the tool descriptions.
    #[must_use]
    pub fn tools(self, tools: &[ToolSpec]) -> u64 {
        let tool = |tool: &ToolSpec| {
            let parameters = tool.parameters.to_string();
            FRAME
                + [&tool.name, &tool.description, &parameters]
                    .map(|it| self.text(it))
                    .iter()
                    .sum::<u64>()
        };
        tools.iter().map(tool).sum()
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Bounds of the correction factor. A value outside of them has another cause than a wrong
/// estimate.
const FACTORS: std::ops::RangeInclusive<f64> = 0.1..=10.0;

/// The ratio between a provider's token counts and ours: an exponential moving average, learned
/// from its answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    factor: f64,
    alpha: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self::new(1.0, 0.3)
    }
}

impl Calibration {
    /// Starts with a factor that was learned before; `alpha` is the weight of each answer.
    #[must_use]
    pub fn new(factor: f64, alpha: f64) -> Self {
        let factor = if factor.is_finite() { factor } else { 1.0 };
        let alpha = if alpha.is_finite() { alpha.clamp(0.0, 1.0) } else { 0.0 };
        Self { factor: factor.clamp(*FACTORS.start(), *FACTORS.end()), alpha }
    }

    /// The correction factor.
    #[must_use]
    pub const fn factor(&self) -> f64 {
        self.factor
    }

    /// Learns from one answer. A reported count of zero is ignored.
    pub fn learn(&mut self, counted: u64, reported: u64) {
        if counted == 0 || reported == 0 {
            return;
        }
        let seen = (reported as f64 / counted as f64).clamp(*FACTORS.start(), *FACTORS.end());
        let factor = self.alpha * seen + (1.0 - self.alpha) * self.factor;
        self.factor = factor.clamp(*FACTORS.start(), *FACTORS.end());
    }

    /// The provider's count for our count.
    #[must_use]
    pub fn estimate(&self, counted: u64) -> u64 {
        (counted as f64 * self.factor).ceil() as u64
    }

    /// Our count for the provider's count, rounded so that the provider counts at most `tokens`.
    #[must_use]
    pub fn counted(&self, tokens: u64) -> u64 {
        (tokens as f64 / self.factor).floor() as u64
    }
}

/// The class of a character, which decides how it forms tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    Line,
    Mark,
    /// Letters of scripts with spaced words, other than Latin.
    Letter,
    /// Scripts in which each character is about a word.
    Wide,
    /// Everything else: symbols, pictures.
    Symbol,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            '\n' | '\r' => Self::Line,
            ' ' | '\t' => Self::Space,
            _ if c.is_ascii() => Self::Mark,
            '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' => {
                Self::Wide
            }
            '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}' => Self::Wide,
            _ if c.is_alphabetic() => Self::Letter,
            _ if c.is_whitespace() => Self::Space,
            _ => Self::Symbol,
        }
    }

    /// Hundredths of a token for a run of `run` characters of this class.
    fn cost(self, run: u64) -> u64 {
        match self {
            // A word is one token; a long one is several.
            Self::Lower => 88 + 100 * (run.saturating_sub(1) / 8),
            Self::Upper => 60 * run,
            Self::Digit => 100 * run.div_ceil(3),
            // A single space belongs to the word after it.
            Self::Space if run == 1 => 14,
            Self::Space => 100,
            Self::Line => 75,
            Self::Mark => 82 * run.div_ceil(2),
            Self::Letter => 100 + 100 * (run.saturating_sub(1) / 5),
            Self::Wide => 65 * run,
            Self::Symbol => 155 * run,
        }
    }
}

/// Counts tokens by runs of characters of one class. The weights were fitted to OpenAI's newer
/// vocabulary over prose, code, JSON, logs, base64 and six scripts; a test holds the error down.
fn by_ratio(text: &str) -> u64 {
    let mut hundredths = 0;
    let (mut class, mut run) = (None, 0);
    for c in text.chars() {
        let this = Some(Class::of(c));
        if this == class {
            run += 1;
            continue;
        }
        hundredths += class.map_or(0, |class: Class| class.cost(run));
        (class, run) = (this, 1);
    }
    hundredths += class.map_or(0, |class: Class| class.cost(run));
    u64::max(1, hundredths.div_ceil(100))
}

#[cfg(feature = "vocabularies")]
mod vocabulary {
    use super::Family;

    /// Counts by the family's vocabulary, if it is public. The first use of each unpacks it, which
    /// takes about a tenth of a second.
    pub(super) fn count(family: Family, text: &str) -> Option<u64> {
        let name = match family {
            Family::O200k => "o200k_base",
            Family::Cl100k => "cl100k_base",
            Family::Claude | Family::Gemini | Family::Other => return None,
        };
        let tokens = tiktoken::get_encoding(name)?.count(text);
        u64::try_from(tokens).ok()
    }
}

#[cfg(not(feature = "vocabularies"))]
mod vocabulary {
    use super::Family;

    /// This build has no vocabularies.
    pub(super) fn count(_: Family, _: &str) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of the kinds that agents deal with.
    fn samples() -> Vec<(&'static str, String)> {
        let many = |text: &str| text.repeat(40);
        let log =
            |n: u32| format!("2026-11-15T08:{n:02}:01.123456Z  INFO run::step: saved seq={n}\n");
        let row =
            |n: u32| format!("{{\"id\":{n},\"name\":\"user{n}\",\"path\":\"src/m_{n}.rs\"}},");
        vec![
            ("prose", include_str!("../../../../docs/format.md").to_owned()),
            ("code", include_str!("window.rs").to_owned()),
            ("log", (10..60).map(log).collect()),
            ("json", (10..60).map(row).collect()),
            ("base64", many("U3RlcHdlbGwga2VlcHMgZXZlcnkgQUktYWdlbnQgcnVuIGR1cmFibGU")),
            ("spanish", many("Antes de cambiar la base de datos hay que probarla. ")),
            ("russian", many("Сначала проверьте схему, затем запустите все тесты. ")),
            ("arabic", many("تحقق أولاً من المخطط ثم شغّل جميع الاختبارات. ")),
            ("chinese", many("这是一个关于数据库迁移的文档，我们需要先检查模式。")),
            ("japanese", many("まずスキーマを確認し、すべてのテストを実行してください。")),
        ]
    }

    #[cfg(feature = "vocabularies")]
    #[test]
    fn ratios_are_within_three_tenths_of_the_vocabulary_they_were_fitted_to() {
        for (name, text) in samples() {
            let exact = Counter(Family::O200k).text(&text);
            let off = by_ratio(&text) as f64 / exact as f64;
            assert!((0.7..1.3).contains(&off), "{name}: {off:.2} of {exact}");
        }
    }

    #[cfg(feature = "vocabularies")]
    #[test]
    fn a_public_vocabulary_counts_exactly() {
        // As OpenAI's own tokenizer counts them.
        assert_eq!(Counter(Family::O200k).text("hello world"), 2);
        assert_eq!(Counter(Family::Cl100k).text("tiktoken is great!"), 6);
        assert_eq!(Counter(Family::O200k).text(""), 0);
    }

    #[test]
    fn every_family_counts_every_text_as_something() {
        for family in [Family::O200k, Family::Cl100k, Family::Claude, Family::Gemini, Family::Other]
        {
            for (name, text) in samples() {
                let tokens = Counter(family).text(&text);
                let bytes = u64::try_from(text.len()).unwrap();
                assert!(tokens > bytes / 8 && tokens < bytes, "{family:?} {name}: {tokens}");
            }
            assert_eq!(Counter(family).text(""), 0);
            assert!(Counter(family).text(" ") > 0);
        }
    }

    #[test]
    fn models_find_their_family_wherever_they_are_served() {
        let of = |name: &str| {
            let (provider, model) = name.split_once('/').unwrap();
            Family::of(provider, model)
        };
        for name in ["openai/gpt-4o-mini", "openai/gpt-4.1", "openai/o3", "router/openai/gpt-5"] {
            assert_eq!(of(name), Family::O200k, "{name}");
        }
        assert_eq!(of("openai/gpt-4-turbo"), Family::Cl100k);
        assert_eq!(of("openai/something-new"), Family::O200k);
        assert_eq!(of("bedrock/anthropic.claude-sonnet-4"), Family::Claude);
        assert_eq!(of("gemini/gemini-2.5-pro"), Family::Gemini);
        assert_eq!(of("ollama/llama3:8b"), Family::Other);
    }

    #[test]
    fn a_calibration_comes_near_to_what_is_reported_and_stays_in_its_bounds() {
        let mut calibration = Calibration::new(1.0, 0.3);
        calibration.learn(1_000, 1_500);
        assert!((calibration.factor() - 1.15).abs() < 1e-9);
        for _ in 0..30 {
            calibration.learn(1_000, 1_500);
        }
        assert!((calibration.factor() - 1.5).abs() < 0.001);
        assert_eq!(calibration.estimate(1_000), 1_500);
        assert!(calibration.estimate(calibration.counted(12_000)) <= 12_000);
        for _ in 0..50 {
            calibration.learn(1, u64::MAX);
        }
        assert!(calibration.factor() <= 10.0);
        for _ in 0..50 {
            calibration.learn(u64::MAX, 1);
        }
        assert!(calibration.factor() >= 0.1);
        let before = calibration;
        calibration.learn(100, 0);
        calibration.learn(0, 100);
        assert_eq!(calibration, before);
        assert_eq!(Calibration::new(f64::NAN, 0.3).factor(), 1.0);
        assert_eq!(Calibration::new(99.0, 0.3).factor(), 10.0);
    }
}
