//! What a call changes in files, as its arguments tell it: a diff says more than two texts.

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

/// What a call changes in one file.
#[derive(Debug, PartialEq)]
pub(crate) struct Edit {
    /// The file, if it is named apart from the change.
    pub(crate) path: Option<String>,
    pub(crate) lines: Vec<Line>,
}

/// A line of a diff.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Kept(String),
    Added(String),
    Removed(String),
    /// Says where it is.
    Place(String),
}

impl Line {
    /// The line as a unified diff has it.
    pub(crate) fn unified(&self) -> String {
        match self {
            Self::Kept(text) => format!(" {text}"),
            Self::Added(text) => format!("+{text}"),
            Self::Removed(text) => format!("-{text}"),
            Self::Place(text) => text.clone(),
        }
    }
}

/// What agents call the text before, and the one after.
const PAIRS: [(&str, &str); 4] = [
    ("old_text", "new_text"),
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old", "new"),
];

/// What agents call a whole new content.
const WHOLE: [&str; 3] = ["content", "file_text", "contents"];

/// What agents call a file.
const PATHS: [&str; 4] = ["path", "file_path", "filename", "file"];

/// Longer texts are not compared line by line: that could take very long.
const MAX_LINES: usize = 5_000;

/// What a call changes, and the arguments that say nothing about it.
pub(super) fn edits(tool: &str, arguments: &str) -> (Vec<Edit>, Option<String>) {
    let whole = || (Vec::new(), Some(arguments.to_owned()));
    if let Some(patch) = patch(arguments) {
        return (vec![patch], None);
    }
    let Ok(Value::Object(mut rest)) = serde_json::from_str::<Value>(arguments) else {
        return whole();
    };
    let path = PATHS.iter().find_map(|name| Some((*name, rest.get(*name)?.as_str()?.to_owned())));
    let mut edits: Vec<Edit> = Vec::new();
    edits.extend(take_pair(&mut rest));
    if let Some(Value::Array(several)) = rest.get("edits") {
        let each: Option<Vec<Edit>> =
            several.iter().map(|edit| take_pair(&mut edit.as_object()?.clone())).collect();
        if let Some(each) = each.filter(|each| !each.is_empty()) {
            edits.extend(each);
            rest.remove("edits");
        }
    }
    let writes = ["write", "create"].iter().any(|word| tool.to_lowercase().contains(word));
    if edits.is_empty() && writes && path.is_some() {
        let content = WHOLE.iter().find(|name| rest.get(**name).is_some_and(Value::is_string));
        if let Some(Value::String(text)) = content.and_then(|name| rest.remove(*name)) {
            edits.push(Edit { path: None, lines: added(&text) });
        }
    }
    if edits.is_empty() {
        let texts = ["patch", "input", "diff"];
        let named = texts
            .into_iter()
            .find(|name| rest.get(*name).and_then(Value::as_str).is_some_and(is_patch));
        if let Some(Value::String(text)) = named.and_then(|name| rest.remove(name)) {
            edits.push(Edit { path: None, lines: patched(&text) });
        }
    }
    if edits.is_empty() {
        return whole();
    }
    if let Some((name, path)) = path {
        rest.remove(name);
        edits.iter_mut().for_each(|edit| edit.path = Some(path.clone()));
    }
    let left = (!rest.is_empty()).then(|| Value::Object(rest).to_string());
    (edits, left)
}

/// The change in a pair of texts, which are taken out.
fn take_pair(arguments: &mut Map<String, Value>) -> Option<Edit> {
    let is_text = |name: &str| arguments.get(name).is_some_and(Value::is_string);
    let (old, new) = PAIRS.into_iter().find(|(old, new)| is_text(old) && is_text(new))?;
    let (Some(Value::String(old)), Some(Value::String(new))) =
        (arguments.remove(old), arguments.remove(new))
    else {
        return None;
    };
    Some(Edit { path: None, lines: compared(&old, &new) })
}

fn compared(old: &str, new: &str) -> Vec<Line> {
    if old.lines().count().max(new.lines().count()) > MAX_LINES {
        let removed = old.lines().map(|line| Line::Removed(line.to_owned()));
        return removed.chain(added(new)).collect();
    }
    let diff = TextDiff::from_lines(old, new);
    let line = |change: similar::Change<&str>| {
        let text = change.value().trim_end_matches(['\r', '\n']).to_owned();
        match change.tag() {
            ChangeTag::Equal => Line::Kept(text),
            ChangeTag::Insert => Line::Added(text),
            ChangeTag::Delete => Line::Removed(text),
        }
    };
    diff.iter_all_changes().map(line).collect()
}

fn added(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::Added(line.to_owned())).collect()
}

/// Arguments that are a patch, and nothing else.
fn patch(arguments: &str) -> Option<Edit> {
    is_patch(arguments).then(|| Edit { path: None, lines: patched(arguments) })
}

fn is_patch(text: &str) -> bool {
    ["*** Begin Patch", "diff --git ", "--- "].iter().any(|front| text.starts_with(front))
}

fn patched(text: &str) -> Vec<Line> {
    let line = |line: &str| match line.as_bytes().first() {
        Some(b'+') if !line.starts_with("+++ ") => Line::Added(line[1..].to_owned()),
        Some(b'-') if !line.starts_with("--- ") => Line::Removed(line[1..].to_owned()),
        Some(b' ') => Line::Kept(line[1..].to_owned()),
        _ => Line::Place(line.to_owned()),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unified(tool: &str, arguments: &str) -> (Vec<String>, Option<String>) {
        let (edits, rest) = edits(tool, arguments);
        let lines = edits.iter().flat_map(|it| it.lines.iter().map(Line::unified)).collect();
        (lines, rest)
    }

    #[test]
    fn two_texts_are_a_diff_whatever_they_are_called() {
        for (old, new) in PAIRS {
            let arguments = format!(
                r#"{{"path":"a.rs","{old}":"one\ntwo\n","{new}":"one\nthree\n","all":true}}"#
            );
            let (lines, rest) = unified("edit", &arguments);
            assert_eq!(lines, [" one", "-two", "+three"]);
            assert_eq!(rest.as_deref(), Some("{\"all\":true}"));
        }
        let several = r#"{"file_path":"a","edits":[{"old_string":"a","new_string":"b"},
            {"old_string":"c","new_string":""}]}"#;
        assert_eq!(
            unified("MultiEdit", several),
            (["-a", "+b", "-c"].map(str::to_owned).to_vec(), None)
        );
    }

    #[test]
    fn a_file_that_is_written_is_all_new_and_a_patch_is_one() {
        let (lines, rest) = unified("write_file", r#"{"path":"a","content":"x\ny"}"#);
        assert_eq!((lines, rest), (vec!["+x".to_owned(), "+y".to_owned()], None));
        let patch = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n z\n*** End Patch";
        let (lines, _) = unified("apply_patch", patch);
        assert_eq!(lines.join("\n"), patch);
        let (lines, _) = unified("patch", &serde_json::json!({"patch": patch}).to_string());
        assert_eq!(lines.join("\n"), patch);
    }

    #[test]
    fn other_calls_stay_as_they_are() {
        for arguments in [r#"{"content":"x","path":"a"}"#, "no json", "[1]", r#"{"old":1,"new":2}"#]
        {
            assert_eq!(unified("search", arguments), (Vec::new(), Some(arguments.to_owned())));
        }
    }
}
