//! `write_file`, `edit_file` and `delete_file`: tools that change one file.
//!
//! A change is first prepared in memory. Plan and execution use the same preparation, so the
//! announced change is the one that is made. It happens between two await points, so dropping the
//! future cannot interrupt it: the change is made completely or not at all.

use futures_util::future::BoxFuture;
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::model::{Effect, ToolTarget, counted};
use stepwell_files::safe_fs::MAX_FILE_BYTES;
use stepwell_files::safe_path::{Last, SafePath};

use super::guard;
use super::read::text;
use super::{Changed, Content, Done, Plan, Tool, ToolEnv, parse, spec, visible, word};
use crate::provider::ToolSpec;

/// Longer texts are not diffed for an approval: it would take too long, and nobody reads that much.
const MAX_COMPARED: usize = 1 << 20;

/// A tool that changes one file.
#[derive(Debug)]
pub(super) struct Changing {
    spec: ToolSpec,
    preview: fn(&Value) -> String,
    prepare: fn(&Value, &ToolEnv) -> Result<Change, String>,
}

/// A prepared change.
struct Change {
    spot: SafePath,
    before: Content,
    /// The new content; `None` to delete the file.
    after: Option<Vec<u8>>,
    /// The result for the model.
    told: String,
}

impl Change {
    /// The diff with some context: complete, since each front end shows as much as fits. `None` for
    /// binary and very long files.
    fn detail(&self) -> Option<String> {
        let before = match &self.before {
            Content::File { bytes, .. } => std::str::from_utf8(bytes).ok()?,
            _ => "",
        };
        let after = std::str::from_utf8(self.after.as_deref().unwrap_or_default()).ok()?;
        if before.len() + after.len() > MAX_COMPARED {
            return None;
        }
        let diff = similar::TextDiff::from_lines(before, after);
        let lines = diff.unified_diff().context_radius(2).to_string();
        let shown = |line: &str| line.chars().flat_map(shown).collect::<String>();
        Some(lines.lines().map(shown).collect::<Vec<_>>().join("\n"))
    }

    fn make(self) -> Result<Done, String> {
        let (unchanged, mode) = match (&self.before, &self.after) {
            (Content::File { bytes, mode }, Some(after)) => (bytes == after, Some(*mode)),
            _ => (false, None),
        };
        if unchanged {
            return Ok(Done::ok(self.spot.says("the file has exactly this content already")));
        }
        let after = match self.after {
            Some(bytes) => {
                let written = self.spot.replace(&bytes)?;
                Content::File { bytes, mode: mode.unwrap_or(written) }
            }
            None => {
                self.spot.remove()?;
                Content::Absent
            }
        };
        let changed = vec![Changed { path: self.spot.path, before: self.before, after }];
        Ok(Done { changed, ..Done::ok(self.told) })
    }
}

impl Tool for Changing {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn preview(&self, arguments: &Value) -> String {
        (self.preview)(arguments)
    }

    fn detail(&self, arguments: &Value, place: &ToolEnv) -> Option<String> {
        (self.prepare)(arguments, place).ok()?.detail()
    }

    fn plan(&self, arguments: &Value, place: &ToolEnv) -> Result<Plan, String> {
        let change = (self.prepare)(arguments, place)?;
        let after = change.after.as_deref().map(stepwell::model::Digest::of);
        let before = change.before.digest();
        let targets = vec![ToolTarget { path: change.spot.path, before, after }];
        Ok(Plan { targets, child: None })
    }

    fn run<'a>(&'a self, arguments: &'a Value, place: &'a ToolEnv) -> BoxFuture<'a, Done> {
        Box::pin(async move {
            (self.prepare)(arguments, place).and_then(Change::make).unwrap_or_else(Done::failed)
        })
    }
}

/// Writes a whole file.
pub(super) fn write_file() -> Changing {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        path: String,
        content: String,
    }
    let prepare = |arguments: &Value, place: &ToolEnv| {
        let Arguments { path, content } = parse("write_file", arguments)?;
        let spot = target(place, &path, Last::Follow)?;
        fits(content.len()).map_err(|why| spot.says(why))?;
        let before = spot.content()?;
        let told = spot.says(format!("written, {}", counted(content.len(), "byte")));
        Ok(Change { spot, before, after: Some(content.into_bytes()), told })
    };
    let spec = spec(
        "write_file",
        "Writes a file of the workspace: makes it, with the folders on the way, or replaces \
         all that it holds. To change a part of a file, use edit_file.",
        &json!({
            "path": {
                "type": "string",
                "description": "The file, relative to the workspace, such as src/main.rs."
            },
            "content": { "type": "string", "description": "The complete new content of the file." }
        }),
        &["path", "content"],
    );
    let preview = |arguments: &Value| {
        let bytes = arguments["content"].as_str().map_or(0, str::len);
        format!("write {} ({})", word(arguments, "path"), counted(bytes, "byte"))
    };
    Changing { spec, preview, prepare }
}

/// Changes a part of a file.
pub(super) fn edit_file() -> Changing {
    let spec = spec(
        "edit_file",
        "Replaces a piece of text in a file of the workspace. old_text has to be just as it \
         stands in the file, with its white space, and has to occur exactly once: take in \
         lines around it until it does, or set replace_all to replace every occurrence.",
        &json!({
            "path": {
                "type": "string",
                "description": "The file, relative to the workspace, such as src/main.rs."
            },
            "old_text": {
                "type": "string", "minLength": 1,
                "description": "The text to replace, exactly as in the file."
            },
            "new_text": {
                "type": "string",
                "description": "The new text; empty to remove the old one."
            },
            "replace_all": {
                "type": "boolean",
                "description": "Replace every occurrence. Default: false."
            }
        }),
        &["path", "old_text", "new_text"],
    );
    let preview = |arguments: &Value| {
        let lines = |name: &str| arguments[name].as_str().map_or(0, |text| text.lines().count());
        let (old, new) = (lines("old_text"), lines("new_text"));
        format!("edit {} (-{old} +{new} lines)", word(arguments, "path"))
    };
    Changing { spec, preview, prepare: prepare_edit }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    path: String,
    old_text: String,
    new_text: String,
    replace_all: Option<bool>,
}

