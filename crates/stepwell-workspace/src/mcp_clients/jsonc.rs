//! JSON with comments and trailing commas, as editors' settings are written: entries are found, added
//! and removed in the text, so that nothing else changes.
//!
//! The whole text is parsed before anything is changed. A removal takes tokens out and joins no line
//! to another, so that no comment reaches over what follows it.

use std::ops::Range;

use jsonc_parser::ast::{self, Object, ObjectProp};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::Value;

/// JSON with comments and trailing commas, and nothing else of JSON5: the programs whose settings
/// these are would refuse it.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Settings that were parsed.
pub(super) struct Document<'a> {
    /// Without the byte order mark that the file may begin with.
    text: &'a str,
    mark: usize,
    /// Absent if the text holds nothing but spaces and comments.
    root: Option<Object<'a>>,
    /// In order, comments among them.
    tokens: Vec<TokenAndRange<'a>>,
}

impl<'a> Document<'a> {
    /// Parses a text: an object, or nothing at all.
    pub(super) fn read(file: &'a str) -> Result<Self, String> {
        let text = file.strip_prefix('\u{feff}').unwrap_or(file);
        let comments = CommentCollectionStrategy::AsTokens;
        let collected = CollectOptions { comments, tokens: true };
        let parsed = parse_to_ast(text, &collected, &SYNTAX).map_err(|error| error.to_string())?;
        let root = match parsed.value {
            None => None,
            Some(ast::Value::Object(root)) => Some(root),
            Some(_) => return Err("it is not an object".to_owned()),
        };
        let (mark, tokens) = (file.len() - text.len(), parsed.tokens.unwrap_or_default());
        // The parser takes line breaks in texts, which other programs refuse.
        let is_plain = |token: &TokenAndRange<'_>| {
            !matches!(token.token, Token::String(_) | Token::Number(_))
                || serde_json::from_str::<Value>(token.text(text)).is_ok()
        };
        if let Some(odd) = tokens.iter().find(|token| !is_plain(token)) {
            let line = text[..odd.start()].matches('\n').count() + 1;
            return Err(format!("line {line}: no value of JSON"));
        }
        Ok(Self { text, mark, root, tokens })
    }

    /// The value of an entry in a section, if it is there.
    pub(super) fn entry(&self, section: &str, name: &str) -> Result<Option<Value>, String> {
        Ok(self.find(section, name)?.map(|entry| entry.value.clone().into()))
    }

    /// All values.
    pub(super) fn all(&self) -> Value {
        match &self.root {
            None => Value::Object(serde_json::Map::new()),
            Some(root) => ast::Value::Object(root.clone()).into(),
        }
    }

    /// The comments, without those in an entry.
    pub(super) fn comments(&self, section: &str, name: &str) -> Result<Vec<&'a str>, String> {
        let own = self.find(section, name)?;
        let is_own = |at: usize| own.is_some_and(|own| (own.start()..own.end()).contains(&at));
        let comments = self.tokens.iter().filter(|it| is_comment(it) && !is_own(it.start()));
        Ok(comments.map(|comment| comment.text(self.text)).collect())
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
        let Some(root) = &self.root else {
            let gap = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { "\n" };
            let piece = format!("{gap}{{\n  {named}: {{\n    {one}\n  }}\n}}\n");
            return Ok((self.mark + self.text.len(), piece));
        };
        let (at, piece) = match self.section(section)? {
            Some(found) => self.put(found, &format!("    {one}"), "  "),
            None => self.put(root, &format!("  {named}: {{\n    {one}\n  }}"), ""),
        };
        Ok((self.mark + at, piece))
    }

    /// What is removed with an entry: it, the comma that separates it, and the spaces of a line
    /// that holds nothing else.
    pub(super) fn removal(&self, section: &str, name: &str) -> Result<Vec<Range<usize>>, String> {
        let entry = self.find(section, name)?.ok_or("it is not there")?;
        let span = entry.start()..entry.end();
        let code = || self.tokens.iter().filter(|token| !is_comment(token));
        let behind = code().find(|token| token.start() >= span.end);
        let before = code().rev().find(|token| token.end() <= span.start);
        // The last entry has no comma behind it: the one in front goes, if there is one.
        let comma = [behind, before].into_iter().flatten().find(|it| it.token == Token::Comma);
        let comma = comma.map(|comma| comma.start()..comma.end());
        let follows = comma.as_ref().is_some_and(|comma| comma.start == span.end);
        let whole = span.start..comma.as_ref().filter(|_| follows).map_or(span.end, |it| it.end);
        let mut removed = vec![self.with_line(whole)];
        removed.extend(comma.filter(|_| !follows));
        removed.sort_by_key(|range| range.start);
        let in_file = |range: Range<usize>| self.mark + range.start..self.mark + range.end;
        Ok(removed.into_iter().map(in_file).collect())
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
    fn put(&self, object: &Object<'_>, line: &str, outer: &str) -> (usize, String) {
        let begin = object.range.start + 1;
        let comma = if object.properties.is_empty() { "" } else { "," };
        let rest = self.text[begin..].split('\n').next().unwrap_or_default();
        let ends = begin + rest.len() < self.text.len();
        let bare = rest.strip_suffix('\r').unwrap_or(rest);
        let noted = bare.trim_start();
        let (at, piece) = if ends && (noted.is_empty() || noted.starts_with("//")) {
            (begin + bare.len(), format!("\n{line}{comma}"))
        } else {
            (begin, format!("\n{line}{comma}\n{outer}"))
        };
        (at, if bare == rest { piece } else { piece.replace('\n', "\r\n") })
    }

    fn find(&self, section: &str, name: &str) -> Result<Option<&ObjectProp<'a>>, String> {
        self.section(section)?.map_or(Ok(None), |section| only(section, name))
    }

    fn section(&self, name: &str) -> Result<Option<&Object<'a>>, String> {
        let Some(root) = &self.root else { return Ok(None) };
        let Some(entry) = only(root, name)? else { return Ok(None) };
        let section = entry.value.as_object().ok_or_else(|| format!("{name:?} is not an object"));
        section.map(Some)
    }
}

/// The entry of a name in an object. If there are two, programs differ in which one counts.
fn only<'o, 'a>(object: &'o Object<'a>, name: &str) -> Result<Option<&'o ObjectProp<'a>>, String> {
    let mut named = object.properties.iter().filter(|entry| entry.name.as_str() == name);
    match (named.next(), named.next()) {
        (_, Some(_)) => Err(format!("it has {name:?} twice")),
        (first, None) => Ok(first),
    }
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

#[cfg(test)]
mod tests;
