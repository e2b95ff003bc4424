//! Every setting, once: its key, its kind, its default, and what it does.

#![allow(clippy::doc_markdown, reason = "a setting's doc comment is its help, read as plain text")]

use std::time::Duration;

use stepwell::model::Mode;
use toml_edit::Value;

use super::value::{AgentIds, Folders, IdStyle, Number, Setting, Share, StoreUrl, TalkFrom};

/// A value as it was found, to be read as the setting's kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Raw<'a> {
    Text(&'a str),
    Toml(&'a Value),
}

impl Raw<'_> {
    fn read<T: Setting>(self) -> Result<T, String> {
        match self {
            Self::Text(text) => T::from_text(text),
            Self::Toml(value) => T::from_toml(value),
        }
    }

    /// The value as the user wrote it, for the error that names it.
    pub(crate) fn shown(self) -> String {
        match self {
            Self::Text(text) => text.to_owned(),
            Self::Toml(value) => value.to_string().trim().to_owned(),
        }
    }
}

/// One setting's key.
#[derive(Debug)]
pub struct Key {
    /// Such as `sessions.cleanup_after_days`.
    pub name: &'static str,
    /// What it does.
    pub says: &'static str,
}

impl Key {
    /// The key of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Is its value more than may be printed?
    pub fn is_secret(&self) -> bool {
        self.name == STORE_URL
    }

    /// May only the user's own file have it?
    pub fn is_users(&self) -> bool {
        [STORE_URL, TALK_FROM, INDEX_OTHERS, NOTIFY_COMMAND].contains(&self.name)
    }

    /// The variable that sets it: `STEPWELL_SESSIONS_CLEANUP_AFTER_DAYS`.
    pub fn variable(&self) -> String {
        format!("STEPWELL_{}", self.name.replace('.', "_").to_uppercase())
    }
}

/// Where the team's store is. It may hold a password, and only the user says where what
/// they do is kept.
pub const STORE_URL: &str = "store.url";

/// Whose answers count: a project does not say whom its user trusts.
pub(super) const TALK_FROM: &str = "talk.from";

/// Whether other agents' sessions are indexed: a project does not look into its user's.
const INDEX_OTHERS: &str = "other_agents.index";

/// What runs when something happens: a project does not start programs of its own.
const NOTIFY_COMMAND: &str = "notify.command";

