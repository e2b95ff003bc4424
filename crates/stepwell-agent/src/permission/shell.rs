//! Parses a shell command line into the commands that it contains.
//!
//! The parser knows `sh` and `bash`. If they read a line differently, or the line is incomplete,
//! the result is marked as not clear. The parser never drops a command silently: a text that may be
//! a command counts as one.

mod words;

use std::mem::take;

/// Placeholder in a word for a part that only the shell can expand, and may split into several
/// words: `$X`, `$(…)`, `*`. No command line contains this character.
pub(super) const SPLIT: char = '\0';

/// The same inside double quotes, where the shell does not split it.
pub(super) const WHOLE: char = '\u{1}';

/// How deep substitutions, subshells and nested code may go.
pub(super) const MAX_DEPTH: usize = 24;

/// Reserved words that can precede a command.
const RESERVED: [&str; 12] =
    ["if", "then", "else", "elif", "fi", "do", "done", "while", "until", "{", "}", "!"];

/// Is this character a placeholder for unknown text?
pub(super) const fn is_unknown(character: char) -> bool {
    matches!(character, SPLIT | WHOLE)
}

/// The commands of a line.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Simple>,
    /// Was the whole line understood?
    pub(super) is_clear: bool,
    /// The texts in which one command reads another one's output.
    pub(super) piped: String,
}

/// A command without lists, pipes and substitutions.
#[derive(Debug, Default)]
pub(super) struct Simple {
    /// The variables that are set in front of it.
    pub(super) assigned: Vec<(String, String)>,
    pub(super) words: Vec<Word>,
    /// The command as written.
    pub(super) source: String,
    /// The here-document or here-string that it reads.
    pub(super) input: Option<String>,
    /// Does it read another command's output?
    pub(super) is_piped: bool,
}

/// A word, with quotes removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// How many bytes precede the first quoted character.
    plain: usize,
    is_quoted: bool,
}

impl Word {
    /// A word that only the shell can expand.
    pub(super) fn unknown() -> Self {
        Self::known(String::from(SPLIT))
    }

    /// A word that does not come from a line.
    pub(super) fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), plain: 0, is_quoted: true }
    }

    pub(super) fn is_known(&self) -> bool {
        !self.text.contains(is_unknown)
    }

    fn is(&self, reserved: &str) -> bool {
        !self.is_quoted && self.text == reserved
    }

    /// The name and value, if the word sets a variable.
    fn assigned(&self) -> Option<(&str, &str)> {
        let (name, value) = self.text.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let is_plain = !self.is_quoted || name.len() < self.plain;
        let is_name = name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
            && name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        (is_plain && is_name).then_some((name, value))
    }

    fn push_quoted(&mut self, character: char) {
        if !self.is_quoted {
            (self.plain, self.is_quoted) = (self.text.len(), true);
        }
        self.text.push(character);
    }

    fn quote(&mut self) {
        if !self.is_quoted {
            (self.plain, self.is_quoted) = (self.text.len(), true);
        }
    }
}

/// Reads a line.
pub(super) fn parse(line: &str) -> Script {
    let mut script = Script { is_clear: true, ..Script::default() };
    parse_into(line, 0, &mut script);
    script
}

fn parse_into(text: &str, depth: usize, script: &mut Script) {
    let mut reader = Reader {
        chars: text.chars().collect(),
        at: 0,
        depth,
        script,
        current: Current::default(),
        pending: Vec::new(),
        bodies: Vec::new(),
        waiting: Vec::new(),
    };
    if reader.list(Until::End) != Ended::Text {
        reader.script.is_clear = false;
    }
    reader.give_inputs();
    if script.commands.iter().any(|command| command.is_piped) {
        script.piped.push_str(text);
    }
}

/// What ends a list of commands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    End,
    Paren,
    CaseArm,
}

/// How a list of commands ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Text,
    Paren,
    Arm,
    Esac,
}

/// The command that is being parsed.
#[derive(Default)]
struct Current {
    words: Vec<Word>,
    /// The index of its here-document.
    body: Option<usize>,
    /// Where it begins.
    start: usize,
    piped: Piped,
}

/// Does a command read another one's output?
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Piped {
    #[default]
    No,
    /// This command does, and the next one in the list does not.
    Once,
    /// Every command of a loop or a group does. The parser does not track where the group ends.
    Group,
}

/// A here-document whose body follows the line.
struct Pending {
    body: usize,
    end: String,
    is_quoted: bool,
    strips_tabs: bool,
}

