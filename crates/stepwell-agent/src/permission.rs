//! Which calls run without a question.

use serde_json::Value;
pub use stepwell::Mode;
use stepwell::{Answer, Effect, ToolCall};

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

/// How long a pattern gets that is offered to a person.
const LONGEST_LIKE: usize = 40;

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

    /// A pattern for calls that are like one: the front of its command, or the folder of its path;
    /// none, if it would be long or not fit the call itself.
    #[must_use]
    pub fn like(call: &ToolCall) -> Option<String> {
        let target = target(call)?;
        let words: Vec<&str> = target.split_whitespace().take(2).collect();
        let like = match words.as_slice() {
            // A path has no words: what lies in its folder is like it.
            [path] if path.contains('/') => {
                format!("{}/*", path.rsplit_once('/').map_or("", |(folder, _)| folder))
            }
            _ => format!("{}*", words.join(" ")),
        };
        let fits = |like: &String| Self::new(call.name.as_str(), Some(like.clone())).fits(call);
        Some(like).filter(|like| like.len() <= LONGEST_LIKE && fits(like))
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

/// Does a rule that forbids cover a call?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Covers {
    /// The call is not covered.
    No,
    /// It cannot be told from the call's text: a person says.
    Perhaps,
    /// The call is covered.
    Yes,
}

