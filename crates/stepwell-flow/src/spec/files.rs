//! The files that a spec may refer to: only those in its folder.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// The largest spec, and the largest file that one refers to.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Files that a spec refers to, by the names that it gives them.
pub trait Files {
    /// A file's text. The error says why it cannot be read.
    fn read(&self, name: &str) -> Result<String, String>;
}

/// The files that were stored with a session.
impl Files for BTreeMap<String, String> {
    fn read(&self, name: &str) -> Result<String, String> {
        self.get(name).cloned().ok_or_else(|| "the session does not contain this file".to_owned())
    }
}

/// The files in a folder and its subfolders. Links that lead out of it are refused.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Files for Folder {
    fn read(&self, name: &str) -> Result<String, String> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || !Path::new(name).components().all(plain) {
            return Err("expected a relative path in the spec's folder, without `..`".to_owned());
        }
        if may_be_agent_file(name) {
            return Err(AGENT_FILE.to_owned());
        }
        let folder = self.0.canonicalize().map_err(|error| io_reason(&error))?;
        let file = folder.join(name).canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "no such file in the spec's folder".to_owned(),
            _ => io_reason(&error),
        })?;
        if !file.starts_with(&folder) {
            return Err("it is a link that leads out of the spec's folder".to_owned());
        }
        text(&file)
    }
}

/// Why a file that may define an agent is refused. strands-cli reads the one agent of another
/// spec from it; as a prompt, its text would only confuse the model.
const AGENT_FILE: &str = "a YAML or JSON file is not a prompt: write the agent's `prompt`, `tools` \
    and `model_id` in this spec, or refer to a text file, such as prompt.md";

fn may_be_agent_file(name: &str) -> bool {
    let extension = Path::new(name).extension().unwrap_or_default();
    ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// The text of a regular file that is not too large.
pub(super) fn text(path: &Path) -> Result<String, String> {
    // Checked before it is opened: opening a pipe could block forever.
    if !path.metadata().map_err(|error| io_reason(&error))?.is_file() {
        return Err("not a regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| io_reason(&error))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| io_reason(&error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
        return Err(format!("the file is too large: the limit is {MAX_FILE_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        format!("the file is not UTF-8: invalid byte at offset {offset}")
    })
}

fn io_reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => error.to_string(),
    }
}
