//! Whether a command line runs a denied command, directly or through other programs.
//!
//! A program that never runs its arguments may have any. A known wrapper is opened. For any other
//! program a person decides if its text names the denied program, or holds code that a shell would
//! expand.

use std::cell::Cell;

use super::Covers;
use super::glob::{is_like, may_be_like};
use super::mention::{base, is_file_named, is_mentioned, names};
use super::programs::{
    COPIES, Data, GIT, GIT_FLAGS, GIT_VALUES, INTERPRETER_FLAGS, Kind, Wrapper, has, is_file,
    is_file_of_code, is_git_subcommand, is_harmless_setting, is_run_by_others, kind,
};
use super::sed;
use super::shell::{MAX_DEPTH, SPLIT, Simple, WHOLE, Word, is_unknown, parse};

/// Does a command line run the command that the pattern denies?
pub(super) fn command_covered(pattern: &str, line: &str) -> Covers {
    Search { pattern, depth: 0, left: &Cell::new(MAX_WORK) }.line(line)
}

/// How many words are examined before a line counts as not understood.
const MAX_WORK: usize = 20_000;

/// A search for one pattern, in the line or in code that one of its commands runs.
#[derive(Clone, Copy)]
struct Search<'a> {
    pattern: &'a str,
    depth: usize,
    left: &'a Cell<usize>,
}

/// The text around a command.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    /// The command as written.
    source: &'a str,
    /// The text that the line feeds to its stdin.
    input: Option<&'a str>,
    /// The surrounding text, if its stdin is another command's output.
    piped: Option<Piped>,
}

/// A text in which one command reads another one's output.
#[derive(Clone, Copy)]
struct Piped {
    /// Does it name the denied program?
    is_mentioned: bool,
    /// Does it hold code that a shell would expand?
    has_code: bool,
}

impl Covers {
    const fn perhaps_if(condition: bool) -> Self {
        if condition { Self::Perhaps } else { Self::No }
    }
}

