//! What a person should know about how a run begins, although nobody asked: typed, so that each
//! front end words it. What happens in the run itself is told by its events.

use parking_lot::Mutex;
use serde::Serialize;
use stepwell::model::{Mode, Money, Time};
use stepwell::trust::Disregarded;
use stepwell::{Seq, SessionId};

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// Something was not done, and all else continues.
    Warning {
        /// What was not done.
        what: String,
        /// Why not.
        why: String,
    },
    /// Sessions are not saved: this one is kept in memory and cannot be resumed.
    NotSaved {
        /// Is it a flow?
        is_flow: bool,
    },
    /// A session's agent is another system's: ours goes on.
    OtherAgent {
        /// The session's agent.
        used: String,
        /// The system.
        system: String,
        /// The one that goes on.
        instead: String,
    },
    /// Somebody else began the session: what is said or answered counts only as they allow.
    SomebodyElses {
        /// The session.
        session: SessionId,
    },
    /// MCP servers take long to start.
    ServersSlow {
        /// The names of the servers.
        names: Vec<String>,
    },
    /// An MCP server is not there: the run goes on without it.
    ServerAbsent {
        /// The server's name.
        name: String,
        /// Why it is not there.
        why: String,
    },
    /// Something about an MCP server.
    Server(String),
    /// More tools than a model is given.
    ToolsLeftOut {
        /// How many are left out.
        count: usize,
        /// How many a model is given.
        most: usize,
    },
    /// Sessions of this workspace crashed, and nobody was told.
    CutOff {
        /// Which, the newest first.
        sessions: Vec<CutOffSession>,
    },
    /// A rewind that was cut off is finished now.
    RewindFinished {
        /// The session.
        session: SessionId,
        /// Where it began.
        began: Seq,
        /// Files that were left as they are.
        left: Vec<LeftFile>,
    },
    /// A file is in the way of finishing a rewind.
    RewindConflict(LeftFile),
    /// A rewind was cut off, and its files may be half moved.
    HalfRewound {
        /// The session.
        session: SessionId,
        /// Where it began.
        began: Seq,
    },
    /// A spec changed since its flow began: the stored one is used.
    SpecChanged {
        /// The file.
        path: String,
        /// What changed, as a unified diff.
        diff: String,
    },
    /// What changed in a spec that cannot be gone on with, as a unified diff.
    SpecDiff(String),
    /// Guardrails take a tool away.
    ToolTakenAway {
        /// From whom.
        whose: String,
        /// The tool's name.
        tool: String,
    },
    /// A provider is asked at an address that a spec names, without the user's key.
    WithoutKey {
        /// The address.
        address: String,
        /// The provider.
        provider: String,
    },
    /// Somebody else allowed something, which does not count here.
    Disregarded {
        /// What, and who did.
        it: Box<Disregarded>,
        /// The mode that counts.
        mode: Mode,
        /// The model that is used, if it is one for all.
        model: Option<String>,
        /// Has whoever allowed it the user's own name?
        namesake: bool,
    },
    /// Somebody else raised or removed what a session may cost, which does not count here.
    BudgetNotYours {
        /// What counts.
        counts: Money,
        /// What the session says.
        recorded: Option<Money>,
    },
    /// A run cannot renew its lease: until the store is there again, it starts no tool, and when the
    /// lease is over, another one may take its session.
    LeaseNotRenewed {
        /// The session.
        session: SessionId,
        /// Why.
        why: String,
    },
    /// This machine has no note on a session of a team's store: nobody can tell here whether its log is
    /// the one that it was.
    FirstSeen {
        /// The session.
        session: SessionId,
    },
    /// A log lacks what its user last allowed in it: nothing that it says was allowed counts.
    LogAltered {
        /// The session.
        session: SessionId,
    },
    /// The question that was answered by whoever named none.
    Answered {
        /// Its name.
        gate: String,
        /// What was asked.
        asked: String,
        /// What was answered.
        answer: String,
    },
    /// Somebody else answered first: the given answer is not taken.
    NotTaken {
        /// The question's name.
        gate: String,
        /// Why not.
        why: String,
    },
}

impl Notice {
    /// Something was not done, and all else continues.
    pub(crate) fn warning(what: impl Into<String>, why: &impl ToString) -> Self {
        Self::Warning { what: what.into(), why: why.to_string() }
    }

    /// Would each run say the same again until somebody mends something? Whoever sees several runs
    /// in a row need not be told of it each time.
    const fn is_standing(&self) -> bool {
        matches!(self, Self::ServerAbsent { .. } | Self::Server(_) | Self::ToolsLeftOut { .. })
    }
}

/// A session that was cut off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CutOffSession {
    /// The session.
    pub session: SessionId,
    /// When it last did something.
    pub updated_at: Time,
    /// Its task.
    pub task: String,
}

/// A file that a rewind left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftFile {
    /// The file.
    pub path: String,
    /// Why it was left.
    pub why: String,
}

/// Where notices go.
pub type Notices = stepwell_workspace::Notices<Notice>;

/// What a person was told, and what stands as it did: each turn of a conversation is a run, which
/// would say it again.
#[derive(Debug, Default)]
pub struct ToldOnce(Mutex<Vec<Notice>>);

impl ToldOnce {
    /// Is it worth telling?
    pub fn is_news(&self, notice: &Notice) -> bool {
        let mut told = self.0.lock();
        let is_news = !notice.is_standing() || !told.contains(notice);
        if is_news && notice.is_standing() {
            told.push(notice.clone());
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_server_is_told_of_once_and_again_if_it_says_otherwise() {
        let told = ToldOnce::default();
        let absent = |why: &str| Notice::ServerAbsent { name: "notes".into(), why: why.into() };
        let slow = Notice::ServersSlow { names: vec!["notes".into()] };
        assert!(told.is_news(&absent("gone")));
        assert!(!told.is_news(&absent("gone")));
        assert!(told.is_news(&absent("no key")));
        assert!(told.is_news(&slow) && told.is_news(&slow));
    }
}
