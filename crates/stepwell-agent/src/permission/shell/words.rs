//! Words of a command line: quotes and expansions.

use std::mem::take;

use super::{Ended, MAX_DEPTH, Reader, SPLIT, Until, WHOLE, Word, parse_into};

impl Reader<'_> {
    pub(super) fn word(&mut self) -> Word {
        let mut word = Word::default();
        let start = self.at;
        let mut braces = Braces::None;
        while let Some(next) = self.peek(0) {
            match next {
                '<' | '>' if self.peek(1) == Some('(') => {
                    self.at += 2;
                    self.substitution();
                    word.text.push(SPLIT);
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => {
                    self.at += 1;
                    match self.peek(0) {
                        Some('\n') => {}
                        Some(escaped) => word.push_quoted(escaped),
                        None => self.unclear(),
                    }
                    self.at += 1;
                }
                '\'' => self.single_quoted(&mut word),
                '"' => self.double_quoted(&mut word),
                '$' | '`' => self.expansion(&mut word, SPLIT),
                '*' | '?' => {
                    self.at += 1;
                    word.text.push(SPLIT);
                }
                '[' if self.has_bracket() => {
                    self.at += 1;
                    word.text.push(SPLIT);
                }
                plain => {
                    braces = braces.then(plain);
                    word.text.push(plain);
                    self.at += 1;
                }
            }
        }
        // Skip a character that cannot begin a word, so that parsing always advances.
        if self.at == start {
            self.unclear();
            self.at += 1;
        }
        if braces == Braces::Closed {
            word.text = String::from(SPLIT);
        }
        word
    }

    /// Is this bracket closed within its word?
    fn has_bracket(&self) -> bool {
        let rest = self.chars[self.at + 1..].iter();
        rest.take_while(|it| !it.is_whitespace() && **it != ';').any(|it| *it == ']')
    }

    fn single_quoted(&mut self, word: &mut Word) {
        word.quote();
        self.at += 1;
        loop {
            match self.peek(0) {
                None => return self.unclear(),
                Some('\'') => break,
                Some(inner) => word.push_quoted(inner),
            }
            self.at += 1;
        }
        self.at += 1;
    }

    fn double_quoted(&mut self, word: &mut Word) {
        word.quote();
        self.at += 1;
        loop {
            match self.peek(0) {
                None => return self.unclear(),
                Some('"') => break,
                Some(_) => self.quoted_character(word),
            }
        }
        self.at += 1;
    }

    /// One character or one expansion inside double quotes.
    pub(super) fn quoted_character(&mut self, word: &mut Word) {
        match (self.peek(0), self.peek(1)) {
            (Some('\\'), Some('\n')) => self.at += 2,
            (Some('\\'), Some(escaped @ ('$' | '`' | '"' | '\\'))) => {
                word.push_quoted(escaped);
                self.at += 2;
            }
            (Some('$' | '`'), _) => self.expansion(word, WHOLE),
            (Some(plain), _) => {
                word.push_quoted(plain);
                self.at += 1;
            }
            (None, _) => {}
        }
    }

    /// Reads an expansion that begins with `$` or a backtick.
    fn expansion(&mut self, word: &mut Word, unknown: char) {
        if self.peek(0) == Some('`') {
            self.backticks();
            return word.text.push(unknown);
        }
        self.at += 1;
        match self.peek(0) {
            Some('(') => {
                self.at += 1;
                self.substitution();
            }
            Some('{') => {
                self.at += 1;
                self.deeper(|it| it.parameter(unknown));
            }
            Some('\'') if unknown == SPLIT => return self.escaped_text(word),
            // `$"…"`: a translatable string.
            Some('"') if unknown == SPLIT => return self.double_quoted(word),
            Some(name) if name.is_ascii_alphabetic() || name == '_' => {
                while self.peek(0).is_some_and(|it| it.is_ascii_alphanumeric() || it == '_') {
                    self.at += 1;
                }
            }
            Some('0'..='9' | '@' | '*' | '#' | '?' | '-' | '$' | '!') => self.at += 1,
            _ => return word.text.push('$'),
        }
        word.text.push(unknown);
    }

    /// Reads `$'…'`. A shell without this syntax ends the text at the first quote.
    fn escaped_text(&mut self, word: &mut Word) {
        let start = self.at;
        self.single_quoted(word);
        if self.chars[start..self.at].contains(&'\\') {
            self.unclear();
        }
    }

    /// Reads `LIST)`, or an arithmetic expression if it ends with `))`.
    fn substitution(&mut self) {
        if self.peek(0) == Some('(') && self.arithmetic() {
            return;
        }
        let (current, pending) = (take(&mut self.current), take(&mut self.pending));
        self.deeper(|it| {
            if it.list(Until::Paren) != Ended::Paren {
                it.unclear();
            }
        });
        if !take(&mut self.pending).is_empty() {
            self.unclear();
        }
        (self.current, self.pending) = (current, pending);
    }

    /// Reads `(EXPRESSION))`; returns false if something else follows.
    fn arithmetic(&mut self) -> bool {
        let (mut open, mut end) = (0_usize, None);
        for (n, it) in self.chars[self.at..].iter().enumerate() {
            match it {
                '(' => open += 1,
                ')' if open == 0 => {
                    end = Some(n);
                    break;
                }
                ')' => open -= 1,
                // No arithmetic expression contains these.
                ';' | '\n' | '\'' | '"' | '#' | '\\' => return false,
                _ => {}
            }
        }
        let Some(end) = end.filter(|n| self.chars[self.at + n - 1] == ')') else { return false };
        let text: String = self.chars[self.at..self.at + end].iter().collect();
        self.deeper(|it| drop(it.expanded(&text)));
        self.at += end + 1;
        true
    }

    /// Reads `NAME…}`.
    fn parameter(&mut self, unknown: char) {
        let mut inner = Word::default();
        loop {
            match self.peek(0) {
                None => return self.unclear(),
                Some('}') => break,
                Some('\'') if unknown == SPLIT => self.single_quoted(&mut inner),
                Some('"') => self.double_quoted(&mut inner),
                Some(_) => self.quoted_character(&mut inner),
            }
        }
        // `${x@P}` runs the code in the value of `x`.
        if inner.text.ends_with("@P") {
            self.unclear();
        }
        self.at += 1;
    }

    fn backticks(&mut self) {
        self.at += 1;
        let mut text = String::new();
        loop {
            match (self.peek(0), self.peek(1)) {
                (None, _) => return self.unclear(),
                (Some('`'), _) => break,
                (Some('\\'), Some(escaped @ ('$' | '`' | '\\' | '"'))) => {
                    text.push(escaped);
                    self.at += 2;
                }
                (Some(plain), _) => {
                    text.push(plain);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        match self.depth < MAX_DEPTH {
            true => parse_into(&text, self.depth + 1, self.script),
            false => self.unclear(),
        }
    }
}

/// How far the parser is in `{a,b}`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Braces {
    None,
    Open,
    Several,
    Closed,
}

impl Braces {
    const fn then(self, character: char) -> Self {
        match (self, character) {
            (Self::None, '{') => Self::Open,
            (Self::Open, ',' | '.') => Self::Several,
            (Self::Several, '}') => Self::Closed,
            (other, _) => other,
        }
    }
}