impl Search<'_> {
    /// The search one level deeper, in a text of this many words; `None` beyond the limits of depth
    /// or work.
    fn deeper(self, words: usize) -> Option<Self> {
        let left = self.left.get().checked_sub(words)?;
        self.left.set(left);
        (self.depth < MAX_DEPTH).then_some(Self { depth: self.depth + 1, ..self })
    }

    fn line(self, text: &str) -> Covers {
        let Some(inner) = self.deeper(1) else { return Covers::Perhaps };
        let script = parse(text);
        let piped = Piped {
            is_mentioned: self.mentions(&script.piped),
            has_code: script.piped.contains('`') || script.piped.contains("$("),
        };
        let found = script.commands.iter().map(|command| inner.command(command, piped)).max();
        found.unwrap_or(Covers::No).max(Covers::perhaps_if(!script.is_clear))
    }

    /// Code that a command runs. A part that only the shell can expand may be any code.
    fn code(self, text: &str) -> Covers {
        self.line(text).max(Covers::perhaps_if(text.contains(is_unknown)))
    }

    fn command(self, command: &Simple, piped: Piped) -> Covers {
        let around = Around {
            source: &command.source,
            input: command.input.as_deref(),
            piped: command.is_piped.then_some(piped),
        };
        let assigned = command.assigned.iter().map(|(name, value)| self.value(name, value)).max();
        // Each command of a loop or a group may read its input.
        let read = around.input.filter(|_| command.words.is_empty());
        let read = Covers::perhaps_if(read.is_some_and(|text| self.mentions(text)));
        read.max(assigned.unwrap_or(Covers::No)).max(self.words(&command.words, around))
    }

    /// A variable: another program, or bash itself, may run its value, as `man` runs its pager.
    fn value(self, name: &str, value: &str) -> Covers {
        let is_open = is_run_by_others(name) && value.contains(is_unknown);
        let is_code = self.mentions(value) || self.is_computed(value);
        Covers::perhaps_if(is_code || is_open || is_file_of_code(name))
    }

    /// A word that may set a variable.
    fn setting(self, word: &Word) -> Covers {
        let (name, value) = word.text.split_once('=').unwrap_or_default();
        self.value(name, value).max(Covers::perhaps_if(has_index_code(word)))
    }

    fn mentions(self, text: &str) -> bool {
        is_mentioned(self.pattern, text)
    }

    /// Does a text hold code that a shell would expand, and that is not understood?
    fn is_computed(self, text: &str) -> bool {
        // `--option=name=CODE`.
        let is_name = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
        let mut text = text;
        while let Some((_, value)) = text.split_once('=').filter(|(it, _)| it.chars().all(is_name))
        {
            text = value;
        }
        let has_space = text.contains(char::is_whitespace);
        let runs_code = |name| matches!(kind(base(name)), Kind::Shell | Kind::Interpreter);
        let has_braces = || {
            let mut parts = text.split('{').skip(1);
            parts.any(|part| part.starts_with(|it: char| it.is_alphanumeric() || it == ','))
        };
        let is_code = ["$(", "${", "`"].iter().any(|code| text.contains(code))
            || (has_space && (text.contains('$') || names(text).any(runs_code) || has_braces()));
        is_code && self.line(text) != Covers::No
    }

    /// A command, given its words.
    fn words(self, words: &[Word], around: Around<'_>) -> Covers {
        let Some(first) = words.first() else { return Covers::No };
        let named = self.named(words);
        if named == Covers::Yes {
            return named;
        }
        let Some(search) = self.deeper(words.len()) else { return Covers::Perhaps };
        let Some(name) = program(first) else { return Covers::Perhaps };
        if let Some(subcommand) = name.strip_prefix("git-") {
            let git = [&[Word::known("git"), Word::known(subcommand)], &words[1..]].concat();
            return named.max(search.words(&git, around));
        }
        let rest = &words[1..];
        let runs = match kind(name) {
            Kind::Data(data) => search.data(data, words, around),
            Kind::Sets => rest.iter().map(|word| search.setting(word)).max().unwrap_or(Covers::No),
            Kind::Names => search.builtin(name, rest, around),
            Kind::Runner if rest.iter().any(|word| !word.is_known()) => Covers::Perhaps,
            Kind::Unknown | Kind::Runner => search.unknown(words, around),
            Kind::Opaque => Covers::Perhaps,
            Kind::Shell => search.shell(rest, around.input),
            Kind::Interpreter => search.interpreter(words, around),
            Kind::Editor => search.editor(words, around),
            Kind::Awk => awk(rest),
            Kind::Sed => Covers::perhaps_if(!sed::runs_nothing(rest)),
            Kind::Eval => search.code(&joined(rest)),
            Kind::Trap => {
                let code = rest.iter().find(|word| !word.text.starts_with('-'));
                code.map_or(Covers::No, |code| search.code(&code.text))
            }
            Kind::Find => search.find(words, around),
            Kind::Git => search.git(words, around),
            Kind::Wrapper(wrapper) => search.wrapper(wrapper, rest, around),
        };
        named.max(runs)
    }

    /// Does the command itself match the pattern, by its full path or by its file name?
    fn named(self, words: &[Word]) -> Covers {
        let line = joined(words);
        let base = words.first().and_then(program).map(|name| {
            let rest =
                if words.len() > 1 { format!(" {}", joined(&words[1..])) } else { String::new() };
            format!("{name}{rest}")
        });
        let is_yes = |line: &String| is_like(self.pattern, line);
        // A pattern without a folder matches the program in every folder.
        let may_be = match &base {
            Some(base) if !self.pattern.contains('/') => may_be_like(self.pattern, base),
            _ => may_be_like(self.pattern, &line),
        };
        match is_yes(&line) || base.as_ref().is_some_and(is_yes) {
            true => Covers::Yes,
            false => Covers::perhaps_if(may_be),
        }
    }

    /// Any program may run its arguments and its input. Does one of them name the denied program,
    /// or hold code that is not understood?
    fn unknown(self, words: &[Word], around: Around<'_>) -> Covers {
        let reads = |text: &str| self.mentions(text) || self.is_computed(text);
        let runs_code = |n: usize| {
            let words = &words[n..];
            let name = words.first().and_then(program).unwrap_or_default();
            matches!(kind(name), Kind::Shell | Kind::Interpreter)
                && words.iter().skip(1).any(|word| word.text.starts_with('-'))
                && self.words(words, Around::default()) != Covers::No
        };
        Covers::perhaps_if(
            self.mentions(&joined(words))
                || self.mentions(around.source)
                || around.input.is_some_and(reads)
                || around.piped.is_some_and(|piped| piped.is_mentioned)
                || words.iter().skip(1).any(|word| self.is_computed(&word.text))
                || (1..words.len()).any(runs_code),
        )
    }

    /// A program that never runs its arguments, unless an option names a program.
    fn data(self, data: &Data, words: &[Word], around: Around<'_>) -> Covers {
        let mut operands = words.iter().skip(1).filter(|word| !word.text.starts_with(['-', '+']));
        let subcommand = operands.next().map_or("", |word| word.text.as_str());
        let name = words.first().and_then(program).unwrap_or_default();
        if has(COPIES, name) && is_file_named(self.pattern, around.source) {
            return Covers::Perhaps;
        }
        match data.has_subcommand(subcommand) && !has_program_option(data.runs, words) {
            true => Covers::No,
            false => self.unknown(words, around),
        }
    }

    /// A shell builtin that takes variable names and numbers.
    fn builtin(self, name: &str, words: &[Word], around: Around<'_>) -> Covers {
        let runs = words.iter().any(has_index_code);
        let is_set = match name {
            "printf" if words.first().is_some_and(|word| word.text.starts_with("-v")) => {
                words.iter().any(|word| self.value("", &word.text) != Covers::No)
            }
            "read" => {
                let reads = |text: &str| self.mentions(text) || self.is_computed(text);
                around.piped.is_some_and(|piped| piped.is_mentioned && piped.has_code)
                    || around.input.is_some_and(reads)
            }
            _ => false,
        };
        Covers::perhaps_if(runs || is_set)
    }

    /// A shell: the code of `-c`, or its input.
    fn shell(self, words: &[Word], input: Option<&str>) -> Covers {
        const LONG: &str = "--login --norc --noprofile --posix";
        let (mut is_code, mut at) = (false, 0);
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            match text {
                "--version" | "--help" => return Covers::No,
                _ if !text.starts_with(['-', '+']) => break,
                _ if text.starts_with("--") && text != "--" && !has(LONG, text) => {
                    return Covers::Perhaps;
                }
                _ => {}
            }
            let is_short = !text.starts_with("--");
            is_code |= is_short && text.starts_with('-') && text.contains('c');
            at += 1 + usize::from(is_short && text.ends_with(['o', 'O']));
        }
        match (is_code, words.get(at), input) {
            (true, Some(code), _) => {
                let arguments = joined(&words[at + 1..]);
                self.code(&code.text).max(Covers::perhaps_if(self.mentions(&arguments)))
            }
            (false, None, Some(text)) => self.code(text),
            _ => Covers::Perhaps,
        }
    }

    /// An interpreter of another language. A script file is not examined; other code is not
    /// understood.
    fn interpreter(self, words: &[Word], around: Around<'_>) -> Covers {
        let operand = words.iter().skip(1).position(|it| !has(INTERPRETER_FLAGS, &it.text));
        let rest = operand.map_or(&[][..], |n| &words[n + 1..]);
        let is_plain =
            |text: &str| text.chars().all(|it| it.is_alphanumeric() || "_-./=:,@+".contains(it));
        let is_understood = match rest {
            [tells] if has("--version -V -v --help", &tells.text) => true,
            [option, module @ ..] if option.text == "-m" => {
                let is_fed = around.input.is_some() || around.piped.is_some();
                let is_code = is_fed && module.first().is_none_or(|it| it.text != "json.tool");
                !module.is_empty() && !is_code && module.iter().all(|word| is_plain(&word.text))
            }
            [file, behind @ ..] => {
                !file.text.starts_with(['-', '+'])
                    && !has("eval repl exec", &file.text)
                    && is_file(&file.text)
                    && (file.text != "run" || behind.iter().all(|word| is_file(&word.text)))
            }
            [] => words.iter().any(|word| word.text == "--test"),
        };
        match is_understood {
            true => self.unknown(words, around),
            false => Covers::Perhaps,
        }
    }

    /// An editor or debugger: commands in its input or options are not understood.
    fn editor(self, words: &[Word], around: Around<'_>) -> Covers {
        let is_sql = |word: &Word| matches!(base(&word.text), "sqlite3" | "psql" | "mysql");
        let is_option = |word: &Word| {
            let text = word.text.as_str();
            text.starts_with('+')
                || ["-c", "-e", "-S", "-s", "-x", "--"].iter().any(|it| text.starts_with(it))
        };
        let has_commands =
            !is_sql(&words[0]) && (around.input.is_some() || words.iter().skip(1).any(is_option));
        match has_commands || around.piped.is_some() {
            true => Covers::Perhaps,
            false => self.unknown(words, around),
        }
    }

    fn find(self, words: &[Word], around: Around<'_>) -> Covers {
        let (mut found, mut rest) = (Covers::No, words);
        let is_start = |word: &Word| has("-exec -execdir -ok -okdir", &word.text);
        while let Some(start) = rest.iter().position(is_start) {
            rest = &rest[start + 1..];
            let end = rest.iter().position(|it| matches!(it.text.as_str(), ";" | "+"));
            let (command, behind) = rest.split_at(end.unwrap_or(rest.len()));
            let inner = Around { source: around.source, ..Around::default() };
            found = found.max(self.words(&with_place(command, "{}"), inner));
            rest = behind;
        }
        found
    }

    /// Git: its own options, settings that name programs, and subcommands that run commands. An
    /// unknown subcommand may be an alias for anything.
    fn git(self, words: &[Word], around: Around<'_>) -> Covers {
        let mut at = 1;
        while let Some(word) = words.get(at).filter(|word| word.text.starts_with('-')) {
            let (name, attached) = word.text.split_once('=').unwrap_or((&word.text, ""));
            let value = words.get(at + 1).map_or("", |value| value.text.as_str());
            at += match name {
                "-c" if is_harmless_setting(value) => 2,
                _ if has(GIT_FLAGS, name) => 1,
                _ if has(GIT_VALUES, name) && !attached.is_empty() => 1,
                _ if has(GIT_VALUES, name) && !value.contains(SPLIT) => 2,
                _ => return Covers::Perhaps,
            };
        }
        let Some(subcommand) = words.get(at) else { return Covers::No };
        let plain = [&[Word::known("git")], &words[at..]].concat();
        let named = self.named(&plain);
        // `git fetch ext::COMMAND` runs the command.
        let has_helper = || {
            has("clone fetch ls-remote pull push remote", &subcommand.text)
                && plain.iter().any(|word| word.text.contains("::"))
        };
        let is_open = || {
            has("bisect config difftool filter-branch submodule", &subcommand.text)
                && plain.iter().any(|word| !word.is_known())
        };
        match is_git_subcommand(&subcommand.text) && !has_helper() && !is_open() {
            true => named.max(self.data(&GIT, &plain, around)),
            false => named.max(Covers::Perhaps),
        }
    }

    /// The command that a wrapper runs.
    fn wrapper(self, wrapper: &Wrapper, words: &[Word], around: Around<'_>) -> Covers {
        let (mut found, mut at, mut skips) = (Covers::No, 0, wrapper.operands);
        let (mut has_options, mut place) = (true, "{}");
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            if has_options && text.starts_with('-') && text.len() > 1 {
                has_options = text != "--";
                match (wrapper.name, text) {
                    ("command", "-v" | "-V") => return Covers::No,
                    (_, "--") => {}
                    _ => {
                        let Some(option) = wrapper.option(text) else { return Covers::Perhaps };
                        let value = option.attached.or_else(|| Some(&words.get(at + 1)?.text));
                        if option.sets_place {
                            place = value.unwrap_or_default();
                        }
                        at += usize::from(option.takes_value && option.attached.is_none());
                    }
                }
            } else if has("env sudo doas", wrapper.name) && text.contains('=') {
                found = found.max(self.setting(word));
            } else if skips == 0 {
                break;
            } else if text.contains(SPLIT) {
                // A word that the shell may split can also contain the command.
                return Covers::Perhaps;
            } else {
                skips -= 1;
            }
            at += 1;
        }
        let rest = with_place(words.get(at..).unwrap_or_default(), place);
        found.max(match wrapper.name {
            "parallel" => {
                let end = rest.iter().position(|word| word.text.starts_with(":::"));
                let command = &rest[..end.unwrap_or(rest.len())];
                // Without a command, each argument is a command.
                let is_open = command.is_empty() || words.iter().any(|word| !word.is_known());
                let more = [command, &[Word::unknown()]].concat();
                self.line(&joined(&more)).max(Covers::perhaps_if(is_open))
            }
            // Without a command, these start a shell.
            "sudo" | "doas" | "flock" if rest.is_empty() => Covers::Perhaps,
            "watch" => self.code(&joined(&rest)),
            "xargs" if !rest.is_empty() => {
                self.words(&[rest.as_slice(), &[Word::unknown()]].concat(), around)
            }
            _ => self.words(&rest, around),
        })
    }
}

