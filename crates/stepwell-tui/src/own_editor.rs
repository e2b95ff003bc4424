//! Writing in the user's own editor.

use std::io::{Read, Seek, Write};
use std::process::Command;

/// Lets the user edit a text; the answer is what it became, or why there is none.
pub(crate) fn edit(words: &[String], text: &str) -> Result<String, String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err("no editor is set: EDITOR names one".to_owned());
    };
    let file = tempfile::Builder::new().prefix("stepwell-").suffix(".md").tempfile();
    let mut file = file.map_err(|error| format!("no file to write in: {error}"))?;
    let failed = |error| format!("the text could not be written: {error}");
    file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(failed)?;
    let status = Command::new(program).args(arguments).arg(file.path()).status();
    let status = status.map_err(|error| format!("{program} could not be started: {error}"))?;
    if !status.success() {
        return Err(format!("{program} ended with {status}; the text is as it was"));
    }
    // Some editors replace the file, so it is opened by its name.
    let mut edited = String::new();
    let mut again = std::fs::File::open(file.path()).map_err(failed)?;
    again.rewind().and_then(|()| again.read_to_string(&mut edited)).map_err(failed)?;
    Ok(edited)
}