fn prepare_edit(arguments: &Value, place: &ToolEnv) -> Result<Change, String> {
    let edit: Edit = parse("edit_file", arguments)?;
    let spot = target(place, &edit.path, Last::Follow)?;
    let Content::File { bytes, mode } = spot.content()? else {
        return Err(spot.says("no such file; write_file creates one"));
    };
    let old = text(bytes).map_err(|why| spot.says(why))?;
    let (new, times) = replaced(&old, &edit).map_err(|why| spot.says(why))?;
    fits(new.len()).map_err(|why| spot.says(why))?;
    let told = spot.says(match times {
        1 => "edited".to_owned(),
        times => format!("edited in {times} places"),
    });
    let before = Content::File { bytes: old.into_bytes(), mode };
    Ok(Change { spot, before, after: Some(new.into_bytes()), told })
}

/// The text after the edit, and the number of replaced occurrences.
fn replaced(text: &str, edit: &Edit) -> Result<(String, usize), String> {
    let (old, new) = (edit.old_text.as_str(), edit.new_text.as_str());
    if old.is_empty() {
        return Err("old_text is empty; use write_file to write a whole file".to_owned());
    }
    if old == new {
        return Err("old_text and new_text are the same".to_owned());
    }
    match (text.matches(old).count(), edit.replace_all.unwrap_or(false)) {
        (0, _) if text.contains("\r\n") && text.replace("\r\n", "\n").contains(old) => {
            Err("old_text was not found: the file's lines end with \\r\\n; write them so in \
                 old_text and new_text"
                .to_owned())
        }
        (0, _) => Err("old_text was not found; read the file again and copy the text exactly, \
            including white space"
            .to_owned()),
        (times, true) => {
            let longer = new.len().saturating_sub(old.len()).saturating_mul(times);
            fits(text.len().saturating_add(longer))?;
            Ok((text.replace(old, new), times))
        }
        (1, false) => Ok((text.replacen(old, new, 1), 1)),
        (times, false) => Err(format!(
            "old_text occurs {times} times; include surrounding lines until it is unique, or set \
             replace_all"
        )),
    }
}

/// Deletes a file.
pub(super) fn delete_file() -> Changing {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        path: String,
    }
    let prepare = |arguments: &Value, place: &ToolEnv| {
        let Arguments { path } = parse("delete_file", arguments)?;
        let spot = target(place, &path, Last::Keep)?;
        let before = match spot.kind() {
            None => return Err(spot.says("no such file")),
            Some(FileType::Directory) => {
                return Err(spot.says("it is a folder; delete_file deletes files only"));
            }
            Some(_) => spot.content()?,
        };
        let told = spot.says("deleted");
        Ok(Change { spot, before, after: None, told })
    };
    let spec = spec(
        "delete_file",
        "Deletes one file of the workspace. A symbolic link is deleted itself, not what it \
         points at. Folders are not deleted.",
        &json!({
            "path": { "type": "string", "description": "The file, relative to the workspace." }
        }),
        &["path"],
    );
    let preview = |arguments: &Value| format!("delete {}", word(arguments, "path"));
    Changing { spec, preview, prepare }
}

/// The resolved target of a path, if it may be changed.
fn target(place: &ToolEnv, path: &str, last: Last) -> Result<SafePath, String> {
    let spot = SafePath::find(&place.files(), path, last)?;
    guard::refuse(&place.root, &spot, path)?;
    Ok(spot)
}

/// A character made safe for display. A tab moves the cursor, but hides nothing.
fn shown(character: char) -> Vec<char> {
    if character == '\t' { vec!['\t'] } else { visible(character) }
}

/// Is this file size allowed?
fn fits(bytes: usize) -> Result<(), String> {
    if bytes as u64 > MAX_FILE_BYTES {
        return Err(format!("the file would be larger than {} MiB", MAX_FILE_BYTES >> 20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, all: bool) -> Edit {
        let (old_text, new_text) = (old.to_owned(), new.to_owned());
        Edit { path: "f".to_owned(), old_text, new_text, replace_all: Some(all) }
    }

    #[test]
    fn the_old_text_has_to_occur_exactly_once() {
        assert_eq!(replaced("a b", &edit("b", "c", false)), Ok(("a c".to_owned(), 1)));
        let twice = replaced("b b", &edit("b", "c", false)).unwrap_err();
        assert!(twice.contains("2 times") && twice.contains("replace_all"), "{twice}");
        assert_eq!(replaced("b b", &edit("b", "c", true)), Ok(("c c".to_owned(), 2)));
        let never = replaced("a", &edit("b", "c", true)).unwrap_err();
        assert!(never.contains("read the file again"), "{never}");
    }

    #[test]
    fn an_edit_that_says_nothing_is_refused() {
        assert!(replaced("a", &edit("", "c", false)).is_err());
        assert!(replaced("a", &edit("a", "a", false)).is_err());
    }

    #[test]
    fn line_ends_that_differ_are_named() {
        let why = replaced("a\r\nb\r\n", &edit("a\nb", "c", false)).unwrap_err();
        assert!(why.contains("\\r\\n"), "{why}");
    }
}
