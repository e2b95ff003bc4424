//! Systems whose sessions are known by sight and not read, so that people are told whose they are.

use std::path::Path;

use crate::read::reader::{Kind, Probe};

/// What a system's files hold, or are named.
struct Unread {
    title: &'static str,
    /// All of them stand in the front of a file.
    marks: &'static [&'static str],
    name: Option<&'static str>,
}

const fn by_marks(title: &'static str, marks: &'static [&'static str]) -> Unread {
    Unread { title, marks, name: None }
}

const fn by_name(title: &'static str, name: &'static str) -> Unread {
    Unread { title, marks: &[], name: Some(name) }
}

const SYSTEMS: &[Unread] = &[
    by_marks("aider", &["# aider chat started at"]),
    by_marks("Cline", &["\"session_id\"", "\"source\"", "\"exit_code\"", "\"started_at\""]),
    by_marks("Cline", &["\"origin\"", "\"sessionId\"", "\"messages\"", "\"updated_at\""]),
    by_name("Cline", "api_conversation_history.json"),
    by_name("Cline", "ui_messages.json"),
    by_marks("Continue", &["\"sessionId\"", "\"workspaceDirectory\"", "\"history\""]),
    by_marks("Gemini CLI", &["\"sessionId\"", "\"projectHash\""]),
    by_marks("GitHub Copilot CLI", &["\"session.start\"", "\"copilotVersion\""]),
    by_marks("Kimi", &["\"type\"", "\"metadata\"", "\"protocol_version\""]),
    by_marks("Kimi", &["\"role\"", "\"_system_prompt\""]),
    by_marks("opencode", &["\"info\"", "\"projectID\"", "\"ses_"]),
    by_name("opencode", "opencode.db"),
    by_marks("OpenHands", &["\"agent\"", "\"llm\"", "OpenHands"]),
];

/// The system that a file is of, if its sessions are not read.
pub(super) fn unread_system(path: &Path) -> Option<&'static str> {
    let probe = Probe::of(path).ok().flatten().filter(|probe| probe.kind == Kind::File)?;
    let is_of = |system: &&Unread| match system.name {
        Some(name) => probe.name() == name,
        None => system.marks.iter().all(|mark| probe.text().contains(mark)),
    };
    SYSTEMS.iter().find(is_of).map(|system| system.title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::walk::search;

    #[test]
    fn a_file_of_a_system_that_is_not_read_is_called_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, title) in [
            ("a.md", "\n# aider chat started at 2026-11-15 23:01:42\n", Some("aider")),
            ("b.jsonl", "{\"sessionId\":\"x\",\"projectHash\":\"y\"}\n", Some("Gemini CLI")),
            ("opencode.db", "SQLite format 3", Some("opencode")),
            ("d.json", "{}", None),
            ("e.md", "# A plan\n", None),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            assert_eq!(unread_system(&path), title, "{name}");
        }
        assert_eq!(unread_system(folder.path()), None);
        assert_eq!(unread_system(&folder.path().join("absent")), None);
    }

    #[test]
    fn a_folder_is_called_by_what_its_files_are_of() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("tmp/4f1c/chats");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(folder.path().join("README.md"), "# Chats\n").unwrap();
        assert_eq!(search(folder.path(), None).unwrap().unread, None);
        let chat = "{\"sessionId\":\"x\",\"projectHash\":\"y\"}\n";
        std::fs::write(deep.join("session-1.json"), chat).unwrap();
        let searched = search(folder.path(), None).unwrap();
        assert_eq!((searched.found.len(), searched.unread), (0, Some("Gemini CLI")));
    }
}
