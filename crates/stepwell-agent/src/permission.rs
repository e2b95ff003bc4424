//! Permission rules: which calls run without an approval.

mod covered;
mod glob;
mod mention;
mod programs;
mod sed;
mod shell;

use serde_json::Value;
pub use stepwell::model::Mode;
use stepwell::model::{Answer, Effect, ToolCall};

use self::covered::command_covered;
use self::glob::is_like;
use crate::tool::guard::needs_question;

/// The calls that a rule is about: those of a tool, or those of its calls whose command or path
/// matches a pattern (`*` matches anything). Written `run_command` or `run_command(cargo test*)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    pattern: Option<String>,
}

/// Characters that make a command line more than one command, or make it read or write files. `*`
/// never matches them, or `cargo test*` would allow `cargo test; rm -rf ~`.
const MORE_THAN_ONE: [char; 13] =
    [';', '&', '|', '<', '>', '$', '`', '\n', '\r', '(', ')', '{', '}'];

/// May a rule cover this call? A file that other programs execute needs an approval every time.
#[must_use]
pub fn may_be_remembered(call: &ToolCall) -> bool {
    !needs_question(&call.name, &call.arguments)
}

/// The tools that run a command line.
const RUN_COMMAND: &str = "run_command";
const TRY_PROGRAM: &str = "try_program";

/// The longest pattern that is offered to a person.
const LONGEST_LIKE: usize = 40;

impl Rule {
    /// A rule for a tool, or for its calls that match a pattern.
    pub fn new(tool: impl Into<String>, pattern: Option<String>) -> Self {
        Self { tool: tool.into(), pattern }
    }

    /// Parses a recorded rule.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let like = text.strip_suffix(')').and_then(|text| text.split_once('('));
        match like {
            Some((tool, pattern)) => Self::new(tool, Some(pattern.to_owned())),
            None => Self::new(text, None),
        }
    }

    /// A pattern for similar calls: the first words of the command, or the folder of the path. None
    /// if the pattern would be long or would not match the call itself.
    #[must_use]
    pub fn like(call: &ToolCall) -> Option<String> {
        let target = target(call)?;
        let words: Vec<&str> = target.split_whitespace().take(2).collect();
        let like = match words.as_slice() {
            // A path is similar to every path in its folder.
            [path] if path.contains('/') => {
                format!("{}/*", path.rsplit_once('/').map_or("", |(folder, _)| folder))
            }
            _ => format!("{}*", words.join(" ")),
        };
        let fits = |like: &String| Self::new(call.name.as_str(), Some(like.clone())).fits(call);
        Some(like).filter(|like| like.len() <= LONGEST_LIKE && fits(like))
    }

    /// Does the rule match this call?
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

/// How a rule that denies covers a call, ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Covers {
    /// The call is not covered.
    No,
    /// The command line could not be parsed, or its program is unknown: a person decides.
    Perhaps,
    /// The call is covered.
    Yes,
}

impl Rule {
    /// Does this rule cover a call, if it denies? Rules that allow match narrowly; rules that deny
    /// match widely: a command line with one denied part, a program that runs the denied command,
    /// and every spelling of a path.
    #[must_use]
    pub fn covers(&self, call: &ToolCall) -> Covers {
        // Both tools run a command line.
        let same = self.tool == call.name
            || (self.tool == RUN_COMMAND && call.name == TRY_PROGRAM)
            || (self.tool == TRY_PROGRAM && call.name == RUN_COMMAND && self.pattern.is_some());
        if !same {
            return Covers::No;
        }
        let Some(pattern) = &self.pattern else { return Covers::Yes };
        let Some(target) = target(call) else { return Covers::No };
        let is_command = named(call, "command").is_some();
        match is_like(pattern, &target) {
            true => Covers::Yes,
            false if is_command => command_covered(pattern, &target),
            false => path_covered(pattern, &target),
        }
    }
}

/// Does a normalised path match a pattern?
fn path_covered(pattern: &str, path: &str) -> Covers {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." if parts.pop().is_none() => return Covers::Perhaps,
            ".." => {}
            part => parts.push(part),
        }
    }
    if is_like(pattern, &parts.join("/")) {
        return Covers::Yes;
    }
    // The workspace's own path is unknown here, so every suffix counts.
    let below = |n: usize| is_like(pattern, &parts[n..].join("/"));
    match path.starts_with('/') && (0..parts.len()).any(below) {
        true => Covers::Perhaps,
        false => Covers::No,
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

/// What a line typed at an approval means.
#[derive(Clone, Debug, PartialEq)]
pub enum TypedChoice {
    /// An answer, and a rule for later calls.
    Answer(Answer, Option<Rule>),
    /// The typed pattern does not match the call in question.
    DoesNotFit(String),
    /// Not an answer.
    Unclear,
}

impl TypedChoice {
    /// Parses `y` alone, `n` with an optional reason, and `a` or `v`, each alone or with a pattern
    /// that matches the call. Other text never allows anything, whatever its first word is. A rule
    /// is only made if the call is known.
    #[must_use]
    pub fn read(line: &str, call: Option<&ToolCall>) -> Self {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let reason = Some(rest.to_owned()).filter(|reason| !reason.is_empty());
        let deny = |reason, never| Self::Answer(Answer::Deny { reason, never }, None);
        match (word.to_lowercase().as_str(), call) {
            ("y" | "yes", _) if rest.is_empty() => Self::Answer(Answer::ALLOW_ONCE, None),
            ("n" | "no", _) => deny(reason, false),
            (_, None) => Self::Unclear,
            ("a" | "always", _) if rest.is_empty() => Self::Answer(Answer::read("always"), None),
            ("v" | "never", _) if rest.is_empty() => deny(None, true),
            (word @ ("a" | "always" | "v" | "never"), Some(call)) => {
                let rule = Rule::new(call.name.as_str(), Some(rest.to_owned()));
                let about = match word.starts_with('a') {
                    true => rule.fits(call),
                    false => rule.covers(call) != Covers::No,
                };
                if !about {
                    return Self::DoesNotFit(rest.to_owned());
                }
                let once = match word.starts_with('a') {
                    true => Answer::ALLOW_ONCE,
                    false => Answer::Deny { reason: None, never: false },
                };
                Self::Answer(once, Some(rule))
            }
            _ => Self::Unclear,
        }
    }
}

/// The text that patterns match: the call's command or path.
#[must_use]
pub fn target(call: &ToolCall) -> Option<String> {
    ["command", "path", "url", "name"].iter().find_map(|name| named(call, name))
}

fn named(call: &ToolCall, name: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    Some(arguments.get(name)?.as_str()?.trim().to_owned())
}

/// Whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs without a question.
    Allow,
    /// It does not run.
    Deny,
    /// A person decides.
    Ask,
}

