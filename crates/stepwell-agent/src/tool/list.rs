//! `list_files`: lists the workspace's files.

use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking::{Looking, Wanted};
use super::walk::{self, Go, Within, one_line};
use super::{ToolEnv, parse, spec, word};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
    glob: Option<String>,
}

/// The tool.
pub(super) fn list_files() -> Looking {
    let spec = spec(
        "list_files",
        "Lists the files of the workspace, including subfolders, one path per line. Files that \
         .gitignore excludes are omitted. A path with a line break or another control character \
         is printed as a JSON string in quotes.",
        &json!({
            "path": {
                "type": "string",
                "description": "A folder, relative to the workspace. Default: the whole workspace."
            },
            "glob": {
                "type": "string",
                "description": "Only matching files, such as *.rs or src/**/test_*.py; relative \
                    to path."
            }
        }),
        &[],
    );
    let preview = |arguments: &Value| match arguments["path"].as_str() {
        Some(_) => format!("list the files in {}", word(arguments, "path")),
        None => "list the files".to_owned(),
    };
    Looking { spec, preview, look }
}

fn look(arguments: &Value, place: &ToolEnv, wanted: &Wanted) -> Result<String, String> {
    let arguments: Arguments = parse("list_files", arguments)?;
    let within = Within { path: arguments.path.as_deref(), glob: arguments.glob.as_deref() };
    let (mut listed, mut missing) = (String::new(), 0_usize);
    walk::files(place, within, wanted, |path| {
        let path = one_line(path);
        if missing == 0 && listed.len() + path.len() < place.output_limit {
            listed.push_str(&path);
            listed.push('\n');
        } else {
            missing += 1;
        }
        Ok(Go::On)
    })?;
    if missing > 0 {
        listed.push_str(&format!("[{missing} more files; narrow it with path or glob]"));
    }
    if listed.is_empty() {
        listed.push_str("[no files]");
    }
    Ok(listed)
}
