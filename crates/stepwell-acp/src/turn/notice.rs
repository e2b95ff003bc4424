//! What a person should know, in words.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// In a few words.
    pub(crate) title: String,
    /// In more.
    pub(crate) description: Option<String>,
    /// Does a client that takes no notices get it as text? What a turn lacks is told to everyone.
    pub(crate) for_all: bool,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warning,
}

/// A run's notice.
pub(crate) fn run_notice(notice: &stepwell_agent::run::Notice) -> Notice {
    use stepwell_agent::run::Notice as It;
    match notice {
        It::Retrying { error, wait, attempt, attempts } => {
            let wait = wait.as_secs_f32();
            let title = format!("The model is asked again in {wait:.0} s ({attempt}/{attempts})");
            let (severity, description) = (Severity::Warning, Some(error.clone()));
            Notice { severity, title, description, for_all: false }
        }
        other => worded(other, Severity::Warning),
    }
}

/// A notice of how a run begins.
pub(crate) fn runtime_notice(notice: &stepwell_runtime::Notice) -> Notice {
    use stepwell_runtime::Notice as It;
    match notice {
        It::ServerAbsent { name, why } => Notice {
            severity: Severity::Warning,
            title: format!("The MCP server {name} is not there"),
            description: Some(why.clone()),
            for_all: true,
        },
        It::Warning { what, why } => Notice {
            severity: Severity::Warning,
            title: what.clone(),
            description: Some(why.clone()),
            for_all: false,
        },
        It::ServersSlow { names } => {
            let title = format!("Waiting for MCP servers: {}", names.join(", "));
            Notice { severity: Severity::Info, title, description: None, for_all: false }
        }
        other => worded(other, Severity::Info),
    }
}

/// A session works in its workspace's root, not in the folder that was named.
pub(crate) fn works_in(root: &Path, folder: &Path) -> Notice {
    let title = format!("This session works in {}", root.display());
    let why = match (folder.starts_with(root), folder.exists()) {
        (true, _) => "is in it",
        (false, true) => "is another place",
        (false, false) => "is not there",
    };
    let description = format!(
        "its store is there, and {} {why}. Paths and commands are relative to that folder",
        folder.display()
    );
    Notice { severity: Severity::Info, title, description: Some(description), for_all: true }
}

/// A notice in the words of its own type: its name is the title, its fields the description.
fn worded(notice: &impl Serialize, severity: Severity) -> Notice {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(notice) else {
        let title = "Something about this run".to_owned();
        return Notice { severity, title, description: None, for_all: false };
    };
    let name = fields.remove("notice");
    let name = name.as_ref().and_then(Value::as_str).unwrap_or("notice").replace('_', " ");
    let mut letters = name.chars();
    let title = letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>());
    let field = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{}: {text}", name.replace('_', " ")),
        other => format!("{}: {other}", name.replace('_', " ")),
    };
    let description: Vec<String> = fields.iter().map(field).collect();
    let description = Some(description.join("\n")).filter(|text| !text.is_empty());
    Notice { severity, title: title.unwrap_or_default(), description, for_all: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_said_in_words() {
        let what = "the model was not remembered".to_owned();
        let notice = stepwell_runtime::Notice::Warning { what, why: "no room".to_owned() };
        let said = runtime_notice(&notice);
        assert_eq!(said.title, "the model was not remembered");
        assert_eq!(said.description.as_deref(), Some("no room"));
        let notice = stepwell_runtime::Notice::NotSaved { is_flow: false };
        assert_eq!(runtime_notice(&notice).title, "Not saved");
    }
}
