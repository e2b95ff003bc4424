//! Whether a command line runs what a pattern forbids, also through programs that run their arguments.

use super::Covers;
use super::glob::{is_like, may_be_like};
use super::programs::{
    CODE_OPTIONS, GIT, GIT_PROGRAM_OPTIONS, Gives, Kind, PARALLEL, Wrapper, is_harmless_setting,
    kind,
};
use super::shell::{MAX_DEPTH, SPLIT, Simple, Word, is_unknown, parse};

/// Does a command line run what a pattern forbids?
pub(super) fn command_covered(pattern: &str, line: &str) -> Covers {
    Search { pattern, depth: 0 }.line(line)
}

/// A search for one pattern, in the line or in a text that a command of it runs.
#[derive(Clone, Copy)]
struct Search<'a> {
    pattern: &'a str,
    depth: usize,
}

impl Search<'_> {
    fn line(self, text: &str) -> Covers {
        let inner = Search { depth: self.depth + 1, ..self };
        if inner.depth > MAX_DEPTH {
            return Covers::Perhaps;
        }
        let script = parse(text);
        let unclear = if script.is_clear { Covers::No } else { Covers::Perhaps };
        let found = script.commands.iter().map(|command| inner.command(command));
        found.max().unwrap_or(Covers::No).max(unclear)
    }

    /// Code that a command runs. A part that only the shell knows may be any code.
    fn code(self, text: &str) -> Covers {
        let unknown = if text.contains(is_unknown) { Covers::Perhaps } else { Covers::No };
        self.line(text).max(unknown)
    }

    fn command(self, command: &Simple) -> Covers {
        // A program may run what a variable holds, as `man` runs its pager.
        let is_set = command.assigned.iter().any(|value| self.line(value) == Covers::Yes);
        let assigned = if is_set { Covers::Perhaps } else { Covers::No };
        assigned.max(self.words(&command.words, command.input.as_deref()))
    }

    /// A command by its words.
    fn words(self, words: &[Word], input: Option<&str>) -> Covers {
        let search = Search { depth: self.depth + 1, ..self };
        let Some(first) = words.first() else { return Covers::No };
        let plain = search.named(words);
        if plain == Covers::Yes || search.depth > MAX_DEPTH {
            return plain.max(Covers::Perhaps);
        }
        let Some(name) = program(first) else { return Covers::Perhaps };
        let kind = kind(name);
        let runs = match kind {
            Kind::Plain | Kind::Unknown => Covers::No,
            Kind::Opaque => Covers::Perhaps,
            Kind::Shell => search.shell(&words[1..], input),
            Kind::Interpreter => interpreter(&words[1..]),
            Kind::Awk => awk(&words[1..]),
            Kind::Eval => search.code(&joined(&words[1..])),
            Kind::Trap => words.get(1).map_or(Covers::No, |code| search.code(&code.text)),
            Kind::Find => search.find(&words[1..]),
            Kind::Parallel => search.parallel(&words[1..]),
            Kind::Git => search.git(&words[1..]),
            Kind::Wrapper(wrapper, gives) => match wrapper.rest(&words[1..]) {
                None => Covers::Perhaps,
                Some(rest) if rest.is_empty() => return plain,
                Some(rest) => search.wrapped(&rest, gives),
            },
        };
        let guessed = match kind {
            Kind::Plain | Kind::Git => Covers::No,
            _ => search.guess(words),
        };
        plain.max(runs).max(guessed)
    }

    /// The command behind a wrapper.
    fn wrapped(self, rest: &[Word], gives: Gives) -> Covers {
        match gives {
            Gives::Words => self.words(rest, None),
            Gives::MoreWords => self.words(&[rest, &[Word::unknown()]].concat(), None),
            Gives::Code => self.words(rest, None).max(self.code(&joined(rest))),
        }
    }

    /// Is the command itself like the pattern, by its whole name or by the name without its folder?
    fn named(self, words: &[Word]) -> Covers {
        let line = joined(words);
        let base = words.first().and_then(program).map(|name| {
            let rest =
                if words.len() > 1 { format!(" {}", joined(&words[1..])) } else { String::new() };
            format!("{name}{rest}")
        });
        let is_yes = |line: &String| is_like(self.pattern, line);
        // A pattern without a folder means the program in any folder.
        let may_be = match &base {
            Some(base) if !self.pattern.contains('/') => may_be_like(self.pattern, base),
            _ => may_be_like(self.pattern, &line),
        };
        match is_yes(&line) || base.as_ref().is_some_and(is_yes) {
            true => Covers::Yes,
            false if may_be => Covers::Perhaps,
            false => Covers::No,
        }
    }

    /// Any program may run its arguments: looks whether they hold what is forbidden, from any word on,
    /// or as the code of a shell.
    fn guess(self, words: &[Word]) -> Covers {
        let line = joined(words);
        let mut at = 0;
        for (n, word) in words.iter().enumerate() {
            let end = at + word.text.len();
            if n > 0 {
                let value = word.text.split_once('=').map_or("", |(_, value)| value);
                let starts =
                    [at, end - base(&word.text).len(), end - value.len(), end - base(value).len()];
                let holds =
                    starts.iter().any(|from| *from < end && is_like(self.pattern, &line[*from..]));
                let runs = [word.text.as_str(), value].into_iter().any(|text| self.holds(text));
                if holds || runs || self.holds_shell(&words[n..]) {
                    return Covers::Perhaps;
                }
            }
            at = end + 1;
        }
        Covers::No
    }

    /// Does a text hold a command that is forbidden, as the code of a shell or from any word on?
    fn holds(self, text: &str) -> bool {
        let is_code = |it: char| it.is_whitespace() || ";&|$`(".contains(it);
        if !text.contains(is_code) {
            return false;
        }
        let mut words =
            text.split_whitespace().map(|word| word.as_ptr().addr() - text.as_ptr().addr());
        words.any(|from| is_like(self.pattern, &text[from..])) || self.line(text) == Covers::Yes
    }

    /// Do words run a shell, with code that holds what is forbidden or is not known?
    fn holds_shell(self, words: &[Word]) -> bool {
        let is_shell =
            words.first().and_then(program).is_some_and(|name| kind(name) == Kind::Shell);
        let has_code = words.iter().skip(1).any(|word| word.text.starts_with('-'));
        is_shell && has_code && self.shell(&words[1..], None) != Covers::No
    }

    /// A shell: the code of `-c`, or what it reads.
    fn shell(self, words: &[Word], input: Option<&str>) -> Covers {
        let (mut is_code, mut at) = (false, 0);
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            if text.starts_with(is_unknown) {
                return Covers::Perhaps;
            }
            if text == "--version" || text == "--help" {
                return Covers::No;
            }
            if !text.starts_with(['-', '+']) {
                break;
            }
            at += 1;
            let is_short = !text.starts_with("--");
            is_code |= is_short && text.starts_with('-') && text.contains('c');
            let takes_value = match is_short {
                true => text.ends_with(['o', 'O']),
                false => matches!(text, "--rcfile" | "--init-file"),
            };
            at += usize::from(takes_value);
        }
        match (is_code, words.get(at), input) {
            (true, Some(code), _) => self.code(&code.text),
            (false, None, Some(text)) => self.code(text),
            _ => Covers::Perhaps,
        }
    }

    fn find(self, words: &[Word]) -> Covers {
        let mut found = Covers::No;
        for (n, word) in words.iter().enumerate() {
            if matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
                let rest = &words[n + 1..];
                let end = rest.iter().position(|it| matches!(it.text.as_str(), ";" | "+"));
                found = found.max(self.words(&rest[..end.unwrap_or(rest.len())], None));
            }
        }
        found
    }

    fn parallel(self, words: &[Word]) -> Covers {
        let is_source = |word: &Word| word.text.starts_with(":::");
        let end = words.iter().position(is_source).unwrap_or(words.len());
        let (before, sources) = words.split_at(end);
        match PARALLEL.rest(before) {
            None => Covers::Perhaps,
            Some(command) if !command.is_empty() => {
                let more = self.wrapped(&command, Gives::MoreWords);
                more.max(self.code(&joined(&command)))
            }
            // Without a command, the arguments are the commands.
            Some(_) if sources.is_empty() => Covers::Perhaps,
            Some(_) => {
                let codes = sources.iter().filter(|word| !is_source(word));
                codes.map(|word| self.code(&word.text)).max().unwrap_or(Covers::Perhaps)
            }
        }
    }

    /// Git: its own options before the subcommand, settings that name programs, and subcommands that
    /// run commands.
    fn git(self, words: &[Word]) -> Covers {
        let (mut found, mut at) = (Covers::No, 0);
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            let value = words.get(at + 1).map_or("", |value| value.text.as_str());
            if word.text.starts_with(is_unknown) {
                return Covers::Perhaps;
            }
            at += match text {
                "-c" | "--config-env" if !is_harmless_setting(value) => return Covers::Perhaps,
                "-c" | "-C" | "--git-dir" | "--work-tree" | "--namespace" => 2,
                _ if text.starts_with("--exec-path=") => return Covers::Perhaps,
                _ if text.starts_with('-') => 1,
                _ => break,
            };
        }
        let rest = words.get(at..).unwrap_or_default();
        let Some(subcommand) = rest.first() else { return Covers::No };
        if at > 0 {
            let plain: Vec<Word> = [&[Word::known("git")], rest].concat();
            found = self.named(&plain);
        }
        let runs_nothing = GIT.contains(&subcommand.text.as_str());
        let names_program = |word: &Word| {
            let option = word.text.split('=').next().unwrap_or_default();
            GIT_PROGRAM_OPTIONS.contains(&option) || option.starts_with("-O")
        };
        match runs_nothing && !rest.iter().any(names_program) {
            true => found,
            false => found.max(self.guess(rest)),
        }
    }
}

