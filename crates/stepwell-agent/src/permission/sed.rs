//! Scripts of `sed`: which of them run no command.

use super::programs::is_file;
use super::shell::{Word, is_unknown};

/// Do these arguments of `sed` run no command? True only if the whole script is understood.
pub(super) fn runs_nothing(words: &[Word]) -> bool {
    let (mut scripts, mut has_file, mut operands) = (Vec::new(), false, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let Some(letters) = text.strip_prefix('-').filter(|it| !it.is_empty()) else {
            operands.push(text);
            continue;
        };
        if let Some(long) = letters.strip_prefix('-') {
            match long.split_once('=').unwrap_or((long, "")) {
                ("expression", script) if !script.is_empty() => scripts.push(script),
                ("in-place" | "quiet" | "silent" | "regexp-extended" | "null-data", _) => {}
                ("version" | "help", _) => return true,
                _ => return false,
            }
            continue;
        }
        let flags = letters.trim_start_matches(['n', 'E', 'r', 's', 'u', 'z']);
        let attached = flags.get(1..).unwrap_or_default();
        let mut value = || match attached {
            "" => words.next().map_or("", |next| next.text.as_str()),
            attached => attached,
        };
        match flags.chars().next() {
            None | Some('i') => {}
            Some('e') => scripts.push(value()),
            Some('f') if is_file(value()) => has_file = true,
            Some(_) => return false,
        }
    }
    if scripts.is_empty() && !has_file {
        scripts.extend(operands.first());
    }
    let script = scripts.join("\n");
    !script.contains(is_unknown) && Script(&script).runs_nothing()
}

struct Script<'a>(&'a str);

impl Script<'_> {
    fn runs_nothing(mut self) -> bool {
        loop {
            self.skip(|it| it.is_whitespace() || matches!(it, ';' | '{' | '}'));
            if self.0.is_empty() {
                return true;
            }
            if self.addresses().and_then(|()| self.command()).is_none() {
                return false;
            }
        }
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(is_skipped);
    }

    fn next(&mut self) -> Option<char> {
        let next = self.0.chars().next()?;
        self.0 = &self.0[next.len_utf8()..];
        Some(next)
    }

    /// Reads up to an unescaped character.
    fn up_to(&mut self, end: char) -> Option<()> {
        loop {
            match self.next()? {
                '\\' => drop(self.next()?),
                it if it == end => return Some(()),
                _ => {}
            }
        }
    }

    /// Reads a regular expression. Some versions of sed let it end within brackets, others do not.
    fn expression(&mut self, end: char) -> Option<()> {
        let text = self.0;
        self.up_to(end)?;
        let expression = &text[..text.len() - self.0.len()];
        let is_open = expression.rsplit_once('[').is_some_and(|(_, rest)| !rest.contains(']'));
        (!is_open).then_some(())
    }

    /// Reads `1`, `$`, `/…/`, `1,+3` and `!`.
    fn addresses(&mut self) -> Option<()> {
        loop {
            self.skip(|it| it.is_ascii_digit() || matches!(it, '$' | ',' | '!' | '+' | '~' | ' '));
            if !self.0.starts_with('/') {
                return Some(());
            }
            self.next();
            self.expression('/')?;
            self.skip(|it| matches!(it, 'I' | 'M'));
        }
    }

    /// Reads a command, unless it runs another program.
    fn command(&mut self) -> Option<()> {
        match self.next()? {
            kind @ ('s' | 'y') => {
                let end = self.next().filter(|it| it.is_ascii_punctuation() && *it != '\\')?;
                self.expression(end)?;
                self.up_to(end)?;
                if kind == 's' {
                    self.skip(|it| {
                        it.is_ascii_digit() || matches!(it, 'g' | 'p' | 'i' | 'I' | 'm' | 'M')
                    });
                }
            }
            ':' | 'b' | 't' | 'T' => self.skip(|it| it.is_ascii_alphanumeric() || it == ' '),
            'a' | 'i' | 'c' | 'r' | 'w' | '#' => {
                // The text continues after a line that ends with a backslash.
                let (line, rest) = self.0.split_once('\n').unwrap_or((self.0, ""));
                self.0 = rest;
                return (!line.ends_with('\\')).then_some(());
            }
            'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | '=' | 'z' | 'F' => {}
            'q' | 'Q' | 'l' => self.skip(|it| it.is_ascii_digit()),
            '{' | '}' => return Some(()),
            _ => return None,
        }
        self.skip(|it| matches!(it, ' ' | '\t'));
        (self.0.is_empty() || self.0.starts_with([';', '\n', '}', '#'])).then_some(())
    }
}