/// Lists every setting once.
macro_rules! settings {
    ($($(#[doc = $doc:literal])* $field:ident: $kind:ty = $default:expr, $name:literal;)*) => {
        /// The settings in force.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $doc])* pub $field: $kind,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        /// Every key.
        pub const KEYS: &[Key] =
            &[$(Key { name: $name, says: concat!($($doc),*) },)*];

        impl Settings {
            /// Gives a key a value, if it is of its kind.
            pub(crate) fn put(&mut self, key: &Key, raw: Raw<'_>) -> Result<(), String> {
                match key.name {
                    $($name => self.$field = raw.read()?,)*
                    _ => {}
                }
                Ok(())
            }

            /// The value of a key, as it may be printed.
            pub fn shown(&self, key: &Key) -> Value {
                match key.name {
                    $($name => self.$field.shown(),)*
                    _ => false.into(),
                }
            }

            /// The value of a key, as a file would say it.
            pub fn get(&self, key: &Key) -> Value {
                match key.name {
                    $($name => self.$field.to_toml(),)*
                    _ => false.into(),
                }
            }
        }
    };
}

settings! {
    /// The address of the team's store, in place of the one in the workspace.
    store_url: StoreUrl = StoreUrl::default(), "store.url";
    /// Saves each step of a run before the next begins.
    auto_save: bool = true, "sessions.auto_save";
    /// After how many days without activity `cleanup` takes a session.
    cleanup_after_days: Number<0, { u32::MAX }> = Number::new(7), "sessions.cleanup_after_days";
    /// Cleans up once a day, without being asked.
    auto_cleanup: bool = false, "sessions.auto_cleanup";
    /// After how many days a session in the trash is erased for good.
    retention_days: Number<1, { u32::MAX }> = Number::new(30), "sessions.retention_days";
    /// Takes up the last unfinished session when a run or a conversation starts without a task.
    resume_on_startup: bool = false, "sessions.resume_on_startup";
    /// Keeps STATE.md and TASKS.md in the store's folder current.
    mirror_markdown: bool = false, "sessions.mirror_markdown";
    /// How new ids look: timestamp, hex or uuid.
    id_format: IdStyle = IdStyle::Timestamp, "sessions.id_format";
    /// How many digits a hex id has.
    id_length: Number<4, 64> = Number::new(8), "sessions.id_length";
    /// Shows the model only the last messages of a long session, instead of compacting it.
    truncation: bool = false, "sessions.truncation";
    /// Above how many messages truncation begins.
    truncation_above: Number<2, { u32::MAX }> = Number::new(50), "sessions.truncation_above";
    /// How many messages truncation keeps.
    truncation_keep: Number<1, { u32::MAX }> = Number::new(30), "sessions.truncation_keep";
    /// Compacts a conversation before it no longer fits the model.
    compaction_auto: bool = true, "compaction.auto";
    /// How many tokens compaction leaves free.
    compaction_buffer: Number<0, { u32::MAX }> = Number::new(20_000), "compaction.buffer";
    /// How many of the newest tokens compaction leaves as they are.
    compaction_keep: Number<0, { u32::MAX }> = Number::new(8_000), "compaction.keep_tokens";
    /// The model that writes summaries, as provider/name; else the one that runs.
    compaction_model: String = String::new(), "compaction.model";
    /// The model of agents that name none, as provider/name.
    model_name: String = String::new(), "model.name";
    /// The most tokens of one answer.
    max_output: Number<1, { u32::MAX }> = Number::new(8_192), "model.max_output";
    /// How long one request to a model may take.
    request_timeout: Duration = Duration::from_secs(300), "model.timeout";
    /// How fast the estimate of tokens follows what providers report.
    token_ema_alpha: Share = Share(0.3), "model.token_ema_alpha";
    /// How many recently used models are remembered.
    max_recent: Number<0, 1000> = Number::new(10), "models.max_recent";
    /// How many contents of a file are kept that only rewound parts of a session hold.
    max_backups_per_file: Number<0, { u32::MAX }> = Number::new(10), "files.max_backups_per_file";
    /// The folders of the workspace in which what commands change is captured.
    file_roots: Folders = Folders::default(), "files.roots";
    /// The largest file, in bytes, whose content is captured.
    max_file_bytes: Number<0, { 50 << 20 }> = Number::new(10 << 20), "files.max_file_bytes";
    /// How many bytes of files that git does not keep are read before a command runs.
    max_held_bytes: Number<0, { u32::MAX }> = Number::new(64 << 20), "files.max_held_bytes";
    /// With more files than this, what commands change is not captured.
    max_files: Number<0, { u32::MAX }> = Number::new(200_000), "files.max_files";
    /// After how many steps a checkpoint is taken; 0: never.
    every_steps: Number<0, { u32::MAX }> = Number::new(10), "checkpoints.every_steps";
    /// The agent that runs, unless another is named.
    agent_name: String = "build".to_owned(), "agent.name";
    /// When a person is asked: confirm-all, confirm-sensitive or yolo.
    mode: Mode = Mode::ConfirmSensitive, "agent.mode";
    /// How long one command of an agent's may take.
    command_timeout: Duration = Duration::from_secs(600), "agent.command_timeout";
    /// After how long without activity an agent is no longer resumed.
    resume_timeout: Duration = Duration::from_secs(30 * 60), "agent.resume_timeout";
    /// How many errors are too many to take an agent up again.
    max_errors: Number<1, { u32::MAX }> = Number::new(3), "agent.max_errors";
    /// How new agents' ids look: sessions (as sessions.id_format) or agent (agent-TIME-8 hex).
    agent_ids: AgentIds = AgentIds::Sessions, "agent.id_format";
    /// After how many hours without activity `agent cleanup` takes an agent's session, and
    /// sessions.auto_cleanup too.
    agent_cleanup_hours: Number<0, { u32::MAX }> = Number::new(24), "agent.cleanup_after_hours";
    /// How many of an agent's last turns are shown.
    agent_turns: Number<1, { u32::MAX }> = Number::new(20), "agent.shown_turns";
    /// Whose answers and words a run takes: own (yours) or store (everyone's who may write to it).
    talk_from: TalkFrom = TalkFrom::Own, "talk.from";
    /// A command that runs when a question opens, a run ends or 90 % of a budget is spent.
    notify_command: String = String::new(), "notify.command";
    /// Lists other agents' sessions by title, first prompt and folder, from an index of your own.
    index_others: bool = false, "other_agents.index";
}

impl Settings {
    /// Takes back what is less careful than the user's own settings: nobody is asked less, nothing
    /// is erased sooner, and nothing is cleaned up unasked.
    pub(crate) fn keep_careful(&mut self, users: &Self) {
        self.mode = self.mode.min(users.mode);
        self.auto_cleanup &= users.auto_cleanup;
        self.retention_days = self.retention_days.max(users.retention_days);
        self.cleanup_after_days = self.cleanup_after_days.max(users.cleanup_after_days);
        self.agent_cleanup_hours = self.agent_cleanup_hours.max(users.agent_cleanup_hours);
    }
}

/// The key most like a name that is none.
pub fn nearest(name: &str) -> &'static str {
    rated(name).0
}

/// The same, if it is so like it that it was perhaps meant. A section alone means one of its keys.
pub fn near(name: &str) -> Option<&'static str> {
    let (key, rate) = rated(name);
    // Below this, a suggestion is a guess.
    (rate > 0.75).then_some(key)
}