/// An interpreter of another language: code that the command line holds, or that it reads, is not
/// understood.
fn interpreter(words: &[Word]) -> Covers {
    for word in words {
        let text = word.text.as_str();
        if text.starts_with(is_unknown) {
            return Covers::Perhaps;
        }
        if text == "--version" || text == "-V" || text == "-m" {
            return Covers::No;
        }
        let is_short = text.starts_with('-') && !text.starts_with("--");
        let is_code = match is_short {
            true => text == "-" || text[1..].contains(['c', 'e', 'E', 'r', 'p']),
            false => CODE_OPTIONS.contains(&text.split('=').next().unwrap_or_default()),
        };
        if is_code || text.starts_with('+') || text == "eval" {
            return Covers::Perhaps;
        }
        if !text.starts_with('-') {
            return Covers::No;
        }
    }
    Covers::Perhaps
}

/// awk runs commands by `system`, a pipe and `getline`.
fn awk(words: &[Word]) -> Covers {
    let from_file =
        words.iter().any(|word| word.text.starts_with("-f") || word.text.starts_with("--f"));
    let runs = |word: &Word| {
        !word.is_known() || word.text.contains("system") || word.text.contains(['|', '@'])
    };
    match from_file || words.iter().any(runs) {
        true => Covers::Perhaps,
        false => Covers::No,
    }
}