/// Decides from the mode, the call's effect and the user's rule for it.
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
        // A command that the user typed in full is allowed in full.
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

    #[test]
    fn a_path_that_is_never_allowed_is_not_in_another_spelling_either() {
        let arguments = |path: &str| serde_json::json!({ "path": path }).to_string();
        let rule = Rule::parse("write_file(docs/*)");
        for (path, covers) in [
            ("docs/a.md", Covers::Yes),
            ("./docs//a.md", Covers::Yes),
            ("src/../docs/a.md", Covers::Yes),
            ("/home/ann/work/docs/a.md", Covers::Perhaps),
            ("../work/docs/a.md", Covers::Perhaps),
            ("src/docs.rs", Covers::No),
        ] {
            let call =
                ToolCall { name: "write_file".to_owned(), arguments: arguments(path), ..runs("") };
            assert_eq!(rule.covers(&call), covers, "{path}");
        }
        // A rule may be made from a call that matches it.
        let call = runs("rm three; true");
        let typed = TypedChoice::read("v rm*", Some(&call));
        assert!(matches!(typed, TypedChoice::Answer(Answer::Deny { .. }, Some(_))), "{typed:?}");
        let typed = TypedChoice::read("a rm*", Some(&call));
        assert_eq!(typed, TypedChoice::DoesNotFit("rm*".to_owned()));
    }

    #[test]
    fn a_rule_about_commands_is_about_both_tools_that_run_them() {
        let tries = ToolCall { name: "try_program".to_owned(), ..runs("rm x") };
        for rule in ["run_command(rm*)", "try_program(rm*)", "run_command"] {
            assert_eq!(Rule::parse(rule).covers(&tries), Covers::Yes, "{rule}");
        }
        assert_eq!(Rule::parse("try_program(rm*)").covers(&runs("rm x")), Covers::Yes);
        // A rule about all of try_program leaves run_command alone.
        assert_eq!(Rule::parse("try_program").covers(&runs("rm x")), Covers::No);
        assert_eq!(Rule::parse("write_file(rm*)").covers(&runs("rm x")), Covers::No);
    }

    #[test]
    fn a_line_allows_denies_or_makes_a_rule_that_fits_its_call() {
        let call = runs("cargo test --all");
        let read = |line: &str| TypedChoice::read(line, Some(&call));
        assert_eq!(read("Y"), TypedChoice::Answer(Answer::ALLOW_ONCE, None));
        let no = Answer::Deny { reason: Some("too slow".to_owned()), never: false };
        assert_eq!(read("n too slow"), TypedChoice::Answer(no, None));
        let rule = Rule::parse("run_command(cargo test*)");
        assert_eq!(read("a cargo test*"), TypedChoice::Answer(Answer::ALLOW_ONCE, Some(rule)));
        assert_eq!(read("a rm*"), TypedChoice::DoesNotFit("rm*".to_owned()));
        assert_eq!(read("perhaps"), TypedChoice::Unclear);
        // Words never allow anything, whatever the first one is.
        for sentence in ["yes but use git rm", "y, with git rm", "y git rm"] {
            assert_eq!(read(sentence), TypedChoice::Unclear, "{sentence}");
        }
        assert_eq!(
            read("a git rm would do"),
            TypedChoice::DoesNotFit("git rm would do".to_owned())
        );
        assert_eq!(TypedChoice::read("a", None), TypedChoice::Unclear);
    }

    #[test]
    fn a_pattern_is_offered_for_a_command_and_for_a_folder() {
        assert_eq!(Rule::like(&runs("cargo test --all")).as_deref(), Some("cargo test*"));
        let arguments = r#"{"path": "docs/a/b.md"}"#.to_owned();
        let reads = ToolCall { name: "read_file".to_owned(), arguments, ..runs("") };
        assert_eq!(Rule::like(&reads).as_deref(), Some("docs/a/*"));
        // A pattern that does not match the call in question is useless.
        assert_eq!(Rule::like(&runs("cargo test; rm -rf ~")), None);
    }
}