/// The key most like a name, and how like it is.
fn rated(name: &str) -> (&'static str, f64) {
    let closeness = |key: &Key| {
        // The last part counts as well: `cleanup_after_days` alone names its key.
        let last = key.name.rsplit('.').next().unwrap_or(key.name);
        stepwell::sessions::likeness(name, key.name).max(stepwell::sessions::likeness(name, last))
    };
    let rated = KEYS.iter().map(|key| (key.name, closeness(key)));
    rated.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or(("", 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_reads_back_as_itself() {
        for key in KEYS {
            let shown = Settings::default().get(key);
            let mut settings = Settings::default();
            settings.put(key, Raw::Toml(&shown)).unwrap();
            assert_eq!(settings.get(key).to_string(), shown.to_string(), "{}", key.name);
            let text = shown.as_str().map_or_else(|| shown.to_string(), ToOwned::to_owned);
            settings.put(key, Raw::Text(&text)).unwrap();
            assert!(!key.says.is_empty());
        }
    }

    #[test]
    fn a_misspelt_key_finds_its_neighbour() {
        assert_eq!(nearest("sessions.cleanup_days"), "sessions.cleanup_after_days");
        assert_eq!(nearest("cleanup_after_days"), "sessions.cleanup_after_days");
        assert_eq!(nearest("agent.timeout"), "agent.resume_timeout");
        assert_eq!(near("agent.timeout"), Some("agent.resume_timeout"));
        assert_eq!(near("sessions.cleanup_days"), Some("sessions.cleanup_after_days"));
        assert_eq!(near("bogus.key"), None);
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        let put = |name: &str, text: &str| {
            Settings::default().put(Key::find(name).unwrap(), Raw::Text(text))
        };
        assert!(put("sessions.cleanup_after_days", "-1").is_err());
        assert!(put("sessions.cleanup_after_days", "soon").is_err());
        assert!(put("sessions.id_length", "3").is_err());
        assert!(put("sessions.id_length", "65").is_err());
        assert!(put("sessions.id_format", "roman").is_err());
        assert!(put("agent.resume_timeout", "30").is_err());
        assert!(put("model.token_ema_alpha", "0").is_err());
        assert!(put("sessions.auto_save", "yes").is_err());
        assert!(put("agent.resume_timeout", "45m").is_ok());
        assert!(put("files.roots", "../elsewhere").is_err());
        assert!(put("files.roots", "src, /etc").is_err());
        assert!(put("files.roots", "src, ~/lib").is_err());
        assert!(put("files.roots", "[]").is_err());
        assert!(put("files.roots", "").is_err());
        assert!(put("files.roots", "[\"src\", \"../lib\"]").is_err());
        assert!(put("files.roots", "[src").is_err());
        assert!(put("files.roots", "[\"src\", \"lib\"]").is_ok());
        assert!(put("files.roots", "src, lib/core").is_ok());
    }
}
