//! The files beside a spec, which it may refer to and none other.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// The largest spec, and the largest file that one refers to.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Files that a spec refers to, by the names that it gives them.
pub trait Files {
    /// A file's text, or why it cannot be had.
    fn read(&self, name: &str) -> Result<String, String>;
}

/// The files that were stored with a session.
impl Files for BTreeMap<String, String> {
    fn read(&self, name: &str) -> Result<String, String> {
        self.get(name).cloned().ok_or_else(|| "it is not stored with the session".to_owned())
    }
}

/// The files of a folder and below, and none that a link leads to elsewhere.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Files for Folder {
    fn read(&self, name: &str) -> Result<String, String> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || !Path::new(name).components().all(plain) {
            return Err("expected a path beside the spec or below it, without `..`".to_owned());
        }
        if is_agent(name) {
            return Err(AN_AGENT.to_owned());
        }
        let folder = self.0.canonicalize().map_err(|error| said(&error))?;
        let file = folder.join(name).canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file beside the spec".to_owned(),
            _ => said(&error),
        })?;
        if !file.starts_with(&folder) {
            return Err("a link leads out of the spec's folder".to_owned());
        }
        text(&file)
    }
}

/// Why a file that would hold an agent is not read. strands-cli takes the one agent of another
/// spec from there; as a prompt, its text would only confuse the model.
const AN_AGENT: &str = "a YAML or JSON file is no prompt: write the agent's `prompt`, `tools` and \
    `model_id` in this spec, or name a file of text, such as prompt.md";

fn is_agent(name: &str) -> bool {
    let extension = Path::new(name).extension().unwrap_or_default();
    ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// A file's text, if it is one and not too large.
pub(super) fn text(path: &Path) -> Result<String, String> {
    // Opening a pipe could wait for ever: it is looked at first.
    if !path.metadata().map_err(|error| said(&error))?.is_file() {
        return Err("this is not a file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| said(&error))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| said(&error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
        return Err(format!("it is too large: at most {MAX_FILE_BYTES} bytes are read"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        format!("it is not UTF-8 text: byte {place} belongs to no character")
    })
}

fn said(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    }
}