impl Wrapper {
    /// The command that a wrapper runs; none, if what stands before it is not understood.
    fn rest(&self, words: &[Word]) -> Option<Vec<Word>> {
        let (mut at, mut skips) = (0, self.operands);
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            if text == "--" {
                at += 1;
                break;
            }
            if let Some((code, behind)) = self.split_text(&words[at..]) {
                let mut split = parse(&code);
                let is_one =
                    split.is_clear && split.commands.len() == 1 && !code.contains(is_unknown);
                let inner = is_one.then(|| split.commands.remove(0).words)?;
                let all = [inner.as_slice(), words.get(at + behind..).unwrap_or_default()].concat();
                return self.rest(&all);
            }
            if text.starts_with('-') && text.len() > 1 {
                if self.only_tells.contains(&text) {
                    return Some(Vec::new());
                }
                at += 1 + usize::from(self.takes_value(text));
                continue;
            }
            if self.sets_variables && text.contains('=') {
                at += 1;
                continue;
            }
            if skips == 0 {
                break;
            }
            // One that the shell may split may also hold the command.
            if text.contains(SPLIT) {
                return None;
            }
            (at, skips) = (at + 1, skips - 1);
        }
        Some(words.get(at..).unwrap_or_default().to_vec())
    }

    /// The text of `env -S`, and how many words it takes.
    fn split_text(&self, words: &[Word]) -> Option<(String, usize)> {
        let text = words.first().filter(|_| self.name == "env")?.text.as_str();
        let next = || words.get(1).map(|word| word.text.clone()).unwrap_or_default();
        match text {
            "-S" | "--split-string" | "-iS" | "-vS" => Some((next(), 2)),
            _ => {
                let code = text.strip_prefix("--split-string=").or_else(|| text.strip_prefix("-S"));
                code.map(|code| (code.to_owned(), 1))
            }
        }
    }

    /// Does an option take the next word?
    fn takes_value(&self, option: &str) -> bool {
        if option.starts_with("--") {
            return self.long.contains(&option);
        }
        let mut letters = option[1..].char_indices();
        let Some((at, letter)) = letters.find(|(_, letter)| self.short.contains(*letter)) else {
            return false;
        };
        // Otherwise the value stands behind the letter.
        option.len() == 1 + at + letter.len_utf8()
    }
}

/// The name of a program without its folder; none, if only the shell knows it.
fn program(word: &Word) -> Option<&str> {
    let name = base(&word.text).trim_start_matches('=');
    let is_known = !word.text.contains(SPLIT) && !name.contains(is_unknown);
    is_known.then_some(name)
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn joined(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}