/// In a word that bash evaluates as a name or number, `a[$(…)]` runs code.
fn has_index_code(word: &Word) -> bool {
    let index = word.text.split_once('[').map_or("", |(_, index)| index);
    ["$(", "${", "`"].iter().any(|code| index.contains(code))
}

/// awk runs commands through `system`, pipes and `getline`.
fn awk(words: &[Word]) -> Covers {
    let from_file =
        words.iter().any(|word| word.text.starts_with("-f") || word.text.starts_with("--f"));
    let program = words.iter().find(|word| !word.text.starts_with('-'));
    let runs = |word: &Word| {
        word.text.contains("system") || word.text.replace("||", "").contains(['|', '@'])
    };
    let is_known = program.is_some_and(Word::is_known);
    Covers::perhaps_if(from_file || !is_known || words.iter().any(runs))
}

/// An option of a wrapper.
struct Taken<'a> {
    takes_value: bool,
    attached: Option<&'a str>,
    /// Does it set the placeholder that the wrapper replaces, as `-I {}` of xargs does?
    sets_place: bool,
}

impl Wrapper {
    /// Parses an option; `None` if it is unknown.
    fn option<'a>(&self, text: &'a str) -> Option<Taken<'a>> {
        if text.starts_with("--") {
            let (name, attached) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text, None),
            };
            let takes_value = has(self.values, name);
            let sets_place = name == "--replace" && attached.is_some();
            let taken = Taken { takes_value, attached, sets_place };
            return (takes_value || has(self.flags, name)).then_some(taken);
        }
        for (at, letter) in text.char_indices().skip(1) {
            let option = format!("-{letter}");
            if has(self.values, &option) {
                let attached = Some(&text[at + 1..]).filter(|value| !value.is_empty());
                let sets_place = matches!(letter, 'I' | 'J');
                return Some(Taken { takes_value: true, attached, sets_place });
            }
            if !has(self.flags, &option) && !letter.is_ascii_digit() {
                return None;
            }
        }
        Some(Taken { takes_value: false, attached: None, sets_place: false })
    }
}

/// Does a command have one of these options? Long options may be abbreviated.
fn has_program_option(options: &str, words: &[Word]) -> bool {
    words.iter().skip(1).any(|word| {
        let name = word.text.split('=').next().unwrap_or_default();
        let letters = || name.chars().skip(1).take_while(|it| it.is_alphabetic() && *it != 'm');
        options.split_whitespace().any(|option| match name.starts_with("--") {
            true => name.len() > 3 && option.starts_with(name),
            false => name.starts_with('-') && letters().any(|it| option == format!("-{it}")),
        })
    })
}

/// The words, with each placeholder replaced by an unknown text.
fn with_place(words: &[Word], place: &str) -> Vec<Word> {
    let unknown = String::from(WHOLE);
    let replaced = |word: &Word| match place {
        "" => word.clone(),
        place => Word::known(word.text.replace(place, &unknown)),
    };
    words.iter().map(replaced).collect()
}

/// The file name of a program; `None` if only the shell can expand it.
fn program(word: &Word) -> Option<&str> {
    let name = base(&word.text).trim_start_matches('=');
    let is_known = !word.text.contains(SPLIT) && !name.contains(is_unknown);
    is_known.then_some(name)
}

fn joined(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}
