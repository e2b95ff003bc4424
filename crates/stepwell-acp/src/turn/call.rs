//! A call of a tool as an editor shows it: a title, a kind, the files it is about. Pure.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Call;

/// What sort of thing a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    Read,
    Edit,
    Delete,
    Search,
    Execute,
    Think,
    Fetch,
    Other,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The file.
    pub(crate) path: PathBuf,
    /// The line, from 1.
    pub(crate) line: Option<u32>,
}

/// The longest title.
const LONGEST_TITLE: usize = 120;

impl Call {
    /// A call as the model wrote it, in a workspace.
    pub(crate) fn of(id: &str, tool: &str, arguments: &str, root: &Path) -> Self {
        // Arguments may be malformed: they are shown as they are.
        let input = serde_json::from_str(arguments);
        let input = input.unwrap_or_else(|_| Value::String(arguments.to_owned()));
        let path = input.get("path").and_then(Value::as_str);
        let line = ["first_line", "line"].iter().find_map(|name| input.get(name)?.as_u64());
        let line = line.and_then(|line| u32::try_from(line).ok());
        let locations = path.map(|path| Location { path: root.join(path), line });
        Self {
            id: id.to_owned(),
            tool: tool.to_owned(),
            title: title(tool, &input),
            kind: kind(tool),
            locations: locations.into_iter().collect(),
            input,
        }
    }
}

fn kind(tool: &str) -> CallKind {
    match tool {
        "read_file" | "list_files" => CallKind::Read,
        "write_file" | "edit_file" => CallKind::Edit,
        "delete_file" => CallKind::Delete,
        "search" => CallKind::Search,
        "run_command" => CallKind::Execute,
        "tasks" | "phase" | "dispatch_subagent" => CallKind::Think,
        other if other.contains("fetch") => CallKind::Fetch,
        _ => CallKind::Other,
    }
}

fn title(tool: &str, input: &Value) -> String {
    let named = |name: &str| input.get(name).and_then(Value::as_str);
    let text = match (tool, named("path")) {
        ("read_file", Some(path)) => format!("Read {path}"),
        ("write_file", Some(path)) => format!("Write {path}"),
        ("edit_file", Some(path)) => format!("Edit {path}"),
        ("delete_file", Some(path)) => format!("Delete {path}"),
        ("list_files", path) => format!("List {}", path.unwrap_or(".")),
        ("search", _) => format!("Search {}", named("text").or(named("pattern")).unwrap_or("")),
        ("run_command", _) => named("command").unwrap_or("Run a command").to_owned(),
        ("tasks", _) => "Change the plan".to_owned(),
        (tool, _) => tool.replace("__", ": ").replace('_', " "),
    };
    let line = text.lines().next().unwrap_or(tool).trim();
    match line.char_indices().nth(LONGEST_TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, arguments: &str) -> Call {
        Call::of("c", tool, arguments, Path::new("/w"))
    }

    #[test]
    fn a_call_says_what_it_does_and_where() {
        let read = call("read_file", r#"{"path": "src/a.rs", "first_line": 7}"#);
        assert_eq!((read.title.as_str(), read.kind), ("Read src/a.rs", CallKind::Read));
        let place = Location { path: "/w/src/a.rs".into(), line: Some(7) };
        assert_eq!(read.locations, [place]);
        let run = call("run_command", r#"{"command": "cargo test\nrm x"}"#);
        assert_eq!((run.title.as_str(), run.kind), ("cargo test", CallKind::Execute));
        assert_eq!(call("github__list_issues", "{}").title, "github: list issues");
    }

    #[test]
    fn malformed_arguments_are_shown_as_they_are() {
        let broken = call("write_file", "{\"path\": ");
        assert_eq!(broken.input, Value::String("{\"path\": ".to_owned()));
        assert!(broken.locations.is_empty());
    }
}
