//! Which sessions a command is about: the filters that lists and searches share.

use clap::Args;
use stepwell::SessionInfo;
use stepwell::model::Time;
use stepwell::store::query::Filter;
use stepwell_terminal::When;
use stepwell_wire::SessionStatus;

/// Filters; a session must pass all that are given.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Which sessions")]
pub(crate) struct Selection {
    /// Only sessions with this status; may be repeated. `damaged` is one too.
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<SessionStatus>,
    /// Only sessions of this agent.
    #[arg(long)]
    agent: Option<String>,
    /// Only sessions that used this model.
    #[arg(long)]
    model: Option<String>,
    /// Only sessions with this tag; if repeated, with all of them.
    #[arg(long, value_delimiter = ',')]
    tag: Vec<String>,
    /// Only the session with this label.
    #[arg(long)]
    label: Option<String>,
    /// Only sessions that came from this system: claude-code, codex, langgraph.
    #[arg(long, value_name = "SYSTEM")]
    source: Option<String>,
    /// Only sessions whose task contains this text.
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// Only sessions updated at or after this time: 2026-02-23, 7d, yesterday.
    #[arg(long, value_name = "WHEN")]
    since: Option<When>,
    /// Only sessions updated before this time.
    #[arg(long, value_name = "WHEN")]
    until: Option<When>,
}

impl Selection {
    /// The filters as the library knows them.
    pub(crate) fn filter(&self, now: Time) -> Filter {
        let statuses = self.status.iter().filter_map(|shown| shown.status());
        Filter {
            // One that is damaged may stand in any way.
            status: if self.wants_damaged() { Vec::new() } else { statuses.collect() },
            agent: self.agent.clone(),
            model: self.model.clone(),
            tags: self.tag.clone(),
            label: self.label.clone(),
            system: self.source.clone(),
            task: self.task.clone(),
            since: self.since.map(|when| when.resolve(now)),
            until: self.until.map(|when| when.resolve(now)),
            ..Filter::default()
        }
    }

    /// The statuses that the library's filter does not know: a damaged session may stand in any way.
    pub(crate) fn statuses(&self) -> Vec<SessionStatus> {
        if self.wants_damaged() { self.status.clone() } else { Vec::new() }
    }

    fn wants_damaged(&self) -> bool {
        self.status.contains(&SessionStatus::Damaged)
    }

    /// Is there more to filter by than the library's filter does?
    pub(crate) fn filters_more(&self) -> bool {
        self.wants_damaged()
    }

    /// Does a session that the filter let through stand as asked?
    pub(crate) fn takes(&self, info: &SessionInfo) -> bool {
        !self.wants_damaged() || self.status.contains(&SessionStatus::from(info))
    }
}
