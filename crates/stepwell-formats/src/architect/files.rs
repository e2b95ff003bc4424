//! The files that a session changed. architect names them, and not when: each is told behind the
//! result of the first call that can have changed it, and before the conversation if none did (a
//! command changed it, or the call was cut off with the front of the conversation).

use std::collections::{BTreeMap, BTreeSet};

use stepwell::Message;
use stepwell::model::{FileChanged, FileState};

use super::message;
use crate::json::fields::Fields;
use crate::snapshot::texts;

/// What the names of tools that change files have in them.
const CHANGING: [&str; 10] =
    ["write", "edit", "create", "patch", "apply", "delete", "move", "rename", "replace", "insert"];

/// The files that are not told yet, and the calls that may have changed them.
#[derive(Debug)]
pub(super) struct Files {
    left: Vec<String>,
    /// By the calls' ids.
    called: BTreeMap<String, Vec<String>>,
}

impl Files {
    /// The files that a session names.
    pub(super) fn of(session: &Fields<'_>) -> Self {
        let mut left = texts(session.raw("files_modified"));
        left.retain(|path| !path.is_empty() && path.len() < 4 << 10);
        let mut seen = BTreeSet::new();
        left.retain(|path| seen.insert(path.clone()));
        Self { left, called: BTreeMap::new() }
    }

    /// Takes out the files that no call in these messages changed.
    pub(super) fn take_unexplained(&mut self, messages: &[&str]) -> Vec<FileChanged> {
        if self.left.is_empty() {
            return Vec::new();
        }
        let mut rest = Self { left: self.left.clone(), called: BTreeMap::new() };
        for raw in messages {
            let said = message::read(&Fields::parse(raw).unwrap_or_default());
            said.iter().for_each(|said| drop(rest.changed_by(said)));
        }
        self.left.retain(|path| !rest.left.contains(path));
        rest.left.into_iter().map(named).collect()
    }

    /// The files that were changed when this was said.
    pub(super) fn changed_by(&mut self, said: &Message) -> Vec<FileChanged> {
        for call in said.calls() {
            let name = call.name.to_lowercase();
            if !CHANGING.iter().any(|word| name.contains(word)) {
                continue;
            }
            let arguments = Fields::parse(&call.arguments).unwrap_or_default();
            let names = |path: &&String| {
                arguments.names().any(|name| arguments.text(name).as_deref() == Some(path.as_str()))
            };
            let paths: Vec<String> = self.left.iter().filter(names).cloned().collect();
            if !paths.is_empty() {
                self.called.insert(call.id.clone(), paths);
            }
        }
        let answered = said.results().filter_map(|result| self.called.remove(&result.call_id));
        let mut changed: Vec<String> = answered.flatten().collect();
        changed.retain(|path| self.left.contains(path));
        self.left.retain(|path| !changed.contains(path));
        changed.into_iter().map(named).collect()
    }
}

/// A file of which nothing but the name is known.
fn named(path: String) -> FileChanged {
    let state =
        || FileState::NotCaptured { digest: None, why: "architect names it only".to_owned() };
    FileChanged { path, before: state(), after: state(), renamed_from: None }
}