struct Reader<'a> {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    script: &'a mut Script,
    current: Current,
    pending: Vec<Pending>,
    bodies: Vec<String>,
    /// Commands by their index, and the here-documents that they read.
    waiting: Vec<(usize, usize)>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn take_if(&mut self, text: &str) -> bool {
        let is_next = text.chars().enumerate().all(|(n, it)| self.peek(n) == Some(it));
        if is_next {
            self.at += text.chars().count();
        }
        is_next
    }

    fn unclear(&mut self) {
        self.script.is_clear = false;
    }

    /// Parses one level deeper, unless the limit is reached.
    fn deeper(&mut self, inner: impl FnOnce(&mut Self)) {
        if self.depth >= MAX_DEPTH {
            self.unclear();
            self.at = self.chars.len();
            return;
        }
        self.depth += 1;
        inner(self);
        self.depth -= 1;
    }

    fn list(&mut self, until: Until) -> Ended {
        loop {
            self.skip_blanks();
            let Some(next) = self.peek(0) else {
                self.finish();
                self.read_bodies();
                return Ended::Text;
            };
            match next {
                '\n' => {
                    self.finish();
                    self.at += 1;
                    self.read_bodies();
                }
                '#' => self.skip_comment(),
                ';' if until == Until::CaseArm && self.ends_arm() => {
                    self.finish();
                    return Ended::Arm;
                }
                // After `a &> b`, one shell runs `c` of `a &> b c` and another does not, so it
                // counts as a command.
                ';' | '&' | '|' => {
                    self.finish();
                    self.at += 1;
                    if next == '|' && !self.take_if("|") {
                        self.current.piped = self.current.piped.max(Piped::Once);
                    }
                }
                '(' => self.open_paren(),
                ')' => {
                    self.finish();
                    self.at += 1;
                    match until {
                        Until::Paren => return Ended::Paren,
                        Until::End | Until::CaseArm => self.unclear(),
                    }
                }
                '<' | '>' if self.peek(1) != Some('(') => self.redirect(),
                _ => {
                    if let Some(ended) = self.next_word(until) {
                        return ended;
                    }
                }
            }
        }
    }

    /// Adds a word. Some words end a list.
    fn next_word(&mut self, until: Until) -> Option<Ended> {
        let start = self.at;
        let word = self.word();
        if self.current.words.is_empty() {
            self.current.start = start;
        }
        let is_number = !word.is_quoted && word.text.bytes().all(|it| it.is_ascii_digit());
        if is_number && matches!(self.peek(0), Some('<' | '>')) {
            return None;
        }
        let is_first = self.current.words.iter().all(is_before_command);
        if is_first && word.is("esac") {
            self.finish();
            if until == Until::CaseArm {
                return Some(Ended::Esac);
            }
            self.unclear();
            return None;
        }
        if is_first && word.is("case") {
            self.current.words.clear();
            if self.current.piped == Piped::Once {
                self.current.piped = Piped::Group;
            }
            self.deeper(Self::case);
            return None;
        }
        self.current.words.push(word);
        None
    }

    fn ends_arm(&mut self) -> bool {
        [";;&", ";;", ";&"].iter().any(|end| self.take_if(end))
    }

    /// Reads `WORD in PATTERN) LIST ;; … esac`.
    fn case(&mut self) {
        self.skip_space();
        self.word();
        self.skip_space();
        if self.word().text != "in" {
            return self.unclear();
        }
        loop {
            self.skip_space();
            self.take_if("(");
            loop {
                self.skip_space();
                match self.peek(0) {
                    None => return self.unclear(),
                    Some(')') => break,
                    Some('|') => self.at += 1,
                    Some('<' | '>' | ';' | '&' | '(' | '#') => {
                        self.at += 1;
                        self.unclear();
                    }
                    Some(_) => {
                        if self.word().is("esac") {
                            return;
                        }
                    }
                }
            }
            self.at += 1;
            match self.list(Until::CaseArm) {
                Ended::Arm => {}
                Ended::Esac => return,
                Ended::Text | Ended::Paren => return self.unclear(),
            }
        }
    }

    fn open_paren(&mut self) {
        self.at += 1;
        let words = take(&mut self.current.words);
        let is_function = !words.is_empty() && {
            let mut rest = self.chars[self.at..].iter();
            rest.find(|it| !matches!(it, ' ' | '\t')) == Some(&')')
        };
        if is_function {
            self.skip_blanks();
            self.at += 1;
            return;
        }
        // `((` begins arithmetic in one shell, and two subshells in another.
        if !words.iter().all(is_before_command) || self.peek(0) == Some('(') {
            self.unclear();
        }
        self.push_command(words);
        if self.current.piped == Piped::Once {
            self.current.piped = Piped::Group;
        }
        self.deeper(|it| {
            if it.list(Until::Paren) != Ended::Paren {
                it.unclear();
            }
        });
    }

    fn skip_blanks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n')) => self.at += 2,
                _ => return,
            }
        }
    }

    fn skip_space(&mut self) {
        loop {
            self.skip_blanks();
            match self.peek(0) {
                Some('\n') => self.at += 1,
                Some('#') => self.skip_comment(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.peek(0).is_some_and(|it| it != '\n') {
            self.at += 1;
        }
    }

    /// Adds the finished command to the script.
    fn finish(&mut self) {
        let words = take(&mut self.current.words);
        let is_group = words.first().is_some_and(is_before_group);
        self.push_command(words);
        self.current.piped = match self.current.piped {
            Piped::Once if is_group => Piped::Group,
            Piped::Once => Piped::No,
            piped => piped,
        };
        self.current.body = None;
    }

    fn push_command(&mut self, mut words: Vec<Word>) {
        let mut assigned = Vec::new();
        while let Some(first) = words.first() {
            match first.text.as_str() {
                text if !first.is_quoted && RESERVED.contains(&text) => drop(words.remove(0)),
                "for" | "select" if !first.is_quoted => {
                    let rest =
                        if words.get(2).is_some_and(|it| it.is("do")) { 3 } else { words.len() };
                    // The loop sets its variable to each of the words.
                    let values = words.drain(..rest).skip(2);
                    assigned.extend(values.map(|word| (String::new(), word.text)));
                }
                "function" if !first.is_quoted => drop(words.drain(..words.len().min(2))),
                _ => break,
            }
        }
        while let Some((name, value)) = words.first().and_then(Word::assigned) {
            assigned.push((name.to_owned(), value.to_owned()));
            words.remove(0);
        }
        if words.is_empty() && assigned.is_empty() && self.current.body.is_none() {
            return;
        }
        if let Some(body) = self.current.body {
            self.waiting.push((self.script.commands.len(), body));
        }
        let source = self.chars.get(self.current.start..self.at.min(self.chars.len()));
        let source = source.unwrap_or_default().iter().collect();
        let is_piped = self.current.piped != Piped::No;
        self.script.commands.push(Simple { assigned, words, source, input: None, is_piped });
    }

    /// Attaches the bodies of here-documents to their commands.
    fn give_inputs(&mut self) {
        for (command, body) in take(&mut self.waiting) {
            if let Some(command) = self.script.commands.get_mut(command) {
                command.input = self.bodies.get(body).cloned();
            }
        }
    }

    /// Reads a redirection. Its target is not part of the command.
    fn redirect(&mut self) {
        const OPERATORS: [&str; 10] = ["<<<", "<<-", "<<", "<&", "<>", ">>", ">&", ">|", "<", ">"];
        let operator = OPERATORS.iter().find(|it| self.take_if(it)).copied().unwrap_or_default();
        self.skip_blanks();
        match operator {
            "<<" | "<<-" => {
                let (end, is_quoted) = self.here_end();
                let body = self.bodies.len();
                self.bodies.push(String::from(SPLIT));
                self.current.body = Some(body);
                let strips_tabs = operator == "<<-";
                self.pending.push(Pending { body, end, is_quoted, strips_tabs });
            }
            "<<<" => {
                let word = self.word();
                self.current.body = Some(self.bodies.len());
                self.bodies.push(word.text);
            }
            _ => drop(self.word()),
        }
    }

    /// The delimiter of a here-document, and whether it was quoted.
    fn here_end(&mut self) -> (String, bool) {
        let (mut end, mut is_quoted) = (String::new(), false);
        while let Some(next) = self.peek(0) {
            match next {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '$' | '`' => self.unclear(),
                '\'' | '"' => {
                    is_quoted = true;
                    self.at += 1;
                    while let Some(inner) = self.peek(0).filter(|it| *it != next) {
                        // Between double quotes a backslash may be part of another escape.
                        if inner == '\\' && next == '"' {
                            self.unclear();
                        }
                        end.push(inner);
                        self.at += 1;
                    }
                }
                '\\' => {
                    is_quoted = true;
                    self.at += 1;
                    end.extend(self.peek(0));
                }
                plain => end.push(plain),
            }
            self.at += 1;
        }
        (end, is_quoted)
    }

    /// Reads the bodies of the here-documents of this line.
    fn read_bodies(&mut self) {
        for pending in take(&mut self.pending) {
            let mut body = String::new();
            let is_complete = loop {
                let Some(line) = self.line() else { break false };
                let line = match pending.strips_tabs {
                    true => line.trim_start_matches('\t'),
                    false => &line,
                };
                if line == pending.end {
                    break true;
                }
                body.push_str(line);
                body.push('\n');
            };
            if !is_complete {
                self.unclear();
            }
            if !pending.is_quoted {
                body = self.expanded(&body);
            }
            self.bodies[pending.body] = body;
        }
    }

    fn line(&mut self) -> Option<String> {
        if self.at >= self.chars.len() {
            return None;
        }
        let rest = &self.chars[self.at..];
        let end = rest.iter().position(|it| *it == '\n').unwrap_or(rest.len());
        let line = rest[..end].iter().collect();
        self.at += end + 1;
        Some(line)
    }

    /// A text in which a shell expands only variables and substitutions.
    fn expanded(&mut self, text: &str) -> String {
        let chars = std::mem::replace(&mut self.chars, text.chars().collect());
        let at = std::mem::replace(&mut self.at, 0);
        let mut word = Word::default();
        while self.at < self.chars.len() {
            self.quoted_character(&mut word);
        }
        (self.chars, self.at) = (chars, at);
        word.text
    }
}

/// Can a command follow this word?
fn is_before_command(word: &Word) -> bool {
    !word.is_quoted && (RESERVED.contains(&word.text.as_str()) || word.text == "time")
}

/// Does this word begin a loop, a group or a conditional?
fn is_before_group(word: &Word) -> bool {
    const GROUPS: [&str; 6] = ["{", "if", "while", "until", "for", "select"];
    !word.is_quoted && GROUPS.contains(&word.text.as_str())
}
