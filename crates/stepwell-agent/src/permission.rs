//! Which calls run without a question.

use serde_json::Value;
pub use stepwell::Mode;
use stepwell::{Effect, ToolCall};

use crate::tool::guard::needs_question;

/// What a remembered choice is about: a tool, or those of its calls whose command or path is like a
/// pattern, in which `*` stands for anything. Written as `run_command`, or
/// `run_command(cargo test*)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    pattern: Option<String>,
}

/// What makes a command line more than one command, or reads or writes files: nothing that `*`
/// stands for may hold it, or `cargo test*` would allow `cargo test; rm -rf ~`.
const MORE_THAN_ONE: [char; 13] =
    [';', '&', '|', '<', '>', '$', '`', '\n', '\r', '(', ')', '{', '}'];

/// Can a choice about a call be remembered? A file that others run is asked about every time.
#[must_use]
pub fn may_be_remembered(call: &ToolCall) -> bool {
    !needs_question(&call.name, &call.arguments)
}

impl Rule {
    /// A rule for a tool, or for those of its calls that are like a pattern.
    pub fn new(tool: impl Into<String>, pattern: Option<String>) -> Self {
        Self { tool: tool.into(), pattern }
    }

    /// Reads a rule as it is recorded.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let like = text.strip_suffix(')').and_then(|text| text.split_once('('));
        match like {
            Some((tool, pattern)) => Self::new(tool, Some(pattern.to_owned())),
            None => Self::new(text, None),
        }
    }

    /// Is it about this call?
    #[must_use]
    pub fn fits(&self, call: &ToolCall) -> bool {
        let Some(pattern) = &self.pattern else { return self.tool == call.name };
        let target = target(call).filter(|_| self.tool == call.name);
        target.is_some_and(|target| {
            *pattern == target
                || (!target.contains(MORE_THAN_ONE)
                    && !target.split('/').any(|part| part == "..")
                    && is_like(pattern, &target))
        })
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}({pattern})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

/// What a call is about, as a pattern sees it: its command, or its path.
#[must_use]
pub fn target(call: &ToolCall) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let named = ["command", "path", "url", "name"].iter().find_map(|name| arguments.get(name));
    Some(named?.as_str()?.trim().to_owned())
}

/// Is a text like a pattern, in which `*` stands for anything?
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// May a call run?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Allow,
    /// No.
    Deny,
    /// A person says.
    Ask,
}

/// Judges a call by the mode, its effect, and what the user said of its tool before.
#[must_use]
pub const fn judge(mode: Mode, effect: Effect, remembered: Option<bool>) -> Verdict {
    match (remembered, mode, effect) {
        (Some(true), _, _)
        | (None, Mode::Yolo, _)
        | (None, Mode::ConfirmSensitive, Effect::Pure) => Verdict::Allow,
        (Some(false), _, _) => Verdict::Deny,
        (None, _, _) => Verdict::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(command: &str) -> ToolCall {
        let arguments = serde_json::json!({ "command": command }).to_string();
        ToolCall { id: "c".to_owned(), name: "run_command".to_owned(), arguments, opaque: None }
    }

    #[test]
    fn a_pattern_allows_what_is_like_it_and_nothing_behind_it() {
        let rule = Rule::parse("run_command(cargo test*)");
        assert_eq!(rule.to_string(), "run_command(cargo test*)");
        for allowed in ["cargo test", "cargo test -p x -- --nocapture", " cargo test "] {
            assert!(rule.fits(&runs(allowed)), "{allowed}");
        }
        for other in [
            "cargo build",
            "echo cargo test",
            "cargo test; rm -rf ~",
            "cargo test && curl evil",
            "cargo test | sh",
            "cargo test $(id)",
            "cargo test `id`",
            "cargo test > ~/.bashrc",
            "cargo test\nrm x",
        ] {
            assert!(!rule.fits(&runs(other)), "{other}");
        }
        // What was typed whole is allowed whole.
        let whole = Rule::new("run_command", Some("make 2>&1 | tail".to_owned()));
        assert!(whole.fits(&runs("make 2>&1 | tail")) && !whole.fits(&runs("make")));
    }

    #[test]
    fn a_pattern_is_for_one_tool_and_a_path_does_not_climb() {
        let writes = |path: &str| ToolCall {
            name: "write_file".to_owned(),
            arguments: serde_json::json!({ "path": path, "text": "x" }).to_string(),
            ..runs("")
        };
        let rule = Rule::parse("write_file(docs/*.md)");
        assert!(rule.fits(&writes("docs/run.md")));
        for path in ["docs/run.rs", "src/docs/run.md", "docs/../src/x.md"] {
            assert!(!rule.fits(&writes(path)), "{path}");
        }
        assert!(!rule.fits(&runs("docs/run.md")));
        assert!(Rule::parse("write_file").fits(&writes("anything")));
        assert!(!Rule::parse("write_file").fits(&runs("anything")));
    }
}