impl Rule {
    /// Does the rule cover a call, if it forbids? What allows is read narrowly, and what forbids
    /// widely: a command of which one part is forbidden is, and so is a path however it is written.
    #[must_use]
    pub fn covers(&self, call: &ToolCall) -> Covers {
        if self.tool != call.name {
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

/// Words before a command that run it.
const WRAPPERS: [&str; 19] = [
    "sudo", "doas", "env", "command", "exec", "nohup", "nice", "time", "xargs", "builtin", "if",
    "then", "else", "elif", "do", "while", "until", "!", "setsid",
];

/// Words that run what their arguments say.
const RUNNERS: [&str; 7] = ["eval", "sh", "bash", "zsh", "dash", "source", "."];

/// Is a part of a command line like a pattern?
fn command_covered(pattern: &str, line: &str) -> Covers {
    let parts = line.split(MORE_THAN_ONE).map(|part| part_covered(pattern, part));
    // What a quoted text holds may be a command, and may be just a text.
    let quoted =
        line.split(['"', '\'', '`']).skip(1).map(|text| match is_like(pattern, text.trim()) {
            true => Covers::Perhaps,
            false => Covers::No,
        });
    // A command whose name a variable holds.
    let hidden = line.trim_start_matches(['"', ' ']).starts_with('$')
        || [";", "&", "|", "\n"].iter().any(|between| {
            let mut rest = line.split(between).skip(1);
            rest.any(|part| part.trim_start_matches(['"', ' ']).starts_with('$'))
        });
    let hidden = if hidden { Covers::Perhaps } else { Covers::No };
    parts.chain(quoted).chain([hidden]).max().unwrap_or(Covers::No)
}

/// Is one command like a pattern? Its name may be quoted, have a path, or stand behind a word that
/// runs it.
fn part_covered(pattern: &str, part: &str) -> Covers {
    let plain = part.replace(['"', '\'', '\\'], "");
    let mut words: Vec<&str> = plain.split_whitespace().collect();
    let passes = |word: &str| WRAPPERS.contains(&word) || word.contains('=');
    let mut wrapped = false;
    loop {
        let Some(first) = words.first() else { return Covers::No };
        let name = first.rsplit('/').next().unwrap_or(first);
        let rest = [&[name], &words[1..]].concat().join(" ");
        if is_like(pattern, &words.join(" ")) || is_like(pattern, &rest) {
            return Covers::Yes;
        }
        match name {
            _ if RUNNERS.contains(&name) => return Covers::Perhaps,
            _ if passes(name) || (wrapped && name.starts_with('-')) => words.remove(0),
            _ => return Covers::No,
        };
        wrapped = true;
    }
}

/// Is a path, written in the shortest way, like a pattern?
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
    // Where the workspace lies is not known here.
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

/// What a line means that a person typed about a call.
#[derive(Clone, Debug, PartialEq)]
pub enum TypedChoice {
    /// An answer, and a rule for later calls.
    Answer(Answer, Option<Rule>),
    /// A rule that does not fit the call that is asked about.
    DoesNotFit(String),
    /// Nothing.
    Unclear,
}

impl TypedChoice {
    /// Reads a line: `y`, `n` and why, `a` or `v`, each alone or with a pattern. Only what is known
    /// of a call can be remembered.
    #[must_use]
    pub fn read(line: &str, call: Option<&ToolCall>) -> Self {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let reason = Some(rest.to_owned()).filter(|reason| !reason.is_empty());
        let deny = |reason, never| Self::Answer(Answer::Deny { reason, never }, None);
        match (word.to_lowercase().as_str(), call) {
            ("y" | "yes", _) => Self::Answer(Answer::ALLOW_ONCE, None),
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

/// What a call is about, as a pattern sees it: its command, or its path.
#[must_use]
pub fn target(call: &ToolCall) -> Option<String> {
    ["command", "path", "url", "name"].iter().find_map(|name| named(call, name))
}

/// One of a call's arguments.
fn named(call: &ToolCall, name: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    Some(arguments.get(name)?.as_str()?.trim().to_owned())
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
    /// It runs without a question.
    Allow,
    /// It does not run.
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

    #[test]
    fn what_is_never_allowed_is_not_as_a_part_of_something_else_either() {
        let rule = Rule::parse("run_command(rm*)");
        for (command, covers) in [
            ("rm two", Covers::Yes),
            ("rm three; true", Covers::Yes),
            ("true && rm three", Covers::Yes),
            ("rm \"$PWD/four\"", Covers::Yes),
            ("ls | xargs -0 rm", Covers::Yes),
            ("echo $(rm x)", Covers::Yes),
            ("echo `rm x`", Covers::Yes),
            ("cd a\nrm x", Covers::Yes),
            ("(rm x)", Covers::Yes),
            ("/bin/rm x", Covers::Yes),
            ("\\rm x", Covers::Yes),
            ("\"rm\" x > y", Covers::Yes),
            ("FORCE=1 sudo -n rm x", Covers::Yes),
            ("if true; then rm x; fi", Covers::Yes),
            ("bash -c 'rm x'", Covers::Perhaps),
            ("python -c 'x' && sh clean.sh", Covers::Perhaps),
            ("X=rm; $X four", Covers::Perhaps),
            ("git commit -m 'rm the old file'", Covers::Perhaps),
            ("git rm x", Covers::No),
            ("cargo test 2>&1 | tail -5", Covers::No),
            ("echo \"$HOME\"", Covers::No),
        ] {
            assert_eq!(rule.covers(&runs(command)), covers, "{command}");
        }
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
        // It can be said of what holds it.
        let call = runs("rm three; true");
        let typed = TypedChoice::read("v rm*", Some(&call));
        assert!(matches!(typed, TypedChoice::Answer(Answer::Deny { .. }, Some(_))), "{typed:?}");
        let typed = TypedChoice::read("a rm*", Some(&call));
        assert_eq!(typed, TypedChoice::DoesNotFit("rm*".to_owned()));
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
        assert_eq!(TypedChoice::read("a", None), TypedChoice::Unclear);
    }

    #[test]
    fn a_pattern_is_offered_for_a_command_and_for_a_folder() {
        assert_eq!(Rule::like(&runs("cargo test --all")).as_deref(), Some("cargo test*"));
        let arguments = r#"{"path": "docs/a/b.md"}"#.to_owned();
        let reads = ToolCall { name: "read_file".to_owned(), arguments, ..runs("") };
        assert_eq!(Rule::like(&reads).as_deref(), Some("docs/a/*"));
        // A pattern that does not fit what is asked about helps nobody.
        assert_eq!(Rule::like(&runs("cargo test; rm -rf ~")), None);
    }
}
