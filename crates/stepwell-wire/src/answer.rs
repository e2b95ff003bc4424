//! Every answer of the front ends, by name, with its schema.

use schemars::{JsonSchema, Schema};
use serde::Serialize;

/// An answer that a front end gives to a program. Only the types of [`all`] are answers.
pub trait Answer: Serialize + JsonSchema {
    /// Its name, such as `session`.
    const NAME: &'static str;

    /// Its JSON Schema (draft 2020-12), in the form for output: fields that are always present are
    /// required.
    #[must_use]
    fn schema() -> Schema
    where
        Self: Sized,
    {
        let settings = stepwell::schema::settings().for_serialize();
        settings.into_generator().into_root_schema_for::<Self>()
    }
}

/// The description of an answer.
#[derive(Clone, Copy, Debug)]
pub struct AnswerForm {
    /// Its name, such as `session`.
    pub name: &'static str,
    schema: fn() -> Schema,
}

impl AnswerForm {
    /// Its JSON Schema (draft 2020-12).
    #[must_use]
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }

    /// A description in one sentence.
    #[must_use]
    pub fn about(&self) -> String {
        let schema = self.schema();
        let about = schema.get("description").and_then(|it| it.as_str()).unwrap_or_default();
        let first = about.split("\n\n").next().unwrap_or_default();
        first.replace('\n', " ")
    }
}

/// A schema in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SchemaInfo {
    /// The answer's name.
    pub name: String,
    /// A description in one sentence.
    pub about: String,
    /// The commands with this answer.
    pub commands: Vec<String>,
}

/// Declares every answer once.
macro_rules! answers {
    ($($name:literal => $type:ty,)*) => {
        $(impl Answer for $type {
            const NAME: &'static str = $name;
        })*

        /// Every answer, in alphabetical order.
        #[must_use]
        pub fn all() -> &'static [AnswerForm] {
            &[$(AnswerForm { name: $name, schema: <$type as Answer>::schema },)*]
        }
    };
}

answers! {
    "abandoned" => crate::Abandoned,
    "agent" => crate::Agent,
    "agent-created" => crate::AgentCreated,
    "agent-turn" => crate::AgentTurn,
    "agent-unreadable" => crate::AgentUnreadable,
    "backup" => crate::BackedUp,
    "checkpoint" => crate::CheckpointInfo,
    "checkpoint-made" => crate::CheckpointMade,
    "cleanup-item" => crate::CleanupItem,
    "cleanup-kept" => crate::CleanupKept,
    "cleanup-total" => crate::CleanupTotal,
    "compaction" => crate::Compaction,
    "compaction-diff" => crate::CompactionDiff,
    "compaction-undone" => crate::CompactionUndone,
    "converted" => crate::Converted,
    "copied" => crate::Copied,
    "delegation" => crate::Delegation,
    "deleted" => crate::Deleted,
    "detached" => crate::Detached,
    "disk-use" => crate::DiskUseOfSession,
    "disk-use-total" => crate::DiskUseTotal,
    "erased" => crate::Erased,
    "event" => stepwell::Recorded,
    "exported" => crate::Exported,
    "favourite" => crate::FavouriteChanged,
    "file-content" => crate::FileContent,
    "file-diff" => crate::FileDiff,
    "file-version" => crate::FileVersion,
    "finding" => crate::CheckFinding,
    "flow-check" => crate::FlowCheck,
    "flow-next" => crate::UpcomingNodes,
    "flow-plan" => crate::Plan,
    "flow-report" => crate::FlowReport,
    "fork" => crate::Forked,
    "format" => crate::FormatInfo,
    "gate" => crate::OpenGate,
    "gate-answered" => crate::GateAnswered,
    "gate-change" => crate::GateChange,
    "handed-over" => crate::HandedOver,
    "hook-installed" => crate::HookInstalled,
    "hook-sample" => crate::HookSample,
    "hook-stop" => crate::HookStop,
    "imported" => crate::Imported,
    "label" => crate::Label,
    "ledger-entry" => crate::LedgerEntry,
    "manual-pages" => crate::ManualPages,
    "mcp-installed" => crate::McpInstalled,
    "mcp-server" => crate::McpServer,
    "message-pin" => crate::MessagePin,
    "metadata" => crate::Metadata,
    "model-price" => crate::ModelPrice,
    "models" => crate::Models,
    "models-adopted" => crate::ModelsAdopted,
    "phase" => crate::PhaseInfo,
    "pin" => crate::Pin,
    "prices-taken" => crate::PricesTaken,
    "restored" => crate::Restored,
    "resume-decision" => stepwell::sessions::ResumeDecision,
    "rewind" => crate::Rewind,
    "role-script" => crate::RoleScript,
    "run-report" => crate::RunReport,
    "said" => crate::SaidTo,
    "schema" => SchemaInfo,
    "scrubbed" => crate::Scrubbed,
    "search-hit" => crate::SearchHit,
    "session" => crate::Session,
    "session-details" => crate::SessionDetails,
    "session-item" => crate::SessionItem,
    "setting" => crate::Setting,
    "setting-unset" => crate::SettingUnset,
    "statistics" => crate::Statistics,
    "stop-asked" => crate::StopAsked,
    "store" => crate::StoreInfo,
    "store-made" => crate::StoreMade,
    "store-restored" => crate::StoreRestored,
    "store-retention" => crate::StoreRetention,
    "tags" => crate::Tags,
    "task" => crate::TaskInfo,
    "unfinished-rewind" => crate::UnfinishedRewind,
    "verified" => crate::Verified,
    "view" => crate::ModelView,
    "work" => crate::WorkState,
    "worktree" => crate::Worktree,
    "worktree-removed" => crate::WorktreeRemoved,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_a_name_of_its_own_and_says_what_it_is() {
        let names: Vec<&str> = all().iter().map(|it| it.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
        for form in all() {
            assert!(!form.about().is_empty(), "{}", form.name);
        }
    }

    #[test]
    fn every_field_is_documented() {
        for form in all() {
            let schema = form.schema().to_value();
            let fields = schema["properties"].as_object().cloned().unwrap_or_default();
            assert!(!fields.is_empty(), "{}", form.name);
            for (name, field) in fields {
                let said = field.get("description").or_else(|| field.get("$ref"));
                assert!(said.is_some(), "{}: {name} is not documented", form.name);
            }
        }
    }

    #[test]
    fn no_schema_names_the_width_of_a_number() {
        for form in all() {
            let schema = form.schema().to_value().to_string();
            for width in ["uint", "int32", "int64", "double", "float"] {
                assert!(!schema.contains(&format!("\"format\":\"{width}")), "{}", form.name);
            }
        }
    }

    #[test]
    fn every_schema_is_valid() {
        for form in all() {
            let schema = form.schema().to_value();
            assert!(jsonschema::validator_for(&schema).is_ok(), "{}", form.name);
        }
    }
}
