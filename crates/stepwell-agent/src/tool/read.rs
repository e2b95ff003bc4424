//! `read_file`: returns a text file or some of its lines.

use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::model::counted;
use stepwell_files::safe_path::{Last, SafePath};

use super::blocking::{Looking, Wanted};
use super::{Content, ToolEnv, cut, parse, spec, word};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    first_line: Option<usize>,
    last_line: Option<usize>,
}

/// The tool.
pub(super) fn read_file() -> Looking {
    let spec = spec(
        "read_file",
        "Reads a text file of the workspace and returns its text as it is, without line \
         numbers. Give first_line and last_line to read a part of a long file. If the text \
         is too long, the end of the answer says where to read on. Binary files are refused.",
        &json!({
            "path": {
                "type": "string",
                "description": "The file, relative to the workspace, such as src/main.rs."
            },
            "first_line": {
                "type": "integer", "minimum": 1,
                "description": "The first line to return, counted from 1. Default: 1."
            },
            "last_line": {
                "type": "integer", "minimum": 1,
                "description": "The last line to return. Default: the end of the file."
            }
        }),
        &["path"],
    );
    Looking { spec, preview: |arguments| format!("read {}", word(arguments, "path")), look }
}

fn look(arguments: &Value, place: &ToolEnv, _: &Wanted) -> Result<String, String> {
    let arguments: Arguments = parse("read_file", arguments)?;
    let spot = SafePath::find(&place.files(), &arguments.path, Last::Follow)?;
    let text = match spot.content()? {
        Content::File { bytes, .. } => text(bytes).map_err(|why| spot.says(why))?,
        _ => return Err(spot.says("no such file; list_files shows the files")),
    };
    let (first, last) = (arguments.first_line.unwrap_or(1), arguments.last_line);
    excerpt(&text, first, last, place.output_limit).map_err(|why| spot.says(why))
}

/// The bytes as text; the error describes a binary file.
pub(super) fn text(bytes: Vec<u8>) -> Result<String, String> {
    let len = bytes.len();
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(format!("the file is binary ({}), not UTF-8 text", counted(len, "byte"))),
    }
}

/// The lines from `first` to `last`, as many as fit.
fn excerpt(text: &str, first: usize, last: Option<usize>, limit: usize) -> Result<String, String> {
    if text.is_empty() {
        return Ok("[the file is empty]".to_owned());
    }
    let all = text.lines().count();
    let last = last.unwrap_or(all).min(all);
    if first == 0 || last == 0 {
        return Err("lines are counted from 1".to_owned());
    }
    if first > all {
        return Err(format!("the file has {}, so there is no line {first}", counted(all, "line")));
    }
    if first > last {
        return Err(format!("first_line {first} is after last_line {last}"));
    }
    let mut shown = String::new();
    let mut end = first - 1;
    for line in text.split_inclusive('\n').skip(first - 1).take(last + 1 - first) {
        if shown.len() + line.len() > limit && !shown.is_empty() {
            break;
        }
        end += 1;
        shown.push_str(cut(line, limit));
        if line.len() > limit {
            let missing = counted(line.len() - cut(line, limit).len(), "byte");
            shown.push_str(&format!("\n[line {end} goes on for {missing}]\n"));
            break;
        }
    }
    if first > 1 || end < all {
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
        shown.push_str(&format!("[lines {first} to {end} of {all}"));
        if end < last {
            shown.push_str(&format!("; read on with first_line {}", end + 1));
        }
        shown.push(']');
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_that_fits_is_shown_as_it_is() {
        assert_eq!(excerpt("a\r\nb", 1, None, 99).unwrap(), "a\r\nb");
        assert_eq!(excerpt("", 1, None, 99).unwrap(), "[the file is empty]");
    }

    #[test]
    fn a_part_says_which_part_it_is() {
        let text = "one\ntwo\nthree\nfour\n";
        assert_eq!(excerpt(text, 2, Some(3), 99).unwrap(), "two\nthree\n[lines 2 to 3 of 4]");
        let limited = "one\ntwo\n[lines 1 to 2 of 4; read on with first_line 3]";
        assert_eq!(excerpt(text, 1, None, 9).unwrap(), limited);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_characters() {
        let shown = excerpt("ééé\nnext\n", 1, None, 5).unwrap();
        assert!(shown.starts_with("éé\n[line 1 goes on for 3 bytes]\n"), "{shown}");
        assert!(shown.ends_with("first_line 2]"), "{shown}");
    }

    #[test]
    fn lines_that_do_not_exist_are_refused() {
        for (first, last) in [(0, None), (3, None), (1, Some(0)), (2, Some(1))] {
            assert!(excerpt("a\nb\n", first, last, 99).is_err(), "{first} {last:?}");
        }
    }
}
