//! What M31A keeps about a session beside the conversation: its own description, and files
//! that lie beside it.

use std::path::Path;

use crate::json::fields::{Fields, quoted, text_of};
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::snapshot::{Object, text, warn};

/// Files that go back as they were. Plans have versions.
const FILES: [&str; 8] = [
    "STATE.md",
    "TASKS.md",
    "PROJECT.md",
    "checkpoint.json",
    "recovery.json",
    "plan.md",
    "plan_v1.md",
    "plan_v2.md",
];

/// What the project's folder keeps that is ours.
pub(super) const ASIDE: &str = "stepwell.json";

/// The files of a session, by their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(Vec<(String, String)>);

impl Files {
    /// The files in a session's folder. Older versions have some of them a level deeper.
    pub(super) fn read(input: &Input, folder: &Path, sink: &mut dyn Sink) -> Self {
        let mut files = Vec::new();
        for name in FILES.into_iter().chain([ASIDE]) {
            let nested = folder.join("planning").join(name);
            let path = if nested.is_file() { nested } else { folder.join(name) };
            if path.symlink_metadata().is_err() {
                continue;
            }
            match text(input, &path) {
                Ok(text) => files.push((name.to_owned(), text)),
                Err(error) => warn(sink, &path, format!("{error}; it was left out")),
            }
        }
        Self(files)
    }

    /// The text of a file.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, text)| text.as_str())
    }

    /// Puts another text in a file's place.
    pub(super) fn put(&mut self, name: &str, text: String) {
        self.0.retain(|(found, _)| found != name);
        self.0.push((name.to_owned(), text));
    }

    /// The files, but for ours.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.0.iter().filter(|(name, _)| name != ASIDE);
        own.map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// What is kept of a session: its description, without what was told, and its files.
    pub(super) fn keep(&self, session: &Fields<'_>) -> String {
        let mut files = Object::new();
        self.iter().for_each(|(name, text)| files.put_text(name, text));
        let mut kept = Object::new();
        kept.put("session", &session.rewritten(&[("messages", Some("[]"))]));
        kept.put("files", &files.end());
        kept.end()
    }

    /// The files that were kept.
    pub(super) fn kept(raw: &str) -> Self {
        let kept = Fields::parse(raw).unwrap_or_default();
        let files = kept.object("files").unwrap_or_default();
        let known = |name: &&str| FILES.contains(name);
        let text = |name: &str| Some((name.to_owned(), text_of(files.raw(name)?)?.into_owned()));
        Self(files.names().filter(known).filter_map(text).collect())
    }
}

/// A text as a JSON string, for lists.
pub(super) fn strings<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    crate::snapshot::list(texts.into_iter().map(|text| quoted(text)))
}
