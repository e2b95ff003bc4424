//! TOML, as agents' settings are written: added to and taken out of as text, so that nothing else
//! changes. What stands where is what the parser says.

use std::ops::Range;

use serde_json::{Map, Value, json};
use toml_edit::{Document, Item, Table, TomlError};

/// A text that was read, and is sound.
#[derive(Debug)]
pub(super) struct TomlText<'a> {
    text: &'a str,
    document: Document<&'a str>,
}

impl<'a> TomlText<'a> {
    /// Reads a text.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let wrong = |error: TomlError| error.message().to_owned();
        Ok(Self { text, document: Document::parse(text).map_err(wrong)? })
    }

    /// All that an entry says; none, if it is not there.
    pub(super) fn entry(&self, section: &str, name: &str) -> Option<Value> {
        self.document.get(section)?.as_table_like()?.get(name).map(plain)
    }

    /// All that it says, as JSON.
    pub(super) fn all(&self) -> Value {
        plain_table(self.document.as_table())
    }

    /// Where an entry is added, and as which text.
    pub(super) fn insertion(&self, section: &str, name: &str, value: &Value) -> (usize, String) {
        let gap = match self.text {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let command = toml_edit::Value::from(value["command"].as_str().unwrap_or_default());
        let words = value["args"].as_array().into_iter().flatten();
        let words: toml_edit::Array = words.filter_map(Value::as_str).collect();
        let args = toml_edit::Value::from(words);
        let piece = format!("{gap}[{section}.{name}]\ncommand = {command}\nargs = {args}\n");
        (self.text.len(), piece)
    }

    /// What is taken out with an entry: the lines that say something of it. All other lines stay,
    /// comments between them included.
    pub(super) fn removal(&self, section: &str, name: &str) -> Result<Vec<Range<usize>>, String> {
        let found = self.document.get(section).and_then(Item::as_table);
        let found = found.and_then(|table| table.get_key_value(name));
        let (key, item) = found.ok_or("it stands in one line with others; take it out by hand")?;
        let mut spans: Vec<Range<usize>> = key.span().into_iter().collect();
        add_spans(item, &mut spans);
        let mut lines: Vec<Range<usize>> = spans.into_iter().map(|it| self.lines(&it)).collect();
        lines.sort_by_key(|range| range.start);
        let mut removed: Vec<Range<usize>> = Vec::new();
        for range in lines {
            match removed.last_mut().filter(|last| range.start <= last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => removed.push(range),
            }
        }
        if let Some(first) = removed.first_mut() {
            first.start = self.without_gap(first);
        }
        Ok(removed)
    }

    /// The lines on which a stretch stands.
    fn lines(&self, span: &Range<usize>) -> Range<usize> {
        let begin = self.text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[span.end..].find('\n').map_or(self.text.len(), |at| span.end + at + 1);
        begin..end
    }

    /// Where lines begin that are taken out, with the empty one in front of them, if one follows as
    /// well or nothing does.
    fn without_gap(&self, lines: &Range<usize>) -> usize {
        let (front, back) = (&self.text[..lines.start], &self.text[lines.end..]);
        let is_over = back.trim().is_empty() || back.starts_with('\n') || back.starts_with("\r\n");
        for gap in ["\r\n", "\n"] {
            if is_over && front.strip_suffix(gap).is_some_and(|it| it.ends_with('\n')) {
                return front.len() - gap.len();
            }
        }
        lines.start
    }
}

/// Adds where something stands. Of a table that only others' headers and keys imply, the parser
/// says where they name it.
fn add_spans(item: &Item, spans: &mut Vec<Range<usize>>) {
    spans.extend(item.span());
    match item {
        Item::Table(table) => add_spans_of_table(table, spans),
        Item::ArrayOfTables(tables) => tables.iter().for_each(|table| {
            spans.extend(table.span());
            add_spans_of_table(table, spans);
        }),
        Item::Value(_) | Item::None => {}
    }
}

fn add_spans_of_table(table: &Table, spans: &mut Vec<Range<usize>>) {
    for (name, item) in table {
        spans.extend(table.key(name).and_then(toml_edit::Key::span));
        add_spans(item, spans);
    }
}

/// An item as JSON, for comparing.
fn plain(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => plain_value(value),
        Item::Table(table) => plain_table(table),
        Item::ArrayOfTables(tables) => tables.iter().map(plain_table).collect(),
    }
}

fn plain_table(table: &Table) -> Value {
    let entries = table.iter().map(|(name, item)| (name.to_owned(), plain(item)));
    Value::Object(entries.collect::<Map<_, _>>())
}

fn plain_value(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(it) => json!(it.value()),
        Toml::Integer(it) => json!(it.value()),
        Toml::Boolean(it) => json!(it.value()),
        // Told from a text that says the same.
        Toml::Float(it) => json!({ "float": it.value().to_string() }),
        Toml::Datetime(it) => json!({ "time": it.value().to_string() }),
        Toml::Array(it) => it.iter().map(plain_value).collect(),
        Toml::InlineTable(it) => {
            let entries = it.iter().map(|(name, value)| (name.to_owned(), plain_value(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests;
