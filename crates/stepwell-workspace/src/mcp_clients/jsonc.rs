//! JSON with comments and trailing commas, as editors' settings are written: found, added to and
//! taken out of as text, so that nothing else changes.
//!
//! The whole text is read before anything is changed. What is taken out are tokens: no line is
//! joined to another, so that no comment reaches over what follows it.

use std::ops::Range;

use serde_json::Value;

/// How deep values may nest. Settings do not, and each level is a call of a function.
const DEEPEST: usize = 100;

/// What a text consists of, without spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A brace, a bracket, a colon or a comma.
    Mark(u8),
    Text,
    /// A number, or `true`, `false` or `null`.
    Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    kind: Kind,
    begin: usize,
    end: usize,
}

/// An object's entry, by its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Its name.
    key: usize,
    /// Where its value begins, and where that is over.
    value: usize,
    end: usize,
}

/// A text that was read, and is sound.
#[derive(Debug)]
pub(super) struct Document<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// Where comments begin, and they.
    comments: Vec<(usize, &'a str)>,
}

impl<'a> Document<'a> {
    /// Reads a text: an object, or nothing at all.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let mut document = Self { text, tokens: Vec::new(), comments: Vec::new() };
        document.split()?;
        if document.tokens.is_empty() {
            return Ok(document);
        }
        if document.mark(0) != Some(b'{') {
            return Err(document.wrong(0, "an object is expected"));
        }
        let end = document.value_end(0, 0)?;
        match document.tokens.get(end) {
            Some(_) => Err(document.wrong(end, "nothing is expected behind the object")),
            None => Ok(document),
        }
    }

    /// The value of an entry in a section; none, if it is not there.
    pub(super) fn entry(&self, section: &str, name: &str) -> Result<Option<Value>, String> {
        let Some(entry) = self.find(section, name)? else { return Ok(None) };
        self.plain(entry.value..entry.end).map(Some)
    }

    /// All that it says.
    pub(super) fn all(&self) -> Result<Value, String> {
        match self.tokens.is_empty() {
            true => Ok(Value::Object(serde_json::Map::new())),
            false => self.plain(0..self.tokens.len()),
        }
    }

    /// The comments, without those in an entry.
    pub(super) fn comments(&self, section: &str, name: &str) -> Result<Vec<&'a str>, String> {
        let own = self.find(section, name)?.map(|entry| self.span(entry));
        let is_own = |at: &usize| own.as_ref().is_some_and(|own| own.contains(at));
        let comments = self.comments.iter().filter(|(at, _)| !is_own(at));
        Ok(comments.map(|(_, comment)| *comment).collect())
    }

    /// Where an entry is added, and as which text.
    pub(super) fn insertion(
        &self,
        section: &str,
        name: &str,
        value: &Value,
    ) -> Result<(usize, String), String> {
        let one = format!("{}: {value}", Value::from(name));
        let named = Value::from(section);
        if self.tokens.is_empty() {
            let gap = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { "\n" };
            let piece = format!("{gap}{{\n  {named}: {{\n    {one}\n  }}\n}}\n");
            return Ok((self.text.len(), piece));
        }
        match self.only(0, section)? {
            Some(found) => self.put(found.value, &format!("    {one}"), "  "),
            None => self.put(0, &format!("  {named}: {{\n    {one}\n  }}"), ""),
        }
    }

    /// What is taken out with an entry: it, the comma that separates it, and the spaces of a line
    /// on which nothing else stands.
    pub(super) fn removal(&self, section: &str, name: &str) -> Result<Vec<Range<usize>>, String> {
        let entry = self.find(section, name)?.ok_or("it is not there")?;
        let span = self.span(entry);
        let comma = match self.mark(entry.end) {
            Some(b',') => Some(entry.end),
            // The last one: the comma in front goes, if there is one.
            _ => entry.key.checked_sub(1).filter(|before| self.mark(*before) == Some(b',')),
        };
        let comma = comma.map(|at| self.tokens[at].begin..self.tokens[at].end);
        let follows = comma.as_ref().is_some_and(|comma| comma.start == span.end);
        let whole = span.start..comma.as_ref().filter(|_| follows).map_or(span.end, |it| it.end);
        let mut removed = vec![self.with_line(whole)];
        removed.extend(comma.filter(|_| !follows));
        removed.sort_by_key(|range| range.start);
        Ok(removed)
    }

    /// A range of the text with the line that it fills, or else with the spaces behind it.
    fn with_line(&self, range: Range<usize>) -> Range<usize> {
        let blank = [' ', '\t', '\r'];
        let (front, back) = (&self.text[..range.start], &self.text[range.end..]);
        let (before, behind) = (front.trim_end_matches(blank), back.trim_start_matches(blank));
        if before.ends_with('\n') && behind.starts_with('\n') {
            return before.len()..self.text.len() - behind.len() + 1;
        }
        let spaces = back.len() - back.trim_start_matches([' ', '\t']).len();
        range.start..range.end + spaces
    }

    /// Where a line is put in as an object's first: behind what is noted on the brace's own line,
    /// and in front of what else stands there.
    fn put(&self, brace: usize, line: &str, outer: &str) -> Result<(usize, String), String> {
        let begin = self.tokens[brace].end;
        let comma = if self.entries(brace)?.is_empty() { "" } else { "," };
        let rest = self.text[begin..].split('\n').next().unwrap_or_default();
        let ends = begin + rest.len() < self.text.len();
        let bare = rest.strip_suffix('\r').unwrap_or(rest);
        let noted = bare.trim_start();
        let (at, piece) = if ends && (noted.is_empty() || noted.starts_with("//")) {
            (begin + bare.len(), format!("\n{line}{comma}"))
        } else {
            (begin, format!("\n{line}{comma}\n{outer}"))
        };
        let piece = if bare == rest { piece } else { piece.replace('\n', "\r\n") };
        Ok((at, piece))
    }

    fn span(&self, entry: Entry) -> Range<usize> {
        self.tokens[entry.key].begin..self.tokens[entry.end - 1].end
    }

    fn find(&self, section: &str, name: &str) -> Result<Option<Entry>, String> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let Some(found) = self.only(0, section)? else { return Ok(None) };
        self.only(found.value, name)
    }

    /// The entry of a name in an object. Of two, who knows which one counts?
    fn only(&self, brace: usize, name: &str) -> Result<Option<Entry>, String> {
        let mut named = self.entries(brace)?.into_iter().filter(|(key, _)| key == name);
        let first = named.next().map(|(_, entry)| entry);
        match named.next() {
            Some((_, second)) => Err(self.wrong(second.key, &format!("a second {name:?}"))),
            None => Ok(first),
        }
    }

    /// The entries of a sound object.
    fn entries(&self, brace: usize) -> Result<Vec<(String, Entry)>, String> {
        if self.mark(brace) != Some(b'{') {
            return Err(self.wrong(brace, "an object is expected"));
        }
        let (mut at, mut entries) = (brace + 1, Vec::new());
        while self.mark(at) != Some(b'}') {
            let (value, end) = (at + 2, self.value_end(at + 2, 0)?);
            entries.push((self.string(at)?, Entry { key: at, value, end }));
            at = end + usize::from(self.mark(end) == Some(b','));
        }
        Ok(entries)
    }

    /// Behind the value that begins at a token.
    fn value_end(&self, at: usize, depth: usize) -> Result<usize, String> {
        if depth > DEEPEST {
            return Err(self.wrong(at, "it nests too deep"));
        }
        match self.tokens.get(at).map(|token| token.kind) {
            Some(Kind::Text) => self.string(at).map(|_| at + 1),
            Some(Kind::Word) => match serde_json::from_str::<Value>(self.of(at)) {
                Ok(_) => Ok(at + 1),
                Err(_) => Err(self.wrong(at, "a value is expected")),
            },
            Some(Kind::Mark(open @ (b'{' | b'['))) => self.list_end(at, open, depth),
            _ => Err(self.wrong(at, "a value is expected")),
        }
    }

    /// Behind the object or the array that begins at a token.
    fn list_end(&self, at: usize, open: u8, depth: usize) -> Result<usize, String> {
        let close = if open == b'{' { b'}' } else { b']' };
        let mut at = at + 1;
        while self.mark(at) != Some(close) {
            if open == b'{' {
                self.string(at)?;
                if self.mark(at + 1) != Some(b':') {
                    return Err(self.wrong(at + 1, "a colon is expected"));
                }
                at += 2;
            }
            at = self.value_end(at, depth + 1)?;
            match self.mark(at) {
                Some(b',') => at += 1,
                Some(mark) if mark == close => {}
                _ => return Err(self.wrong(at, "a comma or the end is expected")),
            }
        }
        Ok(at + 1)
    }

    fn string(&self, at: usize) -> Result<String, String> {
        let is_text = self.tokens.get(at).is_some_and(|token| token.kind == Kind::Text);
        let read = is_text.then(|| serde_json::from_str(self.of(at)).ok()).flatten();
        read.ok_or_else(|| self.wrong(at, "a text in quotes is expected"))
    }

    fn mark(&self, at: usize) -> Option<u8> {
        match self.tokens.get(at)?.kind {
            Kind::Mark(mark) => Some(mark),
            _ => None,
        }
    }

    fn of(&self, at: usize) -> &'a str {
        &self.text[self.tokens[at].begin..self.tokens[at].end]
    }

    /// Tokens as JSON, without trailing commas.
    fn plain(&self, tokens: Range<usize>) -> Result<Value, String> {
        let closes = |at: usize| matches!(self.mark(at), Some(b'}' | b']'));
        let is_trailing = |at: &usize| self.mark(*at) == Some(b',') && closes(at + 1);
        let plain: String = tokens.filter(|at| !is_trailing(at)).map(|at| self.of(at)).collect();
        serde_json::from_str(&plain).map_err(|error| error.to_string())
    }

    fn wrong(&self, token: usize, what: &str) -> String {
        let at = self.tokens.get(token).map_or(self.text.len(), |token| token.begin);
        wrong_at(self.text, at, what)
    }

    /// Splits the text into tokens and comments.
    fn split(&mut self) -> Result<(), String> {
        let text = self.text;
        let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        while let Some(first) = text[at..].chars().next() {
            let rest = &text[at..];
            let kind = match first {
                it if it.is_whitespace() => {
                    at += it.len_utf8();
                    continue;
                }
                '/' => {
                    let length = comment_length(rest)
                        .ok_or_else(|| wrong_at(text, at, "a value is expected"))?;
                    self.comments.push((at, &rest[..length]));
                    at += length;
                    continue;
                }
                '{' | '}' | '[' | ']' | ':' | ',' => Kind::Mark(rest.as_bytes()[0]),
                '"' => Kind::Text,
                _ => Kind::Word,
            };
            let length = match kind {
                Kind::Mark(_) => 1,
                Kind::Text => {
                    text_length(rest).ok_or_else(|| wrong_at(text, at, "a text does not end"))?
                }
                Kind::Word => rest
                    .find(|it: char| it.is_whitespace() || "{}[]:,\"/".contains(it))
                    .unwrap_or(rest.len()),
            };
            self.tokens.push(Token { kind, begin: at, end: at + length });
            at += length;
        }
        Ok(())
    }
}

fn wrong_at(text: &str, at: usize, what: &str) -> String {
    format!("line {}: {what}", text[..at].matches('\n').count() + 1)
}

/// The length of the comment that a text begins with, without its line's end.
fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    text.starts_with("/*").then(|| text.get(2..)?.find("*/").map(|end| end + 4)).flatten()
}

/// The length of the text in quotes that a text begins with.
fn text_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests;
