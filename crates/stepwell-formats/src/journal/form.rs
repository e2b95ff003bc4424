//! How a system writes the lines of a journal.

use serde_json::Value;
use stepwell::log::Head;
use stepwell::model::{Compacted, Time};
use stepwell::{Message, Seq};

use super::call_names::Calls;
use crate::json::fields::Fields;
use crate::write::facts::Form;
use crate::write::leftover_parts::Spare;
use crate::write::writer::Losses;

/// The fields by which lines of a system name each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// The system's name in a session's source.
    pub(crate) system: &'static str,
    /// The field with a line's name.
    pub(crate) own: &'static str,
    /// The field with the name of the line that it follows.
    pub(crate) parent: &'static str,
    /// The field with the session's name, if every line has one.
    pub(crate) session: Option<&'static str>,
    /// The field with the folder that the session works in, if every line has one.
    pub(crate) folder: Option<&'static str>,
    /// The field of a line of Stepwell's with what is on it.
    pub(crate) payload: &'static str,
}

/// What is the same on every line of a journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) head: &'a Head,
    /// The session's name there.
    pub(crate) session: &'a str,
    /// The folder that it goes on in, if that is another one.
    pub(crate) workspace: Option<&'a str>,
}

impl Envelope<'_> {
    /// The folder that the session works in there.
    pub(crate) fn folder(&self) -> &str {
        self.workspace.unwrap_or(&self.head.workspace)
    }
}

/// Where a line stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'a> {
    pub(crate) name: &'a str,
    pub(crate) parent: Option<&'a str>,
    pub(crate) at: Time,
}

/// What a message has no place for on the lines that it becomes.
#[derive(Debug, Default)]
pub(crate) struct LeftOver {
    /// Parts that are kept on lines of their own.
    pub(crate) spares: Vec<Spare>,
    pub(crate) losses: Losses,
}

/// Writes the lines of one journal.
pub(crate) trait LineWriter {
    fn words(&self) -> &'static Words;

    /// What its lines say of the session as a whole.
    fn form(&self) -> Form;

    /// The first line, if it is no part of the conversation; of a session from there, made from
    /// its own.
    fn header(&self, envelope: &Envelope<'_>, own: Option<&Fields<'_>>) -> Option<String>;

    /// A name for a line.
    fn name(&self, envelope: &Envelope<'_>, seq: Seq, nth: usize) -> String;

    /// A line with that in it.
    fn line(&self, envelope: &Envelope<'_>, spot: &Spot<'_>, body: Value) -> String;

    /// What the lines of a message hold; nothing, if the journal can hold nothing of it.
    fn message(
        &self,
        envelope: &Envelope<'_>,
        message: &Message,
        at: Time,
        calls: &mut Calls,
        left: &mut LeftOver,
    ) -> Vec<Value>;

    /// What the lines of a compaction hold, behind which the model is shown these messages.
    fn compaction(
        &self,
        envelope: &Envelope<'_>,
        compacted: &Compacted,
        shown: &[Message],
        at: Time,
    ) -> Vec<Value>;

    /// What a line holds that gives the session a title.
    fn title(&self, title: &str) -> Value;

    /// What a line of Stepwell's holds.
    fn ours(&self, payload: Value) -> Value;
}
