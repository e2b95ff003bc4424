//! `search`: finds lines that match a regular expression.

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::model::counted;
use stepwell_files::safe_path::{Last, SafePath};

use super::blocking::{Looking, Wanted};
use super::walk::{self, Go, Within, one_line};
use super::{Content, ToolEnv, cut, parse, spec, word};

/// The most lines in a result: more than a model can use.
const MAX_HITS: usize = 200;

/// How much of a line is returned: generated files have lines of megabytes.
const MAX_LINE_BYTES: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    ignore_case: Option<bool>,
}

/// The tool.
pub(super) fn search() -> Looking {
    let spec = spec(
        "search",
        "Searches the text files of the workspace for lines that match a regular expression, and \
         returns them as path:line: text. Files that .gitignore excludes are omitted. A match \
         cannot span lines; look-around and back-references are not supported.",
        &json!({
            "pattern": {
                "type": "string",
                "description": "A regular expression in Rust's syntax, such as fn\\s+main or \
                    TODO|FIXME."
            },
            "path": {
                "type": "string",
                "description": "A file or folder, relative to the workspace. Default: the whole \
                    workspace."
            },
            "glob": {
                "type": "string",
                "description": "Only matching files, such as *.rs; relative to path."
            },
            "ignore_case": {
                "type": "boolean",
                "description": "Ignore case. Default: false."
            }
        }),
        &["pattern"],
    );
    Looking {
        spec,
        preview: |arguments| format!("search for {}", word(arguments, "pattern")),
        look,
    }
}

fn look(arguments: &Value, place: &ToolEnv, wanted: &Wanted) -> Result<String, String> {
    let arguments: Arguments = parse("search", arguments)?;
    let pattern = RegexBuilder::new(&arguments.pattern)
        .case_insensitive(arguments.ignore_case.unwrap_or(false))
        .build()
        .map_err(|error| format!("invalid pattern: {error}"))?;
    let within = Within { path: arguments.path.as_deref(), glob: arguments.glob.as_deref() };
    let mut hits = Hits { shown: String::new(), count: 0, limit: place.output_limit, full: false };
    let mut skipped = 0_usize;
    walk::files(place, within, wanted, |path| {
        match SafePath::find(&place.files(), path, Last::Keep).and_then(|spot| spot.content()) {
            Ok(Content::File { bytes, .. }) => hits.take_from(path, &bytes, &pattern),
            Ok(_) => {}
            // Too large, unreadable, or changed meanwhile.
            Err(_) => skipped += 1,
        }
        Ok(if hits.full { Go::Stop } else { Go::On })
    })?;
    Ok(hits.told(skipped))
}

/// The matches so far.
struct Hits {
    shown: String,
    count: usize,
    limit: usize,
    full: bool,
}

impl Hits {
    fn take_from(&mut self, path: &str, bytes: &[u8], pattern: &Regex) {
        if bytes.contains(&0) {
            return;
        }
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            // There is no line after the last line break.
            let is_end = line.is_empty()
                && number > 0
                && line.as_ptr_range().end == bytes.as_ptr_range().end;
            if is_end || !pattern.is_match(line) {
                continue;
            }
            let text = String::from_utf8_lossy(line);
            let text = shortened(&text);
            let hit = format!("{}:{}: {text}\n", one_line(path), number + 1);
            if self.count == MAX_HITS || self.shown.len() + hit.len() > self.limit {
                self.full = true;
                return;
            }
            self.shown.push_str(&hit);
            self.count += 1;
        }
    }

    fn told(mut self, skipped: usize) -> String {
        if self.full {
            let count = self.count;
            self.shown.push_str(&format!(
                "[these are the first {count} matches; to see others, narrow the search with \
                 path, glob or a more specific pattern]"
            ));
        } else if self.count == 0 {
            self.shown.push_str("[no line matches]");
        }
        if skipped > 0 {
            self.shown.push_str(&format!("\n[not read: {}]", counted(skipped, "file")));
        }
        self.shown
    }
}

fn shortened(line: &str) -> String {
    match cut(line, MAX_LINE_BYTES) {
        all if all.len() == line.len() => all.to_owned(),
        part => format!("{part} [{} more]", counted(line.len() - part.len(), "byte")),
    }
}
